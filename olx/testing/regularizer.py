"""The conformance kit for regularizers that change with time."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx.core import Loss, Process, Rounds
from olx.engine.rollout import rollout
from olx.frameworks.ftrl import ftrl
from olx.frameworks.lift import linear
from olx.mirrors.base import MirrorMap
from olx.testing.mirror import check_mirror
from olx.testing.report import close, fail


def check_regularizer(regularizer: Process, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Check `regularizer` on a short stream; an AssertionError names the property that it breaks.

    Its statistics keep their structure. In the first, a middle and the last round it gives a mirror
    map, the same with and without jit, that passes `check_mirror` near the dual of `ftrl`. A stream
    with a context is played by a linear predictor.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=6, features=4)
    >>> olx.testing.check_regularizer(
    ...     olx.regularizers.adagrad(), olx.losses.squared, rounds, jnp.zeros(4)
    ... )
    """
    learner = ftrl(0.1, regularizer)
    if rounds.context is not None:
        learner = linear(learner)
    keep = lambda state, feedback: (state, feedback.context)
    trace = rollout(learner, loss, rounds, params, record=keep).trace
    length = jax.tree.leaves(rounds)[0].shape[0]
    for t in {0, length // 2, length - 1}:
        state, context = jax.tree.map(lambda leaf, t=t: leaf[t], trace)
        f = regularizer.at(state.stats, context)
        if not isinstance(f, MirrorMap):
            fail(f"at round {t} the regularizer gives a {type(f).__name__}, not a MirrorMap")
        theta = state.theta.value
        slow, fast = f.conjugate(theta), jax.jit(_conjugate_at)(regularizer, state, context)
        close(f"jit changes the conjugate at round {t}", fast, slow, 1e-6)
        noise = tree.random_like(jax.random.key(t), theta, dtype=jnp.result_type(slow))
        check_mirror(f, tree.add(theta, noise))


def _conjugate_at(regularizer: Process, state, context):
    return regularizer.at(state.stats, context).conjugate(state.theta.value)
