r"""Passive-Aggressive: if the margin is too small, make the smallest step that corrects it.

With the hinge $\ell_t = \max(0, 1 - y_t \langle w_t, x_t\rangle)$ every version sets
$w_{t+1} = w_t + \tau_t y_t x_t$; they differ in $\tau_t$ only:

$$\text{PA: } \frac{\ell_t}{\|x_t\|^2}, \qquad
  \text{PA-I: } \min\Big(C, \frac{\ell_t}{\|x_t\|^2}\Big), \qquad
  \text{PA-II: } \frac{\ell_t}{\|x_t\|^2 + 1 / (2C)}.$$

PA corrects the whole error. PA-I allows a remaining error at a cost of $C$ times its size, PA-II at
$C$ times its square. PA-I is the aggressive dual ascent on the hinge with $c = 1/C$, PA-II on the
squared hinge with $c = 1/(2C)$. A round of weight $h$ uses $h C$ in place of $C$; PA does not
depend on weights.

For classes, $\ell_t$ is the multiclass hinge and $a_t$ replaces $y_t x_t$: the matrix with $x_t$ in
the row of the label and $-x_t$ in that of its best rival, so $\|a_t\|^2 = 2 \|x_t\|^2$.

The bounds are in `olx.classification.passive_aggressive_mistakes`.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx.classification._passive import PassiveAggressiveHparams, PassiveAggressiveState, rate
from olx.classification.passive_aggressive_mistakes import distance, mistakes
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.frameworks.lift import dot, transposed
from olx.losses.hinges import hinge
from olx.losses.labels import labels, of_classes
from olx.losses.score import ScoreLoss
from olx.losses.signs import signs


def passive_aggressive() -> Learner:
    """PA: correct every margin error completely, for separable data.

    `params` is the first decision. The context has the same shape.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> run = olx.rollout(passive_aggressive(), olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    return learner(hinge)


def passive_aggressive_1(aggressiveness: Scalar) -> Learner:
    """PA-I: correct a margin error by a step of at most `aggressiveness`, the C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    most = check.positive("passive_aggressive_1", "aggressiveness", aggressiveness)
    return learner(hinge, most)


def passive_aggressive_2(aggressiveness: Scalar) -> Learner:
    """PA-II: correct a larger part of a margin error for larger `aggressiveness`, C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    c = check.positive("passive_aggressive_2", "aggressiveness", aggressiveness)
    return learner(hinge, softness=1 / (2 * c))


def init(hp: PassiveAggressiveHparams, params: PyTree) -> PassiveAggressiveState:
    return PassiveAggressiveState(jax.tree.map(jnp.asarray, params))


def predict(hp: PassiveAggressiveHparams, state: PassiveAggressiveState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(
    hp: PassiveAggressiveHparams, state: PassiveAggressiveState, feedback: Feedback
) -> PassiveAggressiveState:
    step = transposed(coefficient(hp, feedback), feedback.context)
    return PassiveAggressiveState(tree.add(state.w, step))


def coefficient(hp: PassiveAggressiveHparams, feedback: Feedback) -> Array:
    r"""$\tau_t y_t$, the factor of the row in the update; for classes one factor per class."""
    tau, _, _, direction = rate(hp, feedback)
    return -tau * direction


def learner(loss: ScoreLoss, most: Scalar | None = None, softness: Scalar = 0.0) -> Learner:
    """The learner for a hinge, binary or of classes."""
    owner = "passive_aggressive"
    return Learner(
        PassiveAggressiveHparams(loss, most, softness),
        init,
        predict,
        update,
        facts=Facts(adds=AddsContext(coefficient), coordinates=Rowwise()),
        needs=(labels(owner), of_classes(owner)) if loss.of_classes else (signs(owner),),
        theorems=(distance, mistakes),
    )
