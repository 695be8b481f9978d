"""Scopes of an export: labels only, everything, predictions for the rest; and that all of it comes back."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.databases import new_project
from tests.sessions.fakes import FAKE
from workbench.errors import InputError
from workbench.exchange.answers import IMPORTS
from workbench.exchange.imports import import_labels
from workbench.exchange.labels import FORMATS, OF_IMAGES, class_folders, export_labels, labelling_config
from workbench.exchange.rows import SCOPES, label_table
from workbench.pools import load_pool
from workbench.pools.images import photos as photo_room
from workbench.pools.tables.uses import COLUMNS
from workbench.sessions import ArrayOracle, Session
from workbench.sessions.operations import Operation
from workbench.store import Store

CLASSES = ["cat & dog", '"quoted" <b>', "a/b: ä"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("one/p1.jpg", "two/p1.jpg", *(f"p{i}.png" for i in range(10))):
        place = tmp_path / "photos" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8))
        if name == "one/p1.jpg":  # a phone's: a second picture inside
            image.save(place, "MPO", save_all=True, append_images=[image])
        else:
            image.save(place)
    return tmp_path / "photos"


def project(kind: str, store: Store, photos: Path, tmp_path: Path) -> Session:
    """A project on a pool of a kind, with labels of three classes, one changed, one skipped."""
    shared = {"classifier": FAKE, "policy": "margin", "annotator": "ann", "store": store, "classes": CLASSES}
    if kind == "image":
        session = Session.create(str(photos), pool_options={"features": "shapes"}, **shared)  # type: ignore[arg-type]
    else:
        rows = [f"u{i},{i},what is number {i} for,{'rb'[i % 2]}" for i in range(14)]
        (tmp_path / "t.csv").write_text("id,n,label,colour\n" + "\n".join(rows) + "\n")
        label = "text" if kind == "text" else "leave out"
        use = {"id": "id", "n": "leave out", "label": label, "colour": "leave out"}
        use |= {} if kind == "text" else {"n": "number", "colour": "category"}
        session = Session.create(str(tmp_path / "t.csv"), pool_options={"columns": use}, **shared)  # type: ignore[arg-type]
    items = session.pool.trainable.tolist()
    for k, item in enumerate(items[:6]):
        session.items.label(item, CLASSES[k % 3])
    session.items.label(items[0], CLASSES[1])
    session.items.note(items[1], "=odd")
    ask = session.ask()[0]
    session.apply([Operation("op-1", "skip", ask=ask.id)])
    session.refit()
    return session


@pytest.mark.parametrize("kind", ["table", "text", "image"])
@pytest.mark.parametrize("what", [what for what in SCOPES if what not in ("history", "finished")])
def test_every_format_gives_back_the_labels_it_was_given(
    kind: str, what: str, store: Store, photos: Path, tmp_path: Path
) -> None:
    session = project(kind, store, photos, tmp_path)
    for format in filter(FORMATS.__contains__, IMPORTS):
        if format in OF_IMAGES and kind != "image":
            continue
        data = export_labels(session, format, what)
        assert format == "xlsx" or export_labels(session, format, what) == data  # openpyxl writes the time
        back = import_labels(data, session.pool, format, session.classes)
        assert dict(back) == dict(session.state.labels), format


def test_the_columns_of_an_export(store: Store, photos: Path, tmp_path: Path) -> None:
    session = project("table", store, photos, tmp_path)
    rows = label_table(session, "everything")
    assert len(rows) == len(session.pool) and list(rows[0])[:5] == [
        "id",
        "source_id",
        "n",
        "source_label",
        "colour",
    ]
    first = session.pool.trainable[0]
    row = next(row for row in rows if row["item"] == first)
    assert (row["label"], row["changed_from"], row["status"]) == (CLASSES[1], CLASSES[0], "labelled")
    assert (row["person"], row["source"], row["model"]) == ("ann", "map", f"{FAKE}, fit 0")
    assert sum(row["probabilities_now"].values()) == pytest.approx(1, abs=1e-4)
    assert row["confidence"] == max(row["probabilities_now"].values())
    assert row["probabilities_when_asked"] is None  # there was no model yet
    statuses = [row["status"] for row in rows]
    (skipped,) = [row for row in rows if row["status"] == "skipped"]
    assert skipped["person"] == "ann" and skipped["time"] and skipped["label"] is None
    assert statuses.count("labelled") == 6
    predicted = [row for row in label_table(session, "predictions") if row["status"] == "predicted"]
    assert len(predicted) == len(rows) - 6 and all(row["label"] in CLASSES for row in predicted)
    assert {row["source"] for row in predicted} == {"model"}
    table = pd.read_csv(io.BytesIO(export_labels(session, "csv", "everything")))
    assert json.loads(table["probabilities_now"][0]) == rows[0]["probabilities_now"]


def test_numbers_are_numbers_where_the_format_knows_them(store: Store, tmp_path: Path) -> None:
    """A CSV file is all texts; a Parquet file or a Hugging Face folder of it said that of every number."""
    import pyarrow.parquet as pq

    rows = [f"{i:03},{i},{i / 4},{'' if i == 3 else i},{i % 3},{'inf' if i == 1 else i}" for i in range(40)]
    (tmp_path / "t.csv").write_text("key,n,x,gap,code,wild\n" + "\n".join(rows) + "\n")
    use = {"key": "id", "code": "category", "n": "number"}
    session = Session.create(
        str(tmp_path / "t.csv"),
        classes=["a", "b"],
        classifier=FAKE,
        store=store,
        pool_options={"columns": use},
    )
    session.items.label(int(session.pool.trainable[0]), "a")
    table = pq.read_table(io.BytesIO(export_labels(session, "parquet", "everything")))
    kinds = {name: str(table.schema.field(name).type) for name in ("key", "n", "x", "gap", "code", "wild")}
    assert kinds == {
        "key": "string",
        "n": "int64",
        "x": "double",
        "gap": "int64",
        "code": "string",
        "wild": "string",
    }
    assert table["gap"].to_pylist() == [None if i == 3 else i for i in range(40)]
    first = json.loads(export_labels(session, "jsonl", "everything").splitlines()[1])
    assert (first["key"], first["n"], first["x"], first["wild"]) == ("001", 1, 0.25, "inf")
    told = pd.read_csv(io.BytesIO(export_labels(session, "csv", "everything")), dtype=str)
    assert told["key"][7] == "007" and told["x"][2] == "0.5"  # as they stood


def test_an_export_holds_what_the_model_thought_when_it_asked(
    store: Store, photos: Path, tmp_path: Path
) -> None:
    session = project("table", store, photos, tmp_path)
    then = session.model
    assert then is not None
    ask = next(ask for ask in iter(lambda: session.ask()[0], None) if session.tell(ask.id, CLASSES[2]))
    session.refit()
    assert session.model is not then
    session.classes.rename(CLASSES[2], "another")
    row = next(row for row in label_table(session) if row["item"] == ask.item)
    names = [*CLASSES[:2], "another"]
    expected = dict(zip(names, then.probabilities[ask.item].tolist(), strict=True))
    assert row["probabilities_when_asked"] == pytest.approx(expected, abs=1e-4)
    assert (row["label"], row["model_labels"], row["round"]) == (
        "another",
        then.n_labelled,
        None if ask.round < 0 else then.number,  # of one drawn to measure on
    )


def test_a_tie_between_people_is_no_label_of_the_set(store: Store) -> None:
    ann = new_project(store)
    items = ann.pool.trainable.tolist()[:2]
    for item in items:
        ann.items.label(item, "setosa")
    ann.as_annotator("ben").items.label(items[0], "virginica")
    rows = {row["item"]: row for row in label_table(ann)}
    assert (rows[items[0]]["status"], rows[items[0]]["label"]) == ("undecided", None)
    votes = {"ann": "setosa", "ben": "virginica"}
    assert rows[items[0]]["label_by_person"] == votes
    assert rows[items[1]]["status"] == "labelled"
    assert ann.labels["label"].dropna().to_dict() == {items[1]: "setosa"}
    for format in filter(FORMATS.__contains__, IMPORTS):
        if format not in OF_IMAGES:
            data = export_labels(ann, format)
            assert import_labels(data, ann.pool, format, ann.classes) == [(items[1], "setosa")], format
    with zipfile.ZipFile(io.BytesIO(export_labels(ann, "label-studio"))) as packed:
        tasks = {task["data"]["item"]: task for task in json.loads(packed.read("tasks.json"))}
    tied = tasks[items[0]]
    assert "annotations" not in tied and tied["data"]["label_by_person"] == votes
    answers = pd.read_csv(io.BytesIO(export_labels(ann, "csv", "questions")))
    assert answers["item"].tolist() == [items[1]]
    # what a file says of a tie is no label, also where it names one
    said = f"id,label,status\n{ann.pool.items.ids[items[0]]},setosa,undecided\n".encode()
    with pytest.raises(InputError, match="holds no labels"):
        import_labels(said, ann.pool, "csv", ann.classes)
    ann.items.label(ann.pool.trainable.tolist()[2], "virginica")  # a fit takes labels of two classes
    ann.refit()
    row = next(row for row in label_table(ann, "predictions") if row["item"] == items[0])
    assert (row["status"], row["label"]) == ("undecided", None)


def test_what_a_certificate_covers_is_no_persons_label_in_any_format() -> None:
    pool = load_pool("digits")
    image, other = ({"id": i, "file_name": str(pool.items.ids[i])} for i in range(2))
    machine = {"image_id": 0, "category_id": 1, "attributes": {"status": "certified", "source": "machine"}}
    person = {"image_id": 1, "category_id": 1, "attributes": {"status": "labelled"}}
    categories = [{"id": 1, "name": "5"}]
    coco = {"images": [image, other], "annotations": [machine, person], "categories": categories}
    npz = io.BytesIO()
    statuses = np.array(["certified", "labelled"])
    np.savez(npz, y=np.array([0, 0]), item=np.arange(2), classes=np.array(["5"]), status=statuses)
    assert import_labels(json.dumps(coco).encode(), pool, "coco") == [(1, "5")]
    assert import_labels(npz.getvalue(), pool, "npz") == [(1, "5")]


def test_what_cannot_be_exported_is_one_sentence(store: Store) -> None:
    session = new_project(store)
    with pytest.raises(InputError, match="no model to predict with yet"):
        export_labels(session, "csv", "predictions")
    with pytest.raises(InputError, match="holds id-and-label, labels, everything, predictions"):
        export_labels(session, "csv", "all")
    with pytest.raises(InputError, match="Class folders are for images"):
        export_labels(session, "folders")


@pytest.mark.parametrize(
    ("kind", "format"),
    [
        *((kind, f) for kind in ("table", "text") for f in ("huggingface", "csv", "jsonl")),
        ("image", "huggingface"),
    ],
)
def test_our_own_export_opens_as_the_pool_it_came_from(
    kind: str, format: str, store: Store, photos: Path, tmp_path: Path
) -> None:
    session = project(kind, store, photos, tmp_path)
    place = tmp_path / f"export{FORMATS[format]}"
    place.write_bytes(export_labels(session, format, "predictions"))
    pool = load_pool(str(place), columns="auto") if kind != "image" else load_pool(str(place))
    assert (pool.kind, len(pool)) == (kind, len(session.pool))
    assert (
        pool.truth is not None and (pool.truth >= 0).sum() == session.state.n_labelled
    )  # no prediction is truth
    said = {str(session.pool.items.ids[item]): name for item, name in session.state.labels.items()}
    told = {str(pool.items.ids[i]): pool.classes[pool.truth[i]] for i in np.flatnonzero(pool.truth >= 0)}
    if kind != "image":
        assert told == said
    if kind == "text":
        assert pool.items.show(0).text == session.pool.items.show(0).text
    if kind == "table":
        assert set(pool.items.show(0).row) == {"id", "n", "source_label", "colour"}
        assert not set(pool.feature_map.columns) & set(COLUMNS)


def test_class_folders_hold_the_files_as_they_are(store: Store, photos: Path, tmp_path: Path) -> None:
    session = project("image", store, photos, tmp_path)
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "folders", "everything"))) as packed:
        names = packed.namelist()
        folders = {
            json.loads(line)[1]: json.loads(line)[0] for line in packed.read("classes.jsonl").splitlines()
        }
        for item, label in session.state.labels.items():
            data = (photos / session.pool.items.ids[item]).read_bytes()
            assert any(n.startswith(f"{folders[label]}/") and packed.read(n) == data for n in names)
    assert sum(name.startswith("unlabelled/") for name in names) == 6 and len(set(names)) == len(names)
    assert all(".." not in name and "\\" not in name and not name.endswith(".mpo") for name in names)
    assert len(set(class_folders(["a/b", "a:b", "A-B", "x" * 300, "x" * 301]).values())) == 5
    (tmp_path / "back.zip").write_bytes(export_labels(session, "folders"))
    assert len(load_pool(str(tmp_path / "back.zip"), features="shapes").classes) == 3


def test_label_studio_gets_its_configuration_and_pictures(store: Store, photos: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    session = project("image", store, photos, tmp_path)
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "label-studio", "predictions"))) as packed:
        tasks = json.loads(packed.read("tasks.json"))
        config = ElementTree.fromstring(packed.read("config.xml").decode())
    assert [choice.get("value") for choice in config.iter("Choice")] == CLASSES
    assert len(tasks) == 12 and sum("annotations" in task for task in tasks) == 6
    assert sum("predictions" in task for task in tasks) == 6
    assert all(task["data"]["image"].startswith("data:image/") for task in tasks)
    # and it opens here as it left: the pictures are in it
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    again = load_pool(str(tmp_path / "tasks.json"))
    assert again.kind == "image" and len(again) == 12 and (again.truth >= 0).sum() == 6
    assert "zoom" in labelling_config("image", {"label": CLASSES})


def test_coco_has_what_its_own_tool_looks_for_and_decodes_no_photo(
    store: Store, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = project("image", store, photos, tmp_path)
    monkeypatch.setattr(photo_room, "decode_image", None)
    document = json.loads(export_labels(session, "coco", "everything"))
    assert document["info"]["description"] and len(document["images"]) == 12
    assert {(i["width"], i["height"]) for i in document["images"]} == {(30, 20)}
    assert {(a["area"], a["iscrowd"]) for a in document["annotations"]} == {(600, 0)}
    labels = import_labels(json.dumps(document).encode(), session.pool, "coco")
    for image in document["images"]:  # as it lies on a disk beside the folder
        image["file_name"] = f"photos/{image['file_name']}"
    assert labels and import_labels(json.dumps(document).encode(), session.pool, "coco") == labels


def test_two_hugging_face_folders_of_one_name_are_two_data_sets(
    store: Store, photos: Path, tmp_path: Path
) -> None:
    """`datasets` keeps what it read by the folder's name and what the card says, not by the contents."""
    session = project("table", store, photos, tmp_path)

    def card() -> tuple[str, str]:
        with zipfile.ZipFile(io.BytesIO(export_labels(session, "huggingface"))) as packed:
            (path,) = [name for name in packed.namelist() if name.endswith(".parquet")]
            return packed.read("README.md").decode(), path

    before, path = card()
    assert f"path: {path}\n" in before
    session.items.label(int(session.pool.trainable[8]), CLASSES[0])
    after, other = card()
    assert path != other and f"path: {other}\n" in after


def test_a_hugging_face_folder_opens_here_with_its_pictures(
    store: Store, photos: Path, tmp_path: Path
) -> None:
    session = project("image", store, photos, tmp_path)
    (tmp_path / "set.zip").write_bytes(export_labels(session, "huggingface"))
    again = load_pool(str(tmp_path / "set.zip"))
    assert again.kind == "image" and len(again) == 6 and set(again.classes) == set(CLASSES)
    told = {session.pool.items.ids[i].rpartition("/")[2]: name for i, name in session.state.labels.items()}
    oracle = ArrayOracle(again)
    assert oracle is not None and len(told) >= 5


def test_a_picture_that_is_an_array_becomes_a_png(store: Store) -> None:
    session = new_project(store, "digits")
    session.items.label(int(session.pool.trainable[0]), "3")
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "folders"))) as packed:
        (name,) = packed.namelist()
        assert name.startswith("3/") and Image.open(io.BytesIO(packed.read(name))).size == (8, 8)
