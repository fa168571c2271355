r"""Certificates: theorems checked on a run.

Every learner carries its theorem. `certify` evaluates both sides after every round. What it says
holds for the losses linearized at the decisions, and so for any convex losses.
"""

import jax
from jaxtyping import PyTree

from olx.certificate import Certificate
from olx.core import Learner, Run, Trace
from olx.hindsight.game import accept, vouched


def certify(learner: Learner, run: Run, u: PyTree) -> Certificate:
    """Check the theorem of `learner` on a run against the comparator `u`, after every round.

    run: of `learner`, all its rounds kept, played with `record=olx.record.trace`.
    u: any point of the domain; outside it the right side is infinite.

    Where the run leaves the conditions of the theorem the right side is infinite, and the
    certificate says which condition it is. For a sweep,
    `jax.vmap(olx.certify, (0, 0, None))(learners, runs, u)`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0]] * 8))
    >>> learner = olx.hedge(0.5)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(2) / 2, record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, jnp.array([1.0, 0.0])).holds)
    True
    """
    trace, u, agrees = accept("certify", learner, run, u)
    return vouched(_bound(learner, trace, u), agrees)


@jax.jit
def _bound(learner: Learner, trace: Trace, u: PyTree) -> Certificate:
    return learner.bound(trace, u)
