r"""Scale-free mirror descent, for any mirror map on a bounded domain.

$$w_{t+1} = \arg\min_{w \in S}\; \langle g_t, w\rangle + L_t\, B_\psi(w, w_t), \qquad
  L_t = \sqrt{\sum_{s \le t} \|g_s\|_*^2}.$$

As `olx.scale_free`, it has no step size, and all losses times a constant give the same decisions.
It starts from `params`, and a step starts from the projected decision, so it follows what changes
sooner. Each step of mirror descent has the size $1 / L_s$, which the current gradient is in. For
$\psi$ that is $\lambda$-strongly convex, and for all $u$ in the domain,

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \sum_{s \le t} L_s \Big( B_\psi(u, w_s) -
  B_\psi(u, w_{s+1}) + B_{\psi^*}\big(\nabla\psi(w_s) - g_s / L_s, \nabla\psi(w_s)\big) \Big)$$
$$\le \Big( \max_{s \le t} B_\psi(u, w_s) + \frac1\lambda \Big) L_t.$$

The last line sums by parts, since $L_s$ does not fall, and uses $\sum_s \|g_s\|_*^2 / L_s \le 2
L_t$. The maximum is at most the diameter of the domain in $B_\psi$. Without a bounded diameter, as
in the whole space or for the entropy near the edges of the simplex, it may grow with the number of
rounds: then `olx.scale_free` has the better bound.

Orabona, Pal, Scale-Free Online Learning, 2018, scale-free mirror descent.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner
from olx.facts import Facts, Rowwise
from olx.frameworks import accounts
from olx.frameworks.accounts import Approach
from olx.frameworks.scale_free import check_norm
from olx.mirrors.base import MirrorMap, curved_start, start_inside
from olx.mirrors.euclidean import euclidean
from olx.theorem import Theorem


@pytree
class ScaleFreeMDHparams:
    mirror: MirrorMap


class ScaleFreeMDState(NamedTuple):
    theta: PyTree
    squares: Sum  # of the dual norms


@public
def scale_free_md(mirror: MirrorMap | None = None) -> Learner:
    """Take steps as large as one over the root of the sum of squared gradients.

    mirror: a potential that is strongly convex in a norm that it states; half the squared Euclidean
        norm if None. On a domain of bounded diameter, such as a ball, the regret is about the root
        of the sum.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[3e6, 4e6], [0.0, 0.0]]))
    >>> learner = olx.scale_free_md(olx.mirrors.euclidean(olx.convex.sets.ball(2.0)))
    >>> done = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> bool(jnp.allclose(done.trace[1], jnp.array([-0.6, -0.8])))
    True
    """
    mirror = euclidean() if mirror is None else mirror
    check_norm(mirror)
    facts = Facts(coordinates=Rowwise() if mirror.separable else None, scale_free=True)
    hparams, needs = (
        ScaleFreeMDHparams(mirror),
        (start_inside("scale_free_md"), curved_start("scale_free_md")),
    )
    theorems = (bounded_divergence_regret,)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: ScaleFreeMDHparams, params: PyTree) -> ScaleFreeMDState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return ScaleFreeMDState(hp.mirror.to_dual(params), safe.start(zero))


def predict(hp: ScaleFreeMDHparams, state: ScaleFreeMDState, context: PyTree) -> PyTree:
    return hp.mirror.to_primal(state.theta)


def update(hp: ScaleFreeMDHparams, state: ScaleFreeMDState, feedback: Feedback) -> ScaleFreeMDState:
    squares = _squares(hp, state, feedback)
    return ScaleFreeMDState(_moved(hp, state, feedback, squares), squares)


class Account(NamedTuple):
    approach: Approach
    farthest: Float[Array, ""]  # the largest B(u, w_s)
    level: Float[Array, ""]  # L_t


def open_account(hp: ScaleFreeMDHparams, state: ScaleFreeMDState, u: PyTree) -> Account:
    approach = accounts.open_approach(hp, state, u)
    return Account(approach, jnp.zeros_like(approach.near), jnp.zeros_like(approach.near))


def add_round(
    hp: ScaleFreeMDHparams,
    account: Account,
    state: ScaleFreeMDState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    f, w, squares = hp.mirror, feedback.action, _squares(hp, state, feedback)
    here, after = f.retract(state.theta), _moved(hp, state, feedback, squares)
    step = tree.sub(after, here)
    ends = f.conjugate(after), f.conjugate(here), tree.vdot(step, w)
    near, far = accounts.divergence(f, u, here), accounts.divergence(f, u, f.retract(after))
    size = sum(map(jnp.abs, ends)) + near[1] + far[1]
    left, drift = tree.vdot(step, tree.sub(u, w)), ends[0] - ends[1] - ends[2]
    approach = accounts.add_approach(
        account.approach, _size(squares), near[0], far[0], left, drift, f.energy(step), size
    )
    farthest = jnp.maximum(account.farthest, near[0])
    return Account(approach, farthest, jnp.sqrt(squares.value))


def both_sides(hp: ScaleFreeMDHparams, account: Account, u: PyTree) -> Certificate:
    assert hp.mirror.modulus is not None  # `scale_free_md` has checked
    published = (account.farthest + 1 / hp.mirror.modulus) * account.level
    proof = accounts.approach_sides(hp, account.approach, u)
    return dataclasses.replace(proof, published=published).under(proof.conditions)


bounded_divergence_regret = Theorem(
    "bounded_divergence_regret", "Orabona, Pal 2018", open_account, add_round, both_sides
)


def _squares(hp: ScaleFreeMDHparams, state: ScaleFreeMDState, feedback: Feedback) -> Sum:
    assert hp.mirror.norm is not None  # `scale_free_md` has checked
    return safe.add(state.squares, hp.mirror.norm.dual(_scaled(feedback)) ** 2)


def _moved(
    hp: ScaleFreeMDHparams, state: ScaleFreeMDState, feedback: Feedback, squares: Sum
) -> PyTree:
    return tree.add_scale(hp.mirror.retract(state.theta), -_size(squares), _scaled(feedback))


def _size(squares: Sum) -> Float[Array, ""]:
    """The size of the step; before the first gradient any does."""
    return 1 / jnp.sqrt(safe.or_one(squares.value))


def _scaled(feedback: Feedback) -> PyTree:
    return tree.scale(feedback.weight, feedback.grad)
