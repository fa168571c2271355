r"""Scale-free follow the regularized leader, for any mirror map: SOLO FTRL.

$$w_t = \arg\min_w\; \Big\langle \sum_{s<t} g_s, w \Big\rangle + L_t\, \psi(w), \qquad
  L_t = \sqrt{\sum_{s<t} \|g_s\|_*^2}.$$

There is no step size, and neither the number of rounds nor the size of the losses must be known. If
all losses are multiplied by a constant, the decisions stay the same. With $f_t = L_t \psi$, where
$\psi \ge 0$ is $\lambda$-strongly convex, $f_1^* = 0$ at $\theta_1 = 0$, and $\theta_{t+1} =
\theta_t - g_t$, the sum telescopes, and for all $u$ in the domain

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le L_{t+1} \psi(u) + \sum_{s \le t} \Big(
  f_{s+1}^*(\theta_{s+1}) - f_s^*(\theta_s) + \langle g_s, w_s\rangle\Big)$$
$$\le \Big(\psi(u) + \frac{2.75}\lambda\Big) L_{t+1} + 3.5\, \frac{\sqrt{t - 1}}\lambda
  \max_{s \le t} \|g_s\|_*.$$

On a domain of diameter $D$, theorem 1 of the paper has the smaller of the last fraction and $D$.
The sum in the middle is never more than that, and needs no diameter.

Orabona, Pal, Scale-Free Online Learning, 2018, algorithm 1 and theorem 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner
from olx.facts import Facts, Rowwise
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import scale
from olx.mirrors.euclidean import euclidean
from olx.theorem import Theorem


@pytree
class ScaleFreeHparams:
    mirror: MirrorMap


class ScaleFreeState(NamedTuple):
    theta: PyTree
    squares: Sum  # of the dual norms


@public
def scale_free(mirror: MirrorMap | None = None) -> Learner:
    """Follow the leader, regularized by `mirror` times the root of the sum of squared gradients.

    mirror: a potential that is not negative, strongly convex in a norm that it states; half the
        squared Euclidean norm if None. On a bounded domain the regret is about the root of the
        sum; on an unbounded one it also grows with the number of rounds.

    Only the shape of `params` is used: the first decision minimizes the potential.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[3e6, 4e6], [-5e6, 0.0]]))
    >>> learner = olx.scale_free()
    >>> done = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> bool(jnp.allclose(done.trace[1], jnp.array([-0.6, -0.8])))
    True
    """
    mirror = euclidean() if mirror is None else mirror
    check_norm(mirror)
    facts = Facts(coordinates=Rowwise() if mirror.separable else None, scale_free=True)
    hparams = ScaleFreeHparams(mirror)
    return Learner(hparams, init, predict, update, facts=facts, theorems=(telescoped_regret,))


def check_norm(mirror: MirrorMap) -> None:
    """Refuse all but a mirror map that states its norm."""
    check.instance("mirror", mirror, MirrorMap)
    if not mirror.states_norm:
        raise RefusedType(
            "`mirror` must state the norm in which it is strongly convex, whose dual measures the "
            "gradients; give `norm` and `modulus` to `olx.mirror_map`."
        )


def init(hp: ScaleFreeHparams, params: PyTree) -> ScaleFreeState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return ScaleFreeState(tree.zeros_like(params), safe.start(zero))


def predict(hp: ScaleFreeHparams, state: ScaleFreeState, context: PyTree) -> PyTree:
    return _at(hp, state).to_primal(state.theta)


def update(hp: ScaleFreeHparams, state: ScaleFreeState, feedback: Feedback) -> ScaleFreeState:
    theta, z = hp.mirror.center(state.theta), _move(feedback)
    return ScaleFreeState(tree.add(theta, z), safe.add(state.squares, _norm(hp, z) ** 2))


class Account(NamedTuple):
    left: Float[Array, ""]
    gaps: Float[Array, ""]  # the sum in the theorem
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error
    level: Float[Array, ""]  # L_{t+1}
    largest: Float[Array, ""]  # norm of a gradient
    rounds: Clock
    grounded: Bool[Array, ""]  # whether the potential was never negative


def open_account(hp: ScaleFreeHparams, state: ScaleFreeState, u: PyTree) -> Account:
    check.comparator(u, state.theta)
    zero = jnp.zeros_like(state.squares.value)
    return Account(*[zero] * 5, rounds=clock.start(hp, u), grounded=jnp.ones((), bool))


def add_round(
    hp: ScaleFreeHparams, account: Account, state: ScaleFreeState, feedback: Feedback, u: PyTree
) -> Account:
    z, new = _move(feedback), update(hp, state, feedback)
    before, after = _at(hp, state), _at(hp, new)
    begun = state.squares.value > 0
    here = jnp.where(begun, before.conjugate(state.theta), 0.0)
    there = jnp.where(new.squares.value > 0, after.conjugate(tree.add(state.theta, z)), 0.0)
    w = before.to_primal(state.theta)
    along, left = tree.vdot(z, w), tree.vdot(z, tree.sub(u, feedback.action))
    return Account(
        account.left + left,
        account.gaps + (there - here - along),
        account.size + jnp.abs(left) + jnp.abs(there) + jnp.abs(here) + jnp.abs(along),
        jnp.sqrt(new.squares.value),
        jnp.maximum(account.largest, _norm(hp, z)),
        clock.tick(hp, account.rounds, feedback),
        account.grounded & (hp.mirror.potential(w) >= -64 * jnp.finfo(here.dtype).eps),
    )


def both_sides(hp: ScaleFreeHparams, account: Account, u: PyTree) -> Certificate:
    paid = account.level * hp.mirror.potential(u)
    most = 2.75 * account.level + 3.5 * safe.sqrt(account.rounds.past - 1) * account.largest
    size = account.size + jnp.abs(paid)
    assert hp.mirror.modulus is not None  # `scale_free` has checked
    published = paid + most / hp.mirror.modulus
    proof = Certificate(account.left, paid + account.gaps, size, published)
    proof = proof.given("the potential must not be negative", account.grounded)
    return proof.given(DOMAIN, hp.mirror.outside(u) == 0)


telescoped_regret = Theorem(
    "telescoped_regret", "Orabona, Pal 2018, theorem 1", open_account, add_round, both_sides
)


def _at(hp: ScaleFreeHparams, state: ScaleFreeState) -> MirrorMap:
    """The regularizer; before the first gradient any level gives the same decision."""
    return scale(hp.mirror, jnp.sqrt(safe.or_one(state.squares.value)))


def _move(feedback: Feedback) -> PyTree:
    return tree.scale(-feedback.weight, feedback.grad)


def _norm(hp: ScaleFreeHparams, z: PyTree) -> Array:
    assert hp.mirror.norm is not None  # `scale_free` has checked
    return hp.mirror.norm.dual(z)
