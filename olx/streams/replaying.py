"""An adversary that plays a given stream, whatever the learner does."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx.adversary import Adversary
from olx.core import Loss, Rounds
from olx.streams.judge import check_rounds
from olx.streams.sparse_rows import SparseRows


def replaying(loss: Loss, rounds: Rounds) -> Adversary:
    """The rounds of a stream in turn, and from the first one again after the last.

    rounds: such as the worst ones that `olx.hindsight.worst_case` found for another learner.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0], [-1.0]]))
    >>> nature = replaying(olx.losses.linear_loss, rounds)
    >>> olx.play(olx.ogd(0.5), nature, jnp.zeros(1), 4).rounds.outcome[:, 0].tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    check.takes("replaying", "loss", loss, "action", "outcome")
    check_rounds("replaying", rounds)
    if isinstance(rounds.context, SparseRows):
        raise TypeError("replaying: sparse rows are not supported; pass `rows.toarray()`.")
    if rounds.weight is not None:
        raise ValueError(
            "replaying: an adversary gives every round the weight 1, got rounds with weights; play "
            "them with `olx.run`."
        )
    rounds = jax.tree.map(jnp.asarray, rounds)
    return Adversary(rounds, as_tree(loss), _first, _ask, _answer)


def _first(rounds: Rounds) -> Array:
    return jnp.zeros((), int)


def _ask(rounds: Rounds, index: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[index], rounds.context)


def _answer(rounds: Rounds, index: Array, action: PyTree):
    outcome = jax.tree.map(lambda leaf: leaf[index], rounds.outcome)
    return outcome, (index + 1) % jax.tree.leaves(rounds.outcome)[0].shape[0]
