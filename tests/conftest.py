"""Equivalence is tested in float64, with strict promotion and fixed keys.

Most programs run once here, so compiling them is what takes the time: the compiler is told not to
optimize, and what one process of the tests has compiled the others do not compile again.
"""

import os
import subprocess
import sys
import tempfile
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


if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="olx-tests-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _compiled.name
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

HERE = Path(__file__).parent
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def key():
    return jax.random.key(0)


def pytest_configure(config):
    config.pluginmanager.register(memory)  # so that it sees the examples in docstrings, too


def pytest_ignore_collect(collection_path, config):
    """With `-m quick`, a file without quick tests is not imported."""
    if config.option.markexpr == "quick" and collection_path.is_file():
        return None if quick.lines_of(_inside(collection_path)) else True


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            inside = item.nodeid.replace(item.nodeid.partition("::")[0], _inside(item.path), 1)
            if quick.is_quick(inside):
                item.add_marker("quick")


def _inside(path: Path) -> str:
    return path.relative_to(HERE).as_posix()
