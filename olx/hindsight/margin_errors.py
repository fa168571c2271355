r"""Mistake bounds of classifiers that learn from margin errors too.

$M$ are the mistakes up to a round, $y_s \langle w_s, x_s\rangle \le 0$, $\ell_s(u)$ is the hinge of
the comparator, and $X$ the largest norm of a row. The left side is $|M|$ after every round. Rounds
of weight 0 do not count; other weights than 1 are allowed where the theorem says so.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 2; Crammer, Dekel, Keshet, Shalev-Shwartz, Singer,
Online Passive-Aggressive Algorithms, 2006; Gentile, A New Approximate Maximal Margin Classification
Algorithm, 2001.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.classification.aggressive_perceptron import step
from olx.classification.alma import correction, power_of
from olx.classification.passive_aggressive import coefficient
from olx.convex import norms
from olx.core import Feedback, Learner, Run, Scalar
from olx.frameworks.lift import dot
from olx.hindsight.about import AGGRESSIVE_PERCEPTRON, ALMA, PASSIVE_AGGRESSIVE
from olx.hindsight.game import UNIT_WEIGHTS, judged, played, unit_weights
from olx.losses.hinges import hinge


def aggressive_perceptron_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 2, for `aggressive_perceptron`. With $a^2 = \frac2\beta f(u) X^2$, $E$ the sum of
    the steps $\eta_s$ on margin errors, $L = \sum_s \eta_s \ell_s(u)$ and

    $$D' = \sum_s \frac{\eta_s^2 \|x_s\|_*^2 + 2 \beta \eta_s y_s \langle w_s, x_s\rangle}{X_s^2} -
      \eta_s, \qquad |M| \le L + \frac{a^2}2 + a \sqrt{\frac{a^2}4 + L + D'} - E,$$

    which is (21) of the paper. Its corollary goes on to $L + a^2 + a \sqrt L + D' - E$. That takes
    $D' \ge 0$; a negative $D'$ enters times $\kappa = a / (2 \sqrt{a^2 / 4 + L}) \le 1$ only, so
    `printed` has $\max(D', \kappa D')$ in its place.
    """
    owner = "aggressive_perceptron_bound"
    game, hp = played(owner, AGGRESSIVE_PERCEPTRON, learner, run, u), learner.hparams
    trace = game.trace
    u = check.comparator(owner, game.u, jax.tree.map(lambda leaf: leaf[0], trace.state.theta))

    def one(state, feedback: Feedback):
        x, y = feedback.context, feedback.outcome
        eta, largest = step(hp, state, feedback)
        margin = y * feedback.action
        only = jnp.where(margin > 0, eta, 0.0)
        rise = (only * hp.mirror.norm.dual(x)) ** 2 + 2 * hp.mirror.modulus * only * margin
        rise = rise / jnp.where(largest > 0, largest, 1.0) ** 2
        return eta * hinge(dot(u, x), y), rise - only, only, largest

    other, excess, spared, largest = jax.jit(jax.vmap(one))(*trace)
    other, excess, spared = jax.tree.map(jnp.cumsum, (other, excess, spared))
    price = hp.mirror.potential(u)
    a = largest * jnp.sqrt(2 * price / hp.mirror.modulus)
    under = a**2 / 4 + other
    right = other + a**2 / 2 + a * jnp.sqrt(jnp.maximum(under + excess, 0.0)) - spared
    part = a / (2 * jnp.sqrt(jnp.where(under > 0, under, 1.0)))
    printed = other + a**2 + a * jnp.sqrt(other) + jnp.maximum(excess, part * excess) - spared
    name = "Orabona, Crammer, Cesa-Bianchi 2015, corollary 2"
    proof = _certificate(trace.feedback, right, printed, spared, name)
    proof = proof.given(DOMAIN, hp.mirror.outside(u) == 0)
    return judged(game, unit_weights(game, proof))


def passive_aggressive_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""For all three versions of `passive_aggressive`, starting from $w_1$,

    $$|M| \le \max\Big(X^2 + \sigma, \frac1C\Big) \Big( \|u - w_1\|^2 + 2 \sum_{s \le t} \tau_s
      \ell_s(u) \Big),$$

    with $\sigma = 1 / (2C)$ for PA-II and 0 else, the $1/C$ for PA-I only; rows of zeros count 1
    each. For PA-I $\tau_s \le C$, which is how it is `printed`; for a $u$ without loss it is $X^2
    \|u - w_1\|^2$. Rounds of PA, which takes no account of weights, may have any weight.
    """
    owner = "passive_aggressive_bound"
    game, hp = played(owner, PASSIVE_AGGRESSIVE, learner, run, u), learner.hparams
    trace = game.trace
    start = jax.tree.map(lambda leaf: leaf[0], trace.state.w)
    u = check.comparator(owner, game.u, start)

    def one(feedback: Feedback):
        x, y = feedback.context, feedback.outcome
        lost, squares = hinge(dot(u, x), y), jnp.asarray(tree.vdot(x, x))
        return y * coefficient(hp, feedback) * lost, lost, squares, squares == 0

    paid, lost, squares, empty = jax.jit(jax.vmap(one))(trace.feedback)
    apart = tree.sub(u, start)
    factor = lax.cummax(squares) + hp.softness
    factor = factor if hp.most is None else jnp.maximum(factor, 1 / hp.most)
    zeros = jnp.cumsum(empty.astype(paid.dtype))
    whole = lambda sums: factor * (tree.vdot(apart, apart) + 2 * sums) + zeros
    printed = None if hp.most is None else whole(hp.most * jnp.cumsum(lost))
    name = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006"
    proof = _certificate(trace.feedback, whole(jnp.cumsum(paid)), printed, zeros, name)
    hard = (jnp.asarray(hp.softness) == 0) & (hp.most is None)
    return judged(game, proof.given(UNIT_WEIGHTS, hard | (trace.feedback.weight == 1)))


def alma_bound(learner: Learner, run: Run, u: PyTree, margin: Scalar) -> Certificate:
    r"""For `alma` and $\|u\|_q \le 1$: with $m$ corrections made so far, $D$ the hinge $\max(0,
    \gamma - y_s \langle u, \hat x_s\rangle)$ of $u$ on them, and $b = \sqrt{p - 1}\,(2 / C + C + 2
    (1 - \alpha) B) / \gamma$,

    $$|M| \le m \le \frac D\gamma + b \sqrt m \le \frac D\gamma + b^2 + b \sqrt{\frac D\gamma};$$

    rows of zeros count 1 each. The regret on the corrections, with $y_s \langle w_s, \hat
    x_s\rangle \le (1 - \alpha) \gamma_k$ and $\sum_k k^{-1/2} \le 2 \sqrt m$.
    """
    game, hp = played("alma_bound", ALMA, learner, run, u), learner.hparams
    trace = game.trace
    u = check.comparator(
        "alma_bound", game.u, jax.tree.map(lambda leaf: leaf[0], trace.state.theta)
    )
    margin, p = check.positive("alma_bound", "margin", margin), power_of(hp)

    def one(state, feedback: Feedback):
        x, y = feedback.context, feedback.outcome
        corrects, _ = correction(hp, state, feedback)
        size = norms.power(p, x)
        gap = jnp.maximum(margin - y * dot(u, x) / jnp.where(size > 0, size, 1.0), 0.0)
        made = jnp.where(corrects, jnp.ones_like(gap), 0.0)
        return made * gap, made, jnp.where(size > 0, 0.0, jnp.ones_like(gap))

    lost, made, zeros = jax.tree.map(jnp.cumsum, jax.jit(jax.vmap(one))(*trace))
    reach = 2 / hp.step + hp.step + 2 * (1 - hp.alpha) * hp.margin
    b = jnp.sqrt(jnp.asarray(p - 1, lost.dtype)) * reach / margin
    inside = norms.power(p / (p - 1), u) <= 1 + 1e3 * jnp.finfo(lost.dtype).eps
    right = lost / margin + b * jnp.sqrt(made) + zeros
    printed = lost / margin + b**2 + b * jnp.sqrt(lost / margin) + zeros
    proof = _certificate(trace.feedback, right, printed, made, "Gentile 2001, mistakes")
    return judged(game, unit_weights(game, proof.given(DOMAIN, inside)))


def _certificate(feedback: Feedback, right: Array, printed, size: Array, name: str) -> Certificate:
    wrong = feedback.outcome * feedback.action <= 0
    count = jnp.cumsum(wrong.astype(right.dtype))
    scale = count + size + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return Certificate(count, right, scale, printed, theorem=name)
