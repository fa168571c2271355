r"""Mix several learners by an expert learner: a batch of one algorithm, or different ones.

Learner $k$ plays $a_t^k$, learns from its own losses as if it were alone, and is an expert with
loss $f_t(a_t^k)$. The mixture plays $\sum_k p_{t,k} a_t^k$. For convex losses it pays at most
$\langle p_t, \ell_t \rangle$, so for every $k$ and $u$

$$\sum_t f_t(a_t) - f_t(u) \le R^{\mathrm{mixer}}(e_k) + R^k(u).$$

A mixture over a grid of step sizes thus tunes its step size.

van Erven, Koolen, MetaGrad: Multiple Learning Rates in Online Learning, 2016; Cesa-Bianchi, Lugosi,
Prediction, Learning, and Games, 2006.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Batch, Feedback, Learner
from olx.losses.points import linear_feedback
from olx.meta._members import check_members, count, each, its_own, mean, over, stacked
from olx.theorem import Certificate, Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class MixHparams:
    experts: Learner | tuple[Learner, ...]  # stacked learners, or a tuple of them
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
    if isinstance(inner, Batch):
        inner = inner.learners
    members = inner if isinstance(inner, tuple) else (inner,)
    if isinstance(inner, tuple):
        check_members(inner)
    for member in members:
        check.instance("inner", member, Learner)
    if isinstance(inner, tuple):
        needs = tuple(
            need
            for index, member in enumerate(inner)
            for need in lift_needs(WrapperView("experts", index), member)
        )
    else:
        count(inner)
        needs = lift_needs(WrapperView("experts", stacked=True), inner)
    theorems = (_mixed(members, mixer),) if all(one.theorems for one in (*members, mixer)) else ()
    hparams = MixHparams(inner, mixer)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: MixHparams, params: PyTree) -> MixState:
    if isinstance(hp.experts, tuple):
        states = tuple(expert.init(params) for expert in hp.experts)
    else:
        states = jax.vmap(lambda expert: expert.init(params))(hp.experts)
    size = count(hp.experts)
    equal = jnp.full(size, 1 / size, jnp.result_type(*jax.tree.leaves(params)))
    return MixState(states, hp.mixer.init(equal))


def predict(hp: MixHparams, state: MixState, context: PyTree) -> PyTree:
    act = lambda expert, own: (own, expert.predict(own, context))
    _, actions = each(act, hp.experts, state.experts)
    return mean(hp.mixer.predict(state.mixer), actions)


def update(hp: MixHparams, state: MixState, feedback: Feedback) -> MixState:
    def learn(expert: Learner, own: PyTree):
        seen = its_own(expert, own, feedback)
        return expert.update(own, seen), seen.value

    experts, losses = each(learn, hp.experts, state.experts)
    seen = linear_feedback(hp.mixer.predict(state.mixer), losses, feedback.weight)
    return MixState(experts, hp.mixer.update(state.mixer, seen))


class Account(NamedTuple):
    experts: PyTree  # the accounts of the learners against `u`, stacked or a tuple
    mixers: PyTree  # the account of the mixer against each of them, stacked
    regret: Float[Array, " K"]  # to each learner
    paid: Float[Array, ""]


def open_account(hp: MixHparams, state: MixState, u: PyTree) -> Account:
    def of_one(expert: Learner, own: PyTree):
        return main(expert).init_fn(expert.hparams, own, u)

    p = hp.mixer.predict(state.mixer)
    start = lambda vertex: main(hp.mixer).init_fn(hp.mixer.hparams, state.mixer, vertex)
    accounts = over(of_one, hp.experts, state.experts)
    return Account(accounts, jax.vmap(start)(_vertices(p)), jnp.zeros_like(p), jnp.zeros_like(p[0]))


def add_round(
    hp: MixHparams, account: Account, state: MixState, feedback: Feedback, u: PyTree
) -> Account:
    def of_one(expert: Learner, own: PyTree, past: PyTree):
        seen = its_own(expert, own, feedback)
        return main(expert).add_fn(expert.hparams, past, own, seen, u), seen.value

    accounts, losses = each(of_one, hp.experts, state.experts, account.experts)
    p, weight, value = hp.mixer.predict(state.mixer), feedback.weight, feedback.value
    told, one = linear_feedback(p, losses, weight), main(hp.mixer)
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

    def of_one(expert: Learner, past: PyTree):
        return main(expert).sides_fn(expert.hparams, past, u)

    proofs = over(of_one, hp.experts, account.experts)
    if isinstance(proofs, tuple):
        proofs = stacked(proofs)
    one = main(hp.mixer)
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


def main(learner: Learner) -> Theorem:
    """The first theorem of a learner, which is about its regret."""
    return learner.theorems[0]


def _mixed(experts: tuple[Learner, ...], mixer: Learner) -> Theorem:
    sources = dict.fromkeys(main(expert).source for expert in experts)
    source = f"{main(mixer).source}; {' or '.join(sources)}"
    return Theorem("mixture", source, open_account, add_round, both_sides)


def _vertices(p: Float[Array, " K"]) -> Float[Array, "K K"]:
    return jnp.eye(p.size, dtype=p.dtype)
