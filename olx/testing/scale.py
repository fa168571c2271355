"""The check of `Facts.scale_free`: all losses times one number give the same actions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Scalar
from olx.engine.rollout import rollout
from olx.record import actions
from olx.testing.report import close, tolerance

SCALES = 1e-6, 1e6


def check_scale(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Losses times 1e-6 or 1e6 give the actions of `rollout`, if the learner is `scale_free`.

    Vectors of losses, as those of experts, are multiplied themselves: the loss is linear in them.
    Otherwise the loss function is multiplied, and so is its gradient.
    """
    if not learner.facts.scale_free:
        return
    play = jax.jit(lambda loss, rounds: rollout(learner, loss, rounds, params, record=actions))
    plain = play(as_tree(loss), rounds)
    for scale in SCALES:
        times = Partial(jnp.multiply, scale)
        scaled = rounds._replace(outcome=jax.tree.map(times, rounds.outcome))
        paid = jax.vmap(loss)(plain.trace, scaled.outcome)
        linear = np.allclose(paid, scale * plain.losses, rtol=1e-6, atol=0.0)
        larger = Partial(_scaled_loss, scale, as_tree(loss))
        seen = play(as_tree(loss), scaled) if linear else play(larger, rounds)
        what = f"the learner says `scale_free`, but losses times {scale} change its actions"
        close(what, seen.trace, plain.trace, tolerance(plain))


def _scaled_loss(scale: Scalar, loss: Partial, action: PyTree, outcome: PyTree) -> Array:
    return scale * loss(action, outcome)
