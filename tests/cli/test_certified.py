"""`workbench verify` and `audit`."""

from pathlib import Path

import pytest

from tests.certificates.test_certificate import made
from tests.cli.calls import call, refused, table
from workbench.csv_writing import csv_text


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    certificate, rows = made()
    document, labels = tmp_path / "certificate.json", tmp_path / "labels.csv"
    document.write_text(certificate.to_json(), encoding="utf-8")
    table = csv_text(["id", "label", "source"], [[row.item, row.label, row.source] for row in rows])
    labels.write_text(table, encoding="utf-8")
    return document, labels


def test_verify_says_yes_and_breaks_with_an_edit(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    document, labels = files
    assert call("verify", document, labels) == 0
    assert capsys.readouterr().out.startswith("Yes: 40 machine labels; ")
    text = labels.read_text(encoding="utf-8")
    assert "'=dog" in text  # a cell that a spreadsheet would run is written with a quote, and read without
    labels.write_text(text.replace(",cat,machine", ",bird,machine", 1), encoding="utf-8")
    assert call("verify", document, labels) == 1
    out = capsys.readouterr().out
    assert out.startswith("No: ")
    assert "Labels were changed" in out


def test_verify_refuses_files_that_are_none(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document, labels = files
    assert "certificate" in refused(capsys, "verify", labels, labels)
    assert "nowhere" in refused(capsys, "verify", tmp_path / "nowhere.json", labels)
    assert "no column 'class'" in refused(capsys, "verify", document, labels, "--column", "class")
    labels.write_text("id,label\n,cat\n", encoding="utf-8")
    assert "has no 'id'" in refused(capsys, "verify", document, labels)


def column(folder: Path, n: int = 400, wrong: int = 0) -> Path:
    """A table of which a column is to be audited, the first rows of it wrong, and the truth beside it."""
    rows = [
        [f"{i:03d}", f"text {i}", "spam" if i % 2 else "-ham", "spam" if (i % 2) != (i < wrong) else "-ham"]
        for i in range(n)
    ]
    path = folder / "labels.csv"
    lines = ("id,text,truth,llm_label", *map(",".join, rows))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_audit_certifies_a_good_column_and_verify_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = column(tmp_path)
    out = tmp_path / "out"
    given = ("audit", file, "--column", "llm_label", "--truth", "truth", "--out", out)
    assert call(*given) == 0
    said = capsys.readouterr().out
    assert said.startswith("400 labels; with 95 % confidence a checker calls at most 5 % of them wrong; ")
    assert call("verify", out / "labels.certificate.json", out / "labels.labels.csv") == 0
    # the column as it was will do as well
    assert call("verify", out / "labels.certificate.json", file, "--column", "llm_label") == 0
    capsys.readouterr()
    # another promise about the same labels is another attempt, with draws of its own
    assert call(*given, "--error", "0.1") == 0
    assert '"attempt": 2' in (out / "labels.certificate.json").read_text(encoding="utf-8")
    # together they keep the confidence of each, so a later one cannot promise more than is left
    capsys.readouterr()
    assert "keep no 99 %" in refused(capsys, *given, "--confidence", "0.99")


def test_audit_of_a_bad_column_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = column(tmp_path, wrong=80)
    assert call("audit", file, "--column", "llm_label", "--truth", "truth") == 1
    said = capsys.readouterr().out
    assert said.startswith("Not certified at 5 %: the estimate is ")
    assert "Mend the worst labels" in said
    assert not (tmp_path / "labels.certificate.json").exists()


def test_audit_writes_a_list_without_the_labels_and_reads_it_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, checks = column(tmp_path), tmp_path / "checks.csv"
    given = ("audit", file, "--column", "llm_label", "--error", "0.1", "--checks", checks, "--count", "30")
    for number in range(5):
        assert call(*given) == 0
        if (tmp_path / "labels.certificate.json").exists():
            break
        asked = table(checks.read_text(encoding="utf-8"))
        assert set(asked[0]) == {"id", "text", "truth", "answer"}
        assert not any(row["answer"] for row in asked)
        if number:
            assert len(asked) == 30
        rows = [[row["id"], row["text"], "", "spam" if int(row["id"]) % 2 else "-ham"] for row in asked]
        filled = csv_text(["id", "text", "truth", "answer"], rows)
        checks.write_text(filled, encoding="utf-8")
    assert (tmp_path / "labels.certificate.json").exists()
    assert "30 new answers" in capsys.readouterr().out
    # the same list again is nothing new; another answer to a check is refused
    assert call(*given) == 0
    assert "0 new answers" in capsys.readouterr().out
    checks.write_text(filled.replace(",spam\n", ",eggs\n"), encoding="utf-8")
    assert "not answered again" in refused(capsys, *given)


def test_audit_asks_in_a_terminal_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = column(tmp_path, n=12)
    seen: list[str] = []

    def answers(*said: str) -> None:
        left = iter(said)

        def read(prompt: str = "") -> str:
            seen.append(prompt)
            return next(left)

        monkeypatch.setattr("builtins.input", read)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers("1", "eggs", "n", "?", "q")
    given = ("audit", file, "--column", "llm_label", "--error", "0.3", "--confidence", "0.6")
    assert call(*given) == 1
    first = capsys.readouterr().out
    assert "1 -ham  2 spam" in first
    assert "2 random checks" in first
    assert "eggs is a new class; take it? y/n: " in seen
    answers("q")
    assert call(*given) == 1
    assert "2 random checks" in capsys.readouterr().out


def test_audit_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = column(tmp_path, n=20)
    assert "no column 'nothing'" in refused(capsys, "audit", file, "--column", "nothing")
    without = refused(capsys, "audit", file, "--column", "llm_label", "--read", "header=false")
    assert "no column 'llm_label'" in without and "x1" in without
    assert "between 0 and 1" in refused(capsys, "audit", file, "--column", "llm_label", "--error", "0")
    assert "between 0 and 1" in refused(capsys, "audit", file, "--column", "llm_label", "--error", "1")
    assert "between 0 and 1" in refused(capsys, "audit", file, "--column", "llm_label", "--error", "nan")
    assert "Nobody is here" in refused(capsys, "audit", file, "--column", "llm_label")
    kept = tmp_path / "labels.csv.audit.json"
    assert kept.exists()  # the order was fixed
    assert "is of column" in refused(capsys, "audit", file, "--column", "truth")
    kept.write_text('{"kind": "audit"}', encoding="utf-8")
    assert "is damaged" in refused(capsys, "audit", file, "--column", "llm_label")
    twice = tmp_path / "twice.csv"
    twice.write_text("id,a\n1,x\n1,y\n", encoding="utf-8")
    assert "two rows" in refused(capsys, "audit", twice, "--column", "a")
    empty = tmp_path / "empty.csv"
    empty.write_text("id,a\n1,\n2,\n", encoding="utf-8")
    assert "nothing to audit" in refused(capsys, "audit", empty, "--column", "a")


def test_audit_of_ten_labels_is_a_census(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = column(tmp_path, n=10)
    assert call("audit", file, "--column", "llm_label", "--truth", "truth") == 0
    assert "10 labels; " in capsys.readouterr().out


def test_audit_says_it_for_each_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = column(tmp_path), tmp_path / "out"
    given = ("audit", file, "--column", "llm_label", "--truth", "truth", "--out", out)
    assert call(*given, "--per-class") == 0
    said = capsys.readouterr().out
    assert "spam: " in said and "-ham: " in said and "200 labels" in said
    assert call("verify", out / "labels.certificate.json", out / "labels.labels.csv") == 0


def test_throwing_the_audit_away_draws_the_same_again(tmp_path: Path) -> None:
    from workbench.exchange.auditing import Audit

    file = column(tmp_path)
    first = Audit(file, "llm_label")
    order = first.drawn(50)
    for item in order[:3]:
        first.answer(item, "spam")
    first.kept.unlink()
    again = Audit(file, "llm_label")
    assert again.drawn(50) == order and not again.checks
    # one label that is mended makes another order
    file.write_text(file.read_text(encoding="utf-8").replace("007,text 7,spam,spam", "007,text 7,spam,ham"))
    assert Audit(file, "llm_label").drawn(50) != order
