r"""The types of `olx.repeated_game`: a game, the answer of nature, and a rule of the player.

A decision $w$ is played as an action $J_t w$, which is linear in $w$. Nature answers with hinges,
directions $m_i$ and bounds $b_i$, and the player pays

$$g_t(w) = \max_i\, (b_i - \langle m_i, J_t w\rangle)_+ .$$

Its dual vectors are $-J_t^\top \sum_i \alpha_i m_i$ with $\alpha \ge 0$, $\sum_i \alpha_i \le 1$,
and the conjugate there is at most $-\langle b, \alpha\rangle$. A rule of the player chooses the
dual variables $\alpha$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.4.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Scalar
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
    square_fn: Callable[..., Any] = static()  # (context) -> at least the squared norm of `act_fn`
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
