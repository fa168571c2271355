r"""Mistake bounds: how often a classifier was wrong, $y_s \langle w_s, x_s\rangle \le 0$.

$M$ is the set of mistakes up to a round, $H$ the hinge of the comparator on them, $\max(0, \gamma -
y_s \langle u, x_s\rangle)$, $X$ the largest $\|x_s\|_*$ among them, $f$ the potential of the
learner, $\beta$-strongly convex. The left side is $|M|$ after every round, for rounds of weight 0,
which do not count, and 1. `right` has the sums themselves, `printed` the largest of each.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 5.
Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Run, Scalar
from olx.frameworks.dual_ascent import account, bound
from olx.hindsight import about
from olx.hindsight.game import judged, played, unit_weights
from olx.hindsight.tally import (
    Tally,
    counted,
    hinge_of,
    like_decisions,
    mistakes,
    sums_of,
    tally_of,
)


def hinge_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""(2.1): a mistake is a hinge of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) + R(u)$,
    with the certified regret of the learner for $R$.

    learner: a `dual_ascent` on `hinge` or `margin_hinge`; a conservative one has losses on its
        mistakes only.
    """
    game, hp = played("hinge_bound", about.HINGED, learner, run, u), learner.hparams
    u = like_decisions("hinge_bound", game)
    entries, regret = jax.jit(account)(hp, game.trace, u), jax.jit(bound)(hp, game.trace, u)
    feedback = game.trace.feedback
    wrong = feedback.outcome * feedback.action <= 0
    total = lambda right: (jnp.cumsum(entries.other) + right) / hp.loss.hparams
    printed = None if regret.printed is None else total(regret.printed)
    proof = mistakes(wrong, total(regret.right), printed, "Shalev-Shwartz 2007, (2.1)")
    return judged(game, unit_weights(game, proof.under(regret.conditions)))


def conservative_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""(5.2), for any conservative learner with a fixed $c$ and any margin:

    $$\gamma |M| \le c f(u) + \frac{1}{2 \beta c} \sum_{s \in M} \|x_s\|_*^2 + H
      \le c f(u) + \frac{X^2 |M|}{2 \beta c} + H.$$
    """
    tally = tally_of("conservative_bound", about.CONSERVATIVE, learner, run, u)
    margin = check.positive("conservative_bound", "margin", margin)
    return _conservative(tally, margin, tally.price, "Shalev-Shwartz 2007, (5.2)")


def perceptron_mistake_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollaries 5 and 7, for `perceptron` and `pnorm_perceptron`, with $\gamma = 1$:

    $$|M| \le H + \sqrt{\tfrac2\beta f(u) \sum_{s \in M} \|x_s\|_*^2} \le
      H + X \sqrt{\tfrac2\beta f(u) H} + \tfrac2\beta f(u) X^2,$$

    where $\frac2\beta f(u)$ is $\|u\|_2^2$ for the first, $(p - 1) \|u\|_q^2$ for the second. It
    holds for every conservative learner with $f(\lambda u) \le \lambda^2 f(u)$, whatever its $c$.
    """
    tally = tally_of("perceptron_mistake_bound", about.PERCEPTRONS, learner, run, u)
    gaps, twice = hinge_of(tally, 1.0), 2 * tally.price
    squares = jnp.where(tally.wrong, tally.size, 0.0)
    sums, printed = jnp.cumsum(squares), _solved(gaps, jnp.sqrt(twice * lax.cummax(squares)))
    name = "Shalev-Shwartz 2007, corollaries 5 and 7"
    return counted(tally, gaps + jnp.sqrt(twice * sums), printed, name)


def separable_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""If $y_s \langle u, x_s\rangle \ge \gamma$ in all rounds so far, $|M| \le \frac2\beta f(u)
    X^2 / \gamma^2$ with $X$ over all rounds, which is $\|u\|^2 X^2 / \gamma^2$ for `perceptron`."""
    tally = tally_of("separable_bound", about.PERCEPTRONS, learner, run, u)
    margin = check.positive("separable_bound", "margin", margin)
    rounding = 1e3 * jnp.finfo(tally.margin.dtype).eps
    right = 2 * tally.price * lax.cummax(tally.size) / margin**2
    met = {"`u` must have the margin in every round": tally.margin >= margin * (1 - rounding)}
    return counted(tally, right, None, "Zhang 2023, chapter 14, the Perceptron", met)


def winnow_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""(5.7), for `winnow` and $u$ in the simplex: (5.2), and $f(u) \le \log d$ where it is
    printed."""
    tally = tally_of("winnow_bound", about.WINNOW, learner, run, u)
    margin = check.positive("winnow_bound", "margin", margin)
    return _conservative(
        tally, margin, jnp.maximum(tally.price, _logarithm(u)), "Shalev-Shwartz 2007, (5.7)"
    )


def r_of_k_bound(learner: Learner, run: Run, u: PyTree, r: int, k: int) -> Certificate:
    r"""At most $8 (r + k - \frac12)^2 \log d$ mistakes on `streams.r_of_k`, whose truth is `u`, for
    `winnow` with $\eta = 1 / (2 (r + k) - 1)$: the margin over $X^2 = 1$."""
    tally = tally_of("r_of_k_bound", about.WINNOW, learner, run, u)
    size = r + k - 0.5
    spared = 0.5 / size - 1 / (2 * tally.c)  # of the margin, once each mistake has paid its X^2
    right = (tally.c * tally.price + hinge_of(tally, 0.5 / size)) / jnp.maximum(spared, 0.0)
    printed = jnp.full_like(right, 8 * size**2) * _logarithm(u)
    return counted(tally, right, printed, "Shalev-Shwartz 2007, section 5.1.2")


def self_tuned_winnow_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""Corollary 6, for `self_tuned_winnow`, $u$ in the simplex and any margin, with $X$ over all
    rounds:

    $$|M| \le \frac H\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{H \log d} +
      \frac{4 X^2 \log d}{\gamma^2}.$$
    """
    tally = tally_of("self_tuned_winnow_bound", about.SELF_TUNED_WINNOW, learner, run, u)
    margin = check.positive("self_tuned_winnow_bound", "margin", margin)
    gaps, most = hinge_of(tally, margin), _logarithm(u)
    return _self_tuned(tally, gaps, margin, most, "Shalev-Shwartz 2007, corollary 6")


def self_tuned_aggressive_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 6, for `self_tuned_aggressive` and $f(u) \le U$, with $X$ and the hinge $G$ of $u$
    over all rounds:

    $$|M| \le \frac G\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{U G} + \frac{4 X^2 U}{\gamma^2}.$$
    """
    tally = tally_of("self_tuned_aggressive_bound", about.SELF_TUNED_AGGRESSIVE, learner, run, u)
    margin, complexity = learner.hparams.loss.hparams, learner.hparams.schedule.hparams.complexity
    gaps = jnp.cumsum(jnp.maximum(margin - tally.margin, 0.0))
    return _self_tuned(tally, gaps, margin, complexity, "Shalev-Shwartz 2007, theorem 6")


def _conservative(tally: Tally, margin: Scalar, most: Array, name: str) -> Certificate:
    spent, at_most = sums_of(tally, 1 / (2 * tally.c))
    whole = lambda price, spent: (tally.c * price + spent + hinge_of(tally, margin)) / margin
    return counted(tally, whole(tally.price, spent), whole(most, at_most), name)


def _self_tuned(tally: Tally, gaps: Array, margin, complexity, name: str) -> Certificate:
    spent, _ = sums_of(tally, 1 / (2 * tally.c))
    last = lax.cummax(jnp.where(tally.wrong, jnp.arange(gaps.size), -1))
    at_last = lambda curve: jnp.where(last >= 0, curve[jnp.maximum(last, 0)], 0.0)
    right = at_last(tally.c * tally.price + gaps + spent) / margin  # no mistake, no change
    far = tally.price > complexity * (1 + 1e3 * jnp.finfo(right.dtype).eps)
    slope = 2 * jnp.sqrt(complexity * lax.cummax(tally.size)) / margin
    printed = jnp.where(far, jnp.inf, _solved(gaps / margin, slope))
    return counted(tally, right, printed, name)


def _solved(constant: Array, slope: Array) -> Array:
    r"""Lemma 19: $m \le$ `constant` + `slope` $\sqrt m$ implies that $m$ is at most this."""
    return constant + slope**2 + slope * jnp.sqrt(constant)


def _logarithm(u: PyTree) -> float:
    return math.log(sum(jnp.size(leaf) for leaf in jax.tree.leaves(u)))
