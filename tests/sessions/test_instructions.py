"""Instructions: versions, which one a label was given under, pictures, and examples of classes."""

import io

import numpy as np
import pytest
from PIL import Image

from workbench.errors import InputError
from workbench.exchange.rows import label_table
from workbench.sessions import ArrayOracle, Session
from workbench.sessions.instruction_texts import SIDE, as_kept
from workbench.sessions.instructions import examples_of_all


def png(size=(40, 30), colour="red"):
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return Session.create("iris", annotator="ann", evaluation_share=0.0)


def answer(session, n):
    oracle = ArrayOracle(session.pool)
    for _ in range(n):
        (ask,) = session.ask(1)
        session.tell(ask.id, oracle(ask.item))


def test_each_label_knows_the_version_in_force_and_the_one_its_person_had_read(session):
    ben = session.as_annotator("ben")
    answer(session, 1)
    session.instructions.write("Petals first.")
    answer(ben, 1)
    ben.instructions.read()
    answer(ben, 1)
    session.instructions.write("Petals, then sepals.", after=1)
    answer(ben, 1)
    rows = sorted(label_table(session), key=lambda row: row["time"])
    assert [(row["person"], row["instructions"], row["instructions_read"]) for row in rows] == [
        ("ann", None, None),
        ("ben", 1, None),
        ("ben", 1, 1),
        ("ben", 2, 1),
    ]
    assert (
        session.instructions.latest.text == "Petals, then sepals."
        and session.instructions.latest.version == 2
    )
    assert session.state.version_read("ann") == 2, "whoever writes a version knows it"


def test_what_changes_nothing_is_no_version_and_an_empty_text_takes_them_away(session):
    assert session.instructions.write("  ") is None
    session.instructions.write("Look.\r\n")
    assert session.instructions.write("Look.\n") is None
    session.instructions.write("")
    assert session.instructions.latest is None and len(session.state.instructions) == 2


def test_two_who_write_at_once_do_not_overwrite_each_other(session):
    session.instructions.write("One.", after=0)
    with pytest.raises(InputError, match="ann wrote version 1 meanwhile"):
        session.as_annotator("ben").instructions.write("Other.", after=0)


def test_pictures_are_kept_small_and_named_by_their_content(session):
    session.instructions.write(
        "![a](a.png) ![b](b.png)", {"a.png": png((3000, 20)), "b.png": png(), "c": b"x"}
    )
    first, second = session.state.pictures
    assert session.instructions.latest.text == f"![a](picture:{first}) ![b](picture:{second})"
    kept = session.instructions.picture(first)
    assert max(Image.open(io.BytesIO(kept.data)).size) == SIDE and kept.media == "image/png"
    before = len(session.log.events)
    session.instructions.write(f"![b](b.png) ![again](picture:{first})", {"b.png": png()})
    assert len(session.log.events) == before + 1, "a picture that is kept is not kept twice"
    with pytest.raises(InputError, match="no picture"):
        session.instructions.picture("0" * 16)


def test_a_picture_of_noise_is_kept_as_jpeg():
    noise = np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG")
    assert as_kept(out.getvalue(), "noise").media == "image/jpeg"


@pytest.mark.parametrize(
    ("text", "pictures", "why"),
    [
        ("x" * 20_001, {}, "20,001 characters; 20,000"),
        ("![a](gone.png)", {}, "not there: 'gone.png'"),
        ("![a](picture:0123456789abcdef)", {}, "there are not: '0123456789abcdef'"),
        ("![a](a.svg)", {"a.svg": b"<svg onload='alert(1)'/>"}, "is no image"),
        ("![a](a.png)", {"a.png": b"\x89PNG" + bytes((10 << 20) + 1)}, "at most 10,485,760"),
        (" ".join(f"![a](picture:{i:016x})" for i in range(13)), {}, "13 pictures; 12"),
    ],
)
def test_what_cannot_be_shown_is_refused_and_nothing_recorded(session, text, pictures, why):
    before = len(session.log.events)
    with pytest.raises(InputError, match=why):
        session.instructions.write(text, pictures)
    assert len(session.log.events) == before


def test_examples_are_those_people_picked_else_the_nearest_to_the_middle(session):
    labelled = [i for i in session.pool.trainable.tolist() if i < 50][:6]
    session.items.import_labels([(i, "setosa") for i in labelled], "test")
    items = [i for i, code in session.state.codes.items() if session.classes[code] == "setosa"]
    X = np.asarray(session.pool.features)[items] / np.asarray(session.pool.features)[
        list(session.state.codes)
    ].std(axis=0)
    nearest = items[int(((X - X.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    proposed = examples_of_all(session)["setosa"]
    assert proposed[0].item == nearest and not any(one.picked for one in proposed) and len(proposed) == 3
    others = [i for i in items if i not in {one.item for one in proposed}]
    session.instructions.pick(others[0], "setosa")
    assert [one.picked for one in examples_of_all(session)["setosa"]] == [True, False, False]
    session.instructions.pick(others[1], "setosa")
    assert [one.item for one in examples_of_all(session)["setosa"]] == others[:2], (
        "two that people picked suffice"
    )
    session.instructions.pick(others[0], "setosa", on=False)
    assert examples_of_all(session)["setosa"][0].item == others[1]
    # one that was labelled otherwise since is none any more
    session.items.relabel([others[1]], "virginica")
    assert others[1] not in {one.item for one in examples_of_all(session)["setosa"]}


def test_an_example_is_of_its_class_one_of_three_and_not_to_measure_on(session):
    items = [i for i in session.pool.trainable.tolist() if i < 50][:4]
    session.items.import_labels([(i, "setosa") for i in items], "test")
    with pytest.raises(InputError, match="labelled 'setosa'"):
        session.instructions.pick(items[0], "virginica")
    with pytest.raises(InputError, match="kept to measure on"):
        session.instructions.pick(int(session.pool.test.test[0]), "setosa")
    for item in items[:3]:
        session.instructions.pick(item, "setosa")
    assert session.instructions.pick(items[0], "setosa") is None
    with pytest.raises(InputError, match="has 3 examples"):
        session.instructions.pick(items[3], "setosa")
    session.classes.rename("setosa", "bristle")
    assert {one.item for one in examples_of_all(session)["bristle"]} == set(items[:3])


def test_an_example_gives_no_answer_away_to_who_is_still_to_be_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    ann = Session.create("iris", annotator="ann", overlap=1.0, evaluation_share=0.0)
    answer(ann, 12)
    assert examples_of_all(ann)
    assert not examples_of_all(ann.as_annotator("ben")), "ben is to label all of them too"


def test_a_copy_has_them_too(session):
    session.instructions.write("![a](a.png) Petals.", {"a.png": png()})
    answer(session, 2)
    copy = Session.open(session.store.duplicate_project(session.id, "copy").id)
    (name,) = copy.state.pictures
    assert copy.instructions.latest == session.instructions.latest and copy.instructions.picture(
        name
    ) == session.instructions.picture(name)
