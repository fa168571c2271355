r"""The structured passive-aggressive learner: correct each margin error, by a bounded step.

With the rival output $r_t$ of a margin loss and $a_t = \phi(x_t, y_t) - \phi(x_t, r_t)$,

$$w_{t+1} = w_t + \tau_t a_t, \qquad
  \tau_t = \min\Big(C, \frac{\max(0, \rho(y_t, r_t) - \langle w_t, a_t\rangle)}{\|a_t\|^2}\Big).$$

For `prediction_loss` $r_t$ is the decoded output $\hat y_t$; for `max_loss` it is the output that
violates its margin most. It is the aggressive dual ascent on the hinge of $r_t$ with $c = 1 / C$.
So for every $u$, with $M$ the rounds of a positive loss,

$$\sum_{s \le t} \rho(y_s, \hat y_s) \le \sum_{s \in M} \max(0, \rho(y_s, r_s) - \langle u,
  a_s\rangle) + \frac{\|u - w_1\|^2}{2 C} + \frac C2 \sum_{s \in M} \|a_s\|^2
  \le L + \frac{\|u - w_1\|^2}{2 C} + \frac C2 X^2 t,$$

with $L$ the sum of the max losses of $u$ and $X$ the largest $\|a_s\|$ in $M$.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.core import Feedback, Learner, Scalar
from olx.structured import ledger, walk
from olx.structured.ledger import Account
from olx.structured.losses import Contrast, PartsLoss, contrast
from olx.structured.walk import Walk
from olx.theorem import Certificate, summed


@pytree
class StructuredPassiveAggressiveHparams:
    loss: PartsLoss
    aggressiveness: Scalar


class StructuredPassiveAggressiveState(NamedTuple):
    walk: Walk


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
    return Learner(
        StructuredPassiveAggressiveHparams(loss, most),
        init,
        predict,
        update,
        needs=loss.needs,
        theorems=(structured_cost,),
    )


def init(
    hp: StructuredPassiveAggressiveHparams, params: PyTree
) -> StructuredPassiveAggressiveState:
    return StructuredPassiveAggressiveState(walk.start(params))


def predict(
    hp: StructuredPassiveAggressiveHparams,
    state: StructuredPassiveAggressiveState,
    context: PyTree,
) -> PyTree:
    return hp.loss.structure.parts(state.walk.w, context)


def update(
    hp: StructuredPassiveAggressiveHparams,
    state: StructuredPassiveAggressiveState,
    feedback: Feedback,
) -> StructuredPassiveAggressiveState:
    structure, (_, seen) = hp.loss.structure, _rival(hp, feedback)
    square = structure.square(state.walk.w, feedback.context, seen.slope)
    weight = jnp.asarray(feedback.weight, square.dtype)
    tau = jnp.minimum(hp.aggressiveness * weight, safe.divide(seen.hinge, square))
    return StructuredPassiveAggressiveState(
        walk.step(structure, state.walk, tau, feedback, seen.slope)
    )


def _rival(hp: StructuredPassiveAggressiveHparams, feedback: Feedback) -> tuple[PyTree, Contrast]:
    parts, y = feedback.action, feedback.outcome
    assert hp.loss.rival_fn is not None  # the factory has checked
    rival = hp.loss.rival_fn(hp.loss.structure, parts, y)
    return rival, contrast(hp.loss.structure, parts, y, rival)


def start(
    hp: StructuredPassiveAggressiveHparams, state: StructuredPassiveAggressiveState, u: PyTree
) -> Account:
    return ledger.first_account(state.walk.w, u)


def terms(
    hp: StructuredPassiveAggressiveHparams,
    state: StructuredPassiveAggressiveState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    structure, (rival, seen) = hp.loss.structure, _rival(hp, feedback)
    c = 1 / hp.aggressiveness * jnp.ones_like(seen.hinge)
    return ledger.terms(structure, state.walk.w, feedback, u, rival, seen.hinge > 0, c)


def both_sides(hp: StructuredPassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    paid = account.c * account.price
    at_most = account.largest * account.rounds / (2 * account.c)
    right, published = account.gaps + paid + account.spent, account.worst + paid + at_most
    return ledger.certified(hp.loss.structure, account, right, published)


structured_cost = summed(
    "structured_cost",
    "Shalev-Shwartz 2007, section 5.3.3, a fixed step size",
    terms,
    both_sides,
    start,
)
