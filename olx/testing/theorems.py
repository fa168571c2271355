"""Checks of the theorems of a learner on the stream of the kit."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.certify import certify
from olx.engine.rollout import rollout
from olx.record import trace
from olx.testing.report import close, fail, numbers, weighed
from olx.theorem import Certificate, Certificates


def check_theorems(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, comparators: tuple | None
) -> None:
    """Every theorem of the learner holds after every round, and ignores rounds of weight zero.

    comparators: points of the domain; `params` and 0 if None.
    """
    if not learner.theorems:
        return
    if comparators is None:
        comparators = (params, jax.tree.map(jnp.zeros_like, params))
    points = jax.tree.map(lambda *leaves: np.stack(leaves), *comparators)

    @jax.jit
    def judge(learner: Learner, rounds: Rounds) -> tuple[Certificates, list[Array]]:
        run = rollout(learner, loss, rounds, params, record=trace)
        proofs = jax.vmap(lambda u: certify(learner, run, u))(points)
        return proofs, [each.fails for each in proofs]

    judged = numbers(judge(learner, _with_idle_rounds(rounds)))
    for proofs, fails in zip(*judged, strict=True):
        name = proofs.name
        each = [jax.tree.map(lambda leaf, i=i: leaf[i], proofs) for i in range(len(comparators))]
        for proof, failed in zip(each, fails, strict=True):
            _check(name, proof, failed)
        if not any(np.isfinite(proof.right[-1]) for proof in each):
            fail(
                f"the theorem `{name}` says nothing about this stream and these `comparators`, so "
                f"it is not tested: {each[0]}"
            )


def _check(name: str, proof: Certificate, fails: np.ndarray) -> None:
    if np.any(fails):
        at = int(np.argmax(fails))
        fail(
            f"the theorem `{name}` is violated after round {at // 2 + 1}: {proof.left[at]} <= "
            f"{proof.right[at]} ({proof.theorem})"
        )
    sides = proof.left, proof.right, proof.published, proof.conditions
    during = jax.tree.map(lambda side: side[2::2], sides)
    before = jax.tree.map(lambda side: side[1:-1:2], sides)
    close(f"a round of weight zero changes the theorem `{name}`", during, before)


def _with_idle_rounds(rounds: Rounds) -> Rounds:
    """The rounds with one more round, of weight zero, before each of them."""
    weight = rounds.weight
    rounds = weighed(rounds, 1 if weight is None else weight)
    idle = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), weighed(rounds, 0))
    merge = lambda a, b: np.stack([a, b], axis=1).reshape(-1, *np.shape(a)[1:])
    return jax.tree.map(merge, idle, rounds)
