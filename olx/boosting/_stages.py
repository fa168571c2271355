r"""The stages of gradient boosting: partial predictions, what copies pay, and the ball of scores.

From $y^0 = 0$ stage $i$ makes $y^i = \Pi_B(k_i\, y^{i-1} + e_i A^i(x))$, and its copy pays the
linear loss $a \mapsto \ell'(y^{i-1})\, a / L$. Copies see the row and this loss, not the outcome.

The ball holds the scores of $N$ stages with steps $\eta$ and base functions of size $D$. Its radius
is

$$B = \min\Big\{ \eta N D,\; \inf\{ b \ge D : \eta \beta_b b^2 \ge \epsilon_b D \} \Big\},$$

with the constants of the loss at scores of size $b$. The condition stays true once it is true:
$\beta_b b^2$ increases and $\epsilon_b$ decreases in $b$.

The account says how far each stage is behind the comparator, and why. A stage moves from $y$ to the
projection of $y + e (A(x) - \sigma y)$. For a convex loss with slope $g$ at $y$, any $f$ and any $W
\ge 1$, with $\Delta$ and $\Delta'$ the gaps before and after it,

$$\Delta' \le \Big(1 - \frac eW\Big) \Delta + e \sum_s g_s \Big( A_s - \frac{f_s}W \Big) +
  e \sum_s \Big( \frac1W - \sigma_s \Big) g_s y_s$$
$$+\, \frac{\beta e^2}2 \sum_s (A_s - \sigma_s y_s)^2 + \epsilon \sum_s \text{cut}_s,$$

where the cut is the length of the projection. On the line this needs the smoothness $\beta$ inside
the ball only: a cut point is followed by the slope at the boundary, which is $\epsilon$ at most.
The gap after the last stage is that of the action, as it was played.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 13.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._compiled import compiled
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.convex.roots import root
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.facts import AddsGradient, Separable, of_wrapper
from olx.frameworks import copies
from olx.frameworks.accounts import CONVEX
from olx.frameworks.lift import LiftHparams
from olx.losses.score import ScoreLoss
from olx.needs import Need, in_range
from olx.theorem import About, Theorem
from olx.wrapper import INNER, LOSS, lift_needs


class Stages(NamedTuple):
    votes: Float[Array, " n"]  # A^i(x)
    before: Float[Array, " n"]  # y^(i-1)
    raw: Float[Array, " n"]  # y^i before its projection
    after: Float[Array, " n"]  # y^i
    steps: Float[Array, " n"]  # e_i


@pytree
class Tangent:
    r"""What a copy pays, $\ell'(y)\, a / L$ for an action $a$, and the loss that it touches.

    A base learner that wants more than the slope, such as `greedy`, finds the rest here.
    """

    slope: Array
    offset: Array  # y
    scale: Scalar  # L
    loss: Partial  # l, a function of the whole prediction
    step: Array  # e, of this stage
    stage: Array  # from 0 to n - 1
    n: int = static()


def pay(tangent: Tangent, action: Array) -> Array:
    return tangent.slope * action / tangent.scale


def votes_of(inner: Learner, states: PyTree, context: PyTree) -> Float[Array, " n"]:
    """The predictions of all copies; refuses base learners that do not predict a number."""
    votes = copies.act(inner, states, context)
    if not isinstance(votes, jax.Array) or votes.ndim != 1:
        seen = jax.tree.map(lambda leaf: jnp.shape(leaf)[1:], votes)
        raise RefusedType(f"{_PREDICTS}, got actions of shape {seen}; {_REMEDY}.")
    return votes


def climb(votes: Array, keep: Array, steps: Array, radius: Scalar | None = None) -> Stages:
    """All stages; without a `radius` there is no projection."""

    def stage(y: Array, one: tuple) -> tuple[Array, tuple]:
        vote, keep, step = one
        raw = keep * y + step * vote
        after = raw if radius is None else jnp.clip(raw, -radius, radius)
        return after, (y, raw, after)

    _, (before, raw, after) = lax.scan(stage, jnp.zeros_like(votes[0]), (votes, keep, steps))
    return Stages(votes, before, raw, after, steps)


def slopes_of(feedback: Feedback, stages: Stages) -> Float[Array, " n"]:
    return jax.vmap(jax.grad(feedback.loss))(stages.before)


def teach(
    inner: Learner,
    states: PyTree,
    feedback: Feedback,
    stages: Stages,
    slopes: Float[Array, " n"],
    scale: Scalar,
) -> PyTree:
    """The states after each copy has paid its linear loss; refuses copies that read outcomes."""
    spread = lambda leaf: jnp.broadcast_to(leaf, (*slopes.shape, *jnp.shape(leaf)))
    shared = jax.tree.map(spread, feedback.loss)
    n, steep = slopes.size, spread(jnp.asarray(scale, slopes.dtype))
    tangents = Tangent(slopes, stages.before, steep, shared, stages.steps, jnp.arange(n), n)
    weights = spread(jnp.asarray(feedback.weight, slopes.dtype))
    learn = lambda told: copies.teach(
        inner, states, stages.votes, Partial(pay, tangents), told, weights
    )
    try:
        return learn(feedback._replace(outcome=None))
    except Exception as error:
        learn(feedback)  # raises the same error, unless the outcome is missing
        raise RefusedType(
            "`inner` must learn from its loss alone, but it reads the outcome of the "
            "round; take a learner that uses the gradient, such as `olx.linear(olx.ogd(...))`."
        ) from error


def theorem(
    name: str,
    source: str,
    apply: Callable[[PyTree, PyTree], Array],
    parts: tuple[Callable, Callable, Callable],
    about: About,
) -> Theorem:
    """A theorem against the function `apply(u, .)`.

    parts: how its account starts, what a round adds, and both sides; the second takes `apply` too.
    """
    check.takes("apply", apply, "u", "x")
    start, add, sides = parts
    return Theorem(name, source, start, Partial(add, as_tree(apply)), sides, about=about)


def booster(name: str, hparams: Any, functions: tuple, *theorems: Callable) -> Learner:
    """The learner of these numbers and of the functions `init`, `predict` and `update`.

    theorems: functions of the model of the base learner; it carries none if there is no model.
    """
    inner, model = hparams.inner, model_of(hparams.inner)
    demand = "outcomes must not exceed `target` in size"  # the constants hold for such outcomes
    remedy = "it is 1 unless given; give the largest size, or rescale the outcomes"
    small = Need("outcome", _within_target, demand, name, remedy)
    return Learner(
        hparams,
        *functions,
        facts=of_wrapper(inner),
        needs=(*lift_needs(INNER, inner), *lift_needs(LOSS, hparams.loss), small),
        theorems=() if model is None else tuple(make(model) for make in theorems),
    )


def model_of(learner: Learner) -> Partial | None:
    """The model in a base learner, a function of parameters and a row; None if there is none."""
    numbers = learner.hparams
    if isinstance(numbers, LiftHparams):
        return numbers.apply
    if isinstance(experts := getattr(numbers, "experts", None), tuple):
        return model_of(experts[0])
    inner = getattr(numbers, "inner", None)
    return model_of(inner) if isinstance(inner, Learner) else None


def check_arguments(
    inner: Learner, n: int, loss: ScoreLoss, bound: Scalar, target: Scalar, curved: bool = True
) -> tuple[Scalar, Scalar]:
    """Refuse a base learner, a number of copies or a loss that is none; give both sizes.

    curved: whether the loss must be smooth.
    """
    check.instance("inner", inner, Learner)
    check.size("n", n)
    point = isinstance(inner.facts.adds, AddsGradient)
    if point or isinstance(inner.facts.coordinates, Separable):
        raise RefusedType(f"{_PREDICTS}, got a point learner; {_REMEDY}.")
    check.instance("loss", loss, ScoreLoss)
    if loss.on_ball is None:
        raise RefusedType(
            "`loss` states no constants for scores of bounded size; take one of `olx.losses`, such "
            "as `squared`, or give your loss some: `on_ball=olx.losses.BallConstants(...)`."
        )
    if curved and (loss.on_ball.smooth_fn is None or loss.on_ball.excess_fn is None):
        raise RefusedType("`loss` is not smooth; `gradient_boost_linearized` takes such losses.")
    return check.positive("bound", bound), check.positive("target", target)


def check_eta(eta: Scalar, n: int) -> Scalar:
    rounding = 1e-6 / n  # a step of 1 / n in float32 may lie just below
    return check.between("eta", eta, 1 / n, 1.0, rounding)


def check_played(own: ScoreLoss, feedback: Feedback) -> None:
    """Refuse a game with another loss than the one that gave the constants."""
    is_loss = lambda leaf: isinstance(leaf, ScoreLoss)
    for played in jax.tree.leaves(feedback.loss, is_leaf=is_loss):
        if is_loss(played) and played.value_fn is not own.value_fn:
            raise RefusedType(
                f"the game is played with the loss `{_name(played)}`, but `loss` is "
                f"`{_name(own)}`, and its constants need not hold; give both the same loss."
            )


_PREDICTS = "`inner` must predict a real number"
_REMEDY = "put a point learner into `olx.linear`, or into `olx.model`"


@functools.partial(compiled, static=(1,))  # else every call compiles its search
def ball_radius(eta: Scalar, n: int, loss: ScoreLoss, bound: Scalar, target: Scalar) -> Array:
    """The radius of the ball; differentiable in all numbers."""
    dtype = jnp.result_type(float, eta, bound, target)
    low, high = jnp.asarray(bound, dtype), jnp.asarray(eta * n * bound, dtype)
    spare = Partial(_spare, loss, *(jnp.asarray(x, dtype) for x in (eta, bound, target)))
    inside = root(spare, low, high, low)
    radius = jnp.where(spare(high) <= 0, high, inside)
    return jnp.where(spare(low) >= 0, low, radius)


def lipschitz(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_arguments` has checked
    return loss.on_ball.lipschitz_fn(loss.hparams, b, target)


def smooth(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_arguments` has checked
    assert loss.on_ball.smooth_fn is not None
    return loss.on_ball.smooth_fn(loss.hparams, b, target)


def excess(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_arguments` has checked
    assert loss.on_ball.excess_fn is not None
    return loss.on_ball.excess_fn(loss.hparams, b, target)


def _within_target(hparams: Any, params: PyTree, rounds: Rounds) -> PyTree:
    top = hparams.target
    if not isinstance(top, Tracer):  # of a batch: the largest one
        top = float(np.max(top)) * (1 + 1e-6)
    return jax.tree.map(lambda outcome: in_range(outcome, -top, top), rounds.outcome)


def _spare(loss: ScoreLoss, eta: Array, bound: Array, target: Array, b: Array) -> Array:
    return eta * smooth(loss, b, target) * b**2 - excess(loss, b, target) * bound


def _name(loss: ScoreLoss) -> str:
    return getattr(loss.value_fn, "__name__", "unnamed").lstrip("_")


BOUNDED = "base predictions must not exceed `bound`"
STEEP = "slopes must not exceed the Lipschitz constant of `loss`"
SMOOTH = "stages must keep the smoothness and the excess of `loss`"


class Terms(NamedTuple):
    """One sum per stage; see above."""

    regret: Float[Array, " n"]  # of g (A - f / W)
    pull: Float[Array, " n"]  # of (1 / W - sigma) g y
    bend: Float[Array, " n"]  # of (A - sigma y)^2
    cut: Float[Array, " n"]


class Numbers(NamedTuple):
    """The numbers of a booster that its account needs."""

    steps: Float[Array, " n"]  # e
    norm: Scalar  # W
    bound: Scalar  # D
    steep: Scalar  # L
    smooth: Scalar  # beta
    excess: Scalar  # epsilon


class Account(NamedTuple):
    gaps: Float[Array, " n+1"]  # Delta_0, ..., Delta_N
    terms: Terms
    size: Float[Array, ""]  # the size of the terms, for rounding errors
    rounds: Clock
    met: dict[str, Bool[Array, ""]]


def open_account(n: int, params: PyTree) -> Account:
    rounds = clock.start(None, params)
    zeros = jnp.zeros(n, rounds.dtype)
    names = UNIT_WEIGHTS, CONVEX, BOUNDED, STEEP, SMOOTH
    met: dict[str, Array] = dict.fromkeys(names, jnp.ones((), bool))
    gaps = jnp.zeros(n + 1, rounds.dtype)
    return Account(gaps, Terms(zeros, zeros, zeros, zeros), gaps[0], rounds, met)


def add_round(
    numbers: Numbers,
    account: Account,
    feedback: Feedback,
    stages: Stages,
    shares: Float[Array, " n"],
    f: Array,
    loss: Callable[[Array], Array],
) -> Account:
    """Add a round.

    shares: sigma.
    f: the prediction of the comparator.
    loss: the loss of the stages, whose slopes the copies got.
    """
    e, w, d, steep, smooth, excess = numbers
    votes, y = stages.votes, stages.before
    here, slopes = jax.vmap(jax.value_and_grad(loss))(y)
    played, other = loss(feedback.action), loss(f)
    after, moved = jnp.append(here[1:], loss(stages.after[-1])), votes - shares * y
    cut = jnp.abs(stages.raw - stages.after)
    new = Terms(slopes * (votes - f / w), (1 / w - shares) * slopes * y, moved**2, cut)
    around = jnp.abs(slopes) * (jnp.abs(votes) + jnp.abs(y) + jnp.abs(f)) + smooth * moved**2
    size = jnp.abs(here) + jnp.abs(after) + jnp.abs(other) + around
    slack = 64 * jnp.finfo(size.dtype).eps * size
    rise = e * slopes * moved + smooth / 2 * (e * moved) ** 2 + excess * cut
    more = 1 + 64 * jnp.finfo(size.dtype).eps
    # Each test is false for NaN, so that a NaN shows in the sides.
    broken = {
        UNIT_WEIGHTS: jnp.asarray(feedback.weight) != 1,
        CONVEX: jnp.any(other < here + slopes * (f - y) - slack),
        BOUNDED: jnp.any(jnp.abs(votes) > d * more),
        STEEP: jnp.any(jnp.abs(slopes) > steep * more),
        SMOOTH: jnp.any(after > here + rise + slack),
    }
    return Account(
        account.gaps + jnp.append(here, played) - other,
        jax.tree.map(jnp.add, account.terms, new),
        account.size + w * jnp.max(size),
        clock.advance(account.rounds, True),
        {name: account.met[name] & ~bad for name, bad in broken.items()},
    )


def regret_sides(
    numbers: Numbers,
    account: Account,
    published: Array,
    ends: tuple[Array, Array] | None = None,
) -> Certificate:
    """The gap of the last stage, and the inequalities of all stages together.

    ends: what replaces the gaps of the first and of the last stage, if not None.
    """
    first, last = (account.gaps[0], account.gaps[-1]) if ends is None else ends
    follow = lambda gap, one: (one[0] * gap + one[1], None)
    right, _ = lax.scan(follow, first, _factors(numbers, account))
    return _sides(account, last, right, published)


def step_sides(numbers: Numbers, account: Account) -> Certificate:
    """The inequality of the stage with the least slack."""
    factors, added = _factors(numbers, account)
    left, right = account.gaps[1:], factors * account.gaps[:-1] + added
    at = jnp.argmin(right - left)
    return _sides(account, left[at], right[at], None)


def worst(account: Account) -> Array:
    """The largest regret of a copy, at least 0."""
    return jnp.maximum(jnp.max(account.terms.regret), 0.0)


def length(u: PyTree) -> Array:
    return jnp.sqrt(jnp.asarray(tree.vdot(u, u)))


def _factors(numbers: Numbers, account: Account) -> tuple[Array, Array]:
    e, terms = numbers.steps, account.terms
    bend = numbers.smooth / 2 * e**2 * terms.bend
    added = e * (terms.regret + terms.pull) + bend + numbers.excess * terms.cut
    return 1 - e / numbers.norm, added


def _sides(account: Account, left: Array, right: Array, published: Array | None) -> Certificate:
    proof = Certificate(left, right, account.size + jnp.abs(right), published)
    return proof.under(account.met)
