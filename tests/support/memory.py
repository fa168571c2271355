"""Hooks of pytest that keep a process of the tests below 4 GB, and say how much it needed.

Most of the memory holds compiled programs, which JAX keeps for ever. A process that has grown
forgets them: the persistent cache on disk still has what is needed again.
"""

import ctypes
import gc
import resource
from pathlib import Path

import jax
import pytest

ENOUGH = 3.0  # GB; a test may add a part of one
STEP = 0.5  # GB to grow before it is worth forgetting again
_SIZE = Path("/proc/self/statm")
_forget_above = ENOUGH
_peaks = {}


def pytest_runtest_logfinish():
    global _forget_above
    if _used() > _forget_above:
        jax.clear_caches()
        gc.collect()
        _give_back()
        _forget_above = max(ENOUGH, _used() + STEP)


def _used() -> float:
    """The memory of this process now, in GB; 0 where the system does not say."""
    if not _SIZE.exists():
        return 0.0
    return int(_SIZE.read_text().split()[1]) * resource.getpagesize() / 2**30


def _give_back() -> None:
    """Return freed memory to the system, with the C library that can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def peak() -> str:
    """The most memory that this process had, and the most that one of its children had."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own, child = (resource.getrusage(kind).ru_maxrss / 2**20 for kind in kinds)
    return f"{own:.2f} GB (a child {child:.2f} GB)"


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist
        session.config.workeroutput["peak"] = peak()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    _peaks[node.gateway.id] = getattr(node, "workeroutput", {}).get("peak", "unknown")


def pytest_terminal_summary(terminalreporter):
    said = "; ".join(f"{name} {most}" for name, most in sorted(_peaks.items())) or peak()
    terminalreporter.write_line(f"Most memory of a process: {said}")
