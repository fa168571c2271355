r"""Mistake bounds of `dual_ascent` classifiers: the account, and theorems that several rules share.

$M$ is the set of mistakes so far, $y_s \langle w_s, x_s\rangle \le 0$. $H$ is the sum of the
comparator's hinge losses $\max(0, \gamma - y_s \langle u, x_s\rangle)$ over $M$, $X$ the largest
$\|x_s\|_*$ in $M$. For classes, the margin of a row of scores replaces $y_s \langle u, x_s\rangle$,
and $\|a_s\|_*$ replaces $\|x_s\|_*$, with $a_s$ the matrix of $x_s$ in the row of the label and
$-x_s$ in that of its best rival. $f$ is the potential minus its minimum, $\beta$-strongly convex.
The left side is $|M|$. Weights must be 1, or 0 for a round that does not count. `right` uses the
actual sums; `published` replaces each by count times maximum.

Every `dual_ascent` on a hinge has a mistake bound from its certified regret. A mistake has a hinge
loss of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) + R(u)$ with $R$ the regret bound of
`olx.frameworks.primal_dual`. It holds for the multiclass hinge too.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 5 and (2.1).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import primal_dual
from olx.frameworks.ascents.base import conservative, uniform
from olx.frameworks.lift import dot, transposed
from olx.frameworks.primal_dual import DualAscentHparams, DualAscentState, finite, fixed, rate
from olx.losses.class_hinges import multiclass_hinge
from olx.losses.hinges import hinge
from olx.losses.margin import margin, mistaken
from olx.mirrors.base import MirrorMap
from olx.theorem import About, Theorem


class Tally(NamedTuple):
    margin: Float[Array, ""]  # the gamma of the theorem
    price: Float[Array, ""]  # f(u), infinite outside the domain
    c: Float[Array, ""]
    count: Float[Array, ""]  # number of mistakes
    gaps: Float[Array, ""]  # the sum of the hinge of u over mistakes, or over all rounds
    all_gaps: Float[Array, ""]  # the sum of the hinge of u over all rounds
    squares: Float[Array, ""]  # the sum of |x|_*^2 / beta over mistakes
    spent: Float[Array, ""]  # the sum of |x|_*^2 / (2 beta c) over mistakes
    square: Float[Array, ""]  # the largest |x|_*^2 / beta of a mistake
    longest: Float[Array, ""]  # the largest |x|_*^2 / beta of all rounds
    known: Float[Array, ""]  # c f(u) + `gaps` + `spent` at the last mistake, 0 before the first
    every: Bool[Array, ""]  # whether `gaps` sums over all rounds
    apart: Bool[Array, ""]  # whether u had the margin in all rounds
    unit: Bool[Array, ""]  # whether all weights were 1


def open_tally(
    margin: Scalar, hp: DualAscentHparams, state: DualAscentState, u: PyTree, every: bool = False
) -> Tally:
    u = check.comparator(u, state.acc)
    least = hp.mirror.conjugate(jax.tree.map(jnp.zeros_like, u))
    inside, true = hp.mirror.outside(u) == 0, jnp.ones((), bool)
    price = jnp.where(inside, hp.mirror.potential(u) + least, jnp.inf)
    zeros = (jnp.zeros_like(price),) * 9
    asked = jnp.asarray(margin, price.dtype)
    return Tally(asked, price, *zeros, every=jnp.asarray(every), apart=true, unit=true)


def add_round(
    hp: DualAscentHparams, tally: Tally, state: DualAscentState, feedback: Feedback, u: PyTree
) -> Tally:
    x, y = feedback.context, feedback.outcome
    assert hp.mirror.norm is not None  # the theorems are about maps that state their norm
    c = rate(hp, state, x) * jnp.ones_like(tally.c)
    wrong, ahead = mistaken(feedback.action, y), margin(dot(u, x), y)
    gap = jnp.maximum(tally.margin - ahead, 0.0)
    direction = jax.grad(margin)(feedback.action, y) if hp.loss.of_classes else 1.0
    size = hp.mirror.norm.dual(transposed(direction, x)) ** 2 / hp.mirror.modulus
    square = jnp.where(wrong, size, 0.0)
    gaps = tally.gaps + jnp.where(wrong | tally.every, gap, 0.0)
    spent = tally.spent + 1 / (2 * c) * square
    rounding = 1e3 * jnp.finfo(gap.dtype).eps
    return Tally(
        tally.margin,
        tally.price,
        c,
        tally.count + jnp.where(wrong, 1.0, 0.0),
        gaps,
        tally.all_gaps + gap,
        tally.squares + square,
        spent,
        jnp.maximum(tally.square, square),
        jnp.maximum(tally.longest, size),
        jnp.where(wrong, c * tally.price + gaps + spent, tally.known),
        tally.every,
        tally.apart & (ahead >= tally.margin * (1 - rounding)),
        tally.unit & (feedback.weight == 1),
    )


def counted(tally: Tally, right: Array, published: Array | None = None) -> Certificate:
    """The certificate that the number of mistakes is at most `right`."""
    proof = Certificate(tally.count, right, tally.count + finite(right), published)
    return proof.given(DOMAIN, jnp.isfinite(tally.price)).given(UNIT_WEIGHTS, tally.unit)


def at_margin(name: str, source: str, sides: Callable, margin: Scalar, about: About) -> Theorem:
    """A theorem about the `Tally` with this margin."""
    opened = Partial(open_tally, check.positive("margin", margin))
    return Theorem(name, source, opened, add_round, sides, about=about)


@public
def conservative_mistakes(margin: Scalar) -> Theorem:
    r"""(5.2), for any conservative learner with a fixed $c$ and any margin:

    $$\gamma |M| \le c f(u) + \frac{1}{2 \beta c} \sum_{s \in M} \|x_s\|_*^2 + H
      \le c f(u) + \frac{X^2 |M|}{2 \beta c} + H.$$
    """
    about = About(
        "a `dual_ascent` on a hinge by `conservative()` with a fixed schedule and a norm",
        is_conservative,
    )
    source = "Shalev-Shwartz 2007, (5.2)"
    return at_margin("conservative_mistakes", source, conservative_sides, margin, about)


def conservative_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return at_price(tally, tally.price)


def at_price(tally: Tally, most: Array) -> Certificate:
    """The bound (5.2); `published` uses `most` in place of f(u)."""
    at_most = 1 / (2 * tally.c) * tally.square * tally.count
    whole = lambda price, spent: (tally.c * price + spent + tally.gaps) / tally.margin
    return counted(tally, whole(tally.price, tally.spent), whole(most, at_most))


def self_tuned(tally: Tally, complexity: Scalar) -> Certificate:
    """Mistake bound if the step size depends on the mistakes, for f(u) at most `complexity`."""
    far = tally.price > complexity * (1 + 1e3 * jnp.finfo(tally.price.dtype).eps)
    slope = 2 * jnp.sqrt(complexity * tally.longest) / tally.margin
    published = jnp.where(far, jnp.inf, solved(tally.gaps / tally.margin, slope))
    return counted(tally, tally.known / tally.margin, published)


def solved(constant: Array, slope: Array) -> Array:
    r"""Lemma 19: $m \le$ `constant` + `slope` $\sqrt m$ implies that $m$ is at most this."""
    return constant + slope**2 + slope * jnp.sqrt(constant)


def logarithm(u: PyTree) -> float:
    """The logarithm of the number of weights."""
    return math.log(sum(jnp.size(leaf) for leaf in jax.tree.leaves(u)))


def alike(one: PyTree, *others: PyTree) -> bool:
    """Whether `one` has the structure of one of the others: the same factory, any numbers."""
    return jax.tree.structure(one) in map(jax.tree.structure, others)


def on_hinge(hp: DualAscentHparams) -> bool:
    return hp.loss.value_fn in (hinge.value_fn, multiclass_hinge.value_fn)


def is_conservative(learner: Learner, *mirrors: MirrorMap) -> bool:
    """Whether it is a conservative `dual_ascent`, its step size fixed, its map among `mirrors`."""
    hp = learner.hparams
    if not isinstance(hp, DualAscentHparams) or not alike(
        hp.ascent, conservative(), conservative(uniform())
    ):
        return False
    known = not mirrors or alike(hp.mirror, *mirrors)
    return known and on_hinge(hp) and fixed(hp) and hp.mirror.states_norm


class HingeAccount(NamedTuple):
    lemma: primal_dual.Account
    count: Float[Array, ""]
    unit: Bool[Array, ""]


def open_hinge(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> HingeAccount:
    lemma = primal_dual.open_account(hp, state, u)
    return HingeAccount(lemma, jnp.zeros_like(lemma.c), jnp.ones((), bool))


def add_hinge(
    hp: DualAscentHparams,
    account: HingeAccount,
    state: DualAscentState,
    feedback: Feedback,
    u: PyTree,
) -> HingeAccount:
    return HingeAccount(
        primal_dual.add_round(hp, account.lemma, state, feedback, u),
        account.count + jnp.where(mistaken(feedback.action, feedback.outcome), 1.0, 0.0),
        account.unit & (feedback.weight == 1),
    )


def hinge_sides(hp: DualAscentHparams, account: HingeAccount, u: PyTree) -> Certificate:
    r"""(2.1): a mistake has a hinge loss of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) +
    R(u)$, with $R$ the certified regret bound of the learner. For a conservative learner only
    mistakes have a loss."""
    regret = primal_dual.both_sides(hp, account.lemma, u)
    total = lambda side: None if side is None else (account.lemma.other + side) / hp.loss.hparams
    right, published = total(regret.right), total(regret.published)
    assert right is not None
    proof = Certificate(account.count, right, account.count + finite(right), published)
    return proof.under(regret.conditions).given(UNIT_WEIGHTS, account.unit)


hinge_mistakes = Theorem(
    "hinge_mistakes", "Shalev-Shwartz 2007, (2.1)", open_hinge, add_hinge, hinge_sides
)
