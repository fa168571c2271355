"""The speed of every first-order predictor against Passive-Aggressive, on the same rows.

Learners that revisit earlier rounds, such as `olx.ascents.window`, are slower by design and not in
the table.
"""

import olx
from benchmarks import data, targets
from benchmarks.data import Examples
from benchmarks.dense import HINGE, play
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings
from olx import convex, mirrors

WIDTHS = (50, 200)
PA = "PA-I"


AGGRESSIVE = olx.dual_ascent(0.1, mirrors.euclidean(), HINGE, olx.ascents.aggressive())
LEARNERS = {
    PA: olx.classification.passive_aggressive_1(0.1),
    "PA": olx.classification.passive_aggressive(),
    "PA-II": olx.classification.passive_aggressive_2(0.1),
    "Perceptron": olx.classification.perceptron(),
    "aggressive Perceptron": olx.classification.aggressive_perceptron(mirrors.euclidean()),
    "p-norm Perceptron": olx.classification.pnorm_perceptron(4.0),
    "Winnow": olx.classification.winnow(1.0),
    "balanced Winnow": olx.classification.balanced_winnow(1.0),
    "self-tuned Winnow": olx.classification.self_tuned_winnow(),
    "self-tuned aggressive": olx.classification.self_tuned_aggressive(mirrors.euclidean(), 1.0),
    "ROMMA": olx.classification.romma(),
    "aggressive ROMMA": olx.classification.aggressive_romma(),
    "ALMA": olx.classification.alma(0.9),
    "aggressive dual ascent": AGGRESSIVE,
    "OGD": olx.linear(olx.ogd(0.1)),
    "EG+-": olx.linear(olx.first_order.signed_exponentiated_gradient(0.1)),
    "RDA": olx.linear(olx.first_order.rda(0.1, convex.l1(1e-3))),
    "AdaGrad": olx.linear(olx.first_order.adagrad(0.1)),
    "FTRL-Proximal": olx.linear(olx.first_order.ftrl_proximal()),
    "scale-invariant AdaGrad": olx.linear(olx.first_order.scale_invariant_adagrad(0.1)),
    "scale-invariant p-norm": olx.linear(olx.first_order.scale_invariant_pnorm(0.1)),
    "implicit": olx.implicit(0.1, HINGE),
    "coin betting": olx.linear(olx.first_order.coin_betting()),
    "COCOB": olx.linear(olx.first_order.cocob()),
}


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for width in WIDTHS:
        examples = data.dense(settings.size(50_000, 2000), width)
        case = f"d={width}"
        contestants = [_contestant(name, examples) for name in LEARNERS]
        seen = kept_race(case, contestants, settings.rounds, timings)
        target = targets.at_most(targets.FIRST_ORDER)
        for name, timing in seen.items():
            if name != PA:
                rows.append(compared(f"{case}, {name}", timing, seen[PA], target, inverse=True))
    return Group("First-order learners against Passive-Aggressive", rows, timings)


def _contestant(name: str, examples: Examples) -> Contestant:
    return Contestant(name, lambda: play(LEARNERS[name], HINGE, *examples), examples.count)
