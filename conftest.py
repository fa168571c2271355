"""Equivalence is tested in float64, with strict promotion and fixed keys.

Most programs run once here, so compiling them is what takes the time: the compiler is told not to
optimize, and compiled programs are kept in the user's cache folder for the other processes and for
the next run. A program is found there by its text, the flags and the version of the compiler, so a
change of olx cannot be served an old one. Delete the folder to test from cold.

This file lies above `tests` and `olx`, so that examples in docstrings are tested in the same way.
"""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)


def known(*flags: str) -> bool:
    """Whether the installed compiler knows these flags; it aborts at one it does not."""
    words = [sys.executable, "-c", "import jax; jax.devices()"]
    changed = {**os.environ, "XLA_FLAGS": " ".join(flags)}
    return subprocess.run(words, env=changed, capture_output=True).returncode == 0


def trim(folder: Path, most: int) -> None:
    """Delete the files that were not read for longest, until the others are `most` bytes."""
    files = sorted((file.stat().st_atime, file) for file in folder.iterdir())
    for _, file in reversed(files):
        most -= file.stat().st_size
        if most < 0:
            file.unlink(missing_ok=True)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what it does not wait for
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests and their processes need it

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # the workers of pytest-xdist inherit it
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiled = caches / "olx-tests"
    compiled.mkdir(parents=True, exist_ok=True)
    trim(compiled, most=2 * 2**30)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(compiled)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # no program needs its source lines
if "XLA_FLAGS" not in os.environ:  # found out once: the workers of pytest-xdist inherit it
    taken = FLAGS if known(*FLAGS) else tuple(filter(known, FLAGS))
    os.environ["XLA_FLAGS"] = " ".join(taken)

import jax
import memory
import pytest
import quick

TESTS = Path(__file__).parent / "tests"
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

from olx import _cache
from olx.engine import tuning
from olx.engine.prepared import PREPARED


@pytest.fixture
def key():
    return jax.random.key(0)


@pytest.fixture
def retune(monkeypatch):
    """`retune(BLOCK_ROUNDS=4)` sets measured constants of the engine for one test.

    Programs that may hold an old number, or that hold a new one at the end, are forgotten.
    """
    traced = []

    def change(**constants):
        for name, value in constants.items():
            monkeypatch.setattr(tuning, name, value)
        PREPARED.clear()
        if tuning.TRACED & constants.keys():
            traced.append(True)
            _cache.clear()

    yield change
    PREPARED.clear()
    if traced:
        _cache.clear()


def pytest_configure(config):
    config.pluginmanager.register(memory)  # so that it sees the examples in docstrings, too


def pytest_ignore_collect(collection_path, config):
    """With `-m quick`, a file without quick tests is not imported."""
    if config.option.markexpr == "quick" and collection_path.is_file():
        quick_file = collection_path.is_relative_to(TESTS) and quick.lines_of(
            _inside(collection_path)
        )
        return None if quick_file else True


def pytest_collection():
    gc.disable()  # what is collected stays until the end


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(TESTS):
            inside = item.nodeid.replace(item.nodeid.partition("::")[0], _inside(item.path), 1)
            if quick.is_quick(inside):
                item.add_marker("quick")


def _inside(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()
