r"""Alignment as a structured output: $K$ events, in order, in a recording of $T$ frames.

The output is the frames $y_1 < \dots < y_K$ at which the events begin. With the features of
`olx.alignment.recording`, the score of an output is linear in few weights:

$$\langle w, \phi(x, y)\rangle = \sum_i \langle w_s, \mathrm{start}_i(y_i)\rangle +
  \sum_{y_i \le t < y_{i+1}} \langle w_g, \mathrm{inside}_i(t)\rangle +
  \langle w_l, \mathrm{length}_i(l_i)\rangle + w_r (r_i - r_{i-1})^2.$$

The best output is found by dynamic programming. $D_i(t, l)$ is the best score of events $1..i$ if
event $i$ lasts $l$ frames and ends before frame $t$. With $s = t - l$ and the score $q_i(s, l)$ of
event $i$ alone,

$$D_i(t, l) = q_i(s, l) + \max_{l'} D_{i-1}(s, l') + w_r (l / \mu_i - l' / \mu_{i-1})^2.$$

The answer is $\max_l D_K(T, l)$, followed backwards. The first event begins in one of the first $L$
frames, with $L$ lengths per event. It takes $O(K T L^2)$.

The cost of an output has two forms: `off_by`, the share of boundaries that are off by more than a
tolerance, in tenths rounded down; and `mean_deviation`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 9, figure 9.1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.alignment.recording import PADDING, Recording, Weights
from olx.core import Rounds, Scalar
from olx.needs import Need
from olx.structured.structure import Structure


@pytree
class AlignHparams:
    cost: Partial
    sizes: tuple[int, int, int] = static()  # features of starts, frames, lengths


class Parts(NamedTuple):
    """The scores of all parts, and the numbers of the recording that a score needs."""

    start: Float[Array, "K T"]
    inside: Float[Array, "K T+1"]  # added up from frame 0 on
    length: Float[Array, "K L"]
    tempo: Float[Array, ""]
    recording: Recording


@public
def align(start: int, inside: int, length: int, cost: Callable | None = None) -> Structure:
    """Find where events begin, for recordings with so many features of each kind.

    cost: a function `(outcome, output, real)` of frames -> cost, where `real` is 0 at padding;
        None for `off_by(1.0)`. Learners such as `olx.structured.self_tuned_structured` take it.

    >>> import jax.numpy as jnp, numpy as np, olx
    >>> sound = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    >>> inside = np.stack([-sound, sound, -sound])[:, :, None]  # silence, a tone, silence
    >>> none, ones = np.zeros((1, 6, 0)), np.ones(3)
    >>> song = olx.alignment.Recording(none, inside, np.zeros((3, 4, 0)), ones, ones, ones, 6, 3)
    >>> rounds = olx.alignment.aligned_rounds([song], [[0, 3, 5]])
    >>> structure = olx.alignment.align(0, 1, 0)
    >>> parts = structure.parts(structure.zeros()._replace(inside=jnp.ones(1)), song)
    >>> structure.decode(parts)[1:].tolist()
    [3, 5]
    """
    for name, size in (("start", start), ("inside", inside), ("length", length)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise RefusedValue(f"`{name}` must be a count of features, got {check.quote(size)}.")
        check.size(name, max(size, 1))
    cost = off_by(1.0) if cost is None else cost
    check.takes("cost", cost, "outcome", "output", "real")
    hparams = AlignHparams(as_tree(cost), (start, inside, length))
    return Structure(hparams, _zeros, _parts, score, decode, _cost, needs=(_FITS,))


@public
def off_by(tolerance: Scalar, tenths: Scalar = 10.0) -> Partial:
    """The share of boundaries that are off by more than `tolerance` frames, times `tenths` and
    rounded down: 0, or at least 1, as the theorem of `self_tuned_structured` demands."""
    tolerance = check.non_negative("tolerance", tolerance)
    return Partial(_off_by, tolerance, check.positive("tenths", tenths))


def mean_deviation() -> Partial:
    """The mean distance of the boundaries from the truth, in frames."""
    return Partial(_mean_deviation)


def _off_by(tolerance: Scalar, tenths: Scalar, outcome: Array, output: Array, real: Array) -> Array:
    off = jnp.where(jnp.abs(outcome - output) > tolerance, real, 0.0)
    share = jnp.sum(off) / jnp.sum(real)
    return jnp.floor(share * tenths + 1e-6)  # a share such as 3/10 must not be rounded below 3


def _mean_deviation(outcome: Array, output: Array, real: Array) -> Array:
    return jnp.sum(jnp.abs(outcome - output) * real) / jnp.sum(real)


def _zeros(hp: AlignHparams, dtype: DTypeLike) -> Weights:
    start, inside, length = (jnp.zeros(size, dtype) for size in hp.sizes)
    return Weights(start, inside, length, jnp.zeros((), dtype))


@own_name("align")
def _parts(hp: AlignHparams, w: Weights, context: Recording) -> Parts:
    context = Recording(*(jnp.asarray(part, w.tempo.dtype) for part in context))
    sizes = tuple(part.shape[-1] for part in context[:3])
    if sizes != hp.sizes:
        raise RefusedType(
            f"the recording has {sizes} features of starts, frames and lengths, the "
            f"structure {hp.sizes}; they must agree."
        )
    start = context.start @ w.start
    inside = jnp.cumsum(context.inside @ w.inside, axis=1)
    return Parts(
        jnp.broadcast_to(start, inside.shape),
        jnp.pad(inside, ((0, 0), (1, 0))),
        jnp.asarray(context.length) @ w.length,
        w.tempo,
        context,
    )


def score(hp: AlignHparams, parts: Parts, y: Int[Array, " K"]) -> Float[Array, ""]:
    real, ends = _real(parts, y), _ends(parts, y)
    at = lambda table, index: jnp.take_along_axis(table, index[:, None], 1)[:, 0]
    begins = jnp.clip(y, 0, parts.start.shape[1] - 1)
    lasts = (ends - begins).astype(parts.tempo.dtype)
    place = (lasts - parts.recording.shortest).astype(y.dtype)
    own = at(parts.start, begins) + at(parts.inside, ends) - at(parts.inside, begins)
    own += at(parts.length, jnp.clip(place, 0, parts.length.shape[1] - 1))
    rate = lasts / parts.recording.usual
    change = (rate[1:] - rate[:-1]) ** 2 * parts.recording.steady[1:]
    return jnp.sum(own * real) + parts.tempo * jnp.sum(change * real[1:])


def _ends(parts: Parts, y: Int[Array, " K"]) -> Int[Array, " K"]:
    """Where each event ends: where the next one begins, or with the recording."""
    last = parts.recording.frames.astype(y.dtype)
    after = jnp.append(y[1:], jnp.full_like(y[:1], PADDING))
    return jnp.where(after >= 0, after, last)


def _real(parts: Parts, y: Int[Array, " K"]) -> Float[Array, " K"]:
    dtype = parts.tempo.dtype
    return (jnp.arange(y.size, dtype=dtype) < parts.recording.events).astype(dtype)


def _cost(hp: AlignHparams, parts: Parts, outcome: Array, output: Array) -> Array:
    dtype = parts.tempo.dtype
    cost = hp.cost(outcome.astype(dtype), output.astype(dtype), _real(parts, outcome))
    return jnp.asarray(cost, dtype)


def _fits(hparams: AlignHparams, params: PyTree, rounds: Rounds) -> Recording:
    """Whether the events of a recording can fill it, and its features are finite."""
    given = rounds.context
    if not isinstance(given, Recording):
        raise TypeError(
            f"rounds.context is a {type(given).__name__}; `align` needs a `Recording`; "
            "`olx.alignment.aligned_rounds` makes rounds of several."
        )
    lengths = given.length.shape[-2]
    count = np.arange(given.shortest.shape[-1], dtype=given.events.dtype)
    real = count < given.events[..., None]
    least = (given.shortest * real).sum(-1)
    most = least + (given.events + 1) * (lengths - 1)
    fine = Recording(*(part - part == 0 for part in given))
    fits = (given.events >= 1) & (least <= given.frames) & (given.frames <= most)
    return fine._replace(frames=fine.frames & fits)


_NEVER = -1e30  # the score of what is not possible; finite, so that differences are numbers


def decode(hp: AlignHparams, parts: Parts) -> Int[Array, " K"]:
    """The best output; column j of a table is the length `shortest` + j."""
    frames, lengths = parts.start.shape[1], parts.length.shape[1]
    given = parts.recording
    times, steps = (jnp.arange(size, dtype=jnp.int32) for size in (frames + 1, lengths))
    empty = jnp.full((frames + 1, lengths), _NEVER, parts.start.dtype)
    begin = jnp.where(times[:, None] < lengths, 0.0, empty)
    count = given.events.astype(jnp.int32)
    events = jnp.arange(parts.start.shape[0], dtype=jnp.int32)
    lasts = given.shortest[:, None] + steps.astype(given.shortest.dtype)  # [K, L]
    rates = lasts / given.usual[:, None]
    before = jnp.concatenate([rates[:1], rates[:-1]])

    def over(best: Array, event: tuple) -> tuple[Array, Array]:
        i, start, inside, length, lasting, rate, earlier, steady = event

        def through(j: Array, found: tuple) -> tuple[Array, Array]:
            change = parts.tempo * steady * (rate - earlier[j]) ** 2
            way = best[:, j][:, None] + change[None, :]
            better = way > found[0]
            return jnp.where(better, way, found[0]), jnp.where(better, j, found[1])

        nowhere = jnp.zeros(best.shape, jnp.int32)
        most, back = lax.fori_loop(0, lengths, through, (empty, nowhere))
        most = jnp.where(i == 0, begin, most)
        most = most + (jnp.append(start, _NEVER) - inside)[:, None] + length[None, :]
        origin = times[:, None] - lasting.astype(times.dtype)[None, :]
        moved = jnp.take_along_axis(most, jnp.clip(origin, 0, frames), 0)
        done = jnp.where(origin >= 0, moved, _NEVER) + inside[:, None]
        done = jnp.maximum(done, _NEVER)
        return jnp.where(i < count, done, best), back

    rows = (events, parts.start, parts.inside, parts.length, lasts, rates, before, given.steady)
    best, backs = lax.scan(over, empty, rows)
    last = given.frames.astype(times.dtype)

    def backwards(carry: tuple, event: tuple) -> tuple[tuple, Array]:
        end, j = carry
        i, lasting, back = event
        here = end - lasting[j].astype(times.dtype)
        inside = i < count
        output = jnp.where(inside, here, PADDING).astype(jnp.int32)
        return (jnp.where(inside, here, end), jnp.where(inside, back[here, j], j)), output

    first = (last, jnp.argmax(best[last]).astype(jnp.int32))
    _, output = lax.scan(backwards, first, (events, lasts, backs), reverse=True)
    return output


_FITS = Need(
    "context",
    _fits,
    "the events of a recording must be able to fill its frames, and features must be finite",
    "align",
    "allow more lengths, or shorter ones",
)
