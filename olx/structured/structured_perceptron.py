r"""The structured Perceptron: after a mistake, add the features of the truth minus those decoded.

$$w_1 = 0, \qquad \hat y_t = \arg\max_y \langle w_t, \phi(x_t, y)\rangle, \qquad
  w_{t+1} = w_t + \phi(x_t, y_t) - \phi(x_t, \hat y_t) \text{ if } \rho(y_t, \hat y_t) > 0.$$

A step size would only scale $w_t$, so the bound of the prediction-based loss with a fixed $c$ holds
for every $c$ at once. With $M$ the set of mistakes, $a_s = \phi(x_s, y_s) - \phi(x_s, \hat y_s)$,
$X$ the largest $\|a_s\|$ in $M$, $L$ the sum of the max losses of $u$, and costs of at least 1,

$$\sum_s \rho(y_s, \hat y_s) \le \sum_{s \in M} \max(0, \rho(y_s, \hat y_s) - \langle u, a_s\rangle)
  + \|u\| \sqrt{\sum_{s \in M} \|a_s\|^2} \le L + X \|u\| \sqrt L + X^2 \|u\|^2.$$

If the smallest positive cost is $r < 1$, the published form has $X^2 / r$ in place of $X^2$.

Collins, Discriminative Training Methods for Hidden Markov Models, 2002; Shalev-Shwartz, Online
Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3, with the best $c$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner
from olx.frameworks.mistakes import solved
from olx.structured import ledger, walk
from olx.structured.ledger import Account
from olx.structured.losses import contrast
from olx.structured.structure import Structure
from olx.structured.walk import Walk
from olx.theorem import Certificate, summed


class StructuredPerceptronState(NamedTuple):
    walk: Walk


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
    return Learner(
        structure,
        init,
        predict,
        update,
        needs=structure.needs,
        theorems=(structured_perceptron_cost,),
    )


def init(structure: Structure, params: PyTree) -> StructuredPerceptronState:
    return StructuredPerceptronState(walk.start(tree.zeros_like(params)))


def predict(structure: Structure, state: StructuredPerceptronState, context: PyTree) -> PyTree:
    return structure.parts(state.walk.w, context)


def update(
    structure: Structure, state: StructuredPerceptronState, feedback: Feedback
) -> StructuredPerceptronState:
    parts, y = feedback.action, feedback.outcome
    seen = contrast(structure, parts, y, structure.decode(parts))
    factor = jnp.where(seen.wrong, jnp.asarray(feedback.weight, seen.cost.dtype), 0.0)
    return StructuredPerceptronState(walk.step(structure, state.walk, factor, feedback, seen.slope))


def start(structure: Structure, state: StructuredPerceptronState, u: PyTree) -> Account:
    return ledger.first_account(tree.zeros_like(state.walk.w), u)


def terms(
    structure: Structure, state: StructuredPerceptronState, feedback: Feedback, u: PyTree
) -> Account:
    output = structure.decode(feedback.action)
    seen = contrast(structure, feedback.action, feedback.outcome, output)
    one = jnp.ones_like(seen.hinge)
    return ledger.terms(structure, state.walk.w, feedback, u, output, seen.wrong, one)


def both_sides(structure: Structure, account: Account, u: PyTree) -> Certificate:
    right = account.gaps + jnp.sqrt(2 * account.price * account.squares)
    slope = jnp.sqrt(2 * account.price * account.largest / account.least)
    return ledger.certified(structure, account, right, solved(account.worst, slope))


structured_perceptron_cost = summed(
    "structured_perceptron_cost", "Shalev-Shwartz 2007, section 5.3.3", terms, both_sides, start
)
