r"""The best alignment, by dynamic programming over events, frames and lengths.

$D_i(t, l)$ is the best score of events $1..i$ if event $i$ lasts $l$ frames and ends before frame
$t$. With $s = t - l$ and the score $q_i(s, l)$ of event $i$ alone,

$$D_i(t, l) = q_i(s, l) + \max_{l'} D_{i-1}(s, l') + w_r (l / \mu_i - l' / \mu_{i-1})^2.$$

The answer is $\max_l D_K(T, l)$, followed backwards. The first event begins in one of the first $L$
frames. It takes $O(K T L^2)$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 9.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from olx.alignment.recording import PADDING, Recording

_NEVER = -1e30  # the score of what is not possible; finite, so that differences are numbers


class Parts(NamedTuple):
    """The scores of all parts, and the numbers of the recording that a score needs."""

    start: Float[Array, "K T"]
    inside: Float[Array, "K T+1"]  # added up from frame 0 on
    length: Float[Array, "K L"]
    tempo: Float[Array, ""]
    recording: Recording


def decode(parts: Parts) -> Int[Array, " K"]:
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

    def over(carry, event):
        best, i = carry, event[0]
        _, start, inside, length, lasting, rate, earlier, steady = event

        def through(j, found):
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

    def backwards(carry, event):
        end, j = carry
        i, lasting, back = event
        here = end - lasting[j].astype(times.dtype)
        inside = i < count
        output = jnp.where(inside, here, PADDING).astype(jnp.int32)
        return (jnp.where(inside, here, end), jnp.where(inside, back[here, j], j)), output

    first = (last, jnp.argmax(best[last]).astype(jnp.int32))
    _, output = lax.scan(backwards, first, (events, lasts, backs), reverse=True)
    return output
