r"""Mistake bounds: how often a classifier was wrong, $y_s \langle w_s, x_s\rangle \le 0$.

$M$ is the set of mistakes up to a round, $H$ the hinge of the comparator on them, $\max(0, \gamma -
y_s \langle u, x_s\rangle)$, $X$ the largest $\|x_s\|_*$ among them, $f$ the potential of the
learner, $\beta$-strongly convex. The left side is $|M|$ after every round, for rounds of weight 1;
the right side is what the proof knows before it takes the largest of each sum, as is `printed`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 5.
Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Run, Scalar
from olx.hindsight.certify import trace_of
from olx.learners.dual_ascent import DualAscentHparams, DualAscentState, account, bound
from olx.learners.lift import dot
from olx.losses.hinges import hinge


class Tally(NamedTuple):
    wrong: Bool[Array, " T"]
    margin: Float[Array, " T"]  # y <u, x>
    size: Float[Array, " T"]  # the dual norm of x, squared, over the modulus
    c: Float[Array, " T"]
    price: Float[Array, ""]  # f(u)


def hinge_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""(2.1): a mistake is a hinge of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) + R(u)$,
    with the certified regret of the learner for $R$.

    learner: a `dual_ascent` on `hinge` or `margin_hinge`; a conservative one has losses on its
        mistakes only.
    """
    trace, hp = trace_of("hinge_bound", learner, run), learner.hparams
    check.instance("hinge_bound", "learner.hparams", hp, DualAscentHparams)
    if hp.loss.value_fn is not hinge.value_fn:
        raise TypeError("hinge_bound: the learner must go by `hinge` or `margin_hinge`.")
    entries, regret = jax.jit(account)(hp, trace, u), jax.jit(bound)(hp, trace, u)
    wrong = trace.feedback.outcome * trace.feedback.action <= 0
    total = lambda right: (jnp.cumsum(entries.other) + right) / hp.loss.hparams
    printed = None if regret.printed is None else total(regret.printed)
    return _certificate(wrong, total(regret.right), printed, "Shalev-Shwartz 2007, (2.1)")


def conservative_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""(5.2), for any conservative learner with a fixed $c$ and any margin:

    $$\gamma |M| \le c f(u) + \frac{1}{2 \beta c} \sum_{s \in M} \|x_s\|_*^2 + H
      \le c f(u) + \frac{X^2 |M|}{2 \beta c} + H.$$
    """
    tally = _tally("conservative_bound", learner, run, u)
    margin = check.positive("conservative_bound", "margin", margin)
    return _conservative(tally, margin, tally.price, "Shalev-Shwartz 2007, (5.2)")


def perceptron_mistake_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollaries 5 and 7, for `perceptron` and `pnorm_perceptron`, with $\gamma = 1$:

    $$|M| \le H + \sqrt{\tfrac2\beta f(u) \sum_{s \in M} \|x_s\|_*^2} \le
      H + X \sqrt{\tfrac2\beta f(u) H} + \tfrac2\beta f(u) X^2,$$

    where $\frac2\beta f(u)$ is $\|u\|_2^2$ for the first, $(p - 1) \|u\|_q^2$ for the second. It
    holds for every conservative learner with $f(\lambda u) \le \lambda^2 f(u)$, whatever its $c$.
    """
    tally = _tally("perceptron_mistake_bound", learner, run, u)
    gaps, twice = _hinge(tally, 1.0), 2 * tally.price
    squares = jnp.where(tally.wrong, tally.size, 0.0)
    sums, printed = jnp.cumsum(squares), _solved(gaps, jnp.sqrt(twice * lax.cummax(squares)))
    name = "Shalev-Shwartz 2007, corollaries 5 and 7"
    return _certificate(tally.wrong, gaps + jnp.sqrt(twice * sums), printed, name)


def separable_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""If $y_s \langle u, x_s\rangle \ge \gamma$ in all rounds so far, $|M| \le \frac2\beta f(u)
    X^2 / \gamma^2$ with $X$ over all rounds, which is $\|u\|^2 X^2 / \gamma^2$ for `perceptron`; if
    not, the right side is infinite."""
    tally = _tally("separable_bound", learner, run, u)
    margin = check.positive("separable_bound", "margin", margin)
    rounding = 1e3 * jnp.finfo(tally.margin.dtype).eps
    fails = jnp.cumsum(tally.margin < margin * (1 - rounding)) > 0
    right = jnp.where(fails, jnp.inf, 2 * tally.price * lax.cummax(tally.size) / margin**2)
    return _certificate(tally.wrong, right, None, "Zhang 2023, chapter 14, the Perceptron")


def winnow_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""(5.7), for `winnow` and $u$ in the simplex: (5.2), and $f(u) \le \log d$ where it is
    printed."""
    tally = _tally("winnow_bound", learner, run, u)
    margin = check.positive("winnow_bound", "margin", margin)
    most = jnp.where(jnp.isfinite(tally.price), _logarithm(u), jnp.inf)
    return _conservative(tally, margin, most, "Shalev-Shwartz 2007, (5.7)")


def r_of_k_bound(learner: Learner, run: Run, u: PyTree, r: int, k: int) -> Certificate:
    r"""At most $8 (r + k - \frac12)^2 \log d$ mistakes on `streams.r_of_k`, whose truth is `u`, for
    `winnow` with $\eta = 1 / (2 (r + k) - 1)$: the margin over $X^2 = 1$."""
    tally = _tally("r_of_k_bound", learner, run, u)
    size = r + k - 0.5
    spared = 0.5 / size - 1 / (2 * tally.c)  # of the margin, once each mistake has paid its X^2
    right = (tally.c * tally.price + _hinge(tally, 0.5 / size)) / jnp.maximum(spared, 0.0)
    printed = jnp.full_like(right, 8 * size**2) * _logarithm(u)
    return _certificate(tally.wrong, right, printed, "Shalev-Shwartz 2007, section 5.1.2")


def self_tuned_winnow_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""Corollary 6, for `self_tuned_winnow`, $u$ in the simplex and any margin, with $X$ over all
    rounds:

    $$|M| \le \frac H\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{H \log d} +
      \frac{4 X^2 \log d}{\gamma^2}.$$
    """
    tally = _tally("self_tuned_winnow_bound", learner, run, u)
    margin = check.positive("self_tuned_winnow_bound", "margin", margin)
    gaps, most = _hinge(tally, margin), _logarithm(u)
    return _self_tuned(tally, gaps, margin, most, "Shalev-Shwartz 2007, corollary 6")


def self_tuned_aggressive_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 6, for `self_tuned_aggressive` and $f(u) \le U$, with $X$ and the hinge $G$ of $u$
    over all rounds:

    $$|M| \le \frac G\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{U G} + \frac{4 X^2 U}{\gamma^2}.$$
    """
    tally = _tally("self_tuned_aggressive_bound", learner, run, u)
    margin, complexity = learner.hparams.loss.hparams, learner.hparams.schedule.hparams.complexity
    gaps = jnp.cumsum(jnp.maximum(margin - tally.margin, 0.0))
    return _self_tuned(tally, gaps, margin, complexity, "Shalev-Shwartz 2007, theorem 6")


def _conservative(tally: Tally, margin: Scalar, most: Array, name: str) -> Certificate:
    spent, at_most = _sums(tally, 1 / (2 * tally.c))
    whole = lambda price, spent: (tally.c * price + spent + _hinge(tally, margin)) / margin
    return _certificate(tally.wrong, whole(tally.price, spent), whole(most, at_most), name)


def _self_tuned(tally: Tally, gaps: Array, margin, complexity, name: str) -> Certificate:
    spent, _ = _sums(tally, 1 / (2 * tally.c))
    last = lax.cummax(jnp.where(tally.wrong, jnp.arange(gaps.size), -1))
    at_last = lambda curve: jnp.where(last >= 0, curve[jnp.maximum(last, 0)], 0.0)
    right = at_last(tally.c * tally.price + gaps + spent) / margin  # no mistake, no change
    far = tally.price > complexity * (1 + 1e3 * jnp.finfo(right.dtype).eps)
    slope = 2 * jnp.sqrt(complexity * lax.cummax(tally.size)) / margin
    printed = jnp.where(far, jnp.inf, _solved(gaps / margin, slope))
    return _certificate(tally.wrong, right, printed, name)


def _tally(owner: str, learner: Learner, run: Run, u: PyTree) -> Tally:
    trace_of(owner, learner, run)
    hp = learner.hparams
    check.instance(owner, "learner.hparams", hp, DualAscentHparams)
    norm, modulus = hp.mirror.norm, hp.mirror.modulus
    if norm is None or modulus is None:
        raise TypeError(f"{owner}: the mirror map states no norm; `olx.certify` needs none.")

    def one(state: DualAscentState, feedback: Feedback):
        x, y = feedback.context, feedback.outcome
        c = jnp.asarray(hp.schedule.at(state.stats, x), jnp.result_type(feedback.action))
        return y * feedback.action <= 0, y * dot(u, x), norm.dual(x) ** 2 / modulus, c

    least = hp.mirror.conjugate(jax.tree.map(jnp.zeros_like, u))
    price = hp.mirror.potential(u) + least + hp.mirror.outside(u)
    wrong, margin, size, c = jax.jit(jax.vmap(one))(*run.trace)
    return Tally(wrong, margin, size, c, price)


def _hinge(tally: Tally, margin: Scalar) -> Array:
    return jnp.cumsum(jnp.where(tally.wrong, jnp.maximum(margin - tally.margin, 0.0), 0.0))


def _sums(tally: Tally, factor: Scalar | Array) -> tuple[Array, Array]:
    """The sum of `factor` times the squares of the mistakes, and what their largest makes of it."""
    squares = jnp.where(tally.wrong, tally.size, 0.0)
    count = jnp.cumsum(tally.wrong.astype(squares.dtype))
    return jnp.cumsum(factor * squares), factor * lax.cummax(squares) * count


def _solved(constant: Array, slope: Array) -> Array:
    r"""Lemma 19: $m \le$ `constant` + `slope` $\sqrt m$ implies that $m$ is at most this."""
    return constant + slope**2 + slope * jnp.sqrt(constant)


def _logarithm(u: PyTree) -> float:
    return math.log(sum(jnp.size(leaf) for leaf in jax.tree.leaves(u)))


def _certificate(wrong: Array, right: Array, printed: Array | None, name: str) -> Certificate:
    count = jnp.cumsum(wrong.astype(right.dtype))
    scale = count + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return Certificate(count, right, scale, printed, theorem=name)
