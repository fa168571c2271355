r"""Online boosting: a vote of $n$ copies of a weak learner, by any `BoostingRule`.

Copy $i$ votes with the sign of its score, $h^i = \mathrm{sign}(a^i)$ with $\mathrm{sign}(0) = +1$.
The rule makes a score of the votes; its sign is the prediction. When the label is known, the rule
gives each copy an importance $p^i \in [0, 1]$. With a key, copy $i$ learns from the round with
probability $p^i$; without one, it learns from the round with weight $p^i$.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, section 3.1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.boosting.rule import BoostingRule, sign
from olx.core import Feedback, Learner, Loss, without_refresh
from olx.facts import of_wrapper
from olx.frameworks import copies
from olx.losses.score import signs
from olx.wrapper import INNER, LOSS, lift_needs


@pytree
class BoostHparams:
    inner: Learner
    rule: BoostingRule
    loss: Loss | None
    key: Array | None
    n: int = static()


class BoostState(NamedTuple):
    inner: PyTree  # the states of the copies, stacked
    rule: PyTree
    key: Array | None  # for the draw of this round


@public
def boost(
    inner: Learner, n: int, rule: BoostingRule, loss: Loss | None = None, key: Array | None = None
) -> Learner:
    """A vote of `n` copies of `inner`, a predictor for labels +1 and -1.

    inner: any predictor whose action is a score: `olx.linear` of a point learner, `perceptron`, a
        model of your own, another `boost`.
    n: the number of copies.
    rule: such as `online_bbm(gamma)` or `adaboost_ol()`.
    loss: what the copies learn from, a loss of a score and a label; None for the loss of the game.
        A learner that follows gradients learns nothing from `olx.losses.zero_one`.
    key: a key of `jax.random`. Copies are then passed rounds at random; without a key they are
        passed all rounds, with weights. Learners whose votes do not depend on the scale of the
        weights, such as `perceptron`, need a key: without one all copies may vote alike.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> weak, rule = olx.linear(olx.ogd(0.1)), olx.boosting.online_bbm(0.1)
    >>> learner = olx.boosting.boost(weak, 15, rule, loss=olx.losses.hinge)
    >>> bool(olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5)).total < 60)
    True
    """
    check.instance("inner", inner, Learner)
    check.size("n", n)
    check.instance("rule", rule, BoostingRule)
    if key is not None:
        check.key(key)
    if loss is not None:
        check.takes("loss", loss, "score", "label")
    needs = (signs("boost"), *lift_needs(INNER, inner))
    if loss is not None and hasattr(loss, "needs"):
        needs += lift_needs(LOSS, loss)
    hparams = BoostHparams(inner, rule, None if loss is None else as_tree(loss), key, n)
    return Learner(
        hparams,
        init,
        predict,
        update,
        facts=of_wrapper(inner, copies.refresh_of(inner)),
        needs=needs,
        theorems=rule.theorems,
    )


def init(hp: BoostHparams, params: PyTree) -> BoostState:
    dtype = jnp.result_type(*jax.tree.leaves(params))
    own = None if hp.key is None else jax.random.fold_in(hp.key, hp.n)  # the rule may use the key
    return BoostState(copies.start(hp.inner, hp.n, params), hp.rule.init(hp.n, dtype), own)


def predict(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, ""]:
    return hp.rule.vote(state.rule, votes(hp, state, context))


def update(hp: BoostHparams, state: BoostState, feedback: Feedback) -> BoostState:
    scores = scores_of(hp, state, feedback.context)
    return learn(hp, state, feedback, scores, sign(scores))


def learn(
    hp: BoostHparams,
    state: BoostState,
    feedback: Feedback,
    scores: Float[Array, " n"],
    h: Float[Array, " n"],
) -> BoostState:
    """The state after a round in which the copies had `scores` and voted `h`."""
    y = label(feedback, h)
    p, key = hp.rule.weigh(state.rule, h, y), state.key
    if key is not None:
        p = jnp.where(jax.random.uniform(key, p.shape, p.dtype) < p, jnp.ones_like(p), 0.0)
        key = jax.random.split(key, 1)[0]
    weights = p * jnp.asarray(feedback.weight, p.dtype)
    inner, losses = without_refresh(hp.inner), _repeated(_loss(hp, feedback), hp.n)
    return BoostState(
        copies.teach(inner, state.inner, scores, losses, feedback, weights),
        hp.rule.update(state.rule, h, y, feedback.weight),
        key,
    )


def votes(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, " n"]:
    """The vote of every copy, -1 or +1."""
    return sign(scores_of(hp, state, context))


def label(feedback: Feedback, h: Float[Array, " n"]) -> Float[Array, ""]:
    """The label of a round in the dtype of the votes."""
    return jnp.asarray(feedback.outcome, h.dtype)


@own_name("boost")
def scores_of(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, " n"]:
    scores = copies.act(hp.inner, state.inner, context)
    if np.shape(scores) != (hp.n,):
        shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(scores)]
        raise RefusedType(
            f"`inner` must be a predictor, whose action is one score; its action has shape "
            f"{', '.join(map(str, shapes))}. `olx.linear` makes a point learner a predictor."
        )
    return scores


def _loss(hp: BoostHparams, feedback: Feedback) -> Partial:
    return feedback.loss if hp.loss is None else Partial(_at, hp.loss, feedback.outcome)


def _at(loss: Loss, outcome: PyTree, score: Array) -> Array:
    return loss(score, outcome)


def _repeated(tree: PyTree, n: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *np.shape(leaf))), tree)
