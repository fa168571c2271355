r"""The type of a dual ascent rule: how the dual vectors change after a round.

The loss of the round is $g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$, with $h_t$ the weight of
the round. So its dual vectors are $\lambda_t = h_t \tau_t x_t$ with one number $\tau_t$, and
$g_t^*(\lambda_t) = h_t\,\ell^*(\tau_t, y_t)$. If the score is a vector $W x_t$, so is $\tau_t$, and
$\lambda_t = h_t \tau_t x_t^\top$. A rule chooses $\tau_t$, and may change those of
earlier rounds, such that the dual

$$D_t = -c_t f^*\Big(-\frac1{c_t} \sum_{i \le t} \lambda_i\Big) - \sum_{i \le t} g_i^*(\lambda_i)$$

is at least as large as with the subgradient of $g_t$ at $w_t$. The regret bounds need nothing else.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.9) and (3.19).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Scalar
from olx.frameworks.lift import transposed
from olx.losses.score import ScoreLoss
from olx.mirrors.base import MirrorMap


class Problem(NamedTuple):
    """The dual before the step, and the round that has just ended."""

    mirror: MirrorMap
    loss: ScoreLoss
    c: Scalar
    acc: PyTree  # minus the sum of all dual vectors
    x: PyTree
    y: Array
    weight: Scalar  # weight of the round; 0 if the rule does not count it
    score: Array  # the score played


def always(hparams: PyTree, score: Array, y: Array) -> Array:
    """Every round counts."""
    return jnp.ones((), bool)


@pytree
class Ascent:
    """A dual ascent rule: module-level functions and the hyperparameters they share.

    separable: whether the rule reads only the coordinates of the row, and keeps no earlier rows.
    """

    hparams: PyTree
    init_fn: Callable[..., Any] = static()  # (hparams, params) -> memory
    step_fn: Callable[..., Any] = static()
    # (hparams, memory, problem) -> (acc, change of the sum of conjugates, memory)
    counts_fn: Callable[..., Any] = static(default=always)
    # (hparams, score, y) -> whether the round counts; otherwise its weight is 0
    separable: bool = static(default=True)
    legal_fn: Callable[..., Any] | None = static(default=None)
    # (hparams, problem) -> whether the theorems hold for such a round; None if they always do
    demand: str = static(default="")  # the condition that `legal_fn` checks, in words
    rises: bool = static(default=True)
    # whether the dual rises at least as much as with the subgradient; most theorems need it
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self, params: PyTree) -> PyTree:
        return self.init_fn(self.hparams, params)

    def step(self, memory: PyTree, problem: Problem) -> tuple[PyTree, Array, PyTree]:
        return self.step_fn(self.hparams, memory, problem)

    def counts(self, score: Array, y: Array) -> Array:
        return self.counts_fn(self.hparams, score, y)

    def conditions(self, problem: Problem) -> dict[str, Array]:
        """Per condition of the rule, whether the round meets it."""
        if self.legal_fn is None:
            return {}
        return {self.demand: self.legal_fn(self.hparams, problem) | (problem.weight == 0)}


def slope(problem: Problem) -> Array:
    r"""The derivative $\ell'(\langle w_t, x_t\rangle, y_t)$ in the score, shaped like the score."""
    return problem.loss.value_and_slope(problem.score, problem.y)[1]


def move(problem: Problem, tau: Array) -> tuple[PyTree, Array]:
    r"""Set the dual vector of the round to $h \tau x$: the new `acc`, and the conjugate."""
    acc = tree.add(problem.acc, transposed(-problem.weight * tau, problem.x))
    return acc, problem.weight * problem.loss.conjugate(tau, problem.y)


def nothing(hparams: PyTree, params: PyTree) -> None:
    """The memory of a rule that keeps no examples."""
    return None
