"""The list of quick tests names tests that exist."""

from pathlib import Path

import pytest
import quick
from table import algorithm, one_of_each

HERE = Path(__file__).parent


@pytest.mark.parametrize("line", quick.FILES.split())
def test_a_line_names_a_test_or_a_file(line):
    file, _, function = line.partition("::")
    assert f"\ndef {function}" in f"\n{(HERE / file).read_text()}"


def test_rows_of_the_list_are_checked_by_the_kit():
    assert set(quick.LEARNERS) <= set(one_of_each(algorithm))


def test_a_test_is_quick_by_its_file_its_function_or_its_row():
    assert quick.is_quick("test_core.py::test_anything")
    assert quick.is_quick("engine/test_run.py::test_it_refuses[a row]")
    assert quick.is_quick(f"{quick.LINES[-1]}")
    assert not quick.is_quick("engine/test_run.py::test_wide_rows_give_the_same_numbers")
    assert not quick.is_quick("learners/test_long_runs.py::test_anything")
