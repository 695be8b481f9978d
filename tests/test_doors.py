"""No document that somebody sent reads a file of the machine: by its source, and by what is opened."""

import ast
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.trials._watch import watched
from tests.databases import new_project
from workbench.errors import InputError
from workbench.exchange.bundles import BundleFolder, labelled_items, read_bundle
from workbench.exchange.imports import import_labels
from workbench.exchange.manifests import json_text, sealed
from workbench.exchange.models import load_model
from workbench.exchange.projects import open_bundle, wanted_by, write_project_bundle
from workbench.members import FolderMembers, ZipMembers, member_name
from workbench.pools import feature_map_from_json, load_pool
from workbench.sessions import RunSpec, Session
from workbench.store import Store
from workbench.studies import StudySpec, read_study, run, run_study

ROOT = Path(__file__).resolve().parents[1]
OPENING = frozenset(
    [
        "open",
        "read_bytes",
        "read_text",
        "memmap",
        "fromfile",
        "ZipFile",
        "ParquetFile",
        "InferenceSession",
        "load_workbook",
        "read_parquet",
        "copyfile",
        "copytree",
        "copy2",
        "FolderMembers",
    ]
)
"""What opens a file where it is called with a path."""
ALLOWED = {
    # the two doors themselves
    "pools/formats/files.py": "a file that a person named, its kind and size checked",
    # what is given to these is bytes, an open file, or a File
    "pools/images/decoding.py": "bytes",
    "exchange/labels.py": "bytes",
    "pools/formats/huggingface.py": "bytes",
    "pools/formats/xlsx.py": "bytes",
    "pools/formats/arrays.py": "a File",
    "pools/formats/npy_files.py": "a File, mapped",
    "pools/formats/arrow.py": "a File",
    "studies/attacks.py": "what it writes",
    # files of the program, of an installed package or of its cache: their names are no document's
    "pools/datasets/catalogue.py": "bundled",
    "pools/encoders/libraries.py": "of a package",
    "pools/features/cache.py": "the cache",
    "pools/datasets/known.py": "of the catalogue",
    # paths that a person typed; `of_document` and `_pool_of` mark those of documents
}
FUNCTIONS = {
    "exchange/bundles.py": {
        "BundleFolder._owner",
        "BundleFolder.add",
        "BundleFolder._drop_half_line",
        "write_zip",
    }
    | {"BundleFolder.rounds_kept", "BundleFolder.progress", "_bundle_in"},
    "exchange/auditing.py": {"Audit.decided", "Audit.list_of_checks", "Audit._read", "read_certificate"},
    # pictures are bytes of the pool's own
    "exchange/archives.py": {"packed", "put", "picture_of"},
    "exchange/manifests.py": {"sealed", "read_json"},
    "exchange/language_model.py": {"_Kept.__init__"},  # what it wrote itself, below the program's own folder
    "exchange/models.py": {"load_model"},
    "exchange/projects.py": {"open_bundle", "_rehearse", "_members", "_with_pool", "_pack_pictures"},
    "pools/encoders/__init__.py": {"weights_of"},  # of the file that open_encoder opened
    "pools/formats/sheet_process.py": {"main"},  # its own output, by its number
    "pools/named_features.py": {"_read_parquet"},  # a File
    "pools/instructions.py": {"_text"},  # pictures beside the file that a person named
    "pools/tables/pictures.py": {"_found_files", "_beside", "Pictures.read"},
    "studies/study.py": {"_read_document"},
    # what it writes, uploads in a folder of the server's, and the store of the server that asks
    "studies/tasks.py": {"compared", "advised_run", "state_of_run", "bundle_opened", "stored_labels_written"}
    | {"_written", "_read"},
}
"""Functions beside that open what they write, or the folder that a person named as one."""


def calls_of(path: Path) -> list[tuple[str, str]]:
    """(function, source) of the calls in a module that open a file."""
    found: list[tuple[str, str]] = []

    def visit(node: ast.AST, where: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = where
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{where}.{child.name}" if where else child.name
            if isinstance(child, ast.Call):
                called = child.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                if name in OPENING:
                    found.append((where, ast.unparse(child)))
            visit(child, inner)

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def test_no_reader_of_a_document_opens_a_path_by_itself() -> None:
    odd = []
    for room in ("exchange", "pools", "studies"):
        for path in sorted((ROOT / "workbench" / room).rglob("*.py")):
            name = path.relative_to(ROOT / "workbench").as_posix()
            if name in ALLOWED:
                continue
            odd += [
                f"{name}, {where}: {call}"
                for where, call in calls_of(path)
                if where not in FUNCTIONS.get(name, ())
            ]
    assert not odd, "read by workbench.members, or say why not in ALLOWED:\n" + "\n".join(odd)


# --- what is opened -------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files of the machine that no document may read, each of a kind that some reader would take."""
    place = tmp_path / "outside"
    place.mkdir()
    rows = "id,a,b,label\n" + "".join(f"{i},{i},{i * 7 % 13},{'xy'[i % 2]}\n" for i in range(40))
    (place / "rows.csv").write_text(rows)
    np.save(place / "v.npy", np.eye(40, 3))
    (place / "net.json").write_text("{}")
    (place / "net.onnx").write_bytes(b"onnx")
    picture = io.BytesIO()
    from PIL import Image

    Image.fromarray(np.zeros((8, 8), np.uint8)).save(picture, "PNG")
    (place / "x.png").write_bytes(picture.getvalue())
    with zipfile.ZipFile(place / "p.zip", "w") as packed:
        packed.writestr("x.png", picture.getvalue())
    return place


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return Store.open(tmp_path / "home.sqlite")


def refused(read: Callable[[], Any], outside: Path, match: str | None = None) -> None:
    """Read; it is one sentence, and nothing outside was opened."""
    with watched((str(outside), "/dev"), may_write=True) as noted, pytest.raises(InputError, match=match):
        read()
    assert noted == []


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None], files: tuple[str, ...] = ()) -> Path:
    """A bundle whose reference to its pool was changed by somebody who made the checksums fit again."""
    for name in ("project.json", "run.json"):
        document = json.loads((folder / name).read_text())
        at = document["pool"] if name == "project.json" else document["pool"]["reference"]
        change(at)
        if name == "run.json":
            names = {*document.pop("files"), *files}
            document.pop("sha256")
            document = sealed(document, folder, names)
        (folder / name).write_text(json_text(document))
    return folder


@pytest.fixture
def bundle(tmp_path: Path, store: Store, outside: Path) -> Path:
    own = tmp_path / "own.csv"
    own.write_bytes((outside / "rows.csv").read_bytes())
    write_project_bundle(tmp_path / "b", new_project(store, str(own), target="label"))
    return tmp_path / "b"


def put(entries: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(pool: dict[str, Any]) -> None:
        pool["name"] = entries.get("name", pool["name"])
        pool["options"] |= {k: v for k, v in entries.items() if k != "name"}

    return change


@pytest.mark.parametrize("form", ["absolute", "upwards", "device", "upwards behind pool", "known", "below"])
@pytest.mark.parametrize("option", ["name", "folder", "features", "labels"])
def test_a_bundle_names_no_file_of_the_machine(
    bundle: Path, store: Store, outside: Path, form: str, option: str
) -> None:
    file = {"name": "rows.csv", "folder": "p.zip", "features": "v.npy", "labels": "v.npy"}[option]
    name = {
        "absolute": str(outside / file),
        "upwards": f"../outside/{file}",
        "device": "/dev/zero",
        "upwards behind pool": f"pool/../../outside/{file}",
        "known": f"libsvm:{outside / file}",
        "below": f"pool/deep/{file}",
    }[form]
    rewritten(bundle, put({option: f"embeddings:{name}" if option == "features" else name}))
    wanted = wanted_by(bundle)
    assert (wanted.pool, wanted.files) == ((name, ()) if option == "name" else ("", (name,)))
    refused(lambda: open_bundle(bundle, store=store), outside)
    packed = io.BytesIO()
    from workbench.exchange.bundles import write_zip

    write_zip(packed, bundle)
    refused(lambda: open_bundle(packed.getvalue(), store=store), outside)
    assert len(store.projects()) == 1


@pytest.mark.parametrize("features", ["{}/net.json", "{}/net.onnx", "pool/net.onnx"])
def test_a_network_in_a_file_is_named_by_a_person_alone(
    bundle: Path, store: Store, outside: Path, features: str
) -> None:
    (bundle / "pool" / "net.onnx").write_bytes(b"onnx")
    rewritten(bundle, put({"features": features.format(outside)}), ("pool/net.onnx",))
    refused(lambda: open_bundle(bundle, store=store), outside, "files beside it")


@pytest.mark.parametrize(
    "kind", ["link", "folder of links", "pipe", "unlisted", "listed outside", "too large"]
)
def test_only_plain_listed_members_of_a_bundle_are_read(
    bundle: Path, store: Store, outside: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = bundle / "pool" / "own.csv"
    if kind == "link":
        own.unlink()
        own.symlink_to(outside / "rows.csv")
    elif kind == "folder of links":
        own.unlink()
        own.parent.rmdir()
        (bundle / "pool").symlink_to(outside)
        (outside / "own.csv").write_bytes((outside / "rows.csv").read_bytes())
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no pipes on this system")
        own.unlink()
        os.mkfifo(own)
    elif kind == "unlisted":
        (bundle / "pool" / "other.csv").write_bytes(own.read_bytes())
        rewritten(bundle, put({"name": "pool/other.csv"}))
    elif kind == "listed outside":
        document = json.loads((bundle / "run.json").read_text())
        document["files"]["../outside/rows.csv"] = "0" * 64
        document.pop("sha256")
        from workbench.exchange.manifests import _own

        (bundle / "run.json").write_text(json_text(document | {"sha256": _own(document)}))
    else:
        from workbench.exchange import projects

        monkeypatch.setattr(projects, "MAX_POOL", 100)
    refused(lambda: open_bundle(bundle, store=store), outside)
    assert len(store.projects()) == 1


def test_pictures_and_vectors_beside_a_pool_travel_with_it(
    tmp_path: Path, store: Store, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.pools.features.test_shapes import photos

    place = tmp_path / "mine"
    (place / "photos").mkdir(parents=True)
    names = []
    for name, data in photos(8).items():
        names.append(Path(name).name)
        (place / "photos" / names[-1]).write_bytes(data)
    table = "file,n,label\n" + "".join(f"photos/{name},{i},{'xy'[i % 2]}\n" for i, name in enumerate(names))
    (place / "t.csv").write_text(table)
    bare = table.replace("photos/", "")
    (place / "bare.csv").write_text(bare)
    np.save(place / "v.npy", np.random.default_rng(0).normal(size=(8, 5)))
    uses = {"file": "picture", "n": "leave out", "label": "class"}
    sources: list[tuple[str, dict[str, Any]]] = [
        ("t.csv", {"columns": uses}),
        ("bare.csv", {"columns": uses, "folder": str(place / "photos")}),
        (
            "t.csv",
            {
                "columns": {"file": "leave out", "n": "number", "label": "class"},
                "features": f"embeddings:{place / 'v.npy'}",
            },
        ),
    ]
    made = []
    for number, (file, options) in enumerate(sources):
        session = Session.create(
            str(place / file), pool_options=options, store=store, classifier="logistic-regression"
        )
        write_project_bundle(tmp_path / f"out{number}", session)
        made.append(session.pool)
    place.rename(tmp_path / "moved")
    for number, pool in enumerate(made):
        with watched((str(tmp_path / "moved"),), may_write=True) as noted:
            again = open_bundle(tmp_path / f"out{number}", store=store)
            opened = Session.open(again.id, store=store).pool
        assert noted == []
        np.testing.assert_allclose(opened.features, pool.features, atol=1e-6)
        assert str(tmp_path / "moved") not in json.dumps(dict(again.pool))


def test_a_yes_to_web_addresses_is_a_persons(bundle: Path, store: Store, outside: Path) -> None:
    rewritten(bundle, put({"fetch": True}))
    assert wanted_by(bundle).fetch
    assert "fetch" not in open_bundle(bundle, store=store).pool["options"]
    assert open_bundle(bundle, store=store, pool_options={"fetch": True}).pool["options"]["fetch"] is True


def test_runs_models_and_studies_read_their_own_folder_alone(tmp_path: Path, outside: Path) -> None:
    spec = RunSpec("iris", classifier="logistic-regression", policy="margin", budget=1)
    run(spec, out=tmp_path / "run")
    study = StudySpec("s", ("iris",), ("logistic-regression",), ("margin",), 1, budget=1)
    run_study(study, out=tmp_path / "study")
    for name in ("model/params.npz", "events.csv", "run.json"):
        path, data = tmp_path / "run" / name, (tmp_path / "run" / name).read_bytes()
        path.unlink()
        (outside / "there").write_bytes(data)
        path.symlink_to(outside / "there")
        if name != "model/params.npz":
            refused(lambda: read_bundle(tmp_path / "run"), outside)
            refused(lambda: labelled_items(tmp_path / "run"), outside)
        else:
            refused(lambda: load_model(tmp_path / "run"), outside, r"params\.npz is not what was written")
        path.unlink()
        path.write_bytes(data)
    spec_json = tmp_path / "run" / "model" / "spec.json"
    document = json.loads(spec_json.read_text())
    document["files"]["../../outside/rows.csv"] = "0" * 64
    spec_json.write_text(json_text(document))
    refused(lambda: load_model(tmp_path / "run"), outside)
    (head,) = (tmp_path / "study").glob("study.json")
    (outside / "study.json").write_bytes(head.read_bytes())
    head.unlink()
    head.symlink_to(outside / "study.json")
    refused(lambda: read_study(tmp_path / "study"), outside, "is a link")
    partial = tmp_path / "half" / ".partial"
    partial.mkdir(parents=True)
    (partial / "rounds.jsonl").symlink_to(outside / "rows.csv")
    refused(lambda: BundleFolder.rounds_kept(tmp_path / "half"), outside, "is a link")


def linked(name: str, target: str) -> bytes:
    """A zip with an entry that says it is a link."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o120777 << 16
        archive.writestr(info, target)
    return packed.getvalue()


def test_labels_and_pictures_are_looked_for_beside_their_table_alone(tmp_path: Path, outside: Path) -> None:
    iris = load_pool("iris")
    refused(
        lambda: import_labels(linked("tasks.json", str(outside / "rows.csv")), iris, "label-studio"), outside
    )
    refused(
        lambda: import_labels(linked("a.parquet", str(outside / "rows.csv")), iris, "huggingface"), outside
    )
    coco = {
        "images": [{"id": 0, "file_name": str(outside / "x.png")}],
        "categories": [{"id": 0, "name": "a"}],
        "annotations": [{"id": 0, "image_id": 0, "category_id": 0}],
    }
    refused(lambda: import_labels(json.dumps(coco).encode(), iris, "coco"), outside)
    here = tmp_path / "here"
    here.mkdir()
    (here / "link.png").symlink_to(outside / "x.png")
    (here / "folder").symlink_to(outside)
    names = ("../outside/x.png", str(outside / "x.png"), "link.png", "folder/x.png", "%2e%2e/outside/x.png")
    table = here / "t.csv"
    table.write_text("file,label\n" + "".join(f"{name},{'xy'[i % 2]}\n" for i, name in enumerate(names)))
    uses = {"file": "picture", "label": "class"}
    refused(lambda: load_pool(str(table), columns=uses), outside, "and they are not here")
    data = here / "hub"
    data.mkdir()
    (data / "metadata.csv").write_text("file_name,label\n" + "".join(f"{name},a\n" for name in names))
    for name in ("link.png", "folder"):
        (here / name).rename(data / name)
    refused(lambda: load_pool(str(data)), outside, "are not there")
    (data / "metadata.csv").unlink()
    refused(lambda: load_pool(str(data)), outside, "no image")
    refused(
        lambda: load_pool(linked("a.png", str(outside / "x.png")), file_name="p.zip"), outside, "no images"
    )
    refused(lambda: load_pool(f"pmlb:../../{outside.name}"), outside)


def test_a_saved_feature_map_opens_no_network_that_it_names(outside: Path) -> None:
    from workbench.pools.features.vectors import EncoderFeatureMap, VectorFeatureMap

    vectors = VectorFeatureMap("x", np.zeros(3, np.float32))
    document = EncoderFeatureMap(str(outside / "net.onnx"), "image", "", vectors).to_json()
    refused(
        lambda: feature_map_from_json(document).transform([np.zeros((8, 8))]), outside, "may name no other"
    )


# --- the one function -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "a/b.csv", "été/日本.png", "a b", "a..b/c", "~", "-"])
def test_a_members_name(name: str) -> None:
    assert member_name(name, "It") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "../a",
        "a/../b",
        "a//b",
        "./a",
        "a/",
        "a\0b",
        "a\ud800",
        "x" * 2000,
        None,
        3,
        ["a"],
        "/dev/zero",
    ],
)
def test_no_members_name(name: Any) -> None:
    with pytest.raises(InputError, match=r"as a file|outside of it"):
        member_name(name, "It")


def test_a_members_size_is_known_before_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", b"x" * 1000)
    for members in (FolderMembers(tmp_path), ZipMembers(zipfile.ZipFile(packed), "z")):
        assert dict(members.sizes) == {"large": 1000} and members.read("large") == b"x" * 1000
        with pytest.raises(InputError, match=r"has 1,000 bytes; the limit is 999"):
            members.read("large", 999)
        with pytest.raises(InputError, match="has no file 'small'"):
            members.read("small")
