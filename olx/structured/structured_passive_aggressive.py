r"""Structured passive-aggressive learners: correct margin errors by one bounded step, or several.

With the rival output $r_t$ of a margin loss and $a_{y'} = \phi(x_t, y_t) - \phi(x_t, y')$, the
passive-aggressive learner makes one step,

$$w_{t+1} = w_t + \tau_t a_{r_t}, \qquad \tau_t = \min\Big(C, \frac{\max(0, \rho(y_t, r_t) - \langle
  w_t, a_{r_t}\rangle)}{\|a_{r_t}\|^2}\Big).$$

For `prediction_loss` $r_t$ is the decoded output $\hat y_t$; for `max_loss` it is the output that
violates its margin most. It is the aggressive dual ascent on the hinge of $r_t$ with $c = 1 / C$.
So for every $u$, with $M$ the rounds of a positive loss,

$$\sum_{s \le t} \rho(y_s, \hat y_s) \le \sum_{s \in M} \max(0, \rho(y_s, r_s) - \langle u,
  a_{r_s}\rangle) + \frac{\|u - w_1\|^2}{2 C} + \frac C2 \sum_{s \in M} \|a_{r_s}\|^2
  \le L + \frac{\|u - w_1\|^2}{2 C} + \frac C2 X^2 t,$$

with $L$ the sum of the max losses of $u$ and $X$ the largest $\|a_{r_s}\|$ in $M$.

The dual of the max loss has one variable per output. The best update of round $t$ is

$$w_{t+1} = w_t + C \sum_{y'} \alpha_{y'} a_{y'}, \qquad \alpha = \arg\max_{\alpha \ge 0,\
  \|\alpha\|_1 \le 1}\ \sum_{y'} \alpha_{y'} \rho(y_t, y') - \frac{1}{2 C} \Big\| w_t + C \sum_{y'}
  \alpha_{y'} a_{y'} \Big\|^2.$$

`structured_aggressive` comes close to it by Frank-Wolfe steps. A step finds the output that
violates its margin most at the current weights, and moves $\alpha$ towards it as far as is best.
Every step raises the dual; the first one is the update above for the max loss. So for every number
of steps and every $u$ the bound holds with $L$ in place of the first sum.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3 and
(7.34), which solves it by subgradient steps; Lacoste-Julien, Jaggi, Schmidt, Pletscher,
Block-Coordinate Frank-Wolfe Optimization for Structural SVMs, 2013.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedType, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.structured import additive
from olx.structured.additive import Account, StructuredState
from olx.structured.losses import Contrast, PartsLoss, contrast, max_loss
from olx.structured.structure import Structure
from olx.theorem import summed


@pytree
class StructuredPassiveAggressiveHparams:
    loss: PartsLoss
    aggressiveness: Scalar


@pytree
class StructuredAggressiveHparams:
    loss: PartsLoss  # the max loss
    aggressiveness: Scalar
    steps: int = static()


Hparams = StructuredPassiveAggressiveHparams | StructuredAggressiveHparams


@public
def structured_passive_aggressive(loss: PartsLoss, aggressiveness: Scalar) -> Learner:
    """Correct a margin error by a step of at most `aggressiveness`; plays the scores of the parts.

    loss: `max_loss(structure)` or `prediction_loss(structure)`; the learner's own loss. The game
        may use another one, such as `decoded_cost(structure)`.
    aggressiveness: $C$, positive; smaller for more noise.

    `params` is the first decision. `averaged_weights` gives the mean of the weights.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=3)
    >>> rounds = olx.structured.padded_rounds([jnp.eye(3)] * 4, [[1, 0, 1]] * 4)
    >>> learner = structured_passive_aggressive(olx.structured.max_loss(words), 0.1)
    >>> run = olx.run(learner, olx.structured.max_loss(words), rounds, words.zeros())
    >>> [f"{loss:.2f}" for loss in run.losses]
    ['3.00', '2.00', '1.00', '0.40']
    """
    check.instance("loss", loss, PartsLoss)
    if loss.rival_fn is None:
        raise RefusedType(
            "`loss` must be a margin loss, one of `max_loss` and "
            "`prediction_loss`; the other losses train by `structured_model`."
        )
    most = check.positive("aggressiveness", aggressiveness)
    hparams, theorems = StructuredPassiveAggressiveHparams(loss, most), (structured_cost,)
    return Learner(hparams, init, predict, update, needs=loss.needs, theorems=theorems)


@public
def structured_aggressive(structure: Structure, aggressiveness: Scalar, steps: int) -> Learner:
    """Raise the dual of the max loss by `steps` Frank-Wolfe steps per round.

    structure: its cost must be a sum over parts.
    aggressiveness: $C$, positive; smaller for more noise.
    steps: each decodes once. More steps come closer to the best update.

    `params` is the first decision. `averaged_weights` gives the mean of the weights.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=3, features=3)
    >>> rounds = olx.structured.padded_rounds([jnp.eye(3)] * 4, [[1, 0, 2]] * 4)
    >>> learner = structured_aggressive(words, 1.0, steps=10)
    >>> run = olx.run(learner, olx.structured.decoded_cost(words), rounds, words.zeros())
    >>> run.losses.tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    loss = max_loss(structure)  # refuses a cost that is not a sum over parts
    most = check.positive("aggressiveness", aggressiveness)
    check.count("steps", steps)
    hparams = StructuredAggressiveHparams(loss, most, steps)
    theorems = (structured_aggressive_cost,)
    return Learner(hparams, init, predict, aggressive_update, needs=loss.needs, theorems=theorems)


def init(hp: Hparams, params: PyTree) -> StructuredState:
    return StructuredState(additive.first_walk(params))


def predict(hp: Hparams, state: StructuredState, context: PyTree) -> PyTree:
    return hp.loss.structure.parts(state.walk.w, context)


def update(
    hp: StructuredPassiveAggressiveHparams, state: StructuredState, feedback: Feedback
) -> StructuredState:
    structure, (_, seen) = hp.loss.structure, _rival(hp, feedback)
    square = structure.square(state.walk.w, feedback.context, seen.slope)
    weight = jnp.asarray(feedback.weight, square.dtype)
    tau = jnp.minimum(hp.aggressiveness * weight, safe.divide(seen.hinge, square))
    return StructuredState(additive.add_step(structure, state.walk, tau, feedback, seen.slope))


def _rival(hp: Hparams, feedback: Feedback) -> tuple[PyTree, Contrast]:
    """The rival output of the loss, and the truth against it."""
    parts, y = feedback.action, feedback.outcome
    assert hp.loss.rival_fn is not None  # the factory has checked
    rival = hp.loss.rival_fn(hp.loss.structure, parts, y)
    return rival, contrast(hp.loss.structure, parts, y, rival)


class Climb(NamedTuple):
    """A point of the dual of a round."""

    slope: PyTree  # the sum of alpha times the slopes of the margins, in the parts
    cost: Array  # the sum of alpha times the costs
    parts: PyTree  # the scores of the parts at the weights of this point


def aggressive_update(
    hp: StructuredAggressiveHparams, state: StructuredState, feedback: Feedback
) -> StructuredState:
    structure, w, parts = hp.loss.structure, state.walk.w, feedback.action
    zero = tree.zeros_like(parts)
    begin = Climb(zero, jnp.zeros((), jnp.result_type(*jax.tree.leaves(parts))), parts)
    most = hp.aggressiveness * jnp.asarray(feedback.weight, begin.cost.dtype)

    def climb(at: Climb, _: None) -> tuple[Climb, None]:
        rival = structure.worst(at.parts, feedback.outcome)
        seen = contrast(structure, at.parts, feedback.outcome, rival)
        way, more = tree.sub(seen.slope, at.slope), seen.cost - at.cost
        change = structure.kernel(w, feedback.context, way)
        rise = more - tree.vdot(at.parts, way)
        step = jnp.clip(safe.divide(rise, most * tree.vdot(way, change)), 0.0, 1.0)
        slope, cost = tree.add_scale(at.slope, step, way), at.cost + step * more
        return Climb(slope, cost, tree.add_scale(at.parts, step * most, change)), None

    end, _ = lax.scan(climb, begin, length=hp.steps)
    return StructuredState(additive.add_step(structure, state.walk, most, feedback, end.slope))


def start(hp: Hparams, state: StructuredState, u: PyTree) -> Account:
    return additive.first_account(state.walk.w, u)


def terms(hp: Hparams, state: StructuredState, feedback: Feedback, u: PyTree) -> Account:
    structure, (rival, seen) = hp.loss.structure, _rival(hp, feedback)
    c = 1 / hp.aggressiveness * jnp.ones_like(seen.hinge)
    return additive.account_terms(structure, state.walk.w, feedback, u, rival, seen.hinge > 0, c)


def both_sides(hp: StructuredPassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    paid = account.c * account.price
    at_most = account.largest * account.rounds / (2 * account.c)
    right, published = account.gaps + paid + account.spent, account.worst + paid + at_most
    return additive.certified(hp.loss.structure, account, right, published)


structured_cost = summed(
    "structured_cost",
    "Shalev-Shwartz 2007, section 5.3.3, a fixed step size",
    terms,
    both_sides,
    start,
)


def aggressive_sides(hp: StructuredAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    known = account.worst + account.c * account.price
    at_most = account.largest * account.rounds / (2 * account.c)
    return additive.certified(hp.loss.structure, account, known + account.spent, known + at_most)


structured_aggressive_cost = summed(
    "structured_aggressive_cost",
    "Shalev-Shwartz 2007, sections 5.3.3 and 7.4",
    terms,
    aggressive_sides,
    start,
)
