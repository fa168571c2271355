r"""Label ranking: a round as the updates see it, the two geometries, and updates I, II and III.

Euclidean space has $w_r = acc_r / c$ and $f(w) = \frac12 \sum_r \|w_r\|^2$. The scores are $\langle
acc_r, x\rangle / c$, divided last: labels whose $acc_r$ have equal products with the row tie
whatever $c$ is.

The entropy has one simplex per label, $f(w) = \sum_r \mathrm{KL}(w_r, \text{uniform})$. With
$\theta_r = acc_r / c$ the weights are $w_{r,j} = e^{\theta_{r,j} - L_r}$, $L_r = \log \sum_j
e^{\theta_{r,j}}$. A row $x \in \{0, 1\}^d$ has the score $p_r$, the weight on its words. If
$\theta_r$ grows by $\delta x$, $L_r$ grows by $\log(1 + p_r (e^\delta - 1))$. So $L$ is kept beside
$\theta$, as a compensated sum, and a round needs only the words of its row.

An update chooses the dual variables of a round: $\alpha_r$ adds $\alpha_r x_t$ to a relevant label
and subtracts it from another one. $r'$ is the relevant label with the lowest score and $s'$ the
other label with the highest score.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 8.3.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from olx import _numeric as safe
from olx._call import Call
from olx._numeric import Sum
from olx._pytree import pytree, static
from olx._refusal import RefusedValue, own_name, public
from olx.convex import _domain
from olx.convex.balanced import balanced_logits, balanced_search
from olx.core import Rounds, Scalar
from olx.losses.margin import short
from olx.losses.ranks import is_proper, parted
from olx.mirrors.base import MirrorMap
from olx.mirrors.entropy import negative_entropy
from olx.needs import Need


class Ranked(NamedTuple):
    """The scores of a round and its relevant labels."""

    scores: Float[Array, " k"]
    relevant: Bool[Array, " k"]
    x: Float[Array, " d"]
    low: Float[Array, ""]  # the lowest score of a relevant label
    high: Float[Array, ""]  # the highest score of another label
    mixed: Bool[Array, ""]  # whether there are labels of both kinds
    moves: Bool[Array, ""]  # whether x is not 0; else no step changes the weights
    margin: Scalar
    c: Scalar
    weight: Array  # of the round; it bounds the dual variables

    @property
    def gap(self) -> Array:
        """The loss of the round, or a number of at most 0; 0 if there is nothing to rank."""
        return jnp.where(self.mixed, self.margin - self.low + self.high, 0.0)

    @property
    def mistaken(self) -> Array:
        """Whether a relevant label is not strictly above all others."""
        return self.mixed & short(self.low, self.high)

    @property
    def proper(self) -> Array:
        """Whether there is something to rank and a step that does it."""
        return self.mixed & self.moves

    @property
    def worst(self) -> Float[Array, " k"]:
        """1 at the lowest relevant label and the highest other label; the first of equal ones."""
        return jnp.where(
            _first((self.scores == self.low) & self.relevant)
            | _first((self.scores == self.high) & ~self.relevant),
            jnp.ones_like(self.scores),
            0.0,
        )


@own_name("label_ranking")
def ranked(
    scores: Array, relevant: Array, x: Array, margin: Scalar, c: Scalar, weight: Scalar
) -> Ranked:
    inside, low, high = parted(scores, relevant)
    mixed, moves = is_proper(inside), jnp.any(x != 0)
    weight = jnp.asarray(weight, scores.dtype)
    return Ranked(scores, inside, x, low, high, mixed, moves, margin, c, weight)


def _first(where: Bool[Array, " k"]) -> Bool[Array, " k"]:
    number = jnp.arange(where.size)
    return number == jnp.min(jnp.where(where, number, where.size))


class EuclideanState(NamedTuple):
    """The state of a geometry; the class holds what updates and theorems ask of the geometry."""

    acc: Float[Array, "k d"]  # c times the weights, one row per label
    c: Scalar

    @classmethod
    def at(cls, c: Scalar, acc: Array) -> "EuclideanState":
        return cls(acc, c)

    def scores(self, x: Array) -> Array:
        return self.acc @ x / self.c

    @staticmethod
    def pair(now: Ranked) -> Array:
        r"""$\min\{h, c \ell / (2 \|x\|^2)\}$."""
        square = EuclideanState.square(now.x)
        return jnp.minimum(now.weight, safe.divide(now.c * jnp.maximum(now.gap, 0.0), 2 * square))

    @staticmethod
    def every(now: Ranked) -> Array:
        square = safe.or_one(EuclideanState.square(now.x))
        signed = jnp.where(now.relevant, -now.scores, now.scores)
        return balanced_search(now.c * (now.margin / 2 + signed) / square, now.relevant, now.weight)

    @staticmethod
    def square(x: Array) -> Array:
        return jnp.sum(x * x)

    @staticmethod
    def drift(now: Ranked) -> Array:
        return now.weight**2 * EuclideanState.square(now.x) / now.c

    @staticmethod
    def price(u: Array) -> Array:
        return jnp.sum(u * u) / 2

    @staticmethod
    def inside(u: Array) -> Array:
        return jnp.ones((), bool)

    def conjugate(self) -> Array:
        return EuclideanState.price(self.acc / self.c)

    @staticmethod
    def offset(u: Array) -> Array:
        return jnp.zeros((), u.dtype)


class EntropicState(NamedTuple):
    theta: Float[Array, "k d"]
    level: Sum  # per label, the logarithm of the sum of the exponentials of theta

    @classmethod
    def at(cls, c: Scalar, acc: Array) -> "EntropicState":
        return cls(acc / c, safe.start(logsumexp(acc / c, axis=1)))

    def scores(self, x: Array) -> Array:
        weights = jnp.exp(self.theta - self.level.value[:, None])
        return jnp.sum(jnp.where(x != 0, weights, 0.0), axis=1)

    @staticmethod
    def pair(now: Ranked) -> Array:
        r"""$\min\{h, c (\log\beta)_+\}$, with $\beta$ the zero of a quadratic in the two scores."""
        tame = _tame(now.scores)
        low = jnp.min(jnp.where(now.relevant, tame, 1.0))
        high = jnp.max(jnp.where(now.relevant, 0.0, tame))
        low, high = (jnp.where(now.proper, p, 0.5) for p in (low, high))
        mix, cross = low * high + (1 - low) * (1 - high), low * (1 - high)
        root = jnp.sqrt(
            (now.margin * mix) ** 2 + 4 * (1 - now.margin**2) * cross * high * (1 - low)
        )
        beta = (now.margin * mix + root) / (2 * (1 - now.margin) * cross)
        return jnp.clip(now.c * jnp.log(beta), 0.0, now.weight)

    @staticmethod
    def every(now: Ranked) -> Array:
        tame = jnp.where(now.proper, _tame(now.scores), 0.5)
        return balanced_logits(tame, now.relevant, now.margin, now.c, now.weight)

    @staticmethod
    def square(x: Array) -> Array:
        return jnp.max(jnp.abs(x)) ** 2

    @staticmethod
    def drift(now: Ranked) -> Array:
        r"""$c B_{f^*}$: $c \log(1 + p (e^\delta - 1)) - c p \delta$ of the two worst labels."""
        delta = jnp.where(now.relevant, 1.0, -jnp.ones_like(now.scores)) * now.weight / now.c
        each = _rise(now.scores, delta) - now.scores * delta
        return now.c * jnp.sum(now.worst * each)

    @staticmethod
    def price(u: Array) -> Array:
        return jnp.sum(safe.x_log_x(u)) + EntropicState.offset(u)

    @staticmethod
    def inside(u: Array) -> Array:
        return jnp.all(jax.vmap(_domain.unit_simplex)(u))

    def conjugate(self) -> Array:
        return jnp.sum(self.level.value) - EntropicState.offset(self.theta)

    @staticmethod
    def offset(u: Array) -> Array:
        return u.shape[0] * jnp.log(jnp.asarray(u.shape[1], u.dtype))


def entropic_init(params: Array) -> EntropicState:
    labels, size = params.shape
    level = jnp.full(labels, jnp.log(jnp.asarray(size, params.dtype)))
    return EntropicState(jnp.zeros_like(params), safe.start(level))


def entropic_move(
    c: Scalar, state: EntropicState, x: Array, scores: Array, steps: Array
) -> EntropicState:
    delta = steps / c
    theta = state.theta + delta[:, None] * x
    return EntropicState(theta, safe.add(state.level, _rise(scores, delta)))


def _rise(scores: Array, delta: Array) -> Array:
    return jnp.log1p(scores * jnp.expm1(delta))


def _tame(scores: Array) -> Array:
    """Scores strictly between 0 and 1: the logits of shares that rounded to 0 or 1 are finite."""
    kind = jnp.finfo(scores.dtype)
    return jnp.clip(scores, jnp.sqrt(kind.tiny).astype(scores.dtype), 1 - kind.eps)


Geometry = type[EuclideanState] | type[EntropicState]


def is_entropy(mirror: MirrorMap) -> bool:
    own = mirror.conjugate.func is negative_entropy().conjugate.func
    return own and mirror.aggregate is not None  # a prior has no aggregate


def below_one(margin: Scalar) -> Scalar:
    if isinstance(margin, Tracer):
        return jnp.where(margin < 1, margin, jnp.nan)
    if not margin < 1:
        raise RefusedValue(
            f"`margin` must be below 1 for the entropy, whose scores lie in [0, 1], got {margin}."
        )
    return margin


def _are_words(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    rows = rounds.context
    values = rows.values if hasattr(rows, "values") else rows
    legal = (values == 0) | (values == 1)
    if values is rows or np.all(legal):
        return legal if values is rows else True
    whole = rows.toarray()
    return (whole == 0) | (whole == 1)


ENTROPIC_ROWS = Need(
    "context",
    _are_words,
    "rows must hold 0 and 1 only for the entropy",
    "label_ranking",
    "use (x > 0), or the mirror map `olx.mirrors.euclidean()`",
)


@pytree
class Update:
    """How the dual variables of a round are chosen."""

    pick_fn: Callable[[Geometry, Ranked], Array] = static()  # the dual variables, one per label
    counts_fn: Callable[[Ranked], Array] = static()  # whether the loss of the round counts
    name: Call = static(kw_only=True, default=Call())  # the call that makes it


@public
def conservative() -> Update:
    r"""Update I: after a mistake $\alpha_{r'} = \alpha_{s'} = 1$; else nothing.

    In Euclidean space it is the Perceptron for label ranking.
    """
    return Update(_whole, _mistaken)


@public
def aggressive() -> Update:
    r"""Update II: the best $\alpha_{r'} = \alpha_{s'}$ in every round with a loss.

    In Euclidean space it is the Passive-Aggressive algorithm for label ranking.
    """
    return Update(_pair, _always)


@public
def optimal() -> Update:
    r"""Update III: the best $\alpha$ of all labels in every round with a loss."""
    return Update(_every, _always)


def _whole(geometry: Geometry, now: Ranked) -> Array:
    return now.weight * now.worst


def _pair(geometry: Geometry, now: Ranked) -> Array:
    return geometry.pair(now) * now.worst


def _every(geometry: Geometry, now: Ranked) -> Array:
    return geometry.every(now)


def _mistaken(now: Ranked) -> Array:
    return now.mistaken


def _always(now: Ranked) -> Array:
    return now.mixed
