"""An event of every kind, and an answer in every role."""

from workbench.store.events import Event

ROLES = (
    *("policy", "evaluation", "cold-start", "again", "overlap", "chosen", "second", "uniform", "grid"),
    *("together", "check", "map", "review", "confirmed", "twin", "imported", "initial"),
)

FROZEN = {
    "promise": {
        **{"size": 1, "error": 0.05, "confidence": 0.95, "sizes": [1], "attempt": 1},
        **{"of": "model", "per_class": False},
    },
    **{"seed": 7, "classes": ["a"], "frozen": {"items": "", "codes": "", "confidence": ""}},
    **{"checksum": "0", "drawn_from": "0"},
}

EVENTS = [
    Event.label("a", 3, seconds=1.5, round=None, policy="margin", utility=None, guess=[["a", 0.5]]),
    Event.skip(0),
    Event.unsure(1),
    Event.flag(2, False),
    Event.note(2, "x" * 2_000),
    Event("undo", {"of": 4}),
    Event("redo"),
    Event.class_added("a"),
    Event("class-renamed", {"class": "a", "name": "b"}),
    Event("class-merged", {"class": "a", "into": "b"}),
    Event("class-removed", {"class": "a"}),
    Event("class-described", {"class": "a", "guidance": "", "colour": "#ffffff"}),
    Event("classes-ordered", {"classes": ["a", "b"]}),
    Event.imported([(1, "a")], "a file"),
    Event.confirmed([1], "a", [2], ["ask"]),
    Event.relabelled([1], "a", "review", final=True),
    Event("cleared", {"items": [1]}),
    Event.wanted([1], "by hand", second=True),
    Event("requeued", {"items": [1]}),
    Event.resolved(1, "a"),
    Event.asked([{"id": "x", "item": 1, "role": "policy", "guess": [["a", 1]]}], 12.5, first=True),
    Event.released(["x"]),
    Event(
        "model-changed",
        {"classifier": "large-margin", "options": {"n_inducing": 16, "widths": [1, 2]}, "policy": "margin"},
    ),
    Event("round", {"number": 0, "n_labelled": 3, "error": None}),
    Event.label("a", 3, role="check", check=4),
    Event("checks-started", FROZEN),
    Event.certified(4, [(3, False)], {"id": "x"}),
    Event("question-changed", {"question": "Which flower?" * 70}),
    Event("names-hidden", {"on": True}),
    Event("guesses-changed", {"sources": [{"source": "names", "on": True}], "n_items": 0}),
    Event("picture-kept", {"picture": "4c4b6a3be1314ab8", "media": "image/png", "data": "iVBORw0KGgo="}),
    Event("instructions-written", {"text": "# How"}),
    Event("instructions-read", {"version": 1}),
    Event("example-picked", {"item": 1, "class": "a", "on": True}),
    *(Event.label("a", 3, role=role) for role in ROLES),
]
