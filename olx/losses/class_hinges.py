r"""Losses of a vector of scores, one per class, for labels $y \in \{0, \dots, k - 1\}$.

With $\alpha_r = \tau_r$ for $r \ne y$, $z = \sum_{r \ne y} \alpha_r$ and $\tau_y = -z$; elsewhere
the conjugates are infinite:

- multiclass hinge: $\ell = \max_{r \ne y} [\gamma - (s_y - s_r)]_+$, $\ell^* = -\gamma z$ on
  $\alpha \ge 0$, $z \le 1$; $\sqrt2$-Lipschitz;
- maximum of hinges: the same with a cost $\rho_{y,r}$ in place of $\gamma$, $\ell^* = -\sum_r
  \rho_{y,r} \alpha_r$;
- multiclass squared hinge: half the square of the multiclass hinge with $\gamma = 1$, $\ell^* =
  \frac12 z^2 - z$ on $\alpha \ge 0$; 2-self-bounded;
- average of hinges: $\ell = \frac1{k-1} \sum_{r \ne y} [1 - (s_y - s_r)]_+$, $\ell^* = -z$ on
  $0 \le \alpha_r \le \frac1{k-1}$; $\sqrt2$-Lipschitz;
- zero-one: 1 for a mistake, else 0; not convex.

The constants are those of $\|\tau\|_2$. The first rival with the largest loss is the one that the
slope of a maximum names. The slope is 0 wherever the loss is 0.

With $g_r = (\rho_{y,r} + s_r - s_y) / \text{step}$ the proximal maps move $s$ by $-\text{step}\,
\tau$, $\alpha_r = [g_r - \theta]_+$. The level is $\theta = \max_j G_j / (j + \kappa)$, with $G_j$
the sum of the $j$ largest $g_r$, and $\kappa = 1$ for a hinge, $\text{step} / (1 + \text{step})$
for its square. If that has $z > 1$, a hinge has $\theta = \max_j (G_j - 1) / j$.

Crammer, Singer, On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines, 2001;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (5.19), (5.22), (5.25),
(A.3) and section 7.3.1.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.convex.roots import root
from olx.core import Scalar
from olx.losses.classes import balanced, checked, dual, loss_of_classes, top_sums
from olx.losses.margin import counted, highest, hot, margin, pick, rival
from olx.losses.score import ScoreLoss


@public
def margin_multiclass_hinge(margin: Scalar) -> ScoreLoss:
    r"""The multiclass hinge with margin $\gamma$ = `margin`, a positive number.

    >>> import jax.numpy as jnp
    >>> float(margin_multiclass_hinge(2.0)(jnp.array([0.5, 1.0, 0.0]), 1))
    1.5
    """
    margin = check.positive("margin", margin)
    return loss_of_classes(
        "multiclass_hinge",
        _hinge,
        _maximum_conjugate,
        _maximum_pull,
        hparams=margin,
        lipschitz=math.sqrt(2),
    )


@public
def max_of_hinges(cost: Float[Array, "k k"]) -> ScoreLoss:
    r"""The largest hinge over the wrong classes, for costs of your own.

    cost: entry $(y, r)$ is what it costs to predict $r$ for a label $y$; not negative. The diagonal
        is not used.

    >>> import jax.numpy as jnp
    >>> cost = jnp.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    >>> float(max_of_hinges(cost)(jnp.array([2.0, 1.0, 0.0]), 0))
    3.0
    """
    if not isinstance(cost, Tracer):
        legal = check.non_negative("cost", np.asarray(cost), each=True)
        cost = jnp.asarray(legal, float)
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1] or cost.shape[0] < 2:
        raise RefusedValue(
            "`cost` must be a square matrix with one row per class, for 2 classes "
            f"or more, got shape {cost.shape}."
        )
    return loss_of_classes(
        "max_of_hinges",
        _maximum,
        _maximum_conjugate,
        _maximum_pull,
        hparams=cost,
        lipschitz=math.sqrt(2),
    )


@own_name("max_of_hinges")
def _prices(cost: Scalar, score: Array, own: Array) -> Scalar:
    """The cost of every class for the label: a number for all, or a row of the matrix."""
    if jnp.ndim(cost) == 0:
        return cost
    if jnp.shape(cost)[-1] != score.shape[-1]:
        raise RefusedType(
            f"`cost` is about {jnp.shape(cost)[-1]} classes, the score has {score.shape[-1]}."
        )
    return jnp.sum(jnp.where(own[..., :, None], jnp.asarray(cost, score.dtype), 0.0), -2)


def _hinge(margin: Scalar, score: Array, label: Array) -> Array:
    return _maximum(margin, score, label)


def _maximum(cost: Scalar, score: Array, label: Array) -> Array:
    score, label = checked(score, label)
    own = hot(score, label)
    raised = score + _prices(cost, score, own)
    gap = highest(raised, own, rival(raised, own)) - pick(own, score)
    return jnp.where(gap <= 0, 0.0, gap)


def _maximum_conjugate(cost: Scalar, tau: Array, label: Array) -> Array:
    own, alpha, legal, slack = balanced(tau, label)
    value = -jnp.sum(_prices(cost, alpha, own) * alpha, -1)
    return jnp.where(legal & (jnp.sum(alpha, -1) <= 1 + slack), value, jnp.inf)


def _maximum_pull(cost: Scalar, step: Array, center: Array, label: Array) -> Array:
    own, excess = _excess(cost, step, center, label)
    count, sums = top_sums(excess, ~own)
    free = jnp.maximum(jnp.max(sums / (count + 1), -1, keepdims=True), 0.0)
    share = lambda level: jnp.where(own, 0.0, jnp.maximum(excess - level, 0.0))
    full = safe.divide(sums - 1, count, jnp.finfo(sums.dtype).min)
    over = jnp.sum(share(free), -1, keepdims=True) > 1
    alpha = share(jnp.where(over, jnp.max(full, -1, keepdims=True), free))
    total = safe.or_one(jnp.sum(alpha, -1, keepdims=True), over)  # 1 but for rounding
    return dual(own, alpha / total)


def _excess(cost: Scalar, step: Array, center: Array, label: Array) -> tuple[Array, Array]:
    """The label, and by how much each class misses its cost, divided by the step."""
    center, label = checked(center, label)
    own, step = hot(center, label), jnp.asarray(step)[..., None]
    return own, (_prices(cost, center, own) + center - pick(own, center)[..., None]) / step


def _squared(_: PyTree, score: Array, label: Array) -> Array:
    return _maximum(1.0, score, label) ** 2 / 2


def _squared_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    _, alpha, legal, _ = balanced(tau, label)
    total = jnp.sum(alpha, -1)
    return jnp.where(legal, total**2 / 2 - total, jnp.inf)


def _squared_pull(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    own, excess = _excess(1.0, step, center, label)
    count, sums = top_sums(excess, ~own)
    part = jnp.asarray(step / (1 + step))[..., None]
    level = jnp.maximum(jnp.max(sums / (count + part), -1, keepdims=True), 0.0)
    return dual(own, jnp.where(own, 0.0, jnp.maximum(excess - level, 0.0)))


def _average(_: PyTree, score: Array, label: Array) -> Array:
    score, label = checked(score, label)
    own = hot(score, label)
    gap = 1 + score - pick(own, score)[..., None]
    return jnp.sum(jnp.where(own | (gap <= 0), 0.0, gap), -1) / (score.shape[-1] - 1)


def _average_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    _, alpha, legal, slack = balanced(tau, label)
    legal &= jnp.all(alpha * (alpha.shape[-1] - 1) <= 1 + slack, -1)
    return jnp.where(legal, -jnp.sum(alpha, -1), jnp.inf)


def _average_pull(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    own, excess = _excess(1.0, step, center, label)
    zero = jnp.zeros_like(excess[..., 0])
    level = root(Partial(_unspent, own, excess), zero, zero + 1, zero + 1)
    return dual(own, _capped(own, excess, level))


def _unspent(own: Array, excess: Array, level: Array) -> Array:
    return level - jnp.sum(_capped(own, excess, level), -1)


def _capped(own: Array, excess: Array, level: Array) -> Array:
    return jnp.where(own, 0.0, jnp.clip(excess - level[..., None], 0.0, 1 / (own.shape[-1] - 1)))


def _zero_one(_: PyTree, score: Array, label: Array) -> Array:
    return counted(margin(*checked(score, label)))


multiclass_hinge = margin_multiclass_hinge(1.0)
multiclass_squared_hinge = loss_of_classes(
    "multiclass_squared_hinge", _squared, _squared_conjugate, _squared_pull, self_bound=2.0
)
average_hinge = loss_of_classes(
    "average_hinge", _average, _average_conjugate, _average_pull, lipschitz=math.sqrt(2)
)
multiclass_zero_one = loss_of_classes("multiclass_zero_one", _zero_one)
