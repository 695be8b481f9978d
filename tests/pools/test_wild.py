"""Files as other programs write them: right cells, classes and uses, and no column lost without a word."""

import pytest

from benchmarks.trials.wild import Wild, files


@pytest.mark.parametrize("file", files(), ids=lambda file: file.name)
def test_a_file_as_other_programs_write_it_is_read_right(file: Wild) -> None:
    assert file.faults() == []
