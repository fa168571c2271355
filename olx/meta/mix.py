r"""Mix several learners by an expert learner: a batch of one algorithm, or different ones.

Learner $k$ plays $a_t^k$, learns from its own losses as if it were alone, and is an expert with
loss $f_t(a_t^k)$. The mixture plays $\sum_k p_{t,k} a_t^k$. For convex losses it pays at most
$\langle p_t, \ell_t \rangle$, so for every $k$ and $u$

$$\sum_t f_t(a_t) - f_t(u) \le R^{\mathrm{mixer}}(e_k) + R^k(u).$$

A mixture over a grid of step sizes thus tunes its step size.

van Erven, Koolen, MetaGrad: Multiple Learning Rates in Online Learning, 2016; Cesa-Bianchi, Lugosi,
Prediction, Learning, and Games, 2006.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.certificate import Certificate
from olx.core import Batch, Feedback, Learner
from olx.losses.points import linear_feedback
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs

Experts = Learner | tuple[Learner, ...]


@pytree
class MixHparams:
    experts: Experts  # stacked learners, or a tuple of them
    mixer: Learner


class MixState(NamedTuple):
    experts: PyTree  # stacked states, or a tuple of them
    mixer: PyTree


@public
def mix(inner: Batch | Learner | tuple[Learner, ...], mixer: Learner) -> Learner:
    """Play the mean of the actions of several learners, weighted by `mixer` from a uniform start.

    inner: a batch from `olx.batch`, or a tuple of learners of any algorithms. Their actions are
        real and have one shape; losses are convex in the action.
    mixer: any learner whose action is a distribution; losses must lie in its range.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=50, features=3)
    >>> grid = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.geomspace(1e-2, 1.0, 5))
    >>> game = olx.losses.squared, rounds, jnp.zeros(3)
    >>> tuned = olx.rollout(mix(grid, olx.hedge(1.0)), *game)
    >>> bool(tuned.total < 1.2 * olx.sweep(grid, *game).total.min())
    True
    """
    check.instance("mixer", mixer, Learner)
    inner = inner.learners if isinstance(inner, Batch) else inner
    members = inner if isinstance(inner, tuple) else (inner,)
    if isinstance(inner, tuple):
        _check_members(inner)
    for member in members:
        check.instance("inner", member, Learner)
    if isinstance(inner, tuple):
        needs = tuple(
            need
            for index, member in enumerate(inner)
            for need in lift_needs(WrapperView("experts", index), member)
        )
    else:
        _count(inner)
        needs = lift_needs(WrapperView("experts", stacked=True), inner)
    theorems = (_mixed(members, mixer),) if all(one.theorems for one in (*members, mixer)) else ()
    hparams = MixHparams(inner, mixer)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: MixHparams, params: PyTree) -> MixState:
    if isinstance(hp.experts, tuple):
        states = tuple(expert.init(params) for expert in hp.experts)
    else:
        states = jax.vmap(lambda expert: expert.init(params))(hp.experts)
    size = _count(hp.experts)
    equal = jnp.full(size, 1 / size, jnp.result_type(*jax.tree.leaves(params)))
    return MixState(states, hp.mixer.init(equal))


def predict(hp: MixHparams, state: MixState, context: PyTree) -> PyTree:
    act = lambda expert, own: (own, expert.predict(own, context))
    _, actions = _each(act, hp.experts, state.experts)
    return mean(hp.mixer.predict(state.mixer), actions)


def update(hp: MixHparams, state: MixState, feedback: Feedback) -> MixState:
    def learn(expert: Learner, own: PyTree) -> tuple[PyTree, Array]:
        seen = its_own(expert, own, feedback)
        return expert.update(own, seen), seen.value

    experts, losses = _each(learn, hp.experts, state.experts)
    seen = linear_feedback(hp.mixer.predict(state.mixer), losses, feedback.weight)
    return MixState(experts, hp.mixer.update(state.mixer, seen))


class Account(NamedTuple):
    experts: PyTree  # the accounts of the learners against `u`, stacked or a tuple
    mixers: PyTree  # the account of the mixer against each of them, stacked
    regret: Float[Array, " K"]  # to each learner
    paid: Float[Array, ""]


def open_account(hp: MixHparams, state: MixState, u: PyTree) -> Account:
    def of_one(expert: Learner, own: PyTree) -> PyTree:
        return _main(expert).init_fn(expert.hparams, own, u)

    p = hp.mixer.predict(state.mixer)
    start = lambda vertex: _main(hp.mixer).init_fn(hp.mixer.hparams, state.mixer, vertex)
    accounts = _over(of_one, hp.experts, state.experts)
    return Account(accounts, jax.vmap(start)(_vertices(p)), jnp.zeros_like(p), jnp.zeros_like(p[0]))


def add_round(
    hp: MixHparams, account: Account, state: MixState, feedback: Feedback, u: PyTree
) -> Account:
    def of_one(expert: Learner, own: PyTree, past: PyTree) -> tuple[PyTree, Array]:
        seen = its_own(expert, own, feedback)
        return _main(expert).add_fn(expert.hparams, past, own, seen, u), seen.value

    accounts, losses = _each(of_one, hp.experts, state.experts, account.experts)
    p, weight, value = hp.mixer.predict(state.mixer), feedback.weight, feedback.value
    told, one = linear_feedback(p, losses, weight), _main(hp.mixer)
    add = lambda past, vertex: one.add_fn(hp.mixer.hparams, past, state.mixer, told, vertex)
    return Account(
        accounts,
        jax.vmap(add)(account.mixers, _vertices(p)),
        account.regret + weight * (value - losses),
        account.paid + jnp.abs(weight * value),
    )


def both_sides(hp: MixHparams, account: Account, u: PyTree) -> Certificate:
    """The bound of the mixer to one learner plus the bound of that learner to `u`.

    After each round it takes the learner with the smallest sum.
    """

    def of_one(expert: Learner, past: PyTree) -> Certificate:
        return _main(expert).sides_fn(expert.hparams, past, u)

    proofs = _over(of_one, hp.experts, account.experts)
    if isinstance(proofs, tuple):
        proofs = _stacked_proofs(proofs)
    one = _main(hp.mixer)
    sides = lambda past, vertex: one.sides_fn(hp.mixer.hparams, past, vertex)
    mixers = jax.vmap(sides)(account.mixers, _vertices(account.regret))
    right = mixers.right + proofs.right
    best = jnp.argmin(right)
    whole = Certificate(
        account.regret + proofs.left, right, mixers.scale + proofs.scale + account.paid
    )
    met = mixers.conditions | {
        name: met & mixers.conditions.get(name, True) for name, met in proofs.conditions.items()
    }
    proof, met = jax.tree.map(lambda leaf: leaf[best], (whole, met))
    return proof.under(met)


def _main(learner: Learner) -> Theorem:
    """The first theorem of a learner, which is about its regret."""
    return learner.theorems[0]


def _mixed(experts: tuple[Learner, ...], mixer: Learner) -> Theorem:
    sources = dict.fromkeys(_main(expert).source for expert in experts)
    source = f"{_main(mixer).source}; {' or '.join(sources)}"
    return Theorem("mixture", source, open_account, add_round, both_sides)


def _vertices(p: Float[Array, " K"]) -> Float[Array, "K K"]:
    return jnp.eye(p.size, dtype=p.dtype)


@own_name("mix")
def _each(
    function: Callable[..., tuple[PyTree, PyTree]], experts: Experts, *own: PyTree
) -> tuple[PyTree, PyTree]:
    """`function(learner, *own)` per learner: the next states, and its second result stacked."""
    if not isinstance(experts, tuple):
        return jax.vmap(function)(experts, *own)
    pairs = [function(*one) for one in zip(experts, *own, strict=True)]
    seen = [jax.tree.map(jnp.asarray, other) for _, other in pairs]
    for other in seen:
        check.same_shape("an action of `inner`", other, "that of the first", seen[0])
    return tuple(own for own, _ in pairs), jax.tree.map(lambda *rows: jnp.stack(rows), *seen)


def _over(function: Callable[..., PyTree], experts: Experts, own: PyTree) -> PyTree:
    """`function(learner, own)` per learner: stacked for a batch, a tuple for a tuple."""
    if not isinstance(experts, tuple):
        return jax.vmap(function)(experts, own)
    return tuple(function(*one) for one in zip(experts, own, strict=True))


def _stacked_proofs(proofs: tuple[Certificate, ...]) -> Certificate:
    """Stack certificates along a leading axis; each condition applies to its own certificate."""
    names = {name for proof in proofs for name in proof.conditions}
    met = lambda proof, name: proof.conditions.get(name, jnp.ones((), bool))
    together = lambda field: jnp.stack([getattr(proof, field) for proof in proofs])
    return Certificate(
        together("left"),
        together("right"),
        together("scale"),
        conditions={name: jnp.stack([met(proof, name) for proof in proofs]) for name in names},
    )


@own_name("mix")
def _check_members(experts: tuple[Learner, ...]) -> None:
    if not experts or any(isinstance(expert, Batch) for expert in experts):
        raise RefusedType(
            "`inner` must be a tuple of learners, at least one and none of them a batch, or "
            "one batch; mix the batch first, and its mixture with the others."
        )


@own_name("mix")
def _count(experts: Experts) -> int:
    if isinstance(experts, tuple):
        return len(experts)
    shapes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(experts)}
    if len(shapes) != 1 or shapes == {()}:
        raise RefusedType(
            "`inner` must be a batch, every number with a leading axis of learners, as from "
            f"`olx.batch`; its leaves start with axes {sorted(shapes)}."
        )
    return shapes.pop()[0]


def its_own(learner: Learner, state: PyTree, feedback: Feedback) -> Feedback:
    """The feedback of a round as if `learner` had played its own action."""
    action = learner.predict(state, feedback.context)
    value, grad = jax.value_and_grad(feedback.loss)(action)
    return feedback._replace(action=action, value=value, grad=grad)


def mean(p: Float[Array, " K"], actions: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), actions)
