"""`import olx` stays quick: what is heavy is loaded when it is first used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import olx

HEAVY = [
    "scipy",
    "sklearn",
    "river",
    "flax",
    "equinox",
    "pyarrow",
    "matplotlib",
    "pandas",
    "polars",
    "narwhals",
    "msgspec",
    "jinja2",
    "pooch",
    "torch",
]


@pytest.fixture(scope="module")
def loaded():
    """The modules that `import olx` loads, in a process of its own."""
    words = [sys.executable, "-c", "import olx, sys; print(*sys.modules)"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_no_heavy_package_is_loaded(loaded):
    assert {"jax", "olx", "olx.engine.run"} <= loaded
    assert not loaded & set(HEAVY)


def test_folders_of_algorithms_are_loaded_when_they_are_used(loaded):
    later = {f"olx.{room}" for room in (*olx._LAZY_PACKAGES, "cli")}
    assert not loaded & later


def test_names_that_are_loaded_later_are_those_that_type_checkers_see():
    tree = ast.parse(Path(str(olx.__file__)).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for node in block.body for alias in node.names}
    assert seen == {*olx._LAZY_PACKAGES, *olx._OF_HINDSIGHT}
    assert seen <= set(dir(olx))
    for name in seen:
        assert getattr(olx, name).__name__.rpartition(".")[2] == name


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="module 'olx' has no attribute 'nothing'"):
        _ = olx.nothing


def test_a_name_of_a_package_says_where_it_lives():
    with pytest.raises(AttributeError, match=r"olx has no `squint`; it is `olx.experts.squint`\."):
        _ = olx.squint
    with pytest.raises(AttributeError, match=r"it is `olx.first_order.adagrad` or `"):
        _ = olx.adagrad
