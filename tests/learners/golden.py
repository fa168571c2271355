"""Digests of games, to see whether a change of form has changed a bit.

    JAX_ENABLE_X64=1 python tests/learners/golden.py write FILE      before a change
    JAX_ENABLE_X64=1 python tests/learners/golden.py compare FILE    after it, on the same machine

Bits depend on the processor and on the version of the compiler, so the file is not kept in the
repository. The games: every row of the table of learners by `run`; rows of all facts by `rollout`,
`sweep`, on sparse rows, with certificates and resumed from a checkpoint; the tables of one result
of the lab.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import scipy.sparse
from table import KINDS, TABLE
from tqdm import tqdm

import olx
from olx import losses, streams
from olx.cli.main import main

ROOT = Path(__file__).parents[2]
EVERY_WAY = [*KINDS, "newton, oja", "PA", "arow", "boost, BBM", "multiclass perceptron"]
WIDTH, COUNT = 23, 70
DRAW = np.random.default_rng(0)
SPARSE = DRAW.normal(size=(60, WIDTH)) * (DRAW.random((60, WIDTH)) < 0.3)
ON_SPARSE = {
    "adds the gradient": olx.linear(olx.ogd(0.1)),
    "adds the context": olx.classification.passive_aggressive_1(0.5),
    "separable": olx.linear(olx.first_order.adagrad(0.3)),
    "sums over all coordinates": olx.classification.pnorm_perceptron(3.0),
    "intercept": olx.affine(olx.ogd(0.1)),
    "refresh": olx.second_order.sketched_newton(
        olx.second_order.oja(2, key=jax.random.key(0)), 1.0, 10.0, curvature=0.1
    ),
}


def digest(tree) -> str:
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if key else leaf)
        found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def digest_of_run(run) -> str:
    return digest((run.losses, run.state))


def several(learner, count):
    scale = lambda leaf: jnp.stack([leaf * factor for factor in np.linspace(1.0, 0.9, count)])
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    same = lambda leaf: jnp.stack([jnp.asarray(leaf)] * count)
    stack = lambda leaf: scale(jnp.asarray(leaf)) if real(leaf) else same(leaf)
    return jax.tree.map(stack, learner)


def games():
    """Pairs of a name and a function that plays the game and gives its digest."""
    for name, case in TABLE.items():
        yield f"run {name}", lambda game=case[:4]: digest_of_run(olx.run(*game))
    for name in EVERY_WAY:
        case = TABLE[name]
        yield f"rollout {name}", lambda game=case[:4]: digest_of_run(rollout(*game))
        yield (
            f"certify {name}",
            lambda c=case: digest(
                [(one.left, one.right) for one in olx.certify(*c[:4], c.comparators[0])]
            ),
        )
        if jax.tree.leaves(case.learner):
            for count in (3, COUNT):
                stack = several(case.learner, count)
                yield (
                    f"sweep {count} {name}",
                    lambda s=stack, c=case: digest_of_run(olx.sweep(s, *c[1:4])),
                )
        yield f"resume {name}", lambda g=case[:4]: resumed(*g)
    outcome = np.where(SPARSE @ np.linspace(-1, 1, WIDTH) > 0, 1.0, -1.0)
    rows = streams.sparse_rows(scipy.sparse.csr_array(SPARSE))
    for name, learner in ON_SPARSE.items():
        params = jnp.zeros(WIDTH + (name == "intercept"))
        game = losses.logistic, olx.Rounds(rows, jnp.asarray(outcome)), params
        yield f"sparse run {name}", lambda a=learner, g=game: digest_of_run(olx.run(a, *g))
        stack = several(learner, 5)
        yield f"sparse sweep {name}", lambda a=stack, g=game: digest_of_run(olx.sweep(a, *g))
    yield "lab", lab


def resumed(learner, loss, rounds, params) -> str:
    with tempfile.TemporaryDirectory() as folder:
        half = jax.tree.map(lambda leaf: leaf[: len(leaf) // 2], rounds)
        keep = olx.checkpoint(folder)
        olx.run(learner, loss, [half], params, checkpoint=keep)
        return digest_of_run(olx.run(learner, loss, [rounds], params, checkpoint=keep))


def rollout(learner, loss, rounds, params):
    return jax.jit(lambda learner, rounds: olx.rollout(learner, loss, rounds, params))(
        learner, rounds
    )


def lab() -> str:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        main(
            [
                "run",
                str(ROOT / "configs" / "quickstart.toml"),
                "--out",
                str(result),
                "--no-report",
                "--set",
                "seeds=1",
            ]
        )
        found: dict[str, list[str]] = {}  # the tables of all jobs, by name
        for path in result.rglob("*.parquet"):
            table = pyarrow.parquet.read_table(path)
            times = [name for name in table.column_names if "second" in name or "time" in name]
            found.setdefault(path.stem, []).append(str(table.drop_columns(times).to_pydict()))
        every = {name: sorted(each) for name, each in found.items()}
        return hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest()[:16]


def play_all() -> dict[str, str]:
    found = {}
    for name, game in tqdm(list(games())):
        try:
            found[name] = game()
        except (TypeError, ValueError) as refusal:
            found[name] = f"refused: {refusal}"
        jax.clear_caches()
    return found


if __name__ == "__main__":
    action, file = sys.argv[1], Path(sys.argv[2])
    if action == "write":
        file.write_text(json.dumps(play_all(), indent=1))
    else:
        before, now = json.loads(file.read_text()), play_all()
        changed = [name for name in before | now if before.get(name) != now.get(name)]
        for name in changed:
            print(f"{name}: {before.get(name)} -> {now.get(name)}")
        print(f"{len(now)} games, {len(changed)} changed")
        sys.exit(bool(changed))
