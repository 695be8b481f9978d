import csv
import gzip
import sys
import types

import numpy as np
import pandas as pd
import pytest

from tests.pools.helpers import needs
from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, present_sets
from workbench.pools.datasets.catalogue import bundled_file, data_folders, find_entry
from workbench.pools.datasets.catalogue import catalogue as known_sets

EXAMPLES = {"leaves.csv": "tree", "parcels.csv": None, "tickets.csv": None, "tickets-2025.csv": "class"}


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """A data folder with nothing in it, and no other."""
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    monkeypatch.setattr("workbench.pools.datasets.catalogue.data_folders", lambda: [tmp_path])
    return tmp_path


def test_the_catalogue_lists_the_papers_sets():
    entries = known_sets()
    assert len({entry.full_name for entry in entries}) == len(entries)
    papers = [entry for entry in entries if entry.paper68]
    assert len(papers) == 67 and all(e.n_classes >= 3 and e.n_items >= 128 for e in papers)
    assert all(entry.how for entry in entries)
    with bundled_file("catalogue.csv").open(encoding="utf-8", newline="") as file:
        there = {(row["group"], row["name"]) for row in csv.DictReader(file) if int(row["bytes"] or 0)}
    assert all(len(entry.sha256) == 64 for entry in entries if (entry.group, entry.name) in there) and there
    assert find_entry("pmlb", "wine-quality-red").name == "wine_quality_red"


@pytest.mark.parametrize("file", EXAMPLES)
def test_examples_are_ready_to_use(file):
    target = EXAMPLES[file]
    report = inspect_table(bundled_file(file), target=target)
    assert report.ready, report.problems
    pool = load_pool(bundled_file(file), target=target)
    assert pool.has_truth == (target is not None) and len(pool) >= 150


def test_a_missing_set_says_how_to_get_it(empty_folder):
    for name, words in {
        "pmlb:letter": ["pip install pmlb", "pmlb/letter/letter.tsv.gz", "WORKBENCH_DATA"],
        "raetsch:banana": ["theogf/BayesianSVM", "raetsch/banana.npz"],
        "images:mnist": ["x_train", "images/mnist.npz"],
        "large:covtype": ["openml:covertype"],
    }.items():
        with pytest.raises(InputError) as caught:
            load_pool(name)
        for word in words:
            assert word in str(caught.value)


def test_sets_that_lie_here_are_found_in_one_look_at_the_folders(empty_folder, monkeypatch):
    looks = []
    monkeypatch.setattr(
        "workbench.pools.datasets.catalogue.data_folders",
        lambda: looks.append(1) or [empty_folder, empty_folder],
    )
    assert present_sets() == []
    entry = next(e for e in known_sets() if e.file)
    path = empty_folder / entry.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    assert present_sets() == [entry] == [e for e in known_sets() if e.path is not None]
    assert len(looks) == 2 + len(known_sets()), "once each, and once a set where each is asked"


def test_unknown_sets_say_what_there_is(empty_folder):
    with pytest.raises(InputError, match="Did you mean 'letter'"):
        load_pool("pmlb:lettre")
    with pytest.raises(InputError, match=r"no raetsch set called 'bananas'.*Did you mean 'banana'"):
        load_pool("raetsch:bananas")
    with pytest.raises(InputError, match="Name a data set after 'pmlb:'"):
        load_pool("pmlb:")
    with pytest.raises(InputError, match="no option 'ful'"):
        load_pool("raetsch:banana", ful=True)


def write_pmlb(folder, name):
    (folder / name).mkdir(parents=True)
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [0, 1, 0, 1], "target": [1, 2, 2, 1]})
    frame.to_csv(folder / name / f"{name}.tsv.gz", sep="\t", index=False)


@pytest.mark.parametrize("line", ["1\t2\t1\t5", "1\t2", "1"], ids=["longer", "shorter", "cut short"])
def test_a_file_of_a_known_set_has_as_many_cells_in_each_line_as_names(empty_folder, line):
    write_pmlb(empty_folder / "pmlb", "letter")
    table = empty_folder / "pmlb" / "letter" / "letter.tsv.gz"
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    every = [lines[0], *(f"{text}\t5" for text in lines[1:])]
    for damaged in ([*lines, line], *([every] if line.endswith("5") else [])):
        table.write_bytes(gzip.compress("\n".join(damaged).encode()))
        with pytest.raises(InputError, match=r"letter.tsv.gz .*Remove it, and get it again\."):
            load_pool("pmlb:letter")


def test_pmlb_goes_through_its_package_into_the_cache(empty_folder, monkeypatch):
    calls = []

    def fetch_data(name, local_cache_dir):
        if name == "offline":
            raise OSError("no network")
        if name != "letter":
            raise ValueError("unknown")
        calls.append(name)
        write_pmlb(type(empty_folder)(local_cache_dir), name)

    module = types.ModuleType("pmlb")
    module.fetch_data = fetch_data
    module.__spec__ = types.SimpleNamespace(name="pmlb")
    monkeypatch.setitem(sys.modules, "pmlb", module)
    pool = load_pool("pmlb:letter")
    assert pool.classes == ("1", "2") and pool.features.tolist()[0] == [1, 0]
    assert any("not the version" in note for note in pool.notes), "its bytes are not those of the catalogue"
    load_pool("pmlb:letter")
    assert calls == ["letter"], "the second time it comes from the folder"
    with pytest.raises(InputError, match=r"no network.*WORKBENCH_DATA"):
        load_pool("pmlb:offline")
    with pytest.raises(InputError, match="knows no set called 'nonsense'"):
        load_pool("pmlb:nonsense")


def test_openml_through_scikit_learn(empty_folder, monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "c": pd.Categorical(list("uvuv")), "class": list("pqqp")})
    asked = {}

    def fetch_openml(name, **options):
        asked.update(options, name=name)
        if name == "gone":
            raise OSError("name not known")
        target = [] if name == "several" else ["class"]
        return types.SimpleNamespace(frame=frame, target_names=target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    pool = load_pool("openml:thing@2", text="one-hot")
    assert asked["name"] == "thing" and asked["version"] == 2
    assert asked["data_home"] == str(empty_folder / "openml")
    assert pool.classes == ("p", "q") and pool.feature_map.columns == ("a", "c=u", "c=v")
    assert load_pool("openml:thing").uses["c"]["use"] == "category"
    with pytest.raises(InputError, match=r"Could not get openml:gone.*connection"):
        load_pool("openml:gone")
    with pytest.raises(InputError, match="target="):
        load_pool("openml:several")
    assert load_pool("openml:several", target="class", text="drop").classes == ("p", "q")
    with pytest.raises(InputError, match="version"):
        load_pool("openml:thing@x")


def test_openml_through_its_own_package(empty_folder, monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "class": list("pqqp")})
    dataset = types.SimpleNamespace(
        default_target_attribute="class", get_data=lambda dataset_format: (frame, None, None, None)
    )
    module = types.ModuleType("openml")
    module.__spec__ = types.SimpleNamespace(name="openml")
    module.config = types.SimpleNamespace(set_root_cache_directory=lambda folder: None)
    module.datasets = types.SimpleNamespace(get_dataset=lambda name, version, download_data: dataset)
    monkeypatch.setitem(sys.modules, "openml", module)
    assert load_pool("openml:thing").features.tolist() == [[1], [2], [3], [4]]


def test_libsvm_files(tmp_path, empty_folder):
    path = tmp_path / "a.svm"
    path.write_text("+1 1:0.5 3:2\n-1 2:1 # note\n+1 1:3\n")
    pool = load_pool(path)
    assert pool.classes == ("-1", "1") and pool.features.tolist() == [[0.5, 0, 2], [0, 1, 0], [3, 0, 0]]
    assert load_pool("libsvm:a.svm").fingerprint == pool.fingerprint, "also by name in the data folder"
    assert load_pool(path.read_bytes(), file_name="a.svm", n_features=5).n_features == 5
    for text, match in [("one two\n", "LIBSVM format"), ("1 1:1\n", "1 item")]:
        path.write_text(text)
        with pytest.raises(InputError, match=match):
            load_pool(path)
    path.write_text("1 999999999:1\n-1 1:1\n")
    with pytest.raises(InputError, match="cells; the limit"):
        load_pool(path)
    with pytest.raises(InputError, match="no file"):
        load_pool("libsvm:nowhere.svm")


def test_files_with_unknown_endings(tmp_path):
    for name, match in [("a.docx", "says nothing known"), ("a.ods", "Save it as .xlsx, or the sheet as CSV")]:
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(InputError, match=match):
            load_pool(tmp_path / name)
        with pytest.raises(InputError, match=match):
            load_pool(b"x", file_name=name)


def test_the_data_folder_given_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert data_folders()[0] == tmp_path
    write_pmlb(tmp_path / "pmlb", "letter")
    assert len(load_pool("pmlb:letter")) == 4


def test_schizo_has_two_targets_and_the_first_is_meant():
    needs("pmlb/schizo/schizo.tsv.gz")
    pool = load_pool("pmlb:schizo")
    assert len(pool.classes) == 3 and pool.n_features == 14 and "target.1" in pool.feature_map.columns


@pytest.mark.slow  # alone: each file at hand against what the menu says of it
def test_every_set_at_hand_is_what_the_catalogue_says():
    needs("pmlb/letter/letter.tsv.gz")
    for entry in known_sets():
        if entry.path is None or entry.group == "images":
            continue
        pool = load_pool(entry.full_name)
        assert (len(pool), pool.n_features, len(pool.classes)) == (
            entry.n_items,
            entry.n_features,
            entry.n_classes,
        )
        assert not any("not the version" in note for note in pool.notes)
        assert np.isfinite(pool.features).all()
