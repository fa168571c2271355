r"""Aggressive classifiers: learn from margin errors too, in the geometry of any mirror map.

`aggressive_perceptron` makes the steps

$$w_t = \nabla f^*(\theta_t), \qquad \theta_{t+1} = \theta_t + \eta_t y_t x_t,$$

$\eta_t = 1$ on mistakes, $y_t \langle w_t, x_t\rangle \le 0$. On margin errors, $0 < y_t \langle
w_t, x_t\rangle < 1$, the mistake bound grows by $\eta_t \big( (\eta_t \|x_t\|_*^2 + 2 \beta y_t
\langle w_t, x_t\rangle) / X_t^2 - 2 \big)$, which is smallest, and never positive, at

$$\eta_t = \mathrm{clip}\Big( \frac{X_t^2 - \beta y_t \langle w_t, x_t\rangle}{\|x_t\|_*^2},
  0, 1 \Big), \qquad X_t = \max_{s \le t} \|x_s\|_*.$$

Lemma 3, where each mistake adds 1 to the left side: for any $u$ and rounds of weight 1,

$$\sum_{s \le t} \eta_s \le \sum_{s \le t} \eta_s \ell_s(u) + 2 \sqrt{f(u)}
  \sqrt{\Big[ \sum_{s \le t} \frac{\eta_s^2 \|x_s\|_*^2}{2 \beta} +
  \eta_s y_s \langle w_s, x_s\rangle \Big]_+}.$$

Corollary 2 bounds the number $|M|$ of mistakes. With $a^2 = \frac2\beta f(u) X^2$, $E$ the sum of
$\eta_s$ over margin errors, $L = \sum_s \eta_s \ell_s(u)$ and $D'$ a sum over margin errors,

$$D' = \sum_s \frac{\eta_s^2 \|x_s\|_*^2 + 2 \beta \eta_s y_s \langle w_s, x_s\rangle}{X_s^2} -
  \eta_s, \qquad |M| \le L + \frac{a^2}2 + a \sqrt{\frac{a^2}4 + L + D'} - E,$$

which is (21) of the paper. The corollary continues to $L + a^2 + a \sqrt L + D' - E$. This step
needs $D' \ge 0$. A negative $D'$ must be multiplied by $\kappa = a / (2 \sqrt{a^2 / 4 + L}) \le 1$,
so `published` uses $\max(D', \kappa D')$ instead.

`self_tuned_aggressive` is the aggressive dual ascent on the hinge with margin $\gamma$, with a step
size set by the number $m_t$ of mistakes before round $t$:

$$w_t = \nabla f^*\Big(\frac{1}{c_t} \sum_{s < t} \alpha_s y_s x_s\Big), \qquad
  c_t = X_t \sqrt{\frac{m_t + 1}{U}}.$$

In every round $\alpha_t \in [0, 1]$ maximizes the dual; it is 0 if the loss is 0. For every $u$
with $f(u) \le U$, with $X$ the largest $\|x_s\|_*$ and $G$ the sum of the hinge losses of $u$, both
over all rounds, the number of mistakes is at most

$$\frac G\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{U G} + \frac{4 X^2 U}{\gamma^2}.$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 2 and lemma 3; Shalev-Shwartz, Online Learning:
Theory, Algorithms, and Applications, 2007, figure 5.3 with its signs and norm corrected, theorem 6.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.convex.norms import Norm
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.ascents.optimal import aggressive
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.lift import dot
from olx.frameworks.mistakes import Tally, add_round, alike, open_tally, self_tuned
from olx.frameworks.primal_dual import DualAscentHparams, DualAscentState
from olx.losses.hinges import hinge, margin_hinge
from olx.losses.margin import margin, short
from olx.losses.score import signs
from olx.mirrors.base import MirrorMap
from olx.schedules.mistakes import mistakes as mistake_schedule
from olx.theorem import MET, ZERO, About, Theorem, latest, summed


@pytree
class AggressivePerceptronHparams:
    mirror: MirrorMap


class AggressivePerceptronState(NamedTuple):
    theta: PyTree
    largest: Float[Array, ""]  # X_t


@public
def aggressive_perceptron(mirror: MirrorMap) -> Learner:
    r"""Full steps after mistakes; after margin errors, the step that is best for the mistake bound.

    mirror: strongly convex in a norm that it states, with $f(\lambda u) \le \lambda^2 f(u)$:
        `euclidean` or `pnorm`.

    Only the shape of `params` is used: the first decision is the minimizer of $f$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> learner = aggressive_perceptron(olx.mirrors.euclidean())
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.2).holds)
    True
    """
    _norm_of(mirror)
    hparams = AggressivePerceptronHparams(mirror)
    needs, theorems = (signs("aggressive_perceptron"),), (sum_of_steps, mistakes)
    facts = Facts(coordinates=Rowwise() if mirror.separable else None)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: AggressivePerceptronHparams, params: PyTree) -> AggressivePerceptronState:
    theta = tree.zeros_like(params)
    return AggressivePerceptronState(theta, jnp.zeros((), jnp.result_type(*jax.tree.leaves(theta))))


def predict(
    hp: AggressivePerceptronHparams, state: AggressivePerceptronState, context: PyTree
) -> Array:
    return dot(hp.mirror.to_primal(state.theta), context)


def update(
    hp: AggressivePerceptronHparams, state: AggressivePerceptronState, feedback: Feedback
) -> AggressivePerceptronState:
    eta, largest = _step(hp, state, feedback)
    move = feedback.weight * eta * feedback.outcome
    return AggressivePerceptronState(tree.add_scale(state.theta, move, feedback.context), largest)


def _step(
    hp: AggressivePerceptronHparams, state: AggressivePerceptronState, feedback: Feedback
) -> tuple[Array, Array]:
    r"""$\eta_t$ and $X_t$."""
    norm, modulus = _norm_of(hp.mirror)
    ahead, size = margin(feedback.action, feedback.outcome), norm.dual(feedback.context)
    largest = jnp.maximum(state.largest, size)
    least = jnp.clip((largest**2 - modulus * ahead) / safe.or_one(size) ** 2, 0.0, 1.0)
    learns = jnp.where(ahead < 1, least, 0.0)
    return jnp.where(short(ahead), jnp.ones_like(ahead), learns), largest


class Account(NamedTuple):
    eta: Float[Array, ""]  # the sum of the steps
    other: Float[Array, ""]  # L
    spent: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `spent`
    excess: Float[Array, ""]  # D'
    spared: Float[Array, ""]  # E
    largest: Float[Array, ""]  # X
    wrong: Float[Array, ""]  # mistakes
    unit: Bool[Array, ""]  # whether all weights were 1


def start(hp: AggressivePerceptronHparams, state: AggressivePerceptronState, u: PyTree) -> Account:
    check.comparator(u, state.theta)
    return Account(*[ZERO] * 8, unit=MET)


def terms(
    hp: AggressivePerceptronHparams,
    state: AggressivePerceptronState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    x, y = feedback.context, feedback.outcome
    eta, largest = _step(hp, state, feedback)
    norm, modulus = _norm_of(hp.mirror)
    ahead, size = margin(feedback.action, y), norm.dual(x)
    spent, gained = (eta * size) ** 2 / (2 * modulus), eta * ahead
    only = jnp.where(short(ahead), 0.0, eta)
    rise = (only * size) ** 2 + 2 * modulus * only * ahead
    return Account(
        eta,
        eta * hinge(dot(u, x), y),
        spent + gained,
        spent + jnp.abs(gained),
        rise / safe.or_one(largest) ** 2 - only,
        only,
        latest(largest),
        jnp.where(short(ahead), jnp.ones_like(eta), 0.0),
        jnp.asarray(feedback.weight) == 1,
    )


def steps_made(hp: AggressivePerceptronHparams, account: Account, u: PyTree) -> Certificate:
    price = hp.mirror.potential(u)
    right = account.other + 2 * jnp.sqrt(price * jnp.maximum(account.spent, 0.0))
    scale = account.eta + account.other + 4 * jnp.sqrt(price * account.size)
    return _judged(hp, Certificate(account.eta, right, scale), account, u)


def mistakes_made(hp: AggressivePerceptronHparams, account: Account, u: PyTree) -> Certificate:
    other, excess, spared = account.other, account.excess, account.spared
    a = account.largest * jnp.sqrt(2 * hp.mirror.potential(u) / hp.mirror.modulus)
    under = a**2 / 4 + other
    right = other + a**2 / 2 + a * jnp.sqrt(jnp.maximum(under + excess, 0.0)) - spared
    part = a / (2 * jnp.sqrt(safe.or_one(under)))
    published = other + a**2 + a * jnp.sqrt(other) + jnp.maximum(excess, part * excess) - spared
    scale = account.wrong + spared + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return _judged(hp, Certificate(account.wrong, right, scale, published), account, u)


SOURCE = "Orabona, Crammer, Cesa-Bianchi 2015"
sum_of_steps = summed("sum_of_steps", f"{SOURCE}, lemma 3", terms, steps_made, start)
mistakes = summed("mistakes", f"{SOURCE}, corollary 2", terms, mistakes_made, start)


def _judged(
    hp: AggressivePerceptronHparams, proof: Certificate, account: Account, u: PyTree
) -> Certificate:
    return proof.under({UNIT_WEIGHTS: account.unit, DOMAIN: hp.mirror.outside(u) == 0})


@public
def self_tuned_aggressive(mirror: MirrorMap, complexity: Scalar, margin: Scalar = 1.0) -> Learner:
    r"""Learn from every margin error, with a step size set by the number of mistakes.

    mirror: strongly convex in a norm that it states, with minimum 0.
    complexity: $U$, the largest $f(u)$ to compete with; $\log d$ for the entropy.
    margin: $\gamma$; below 1 for the entropy and rows in $[-1, 1]^d$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> learner = self_tuned_aggressive(olx.mirrors.euclidean(), complexity=12.5)
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.2).holds)
    True
    """
    norm, modulus = _norm_of(mirror)
    complexity = check.positive("complexity", complexity)
    margin = check.positive("margin", margin)
    root = jnp.sqrt(modulus)  # the schedule is for a modulus of 1
    own = Norm(Partial(_scaled, root, norm.primal), Partial(_scaled, 1 / root, norm.dual))
    schedule = mistake_schedule(complexity, own)
    learner = dual_ascent(schedule, mirror, margin_hinge(margin), aggressive())
    return learner.carrying(self_tuned_aggressive_mistakes)


def open_self_tuned(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Tally:
    return open_tally(hp.loss.hparams, hp, state, u, every=True)


def self_tuned_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return self_tuned(tally, hp.eta.hparams.complexity)


def _is_self_tuned(learner: Learner) -> bool:
    hp = learner.hparams
    if not isinstance(hp, DualAscentHparams) or not hp.mirror.states_norm:
        return False
    return alike(hp, self_tuned_aggressive(hp.mirror, 1.0).hparams)


self_tuned_aggressive_mistakes = Theorem(
    "self_tuned_aggressive_mistakes",
    "Shalev-Shwartz 2007, theorem 6",
    open_self_tuned,
    add_round,
    self_tuned_sides,
    about=About("`self_tuned_aggressive`", _is_self_tuned),
)


def _scaled(factor: Scalar, norm: Partial, x: PyTree) -> Array:
    return factor * norm(x)


def _norm_of(mirror: MirrorMap) -> tuple[Norm, Scalar]:
    """The norm and the modulus of a mirror map; refuses one that does not state them."""
    check.instance("mirror", mirror, MirrorMap)
    if mirror.norm is None or mirror.modulus is None:
        raise RefusedType(
            "`mirror` must state its norm and modulus, which set the step "
            "size; give them to `olx.mirror_map`."
        )
    return mirror.norm, mirror.modulus
