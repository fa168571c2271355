r"""The subgradient rule: $\lambda_t \in \partial g_t(w_t)$; earlier dual vectors stay.

With this rule the primal-dual framework is lazy mirror descent. Inside `conservative` it gives the
Perceptron, Winnow and the p-norm algorithms.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.11).
"""

from jaxtyping import Array, PyTree

from olx._refusal import public
from olx.frameworks.ascents.base import Ascent, Problem, move, nothing, slope


@public
def subgradient() -> Ascent:
    """Use the subgradient of the loss at the decision played as the dual vector.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(0.5, olx.mirrors.euclidean(), olx.losses.hinge, subgradient())
    >>> rounds = olx.Rounds(jnp.array([[1.0], [1.0], [1.0]]), jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(1)).losses.tolist()
    [1.0, 0.5, 0.0]
    """
    return Ascent(None, nothing, step)


def step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    return *move(problem, slope(problem)), None
