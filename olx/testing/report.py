"""Failures of a check: the broken property, and where it is broken."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from olx.core import Run


def fail(what: str) -> NoReturn:
    raise AssertionError(f"{what}.")


def close(what: str, seen: Any, wanted: Any, rtol: float = 0.0) -> None:
    """Fail with `what` unless two trees agree: in every bit, or to `rtol` of the largest entry."""
    if jax.tree.structure(seen) != jax.tree.structure(wanted):
        fail(f"{what}: {jax.tree.structure(seen)} against {jax.tree.structure(wanted)}")
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(seen), jax.tree.leaves(wanted), strict=True
    ):
        a, b = _array(a), _array(b)
        if a.shape != b.shape:
            fail(f"{what}{_where(path)}: shape {a.shape} against {b.shape}")
        size = np.max(np.abs(b[np.isfinite(b)]), initial=1.0) if b.dtype.kind == "f" else 1.0
        same = (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b
        if rtol and a.dtype.kind == "f":
            good = same | (np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b)) <= rtol * size)
        else:
            good = same
        if not np.all(good):
            at = tuple(int(i) for i in np.argwhere(~good)[0])
            fail(f"{what}{_where(path)} at {at}: {a[at]!r} against {b[at]!r}")


def tolerance(done: Run) -> float:
    """The tolerance between two ways to compute a run."""
    return 1e-12 if done.losses.dtype == jnp.float64 else 1e-5


def numbers(tree: Any) -> Any:
    """The tree with NumPy arrays as leaves; random keys are converted to their data."""
    return jax.tree.map(_array, tree)


def _array(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _where(path: Any) -> str:
    return f" in {jax.tree_util.keystr(path)}" if path else ""
