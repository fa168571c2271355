r"""Certificates: theorems checked on a run.

Every learner carries its theorem. `certify` evaluates both sides after every round. What it says
holds for the losses linearized at the decisions, and so for any convex losses.
"""

import jax
from jaxtyping import PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Run, Trace


def certify(learner: Learner, run: Run, u: PyTree) -> Certificate:
    """Check the theorem of `learner` on a run against the comparator `u`, after every round.

    run: played with `record=olx.trace`.
    u: any point of the domain; outside it the right side is infinite.

    For a sweep, `jax.vmap(olx.certify, (0, 0, None))(learners, runs, u)`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0]] * 8))
    >>> learner = olx.hedge(0.5)
    >>> run = olx.rollout(learner, olx.losses.linear, rounds, jnp.ones(2) / 2, record=olx.trace)
    >>> bool(olx.certify(learner, run, jnp.array([1.0, 0.0])).holds)
    True
    """
    return _bound(learner, trace_of("certify", learner, run), u)


def trace_of(owner: str, learner: Learner, run: Run) -> Trace:
    """The trace a certificate needs, or a refusal that says how to get one."""
    check.instance(owner, "learner", learner, Learner)
    check.instance(owner, "run", run, Run)
    if not isinstance(run.trace, Trace):
        raise TypeError(
            f"{owner}: the run kept {type(run.trace).__name__}; play it with record=olx.trace."
        )
    return run.trace


@jax.jit
def _bound(learner: Learner, trace: Trace, u: PyTree) -> Certificate:
    return learner.bound(trace, u)
