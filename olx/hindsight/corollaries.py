r"""Closed-form regret bounds for runs of `ftrl` and `md`, from what the run saw.

Here the left side is true regret, on losses that carry a penalty if the regularizer has one:
$\sum_t \ell_t(w_t) + F(w_t) - \ell_t(u) - F(u)$, for rounds of weight 1; those of weight 0 do not
count.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 1; Shalev-Shwartz, Online Learning: Theory,
Algorithms, and Applications, 2007, theorem 5.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Run, Scalar, Trace
from olx.hindsight.about import FTRL, MD_DECAY
from olx.hindsight.game import Game, judged, played_inside, unit_weights
from olx.mirrors.base import MirrorMap


def composite_bound(
    learner: Learner,
    run: Run,
    u: PyTree,
    base: Process,
    penalty: Callable[[PyTree], Array],
) -> Certificate:
    r"""Corollary 1, (5): $f_t = b_t + \eta t F$ with $b_t \ge 0$ that never shrinks.

    $$\sum_{s \le t} \ell_s(w_s) + F(w_s) - \ell_s(u) - F(u) \le \frac{b_t(u)}{\eta} +
      \eta \sum_{s \le t} \frac{\|g_s\|_{s,*}^2}{2 \beta_s}.$$

    base: the regularizer $b_t$, which reads the same statistics as that of `learner`:
        `growing(euclidean(), power)` for `composite`, `adagrad(delta)` for `adagrad`.
    penalty: $F$, or `no_penalty`.

    The step of the learner and the `rate` of its penalty must be equal.
    """
    game, hp = played_inside("composite_bound", FTRL, learner, run, u)
    trace, u = game.trace, game.u

    def one(stats: PyTree, feedback: Feedback):
        b = base.at(stats, feedback.context)
        return b.potential(u), b.outside(u) == 0, _energy(b, feedback)

    paid, inside, energy = jax.vmap(one)(trace.state.stats, trace.feedback)
    right = paid / hp.eta + hp.eta * jnp.cumsum(energy)
    return _certificate(game, penalty, right, inside, "Orabona et al. 2015, corollary 1 (5)")


def root_bound(
    learner: Learner, run: Run, u: PyTree, base: MirrorMap, penalty: Callable[[PyTree], Array]
) -> Certificate:
    r"""Corollary 1, (6): $f_t = \sqrt t\, b + \eta t F$ gives at most
    $\sqrt t \, \big( b(u) / \eta + (\eta / \beta) \max_{s \le t} \|g_s\|_*^2 \big)$."""
    game, hp = played_inside("root_bound", FTRL, learner, run, u)
    largest = _largest(base, game.trace)
    t = jnp.arange(1, largest.size + 1, dtype=largest.dtype)
    right = jnp.sqrt(t) * (base.potential(game.u) / hp.eta + 2 * hp.eta * largest)
    inside = base.outside(game.u) == 0
    return _certificate(game, penalty, right, inside, "Orabona et al. 2015, corollary 1 (6)")


def leader_bound(learner: Learner, run: Run, u: PyTree, penalty: MirrorMap) -> Certificate:
    r"""Corollary 1, (7): $f_t = t F$ with $F$ $\beta$-strongly convex and a step of 1 gives at most
    $\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2\beta)$ on the losses $\ell_t + F$."""
    game, _ = played_inside("leader_bound", FTRL, learner, run, u)
    right, inside = _logarithmic(_largest(penalty, game.trace)), penalty.outside(game.u) == 0
    name = "Orabona et al. 2015, corollary 1 (7)"
    return _certificate(game, penalty.potential, right, inside, name)


def strongly_convex_bound(learner: Learner, run: Run, u: PyTree, sigma: Scalar) -> Certificate:
    r"""Theorem 5 for `md` with $\eta_t = 1/(\sigma t)$ and losses $\sigma$-strongly convex with
    respect to the potential: at most
    $\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2 \sigma \beta)$."""
    sigma = check.positive("strongly_convex_bound", "sigma", sigma)
    game, hp = played_inside("strongly_convex_bound", MD_DECAY, learner, run, u)
    right = _logarithmic(_largest(hp.mirror, game.trace)) / sigma
    steps = jax.vmap(hp.eta.at)(game.trace.state.stats)
    t = jnp.arange(1, steps.size + 1, dtype=steps.dtype)
    rounding = 64 * jnp.finfo(steps.dtype).eps
    met = {"steps must be 1 / (sigma t)": jnp.abs(steps * sigma * t - 1) <= rounding}
    inside, name = hp.mirror.outside(game.u) == 0, "Shalev-Shwartz 2007, theorem 5"
    return _certificate(game, no_penalty, right, inside, name, met)


def no_penalty(w: PyTree) -> Array:
    return jnp.zeros(())


def _energy(mirror: MirrorMap, feedback: Feedback) -> Array:
    energy = mirror.energy(feedback.grad)
    if energy is None:
        raise TypeError("the mirror map states no norm and modulus; `olx.certify` needs none.")
    return energy


def _largest(mirror: MirrorMap, trace: Trace) -> Array:
    return jax.lax.cummax(jax.vmap(lambda feedback: _energy(mirror, feedback))(trace.feedback))


def _logarithmic(largest: Array) -> Array:
    return largest * (1 + jnp.log(jnp.arange(1, largest.size + 1, dtype=largest.dtype)))


def _certificate(
    game: Game, penalty, right: Array, inside: Array, theorem: str, met: dict | None = None
) -> Certificate:
    u, feedback = game.u, game.trace.feedback
    paid = feedback.value + jax.vmap(penalty)(feedback.action)
    other = jax.vmap(lambda feedback: feedback.loss(u))(feedback) + penalty(u)
    scale = jnp.cumsum(jnp.abs(paid) + jnp.abs(other)) + jnp.where(
        jnp.isfinite(right), jnp.abs(right), 0.0
    )
    proof = Certificate(jnp.cumsum(paid - other), right, scale, theorem=theorem)
    return judged(game, unit_weights(game, proof.given(DOMAIN, inside).under(met or {})))
