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
from benchmarks.dense import HINGE, play
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings

ETA, BETA = 0.1, 0.5
WIDTHS = (10, 50, 200, 1000)


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for width in WIDTHS:
        for make in (_hyperbolic, _entropic):
            case, target, contestants = make(width, settings)
            seen = kept_race(case, contestants, settings.rounds, timings)
            by_hand, derived, *others = seen.values()
            rows.append(compared(case, derived, by_hand, target, inverse=True))
            rows += [_numeric(case, by_hand, other) for other in others]
    return Group("Derived against hand-written learners", rows, timings)


def _numeric(case, by_hand, other) -> Row:
    row = compared(f"{case}, potential alone", other, by_hand, None, inverse=True)
    return row._replace(note=row.note or "conjugate computed numerically")


def _hyperbolic(width: int, settings: Settings):
    examples = data.dense(settings.size(50_000, 2000), width)
    few = examples.first(settings.size(2000, 500))
    by_hand = olx.Learner((ETA, BETA), _start, _score, _learn)
    derived = olx.linear(olx.omd(ETA, olx.mirror_map(_potential, _conjugate, separable=True)))
    alone = olx.linear(olx.omd(ETA, olx.mirror_map(_potential, separable=True)))
    contestants = [
        Contestant("by hand", lambda: play(by_hand, HINGE, *examples), examples.count),
        Contestant("derived", lambda: play(derived, HINGE, *examples), examples.count),
        Contestant("potential alone", lambda: play(alone, HINGE, *few), few.count),
    ]
    return f"d={width}, hyperbolic entropy", targets.at_most(targets.DERIVED), contestants


def _entropic(width: int, settings: Settings):
    losses = np.random.default_rng(0).random((settings.size(50_000, 2000), width), np.float32)
    rounds, start = olx.Rounds(None, losses), jnp.full(width, 1 / width)
    by_hand = olx.Learner((ETA,), _start_experts, _softmax, _add)
    derived = olx.omd(ETA, olx.mirror_map(_negative_entropy, _log_sum_exp, start=1.0))
    run = lambda learner: lambda: olx.run(learner, olx.losses.linear_loss, rounds, start)
    contestants = [
        Contestant("by hand", lambda: run(by_hand), len(losses)),
        Contestant("derived", lambda: run(derived), len(losses)),
    ]
    return f"N={width}, entropy", targets.at_most(targets.DERIVED), contestants


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
