"""`workbench verify` and `audit`."""

from pathlib import Path

import pytest

from tests.certificates.test_certificate import made
from tests.cli.calls import call, refused
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
