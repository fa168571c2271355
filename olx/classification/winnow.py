r"""Winnow: after a mistake, multiply each weight by $\beta^{y_t x_{t,i}}$, $\beta = e^\eta$.

$$w_{t,i} \propto \exp\Big(\eta \sum_{s \in M,\, s < t} y_s x_{s,i}\Big),$$

with $M$ the set of mistakes. It is the conservative dual ascent on the hinge with the entropy and
$c = 1/\eta$. Normalizing the weights does not change the predicted labels. Weights are positive;
the balanced form learns from $(x_t, -x_t)$ and has weights of both signs, $\propto \sinh(\cdot)$.

For $u$ in the simplex and any margin $\gamma$, with $H$ the sum of $\max(0, \gamma - y_s \langle u,
x_s\rangle)$ and $X$ the largest $\|x_s\|_\infty$, both over $M$,

$$\gamma |M| \le H + \frac{\log d}\eta + \frac\eta2 X^2 |M|.$$

The number $d$ of features enters only by its logarithm. The learner carries the theorem for $\gamma
= 1$; `winnow_mistakes` makes it for any $\gamma$. With the step $\eta = \sqrt{2 \log d / |M|} / X$,
which needs the number of mistakes before the run, it is solved for $|M|$:

$$|M| \le \frac H\gamma + \frac X{\gamma^{3/2}} \sqrt{2 H \log d} +
  \frac{2 X^2 \log d}{\gamma^2},$$

see `tuned_winnow_mistakes`. `self_tuned_winnow` has such a bound without that knowledge. It sets
its step by the number $m_t$ of mistakes before round $t$ and the largest row so far:

$$\frac1{\eta_t} = X_t \sqrt{\frac{m_t + 1}{\log d}}, \quad X_t = \max_{s \le t} \|x_s\|_\infty,
  \qquad |M| \le \frac H\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{H \log d} +
  \frac{4 X^2 \log d}{\gamma^2},$$

with $X$ the largest $X_t$.

Littlestone, Learning Quickly When Irrelevant Attributes Abound, 1988; Shalev-Shwartz, Online
Learning: Theory, Algorithms, and Applications, 2007, (5.7) and (5.8), figure 5.2 and corollary 6.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, own_name, public
from olx._words import computed
from olx.certificate import Certificate
from olx.convex import norms
from olx.core import STEP, Feedback, Learner, Process, Scalar
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import (
    Tally,
    alike,
    at_margin,
    at_price,
    counted,
    is_conservative,
    logarithm,
    self_tuned,
    solved,
)
from olx.frameworks.primal_dual import DualAscentHparams
from olx.losses.hinges import hinge
from olx.mirrors.entropy import negative_entropy
from olx.mirrors.orthant_entropy import unnormalized_entropy
from olx.mirrors.signed_entropy import signed_entropy
from olx.schedules.mistakes import MistakesStats, mistakes
from olx.theorem import About, Theorem


@public
def winnow(eta: Scalar | None = None, *, beta: Scalar | None = None) -> Learner:
    r"""Winnow on the simplex.

    eta: $\log \beta$, positive. For a comparator with margin $\gamma$ in all rounds,
        $\gamma / X^2$ gives at most $2 X^2 \log d / \gamma^2$ mistakes.
    beta: above 1, in place of `eta`.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.r_of_k(jax.random.key(0), rounds=200, features=30, r=1, k=2)
    >>> run = olx.rollout(winnow(1 / 5), olx.losses.zero_one, rounds, jnp.zeros(30))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    eta = _rate(eta, beta)
    learner = computed(dual_ascent(eta, negative_entropy(), hinge, conservative()), beta=_beta)
    return learner.carrying(winnow_mistakes(1.0))


@public
def unnormalized_winnow(eta: Scalar | None = None, *, beta: Scalar | None = None) -> Learner:
    """Winnow on the positive orthant: weights start at 1 and are not normalized.

    The scores are those of `winnow` times a positive number, so the labels are the same, unless
    weights are clipped: they are at most about the root of the largest float. Coordinates interact
    only in the score, so sparse rows are supported.

    eta, beta: one of them, as in `winnow`.
    """
    eta = _rate(eta, beta)
    return computed(dual_ascent(eta, unnormalized_entropy(), hinge, conservative()), beta=_beta)


@public
def balanced_winnow(
    eta: Scalar | None = None, total: Scalar = 1.0, *, beta: Scalar | None = None
) -> Learner:
    """Winnow with weights of both signs, whose absolute values sum to less than `total`.

    eta, beta: one of them, as in `winnow`.
    """
    eta = _rate(eta, beta)
    total = check.positive("total", total)
    return computed(dual_ascent(eta, signed_entropy(total), hinge, conservative()), beta=_beta)


@public
def self_tuned_winnow() -> Learner:
    """Winnow on the simplex with an automatic step size, for at least two weights.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.r_of_k(jax.random.key(0), rounds=200, features=30, r=1, k=2)
    >>> run = olx.rollout(self_tuned_winnow(), olx.losses.zero_one, rounds, jnp.zeros(30))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    schedule = Process(None, _first_stats, _next_stats, _step_size, STEP)
    learner = dual_ascent(schedule, negative_entropy(), hinge, conservative())
    return learner.carrying(self_tuned_winnow_mistakes(1.0))


def _first_stats(_: None, params: PyTree) -> MistakesStats:
    return _schedule(params).init(params)


def _next_stats(_: None, stats: MistakesStats, feedback: Feedback) -> MistakesStats:
    return _schedule(feedback.context).update(stats, feedback)


def _step_size(_: None, stats: MistakesStats, context: PyTree) -> Array:
    return _schedule(context).at(stats, context)


@own_name("self_tuned_winnow")
def _schedule(row: PyTree) -> Process:
    """The schedule for rows of this size."""
    size = sum(jnp.size(leaf) for leaf in jax.tree.leaves(row))
    if size < 2:
        raise RefusedType(f"`params` must hold two or more numbers, got {size}.")
    return mistakes(math.log(size), norms.l1())


def _beta(learner: Learner) -> Array:
    return jnp.exp(learner.hparams.eta.hparams)


@public
def winnow_mistakes(margin: Scalar) -> Theorem:
    r"""The bound (5.7), for `winnow`, $u$ in the simplex and any margin $\gamma$:

    $$\gamma |M| \le \frac{f(u)}\eta + \frac\eta2 \sum_{s \in M} \|x_s\|_\infty^2 + H \le
      \frac{\log d}\eta + \frac\eta2 X^2 |M| + H.$$
    """
    source = "Shalev-Shwartz 2007, (5.7)"
    return at_margin("winnow_mistakes", source, winnow_sides, margin, WINNOW)


def winnow_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return at_price(tally, jnp.maximum(tally.price, logarithm(u)))


@public
def tuned_winnow_mistakes(margin: Scalar) -> Theorem:
    r"""The bound (5.8), for `winnow` with the step that suits its number of mistakes.

    `right` is (5.7), which holds for every $\eta$. `published` is (5.8) after the rounds in which
    $\eta = \sqrt{2 \log d / |M|} / X$ for the mistakes so far, and infinite after others.
    """
    source = "Shalev-Shwartz 2007, (5.8)"
    return at_margin("tuned_winnow_mistakes", source, tuned_sides, margin, WINNOW)


def tuned_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    size, rounding = logarithm(u), 1e3 * jnp.finfo(tally.c.dtype).eps
    best = jnp.sqrt(tally.square * tally.count / (2 * size))
    tuned = jnp.abs(tally.c - best) <= rounding * best
    slope = jnp.sqrt(2 * size * tally.square) / tally.margin
    whole = solved(tally.gaps / tally.margin, slope)
    right = (tally.c * tally.price + tally.spent + tally.gaps) / tally.margin
    return counted(tally, right, jnp.where(tuned, whole, jnp.inf))


@public
def r_of_k_mistakes(r: int, k: int) -> Theorem:
    r"""At most $8 (r + k - \frac12)^2 \log d$ mistakes of `winnow` on `streams.r_of_k`, with `u`
    its truth and $\eta = 1 / (2 (r + k) - 1)$, which is the margin; $X = 1$.

    `right` is (5.7) solved for $|M|$, for any rows in $[-1, 1]^d$ and any $\eta$. `published` is
    the form above; it is infinite for another $\eta$ or a $u$ without that margin.
    """
    check.count("r", r)
    check.count("k", k)
    source, margin = "Shalev-Shwartz 2007, section 5.1.2", 0.5 / (r + k - 0.5)
    return at_margin("r_of_k_mistakes", source, r_of_k_sides, margin, WINNOW)


def r_of_k_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    spared = tally.margin - 1 / (2 * tally.c)  # the margin minus X^2 / (2 c), with X = 1
    paid = (tally.c * tally.price + tally.gaps) / safe.or_one(spared)
    rounding = 1e3 * jnp.finfo(paid.dtype).eps
    tuned = jnp.abs(tally.c * tally.margin - 1) <= rounding
    tuned &= tally.gaps <= rounding * tally.count
    published = jnp.where(tuned, 2 / tally.margin**2 * logarithm(u), jnp.inf)
    proof = counted(tally, jnp.where(spared > 0, paid, jnp.inf), published)
    return proof.given("rows must lie in [-1, 1]", tally.square <= 1 + rounding)


@public
def self_tuned_winnow_mistakes(margin: Scalar) -> Theorem:
    r"""Corollary 6, for `self_tuned_winnow`, $u$ in the simplex and any `margin` $\gamma$."""
    about = About("`self_tuned_winnow`", _is_self_tuned_winnow)
    source = "Shalev-Shwartz 2007, corollary 6"
    return at_margin("self_tuned_winnow_mistakes", source, self_tuned_sides, margin, about)


def self_tuned_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return self_tuned(tally, logarithm(u))


def _is_winnow(learner: Learner) -> bool:
    return is_conservative(learner, negative_entropy())


WINNOW = About("`winnow`", _is_winnow)


def _is_self_tuned_winnow(learner: Learner) -> bool:
    return alike(learner.hparams, self_tuned_winnow().hparams)


def _rate(eta: Scalar | None, beta: Scalar | None) -> Scalar:
    if (eta is None) == (beta is None):
        found = "neither" if eta is None else "both"
        raise RefusedType(f"give `eta` or `beta` = exp(eta), got {found}.")
    if beta is not None:
        factor: Scalar = check.above("beta", beta, 1, float("inf"))
        return math.log(factor) if isinstance(factor, int | float) else jnp.log(factor)
    return check.positive("eta", eta)
