r"""The locally optimal rule: maximize the dual over the dual vector of the round.

$$\tau_t = \arg\max_\tau\; -c_t f^*\Big(\frac{acc_t - h_t \tau x_t}{c_t}\Big)
  - h_t\,\ell^*(\tau, y_t).$$

At the maximum, $\tau$ is a derivative of the loss at the new score
$s(\tau) = \langle\nabla f^*((acc_t - h_t\tau x_t)/c_t), x_t\rangle$. In Euclidean space this is the
proximal map of the loss, $s(\tau) = \mathrm{prox}(h_t \|x_t\|^2 / c_t, s(0))$; with the hinge it is
PA-I. For other maps a root finder searches $\tau$ between 0 and the derivative at the played score.
If the score is a vector, the proximal map gives the best vector $\tau$ in Euclidean space; for
other maps the result is the best multiple of the derivative.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.12) and (5.14).
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _numeric as safe
from olx._refusal import public
from olx.convex.roots import root
from olx.frameworks.ascents.base import Ascent, Problem, move, nothing, slope
from olx.frameworks.lift import dot, transposed


@public
def aggressive() -> Ascent:
    """Choose the best dual vector for this round; the others stay.

    Works with any mirror map and loss. A round whose loss rounds to 0 makes no step: the step could
    raise the dual by a rounding error only.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.squared, aggressive())
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.full(3, 2.0))
    >>> olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(1)).losses.tolist()
    [2.0, 0.5, 0.125]
    """
    return Ascent(None, nothing, step)


def step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    return *move(problem, best(problem)), None


def best(problem: Problem) -> Array:
    """The dual variable that maximizes the dual; along the derivative if the map is not flat."""
    first = slope(problem)
    if problem.mirror.identity:
        return _proximal(problem, first)
    return first * _fraction(problem, first)


def _proximal(problem: Problem, first: Array) -> Array:
    score, y, loss = problem.score, problem.y, problem.loss
    stride = problem.weight * jnp.asarray(tree.vdot(problem.x, problem.x)) / problem.c
    step = safe.or_one(stride)
    tau = loss.pull(step, score, y)
    if not loss.of_classes:
        tau = jnp.clip(tau, jnp.minimum(first, 0.0), jnp.maximum(first, 0.0))
    # For a short stride the difference has few correct digits; `first` is then as good or better.
    gain = lambda tau: (
        jnp.vdot(tau, score) - stride * jnp.vdot(tau, tau) / 2 - loss.conjugate(tau, y)
    )
    return jnp.where((stride > 0) & (gain(tau) > gain(first)), tau, first)


def _fraction(problem: Problem, first: Array) -> Array:
    """The fraction of the derivative `first`, from 0 to 1, that maximizes the dual."""
    one = jnp.ones((), first.dtype)
    t = root(Partial(_excess, problem, first), jnp.zeros_like(one), one, one)
    return jnp.where(t < 1, t, 1.0)  # at 1 the derivative of the root must be 0


def _excess(problem: Problem, first: Array, t: Array) -> Array:
    """Minus the derivative of the dual in t, up to a positive factor; increasing in t."""
    tau = t * first
    moved = tree.add(problem.acc, transposed(-problem.weight * tau, problem.x))
    theta = jax.tree.map(lambda acc: acc / problem.c, moved)
    score = dot(problem.mirror.to_primal(theta), problem.x)
    return jnp.vdot(first, jax.grad(problem.loss.conjugate)(tau, problem.y) - score)
