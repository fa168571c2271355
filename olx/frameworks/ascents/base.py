r"""Dual ascent: the type of a rule, and the rules that set the dual vector of a round by a formula.

The loss of the round is $g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$, with $h_t$ the weight of
the round. So its dual vectors are $\lambda_t = h_t \tau_t x_t$ with one number $\tau_t$, and
$g_t^*(\lambda_t) = h_t\,\ell^*(\tau_t, y_t)$. If the score is a vector $W x_t$, so is $\tau_t$, and
$\lambda_t = h_t \tau_t x_t^\top$. A rule chooses $\tau_t$, and may change those of
earlier rounds, such that the dual

$$D_t = -c_t f^*\Big(-\frac1{c_t} \sum_{i \le t} \lambda_i\Big) - \sum_{i \le t} g_i^*(\lambda_i)$$

is at least as large as with the subgradient of $g_t$ at $w_t$. The regret bounds need nothing else.

- `subgradient`: $\lambda_t \in \partial g_t(w_t)$. The framework is then lazy mirror descent.
- `conservative`: rounds without a mistake have no loss,
  $$g_t(w) = \begin{cases} \ell(\langle w, x_t\rangle, y_t) & y_t \langle w_t, x_t\rangle \le 0 \\
    0 & \text{otherwise,} \end{cases}$$
  and any other rule is used on the mistakes. With the subgradient it gives the Perceptron, Winnow
  and the p-norm algorithms. Regret on these losses bounds the number of mistakes.
- `uniform`, for classes: with $E$ the classes $r \ne y_t$ that score at least as much as the label,
  $\tau_{t,r} = 1 / |E|$ for $r \in E$, $\tau_{t,y_t} = -1$, and 0 elsewhere. $\tau_t$ is a legal
  dual vector, but it is not a subgradient of the largest hinge: the dual may rise less than by
  `subgradient`. Only mistake bounds that use the margin of every violator hold.

A tie is a mistake, also a tie in exact arithmetic that rounding would break: for weights that are
not sums of rows, such as exponentials, `dual_ascent` plays a score of 0 where it is no more than
its rounding error, and equal scores for classes that differ from the best one by no more than that.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.9), (3.11) and
(3.19), and sections 2.3 and 5.1, (5.13), for the conservative rule; Crammer, Singer,
Ultraconservative Online Algorithms for Multiclass Problems, 2003, for the uniform one.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.core import InitFn, Scalar
from olx.frameworks.lift import transposed
from olx.losses.margin import hot, mistaken, pick
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


# (hparams, memory, problem) -> the new `acc`, the change of the sum of conjugates, the new memory
StepFn = Callable[[PyTree, PyTree, Problem], tuple[PyTree, Array, PyTree]]
CountsFn = Callable[[PyTree, Array, Array], Array]  # (hparams, score, y) -> does the round count
LegalFn = Callable[[PyTree, Problem], Array]  # (hparams, problem) -> do the theorems hold


def always(hparams: PyTree, score: Array, y: Array) -> Array:
    """Every round counts."""
    return jnp.ones((), bool)


@pytree
class Ascent:
    """A dual ascent rule: module-level functions and the hyperparameters they share.

    init_fn: the first memory of the rule.
    separable: whether the rule reads only the coordinates of the row, and keeps no earlier rows.
    legal_fn, demand: a condition of the theorems, and its words; None if they always hold.
    rises: whether the dual rises at least as much as with the subgradient; most theorems need it.
    """

    hparams: PyTree
    init_fn: InitFn = static()
    step_fn: StepFn = static()
    counts_fn: CountsFn = static(default=always)
    separable: bool = static(default=True)
    legal_fn: LegalFn | None = static(default=None)
    demand: str = static(default="")
    rises: bool = static(default=True)
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


def no_memory(hparams: PyTree, params: PyTree) -> None:
    """The memory of a rule that keeps no examples."""
    return None


@public
def subgradient() -> Ascent:
    """Use the subgradient of the loss at the decision played as the dual vector.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(0.5, olx.mirrors.euclidean(), olx.losses.hinge, subgradient())
    >>> rounds = olx.Rounds(jnp.array([[1.0], [1.0], [1.0]]), jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(1)).losses.tolist()
    [1.0, 0.5, 0.0]
    """
    return Ascent(None, no_memory, subgradient_step)


def subgradient_step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    return *move(problem, slope(problem)), None


@public
def conservative(inner: Ascent | None = None) -> Ascent:
    r"""Learn from mistakes only: $y s \le 0$ for labels $y = \pm 1$; for a vector of scores, a
    label whose score is not strictly the largest.

    inner: the rule on mistakes; `subgradient()` if None.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.hinge, conservative())
    >>> rounds = olx.Rounds(jnp.array([[0.5], [0.5], [0.5]]), jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(1)).losses.tolist()
    [1.0, 0.75, 0.75]
    """
    inner = subgradient() if inner is None else inner
    check.instance("inner", inner, Ascent)
    legal = None if inner.legal_fn is None else _legal_inside
    functions = _init_inside, _step_inside, _counts_mistakes
    return Ascent(inner, *functions, inner.separable, legal, inner.demand, rises=inner.rises)


def _init_inside(inner: Ascent, params: PyTree) -> PyTree:
    return inner.init(params)


def _step_inside(inner: Ascent, memory: PyTree, problem: Problem) -> tuple[PyTree, Array, PyTree]:
    return inner.step(memory, problem)


def _legal_inside(inner: Ascent, problem: Problem) -> Array:
    assert inner.legal_fn is not None  # `conservative` has checked
    return inner.legal_fn(inner.hparams, problem)


def _counts_mistakes(inner: Ascent, score: Array, y: Array) -> Array:
    return mistaken(score, y) & inner.counts(score, y)


@public
def uniform() -> Ascent:
    """Move away from all classes that score at least as much as the label, by equal parts.

    For losses of classes. Other losses are refused.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(
    ...     1.0, olx.mirrors.euclidean(), olx.losses.multiclass_hinge, uniform()
    ... )
    >>> rounds = olx.Rounds(jnp.ones((1, 1)), jnp.array([2]))
    >>> run = olx.rollout(learner, olx.losses.multiclass_hinge, rounds, jnp.zeros((3, 1)))
    >>> run.state.acc[:, 0].tolist()
    [-0.5, -0.5, 1.0]
    """
    return Ascent(None, no_memory, uniform_step, _is_mistake, rises=False)


@own_name("uniform")
def uniform_step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    if not problem.loss.of_classes:
        raise RefusedType("the loss must be one of classes; use `subgradient` for others.")
    score = problem.score
    own = hot(score, problem.y)
    above = (score >= pick(own, score)) & ~own
    count = jnp.sum(above, dtype=score.dtype)
    away = jnp.where(above, 1 / jnp.maximum(count, 1.0), 0.0)
    return *move(problem, jnp.where(own, -jnp.minimum(count, 1.0), away)), None


def _is_mistake(hparams: None, score: Array, y: Array) -> Array:
    return mistaken(score, y)
