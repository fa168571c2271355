r"""The conservative rule: rounds without a mistake have no loss.

$$g_t(w) = \begin{cases} \ell(\langle w, x_t\rangle, y_t) & y_t \langle w_t, x_t\rangle \le 0 \\
  0 & \text{otherwise,} \end{cases}$$

and any other rule on the mistakes; with the subgradient, $\alpha_t = 1$ on mistakes and 0 else.
Regret on these losses bounds the number of mistakes. A tie is a mistake, also a tie in exact
arithmetic that rounding would break: for weights that are not sums of rows, such as exponentials,
`dual_ascent` plays a score of 0 where it is no more than its rounding error, and equal scores for
classes that differ from the best one by no more than that.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 2.3 and 5.1,
(5.13).
"""

from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.frameworks.ascents.base import Ascent, Problem
from olx.frameworks.ascents.subgradient import subgradient
from olx.losses.margin import mistaken


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
    legal = None if inner.legal_fn is None else legal_inside
    return Ascent(
        inner, init, step, counts, inner.separable, legal, inner.demand, rises=inner.rises
    )


def init(inner: Ascent, params: PyTree) -> PyTree:
    return inner.init(params)


def step(inner: Ascent, memory: PyTree, problem: Problem) -> tuple[PyTree, Array, PyTree]:
    return inner.step(memory, problem)


def legal_inside(inner: Ascent, problem: Problem) -> Array:
    assert inner.legal_fn is not None  # `conservative` has checked
    return inner.legal_fn(inner.hparams, problem)


def counts(inner: Ascent, score: Array, y: Array) -> Array:
    return mistaken(score, y) & inner.counts(score, y)
