r"""Repeated games on maxima of hinges: what is played, and how the player changes its dual.

A decision $w$ is played as an action $J_t w$, which is linear in $w$. Nature answers with hinges,
directions $m_i$ and bounds $b_i$, and the player pays

$$g_t(w) = \max_i\, (b_i - \langle m_i, J_t w\rangle)_+ .$$

Its dual vectors are $-J_t^\top \sum_i \alpha_i m_i$ with $\alpha \ge 0$, $\sum_i \alpha_i \le 1$,
and the conjugate there is at most $-\langle b, \alpha\rangle$. The four games are a classifier, a
booster and two rankers:

| game | decision | action | hinges |
|---|---|---|---|
| `signs` | weights of features | $\langle w, x\rangle$ | $\gamma - y \langle w, x\rangle$ |
| `examples` | weights of examples | $w$ | $\langle w, v\rangle$ for $v_i = y_i h(x_i)$ |
| `labels` | a row of weights per label | $W x$ | $\gamma - \langle w_r - w_s, x\rangle$ |
| `rows` | weights of features | $X w$ | $y_i - y_j - \langle w, x_i - x_j\rangle$ |

The hinges of `labels` are those of a relevant label $r$ and another one $s$, the hinges of `rows`
those of pairs with $y_i > y_j$.

A rule of the player chooses the dual variables $\alpha$. The best ones solve

$$\max_{\alpha \ge 0, \sum_i \alpha_i \le h} \langle b, \alpha\rangle -
  c f^*\Big(\frac{acc + J^\top \sum_i \alpha_i m_i}c\Big).$$

`worst_hinge` puts all weight on the worst hinge, which is the subgradient step. The others search
for the best ones. After any number of steps the bounds hold: where the subgradient raises the dual
more, it is used.

Shalev-Shwartz and Singer, Convex Repeated Games and Fenchel Duality, 2006; Shalev-Shwartz, Online
Learning: Theory, Algorithms, and Applications, 2007, (3.11), (3.12), (5.1), (5.26), section 6.1,
(7.17) and section 7.4.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.convex.max_of_hinges import ascend_hinges, average_hinges
from olx.core import Scalar
from olx.frameworks.lift import dot, score_rows
from olx.losses.ranks import check_length, degrees, masks, pairs
from olx.losses.score import signs as need_signs
from olx.mirrors.base import MirrorMap
from olx.needs import Need


class Hinges(NamedTuple):
    """The answer of nature. A hinge that does not count has the direction 0 and the bound 0."""

    directions: Float[Array, "n *k"]  # each is shaped like the action
    bounds: Float[Array, " n"]

    def gaps(self, action: Array) -> Float[Array, " n"]:
        r"""$b_i - \langle m_i, a\rangle$; the loss is the largest one, or 0."""
        return self.bounds - jnp.tensordot(self.directions, action, jnp.ndim(action))

    def combination(self, alpha: Float[Array, " n"]) -> Array:
        r"""$\sum_i \alpha_i m_i$, shaped like the action."""
        return jnp.tensordot(alpha, self.directions, 1)


@pytree
class Game:
    """What is played: how a decision becomes an action, and which hinges an outcome makes."""

    hparams: PyTree
    act_fn: Callable[..., Array] = static()  # (decision, context) -> action, linear in the first
    hinges_fn: Callable[..., Hinges] = static()  # (hparams, action, outcome)
    square_fn: Callable[..., Array] = static()  # (context) -> at least the squared norm of `act_fn`
    needs: tuple[Need, ...] = static(default=())  # demands on outcomes
    name: Call = static(kw_only=True, default=Call())  # the call that makes it


class Turn(NamedTuple):
    """A round as the rules see it, before the dual changes."""

    mirror: MirrorMap
    c: Scalar
    acc: PyTree  # minus the sum of all dual vectors
    act: Callable[[PyTree], Array]
    pull: Callable[[Array], PyTree]  # the transpose of `act`
    square: Array  # at least the squared norm of `act`
    hinges: Hinges
    gaps: Float[Array, " n"]  # of the action that was played
    weight: Array  # bounds the sum of the dual variables

    def theta(self, pull: PyTree) -> PyTree:
        """The dual of the decision after `acc` has grown by `pull`."""
        return jax.tree.map(lambda acc, more: (acc + more) / self.c, self.acc, pull)

    def rise(self, alpha: Float[Array, " n"]) -> Array:
        """By how much these dual variables raise the dual."""
        after = self.theta(self.pull(self.hinges.combination(alpha)))
        before = self.theta(tree.zeros_like(self.acc))
        spent = self.mirror.conjugate(after) - self.mirror.conjugate(before)
        return jnp.vdot(self.hinges.bounds, alpha) - self.c * spent

    @property
    def worst_alpha(self) -> Float[Array, " n"]:
        """The dual variables of a subgradient: all weight on the first hinge with the largest gap,
        none if no gap is positive."""
        first = jnp.arange(self.gaps.size) == jnp.argmax(self.gaps)
        return jnp.where(first & (self.gaps > 0), self.weight, jnp.zeros_like(self.gaps))


@pytree
class HingeRule:
    """How the player chooses the dual variables of a round.

    euclidean: whether the rule is for the Euclidean potential only.
    """

    steps: int = static()
    alpha_fn: Callable[..., Array] = static()  # (steps, turn) -> alpha
    euclidean: bool = static(default=False)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def alpha(self, turn: Turn) -> Float[Array, " n"]:
        """Those of the rule, or those of the subgradient where these raise the dual more."""
        own, plain = self.alpha_fn(self.steps, turn), turn.worst_alpha
        best = jnp.where(turn.rise(own) >= turn.rise(plain), own, plain)
        return jnp.where(turn.weight > 0, best, 0.0)


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
    return score_rows(w, rows)


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


@public
def worst_hinge() -> HingeRule:
    """The subgradient step: all weight on the worst hinge.

    >>> import jax.numpy as jnp, olx
    >>> player = olx.repeated_game(
    ...     0.5, olx.mirrors.euclidean(), olx.games.signs(), olx.games.worst_hinge()
    ... )
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.ones(3))
    >>> olx.rollout(player, olx.losses.hinge, rounds, jnp.zeros(1)).losses.tolist()
    [1.0, 0.5, 0.0]
    """
    return HingeRule(0, _worst_alpha)


@public
def projected_ascent(steps: int = 100) -> HingeRule:
    """The best dual variables by `steps` projected gradient steps with momentum, for any potential.

    See `olx.convex.ascend_hinges`. It is quick for a potential that is strongly convex in a norm
    whose dual norm is at most the Euclidean one.
    """
    check.count("steps", steps)
    return HingeRule(steps, _ascent_alpha)


@public
def averaged_steps(steps: int = 100) -> HingeRule:
    """The mean of `steps` steps on the worst hinge, for the Euclidean potential.

    See `olx.convex.average_hinges`. It keeps one row of weights per hinge.
    """
    check.count("steps", steps)
    return HingeRule(steps, _average_alpha, euclidean=True)


def _worst_alpha(steps: int, turn: Turn) -> Array:
    return turn.worst_alpha


def _ascent_alpha(steps: int, turn: Turn) -> Array:
    shape, modulus = turn.hinges.directions.shape[1:], turn.mirror.modulus
    size = safe.or_one(turn.square / (1.0 if modulus is None else modulus))

    def link(theta: Array) -> Array:
        more = turn.pull(theta.reshape(shape) * (turn.c / size))
        return turn.act(turn.mirror.to_primal(turn.theta(more))).reshape(-1)

    rows = turn.hinges.directions.reshape(len(turn.gaps), -1)
    start = jnp.zeros(rows.shape[1], rows.dtype)
    return ascend_hinges(link, turn.c / size, start, rows, turn.hinges.bounds, turn.weight, steps)


def _average_alpha(steps: int, turn: Turn) -> Array:
    rows = jax.vmap(lambda m: ravel_pytree(turn.pull(m))[0])(turn.hinges.directions)
    return average_hinges(turn.c, turn.gaps, rows, turn.weight, steps)
