"""What certificates cost: `olx.certify` of a stream against `olx.run` of the same stream.

Both play arrays of the device and keep totals. A learner is certified with all the theorems that it
carries: one to six of them. They are evaluated after every round, also in rounds that change no
state, which are cheap for a run.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

import olx
from benchmarks import data, targets
from benchmarks.harness import Contestant, Group
from olx import classification, convex, first_order, mirrors, second_order

WIDTHS = (10, 1000)
VALUES = 8_000_000  # the largest number of values in a data set
HINGE, LOG = olx.losses.hinge, olx.losses.logistic
LEARNERS: dict[str, tuple[olx.Learner, Callable]] = {
    "OGD": (olx.linear(olx.ogd(0.1)), HINGE),
    "hypentropy": (olx.linear(olx.omd(0.1, mirrors.hypentropy(0.5))), LOG),
    "AdaGrad": (olx.linear(first_order.adagrad(0.1)), HINGE),
    "RDA": (olx.linear(first_order.rda(0.1, convex.l1(1e-3))), LOG),
    "EG+-": (olx.linear(first_order.signed_exponentiated_gradient(0.1)), LOG),
    "coin betting": (olx.linear(first_order.coin_betting(4.0)), LOG),
    "Perceptron": (classification.perceptron(), HINGE),
    "PA-I": (classification.passive_aggressive_1(0.1), HINGE),
    "balanced Winnow": (classification.balanced_winnow(1.0), HINGE),
    "diagonal AROW": (second_order.diagonal_arow(1.0), HINGE),
}


def measure(group: Group) -> None:
    for width in WIDTHS:
        examples = data.dense(group.size(min(50_000, VALUES // width), 1000), width)
        game = olx.Rounds(*map(jnp.asarray, examples)), jnp.zeros(width)
        u = jnp.full(width, 1e-3)
        for name, (learner, loss) in LEARNERS.items():
            case = f"d={width}, {name}, {len(learner.theorems)} theorems"
            proof = _contestant("olx.certify", olx.certify, learner, loss, *game, u)
            plain = _contestant("olx.run", olx.run, learner, loss, *game)
            seen = group.race(case, (proof, plain))
            group.compare(case, seen[proof.name], seen[plain.name], most=targets.CERTIFY)


def _contestant(name: str, driver: Callable, *given: Any) -> Contestant:
    call = functools.partial(driver, *given, keep=olx.keep.totals)
    return Contestant(name, lambda: call, len(given[2].outcome))
