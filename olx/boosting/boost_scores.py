r"""Online boosting with confident votes: copies vote with their scores, not with their signs.

Everything is as in `boost`, but the vote of copy $i$ is its score, clipped:
$h^i = \mathrm{clip}_{[-1, 1]}(a^i)$. A copy that is not sure says so with a score near 0, and its
vote counts less, in the prediction and in the sums $s^{i-1} = \sum_{j < i} \alpha^j y h^j$ that
weigh the copies after it. The rules are those of `boost`; their theorems are about votes of -1 and
+1 and do not apply.

Vowpal Wabbit, which made the tables of the thesis, boosts with such votes: the scores of its linear
learners are clipped to the range of the labels.

Schapire, Singer, Improved Boosting Algorithms Using Confidence-rated Predictions, 1999, for
batches; Luo, Optimal and Adaptive Online Learning, 2016, section 3.1, for the rules.
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.boosting._tables import weigh, weigh_scores
from olx.boosting.boost import BoostHparams, BoostState, boost, learn, scores_of
from olx.boosting.rule import BoostingRule
from olx.core import Feedback, Learner, Loss


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
    if rule.weigh_fn is weigh:
        rule = dataclasses.replace(rule, weigh_fn=weigh_scores)
    learner = boost(inner, n, rule, loss, key)
    return dataclasses.replace(learner, predict_fn=predict, update_fn=update, theorems=())


def predict(hp: BoostHparams, state: BoostState, context: PyTree) -> Float[Array, ""]:
    return hp.rule.vote(state.rule, _clipped(scores_of(hp, state, context)))


def update(hp: BoostHparams, state: BoostState, feedback: Feedback) -> BoostState:
    scores = scores_of(hp, state, feedback.context)
    return learn(hp, state, feedback, scores, _clipped(scores))


def _clipped(scores: Float[Array, " n"]) -> Float[Array, " n"]:
    return jnp.clip(scores, -1.0, 1.0)
