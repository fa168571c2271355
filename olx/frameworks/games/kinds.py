r"""Four games for `olx.repeated_game`: a classifier, a booster and two rankers.

| game | decision | action | hinges |
|---|---|---|---|
| `signs` | weights of features | $\langle w, x\rangle$ | $\gamma - y \langle w, x\rangle$ |
| `examples` | weights of examples | $w$ | $\langle w, v\rangle$ for $v_i = y_i h(x_i)$ |
| `labels` | a row of weights per label | $W x$ | $\gamma - \langle w_r - w_s, x\rangle$ |
| `rows` | weights of features | $X w$ | $y_i - y_j - \langle w, x_i - x_j\rangle$ |

The hinges of `labels` are those of a relevant label $r$ and another one $s$, the hinges of `rows`
those of pairs with $y_i > y_j$.

Shalev-Shwartz and Singer, Convex Repeated Games and Fenchel Duality, 2006; Shalev-Shwartz, Online
Learning: Theory, Algorithms, and Applications, 2007, (5.1), (5.26), section 6.1 and (7.17).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import RefusedType, own_name, public
from olx.core import Scalar
from olx.frameworks.games.base import Game, Hinges
from olx.frameworks.lift import dot
from olx.losses.ranks import check_length, degrees, masks, pairs
from olx.losses.score import signs as need_signs


@public
def signs(margin: Scalar = 1.0) -> Game:
    r"""Classify by the sign of a score; labels are -1 and +1, the loss is the hinge with the margin
    $\gamma$ = `margin`."""
    margin = check.positive("margin", margin)
    return Game(margin, dot, _sign_hinges, _square, (need_signs("signs"),))


@public
def examples() -> Game:
    r"""Boost: the decision is a distribution over examples, the outcome is $y_i h(x_i)$ for the
    hypothesis $h$ that a weak learner answers with, and the loss is $\langle w, v\rangle_+$."""
    return Game(None, _itself, _edge, _one)


@public
def labels(margin: Scalar = 1.0) -> Game:
    r"""Rank labels: outcomes are 1 for relevant labels and 0 for others, and the loss is
    `olx.losses.label_hinge(margin)`. `params` has one row of weights per label."""
    margin = check.positive("margin", margin)
    return Game(margin, dot, _label_hinges, _square, (masks("labels"),))


@public
def rows() -> Game:
    """Rank the rows of a group by degrees of relevance; the loss is `olx.losses.max_pairs`."""
    return Game(None, _row_scores, _row_hinges, _square, (degrees("rows"),))


def _itself(w: PyTree, context: PyTree) -> Array:
    return w


@own_name("rows")
def _row_scores(w: Array, rows: Array) -> Array:
    if np.ndim(w) != 1 or np.ndim(rows) != 2 or np.shape(rows)[1] != np.shape(w)[0]:
        raise RefusedType(
            f"the rows have shape {np.shape(rows)}, the weights {np.shape(w)}; a group is an "
            "array of rows (m, d) for weights (d,)."
        )
    return rows @ w


def _square(context: PyTree) -> Array:
    return jnp.asarray(tree.vdot(context, context))


def _one(context: PyTree) -> Array:
    return jnp.ones(())


def _sign_hinges(margin: Scalar, action: Array, y: Array) -> Hinges:
    return Hinges(jnp.reshape(y, 1).astype(action.dtype), jnp.full(1, margin, action.dtype))


def _edge(_: None, action: Array, v: Array) -> Hinges:
    return Hinges(-v[None].astype(action.dtype), jnp.zeros(1, action.dtype))


@own_name("labels")
def _label_hinges(margin: Scalar, action: Array, relevant: Array) -> Hinges:
    check_length(action, relevant)
    above = pairs(jnp.asarray(relevant).astype(action.dtype))
    return _pair_hinges(action, above, jnp.where(above, margin, 0.0))


@own_name("rows")
def _row_hinges(_: None, action: Array, relevance: Array) -> Hinges:
    check_length(action, relevance)
    y = jnp.asarray(relevance).astype(action.dtype)
    return _pair_hinges(action, pairs(y), jnp.where(pairs(y), y[:, None] - y[None, :], 0.0))


def _pair_hinges(action: Array, above: Array, bounds: Array) -> Hinges:
    """One hinge per pair (i, j), of direction $e_i - e_j$ where `above` holds."""
    unit = jnp.eye(action.size, dtype=action.dtype)
    directions = jnp.where(above[:, :, None], unit[:, None] - unit[None, :], 0.0)
    return Hinges(directions.reshape(-1, action.size), bounds.reshape(-1).astype(action.dtype))
