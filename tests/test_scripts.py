"""The experiments and benchmarks can be imported, and every group of benchmarks is known."""

import importlib

import pytest

from benchmarks import harness
from docs.public import ROOT

NUMBA = {"benchmarks.loops", "benchmarks.matrix_loops"}  # compiled by numba, which may be missing
NAMES = sorted(
    f"{folder}.{path.stem}"
    for folder in ("benchmarks", "experiments")
    for path in (ROOT / folder).glob("[a-z]*.py")
)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_can_be_imported(name):
    if name in NUMBA:
        pytest.importorskip("numba")
    importlib.import_module(name)


def test_every_group_is_on_the_page_of_the_benchmarks():
    groups = importlib.import_module("benchmarks.__main__").GROUPS
    page = (ROOT / "docs/pages/benchmarks.md").read_text()
    assert [name for name in groups if f"`{name}`" not in page] == []


def test_the_summary_of_benchmarks_counts_by_group_and_names_what_was_missed():
    group = harness.Group("Dense rows")
    group.note("d=10", "numba", 0.9, least=1.0)
    group.note("d=50", "numba", 1.1, least=1.0)
    group.note("d=200", "numba", None, least=1.0, note="numba failed")
    said = harness.summary([group])
    assert "| Dense rows | 1 | 1 | 1 | 0 |" in said
    assert said.endswith("- Dense rows: d=10, numba: 0.9 (>= 1)")
