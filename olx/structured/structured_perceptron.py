r"""The structured Perceptron, and its form with an automatic step size: learn from mistakes only.

With $\hat y_t = \arg\max_y \langle w_t, \phi(x_t, y)\rangle$, $\rho_t = \rho(y_t, \hat y_t)$ and
$a_t = \phi(x_t, y_t) - \phi(x_t, \hat y_t)$, the Perceptron adds the features of the truth minus
those decoded:

$$w_1 = 0, \qquad w_{t+1} = w_t + a_t \text{ if } \rho_t > 0.$$

A step size would only scale $w_t$, so the bound of the prediction-based loss with a fixed $c$ holds
for every $c$ at once. With $M$ the set of mistakes, $X$ the largest $\|a_s\|$ in $M$, $L$ the sum
of the max losses of $u$, and costs of at least 1,

$$\sum_s \rho_s \le \sum_{s \in M} \max(0, \rho_s - \langle u, a_s\rangle)
  + \|u\| \sqrt{\sum_{s \in M} \|a_s\|^2} \le L + X \|u\| \sqrt L + X^2 \|u\|^2.$$

`self_tuned_structured` sets its step by the number $m_t$ of mistakes and the largest $\|a_s\|$ of a
mistake, $X_t$, both until $t$ inclusive. After a mistake

$$c_t = X_t \sqrt{\frac{m_t}{2 U}}, \qquad \alpha_t = \min\Big(1, \frac{\max(0, c_t \rho_t - \langle
  \theta_t, a_t\rangle)}{\|a_t\|^2}\Big), \qquad \theta_{t+1} = \theta_t + \alpha_t a_t.$$

The decision is $\theta_t / c_t$. The decoded output does not depend on its scale, so the learner
plays the scores of $\theta_t$. For every $u$ with $\frac12 \|u\|^2 \le U$,

$$\sum_s \rho_s \le L + X \sqrt{8 U L} + 8 X^2 U.$$

`right` uses the actual sums, and any $u$: see `olx.structured.additive`. If the smallest positive
cost is $r < 1$, both published forms have $X^2 / r$ in place of $X^2$.

Collins, Discriminative Training Methods for Hidden Markov Models, 2002; Shalev-Shwartz, Online
Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3, with the best $c$, figure 5.4
and theorem 7.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.mistakes import solved
from olx.structured import additive
from olx.structured.additive import Account, StructuredState, Walk
from olx.structured.losses import Contrast, contrast
from olx.structured.structure import Structure
from olx.theorem import summed


@pytree
class SelfTunedStructuredHparams:
    structure: Structure
    complexity: Scalar


class SelfTunedStructuredState(NamedTuple):
    walk: Walk  # of theta
    longest: Float[Array, ""]  # X^2
    mistakes: Float[Array, ""]  # m


@public
def structured_perceptron(structure: Structure) -> Learner:
    """The structured Perceptron, which plays the scores of the parts.

    Only the shape of `params` is used; `structure.zeros()` has it. `averaged_weights` gives the
    mean of the weights, which is the better one for new data.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=3)
    >>> rounds = olx.structured.padded_rounds([jnp.eye(3)] * 3, [[1, 0, 1]] * 3)
    >>> learner = structured_perceptron(words)
    >>> run = olx.run(learner, olx.structured.decoded_cost(words), rounds, words.zeros())
    >>> run.losses.tolist()
    [2.0, 0.0, 0.0]
    """
    check.instance("structure", structure, Structure)
    needs, theorems = structure.needs, (structured_perceptron_cost,)
    return Learner(structure, init, predict, update, needs=needs, theorems=theorems)


def init(structure: Structure, params: PyTree) -> StructuredState:
    return StructuredState(additive.first_walk(tree.zeros_like(params)))


def predict(structure: Structure, state: StructuredState, context: PyTree) -> PyTree:
    return structure.parts(state.walk.w, context)


def update(structure: Structure, state: StructuredState, feedback: Feedback) -> StructuredState:
    _, seen = _decoded(structure, feedback)
    factor = jnp.where(seen.wrong, jnp.asarray(feedback.weight, seen.cost.dtype), 0.0)
    return StructuredState(additive.add_step(structure, state.walk, factor, feedback, seen.slope))


def _decoded(structure: Structure, feedback: Feedback) -> tuple[PyTree, Contrast]:
    """The decoded output, and the truth against it."""
    output = structure.decode(feedback.action)
    return output, contrast(structure, feedback.action, feedback.outcome, output)


def start(hp: PyTree, state: StructuredState | SelfTunedStructuredState, u: PyTree) -> Account:
    return additive.first_account(tree.zeros_like(state.walk.w), u)


def terms(structure: Structure, state: StructuredState, feedback: Feedback, u: PyTree) -> Account:
    output, seen = _decoded(structure, feedback)
    one = jnp.ones_like(seen.hinge)
    return additive.account_terms(structure, state.walk.w, feedback, u, output, seen.wrong, one)


def both_sides(structure: Structure, account: Account, u: PyTree) -> Certificate:
    right = account.gaps + jnp.sqrt(2 * account.price * account.squares)
    slope = jnp.sqrt(2 * account.price * account.largest / account.least)
    return additive.certified(structure, account, right, solved(account.worst, slope))


structured_perceptron_cost = summed(
    "structured_perceptron_cost", "Shalev-Shwartz 2007, section 5.3.3", terms, both_sides, start
)


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
    functions = self_tuned_init, self_tuned_predict, self_tuned_update
    needs, theorems = structure.needs, (self_tuned_structured_cost,)
    hparams = SelfTunedStructuredHparams(structure, complexity)
    return Learner(hparams, *functions, needs=needs, theorems=theorems)


def self_tuned_init(hp: SelfTunedStructuredHparams, params: PyTree) -> SelfTunedStructuredState:
    begun = additive.first_walk(tree.zeros_like(params))
    return SelfTunedStructuredState(begun, begun.total.value, begun.total.value)


def self_tuned_predict(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, context: PyTree
) -> PyTree:
    return hp.structure.parts(state.walk.w, context)


def self_tuned_update(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, feedback: Feedback
) -> SelfTunedStructuredState:
    structure, (_, seen) = hp.structure, _decoded(hp.structure, feedback)
    square = structure.square(state.walk.w, feedback.context, seen.slope)
    weight = jnp.where(seen.wrong, jnp.asarray(feedback.weight, square.dtype), 0.0)
    mistakes = state.mistakes + weight
    longest = jnp.where(seen.wrong, jnp.maximum(state.longest, square), state.longest)
    gap = jnp.maximum(_rate(hp, longest, mistakes) * seen.cost - seen.margin, 0.0)
    alpha = jnp.minimum(weight, safe.divide(gap, square))
    new = additive.add_step(structure, state.walk, alpha, feedback, seen.slope)
    return SelfTunedStructuredState(new, longest, mistakes)


def _rate(hp: SelfTunedStructuredHparams, longest: Array, mistakes: Array) -> Array:
    """c, with X^2 = `longest`."""
    return safe.sqrt(longest * mistakes / (2 * hp.complexity))


def self_tuned_terms(
    hp: SelfTunedStructuredHparams, state: SelfTunedStructuredState, feedback: Feedback, u: PyTree
) -> Account:
    (output, seen), after = _decoded(hp.structure, feedback), self_tuned_update(hp, state, feedback)
    c = _rate(hp, after.longest, after.mistakes)
    return additive.account_terms(hp.structure, state.walk.w, feedback, u, output, seen.wrong, c)


def self_tuned_sides(hp: SelfTunedStructuredHparams, account: Account, u: PyTree) -> Certificate:
    right = account.gaps + account.c * account.price + account.spent
    slope = jnp.sqrt(8 * hp.complexity * account.largest / account.least)
    far = account.price > hp.complexity * (1 + 1e3 * jnp.finfo(account.price.dtype).eps)
    published = jnp.where(far, jnp.inf, solved(account.worst, slope))
    return additive.certified(hp.structure, account, right, published)


self_tuned_structured_cost = summed(
    "self_tuned_structured_cost",
    "Shalev-Shwartz 2007, theorem 7",
    self_tuned_terms,
    self_tuned_sides,
    start,
)
