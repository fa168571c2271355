r"""What structured learners share: weights and their mean, and the account of their cost bounds.

The weights move by multiples of feature differences. With $\tau_s a_s$ added in round $s$, $h_s$
the weight of the round and $H_t = \sum_{s \le t} h_s$,

$$w_t = w_1 + \sum_{s < t} \tau_s a_s, \qquad
  \bar w = \frac{1}{H_T} \sum_{t \le T} h_t w_t = w_{T+1} - \frac{1}{H_T} \sum_{s \le T} H_s \tau_s
  a_s.$$

The last sum is kept beside the weights. It changes at the active features only, where a running
mean would change all weights in every round.

For the bounds, $M$ is the set of rounds in which the learner's own loss counts, $a_s = \phi(x_s,
y_s) - \phi(x_s, r_s)$ for the rival output $r_s$ of the round, and $\hat y_s$ the decoded output.
For every $u$,

$$\sum_{s \le t} \rho(y_s, \hat y_s) \le \sum_{s \in M} \max(0, \rho(y_s, r_s) - \langle u,
  a_s\rangle) + c_t f(u) + \sum_{s \in M} \frac{\|a_s\|^2}{2 c_s},
  \qquad f(u) = \tfrac12 \|u - w_1\|^2,$$

if $w_s = w_1 + acc_s / c_s$, $c$ does not decrease, and each round of $M$ raises the dual as much
as its subgradient would. The published forms replace the hinge of $u$ at $r_s$ by its max loss over
all rounds, and $\|a_s\|$ by the largest, $X$. Here $X$ is over the rounds of $M$, as in the proofs;
the printed $X$ is over all outputs of all rounds.

Daume, Practical Structured Learning Techniques for Natural Language Processing, 2006, for the mean;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3, from
lemmas 1 and 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._numeric import Sum
from olx._refusal import RefusedType, public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Scalar
from olx.structured.losses import contrast
from olx.structured.structure import Structure
from olx.theorem import MET, ZERO, largest, latest, smallest


class Walk(NamedTuple):
    w: PyTree
    late: PyTree  # the sum of H_s tau_s a_s
    total: Sum  # H_t


class StructuredState(NamedTuple):
    walk: Walk


def first_walk(w: PyTree) -> Walk:
    w = jax.tree.map(jnp.asarray, w)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(w)))
    return Walk(w, tree.zeros_like(w), safe.start(zero))


def add_step(
    structure: Structure, walk: Walk, factor: Scalar, feedback: Feedback, slope: PyTree
) -> Walk:
    """Add `factor` times the gradient in w, if `slope` is that in the parts."""
    total = safe.add(walk.total, jnp.asarray(feedback.weight, walk.total.value.dtype))
    add = lambda w, factor: structure.add(w, factor, feedback.context, slope)
    return Walk(add(walk.w, factor), add(walk.late, total.value * factor), total)


@public
def averaged_weights(state: PyTree) -> PyTree:
    """The mean of the weights before each update, from the state of a structured learner.

    The state of a sweep gives one mean for each configuration. Before round 1 it is the start.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=1)
    >>> rounds = olx.structured.padded_rounds([jnp.ones((1, 1))] * 4, [[1]] * 4)
    >>> learner = olx.structured.structured_perceptron(words)
    >>> run = olx.run(learner, olx.structured.decoded_cost(words), rounds, words.zeros())
    >>> run.state.walk.w.emission.tolist(), averaged_weights(run.state).emission.tolist()
    ([[-1.0], [1.0]], [[-0.75], [0.75]])
    """
    walk = getattr(state, "walk", None)
    if not isinstance(walk, Walk):
        raise RefusedType(
            "`state` must be that of a structured learner, such as "
            f"`structured_perceptron`, got {check.seen_as(state)}; give `run.state`."
        )
    return jax.tree.map(lambda w, late: w - _over(late, walk.total.value), walk.w, walk.late)


def _over(late: Array, total: Float[Array, "*n"]) -> Array:
    return late / safe.or_one(jnp.reshape(total, total.shape + (1,) * (late.ndim - total.ndim)))


class Account(NamedTuple):
    price: Float[Array, ""]  # f(u)
    cost: Float[Array, ""]  # the sum of rho(y_s, yhat_s)
    gaps: Float[Array, ""]  # the sum over M of the hinge of u at the rivals
    worst: Float[Array, ""]  # the sum over all rounds of the max loss of u
    squares: Float[Array, ""]  # the sum of |a_s|^2 over M
    spent: Float[Array, ""]  # the sum of |a_s|^2 / (2 c_s) over M
    largest: Float[Array, ""]  # the largest |a_s|^2 in M
    least: Float[Array, ""]  # the smallest positive cost so far, at most 1
    rounds: Float[Array, ""]
    c: Float[Array, ""]  # c_t
    unit: Bool[Array, ""]  # whether all weights were 1


def first_account(w: PyTree, u: PyTree) -> Account:
    apart = tree.sub(check.comparator(u, w), w)
    price = jnp.asarray(tree.vdot(apart, apart)) / 2
    return Account(price, *[ZERO] * 6, least=jnp.ones_like(price), rounds=ZERO, c=ZERO, unit=MET)


def account_terms(
    structure: Structure,
    w: PyTree,
    feedback: Feedback,
    u: PyTree,
    rival: PyTree,
    counts: Array,
    c: Array,
) -> Account:
    """rival: the output r_s; counts: whether the round is in M; c: the c of the round."""
    parts, y = feedback.action, feedback.outcome
    cost = structure.cost(parts, y, structure.decode(parts))
    there = structure.parts(u, feedback.context)
    hinge = lambda output: contrast(structure, there, y, output).hinge
    known = structure.augment_fn is not None
    slope = contrast(structure, parts, y, rival).slope
    square = jnp.where(counts, structure.square(w, feedback.context, slope), 0.0)
    return Account(
        ZERO,
        cost,
        jnp.where(counts, hinge(rival), 0.0),
        hinge(structure.worst(there, y)) if known else ZERO,
        square,
        safe.divide(square, 2 * c),
        largest(square),
        smallest(jnp.where(cost > 0, cost, jnp.inf)),
        jnp.ones_like(square),
        latest(c),
        jnp.asarray(feedback.weight) == 1,
    )


def certified(
    structure: Structure, account: Account, right: Array, published: Array
) -> Certificate:
    """The certificate that the costs so far are at most `right`.

    published: dropped if the max loss of u is not known.
    """
    known = structure.augment_fn is not None
    proof = Certificate(account.cost, right, account.cost + right, published if known else None)
    return proof.given(UNIT_WEIGHTS, account.unit)
