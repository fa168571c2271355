r"""The forward recursion of a chain in any semiring: one code for Viterbi and the log-partition.

With $\oplus$ = maximum or $\oplus$ = log-sum-exp,

$$\alpha_1(l) = s_l + e_{1 l}, \qquad \alpha_i(l) = e_{i l} + \bigoplus_j \alpha_{i-1}(j) + t_{j l},
  \qquad Z = \bigoplus_l \alpha_m(l) + f_l.$$

It takes $O(m k^2)$. With the maximum, $Z$ is the highest score, and the labels are found from the
last to the first in $O(m k)$. With log-sum-exp, $Z$ is the log-partition, and its gradient holds
the marginals.

Viterbi, Error Bounds for Convolutional Codes and an Asymptotically Optimum Decoding Algorithm,
1967; Lafferty, McCallum, Pereira, Conditional Random Fields, 2001.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from olx.structured.sequences import PADDING

Plus = Callable[..., Array]  # (array, axis) -> the sum of the semiring over this axis


class Parts(NamedTuple):
    """The scores of the parts of a chain of up to m positions with k labels."""

    emission: Float[Array, "m k"]  # of a label at a position
    transition: Float[Array, "k k"]  # of a label, by row, and the next label
    start: Float[Array, " k"]  # of the first label
    end: Float[Array, " k"]  # of the last label
    real: Float[Array, " m"]  # 1 at a position of the sequence, 0 at padding


def forward(plus: Plus, parts: Parts) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """All alphas, and Z. The alphas of padding are those of the last position before it."""
    first = parts.start + parts.emission[0]

    def step(alpha: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        emission, real = here
        new = plus(alpha[:, None] + parts.transition, axis=0) + emission
        alpha = jnp.where(real > 0, new, alpha)
        return alpha, alpha

    last, rest = lax.scan(step, first, (parts.emission[1:], parts.real[1:]))
    return jnp.concatenate([first[None], rest]), plus(last + parts.end, axis=0)


def viterbi(parts: Parts) -> Int[Array, " m"]:
    """The labels of the highest score, -1 at padding; of equal scores the smaller last label."""
    alphas, _ = forward(jnp.max, parts)
    last = jnp.argmax(alphas[-1] + parts.end).astype(jnp.int32)

    def step(label: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        alpha, real = here
        before = jnp.argmax(alpha + parts.transition[:, label]).astype(jnp.int32)
        label = jnp.where(real > 0, before, label)
        return label, label

    _, rest = lax.scan(step, last, (alphas[:-1], parts.real[1:]), reverse=True)
    return jnp.where(parts.real > 0, jnp.append(rest, last), PADDING)
