"""Many configurations as one program."""

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Learner, Loss, Rounds, Run
from olx.engine.protocol import Record
from olx.engine.rollout import rollout


def sweep(
    learners: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    record: Record | None = None,
) -> Run:
    """Play every learner of a batch on the same stream: a run whose leaves have a leading axis.

    A configuration that diverges shows non-finite losses at its own index and disturbs no other.

    >>> import jax.numpy as jnp, olx
    >>> learners = olx.batch(olx.hedge, eta=jnp.array([0.1, 1.0, 10.0]))
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> olx.sweep(learners, olx.losses.linear, rounds, jnp.array([0.5, 0.5])).total.round(2).tolist()
    [1.85, 0.94, 0.5]
    """
    check.instance("sweep", "learners", learners, Learner)
    _check_batched(learners)
    play = lambda learner: rollout(learner, loss, rounds, params, record=record)
    return jax.vmap(play)(learners)


def _check_batched(learners: Learner) -> None:
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(learners)}
    if len(lengths) != 1 or lengths == {()}:
        raise TypeError(
            "sweep: the leaves of `learners` share no leading axis; stack a factory with "
            "`olx.batch(make, eta=etas)`, or play a single learner with `olx.rollout`."
        )
