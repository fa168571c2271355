"""A theorem about a run, both sides of it, after every round."""

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from olx._pytree import pytree, static


@pytree
class Certificate:
    """Both sides of a theorem after every round: it says that `left <= right <= printed`.

    scale: the size of the numbers that went into either side, so that rounding can be told from
        a violation.
    printed: the right side in the looser form of the source, with norms; None where the geometry
        is not known or the source prints nothing looser.
    """

    left: Float[Array, " T"]
    right: Float[Array, " T"]
    scale: Float[Array, " T"]
    printed: Float[Array, " T"] | None = None
    theorem: str = static(default="")

    @property
    def slack(self) -> Float[Array, " T"]:
        return self.right - self.left

    @property
    def holds(self) -> Array:
        """Whether the inequalities hold at every round, up to rounding."""
        rounding = 64 * jnp.finfo(self.scale.dtype).eps * self.scale
        good = self.slack >= -rounding
        if self.printed is not None:
            good &= self.printed >= self.right - rounding  # both may be infinite
        return jnp.all(good, axis=-1)

    def __str__(self) -> str:
        if self.left.ndim != 1 or isinstance(self.left, Tracer):
            return f"{self.theorem}: {self.left.shape}"
        worst = int(jnp.argmin(self.slack))
        verdict = "holds after each" if self.holds else "FAILS after some"
        return (
            f"{self.theorem}: {verdict} of {self.left.size} rounds. "
            f"Last: {self.left[-1]:.4g} <= {self.right[-1]:.4g}; least slack "
            f"{self.slack[worst]:.3g} after round {worst + 1}; tightness {self.tightness:.3f}."
        )

    @property
    def tightness(self) -> Array:
        """The largest left / right seen: 1 means that the bound is attained."""
        return jnp.max(jnp.where(self.right > 0, self.left / self.right, 0.0), axis=-1)
