r"""Step sizes $1 / c_t$ of classifiers: they shrink with mistakes and with the largest row.

$M_t$ is the number of mistakes before round $t$; `olx.losses.margin` says what a mistake is.

- S7, S9: $c_t = X_t \sqrt{(M_t + 1) / U}$ with $X_t = \max_{i \le t} \|x_i\|_*$ over all rounds.
  With the entropy and $U = \log n$ it is the self-tuned Winnow.
- S10: $c_t = X_t \sqrt{(M_t + 1) / (2 U)}$ with the maximum over mistakes and the current round.

$c_t$ uses the row $x_t$, which is known before predicting. While all rows are 0, $c_t = 1$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figures 5.2, 5.3 and
5.4, (5.17).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx._words import computed
from olx.convex.norms import Norm
from olx.core import STEP, Feedback, Process, Scalar
from olx.losses.margin import mistaken
from olx.schedules import fixed


@pytree
class MistakesHparams:
    complexity: Scalar
    norm: Norm


class MistakesStats(NamedTuple):
    largest: Float[Array, ""]
    mistakes: Clock
    beyond: Float[Array, ""]  # the sum of weight - 1 over mistakes


@public
def mistakes(complexity: Scalar, norm: Norm) -> Process:
    r"""The step size $1 / (X_t \sqrt{(M_t + 1) / U})$ (S7, S9).

    complexity: $U$, the largest $f(u)$ to compete with; $\log n$ for the entropy of $n$ weights.
    norm: the norm of the mirror map; rows are measured in its dual norm.

    >>> import jax.numpy as jnp
    >>> from olx.convex import norms
    >>> schedule = mistakes(4.0, norms.l2())
    >>> float(schedule.at(schedule.init(jnp.zeros(2)), jnp.array([6.0, 8.0])))
    0.2
    """
    complexity = check.positive("complexity", complexity)
    check.instance("norm", norm, Norm)
    return Process(MistakesHparams(complexity, norm), init, update, at, STEP)


@public
def structured(complexity: Scalar, norm: Norm) -> Process:
    r"""The step size $1 / (X_t \sqrt{(M_t + 1) / (2 U)})$, $X_t$ over mistakes and round $t$ (S10).

    complexity: $U$, the largest $f(u)$ to compete with.
    norm: the norm of the mirror map; rows are measured in its dual norm.
    """
    complexity = check.positive("complexity", complexity)
    check.instance("norm", norm, Norm)
    schedule = Process(MistakesHparams(2 * complexity, norm), init, update_on_mistakes, at, STEP)
    return computed(schedule, complexity=_half)


def _half(schedule: Process) -> Scalar:
    return schedule.hparams.complexity / 2


def init(hp: MistakesHparams, params: PyTree) -> MistakesStats:
    return MistakesStats(fixed.zero(params), clock.start(hp, params), fixed.zero(params))


def update(hp: MistakesHparams, stats: MistakesStats, feedback: Feedback) -> MistakesStats:
    return MistakesStats(_largest(hp, stats, feedback.context), *_count(stats, feedback))


def update_on_mistakes(
    hp: MistakesHparams, stats: MistakesStats, feedback: Feedback
) -> MistakesStats:
    larger = _largest(hp, stats, feedback.context)
    return MistakesStats(
        jnp.where(_wrong(feedback), larger, stats.largest), *_count(stats, feedback)
    )


def at(hp: MistakesHparams, stats: MistakesStats, context: PyTree) -> Array:
    rate = jnp.sqrt((stats.mistakes.now + stats.beyond) / hp.complexity)
    return 1 / safe.or_one(_largest(hp, stats, context) * rate)


def _largest(hp: MistakesHparams, stats: MistakesStats, context: PyTree) -> Array:
    return jnp.maximum(stats.largest, hp.norm.dual(context))


def _count(stats: MistakesStats, feedback: Feedback) -> tuple[Clock, Array]:
    wrong = _wrong(feedback)
    beyond = jnp.where(wrong, feedback.weight - 1, 0.0)
    return clock.advance(stats.mistakes, wrong), stats.beyond + beyond


@own_name("mistakes")
def _wrong(feedback: Feedback) -> Array:
    if [jnp.ndim(leaf) for leaf in jax.tree.leaves(feedback.action)] != [0]:
        raise RefusedType(
            "this schedule counts mistakes of a score, which a point learner does not "
            "have; give it to `olx.dual_ascent`."
        )
    return mistaken(feedback.action, feedback.outcome)
