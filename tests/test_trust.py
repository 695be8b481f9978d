"""A file never chooses code: only names that are registered or installed, unless a person vouches."""

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from workbench import cli, registry
from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.exchange.bundles import read_bundle
from workbench.exchange.manifests import json_text, sealed
from workbench.exchange.models import load_model, save_model
from workbench.policies.registry import find
from workbench.pools import load_pool
from workbench.registry import CodeName
from workbench.sessions import RunSpec, Session
from workbench.sessions.stopping import make_rule
from workbench.store import Store
from workbench.studies import load_study, run, run_study

ROOT = Path(__file__).resolve().parents[1]
SPEC = RunSpec("iris", classifier=FAKE, policy="margin", budget=3)
EVIL = """
from pathlib import Path
Path({marker!r}).write_text("ran")
def first(belief, rng):
    return belief.features[:, 0]
class C:
    def __init__(self): Path({marker!r}).write_text("made")
    def fit(self, X, y): return self
    def predict_proba(self, X): return X
    def get_state(self): return {{}}
    def set_state(self, state): return self
"""


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place where code leaves its mark when a file made it run; `evilmod` lies in the present folder."""
    ran = tmp_path / "ran"
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "evilmod.py").write_text(EVIL.format(marker=str(ran)))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    yield ran
    sys.modules.pop("evilmod", None)


@pytest.fixture
def bundle(tmp_path: Path, marker: Path) -> Path:
    run(SPEC, out=tmp_path / "bundle")
    return tmp_path / "bundle"


def edit(path: Path, **changes: Any) -> None:
    """Change a document, and make its checksums fit again, as a stranger would."""
    document = json.loads(path.read_text()) | changes
    document.pop("sha256")
    path.write_text(json_text(sealed(document, path.parent, list(document.pop("files")))))


def commands(marker: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("subprocess:Popen", {"args": ["touch", str(marker)]}),
        ("os:system", {"command": f"touch {marker}"}),
        ("evilmod:C", {}),
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_model_folder_runs_no_code(number: int, bundle: Path, marker: Path) -> None:
    name, options = commands(marker)[number]
    edit(bundle / "model" / "spec.json", classifier=name, options=options)
    with pytest.raises(InputError) as refused:
        model = load_model(bundle)
        model.predict(np.zeros((1, 4)))
    assert not marker.exists() and "evilmod" not in sys.modules
    assert "names code of its own" in str(refused.value) and "--trust-code" in str(refused.value)


@pytest.mark.parametrize("command", ["predict", "score"])
def test_the_commands_that_read_a_model_refuse_it(
    command: str, bundle: Path, marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(
        bundle / "model" / "spec.json",
        classifier="subprocess:Popen",
        options={"args": ["touch", str(marker)]},
    )
    Path("rows.csv").write_text("a,b,c,d\n1,2,3,4\n")
    given = ["predict", "rows.csv"] if command == "predict" else ["score", "--pool", "iris"]
    with pytest.raises(SystemExit) as ended:
        cli.main([*given, "--model", str(bundle)])
    err = capsys.readouterr().err
    assert ended.value.code == 2 and "'subprocess:Popen'" in err and err.count("\n") == 1
    assert not marker.exists()


def test_code_that_a_person_vouches_for_is_used(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_trusted", set())
    with pytest.raises(InputError, match="--trust-code"):
        load_model(bundle)
    assert load_model(bundle, trust_code=True).name == FAKE
    registry.trust(FAKE)
    assert load_model(bundle).name == FAKE
    monkeypatch.setattr(registry, "_trusted", set())
    with pytest.raises(SystemExit) as ended:
        cli.main(["score", "--pool", "iris", "--model", str(bundle), "--policy", "margin", "--trust-code"])
    assert not ended.value.code and capsys.readouterr().out.startswith("rank,")


def test_the_spec_of_a_bundle_is_read_and_not_run(bundle: Path, marker: Path) -> None:
    document = json.loads((bundle / "run.json").read_text())
    for field in ("classifier", "policy", "selector"):
        evil = {"classifier": "evilmod:C", "policy": "evilmod:first", "selector": "evilmod:first"}[field]
        edit(bundle / "run.json", spec=document["spec"] | {field: evil, "batch": 2})
        found = read_bundle(bundle).spec
        assert getattr(found, field) == evil
        with pytest.raises(InputError, match="names code of its own"):
            run(found)
        with pytest.raises(InputError, match="names code of its own"):  # a copy is no better
            run(replace(found, seed=1))
    assert not marker.exists()


@pytest.mark.parametrize(
    "line", ['classifier = "evilmod:C"', 'policy = "evilmod:first"', 'selector = "evilmod:first"']
)
def test_a_study_file_runs_no_code(line: str, marker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.toml").write_text(f'pool = "iris"\nseeds = 1\nbudget = 2\nbatch = 2\n{line}\n')
    with pytest.raises(InputError, match="names code of its own"):
        run_study(load_study("study.toml"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", "--study", "study.toml", "--quiet"])
    assert ended.value.code == 2 and "The study study.toml names code" in capsys.readouterr().err
    assert not marker.exists()


def test_a_project_of_the_database_runs_no_code(tmp_path: Path, marker: Path) -> None:
    store = Store.open(tmp_path / "w.sqlite")
    made = Session.create("iris", classifier=FAKE, policy="margin", store=store, annotator="a")
    for change in ({"classifier": "evilmod:C"}, {"policy": "evilmod:first"}):
        store.update_project(made.id, settings=made.project.settings | change)
        opened = Session.open(made.id, store=store, annotator="a")  # its labels are never hostage
        for item in opened.pool.trainable[::20].tolist():
            opened.items.label(item, opened.pool.classes[opened.pool.truth[item]])
        with pytest.raises(InputError, match=r"Project 'iris'.* names code of its own"):
            opened.refit()
    assert not marker.exists()
    store.close()


def test_what_was_typed_is_looked_at_before_it_is_called(
    marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"'subprocess:Popen' is no classifier: it has no fit\."):
        make_classifier(CodeName("subprocess:Popen"), args=["touch", str(marker)])
    for name in ("subprocess:Popen", "os:system", "json:JSONDecoder"):
        with pytest.raises(InputError, match=r"is not a function of \(belief, rng\)"):
            find(CodeName(name))
    for option, name in (("--classifier", "subprocess:Popen"), ("--policy", "os:system")):
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", "--pool", "iris", option, name])
        assert ended.value.code == 2 and name in capsys.readouterr().err
    assert not marker.exists()


def test_typed_code_of_the_present_folder_runs(marker: Path) -> None:
    assert make_classifier(CodeName("evilmod:C")) is not None
    assert marker.read_text() == "made"


def test_a_text_is_no_name_of_code_until_somebody_types_it_as_one(marker: Path) -> None:
    named = CodeName("evilmod:C")
    for text in (
        "evilmod:C",
        str(named),
        f"{named}",
        np.asarray(named).item(),
        json.loads(json.dumps(named)),
    ):
        with pytest.raises(InputError, match=r'CodeName\("evilmod:C"\)'):
            make_classifier(text)
        for use in (find, make_rule):
            with pytest.raises(InputError, match="names code of its own"):
                use(text)
        with pytest.raises(InputError, match="names code of its own"):
            Session.create(load_pool("iris"), classifier=text, policy="margin")
    assert not marker.exists() and "evilmod" not in sys.modules
    for same in (
        pickle.loads(pickle.dumps(named)),
        copy.deepcopy(named),
        replace(SPEC, classifier=named).classifier,
    ):
        assert make_classifier(same) is not None


NETWORKS = {"softmax-net": {}, "large-margin-net": {"joint_epochs": 0}, "wasserstein": {}}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_a_file_names_is_not_imported(name: str, marker: Path) -> None:
    given = registry.from_file({"network": "evilmod:first"}, "The study of a stranger")
    X, y = np.eye(8)[:, :4], np.arange(8) % 2
    for network in (given["network"], str(given["network"]), "evilmod:first"):
        with pytest.raises(InputError, match="names code of its own"):
            make_classifier(name, network=network, **NETWORKS[name]).fit(X, y)
    Path("study.toml").write_text(
        f'pool = "digits"\nseeds = 1\nbudget = 1\nclassifier = "{name}"\npolicy = "margin"\n'
        '[options]\nnetwork = "evilmod:first"\n'
    )
    with pytest.raises(InputError, match="names code of its own"):
        run_study(load_study("study.toml"))
    assert not marker.exists() and "evilmod" not in sys.modules


@pytest.mark.parametrize(
    "name",  # every family with a network reads it by the same function
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "softmax-net")) for name in NETWORKS],
)
def test_the_arrays_of_a_saved_model_name_no_code(name: str, tmp_path: Path, marker: Path) -> None:
    pool = load_pool("iris")
    options = {"min_steps": 2, "random_state": 0} | NETWORKS[name]
    made = make_classifier(name, **options).fit(pool.features[::5], pool.truth[::5])
    saved = {
        "classifier": name,
        "options": options,
        "classes": pool.classes,
        "n_labelled": 30,
        "pool": "iris",
    }
    for network in ("mlp", "evilmod:first"):
        state = made.get_state() | {"network_": np.asarray(network)}
        save_model(tmp_path / network[:3], state, feature_map=pool.feature_map, **saved)
    assert load_model(tmp_path / "mlp").name == name
    with pytest.raises(InputError, match="name code of their own, 'evilmod:first'"):
        load_model(tmp_path / "evi")
    assert not marker.exists() and "evilmod" not in sys.modules


def test_the_present_folder_is_no_place_for_modules_unless_code_was_named(
    marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(Path.cwd())
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in (here, "")])
    with pytest.raises(SystemExit):
        cli.main(
            [
                "run",
                "--pool",
                "iris",
                "--budget",
                "0",
                "--classifier",
                "logistic-regression",
                "--policy",
                "margin",
                "-q",
            ]
        )
    assert here not in sys.path
    with pytest.raises(SystemExit):
        cli.main(["classifiers", "evilmod:C"])
    assert here in sys.path


@pytest.mark.slow  # alone: what is installed may be named, in a process that has it
def test_an_installed_plug_in_may_be_named_by_a_file(tmp_path: Path, marker: Path) -> None:
    information = tmp_path / "here" / "evil-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[workbench.policies]\nfirst-feature = evilmod:first\n")
    document = replace(SPEC, policy="first-feature").to_json()
    code = (
        "import sys, json\nfrom workbench import registry\nfrom workbench.sessions import RunSpec\n"
        f"from workbench.studies import run\nregistry.trust({FAKE!r})\n"
        "print(len(run(RunSpec.from_json(json.loads(sys.argv[1]))).rounds))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(document)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path / "here"), str(ROOT)])),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "4\n"


def test_a_name_out_of_a_file_cannot_vouch_for_itself(marker: Path) -> None:
    spec = RunSpec.from_json(replace(SPEC, classifier=CodeName("evilmod:C")).to_json())
    with pytest.raises(InputError, match="names code of its own"):
        registry.trust(spec.classifier)
    with pytest.raises(InputError, match="names code of its own"):
        Session.create(load_pool("iris"), classifier=spec.classifier, policy="margin")
    assert not marker.exists()


def test_a_model_is_saved_with_what_it_is_and_opens_again(tmp_path: Path) -> None:
    pool = load_pool("iris")
    made = make_classifier("logistic-regression").fit(pool.features, pool.truth)
    save_model(
        tmp_path,
        made.get_state(),
        classifier="logistic-regression",
        options={},
        classes=pool.classes,
        feature_map=pool.feature_map,
        n_labelled=150,
        pool="iris",
    )
    assert load_model(tmp_path).name == "logistic-regression"
