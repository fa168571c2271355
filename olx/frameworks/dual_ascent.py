r"""The primal-dual framework: play by the mirror map, and let the dual of the game rise.

$$w_t = \nabla f^*\Big(-\frac1{c_t} \sum_{i < t} \lambda_i\Big), \qquad
  D_t(\lambda) = -c_t f^*\Big(-\frac1{c_t} \sum_i \lambda_i\Big) - \sum_i g_i^*(\lambda_i) \le
  \min_u\; c_t f(u) + \sum_i g_i(u).$$

A predictor of linear scores: the loss of a round is $g_t(w) = h_t\,\ell(\langle w, x_t\rangle,
y_t)$ and $\lambda_t = h_t \tau_t x_t$. Four choices make an algorithm: the potential $f$ (additive,
multiplicative, p-norm), the loss (classification, regression), the ascent (from the subgradient to
follow the leader) and the schedule of the inverse learning rate $c_t$.

Whatever $f$ is at its least, $f - \min f$ is what all bounds are about.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figures 3.1 and 3.2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Scalar, Trace
from olx.frameworks.ascents.base import Ascent, Problem, move, slope
from olx.frameworks.lift import dot
from olx.frameworks.master import constants
from olx.losses.score import ScoreLoss, check_convex
from olx.mirrors.base import MirrorMap
from olx.needs import within
from olx.schedules.decay import as_schedule


@pytree
class DualAscentHparams:
    mirror: MirrorMap
    loss: ScoreLoss
    ascent: Ascent
    schedule: Process


class DualAscentState(NamedTuple):
    acc: PyTree  # minus the sum of all dual vectors, whatever c is, centred
    conjugates: Float[Array, ""]  # the sum of the conjugates of the losses at them, and what
    # centring took from c f*(acc / c), so that the dual is what it was
    stats: PyTree
    memory: PyTree


def dual_ascent(
    mirror: MirrorMap, loss: ScoreLoss, ascent: Ascent, schedule: Scalar | Process = 1.0
) -> Learner:
    r"""Predict $\langle w_t, x_t\rangle$ and ascend the dual.

    loss: what the learner goes by; convex. The loss of the driver may be another, as `zero_one`.
    ascent: one of `olx.ascents`.
    schedule: $c_t$, an inverse learning rate: a positive number or one of `olx.schedules`, which
        may look at $x_t$. Bounds as printed ask that it does not decrease.

    `params` only says what decisions look like: the first is the minimizer of the potential. The
    context is shaped like it.

    >>> import jax, jax.numpy as jnp, olx
    >>> stream = olx.streams.linear_classification(jax.random.key(0), rounds=60, features=3)
    >>> learner = olx.dual_ascent(
    ...     olx.mirrors.pnorm(1.5), olx.losses.hinge, olx.ascents.aggressive(), 2.0
    ... )
    >>> run = olx.rollout(
    ...     learner, olx.losses.hinge, stream.rounds, jnp.zeros(3), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, stream.truth).holds)
    True
    """
    check.instance("dual_ascent", "mirror", mirror, MirrorMap)
    check.instance("dual_ascent", "loss", loss, ScoreLoss)
    check.instance("dual_ascent", "ascent", ascent, Ascent)
    if loss.conjugate_fn is None:
        check_convex("dual_ascent", loss)
    if not isinstance(schedule, Process):
        schedule = check.positive("dual_ascent", "schedule", schedule)
    hparams = DualAscentHparams(mirror, loss, ascent, as_schedule(schedule))
    separable = mirror.separable and ascent.separable
    needs = within(loss, "loss", "outcome")
    return Learner(hparams, init, predict, update, bound, separable=separable, needs=needs)


def init(hp: DualAscentHparams, params: PyTree) -> DualAscentState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    memory, stats = hp.ascent.init(params), hp.schedule.init(params)
    return DualAscentState(tree.zeros_like(params), zero, stats, memory)


def predict(hp: DualAscentHparams, state: DualAscentState, context: PyTree) -> Array:
    c = hp.schedule.at(state.stats, context)
    return dot(hp.mirror.to_primal(jax.tree.map(lambda acc: acc / c, state.acc)), context)


def update(hp: DualAscentHparams, state: DualAscentState, feedback: Feedback) -> DualAscentState:
    now = problem(hp, state, feedback)
    centred = hp.mirror.center(now.acc)
    acc, change, memory = hp.ascent.step(state.memory, now._replace(acc=centred))
    if hp.mirror.centering is not None:
        rise = lambda acc: hp.mirror.conjugate(jax.tree.map(lambda leaf: leaf / now.c, acc))
        change = change + now.c * (rise(now.acc) - rise(centred))
    loss = Partial(_revealed, hp.loss, feedback.outcome)
    value, grad = jax.value_and_grad(loss)(now.score)
    own = feedback._replace(loss=loss, value=value, grad=grad, weight=now.weight)
    stats = hp.schedule.update(state.stats, own)
    return DualAscentState(acc, state.conjugates + change, stats, memory)


def problem(hp: DualAscentHparams, state: DualAscentState, feedback: Feedback) -> Problem:
    """What the ascent sees of a round."""
    x, score, y = feedback.context, feedback.action, feedback.outcome
    weight = jnp.where(hp.ascent.counts(score, y), jnp.asarray(feedback.weight, score.dtype), 0.0)
    c = hp.schedule.at(state.stats, x)
    return Problem(hp.mirror, hp.loss, c, state.acc, x, y, weight, score)


class Account(NamedTuple):
    """A run in the words of the lemmas, an entry per round; `f` stands for f - min f."""

    c: Float[Array, " T"]
    loss: Float[Array, " T"]  # g_t(w_t)
    other: Float[Array, " T"]  # g_t(u)
    paid: Float[Array, " T"]  # c_t f(u)
    drift: Float[Array, " T"]  # c_t B_{f*}((acc - lambda') / c_t, acc / c_t)
    change: Float[Array, " T"]  # c_t f*(acc / c_t) - c_{t-1} f*(acc / c_{t-1})
    energy: Float[Array, " T"] | None  # the square of the norm of lambda', over 2 c_t
    size: Float[Array, " T"]  # of the numbers that these are differences of
    conditions: dict[str, Bool[Array, " T"]]  # whether each round meets what the lemmas ask for


def account(hp: DualAscentHparams, trace: Trace, u: PyTree) -> Account:
    """What every round adds to both sides of the lemmas."""
    f = hp.mirror
    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], trace.state.acc))
    seen = trace.state.stats, trace.feedback.context
    before = jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf[:-1]]), seen)
    rest = f.conjugate(tree.zeros_like(jax.tree.map(lambda leaf: leaf[0], trace.state.acc)))
    least = lambda c, acc: c * (f.conjugate(jax.tree.map(lambda leaf: leaf / c, acc)) - rest)

    def one(before: PyTree, state: DualAscentState, feedback: Feedback) -> Account:
        now = problem(hp, state, feedback)
        c, tau = now.c, slope(now)
        after, _ = move(now, tau)
        ends = least(c, after), least(c, state.acc), now.weight * tau * now.score
        past = least(hp.schedule.at(*before), state.acc)
        energy = f.energy(tree.sub(after, state.acc))
        paid = c * (f.potential(u) + rest)
        loss = now.weight * hp.loss(now.score, now.y)
        other = now.weight * hp.loss(dot(u, now.x), now.y)
        return Account(
            c * jnp.ones_like(loss),
            loss,
            other,
            paid,
            ends[0] - ends[1] + ends[2],
            ends[1] - past,
            None if energy is None else energy / c,
            jnp.asarray(tree.sum(jax.tree.map(jnp.abs, (*ends, past, loss, other, c * rest))))
            + 4 * c * constants(f, u),
            {DOMAIN: f.outside(u) == 0} | hp.ascent.conditions(now),
        )

    return jax.vmap(one)(before, *trace)


def bound(hp: DualAscentHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Lemma 2, and for a fixed $c$ lemma 1: regret on the losses that the learner goes by.

    $$\sum_{s \le t} g_s(w_s) - g_s(u) \le c_t f(u) + \sum_{s \le t} c_s B_{f^*}\Big(
      \frac{acc_s - \lambda'_s}{c_s}, \frac{acc_s}{c_s}\Big) + \Big[ c f^*\Big(\frac{acc_s}c\Big)
      \Big]_{c_{s-1}}^{c_s}, \qquad \lambda'_s \in \partial g_s(w_s);$$

    the divergence is at most $\|\lambda'_s\|_*^2 / (2 c_s)$ where $f$ is 1-strongly convex, and
    the last term is never positive where $c$ does not decrease, which is how it is printed.
    """
    entries = account(hp, trace, u)
    rises = jnp.maximum(entries.change, 0.0)
    most = None if entries.energy is None else entries.paid + jnp.cumsum(entries.energy + rises)
    paid = jnp.where(jnp.isfinite(entries.paid), jnp.abs(entries.paid), 0.0)
    return Certificate(
        jnp.cumsum(entries.loss - entries.other),
        entries.paid + jnp.cumsum(entries.drift + entries.change),
        jnp.cumsum(entries.size) + paid,
        most,
        theorem="Shalev-Shwartz 2007, lemma 2",
    ).under(entries.conditions)


def _revealed(loss: ScoreLoss, outcome: PyTree, score: Array) -> Array:
    return loss(score, outcome)
