r"""The sum of learners: as good as the best of them, up to the regret of the others to their start.

Learner $k$ decides on $w_t^k$ and sees the same gradients; play $w_t = \sum_k w_t^k$. The first one
starts at $w_1$, the others at 0. For any $u = \sum_k u^k$ the regrets add up:

$$\sum_s \langle g_s, w_s - u\rangle = \sum_k \sum_s \langle g_s, w_s^k - u^k\rangle.$$

So, with $v = u - w_1$, the regret is at most the smallest over $k$ of the regret of learner $k$ to
its start plus $v$, and the regrets of the others to their starts. For parameter-free learners the
latter are constants. A sum of a bettor per coordinate and one for the norm has both bounds at once,
and no losses of single learners must be compared, as `olx.meta.mix` does.

Cutkosky, Combining Online Learning Guarantees, 2019, theorem 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner
from olx.facts import Facts, Separable
from olx.losses.points import linear_feedback
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class SumHparams:
    inner: tuple[Learner, ...]


class SumState(NamedTuple):
    start: PyTree
    inner: tuple[PyTree, ...]


@public
def add_learners(inner: tuple[Learner, ...]) -> Learner:
    """Play the sum of the decisions of several learners.

    inner: a tuple of learners of points anywhere, at least two. Those after the first start at 0.

    >>> import jax.numpy as jnp, olx
    >>> each = olx.first_order.freegrad()
    >>> both = olx.meta.add_learners((each, olx.meta.direction_and_magnitude(each)))
    >>> rounds = olx.Rounds(None, jnp.ones((40, 3)))
    >>> game = olx.losses.linear_loss, rounds, jnp.zeros(3), jnp.array([-1.0, 0.0, 0.0])
    >>> bool(olx.certify(both, *game, progress=False).holds)
    True
    """
    if not isinstance(inner, tuple) or len(inner) < 2:
        raise RefusedType(
            f"`inner` must be a tuple of two or more learners, got {check.quote(inner)}."
        )
    for one in inner:
        check.instance("inner", one, Learner)
    first, *others = inner
    needs = lift_needs(WrapperView(index=0, parts=("params", "context", "weight")), first)
    for index, one in enumerate(others, 1):
        parts = ("params", "context", "weight")
        view = WrapperView(index=index, parts=parts, start_fn=tree.zeros_like)
        needs += lift_needs(view, one)
    kinds = [one.facts.coordinates for one in inner]
    keep = all(isinstance(kind, Separable) and kind.keeps_decision for kind in kinds)
    facts = Facts(
        coordinates=Separable(keeps_decision=True) if keep else None,
        scale_free=all(one.facts.scale_free for one in inner),
    )
    theorems = (_regret(inner),) if all(one.theorems for one in inner) else ()
    hparams = SumHparams(inner)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: SumHparams, params: PyTree) -> SumState:
    states = zip(hp.inner, _starts(hp, params), strict=True)
    return SumState(params, tuple(one.init(start) for one, start in states))


def predict(hp: SumHparams, state: SumState, context: PyTree) -> PyTree:
    decisions = [one.predict(own, context) for one, own in zip(hp.inner, state.inner, strict=True)]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *decisions)


def update(hp: SumHparams, state: SumState, feedback: Feedback) -> SumState:
    states = zip(hp.inner, state.inner, strict=True)
    new = tuple(one.update(own, _told(one, own, feedback)) for one, own in states)
    return SumState(state.start, new)


class Account(NamedTuple):
    stays: tuple[PyTree, ...]  # the account of each learner against its start
    moves: tuple[PyTree, ...]  # and against its start plus v
    to: tuple[PyTree, ...]  # these points
    start: PyTree
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left`


def open_account(hp: SumHparams, state: SumState, u: PyTree) -> Account:
    v = tree.sub(check.comparator(u, state.start), state.start)
    starts = _starts(hp, state.start)
    to = tuple(tree.add(start, v) for start in starts)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))

    def accounts(points: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
        parts = zip(hp.inner, state.inner, points, strict=True)
        return tuple(_main(one).init_fn(one.hparams, own, point) for one, own, point in parts)

    return Account(accounts(starts), accounts(to), to, state.start, zero, zero)


def add_round(
    hp: SumHparams, account: Account, state: SumState, feedback: Feedback, u: PyTree
) -> Account:
    def added(accounts: tuple[PyTree, ...], points: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
        parts = zip(hp.inner, accounts, state.inner, points, strict=True)
        return tuple(
            _main(one).add_fn(one.hparams, past, own, _told(one, own, feedback), point)
            for one, past, own, point in parts
        )

    g, size = tree.scale(feedback.weight, feedback.grad), lambda one: jax.tree.map(jnp.abs, one)
    return account._replace(
        stays=added(account.stays, _starts(hp, account.start)),
        moves=added(account.moves, account.to),
        left=account.left + tree.vdot(g, tree.sub(feedback.action, u)),
        size=account.size + tree.vdot(size(g), tree.add(size(feedback.action), size(u))),
    )


def both_sides(hp: SumHparams, account: Account, u: PyTree) -> Certificate:
    """The smallest sum of bounds, in which one learner follows the comparator."""

    def sides(accounts: tuple[PyTree, ...], points: tuple[PyTree, ...]) -> list[Certificate]:
        parts = zip(hp.inner, accounts, points, strict=True)
        return [_main(one).sides_fn(one.hparams, past, point) for one, past, point in parts]

    stays = sides(account.stays, _starts(hp, account.start))
    moves = sides(account.moves, account.to)
    splits = [[*stays[:k], moves[k], *stays[k + 1 :]] for k in range(len(stays))]
    names = {name for proof in (*stays, *moves) for name in proof.conditions}

    def met(split: list[Certificate], name: str) -> Array:
        each = [proof.conditions[name] for proof in split if name in proof.conditions]
        return jnp.all(jnp.stack([jnp.ones((), bool), *each]))

    right = jnp.stack([sum(proof.right for proof in split) for split in splits])
    scale = jnp.stack([sum(proof.scale for proof in split) for split in splits])
    conditions = {name: jnp.stack([met(split, name) for split in splits]) for name in names}
    best = jnp.argmin(right)
    proof = Certificate(account.left, right[best], account.size + scale[best])
    return proof.under({name: met[best] for name, met in conditions.items()})


def _regret(inner: tuple[Learner, ...]) -> Theorem:
    sources = dict.fromkeys(_main(one).source for one in inner)
    source = f"Cutkosky 2019; {'; '.join(sources)}"
    return Theorem("sum_regret", source, open_account, add_round, both_sides)


def _main(learner: Learner) -> Theorem:
    """The first theorem of a learner, which is about its regret."""
    return learner.theorems[0]


def _starts(hp: SumHparams, start: PyTree) -> tuple[PyTree, ...]:
    return (start, *[tree.zeros_like(start)] * (len(hp.inner) - 1))


def _told(one: Learner, state: PyTree, feedback: Feedback) -> Feedback:
    """The feedback of a learner: a linear loss at its own decision."""
    w = one.predict(state, feedback.context)
    return linear_feedback(w, feedback.grad, feedback.weight, feedback.context)
