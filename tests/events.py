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
    Event.undo(4),
    Event.redo(),
    Event.class_added("a"),
    Event.class_renamed("a", "b"),
    Event.class_merged("a", "b"),
    Event.class_removed("a"),
    Event.class_described("a", guidance="", colour="#ffffff"),
    Event.classes_ordered(["a", "b"]),
    Event.imported([(1, "a")], "a file"),
    Event.confirmed([1], "a", [2], ["ask"]),
    Event.relabelled([1], "a", "review", final=True),
    Event.cleared([1]),
    Event.wanted([1], "by hand", second=True),
    Event.requeued([1]),
    Event.resolved(1, "a"),
    Event.asked([{"id": "x", "item": 1, "role": "policy", "guess": [["a", 1]]}], 12.5, first=True),
    Event.released(["x"]),
    Event.model_changed("large-margin", {"n_inducing": 16, "widths": [1, 2]}, "margin"),
    Event.round({"number": 0, "n_labelled": 3, "error": None}),
    Event.label("a", 3, role="check", check=4),
    Event.checks_started(FROZEN),
    Event.certified(4, [(3, False)], {"id": "x"}),
    Event.question_changed("Which flower?" * 70),
    Event.names_hidden(True),
    Event.guesses_changed([{"source": "names", "on": True}]),
    Event.picture_kept("4c4b6a3be1314ab8", "image/png", "iVBORw0KGgo="),
    Event.instructions_written("# How"),
    Event.instructions_read(1),
    Event.example_picked(1, "a"),
    *(Event.label("a", 3, role=role) for role in ROLES),
]
