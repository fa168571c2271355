"""A learner that evaluates the theorems of another learner while it plays.

It plays the same actions. Its state is the state of the learner and a ledger of the theorems. So
every driver can evaluate theorems, and needs memory only for the state and the rounds it keeps.
Ledgers number all rounds, also those of weight zero, which change nothing else.
"""

import dataclasses
from typing import NamedTuple

import jax
from jaxtyping import PyTree

from olx._cache import Recent
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import Feedback, Learner, without_refresh
from olx.facts import Facts
from olx.theorem import Ledger, Theorem, advance, start
from olx.wrapper import INNER, lift_decision, lift_needs, lift_refresh


@pytree
class TheoremHparams:
    inner: Learner
    theorems: tuple[Theorem, ...]
    u: PyTree


class TheoremState(NamedTuple):
    inner: PyTree
    ledger: Ledger


def with_theorems(inner: Learner, theorems: tuple[Theorem, ...], u: PyTree) -> Learner:
    """Play `inner` and evaluate `theorems` against the comparator `u`."""
    hparams = TheoremHparams(inner, theorems, u)
    refresh, decision = lift_refresh(INNER, inner), lift_decision(INNER, inner)
    facts = Facts(refresh=refresh, decision=decision, every_round=True)
    needs = lift_needs(INNER, inner)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs)


_PLAYERS: Recent[tuple[PyTree, Learner]] = Recent()


def same_player(inner: Learner, theorems: tuple[Theorem, ...], u: PyTree, given: PyTree) -> Learner:
    """The same learner for the same objects, of which the engine then remembers its first state.

    given: the comparator as the caller gave it; `u` are its arrays in the dtype of the game.
    """
    leaves, kinds = jax.tree.leaves(given), [leaf.dtype for leaf in jax.tree.leaves(u)]
    if not all(isinstance(leaf, jax.Array) for leaf in leaves):  # others may change
        return with_theorems(inner, theorems, u)
    ids = tuple(map(id, (inner, *theorems, *leaves)))
    key = ids, jax.tree.structure(given), *kinds
    kept = _PLAYERS.get(key)
    if kept is None:  # with the objects, so that no `id` is used again
        kept = _PLAYERS.put(key, (leaves, with_theorems(inner, theorems, u)))
    return kept[1]


def init(hp: TheoremHparams, params: PyTree) -> TheoremState:
    state = hp.inner.init(params)
    return TheoremState(state, start(hp.theorems, hp.inner.hparams, state, hp.u))


def predict(hp: TheoremHparams, state: TheoremState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


def update(hp: TheoremHparams, state: TheoremState, feedback: Feedback) -> TheoremState:
    given = hp.theorems, hp.inner.hparams, state.ledger, state.inner, feedback, hp.u
    ledger = advance(*given)
    return TheoremState(without_refresh(hp.inner).update(state.inner, feedback), ledger)


def sides(state: TheoremState, feedback: Feedback) -> tuple[Certificate, ...]:
    """Both sides of every theorem, from the state after a round; for `record`."""
    return tuple(dataclasses.replace(one, so_far=None) for one in state.ledger.sides)
