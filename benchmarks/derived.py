r"""The cost of deriving a learner from a formula instead of writing it by hand.

One learner is derived from a potential and its conjugate by automatic differentiation, the other
is written by hand: $w = \beta \sinh\theta$ for the hyperbolic entropy with a linear model, a
softmax for experts. A third learner gets the potential alone and computes the conjugate
numerically; it is reported without a target.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr, logsumexp

import olx
from benchmarks import data, targets
from benchmarks.dense import HINGE, contestant
from benchmarks.harness import Contestant, Group

ETA, BETA = 0.1, 0.5
WIDTHS = (10, 50, 200, 1000)


def measure(group: Group) -> None:
    for width in WIDTHS:
        _hyperbolic(group, width)
        _entropic(group, width)


def _hyperbolic(group: Group, width: int) -> None:
    case, examples = f"d={width}, hyperbolic entropy", data.dense(group.size(50_000, 2000), width)
    by_hand = olx.Learner((ETA, BETA), _start, _score, _learn)
    derived = olx.linear(olx.omd(ETA, olx.mirror_map(_potential, _conjugate, separable=True)))
    alone = olx.linear(olx.omd(ETA, olx.mirror_map(_potential, separable=True)))
    contestants = (
        contestant("by hand", by_hand, HINGE, examples),
        contestant("derived", derived, HINGE, examples),
        contestant("potential alone", alone, HINGE, examples.first(group.size(2000, 500))),
    )
    hand, ours, numeric = group.race(case, contestants).values()
    group.compare(case, ours, hand, most=targets.DERIVED)
    note = {} if numeric.failure else {"note": "conjugate computed numerically"}
    group.compare(f"{case}, potential alone", numeric, hand, inverse=True, **note)


def _entropic(group: Group, width: int) -> None:
    losses = np.random.default_rng(0).random((group.size(50_000, 2000), width), np.float32)
    rounds, start = olx.Rounds(None, losses), jnp.full(width, 1 / width)
    learners = {
        "by hand": olx.Learner((ETA,), _start_experts, _softmax, _add),
        "derived": olx.omd(ETA, olx.mirror_map(_negative_entropy, _log_sum_exp, start=1.0)),
    }
    run = lambda one: lambda: olx.run(one, olx.losses.linear_loss, rounds, start)
    case = f"N={width}, entropy"
    contestants = [
        Contestant(name, lambda one=one: run(one), len(losses)) for name, one in learners.items()
    ]
    hand, ours = group.race(case, contestants).values()
    group.compare(case, ours, hand, most=targets.DERIVED)


def _potential(w):
    return jnp.sum(w * jnp.arcsinh(w / BETA) - jnp.sqrt(w**2 + BETA**2))


def _conjugate(theta):
    return BETA * jnp.sum(jnp.cosh(theta))


def _start(hparams, params):
    return jnp.arcsinh(params / hparams[1])


def _score(hparams, theta, x):
    return jnp.vdot(hparams[1] * jnp.sinh(theta), x)


def _learn(hparams, theta, feedback):
    return theta - hparams[0] * feedback.grad * feedback.context


def _negative_entropy(w):
    return -jnp.sum(entr(w))


def _log_sum_exp(theta):
    return logsumexp(theta)


def _start_experts(hparams, params):
    return jnp.log(params)


def _softmax(hparams, theta, context):
    return jax.nn.softmax(theta)


def _add(hparams, theta, feedback):
    return theta - hparams[0] * feedback.grad
