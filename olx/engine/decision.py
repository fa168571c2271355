"""`decision`: the weights of a trained learner."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Batch, Learner, Run
from olx.engine.boundary import check_state
from olx.engine.start_like import start_like
from olx.frameworks.affine import as_linear, is_affine


def decision(learner: Learner, state: PyTree, context: PyTree = None) -> PyTree:
    r"""The decision $w$ of a learner in `state`, such as the weights of a linear predictor.

    For a point learner it is the action. For a predictor whose score is $\langle w, x\rangle$, it
    is the slope of the score, whatever the algorithm keeps in its state; scores of several classes
    give one row each. A predictor with another score is refused.

    context: one row, for a predictor; only its shape and dtype are used.

    >>> import jax.numpy as jnp, olx
    >>> rows, labels = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -1.0])
    >>> learner = olx.classification.passive_aggressive()
    >>> run = olx.rollout(learner, olx.losses.hinge, olx.Rounds(rows, labels), jnp.zeros(2))
    >>> olx.decision(learner, run.state, rows[0]).tolist()
    [1.0, -1.0]
    """
    if isinstance(learner, Batch):
        raise TypeError("decision: `learner` is a batch; give one of its learners, as in batch[0].")
    check.instance("decision", "learner", learner, Learner)
    if isinstance(state, Run) or state is None:
        check_state("decision", state, ())
    if context is None:
        return _point(learner, state)
    if is_affine(learner):  # its last weight is the intercept
        learner, context = as_linear(learner), np.append(np.asarray(context), 1.0)
    zero = jax.tree.map(lambda leaf: jnp.zeros(np.shape(leaf), _real(leaf)), context)
    start_like("decision", learner, state, zero)  # refuses other states and rows
    score = lambda x: learner.predict(state, x)
    slope = jax.jacobian(score)(zero)
    for seed in range(3):  # a linear score is linear everywhere
        x = jax.tree.map(lambda leaf, s=seed: _drawn(s, leaf), zero)
        seen, wanted = score(x), _linear(slope, x, score(zero))
        if not np.allclose(seen, wanted, rtol=1e-3, atol=1e-5):
            raise TypeError(
                "decision: the score of this learner is not a linear function of the row, so it "
                "has no weights; `olx.predict` gives its scores."
            )
    return slope


def _point(learner: Learner, state: PyTree) -> PyTree:
    try:
        return learner.predict(state, None)
    except (TypeError, AttributeError):
        raise TypeError(
            "decision: this learner acts on a context; give one row, of which only the shape is "
            "used: `olx.decision(learner, state, row)`."
        ) from None


def _linear(slope: PyTree, x: PyTree, zero: PyTree) -> PyTree:
    """The linear function with this slope that is 0 at 0; NaN if the score at 0 is not 0."""
    terms = jax.tree.map(lambda w, leaf: jnp.tensordot(w, leaf, jnp.ndim(leaf)), slope, x)
    total = sum(jax.tree.leaves(terms))
    return jnp.where(jnp.all(jnp.asarray(zero) == 0), total, jnp.nan)


def _drawn(seed: int, leaf: jax.Array) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), leaf.shape, leaf.dtype)


def _real(leaf) -> jnp.dtype:
    kind = jnp.result_type(leaf)
    return kind if jnp.issubdtype(kind, jnp.floating) else jnp.zeros(()).dtype
