"""A learner that evaluates the theorems of another learner while it plays.

It plays the same actions. Its state is the state of the learner and one ledger per theorem. So
every driver can evaluate theorems, and needs memory only for the state and the rounds it keeps.
"""

from typing import NamedTuple

from jaxtyping import Array, PyTree

from olx._pytree import pytree
from olx.core import Feedback, Learner
from olx.facts import Facts, Refresh
from olx.needs import PARTS, within
from olx.theorem import Certificate, Ledger, Theorem, follow, start


@pytree
class TheoremHparams:
    inner: Learner
    theorems: tuple[Theorem, ...]
    u: PyTree


class TheoremState(NamedTuple):
    inner: PyTree
    ledgers: tuple[Ledger, ...]


def with_theorems(inner: Learner, theorems: tuple[Theorem, ...], u: PyTree) -> Learner:
    """Play `inner` and evaluate `theorems` against the comparator `u`."""
    hparams = TheoremHparams(inner, theorems, u)
    refresh = None if inner.facts.refresh is None else Refresh(_due, _refreshed, _sums)
    needs = within(inner, "inner", *PARTS)
    return Learner(hparams, init, predict, update, facts=Facts(refresh=refresh), needs=needs)


def init(hp: TheoremHparams, params: PyTree) -> TheoremState:
    state = hp.inner.init(params)
    return TheoremState(
        state, tuple(start(one, hp.inner.hparams, state, hp.u) for one in hp.theorems)
    )


def predict(hp: TheoremHparams, state: TheoremState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


def update(hp: TheoremHparams, state: TheoremState, feedback: Feedback) -> TheoremState:
    ledgers = tuple(
        follow(one, hp.inner.hparams, ledger, state.inner, feedback, hp.u)
        for one, ledger in zip(hp.theorems, state.ledgers, strict=True)
    )
    return TheoremState(hp.inner.step(state.inner, feedback), ledgers)


def sides(state: TheoremState, feedback: Feedback) -> tuple[Certificate, ...]:
    """Both sides of every theorem, from the state after a round; for `record`."""
    return tuple(ledger.sides for ledger in state.ledgers)


def _due(hp: TheoremHparams, state: TheoremState) -> Array:
    return hp.inner.due(state.inner, 1.0)


def _sums(hp: TheoremHparams, state: TheoremState) -> PyTree:
    return hp.inner.sums(state.inner)


def _refreshed(hp: TheoremHparams, state: TheoremState, sums: PyTree) -> TheoremState:
    return TheoremState(hp.inner.refreshed(state.inner, sums), state.ledgers)
