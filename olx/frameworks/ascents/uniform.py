r"""The uniform rule: share the step equally among all classes that violate the margin.

With $E = \{r \ne y_t : \gamma - (s_{t,y_t} - s_{t,r}) > 0\}$ the violators of a loss of classes,

$$\tau_{t,r} = \frac1{|E|} \text{ for } r \in E, \qquad \tau_{t,y_t} = -1,$$

and 0 elsewhere. $\tau_t$ is a legal dual vector, but it is not a subgradient of the largest hinge:
the dual may rise less than by the rule `subgradient`. Only mistake bounds that use the margin of
every violator hold.

Crammer, Singer, Ultraconservative Online Algorithms for Multiclass Problems, 2003.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx._refusal import RefusedType, own_name, public
from olx.frameworks.ascents.base import Ascent, Problem, move, nothing
from olx.losses.margin import hot, mistaken, pick


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
    return Ascent(None, nothing, step, counts, rises=False)


def counts(hparams: None, score: Array, y: Array) -> Array:
    return mistaken(score, y)


@own_name("uniform")
def step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    if not problem.loss.of_classes:
        raise RefusedType("the loss must be one of classes; use `subgradient` for others.")
    score = problem.score
    own = hot(score, problem.y)
    above = (score >= pick(own, score)) & ~own
    count = jnp.sum(above, dtype=score.dtype)
    away = jnp.where(above, 1 / jnp.maximum(count, 1.0), 0.0)
    return *move(problem, jnp.where(own, -jnp.minimum(count, 1.0), away)), None
