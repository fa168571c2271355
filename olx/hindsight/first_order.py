r"""Closed-form bounds of first-order algorithms, on the losses themselves, from what a run saw.

The left side is true regret, or what the theorem puts in its place, for rounds of weight 1; those
of weight 0 do not count. Zhang's theorem 14.11 is `strongly_convex_bound` with the Euclidean norm;
coin bettors carry their bound.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1; Zhang, Mathematical Analysis of Machine Learning
Algorithms, 2023, theorems 14.5, 14.6 and 14.12.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx.certificate import DOMAIN, Certificate
from olx.core import Learner, Loss, Run, Scalar
from olx.frameworks.lift import dot
from olx.hindsight.about import FIXED_STEP, STRONGLY_CONVEX_OGD, regularized
from olx.hindsight.game import Game, judged, played_inside, unit_weights
from olx.regularizers.largest_context import at as by_largest_context
from olx.regularizers.scale_invariant_adagrad import at as by_adagrad
from olx.regularizers.scale_invariant_adagrad import level as adagrad_level
from olx.regularizers.scale_invariant_pnorm import at as by_pnorm
from olx.regularizers.scale_invariant_pnorm import exponent
from olx.regularizers.scale_invariant_pnorm import level as pnorm_level

SCALE_INVARIANT_PNORM = regularized("a `scale_invariant_pnorm`", by_pnorm)
SCALE_INVARIANT_ADAGRAD = regularized("a `scale_invariant_adagrad`", by_adagrad)
FILTERING = regularized("a `pnorm_lms`", by_largest_context)
LIPSCHITZ = "slopes in the score must be at most `lipschitz`"


def scale_invariant_pnorm_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 1 for (12), with $U_t = \sum_i |u_i| b_{t,i}$ and losses $L$-Lipschitz in the score.

    $$R_t(u) \le \beta_{t+1} \Big( \frac{U_t^2}{2\eta} + \eta \Big)
      \le L \sqrt{e (t+1)(p_t - 1)} \Big( \frac{U_t^2}{2\eta} + \eta \Big).$$
    """
    game, hp = played_inside("scale_invariant_pnorm_bound", SCALE_INVARIANT_PNORM, learner, run, u)
    trace, u = game.trace, game.u
    regularizer = hp.regularizer

    def one(stats: Any, feedback: Any) -> tuple[Array, Array, Array]:
        after = regularizer.update(stats, feedback)
        size = tree.vdot(jax.tree.map(jnp.abs, u), after.largest)
        level = pnorm_level(regularizer.hparams, after)
        return level, exponent(after), jnp.asarray(size) ** 2 / (2 * hp.eta) + hp.eta

    level, p, factor = jax.vmap(one)(trace.state.stats, trace.feedback)
    t = jnp.arange(1, p.size + 1, dtype=p.dtype)
    worst = regularizer.hparams.lipschitz * jnp.sqrt(jnp.e * (t + 1) * (p - 1))
    name = "Orabona et al. 2015, theorem 1 (12)"
    met = _lipschitz(run, game, regularizer.hparams.lipschitz)
    return _certificate(game, level * factor, worst * factor, name, met)


def scale_invariant_adagrad_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 1 for (13), with losses $L$-Lipschitz in the score.

    $$R_t(u) \le \sum_i a_{t+1,i} \Big( \frac{\sqrt d (u_i b_{t,i})^2}{2\eta} +
      \frac{\eta}{\sqrt d} \Big) \le L \sqrt{d (t+1)} \Big( \frac{\sum_i (u_i b_{t,i})^2}{2\eta} +
      \eta \Big).$$
    """
    game, hp = played_inside(
        "scale_invariant_adagrad_bound", SCALE_INVARIANT_ADAGRAD, learner, run, u
    )
    trace, u = game.trace, game.u
    regularizer = hp.regularizer
    d = sum(leaf.size for leaf in jax.tree.leaves(u))

    def one(stats: Any, feedback: Any) -> tuple[Array, Array]:
        after = regularizer.update(stats, feedback)
        own = jax.tree.map(lambda u, b: (u * b) ** 2 / (2 * hp.eta), u, after.largest)
        paid = jax.tree.map(
            lambda a, own: jnp.sum(a * (d**0.5 * own + hp.eta / d**0.5)),
            adagrad_level(regularizer.hparams, after),
            own,
        )
        return jnp.asarray(tree.sum(paid)), jnp.asarray(tree.sum(own) + hp.eta)

    right, factor = jax.vmap(one)(trace.state.stats, trace.feedback)
    t = jnp.arange(1, right.size + 1, dtype=right.dtype)
    worst = regularizer.hparams.lipschitz * jnp.sqrt(d * (t + 1)) * factor
    met = _lipschitz(run, game, regularizer.hparams.lipschitz)
    return _certificate(game, right, worst, "Orabona et al. 2015, theorem 1 (13)", met)


def filtering_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""For `pnorm_lms`: how far the scores are from those of `u`, whatever the outcomes.

    $$\sum_{s \le t} \langle w_s - u, x_s\rangle^2 \le \frac{2 X_t^2}{\beta} f(u) +
      \sum_{s \le t} (y_s - \langle u, x_s\rangle)^2.$$
    """
    game, hp = played_inside("filtering_bound", FILTERING, learner, run, u)
    trace, u = game.trace, game.u
    mirror, feedback = hp.regularizer.hparams, trace.feedback
    largest = jax.vmap(hp.regularizer.update)(trace.state.stats, feedback)
    clean = jax.vmap(lambda x: dot(u, x))(feedback.context)
    missed = jax.vmap(dot)(feedback.action, feedback.context) - clean
    noise = jnp.cumsum((feedback.outcome - clean) ** 2)
    left = jnp.cumsum(missed**2)
    paid = 2 * largest**2 * mirror.potential(u) / mirror.modulus
    name = "Orabona et al. 2015, adaptive filtering"
    proof = Certificate(left, paid + noise, left + paid + noise, theorem=name)
    return judged(game, unit_weights(game, proof.given(DOMAIN, mirror.outside(u) == 0)))


def gradient_descent_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 14.5 for `ogd` with a fixed step, on any set: with $G_t = \max_{s \le t} \|g_s\|$

    $$R_t(u) \le \frac{\|w_1 - u\|^2}{2\eta} + \frac\eta2 \sum_{s \le t} \|g_s\|^2
      \le \frac{\|w_1 - u\|^2}{2\eta} + \frac{\eta t}2 G_t^2.$$
    """
    game, right, printed, met = _descent("gradient_descent_bound", learner, run, u)
    return _certificate(game, right, printed, "Zhang 2023, theorem 14.5", met)


def surrogate_bound(
    learner: Learner, run: Run, u: PyTree, surrogate: Loss, apply: Callable = dot
) -> Certificate:
    r"""Theorem 14.6: the comparator pays another loss, and $g_t$ need not be a gradient.

    If $\langle g_t, u - w_t\rangle \le \tilde\ell_t(u) - \ell_t(w_t)$ in every round, then
    $\sum_t \ell_t(w_t) - \tilde\ell_t(u)$ has the bound of `gradient_descent_bound`.

    surrogate: $\tilde\ell$, of what `apply(u, x)` plays and an outcome. For the Perceptron, which
        pays $\gamma$ for a mistake, it is `margin_hinge(gamma)`.
    """
    game, right, printed, met = _descent("surrogate_bound", learner, run, u)
    u, feedback = game.u, game.trace.feedback
    other = jax.vmap(lambda x, y: surrogate(apply(u, x), y))(feedback.context, feedback.outcome)
    return _sides(game, other, right, printed, "Zhang 2023, theorem 14.6", met)


def weighted_regret_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 14.12 for `strongly_convex_ogd`, losses $\sigma$-strongly convex: in round $t$

    $$\sum_{s \le t} \frac{2(s+1)}{t(t+3)} \big(\ell_s(w_s) - \ell_s(u)\big) \le
      \frac{2 \max_{s \le t} \|g_s\|_*^2}{\sigma\beta(t+3)}.$$
    """
    game, hp = played_inside("weighted_regret_bound", STRONGLY_CONVEX_OGD, learner, run, u)
    trace, u, feedback = game.trace, game.u, game.trace.feedback
    energy = jax.lax.cummax(jax.vmap(hp.mirror.energy)(feedback.grad))
    t = trace.state.clock.now
    other = jax.vmap(lambda feedback: feedback.loss(u))(feedback)
    right = 4 * energy / (hp.sigma * (t + 3))
    share = 2 / (t * (t + 3))
    left = share * jnp.cumsum((t + 1) * (feedback.value - other))
    size = share * jnp.cumsum((t + 1) * (jnp.abs(feedback.value) + jnp.abs(other))) + right
    proof = Certificate(left, right, size, theorem="Zhang 2023, theorem 14.12")
    return judged(game, unit_weights(game, proof.given(DOMAIN, hp.mirror.outside(u) == 0)))


def _descent(
    owner: str, learner: Learner, run: Run, u: PyTree
) -> tuple[Game, Array, Array, dict[str, Array]]:
    game, hp = played_inside(owner, FIXED_STEP, learner, run, u)
    mirror, eta = hp.mirror, hp.eta.at(None)
    first = mirror.retract(jax.tree.map(lambda leaf: leaf[0], game.trace.state.theta))
    paid = mirror.gap(game.u, first) / eta
    energy = jax.vmap(mirror.energy)(game.trace.feedback.grad)
    t = jnp.arange(1, energy.size + 1, dtype=energy.dtype)
    met = {DOMAIN: mirror.outside(game.u) == 0}
    return game, paid + eta * jnp.cumsum(energy), paid + eta * t * jax.lax.cummax(energy), met


def _lipschitz(run: Run, game: Game, most: Scalar) -> dict[str, Array]:
    """Whether the slopes of the losses in the score are as small as the learner was told."""
    slope = jnp.abs(jnp.asarray(run.trace.feedback.grad)[game.order])
    return {LIPSCHITZ: slope <= most * (1 + 64 * jnp.finfo(slope.dtype).eps)}


def _certificate(
    game: Game, right: Array, printed: Array, name: str, met: dict[str, Array]
) -> Certificate:
    other = jax.vmap(lambda feedback: feedback.loss(game.u))(game.trace.feedback)
    return _sides(game, other, right, printed, name, met)


def _sides(
    game: Game, other: Array, right: Array, printed: Array, name: str, met: dict[str, Array]
) -> Certificate:
    own = game.trace.feedback.value
    size = jnp.cumsum(jnp.abs(own) + jnp.abs(other)) + jnp.where(jnp.isfinite(right), right, 0.0)
    proof = Certificate(jnp.cumsum(own - other), right, size, printed, theorem=name)
    return judged(game, unit_weights(game, proof.under(met)))
