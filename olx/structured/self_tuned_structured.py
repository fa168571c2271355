r"""The structured learner with an automatic step size, set by the number of mistakes.

After a mistake, $\rho_t = \rho(y_t, \hat y_t) > 0$, with $a_t = \phi(x_t, y_t) - \phi(x_t, \hat
y_t)$, $m_t$ the number of mistakes and $X_t$ the largest $\|a_s\|$ of a mistake, both until $t$
inclusive,

$$c_t = X_t \sqrt{\frac{m_t}{2 U}}, \qquad \alpha_t = \min\Big(1, \frac{\max(0, c_t \rho_t - \langle
  \theta_t, a_t\rangle)}{\|a_t\|^2}\Big), \qquad \theta_{t+1} = \theta_t + \alpha_t a_t.$$

The decision is $\theta_t / c_t$. The decoded output does not depend on its scale, so the learner
plays the scores of $\theta_t$. For every $u$ with $\frac12 \|u\|^2 \le U$ and costs of 0 or at
least 1, with $L$ the sum of the max losses of $u$ and $X$ the largest $\|a_s\|$ of a mistake,

$$\sum_s \rho(y_s, \hat y_s) \le L + X \sqrt{8 U L} + 8 X^2 U.$$

If the smallest positive cost is $r < 1$, the bound has $X^2 / r$ in place of $X^2$. The right side
`right` uses the actual sums, and any $u$: see `olx.structured.ledger`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 5.4, theorem 7.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.mistakes import solved
from olx.structured import ledger, walk
from olx.structured.ledger import Account
from olx.structured.losses import contrast
from olx.structured.structure import Structure
from olx.structured.walk import Walk
from olx.theorem import Certificate, summed


@pytree
class SelfTunedStructuredHparams:
    structure: Structure
    complexity: Scalar


class SelfTunedStructuredState(NamedTuple):
    walk: Walk  # of theta
    longest: Float[Array, ""]  # X^2
    mistakes: Float[Array, ""]  # m


@public
def self_tuned_structured(structure: Structure, complexity: Scalar) -> Learner:
    r"""Learn from every mistake, with a step size set by their number.

    structure: any cost; the theorem is about costs of 0 or at least 1, as the Hamming cost.
    complexity: $U$, positive: the largest $\frac12 \|u\|^2$ to compete with.

    Only the shape of `params` is used. `averaged_weights` gives the mean of $\theta_t$.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=3)
    >>> rounds = olx.structured.padded_rounds([jnp.eye(3)] * 3, [[1, 0, 1]] * 3)
    >>> learner = self_tuned_structured(words, 2.0)
    >>> run = olx.run(learner, olx.structured.decoded_cost(words), rounds, words.zeros())
    >>> run.losses.tolist()
    [2.0, 0.0, 0.0]
    """
    check.instance("structure", structure, Structure)
    complexity = check.positive("complexity", complexity)
    return Learner(
        SelfTunedStructuredHparams(structure, complexity),
        init,
        predict,
        update,
        needs=structure.needs,
        theorems=(self_tuned_structured_cost,),
    )


def init(hp: SelfTunedStructuredHparams, params: PyTree) -> SelfTunedStructuredState:
    begun = walk.start(tree.zeros_like(params))
    return SelfTunedStructuredState(begun, begun.total.value, begun.total.value)


def predict(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, context: PyTree
) -> PyTree:
    return hp.structure.parts(state.walk.w, context)


def update(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, feedback: Feedback
) -> SelfTunedStructuredState:
    structure, parts, y = hp.structure, feedback.action, feedback.outcome
    seen = contrast(structure, parts, y, structure.decode(parts))
    square = structure.square(state.walk.w, feedback.context, seen.slope)
    weight = jnp.where(seen.wrong, jnp.asarray(feedback.weight, square.dtype), 0.0)
    mistakes = state.mistakes + weight
    longest = jnp.where(seen.wrong, jnp.maximum(state.longest, square), state.longest)
    gap = jnp.maximum(_rate(hp, longest, mistakes) * seen.cost - seen.margin, 0.0)
    alpha = jnp.minimum(weight, safe.divide(gap, square))
    new = walk.step(structure, state.walk, alpha, feedback, seen.slope)
    return SelfTunedStructuredState(new, longest, mistakes)


def _rate(hp: SelfTunedStructuredHparams, longest: Array, mistakes: Array) -> Array:
    """c, with X^2 = `longest`."""
    return safe.sqrt(longest * mistakes / (2 * hp.complexity))


def start(hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, u: PyTree) -> Account:
    return ledger.first_account(tree.zeros_like(state.walk.w), u)


def terms(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, feedback: Feedback, u: PyTree
) -> Account:
    structure, after = hp.structure, update(hp, state, feedback)
    output = structure.decode(feedback.action)
    wrong = contrast(structure, feedback.action, feedback.outcome, output).wrong
    c = _rate(hp, after.longest, after.mistakes)
    return ledger.terms(structure, state.walk.w, feedback, u, output, wrong, c)


def both_sides(hp: SelfTunedStructuredHparams, account: Account, u: PyTree) -> Certificate:
    right = account.gaps + account.c * account.price + account.spent
    slope = jnp.sqrt(8 * hp.complexity * account.largest / account.least)
    far = account.price > hp.complexity * (1 + 1e3 * jnp.finfo(account.price.dtype).eps)
    published = jnp.where(far, jnp.inf, solved(account.worst, slope))
    return ledger.certified(hp.structure, account, right, published)


self_tuned_structured_cost = summed(
    "self_tuned_structured_cost", "Shalev-Shwartz 2007, theorem 7", terms, both_sides, start
)
