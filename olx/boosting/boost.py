r"""Online boosting: a vote of $n$ copies of a weak learner, by any `BoostingRule`.

In a round copy $i$ votes with the sign of its score, $h^i = \mathrm{sign}(a^i)$ with
$\mathrm{sign}(0) = +1$. The rule makes a score of the votes; its sign is the prediction. When the
label $y$ is known, the rule gives each copy an importance $p^i \in [0, 1]$. With a key, copy $i$
learns from the round with probability $p^i$; without one, it learns from the round with weight
$p^i$. With the factors $\alpha^i$ of the votes, most rules look at how well the copies before $i$
do on this round,

$$s^{i-1} = \sum_{j < i} \alpha^j y h^j.$$

All votes are made with the states from before the round, so these are sums over known numbers. If
all votes count the same, $s^{i-1} = 2c - (i - 1)$ with $c$ the number of right votes among the
copies before $i$. So the importance of copy $i$ is entry $c$ of row $i$ of a `Table`, which a rule
makes once.

`boost_scores` boosts with confident votes: the vote of copy $i$ is its score, clipped: $h^i =
\mathrm{clip}_{[-1, 1]}(a^i)$. A copy that is not sure says so with a score near 0, and its vote
counts less, in the prediction and in the sums $s^{i-1}$. The sum $c = \sum_{j < i} (1 + y h^j) / 2$
is then rounded: the entry of a table is $\lfloor n/2 \rfloor - \lfloor n/2 - c \rfloor$, as in $k =
\lfloor (n - i - s^{i-1} + 1) / 2 \rfloor$ of Online BBM. The theorems of the rules are about votes
of -1 and +1 and do not apply. Vowpal Wabbit, which made the tables of the thesis, boosts with such
votes: the scores of its linear learners are clipped to the range of the labels.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, section 3.1; Schapire, Singer, Improved Boosting Algorithms Using
Confidence-rated Predictions, 1999, for confident votes in batches.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx._call import Call
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.core import Feedback, Learner, Loss, Scalar, without_refresh
from olx.facts import of_wrapper
from olx.frameworks import copies
from olx.losses.score import signs
from olx.theorem import Theorem
from olx.wrapper import INNER, LOSS, lift_needs


@pytree
class BoostingRule:
    """A rule for `boost`: module-level functions and the numbers that they share.

    A rule that needs a table makes it in `init_fn`, once, and keeps it in its state.
    """

    hparams: PyTree
    init_fn: Callable[..., PyTree] = static()  # (hparams, n, dtype) -> state
    vote_fn: Callable[..., Array] = static()  # (hparams, state, h) -> score
    weigh_fn: Callable[..., Array] = static()  # (hparams, state, h, y) -> p, each in [0, 1]
    update_fn: Callable[..., PyTree] = static()  # (hparams, state, h, y, weight) -> state
    theorems: tuple[Theorem, ...] = ()  # about `boost` with this rule
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self, n: int, dtype: DTypeLike) -> PyTree:
        return self.init_fn(self.hparams, n, dtype)

    def vote(self, state: PyTree, h: Float[Array, " n"]) -> Float[Array, ""]:
        return self.vote_fn(self.hparams, state, h)

    def weigh(self, state: PyTree, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
        return self.weigh_fn(self.hparams, state, h, y)

    def update(self, state: PyTree, h: Float[Array, " n"], y: Array, weight: Scalar) -> PyTree:
        return self.update_fn(self.hparams, state, h, y, weight)


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


@public
def boost_scores(
    inner: Learner, n: int, rule: BoostingRule, loss: Loss | None = None, key: Array | None = None
) -> Learner:
    """A vote of the scores of `n` copies of `inner`; the arguments are those of `boost`.

    inner: a predictor whose scores are of the size of the labels, such as a linear learner of the
        loss `olx.losses.modified_huber`. Scores beyond -1 and +1 are clipped.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> weak, rule = olx.first_order.normalized_adagrad(0.5), olx.boosting.online_bbm(0.1)
    >>> learner = olx.boosting.boost_scores(weak, 15, rule, loss=olx.losses.modified_huber)
    >>> bool(olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5)).total < 60)
    True
    """
    check.instance("rule", rule, BoostingRule)
    if rule.weigh_fn is weigh_counts:
        rule = dataclasses.replace(rule, weigh_fn=weigh_scores)
    learner = boost(inner, n, rule, loss, key)
    functions = {"predict_fn": predict_by_scores, "update_fn": update_by_scores}
    return dataclasses.replace(learner, **functions, theorems=())


def init(hp: BoostHparams, params: PyTree) -> BoostState:
    dtype = jnp.result_type(*jax.tree.leaves(params))
    own = None if hp.key is None else jax.random.fold_in(hp.key, hp.n)  # the rule may use the key
    return BoostState(copies.start(hp.inner, hp.n, params), hp.rule.init(hp.n, dtype), own)


def predict(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, ""]:
    return hp.rule.vote(state.rule, votes(hp, state, context))


def update(hp: BoostHparams, state: BoostState, feedback: Feedback) -> BoostState:
    scores = scores_of(hp, state, feedback.context)
    return learn(hp, state, feedback, scores, sign(scores))


def predict_by_scores(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, ""]:
    return hp.rule.vote(state.rule, _clipped(scores_of(hp, state, context)))


def update_by_scores(hp: BoostHparams, state: BoostState, feedback: Feedback) -> BoostState:
    scores = scores_of(hp, state, feedback.context)
    return learn(hp, state, feedback, scores, _clipped(scores))


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
    inner, losses = without_refresh(hp.inner), _repeated(_copies_loss(hp, feedback), hp.n)
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


def _copies_loss(hp: BoostHparams, feedback: Feedback) -> Partial:
    return feedback.loss if hp.loss is None else Partial(_at, hp.loss, feedback.outcome)


def _at(loss: Loss, outcome: PyTree, score: Array) -> Array:
    return loss(score, outcome)


def _repeated(tree: PyTree, n: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *np.shape(leaf))), tree)


def _clipped(scores: Float[Array, " n"]) -> Float[Array, " n"]:
    return jnp.clip(scores, -1.0, 1.0)


def sign(scores: Array) -> Array:
    """+1 for scores of at least 0, -1 for other scores; NaN stays, so that divergence is seen."""
    return jnp.where(scores >= 0, jnp.ones_like(scores), jnp.where(scores < 0, -1.0, jnp.nan))


def cumulative(values: Array) -> Array:
    """Sums up to each entry; XLA on the CPU takes twice as long for `jnp.cumsum` as by doubling."""
    return lax.platform_dependent(values, cpu=_doubled_sums, default=jnp.cumsum)


def _doubled_sums(values: Array) -> Array:
    sums, reach = values, 1
    while reach < values.size:
        sums = sums + jnp.pad(sums[:-reach], (reach, 0))
        reach *= 2
    return sums


def before(sums: Float[Array, " n"]) -> Float[Array, " n"]:
    """Sums over the copies before each one, from the sums that include it."""
    return jnp.concatenate([jnp.zeros_like(sums[:1]), sums[:-1]])


def mean_vote(hp: PyTree, state: PyTree, h: Float[Array, " n"]) -> Float[Array, ""]:
    """All votes count the same."""
    return jnp.mean(h)


def unchanged(hp: PyTree, state: PyTree, h: Float[Array, " n"], y: Array, weight: Scalar) -> PyTree:
    """A rule that does not learn."""
    return state


class Table(NamedTuple):
    p: Float[Array, "n m"]  # a count beyond the last column has the importance of the last column

    def at(self, entries: Int[Array, " n"]) -> Float[Array, " n"]:
        """One entry of each row; those beyond the ends are the first and the last one."""
        legal = jnp.clip(entries, 0, self.p.shape[1] - 1)
        return jnp.take_along_axis(self.p, legal[:, None], 1, mode="promise_in_bounds")[:, 0]


def table_rule(
    hparams: PyTree, init_fn: Callable[..., Table], theorems: tuple[Theorem, ...] = ()
) -> BoostingRule:
    """A rule whose importances are those of a table, and whose votes count the same."""
    return BoostingRule(hparams, init_fn, mean_vote, weigh_counts, unchanged, theorems)


def weigh_counts(hp: PyTree, state: Table, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
    """The importances of a table, by the number of right votes."""
    right = (h == y).astype(jnp.int32)
    return state.at(cumulative(right) - right)


def weigh_scores(hp: PyTree, state: Table, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
    """The same for votes in [-1, 1]."""
    right, n = (1 + y * h) / 2, h.size
    return state.at(n // 2 - jnp.floor(n / 2 - (cumulative(right) - right)).astype(jnp.int32))
