"""Certificates: both sides of a theorem after every round, and the summary of them.

A theorem says `left <= right`. Where a condition of it is broken, it says nothing and the right
side is infinite. Where the run diverges, it does not hold.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from olx import _numeric as safe
from olx import plots
from olx._pytree import pytree, static
from olx._refusal import public

DOMAIN = "`u` must lie in the domain"
UNIT_WEIGHTS = "weights must be 0 or 1"
DIVERGED = "the run diverged"
REMEDY = "take smaller steps, or scale the data"


class SoFar(NamedTuple):
    """A summary of a certificate over all rounds so far, also those that were not kept."""

    failed: Int[Array, ""]  # the first round after which an inequality failed; 0 if none did
    diverged: Int[Array, ""]  # the first round with a number that is not finite; 0 if none
    slack: Float[Array, ""]  # the smallest slack
    slackest: Int[Array, ""]  # the round after which the slack was smallest
    tightness: Float[Array, ""]  # the largest left / right
    broken: dict[str, Int[Array, ""]]  # the first round that broke each condition; 0 if none did

    @property
    def reasons(self) -> dict[str, int]:
        """The conditions that were broken before the run diverged, each with its first round."""
        end = int(self.diverged) or float("inf")
        return {name: int(at) for name, at in self.broken.items() if 0 < int(at) <= end}

    @classmethod
    def none(cls, sides: "Certificate") -> "SoFar":
        """The summary before the first round, in the dtypes of `sides`."""
        none, most = jnp.zeros((), jnp.uint32), jnp.asarray(jnp.inf, sides.left.dtype)
        return cls(none, none, most, none, -most, dict.fromkeys(sides.conditions, none))

    def after(self, now: Int[Array, ""], sides: "Certificate") -> "SoFar":
        """The summary after round number `now`."""
        first = lambda seen, bad: jnp.where((seen == 0) & bad, now, seen)
        slack, ratio = sides._while_finite
        least = (slack < self.slack) | (self.slackest == 0)
        return SoFar(
            first(self.failed, sides.fails),
            first(self.diverged, sides.diverged),
            jnp.where(least, slack, self.slack),
            jnp.where(least, now, self.slackest),
            jnp.maximum(self.tightness, ratio),
            {name: first(self.broken[name], bad) for name, bad in sides._broken.items()},
        )


@pytree
class Certificate:
    """Both sides of a theorem after every round. The theorem says `left <= right <= published`.

    Inside a `Theorem` the sides are those after one round. The certificates of `olx.certify` have
    an axis of rounds.

    scale: the size of the numbers in both sides; it separates rounding errors from violations.
    published: the right side in the looser form of the source, with norms; None if the geometry
        is not known or the source has no looser form.
    conditions: for each condition of the theorem, by name, whether all rounds so far met it.
        Where one is broken, the theorem says nothing and the right sides are infinite. See `given`.
    finite: whether all actions and losses so far are finite; None if only both sides are known.
    at: the numbers of the rounds, if only some were kept.
    so_far: the summary over all rounds, also those that were not kept.
    """

    left: Float[Array, "*T"]
    right: Float[Array, "*T"]
    scale: Float[Array, "*T"]
    published: Float[Array, "*T"] | None = None
    name: str = static(default="")
    theorem: str = static(default="")
    conditions: dict[str, Bool[Array, "*T"]] = dataclasses.field(default_factory=dict)
    finite: Bool[Array, "*T"] | None = None
    at: Int[Array, " T"] | None = None
    so_far: SoFar | None = None

    def given(self, condition: str, met: bool | Array) -> "Certificate":
        """Add a condition; the right sides are infinite where it is broken.

        condition: a demand, as in "gradients must be at most 1".
        met: whether each round meets it; inside a `Theorem`, whether all rounds so far do.
        """
        met = jnp.broadcast_to(met, jnp.shape(self.left))
        if met.ndim:
            met = jnp.cumsum(~met, axis=-1) == 0
        if condition in self.conditions:
            met &= self.conditions[condition]
        only = lambda side: None if side is None else jnp.where(met, side, jnp.inf)
        return dataclasses.replace(
            self,
            right=only(self.right),
            published=only(self.published),
            conditions=self.conditions | {condition: met},
        )

    def under(self, conditions: dict[str, Bool[Array, " T"]]) -> "Certificate":
        """Add several conditions, such as those of the theorems that this one follows from."""
        proof = self
        for condition, met in conditions.items():
            proof = proof.given(condition, met)
        return proof

    @property
    def slack(self) -> Float[Array, " T"]:
        """Right side minus left side; infinite if the right side is, unless the left is NaN."""
        free = jnp.isposinf(self.right) & ~jnp.isnan(self.left)
        return jnp.where(free, jnp.inf, self.right - jnp.where(free, 0.0, self.left))

    @property
    def diverged(self) -> Bool[Array, "*T"]:
        """Whether the run has diverged: an action or a loss so far is not finite, or a side is NaN.

        From there on the theorem says nothing, and it does not hold.
        """
        bad = jnp.isnan(self.left) | jnp.isnan(self.right)
        if self.published is not None:
            bad |= jnp.isnan(self.published)
        if self.finite is not None:
            bad |= ~self.finite
        return jnp.cumsum(bad, axis=-1) > 0 if bad.ndim else bad

    @property
    def _broken(self) -> dict[str, Bool[Array, "*T"]]:
        """Whether a condition is broken, by name; a number that is not finite breaks any."""
        played = True if self.finite is None else self.finite
        return {name: ~met & played for name, met in self.conditions.items()}

    @property
    def _while_finite(self) -> tuple[Array, Array]:
        """Slack and ratio, without those of rounds after which the run has diverged."""
        lost = self.diverged
        return jnp.where(lost, jnp.inf, self.slack), jnp.where(lost, 0.0, self.ratio)

    @property
    def fails(self) -> Bool[Array, " T"]:
        """Whether an inequality is violated beyond rounding, after each round.

        False where the theorem says nothing: a condition is broken, or the run has diverged.
        """
        known = jnp.isfinite(self.scale)
        rounding = 64 * jnp.finfo(self.scale.dtype).eps * jnp.where(known, self.scale, 0.0)
        good = self.left <= self.right + rounding
        if self.published is not None:
            good &= self.right <= self.published + rounding
        for met in self.conditions.values():
            good |= ~met
        return ~(good | self.diverged)

    @property
    def ratio(self) -> Float[Array, "*T"]:
        """Left side over right side; 0 unless the right side is positive and finite."""
        usable = (self.right > 0) & jnp.isfinite(self.right)
        return safe.divide(self.left, self.right, 0.0, usable)

    @property
    def summary(self) -> SoFar:
        """The summary over all rounds."""
        if self.so_far is not None:
            return jax.tree.map(lambda leaf: leaf[..., -1], self.so_far)
        first = lambda bad: jnp.where(jnp.any(bad, axis=-1), jnp.argmax(bad, axis=-1) + 1, 0)
        slack, ratio = self._while_finite
        return SoFar(
            first(self.fails),
            first(self.diverged),
            jnp.min(slack, axis=-1),
            jnp.argmin(slack, axis=-1) + 1,
            jnp.max(ratio, axis=-1),
            {name: first(bad) for name, bad in self._broken.items()},
        )

    @property
    def holds(self) -> Array:
        """Whether the inequalities hold after every round, up to rounding; no if it diverged."""
        seen = self.summary
        return (seen.failed == 0) & (seen.diverged == 0)

    @property
    def tightness(self) -> Array:
        """The largest left / right over all rounds; 1 means that the bound is attained."""
        return self.summary.tightness

    @public
    def plot(self, ax: Any = None) -> Any:
        """Draw both sides, and the published right side, by rounds.

        ax: of matplotlib, where to draw; a new one if None.
        """
        return plots.plot_certificate(self, ax)

    def __str__(self) -> str:
        if not self.left.ndim or isinstance(self.left, Tracer):
            return f"{self.theorem}: {self.left.shape}"
        if self.left.ndim > 1:
            return self._of_several_runs()
        seen, rounds = self.summary, self.left.size if self.at is None else int(self.at[-1])
        verdict = "FAILS after some" if seen.failed else "holds after each"
        published = ""
        if self.published is not None:
            known = bool(jnp.isfinite(self.published[-1]))
            published = f" <= {self.published[-1]:.4g} as published"
            published = published if known else " (the published form says nothing)"
        said = (
            f"{self.theorem}: {verdict} of {rounds} rounds. "
            f"Last: {self.left[-1]:.4g} <= {self.right[-1]:.4g}{published}; least slack "
            f"{seen.slack:.3g} after round {seen.slackest}; tightness {seen.tightness:.3f}."
        )
        if seen.diverged:
            said = f"{self.theorem}: {DIVERGED} in round {seen.diverged} of {rounds}; {REMEDY}."
        if seen.failed:
            said += f" It fails first after round {seen.failed}."
        for condition, first in seen.reasons.items():
            said += f" It says nothing from round {first} on: {condition}."
        return said

    def _of_several_runs(self) -> str:
        """How many runs of a batch it holds in, and where it is tightest."""
        seen, count = self.summary, self.holds.size
        said = f"{self.theorem}: holds in {int(self.holds.sum())} of {count} runs"
        broken = [at > 0 for at in seen.broken.values()]
        silent = functools.reduce(jnp.logical_or, broken, jnp.zeros(seen.failed.shape, bool))
        bad = {"fails": seen.failed > 0, "diverged": seen.diverged > 0}
        bad["says nothing from some round on"] = silent & (seen.diverged == 0)
        for word, runs in bad.items():
            said += f", {word} in {int(runs.sum())}" if bool(runs.any()) else ""
        run = jnp.unravel_index(jnp.argmin(seen.slack), seen.slack.shape)
        where = ", ".join(str(int(place)) for place in run)
        return f"{said}. Least slack {seen.slack[run]:.3g}, in run [{where}]."


@pytree
class Certificates:
    """One certificate per theorem of a learner, for one run; index it by number or by name."""

    each: tuple[Certificate, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.each)

    @property
    def holds(self) -> Array:
        """Whether all theorems hold after every round."""
        return functools.reduce(jnp.logical_and, [one.holds for one in self.each])

    def __getitem__(self, key: str | int) -> Certificate:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"no theorem of this learner is named {key!r}; it has {self.names}.")
            return self.each[self.names.index(key)]
        return self.each[key]

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def plot(self) -> list[Any]:
        """A picture for each theorem, one below the other, as axes of matplotlib."""
        return plots.plot_certificates(self.each)

    def __str__(self) -> str:
        return "\n".join(map(str, self.each))
