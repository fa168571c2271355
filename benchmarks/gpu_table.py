"""Play every learner of the tests by the GPU kernel, interpreted, and compare with `rollout`.

    python -m benchmarks.gpu_table                # in float32, ten minutes and more
    python -m benchmarks.gpu_table --double       # in float64
    python -m benchmarks.gpu_table hedge exp3     # some rows of the table

For each row: whether the kernel takes it, which means that it was also lowered for CUDA; else the
reason. Then the largest difference of a loss and of a number of the last state, relative to the
largest loss and to the largest number of the state, and what a round needs of a device.
"""

import argparse
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks.gpu import work_of
from olx.engine.arguments import check_game
from olx.engine.game import game_of
from olx.engine.implementations import gpu_kernel
from olx.engine.implementations.gpu_resources import cut_of
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

TESTS = pathlib.Path(__file__).parents[1] / "tests"
LARGEST = {np.float32: 1e-5, np.float64: 1e-12}  # differences of losses that are rounding


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_table", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("rows", nargs="*", help="names of learners; all if none is given")
    parser.add_argument("--double", action="store_true", help="float64")
    asked = parser.parse_args(arguments)
    sys.path[:0] = [str(TESTS / "learners"), str(TESTS / "support")]
    jax.config.update("jax_enable_x64", True)  # the streams of the table are made in float64
    from table import TABLE  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", asked.double)
    dtype = np.float64 if asked.double else np.float32
    taken = right = 0
    names = asked.rows or list(TABLE)
    for name in names:
        words, good = _row(TABLE[name], dtype)
        taken, right = taken + (good is not None), right + bool(good)
        print(f"{name}: {words}", flush=True)
    print(f"{taken} of {len(names)} rows are taken, {right} with the losses of rollout.")


def _row(case: Any, dtype: Any) -> tuple[str, bool | None]:
    """What there is to say of a row, and whether its losses are right; None if it is refused."""
    learner, rounds, params = _cast((case.learner, case.rounds, case.params), dtype)
    given = case.loss, rounds, params
    numbers = numbers_of(learner, case.loss, check_game)
    game = game_of("run", numbers, rounds, params, Recorder())
    assert gpu_kernel.GPU_KERNEL.cannot is not None
    if reason := gpu_kernel.GPU_KERNEL.cannot(game):
        return f"refused: {reason}", None
    asked = gpu_kernel.asked_of(game)
    assert asked is not None
    needs = gpu_kernel.needs_of(asked)
    seen = olx.run(learner, *given, implementation="gpu_kernel")
    wanted = olx.rollout(learner, *given)
    paid = _difference([seen.losses], [wanted.losses])
    state = _difference(*map(jax.tree.leaves, (seen.state, wanted.state)))
    registers = cut_of(needs, 1).registers
    words = f"losses {paid:.0e}, state {state:.0e}; {needs.live} live numbers, "
    words += f"{registers} registers, {work_of(asked).instructions:,} instructions"
    return words if paid <= LARGEST[dtype] else f"OTHER LOSSES, {words}", paid <= LARGEST[dtype]


def _difference(seen: list, wanted: list) -> float:
    """The largest difference, relative to the largest number."""
    pairs = [
        (np.asarray(a), np.asarray(b))
        for a, b in zip(map(_data, seen), map(_data, wanted), strict=True)
    ]
    floats = [(a, b) for a, b in pairs if np.issubdtype(a.dtype, np.floating)]
    size = max((np.abs(b).max(initial=0) for _, b in floats), default=0) or 1
    others = any((a != b).any() for a, b in pairs if not np.issubdtype(a.dtype, np.floating))
    apart = max((np.abs(a - b).max(initial=0) / size for a, b in floats), default=0)
    return float("inf") if others else float(apart)


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)


def _cast(tree: Any, dtype: Any) -> Any:
    """Floats of this dtype; other arrays as NumPy has them, for the dtypes that JAX takes now."""

    def cast(leaf: Any) -> Any:
        if _is_key(leaf) or isinstance(leaf, int):
            return leaf
        leaf = np.asarray(leaf)
        return leaf.astype(dtype) if np.issubdtype(leaf.dtype, np.floating) else leaf

    return jax.tree.map(cast, tree)


if __name__ == "__main__":
    main()
