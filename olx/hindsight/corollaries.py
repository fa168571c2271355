r"""Closed-form regret bounds for runs of `ftrl` and `md`, from what the run saw.

Here the left side is true regret, on losses that carry a penalty if the regularizer has one:
$\sum_t \ell_t(w_t) + F(w_t) - \ell_t(u) - F(u)$, for rounds of weight 1.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 1; Shalev-Shwartz, Online Learning: Theory,
Algorithms, and Applications, 2007, theorem 5.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.convex.base import MirrorMap
from olx.core import Feedback, Learner, Process, Run, Scalar, Trace
from olx.hindsight.certify import trace_of
from olx.learners.ftrl import FTRLHparams
from olx.learners.lift import inner_trace
from olx.learners.md import MDHparams


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
    hp, trace = _ftrl("composite_bound", learner, run)

    def one(stats: PyTree, feedback: Feedback):
        b = base.at(stats, feedback.context)
        return b.potential(u) + b.outside(u), _energy(b, feedback)

    paid, energy = jax.vmap(one)(trace.state.stats, trace.feedback)
    right = paid / hp.eta + hp.eta * jnp.cumsum(energy)
    return _certificate(trace, u, penalty, right, "Orabona et al. 2015, corollary 1 (5)")


def root_bound(
    learner: Learner, run: Run, u: PyTree, base: MirrorMap, penalty: Callable[[PyTree], Array]
) -> Certificate:
    r"""Corollary 1, (6): $f_t = \sqrt t\, b + \eta t F$ gives at most
    $\sqrt t \, \big( b(u) / \eta + (\eta / \beta) \max_{s \le t} \|g_s\|_*^2 \big)$."""
    hp, trace = _ftrl("root_bound", learner, run)
    largest = _largest(base, trace)
    t = jnp.arange(1, largest.size + 1, dtype=largest.dtype)
    paid = base.potential(u) + base.outside(u)
    right = jnp.sqrt(t) * (paid / hp.eta + 2 * hp.eta * largest)
    return _certificate(trace, u, penalty, right, "Orabona et al. 2015, corollary 1 (6)")


def leader_bound(learner: Learner, run: Run, u: PyTree, penalty: MirrorMap) -> Certificate:
    r"""Corollary 1, (7): $f_t = t F$ with $F$ $\beta$-strongly convex and a step of 1 gives at most
    $\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2\beta)$ on the losses $\ell_t + F$."""
    _, trace = _ftrl("leader_bound", learner, run)
    right = _logarithmic(_largest(penalty, trace))
    name = "Orabona et al. 2015, corollary 1 (7)"
    return _certificate(trace, u, penalty.potential, right + penalty.outside(u), name)


def strongly_convex_bound(learner: Learner, run: Run, u: PyTree, sigma: Scalar) -> Certificate:
    r"""Theorem 5 for `md` with $\eta_t = 1/(\sigma t)$ and losses $\sigma$-strongly convex with
    respect to the potential: at most
    $\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2 \sigma \beta)$."""
    sigma = check.positive("strongly_convex_bound", "sigma", sigma)
    inner, trace = inner_trace(learner, trace_of("strongly_convex_bound", learner, run))
    check.instance("strongly_convex_bound", "learner.hparams", inner.hparams, MDHparams)
    mirror = inner.hparams.mirror
    right = _logarithmic(_largest(mirror, trace)) / sigma + mirror.outside(u)
    return _certificate(trace, u, no_penalty, right, "Shalev-Shwartz 2007, theorem 5")


def no_penalty(w: PyTree) -> Array:
    return jnp.zeros(())


def _ftrl(owner: str, learner: Learner, run: Run) -> tuple[FTRLHparams, Trace]:
    inner, trace = inner_trace(learner, trace_of(owner, learner, run))
    check.instance(owner, "learner.hparams", inner.hparams, FTRLHparams)
    return inner.hparams, trace


def _energy(mirror: MirrorMap, feedback: Feedback) -> Array:
    energy = mirror.energy(feedback.grad)
    if energy is None:
        raise TypeError("the mirror map states no norm and modulus; `olx.certify` needs none.")
    return energy


def _largest(mirror: MirrorMap, trace: Trace) -> Array:
    return jax.lax.cummax(jax.vmap(lambda feedback: _energy(mirror, feedback))(trace.feedback))


def _logarithmic(largest: Array) -> Array:
    return largest * (1 + jnp.log(jnp.arange(1, largest.size + 1, dtype=largest.dtype)))


def _certificate(trace: Trace, u: PyTree, penalty, right: Array, theorem: str) -> Certificate:
    feedback = trace.feedback
    played = feedback.value + jax.vmap(penalty)(feedback.action)
    other = jax.vmap(lambda feedback: feedback.loss(u))(feedback) + penalty(u)
    scale = jnp.cumsum(jnp.abs(played) + jnp.abs(other)) + jnp.where(
        jnp.isfinite(right), jnp.abs(right), 0.0
    )
    return Certificate(jnp.cumsum(played - other), right, scale, theorem=theorem)
