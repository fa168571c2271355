r"""A Perceptron that learns from margin errors too, by steps that only improve its mistake bound.

$$w_t = \nabla f^*(\theta_t), \qquad \theta_{t+1} = \theta_t + \eta_t y_t x_t,$$

$\eta_t = 1$ on mistakes, $y_t \langle w_t, x_t\rangle \le 0$. On margin errors, $0 < y_t \langle
w_t, x_t\rangle < 1$, the mistake bound grows by $\eta_t \big( (\eta_t \|x_t\|_*^2 + 2 \beta y_t
\langle w_t, x_t\rangle) / X_t^2 - 2 \big)$, which is smallest, and never positive, at

$$\eta_t = \mathrm{clip}\Big( \frac{X_t^2 - \beta y_t \langle w_t, x_t\rangle}{\|x_t\|_*^2},
  0, 1 \Big), \qquad X_t = \max_{s \le t} \|x_s\|_*.$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 2 and lemma 3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import pytree
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Trace
from olx.frameworks.lift import dot
from olx.losses.hinges import hinge
from olx.losses.signs import signs
from olx.mirrors.base import MirrorMap


@pytree
class AggressivePerceptronHparams:
    mirror: MirrorMap


class AggressivePerceptronState(NamedTuple):
    theta: PyTree
    largest: Float[Array, ""]  # norm of a row so far


def aggressive_perceptron(mirror: MirrorMap) -> Learner:
    r"""Learn from mistakes in full, from margin errors as far as the mistake bound gains.

    mirror: strongly convex in a norm it states, with $f(\lambda u) \le \lambda^2 f(u)$: `euclidean`
        or `pnorm`.

    `params` only says what decisions look like: the first is the minimizer of $f$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> learner = aggressive_perceptron(olx.mirrors.euclidean())
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.2).holds)
    True
    """
    check.instance("aggressive_perceptron", "mirror", mirror, MirrorMap)
    if mirror.norm is None or mirror.modulus is None:
        raise TypeError(
            "aggressive_perceptron: `mirror` states no norm and modulus, which set the step; give "
            "them to `olx.mirror_map`."
        )
    hparams = AggressivePerceptronHparams(mirror)
    needs = (signs("aggressive_perceptron"),)
    return Learner(hparams, init, predict, update, bound, separable=mirror.separable, needs=needs)


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
    eta, largest = step(hp, state, feedback)
    move = feedback.weight * eta * feedback.outcome
    return AggressivePerceptronState(tree.add_scale(state.theta, move, feedback.context), largest)


def step(
    hp: AggressivePerceptronHparams, state: AggressivePerceptronState, feedback: Feedback
) -> tuple[Array, Array]:
    r"""$\eta_t$ and $X_t$."""
    assert hp.mirror.norm is not None  # the factory has looked
    margin = feedback.outcome * feedback.action
    size = hp.mirror.norm.dual(feedback.context)
    largest = jnp.maximum(state.largest, size)
    least = jnp.clip((largest**2 - hp.mirror.modulus * margin) / safe.or_one(size) ** 2, 0.0, 1.0)
    learns = jnp.where(margin < 1, least, 0.0)
    return jnp.where(margin <= 0, jnp.ones_like(margin), learns), largest


def bound(hp: AggressivePerceptronHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Lemma 3, for any $u$ and rounds of weight 0 or 1:

    $$\sum_{s \le t} \eta_s \le \sum_{s \le t} \eta_s \ell_s(u) + 2 \sqrt{f(u)}
      \sqrt{\Big[ \sum_{s \le t} \frac{\eta_s^2 \|x_s\|_*^2}{2 \beta} +
      \eta_s y_s \langle w_s, x_s\rangle \Big]_+}.$$

    Mistakes count 1 each on the left.
    """
    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], trace.state.theta))
    terms = jax.vmap(lambda state, feedback: _terms(hp, u, state, feedback))
    eta, other, spent, size = jax.tree.map(jnp.cumsum, terms(*trace))
    price = hp.mirror.potential(u)
    right = other + 2 * jnp.sqrt(price * jnp.maximum(spent, 0.0))
    scale = eta + other + 4 * jnp.sqrt(price * size)
    name = "Orabona, Crammer, Cesa-Bianchi 2015, lemma 3"
    proof = Certificate(eta, right, scale, theorem=name)
    proof = proof.given(UNIT_WEIGHTS, trace.feedback.weight == 1)
    return proof.given(DOMAIN, hp.mirror.outside(u) == 0)


def _terms(hp, u, state, feedback):
    x, y = feedback.context, feedback.outcome
    eta, _ = step(hp, state, feedback)
    spent, gained = hp.mirror.energy(eta * x), eta * y * feedback.action
    return eta, eta * hinge(dot(u, x), y), spent + gained, spent + jnp.abs(gained)
