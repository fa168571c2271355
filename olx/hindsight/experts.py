r"""Regret of experts in hindsight: quantiles, small losses, gaps, and competitors that change.

Regret to expert $i$ after $t$ rounds is $R_{t,i} = \sum_{s \le t} I_{s,i} (\hat\ell_s -
\ell_{s,i})$; to a mixture $\langle u, R_t\rangle$; to the $\varepsilon$-quantile the
$\lceil \varepsilon N\rceil$-th largest of them; to competitors that change $\sum_t \langle u_t,
r_t\rangle$.

Luo, Optimal and Adaptive Online Learning, 2016, chapter 2.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Run, Scalar, Trace
from olx.experts.history import History, certificate, history, mixture
from olx.hindsight.about import ADA_NORMAL_HEDGE, EXPERTS
from olx.hindsight.game import Game, judged, played, refuse_others, trace_of


def expert_regrets(learner: Learner, run: Run) -> Float[Array, "T N"]:
    """The regret of a run to every expert after every round, scaled by confidences and weights.

    run: of one of `olx.experts`, played with `record=olx.record.trace`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> learner = olx.experts.two_norm()
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(2), record=olx.record.trace
    ... )
    >>> expert_regrets(learner, run).round(2).tolist()
    [[-0.5, 0.5], [-0.5, 0.5]]
    """
    refuse_others("expert_regrets", EXPERTS, learner)
    past = history(learner.hparams, trace_of("expert_regrets", learner, run))
    return past.unit * past.total


def quantile_regret(regrets: Float[Array, "T N"], epsilon: float) -> Float[Array, " T"]:
    r"""Regret to the $\lceil \varepsilon N\rceil$-th best expert, after every round.

    epsilon: above 0 and up to 1; 1/N or less is regret to the best.
    """
    rank = rank_of("quantile_regret", regrets.shape[1], epsilon)
    return -jnp.sort(-regrets, axis=1)[:, rank - 1]


def quantile_bound(learner: Learner, run: Run, epsilon: float) -> Certificate:
    r"""The theorem of `learner` for the best $\lceil \varepsilon N\rceil$ experts of each moment.

    Regret to the quantile is at most regret to the uniform mixture of these, which is where the
    theorem is evaluated, after every round anew.
    """
    game = played("quantile_bound", EXPERTS, learner, run)
    trace, past = game.trace, history(learner.hparams, game.trace)
    total = past.total
    rank = rank_of("quantile_bound", total.shape[1], epsilon)
    order = jnp.argsort(jnp.argsort(-total, axis=1), axis=1)
    best = jnp.where(order < rank, 1 / rank, jnp.zeros_like(total))

    def at(t: Array, u: Array) -> Certificate:
        return jax.tree.map(lambda leaf: leaf[t], learner.bound(trace, _shaped(trace, u)))

    proof = jax.vmap(at)(jnp.arange(total.shape[0]), best)
    left = past.unit * quantile_regret(total, epsilon)
    return judged(game, dataclasses.replace(proof, left=left, theorem=f"{epsilon:g}-quantile"))


def small_loss_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 5 for `ada_normal_hedge`: regret of the order of the root of the comparator's loss.

    From $R(u) \le \sqrt{\langle u, C\rangle A}$ and $C = R + 2 \tilde L$, where $\tilde L_i =
    \sum_t [-r_{t,i}]_+ \le L_i$,

    $$R(u) \le \sqrt{2 \langle u, \tilde L\rangle A} + A \le \sqrt{2 \langle u, L\rangle A} + A.$$

    Printed with $L$.
    """
    game = played("small_loss_bound", ADA_NORMAL_HEDGE, learner, run, u)
    past, flat = history(learner.hparams, game.trace), mixture(game.trace, game.u)
    price = _price(learner, game, past, flat)
    excess = jnp.cumsum(jnp.maximum(-past.regret, 0.0) @ flat)
    loss = jnp.cumsum(past.loss @ flat)
    root = lambda size: jnp.sqrt(2 * size * price) + price
    return judged(game, certificate(past, flat, root(excess), "Luo 2016, theorem 5", root(loss)))


def gap_bound(learner: Learner, run: Run, best: PyTree, gap: Scalar) -> Float[Array, " T"]:
    r"""Theorem 5, in expectation: $A / \alpha$, constant but for $\ln\ln T$.

    For losses drawn independently in every round with an expert, `best`, better than each other one
    by `gap` in the mean, this bounds the mean regret of `ada_normal_hedge` to it, in units of the
    range of losses.
    """
    gap = check.positive("gap_bound", "gap", gap)
    game = played("gap_bound", ADA_NORMAL_HEDGE, learner, run, best)
    past, flat = history(learner.hparams, game.trace), mixture(game.trace, game.u)
    return _price(learner, game, past, flat)[jnp.maximum(game.count - 1, 0)] / gap


def _price(learner: Learner, game: Game, past: History, flat: Float[Array, " N"]) -> Array:
    """A, from the theorem itself: its right side squared over the size of the regrets."""
    size = jnp.cumsum(jnp.abs(past.regret) @ flat)
    right = learner.bound(game.trace, _shaped(game.trace, flat)).right / past.unit
    return jnp.where(size > 0, right**2 / jnp.where(size > 0, size, 1.0), 0.0)


def rank_of(owner: str, experts: int, epsilon: float) -> int:
    r"""$\lceil \varepsilon N\rceil$, where rounding of the product does not count."""
    epsilon = check.above(owner, "epsilon", epsilon, 0.0, 1.0)
    return max(1, math.ceil(experts * epsilon - 1e-9))


def _shaped(trace: Trace, u: Array) -> PyTree:
    prior = jax.tree.map(lambda leaf: leaf[0], trace.state.prior)
    return ravel_pytree(prior)[1](u)
