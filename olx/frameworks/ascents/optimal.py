r"""Dual ascent rules that maximize the dual: over the last round, or again over earlier ones.

`aggressive` is the locally optimal rule,

$$\tau_t = \arg\max_\tau\; -c_t f^*\Big(\frac{acc_t - h_t \tau x_t}{c_t}\Big)
  - h_t\,\ell^*(\tau, y_t).$$

At the maximum, $\tau$ is a derivative of the loss at the new score
$s(\tau) = \langle\nabla f^*((acc_t - h_t\tau x_t)/c_t), x_t\rangle$. In Euclidean space this is the
proximal map of the loss, $s(\tau) = \mathrm{prox}(h_t \|x_t\|^2 / c_t, s(0))$; with the hinge it is
PA-I. For other maps a root finder searches $\tau$ between 0 and the derivative at the played score.
If the score is a vector, the proximal map gives the best vector $\tau$ in Euclidean space; for
other maps the result is the best multiple of the derivative.

`aggressive_signs` is its closed form for the entropy, the hinge and rows of signs. With $z = y x
\in \{-1, 0, 1\}^n$ and $P, N, O$ the total weight of the coordinates where $z$ is $1, -1, 0$, the
dual vector is $-\alpha z$ with

$$\beta = \frac{\gamma O + \sqrt{\gamma^2 O^2 + 4 (1 - \gamma^2) P N}}{2 (1 - \gamma) P}, \qquad
  \alpha = \min\{1, \max\{0, c \log \beta\}\}.$$

If $\gamma \ge 1$ or $P = 0$, no weights reach the margin and $\alpha = 1$. If $N = O = 0$, all
weight is on the correct side already and $\alpha = 0$.

Two rules optimize the dual variables of earlier rounds again. They keep a ring buffer of examples;
one that leaves the buffer keeps its last $\tau_i$ in the dual. A single maximization is the step of
`aggressive` on an `acc` without $\lambda_i = h_i \tau_i x_i$.

- `mini_updates`: $\tau_{i_j} = \arg\max_\tau D_t$ for $i_1 = t$, then for $i_2, \dots, i_k$, which
  cycle through the buffer and continue where the last round stopped.
- `window`: $\max D_t$ over $\tau_{t-k+1}, \dots, \tau_t$ by coordinate ascent, the newest first, in
  several passes. $k = 1$ is `aggressive`. With $k$ the number of all rounds it is follow the
  regularized leader, $w_{t+1} = \arg\min_w c_t f(w) + \sum_{i \le t} g_i(w)$.

Their first step is the aggressive rule and the others only raise the dual, so all bounds hold.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.12), (5.14), section
5.2.2 with (5.18), and section 7.2, where $P$ and $N$ are exchanged.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.convex.roots import root
from olx.core import Scalar
from olx.frameworks.ascents.base import Ascent, Problem, move, no_memory, slope
from olx.frameworks.lift import dot, transposed
from olx.losses.hinges import hinge
from olx.mirrors.entropy import negative_entropy


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
    return Ascent(None, no_memory, aggressive_step)


def aggressive_step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
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


@public
def aggressive_signs() -> Ascent:
    """The rule `aggressive` in closed form: `negative_entropy`, a hinge, rows of -1, 0 and 1 only.

    Other maps and losses are refused. On other rows the theorems do not apply.

    >>> import jax.numpy as jnp, olx
    >>> entropy, hinge = olx.mirrors.negative_entropy(), olx.losses.margin_hinge(0.5)
    >>> learner = olx.dual_ascent(1.0, entropy, hinge, aggressive_signs())
    >>> rounds = olx.Rounds(jnp.array([[1.0, -1.0]] * 2), jnp.ones(2))
    >>> olx.rollout(learner, hinge, rounds, jnp.zeros(2)).losses.round(6).tolist()
    [0.5, 0.0]
    """
    demand = "contexts must hold -1, 0 and 1 only, for `aggressive_signs`"
    return Ascent(None, no_memory, signs_step, separable=False, legal_fn=_of_signs, demand=demand)


def signs_step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    return *move(problem, -problem.y * _alpha(problem)), None


def _of_signs(hparams: None, problem: Problem) -> Array:
    leaves = jax.tree.leaves(problem.x)
    return jnp.all(jnp.stack([jnp.all((x == 0) | (jnp.abs(x) == 1)) for x in leaves]))


@own_name("aggressive_signs")
def _alpha(problem: Problem) -> Array:
    mirror, y, c = problem.mirror, problem.y, problem.c
    entropy = mirror.conjugate.func is negative_entropy().conjugate.func
    if not entropy or problem.loss.value_fn is not hinge.value_fn:
        raise RefusedType(
            "the map must be `negative_entropy` and the loss a hinge; use `aggressive` for others."
        )
    assert mirror.modulus is not None  # every entropy states its modulus
    margin = problem.loss(jnp.zeros_like(problem.score), y)
    w = mirror.to_primal(jax.tree.map(lambda acc: acc / c, problem.acc))
    among = lambda side: jax.tree.map(lambda x: (y * x == side).astype(x.dtype), problem.x)
    plus, minus, off = (jnp.asarray(tree.vdot(w, among(side))) for side in (1, -1, 0))

    never = (margin >= 1) | (plus <= 0)
    already = (minus <= 0) & (off <= 0)
    easy = never | already
    margin, plus = jnp.where(never, 0.5, margin), jnp.where(never, 1.0, plus)
    off = jnp.where(easy, 1.0, off)
    root = jnp.sqrt((margin * off) ** 2 + 4 * (1 - margin**2) * plus * minus)
    beta = (margin * off + root) / (2 * (1 - margin) * plus)
    # The potential may be a multiple of the entropy; its modulus is the factor.
    rate = c * mirror.modulus / safe.or_one(problem.weight)
    alpha = jnp.clip(rate * jnp.log(beta), 0.0, 1.0)
    return jnp.where(never, 1.0, jnp.where(already, 0.0, alpha))


class Examples(NamedTuple):
    """A ring buffer of past examples and their dual variables."""

    x: PyTree  # [k, ...]
    y: Float[Array, " k"]
    weight: Float[Array, " k"]  # 0 in empty slots
    tau: Float[Array, " k"]
    count: Int[Array, ""]  # examples added so far, including those no longer in the buffer


class Dual(NamedTuple):
    acc: PyTree
    change: Float[Array, ""]  # change of the sum of conjugates
    examples: Examples


@pytree
class MiniUpdatesHparams:
    steps: int = static()
    capacity: int = static()


class MiniUpdatesMemory(NamedTuple):
    examples: Examples
    turn: Int[Array, ""]  # index of the next example to revisit


@public
def mini_updates(steps: int, capacity: int) -> Ascent:
    """Maximize over `steps` dual variables per round, one at a time, the newest first.

    capacity: the number of examples kept, the newest ones.

    >>> import jax.numpy as jnp, olx
    >>> rule = mini_updates(2, 8)
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.hinge, rule)
    >>> rounds = olx.Rounds(jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), -jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses.round(3).tolist()
    [1.0, 0.0, 1.0]
    """
    check.count("steps", steps)
    check.count("capacity", capacity)
    hparams = MiniUpdatesHparams(steps, capacity)
    return Ascent(hparams, mini_updates_init, mini_updates_step, separable=False)


def mini_updates_init(hp: MiniUpdatesHparams, params: PyTree) -> MiniUpdatesMemory:
    return MiniUpdatesMemory(_no_examples(hp.capacity, params), jnp.zeros((), int))


def mini_updates_step(
    hp: MiniUpdatesHparams, memory: MiniUpdatesMemory, problem: Problem
) -> tuple[PyTree, Array, MiniUpdatesMemory]:
    dual = _add(memory.examples, problem)
    kept = jnp.clip(dual.examples.count, 1, hp.capacity)

    def again(i: Array, dual: Dual) -> Dual:
        return _revisit(problem, dual, (memory.turn + i) % kept)

    acc, change, examples = lax.fori_loop(0, hp.steps - 1, again, dual)
    return acc, change, MiniUpdatesMemory(examples, (memory.turn + hp.steps - 1) % kept)


@pytree
class WindowHparams:
    size: int = static()
    passes: int = static()


@public
def window(size: int, passes: int = 10) -> Ascent:
    """Optimize the dual vectors of the last `size` rounds again in every round.

    passes: how often each is optimized per round; the next round starts from the result.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.hinge, window(2))
    >>> rounds = olx.Rounds(jnp.array([[1.0, 0.0], [1.0, 0.5], [0.0, 1.0]]), jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses.round(3).tolist()
    [1.0, 0.0, 1.0]
    """
    check.count("size", size)
    check.count("passes", passes)
    return Ascent(WindowHparams(size, passes), window_init, window_step, separable=False)


@public
def follow_the_leader(rounds: int, passes: int = 10) -> Ascent:
    """Optimize the dual vectors of all rounds again in every round, for at most `rounds` rounds.

    The decision approximates the regularized minimizer of all losses so far; more `passes` are more
    exact. A round costs `rounds` times `passes` steps of `aggressive`.
    """
    check.count("rounds", rounds)
    check.count("passes", passes)
    return window(rounds, passes)


def window_init(hp: WindowHparams, params: PyTree) -> Examples:
    return _no_examples(hp.size, params)


def window_step(
    hp: WindowHparams, memory: Examples, problem: Problem
) -> tuple[PyTree, Array, Examples]:
    newest = memory.count % hp.size

    def again(i: Array, dual: Dual) -> Dual:
        return _revisit(problem, dual, (newest - i) % hp.size)

    more = hp.size * hp.passes if hp.size > 1 else 1
    return lax.fori_loop(1, more, again, _add(memory, problem))


def _no_examples(size: int, params: PyTree) -> Examples:
    zeros = jnp.zeros(size, jnp.result_type(*jax.tree.leaves(params)))
    x = jax.tree.map(lambda leaf: jnp.zeros((size, *jnp.shape(leaf)), leaf.dtype), params)
    return Examples(x, zeros, zeros, zeros, jnp.zeros((), int))


def _add(examples: Examples, problem: Problem) -> Dual:
    """Take the step of `aggressive` and put the example into the buffer, if its weight is not 0."""
    if problem.loss.of_classes:
        raise TypeError(
            "the buffer of examples keeps one dual variable per example, and a loss of classes has "
            "one per class; use the rule `aggressive` with it."
        )
    tau = best(problem)
    counts = jnp.asarray(problem.weight > 0)
    slot = examples.count % examples.tau.size

    def put(rows: Array, row: Scalar) -> Array:
        here = lax.dynamic_index_in_dim(rows, slot, keepdims=False)
        return lax.dynamic_update_index_in_dim(rows, jnp.where(counts, row, here), slot, 0)

    kept = Examples(
        jax.tree.map(put, examples.x, problem.x),
        put(examples.y, problem.y),
        put(examples.weight, problem.weight),
        put(examples.tau, tau),
        examples.count + counts.astype(int),
    )
    acc = tree.add_scale(problem.acc, -problem.weight * tau, problem.x)
    return Dual(acc, problem.weight * problem.loss.conjugate(tau, problem.y), kept)


def _revisit(problem: Problem, dual: Dual, index: Int[Array, ""]) -> Dual:
    """Maximize the dual over the dual variable of one example."""
    examples = dual.examples
    at = lambda rows: lax.dynamic_index_in_dim(rows, index, keepdims=False)
    x, y = jax.tree.map(at, examples.x), at(examples.y)
    weight, old = at(examples.weight), at(examples.tau)
    without = tree.add_scale(dual.acc, weight * old, x)
    theta = jax.tree.map(lambda acc: acc / problem.c, without)
    score = tree.vdot(problem.mirror.to_primal(theta), x)
    alone = problem._replace(acc=without, x=x, y=y, weight=weight, score=score)
    new = jnp.where(weight > 0, best(alone), old)
    conjugate = lambda tau: problem.loss.conjugate(tau, y)
    return Dual(
        tree.add_scale(dual.acc, weight * (old - new), x),
        dual.change + weight * (conjugate(new) - conjugate(old)),
        examples._replace(tau=lax.dynamic_update_index_in_dim(examples.tau, new, index, 0)),
    )
