r"""ALMA, the approximate large margin algorithm, in the geometry of the p-norm.

Rows are scaled to $\hat x_t = x_t / \|x_t\|_p$ and decisions lie in the unit ball of the $q$-norm,
$1/p + 1/q = 1$. Correction number $k$ is made if $y_t \langle w_t, \hat x_t\rangle \le (1 - \alpha)
\gamma_k$:

$$\theta \leftarrow \theta + \eta_k y_t \hat x_t, \qquad
  \theta \leftarrow \theta / \max(1, \|\theta\|_p), \qquad
  \gamma_k = B \sqrt{\frac{p - 1}{k}}, \qquad \eta_k = \frac{C}{\sqrt{(p - 1) k}},$$

and $w = \nabla \frac12 \|\theta\|_p^2$, so that $\|w\|_q = \|\theta\|_p$. Its goal is a margin of
$1 - \alpha$ times the largest possible margin. $p = 2$ is projected gradient descent on the
corrections; $p$ of the order of $\log d$ suits data where only few features matter.

`regret_on_corrections`: for $u$ in the unit ball and rounds of weight 1, the regret on the $m$
corrections made is

$$\sum_s y_s \langle u - w_s, \hat x_s\rangle \le \sqrt{(p - 1) m}\, \Big(\frac2C + C\Big).$$

Proof: this is mirror descent on the ball with $\frac12 \|\cdot\|_q^2$, which is $(q - 1)$-strongly
convex and has divergences of at most 2 in the ball. Its steps shrink, so the regret is at most $2 /
\eta_m + \sum_k \eta_k (p - 1) / 2$.

`alma_mistakes`: for a comparator of margin $\gamma$, with $D$ the sum of $\max(0, \gamma - y_s
\langle u, \hat x_s\rangle)$ over the corrections, and $b = \sqrt{p - 1}\,(2 / C + C + 2 (1 -
\alpha) B) / \gamma$,

$$|M| \le m \le \frac D\gamma + b \sqrt m \le \frac D\gamma + b^2 + b \sqrt{\frac D\gamma}.$$

Each row of zeros adds 1 to the bounds. Proof: the bound on the regret, $y_s \langle w_s, \hat
x_s\rangle \le (1 - \alpha) \gamma_k$ and $\sum_k k^{-1/2} \le 2 \sqrt m$.

Gentile, A New Approximate Maximal Margin Classification Algorithm, 2001.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.convex import norms
from olx.core import Feedback, Learner, Scalar
from olx.facts import Aggregate, Facts, HasAggregate
from olx.frameworks.lift import dot
from olx.losses.margin import mistaken
from olx.losses.score import signs
from olx.theorem import MET, ZERO, About, Theorem, summed


@pytree
class ALMAHparams:
    alpha: Scalar
    p: Scalar | None  # None for 2
    margin: Scalar
    step: Scalar


class ALMAState(NamedTuple):
    theta: PyTree
    corrections: Clock


@public
def alma(
    alpha: Scalar, p: Scalar | None = None, margin: Scalar | None = None, step: Scalar = 2**0.5
) -> Learner:
    r"""ALMA, whose goal is a margin of 1 - `alpha` times the largest possible margin.

    alpha: in (0, 1]; 1 corrects mistakes only, smaller values correct more often.
    p: at least 2; $2 \ln d$ if only few of $d$ features matter. None is 2, computed faster.
    margin: the $B$ of the rule; $\sqrt 8 / \alpha$ as in the paper if None. See
        `small_margin_alma` for $1 / \alpha$.
    step: the $C$ of the rule.

    Only the shape of `params` is used: the first decision is 0. A step is scaled by the weight of
    its round; a correction counts as 1 for any weight except 0.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> run = olx.rollout(alma(0.9), olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    alpha = check.above("alpha", alpha, 0, 1)
    if p is not None:
        p = check.between("p", p, 2, float("inf"))
    asked = check.positive("margin", 8**0.5 / alpha if margin is None else margin)
    step = check.positive("step", step)
    hparams = ALMAHparams(alpha, p, asked, step)
    needs, facts = (signs("alma"),), Facts(coordinates=HasAggregate(_aggregate))
    theorems = (regret_on_corrections, alma_mistakes(1.0))
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


@public
def small_margin_alma(alpha: Scalar, p: Scalar | None = None) -> Learner:
    r"""ALMA with $B = 1 / \alpha$ and $C = \sqrt 2$, as in LIBOL and river.

    The margin is $\sqrt 8$ times smaller than in the paper, so there are fewer corrections.

    alpha, p: as in `alma`.
    """
    alpha = check.above("alpha", alpha, 0, 1)
    return alma(alpha, p, margin=1 / alpha)


def init(hp: ALMAHparams, params: PyTree) -> ALMAState:
    theta = tree.zeros_like(params)
    return ALMAState(theta, clock.start(hp, theta))


def predict(hp: ALMAHparams, state: ALMAState, context: PyTree) -> Array:
    return dot(decision(hp, state), context)


def update(hp: ALMAHparams, state: ALMAState, feedback: Feedback) -> ALMAState:
    corrects, add = correction(hp, state, feedback)
    moved = tree.add_scale(state.theta, add, feedback.context)
    size = size_of(hp, moved)
    shrink = jnp.where(corrects & (size > 1), 1 / safe.or_one(size, size > 1), 1.0)
    return ALMAState(tree.scale(shrink, moved), clock.advance(state.corrections, corrects))


def decision(hp: ALMAHparams, state: ALMAState) -> PyTree:
    r"""The decision $w = \nabla \frac12 \|\theta\|_p^2$."""
    p = hp.p
    if p is None:
        return state.theta
    return jax.grad(lambda theta: norms.power_squared(p, theta) / 2)(state.theta)


def correction(hp: ALMAHparams, state: ALMAState, feedback: Feedback) -> tuple[Array, Array]:
    """Whether to correct, and the factor of the row in the correction."""
    y, size, p = feedback.outcome, size_of(hp, feedback.context), power_of(hp)
    k = state.corrections.now
    wanted = (1 - hp.alpha) * hp.margin * jnp.sqrt((p - 1) / k)
    corrects = (y * feedback.action <= wanted * size) & (size > 0)
    eta = feedback.weight * hp.step / jnp.sqrt((p - 1) * k)
    return corrects, jnp.where(corrects, eta * y / safe.or_one(size), 0.0)


def power_of(hp: ALMAHparams) -> Scalar:
    """The p of the geometry."""
    return 2.0 if hp.p is None else hp.p


def size_of(hp: ALMAHparams, x: PyTree) -> Array:
    return norms.l2().primal(x) if hp.p is None else norms.power(hp.p, x)


def in_ball(hp: ALMAHparams, u: PyTree) -> Array:
    """Whether `u` lies in the unit ball of the q-norm, up to rounding."""
    p, kind = power_of(hp), jnp.result_type(*jax.tree.leaves(u))
    return norms.power(p / (p - 1), u) <= 1 + 1e3 * jnp.finfo(kind).eps


def _aggregate(hp: ALMAHparams) -> Aggregate:
    return norms.squares() if hp.p is None else norms.powers(hp.p)


class Account(NamedTuple):
    left: Float[Array, ""]  # the regret on the corrections
    made: Float[Array, ""]  # corrections
    wrong: Float[Array, ""]  # mistakes
    lost: Float[Array, ""]  # D
    zeros: Float[Array, ""]  # rows of zeros
    unit: Bool[Array, ""]  # whether all weights were 1


def start(hp: ALMAHparams, state: ALMAState, u: PyTree) -> Account:
    check.comparator(u, state.theta)
    return Account(*[ZERO] * 5, unit=MET)


def terms(
    margin: Scalar, hp: ALMAHparams, state: ALMAState, feedback: Feedback, u: PyTree
) -> Account:
    x, y, ahead = feedback.context, feedback.outcome, dot(u, feedback.context)
    corrects, _ = correction(hp, state, feedback)
    size = size_of(hp, x)
    left = y * (ahead - feedback.action) / safe.or_one(size)
    gap = jnp.maximum(margin - y * ahead / safe.or_one(size), 0.0)
    count = lambda met: jnp.where(met, jnp.ones_like(left), 0.0)
    return Account(
        jnp.where(corrects, left, 0.0),
        count(corrects),
        count(mistaken(feedback.action, y)),
        jnp.where(corrects, gap, 0.0),
        count(size == 0),
        jnp.asarray(feedback.weight) == 1,
    )


def regret_sides(hp: ALMAHparams, account: Account, u: PyTree) -> Certificate:
    right = jnp.sqrt((power_of(hp) - 1) * account.made) * (2 / hp.step + hp.step)
    return _under(hp, Certificate(account.left, right, 10 * account.made), account, u)


def mistake_sides(margin: Scalar, hp: ALMAHparams, account: Account, u: PyTree) -> Certificate:
    lost, zeros = account.lost / margin, account.zeros
    reach = 2 / hp.step + hp.step + 2 * (1 - hp.alpha) * hp.margin
    b = jnp.sqrt(jnp.asarray(power_of(hp) - 1, lost.dtype)) * reach / margin
    right = lost + b * jnp.sqrt(account.made) + zeros
    published = lost + b**2 + b * jnp.sqrt(lost) + zeros
    scale = account.wrong + account.made + right
    return _under(hp, Certificate(account.wrong, right, scale, published), account, u)


def _under(hp: ALMAHparams, proof: Certificate, account: Account, u: PyTree) -> Certificate:
    return proof.under({DOMAIN: in_ball(hp, u), UNIT_WEIGHTS: account.unit})


regret_on_corrections = summed(
    "regret_on_corrections", "Gentile 2001", Partial(terms, 1.0), regret_sides, start
)


@public
def alma_mistakes(margin: Scalar) -> Theorem:
    r"""The mistake bound of an `alma` for a comparator of margin $\gamma$ = `margin`."""
    margin = check.positive("margin", margin)
    parts = Partial(terms, margin), Partial(mistake_sides, margin), start
    about = About("an `alma`", _is_alma)
    return summed("alma_mistakes", "Gentile 2001, mistakes", *parts, about=about)


def _is_alma(learner: Learner) -> bool:
    return isinstance(learner.hparams, ALMAHparams)
