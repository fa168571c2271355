"""A theorem about a run, both sides of it, after every round."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from olx import _safe as safe
from olx._pytree import pytree, static

DOMAIN = "`u` must lie in the domain"
UNIT_WEIGHTS = "weights must be 0 or 1"


@pytree
class Certificate:
    """Both sides of a theorem after every round: it says that `left <= right <= printed`.

    scale: the size of the numbers that went into either side, so that rounding can be told from
        a violation.
    printed: the right side in the looser form of the source, with norms; None where the geometry
        is not known or the source prints nothing looser.
    conditions: what the theorem asks of the run, by name: whether it was met in all rounds so far.
        Where one was not, the theorem says nothing and the right sides are infinite. See `given`.
    """

    left: Float[Array, " T"]
    right: Float[Array, " T"]
    scale: Float[Array, " T"]
    printed: Float[Array, " T"] | None = None
    theorem: str = static(default="")
    conditions: dict[str, Bool[Array, " T"]] = dataclasses.field(default_factory=dict)

    def given(self, condition: str, met: Any) -> "Certificate":
        """The same theorem under one more condition; right sides are infinite once it was not met.

        condition: a demand, as in "gradients must be at most 1".
        met: whether each round meets it, or all of them if it is one truth value.
        """
        here = jnp.broadcast_to(met, self.left.shape)
        so_far = jnp.cumsum(~here, axis=-1) == 0
        if condition in self.conditions:
            so_far &= self.conditions[condition]
        only = lambda side: None if side is None else jnp.where(so_far, side, jnp.inf)
        return dataclasses.replace(
            self,
            right=only(self.right),
            printed=only(self.printed),
            conditions=self.conditions | {condition: so_far},
        )

    def under(self, conditions: dict[str, Bool[Array, " T"]]) -> "Certificate":
        """The same theorem under all conditions of others that it was made from."""
        proof = self
        for condition, met in conditions.items():
            proof = proof.given(condition, met)
        return proof

    @property
    def slack(self) -> Float[Array, " T"]:
        """Right side less left side; infinite where the right side is and the left is a number."""
        free = jnp.isposinf(self.right) & ~jnp.isnan(self.left)
        return jnp.where(free, jnp.inf, self.right - jnp.where(free, 0.0, self.left))

    @property
    def fails(self) -> Bool[Array, " T"]:
        """After which rounds an inequality is violated beyond rounding, or a side is NaN.

        None where a condition is broken: there the theorem says nothing.
        """
        known = jnp.isfinite(self.scale)
        rounding = 64 * jnp.finfo(self.scale.dtype).eps * jnp.where(known, self.scale, 0.0)
        good = self.left <= self.right + rounding
        if self.printed is not None:
            good &= self.right <= self.printed + rounding
        for met in self.conditions.values():
            good |= ~met
        return ~good

    @property
    def holds(self) -> Array:
        """Whether the inequalities hold at every round, up to rounding."""
        return ~jnp.any(self.fails, axis=-1)

    @property
    def tightness(self) -> Array:
        """The largest left / right seen: 1 means that the bound is attained."""
        told = (self.right > 0) & jnp.isfinite(self.right)
        ratio = self.left / safe.or_one(self.right, told)
        return jnp.max(jnp.where(told, ratio, 0.0), axis=-1)

    def __str__(self) -> str:
        if self.left.ndim != 1 or isinstance(self.left, Tracer):
            return f"{self.theorem}: {self.left.shape}"
        worst = int(jnp.argmin(self.slack))
        verdict = "holds after each" if self.holds else "FAILS after some"
        said = (
            f"{self.theorem}: {verdict} of {self.left.size} rounds. "
            f"Last: {self.left[-1]:.4g} <= {self.right[-1]:.4g}; least slack "
            f"{self.slack[worst]:.3g} after round {worst + 1}; tightness {self.tightness:.3f}."
        )
        if not self.holds:
            first = int(jnp.argmax(self.fails))
            undefined = jnp.isnan(self.left[first]) | jnp.isnan(self.right[first])
            said += f" It {'is NaN' if undefined else 'fails'} first after round {first + 1}."
        for condition, met in self.conditions.items():
            if not jnp.all(met):
                said += f" It says nothing from round {int(jnp.argmin(met)) + 1} on: {condition}."
        return said


def idle_last(trace: Any) -> tuple[Any, Int[Array, " T"], Int[Array, " T"]]:
    """A trace whose rounds of weight zero come last, its order, and the others counted so far.

    A round of weight zero leaves the state as it is and is no round for any theorem. What a theorem
    says after the first n rounds of this trace, it says of every round up to which n were played;
    see `after`.
    """
    value = trace.feedback.value
    idle = jnp.broadcast_to(jnp.asarray(trace.feedback.weight) == 0, value.shape)
    order = jnp.argsort(idle, stable=True)
    weight = jnp.broadcast_to(trace.feedback.weight, value.shape)
    trace = trace._replace(feedback=trace.feedback._replace(weight=weight))
    packed = jax.tree.map(lambda leaf: jnp.asarray(leaf)[order], trace)
    return packed, order, jnp.cumsum(~idle)


def after(proof: Certificate, count: Int[Array, " T"]) -> Certificate:
    """A certificate in every round after which so many rounds were played; 0 <= 0 before any."""
    none, at = count == 0, jnp.maximum(count - 1, 0)
    empty = lambda leaf: jnp.full_like(leaf, leaf.dtype == bool)  # conditions met, sides 0
    return jax.tree.map(lambda leaf: jnp.where(none, empty(leaf), leaf[at]), proof)
