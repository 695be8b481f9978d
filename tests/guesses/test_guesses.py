"""Guesses: names, columns and models on one scale; what is bad in them is said; runs that begin with one."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.guesses import (
    Guess,
    classes_in,
    columns_of,
    guess_of,
    likely_columns,
    names_say_something,
    of_classes,
    sources_of_columns,
    stacked,
    standardised,
)
from workbench.guesses.columns import of_cells, of_json, of_probabilities
from workbench.guesses.names import cleaned, of_names
from workbench.pools import load_pool
from workbench.sessions.simulate import simulate

PETS = ("cat", "dog", "bird")


def test_one_scale_for_all():
    G = standardised(np.array([[1.0, 2, 3], [5, 5, 5], [0, 0, 9]]))
    np.testing.assert_allclose(G.mean(axis=1), 0, atol=1e-12)
    assert G.std() == pytest.approx(1) and not G[1].any()
    G = standardised(np.array([[1.0, 2, 3], [np.nan, 0, 1]]))
    assert not G[1].any() and G[0].std() == pytest.approx(1)
    with pytest.raises(InputError, match="same of every class"):
        standardised(np.ones((4, 3)))


def test_a_column_of_classes():
    guess = of_classes(["cat", "Dog ", None, float("nan"), "cow", "cow", ""], PETS, source="column:llm")
    assert guess.codes.tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert guess.notes == ("Unknown classes, left out: 'cow' (2).", "5 of 7 rows have no guess.")
    mapped = of_classes(["katze", "hund"], PETS, mapping={"katze": "cat", "hund": "dog"})
    assert mapped.codes.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"names none of the classes .*'cow' \(1\).*Say which class"):
        of_classes(["cow"], PETS)
    assert of_classes([1.0, 2.0, np.nan], ("1", "2")).codes.tolist() == [0, 1, -1]


def test_confidence_moves_the_guess():
    guess = of_classes(["cat", "cat", "cat"], PETS, confidence=[0.99, 0.5, ""])
    assert guess.values[0, 0] > guess.values[1, 0] > 0 and not guess.known[2]
    assert "per cent" in of_classes(["cat", "dog"], PETS, confidence=[99, 50]).notes[0]
    for bad, said in (([-0.1], "between 0 and 1"), (["much"], "'much' is not a number"), ([1, 2], "1 rows")):
        with pytest.raises(InputError, match=said):
            of_classes(["cat"], PETS, confidence=bad)


def test_numbers_for_each_class():
    p = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 1.6], [np.nan, 0.5, 0.5], [0.0, 0.0, 0.0]])
    guess = of_probabilities(p, PETS)
    assert guess.codes.tolist() == [0, 2, -1, -1]
    assert any("outside 0 to 1" in note for note in guess.notes)
    halves = of_probabilities(p[[0, 0, 3]] / [[1], [2], [1]], PETS)
    assert halves.codes.tolist() == [0, 0, -1] and any("normalised" in note for note in halves.notes)
    np.testing.assert_allclose(halves.values[0], halves.values[1])
    assert of_probabilities([[3.0, -2.0, 1.0]], PETS).codes.tolist() == [0]
    wide = of_probabilities(np.eye(40)[:3], PETS, names=["cat", "dog", *(f"x{i}" for i in range(38))])
    assert "Columns of no class" in wide.notes[0] and any("No column for: bird" in n for n in wide.notes)
    with pytest.raises(InputError, match="none of its columns"):
        of_probabilities(np.eye(3), PETS, names=list("xyz"))
    with pytest.raises(InputError, match="same of every class"):
        of_probabilities(np.full((5, 3), 1 / 3), PETS)
    with pytest.raises(InputError, match="'high' is not a number"):
        of_probabilities([["high", 0.1, 0.2]], PETS)


def test_json_cells():
    cells = ['{"cat": 0.8, "dog": 0.2}', "", {"bird": 1.0}]
    assert of_json(cells, PETS).codes.tolist() == [0, -1, 2]
    assert of_cells(cells, PETS).codes.tolist() == [0, -1, 2]
    assert of_cells(["dog"], PETS).codes.tolist() == [1]
    with pytest.raises(InputError, match=r"row 2 holds '\[1\]', not an object"):
        of_json(['{"cat": 1}', "[1]"], PETS)


def test_names_as_words():
    assert cleaned("card_lost") == cleaned("cardLost") == cleaned("12_card-lost") == "card lost"
    assert names_say_something(["1", "A", "class_3", "refund", "退款"]) == [False, False, False, True, True]
    texts = ["my card is lost", "I want a refund please", "the card was lost again", "a refund, please"]
    guess = of_names(texts, ["Refund_wanted", "cardLost"])
    assert guess.codes.tolist() == [1, 0, 1, 0]
    guided = of_names(texts, ["A", "B"], {"A": "money back, refund", "B": "a lost card"})
    assert guided.codes.tolist() == [1, 0, 1, 0]
    with pytest.raises(InputError, match="say nothing about texts"):
        of_names(texts, ["1", "2"])
    vectors = of_names(texts, ["refund", "lost"], vectors=(np.eye(4)[[0, 1, 0, 1]], np.eye(4)[[1, 0]]))
    assert vectors.codes.tolist() == [1, 0, 1, 0]


def test_how_it_does_on_labels():
    guess = of_classes(["cat"] * 6 + ["dog"] * 4 + [None], PETS)
    truth = np.array([0] * 6 + [2] * 3 + [1, 1])
    found = guess.agreement(np.arange(11), truth)
    assert found[:2] == (7, 10) and found.low < 0.7 < found.high and found.confusions == ((2, 1, 3),)
    assert guess.suspicion(np.arange(11), truth) == ""
    assert "this may be your labels" in guess.suspicion(np.arange(10), guess.codes[:10])
    assert guess.agreement(np.array([10]), np.array([1]))[1:4] == (0, 0.0, 1.0)


def test_columns_that_look_like_guesses():
    columns = ["id", "Prediction", "text", "p_cat", "p_dog", "p_value", "weight"]
    assert likely_columns(columns, PETS) == ["Prediction", "p_cat", "p_dog", "p_value"]
    assert likely_columns(["p_value", "age"], PETS) == []


@pytest.mark.parametrize(
    ("columns", "likely"),
    [
        (["comment", "llm_topic", "llm_confidence"], ["llm_topic", "llm_confidence"]),
        (["topic", "topic_confidence", "age"], ["topic", "topic_confidence"]),
        (["GPT topic", "Topic pred", "predicted_age"], ["GPT topic", "Topic pred", "predicted_age"]),
        (["age", "survey_confidence", "llm_cost", "llm_id", "prediction_date"], []),
    ],
)
def test_columns_of_a_language_model_and_their_confidence_are_noticed_by_their_names(
    columns: list[str], likely: list[str]
) -> None:
    assert likely_columns(columns, ()) == likely


def test_marked_columns_make_sources():
    marked = ["llm", "llm_confidence", "p_cat", "p_dog", "rule", "p_alone_no"]
    assert sources_of_columns(["llm", "llm_confidence", "p_cat", "p_dog", "rule"]) == [
        "column:llm:llm_confidence",
        "columns:p_*",
        "column:rule",
    ]
    assert sources_of_columns(["p_cat"]) == ["column:p_cat"] and sources_of_columns([]) == []
    assert columns_of("column:llm:llm_confidence", marked) == ["llm", "llm_confidence"]
    assert columns_of("column:llm", marked) == ["llm"] and columns_of("names", marked) == []
    assert columns_of("columns:p_*", marked) == ["p_cat", "p_dog", "p_alone_no"]


def test_a_guess_names_the_classes_where_nobody_did(table, monkeypatch):
    assert classes_in("column:llm", table) == sorted(PETS) == classes_in("columns:p_*", table)
    assert classes_in("names", table) == []
    monkeypatch.setattr("workbench.guesses.sources._MOST_CLASSES", 2)
    assert classes_in("column:llm", table) == []


def test_texts_keep_the_other_columns_of_their_table(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,llm,y\n" + "".join(f"my {p} number {i},{p},{p}\n" for i in range(9) for p in PETS))
    pool = load_pool(path, target="y", text_column="text", exclude=["llm"])
    assert (
        pool.kind == "text" and guess_of("column:llm", pool).agreement(np.arange(27), pool.truth).right == 27
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A pool whose column `llm` is right 80 % of the time, and no feature."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = 1.2 * np.array([[0, 0], [2, 0], [0, 2]])[y] + rng.standard_normal((300, 2))
    named = np.where(rng.random(300) < 0.8, y, rng.integers(3, size=300))
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "llm": np.array(PETS)[named], "y": np.array(PETS)[y]})
    p = 0.1 + 0.7 * np.eye(3)[named]
    for number, name in enumerate(PETS):
        frame[f"p_{name}"] = p[:, number]
    path = tmp_path_factory.mktemp("guess") / "pets.csv"
    frame.to_csv(path, index=False)
    return load_pool(path, target="y", exclude=["llm", *(f"p_{name}" for name in PETS)])


def test_sources_of_a_table(table):
    one, other = guess_of("column:llm", table), guess_of("columns:p_*", table)
    assert one.source == "column:llm" and (one.codes == other.codes).all()
    truth = np.asarray(table.truth)
    assert one.agreement(np.arange(len(table)), truth).right > 0.75 * len(table)
    assert stacked([one, other]).shape == (2, 300, 3)
    for bad, said in (
        ("column:nope", "no column 'nope'"),
        ("columns:q_*", "No column is like"),
        ("names", "say something of texts"),
        ("horoscope", "Unknown guess 'horoscope'"),
    ):
        with pytest.raises(InputError, match=said):
            guess_of(bad, table)
    with pytest.raises(InputError, match="same items and classes"):
        stacked([one, Guess("x", one.values[:5])])
    with pytest.raises(InputError, match="a guess at"):
        guess_of(Guess("x", one.values[:5]), table)


@pytest.mark.parametrize("policy", ["margin", "expected-error-reduction", "variation-ratio", "bald"])
def test_a_run_from_no_labels(table, policy):
    runs = [
        list(simulate(table, policy=policy, guess=["column:llm"], initial="none", budget=10, batch=5, seed=1))
        for _ in range(2)
    ]
    first = runs[0][0]
    assert first.n_labelled == 0 and first.error < 0.3 and len(first.queried) == 5
    assert runs[0][-1].n_labelled == 10 and runs[0][-1].error < 0.4  # bald asks where it learns least
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one.queried, other.queried)
        assert one.state.keys() == other.state.keys()
        for name in one.state:
            np.testing.assert_array_equal(one.state[name], other.state[name])


def test_runs_say_what_they_need(table):
    with pytest.raises(InputError, match="needs a guess"):
        list(simulate(table, initial="none"))
    with pytest.raises(InputError, match="'SVM, calibrated' cannot start from a guess"):
        list(simulate(table, "svm-platt", guess=["column:llm"], initial="none"))


def test_a_run_goes_on_where_it_stopped(table):
    from workbench.sessions.simulate import Checkpoint

    options = {"guess": ["column:llm"], "initial": "none", "budget": 15, "batch": 5, "policy": "margin"}
    whole = list(simulate(table, **options))
    for at in (1, 2):
        rest = list(simulate(table, **options, progress=Checkpoint(whole[:at], whole[at - 1].state)))
        assert [r.error for r in rest] == [r.error for r in whole[at:]]
        np.testing.assert_array_equal(rest[0].queried, whole[at].queried)


def test_vectors_of_classes_are_a_guess_at_photos(tmp_path):
    """Photos and class names through one encoder: classes are told apart before any label."""
    from PIL import Image

    from workbench.guesses import names_speak
    from workbench.guesses.sources import SavedGuesses
    from workbench.pools.features.vectors import VectorFeatureMap

    rng = np.random.default_rng(0)
    classes = ("red cat", "blue_dog", "green bird")
    towards = rng.standard_normal((3, 24))
    codes = np.arange(45) % 3
    vectors = towards[codes] + 0.6 * rng.standard_normal((45, 24)) + 3.0  # photos lie elsewhere than texts
    folder = tmp_path / "photos"
    for item, code in enumerate(codes):
        place = folder / classes[code]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(place / f"{item:02}.png")
    plain = load_pool(str(folder))
    order = [int(name.rpartition("/")[2][:2]) for name in plain.items.ids]
    file = tmp_path / "clip.npz"

    def pool(**arrays):
        np.savez(file, embeddings=vectors[order], **arrays)
        return load_pool(str(folder), features=f"embeddings:{file}")

    names = np.array(["Red Cat", "blue dog", "green bird"])
    found = pool(class_vectors=towards - 5.0, class_names=names)
    guess = guess_of("names", found)
    assert names_speak(found) and (guess.values.argmax(axis=1) == found.truth).mean() > 0.9
    again = VectorFeatureMap.from_json(found.feature_map.to_json())
    np.testing.assert_array_equal(again.class_features, found.feature_map.class_features)
    saved = SavedGuesses.of(found, {"sources": [{"source": "names"}]}, found.classes)
    rows = vectors[order][:7].astype(np.float32)
    mean, notes = saved.mean(rows, again, again.transform(rows))
    np.testing.assert_allclose(mean[0], guess.values[:7], atol=1e-5)
    assert notes == ()
    first = next(iter(simulate(found, guess=["names"], initial="none", policy="margin", budget=1, seed=0)))
    assert first.n_labelled == 0 and first.error < 0.2
    partly = guess_of("names", pool(class_vectors=towards[:2], class_names=names[:2]))
    assert "Classes without a vector: green bird" in partly.notes[0]
    with pytest.raises(InputError, match="vectors of the classes from the same encoder"):
        guess_of("names", pool())
    with pytest.raises(InputError, match="needs both arrays"):
        pool(class_vectors=towards)
    with pytest.raises(InputError, match="Take both from one encoder"):
        pool(class_vectors=towards[:, :5], class_names=names)
    with pytest.raises(InputError, match="has none of these classes"):
        guess_of("names", pool(class_vectors=towards, class_names=np.array(["x", "y", "z"])))


@pytest.mark.parametrize("confident", [False, True])
def test_a_guess_at_a_new_row_does_not_depend_on_the_rows_beside_it(tmp_path, confident):
    from workbench.guesses.sources import SavedGuesses

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 200)
    names = np.array(["cat", "dog"])[codes]
    logits = np.where(codes[:, None] == np.arange(2), 1.5, -1.5) + rng.normal(size=(200, 2))
    table = {"x": rng.normal(size=200), "kind": names, "s_cat": logits[:, 0], "s_dog": logits[:, 1]}
    new = {"x": [0.0] * 3, "s_cat": [0.9, 0.2, -2.0], "s_dog": [0.3, 0.7, 1.0]}
    source = "columns:s_*"
    if confident:
        table |= {"llm": names, "sure": rng.integers(50, 100, 200)}
        new |= {"llm": ["cat", "cat", "dog"], "sure": [1.0, 0.5, 97.0]}
        source = "column:llm:sure"
    file = tmp_path / "table.csv"
    pd.DataFrame(table).to_csv(file, index=False)
    pool = load_pool(str(file), target="kind", text="drop")
    saved = SavedGuesses.of(pool, {"sources": [{"source": source}]}, ("cat", "dog"))
    rows = pd.DataFrame(new)
    together, _ = saved.mean(rows, pool.feature_map, np.zeros((3, 1)))
    alone = [saved.mean(rows[n : n + 1], pool.feature_map, np.zeros((1, 1)))[0][0, 0] for n in range(3)]
    np.testing.assert_allclose(together[0], alone, atol=1e-12)
