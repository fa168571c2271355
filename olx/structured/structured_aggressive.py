r"""The aggressive learner of the max loss: each round raises its dual by several Frank-Wolfe steps.

The dual of the max loss has one variable per output. With $a_{y'} = \phi(x_t, y_t) - \phi(x_t, y')$
and $c = 1 / C$, the best update of round $t$ is

$$w_{t+1} = w_t + C \sum_{y'} \alpha_{y'} a_{y'}, \qquad \alpha = \arg\max_{\alpha \ge 0,\
  \|\alpha\|_1 \le 1}\ \sum_{y'} \alpha_{y'} \rho(y_t, y') - \frac{1}{2 C} \Big\| w_t + C \sum_{y'}
  \alpha_{y'} a_{y'} \Big\|^2.$$

A step finds the output that violates its margin most at the current weights, and moves $\alpha$
towards it as far as is best. Every step raises the dual; the first one is the update of
`structured_passive_aggressive`. So for every number of steps and every $u$, with $M$ the rounds of
a positive max loss, $r_s$ the output that violates its margin most at $w_s$, $L$ the sum of the max
losses of $u$ and $X$ the largest $\|a_{r_s}\|$ in $M$,

$$\sum_{s \le t} \rho(y_s, \hat y_s) \le L + \frac{\|u - w_1\|^2}{2 C} + \frac C2 \sum_{s \in M}
  \|a_{r_s}\|^2 \le L + \frac{\|u - w_1\|^2}{2 C} + \frac C2 X^2 t.$$

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (7.34), which solves it
by subgradient steps; Lacoste-Julien, Jaggi, Schmidt, Pletscher, Block-Coordinate Frank-Wolfe
Optimization for Structural SVMs, 2013.
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
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.structured import ledger, walk
from olx.structured.ledger import Account
from olx.structured.losses import contrast, max_loss
from olx.structured.structure import Structure
from olx.structured.walk import Walk
from olx.theorem import Certificate, summed


@pytree
class StructuredAggressiveHparams:
    structure: Structure
    aggressiveness: Scalar
    steps: int = static()


class StructuredAggressiveState(NamedTuple):
    walk: Walk


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
    check.instance("structure", structure, Structure)
    max_loss(structure)  # refuses a cost that is not a sum over parts
    most = check.positive("aggressiveness", aggressiveness)
    check.count("steps", steps)
    return Learner(
        StructuredAggressiveHparams(structure, most, steps),
        init,
        predict,
        update,
        needs=structure.needs,
        theorems=(structured_aggressive_cost,),
    )


def init(hp: StructuredAggressiveHparams, params: PyTree) -> StructuredAggressiveState:
    return StructuredAggressiveState(walk.start(params))


def predict(
    hp: StructuredAggressiveHparams, state: StructuredAggressiveState, context: PyTree
) -> PyTree:
    return hp.structure.parts(state.walk.w, context)


class Climb(NamedTuple):
    """A point of the dual of a round."""

    slope: PyTree  # the sum of alpha times the slopes of the margins, in the parts
    cost: Array  # the sum of alpha times the costs
    parts: PyTree  # the scores of the parts at the weights of this point


def update(
    hp: StructuredAggressiveHparams, state: StructuredAggressiveState, feedback: Feedback
) -> StructuredAggressiveState:
    structure, w, parts = hp.structure, state.walk.w, feedback.action
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
    return StructuredAggressiveState(walk.step(structure, state.walk, most, feedback, end.slope))


def start(hp: StructuredAggressiveHparams, state: StructuredAggressiveState, u: PyTree) -> Account:
    return ledger.first_account(state.walk.w, u)


def terms(
    hp: StructuredAggressiveHparams, state: StructuredAggressiveState, feedback: Feedback, u: PyTree
) -> Account:
    structure, parts, y = hp.structure, feedback.action, feedback.outcome
    rival = structure.worst(parts, y)
    seen = contrast(structure, parts, y, rival)
    c = 1 / hp.aggressiveness * jnp.ones_like(seen.hinge)
    return ledger.terms(structure, state.walk.w, feedback, u, rival, seen.hinge > 0, c)


def both_sides(hp: StructuredAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    known = account.worst + account.c * account.price
    at_most = account.largest * account.rounds / (2 * account.c)
    return ledger.certified(hp.structure, account, known + account.spent, known + at_most)


structured_aggressive_cost = summed(
    "structured_aggressive_cost",
    "Shalev-Shwartz 2007, sections 5.3.3 and 7.4",
    terms,
    both_sides,
    start,
)
