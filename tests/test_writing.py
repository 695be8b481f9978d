"""Files are whole or not there."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.writing import whole_file, write_whole


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, "one: ä")
    with whole_file(path) as file:
        file.write(b"two")
        file.flush()
        assert path.read_text(encoding="utf-8") == "one: ä"
    assert path.read_bytes() == b"two"
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"old")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_that_write_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first " * 3)
        second.write(b"second")
        first.write(b"first")
    assert path.read_bytes() == b"first first first first"


def test_a_private_file_is_its_owner_s_and_a_long_name_has_a_neighbour(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_whole(path, b"1", private=True, synced=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_whole(tmp_path / "open", b"1")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) & 0o600 == 0o600


def test_what_a_killed_writer_left_goes_with_the_next_file_and_what_is_being_written_stays(
    tmp_path: Path,
) -> None:
    code = "import os, sys; from pathlib import Path; from workbench.writing import whole_file\n"
    code += "with whole_file(Path(sys.argv[1])) as file: file.write(b'1'); file.flush(); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.csv")], check=False)
    assert [path.suffix for path in tmp_path.iterdir()] == [".new"]
    with whole_file(tmp_path / "b.csv") as file:
        [beside] = tmp_path.iterdir()
        assert beside.name.startswith(".b.csv")
        file.write(b"2")
        write_whole(tmp_path / "c.csv", b"3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "c.csv"]
