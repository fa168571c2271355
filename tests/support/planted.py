"""Rounds with one bad number, or of a bad kind, for `olx.step` and `olx.predict`."""

import jax
import jax.numpy as jnp
import numpy as np

import olx

VALUES = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
TOO_LARGE = {"1e39": 1e39, "-1e300": -1e300}  # for 32 bits
KINDS = {
    "half precision": lambda leaf: _planted(leaf, np.nan).astype(jnp.bfloat16),
    "masked": lambda leaf: np.ma.masked_array(leaf, np.ones(np.shape(leaf), bool)),
    "128 bits": lambda leaf: np.asarray(leaf, np.longdouble),
    "big endian": lambda leaf: np.asarray(leaf, ">f8"),
    "objects": lambda leaf: np.asarray(leaf, object),
    "complex": lambda leaf: np.asarray(leaf, complex),
}


def _planted(leaf, value, at=0):
    leaf = np.array(leaf, float)
    leaf.flat[at] = value
    return leaf


def bad_leaves(leaf, values):
    """Forms of a leaf that no driver may take, by name."""
    for name, value in values.items():
        for at in {0, np.size(leaf) - 1}:
            yield f"{name} at {at}", _planted(leaf, value, at)
    for name, kind in KINDS.items():
        yield name, kind(leaf)


def bad_trees(tree, values):
    """The tree with one bad leaf."""
    leaves, structure = jax.tree.flatten(tree)
    for i, leaf in enumerate(leaves):
        for name, bad in bad_leaves(leaf, values) if np.size(leaf) else ():
            every = [*leaves[:i], bad, *leaves[i + 1 :]]
            yield f"leaf {i}, {name}", jax.tree.unflatten(structure, every)


def of_step(case):
    """By name, rounds of a learner of 32 bits that `olx.step` must refuse."""
    learner, loss = case.learner, case.loss
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), case.params)
    state = learner.init(params)
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], case.rounds)
    given = first.context, first.outcome, np.float64(1.0)
    for i, part in enumerate(("context", "outcome", "weight")):
        for name, bad in bad_trees(given[i], VALUES | TOO_LARGE):
            these = [*given[:i], bad, *given[i + 1 :]]
            yield f"{part}: {name}", lambda these=these: olx.step(learner, loss, state, *these)


def of_predict(case):
    """By name, contexts that `olx.predict` must refuse."""
    learner, state = case.learner, case.learner.init(case.params)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[:3], case.rounds.context)
    for name, bad in bad_trees(rows, VALUES):
        yield name, lambda bad=bad: olx.predict(learner, state, bad)
