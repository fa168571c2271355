"""The experiments and benchmarks can be imported, and every group of benchmarks is known."""

import importlib

import pytest

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
