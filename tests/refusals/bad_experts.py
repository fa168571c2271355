"""Numbers, learners and moves that no expert learner, bandit, mixture or drifting game takes."""

import jax
import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad

import olx
from olx import experts, hindsight

KEY = jax.random.key(0)
RUN = olx.Run(None, None)
HALF, NEGATIVE = jnp.ones(2) / 2, jnp.array([1.0, -1.0])
GRID = olx.batch(olx.ogd, eta=jnp.array([0.1, 0.2]))


def step(s):
    return (s <= 0).astype(float)


def value(call, says):
    return Bad(call, ValueError, says)


def kind(call, says):
    return Bad(call, TypeError, says)


POSITIVE = "`eta` must be positive, got"
BOUNDED = "bandit: `inner` must take losses of any size, as estimates are, got `"
A_TUPLE = "mix: `inner` must be a tuple of learners"
UNIT = "drifting_game: `moves` must be finite multiples of a common unit"
BAD = {
    "anytime_hedge, eta 0": value(lambda: experts.anytime_hedge(0.0), f"anytime_hedge: {POSITIVE}"),
    "anytime_hedge, eta -1": value(lambda: experts.anytime_hedge(-1.0), POSITIVE),
    "anytime_hedge, eta NaN": value(lambda: experts.anytime_hedge(np.nan), POSITIVE),
    "fixed_share, eta 0": value(lambda: experts.fixed_share(0.0, 0.1), f"fixed_share: {POSITIVE}"),
    "fixed_share, alpha 0": value(
        lambda: experts.fixed_share(1.0, 0.0), r"fixed_share: `alpha` must lie in \(0, 1\], got 0"
    ),
    "prod, eta 0.6": value(lambda: experts.prod(0.6), r"prod: `eta` must lie in \(0, 0.5\]"),
    "prod, eta 0": value(lambda: experts.prod(0.0), r"prod: `eta` must lie in \(0, 0.5\]"),
    "exp3, eta 2": value(lambda: experts.exp3(2.0, KEY), r"exp3: `eta` must lie in \(0, 1\]"),
    "exp3, eta NaN": value(lambda: experts.exp3(np.nan, KEY), r"exp3: `eta` must lie in"),
    "squint, no rates": value(lambda: experts.squint(rates=0), "squint: `rates` must be an int"),
    "squint, rates 2.5": value(lambda: experts.squint(rates=2.5), "squint: `rates` must be an int"),
    "squint, rates True": value(lambda: experts.squint(rates=True), "squint: `rates` must be"),
    "ada_normal_hedge, exponent 2": value(
        lambda: experts.ada_normal_hedge(exponent=2.0),
        r"ada_normal_hedge: `exponent` must lie in \[0, 1\], got 2",
    ),
    "ada_normal_hedge_tv, no rounds": value(
        lambda: experts.ada_normal_hedge_tv(0), "`rounds` must be an integer of at least 1"
    ),
    "ada_normal_hedge_streaming, rounds 3.0": value(
        lambda: experts.ada_normal_hedge_streaming(3.0), "`rounds` must be an integer"
    ),
    "gibbs, eta 0": value(lambda: experts.gibbs(0.0, HALF, KEY), f"gibbs: {POSITIVE}"),
    "adahedge, negative prior": value(
        lambda: experts.adahedge(NEGATIVE), "adahedge: `prior` must be non-negative, got -1"
    ),
    "boa, negative prior": value(lambda: experts.boa(NEGATIVE), "boa: `prior` must be non-neg"),
    "two_norm, NaN prior": value(
        lambda: experts.two_norm(jnp.array([np.nan, 1.0])), "two_norm: `prior` must be non-negative"
    ),
    "adahedge, empty range": value(
        lambda: experts.adahedge(low=1.0, high=1.0), "adahedge: `high - low` must be positive"
    ),
    "normal_hedge, range upside down": value(
        lambda: experts.normal_hedge(low=2.0), "normal_hedge: `high - low` must be positive"
    ),
    "potential_experts of no function": kind(
        lambda: experts.potential_experts(3.0), "potential_experts: `potential` must be a function"
    ),
    "bandit of no learner": kind(
        lambda: experts.bandit("hedge", KEY), "bandit: `inner` must be a Learner, got str"
    ),
    "bandit of ada_normal_hedge": kind(
        lambda: experts.bandit(experts.ada_normal_hedge(), KEY), f"{BOUNDED}ada_normal_hedge`"
    ),
    "bandit of adahedge": kind(
        lambda: experts.bandit(experts.adahedge(), KEY), f"{BOUNDED}adahedge`.*take `olx.hedge`"
    ),
    "bandit of prod": kind(lambda: experts.bandit(experts.prod(0.1), KEY), f"{BOUNDED}prod`"),
    "bandit of squint": kind(lambda: experts.bandit(experts.squint(), KEY), f"{BOUNDED}squint`"),
    "bandit of two_norm": kind(lambda: experts.bandit(experts.two_norm(), KEY), BOUNDED),
    "bandit of ml_poly": kind(lambda: experts.bandit(experts.ml_poly(), KEY), f"{BOUNDED}ml_poly`"),
    "any_range of no learner": kind(
        lambda: experts.any_range("boa"), "any_range: `inner` must be a Learner, got str"
    ),
    "any_range of a learner in one unit": kind(
        lambda: experts.any_range(experts.prod(0.1)),
        r"any_range: `inner` must be .* or `squint`, got prod\(eta=0.1\); give it the range",
    ),
    "any_range of a learner with a range": kind(
        lambda: experts.any_range(experts.boa(high=2.0)),
        r"any_range: `inner` must have no range of its own, got boa\(high=2\)",
    ),
    "sampled of no learner": kind(
        lambda: experts.sampled(0.1, KEY), "sampled: `inner` must be a Learner, got float"
    ),
    "committed of no learner": kind(
        lambda: experts.committed(None, KEY), "committed: `inner` must be a Learner, got NoneType"
    ),
    "particles of no learner": kind(
        lambda: experts.particles(HALF, HALF), "particles: `inner` must be a Learner"
    ),
    "best_pruning of no learner": kind(
        lambda: experts.best_pruning(1), "best_pruning: `inner` must be a Learner, got int"
    ),
    "experts_from_game of no learner": kind(
        lambda: experts.experts_from_game(step), "experts_from_game: `inner` must be a Learner"
    ),
    "game_from_experts of no learner": kind(
        lambda: experts.game_from_experts(step), "game_from_experts: `inner` must be a Learner"
    ),
    "mix, one learner that is no batch": kind(
        lambda: olx.meta.mix(olx.ogd(0.1), olx.hedge(1.0)), "mix: `inner` must be a batch"
    ),
    "mix, no learners": kind(lambda: olx.meta.mix((), olx.hedge(1.0)), A_TUPLE),
    "mix, a batch in a tuple": kind(lambda: olx.meta.mix((GRID,), olx.hedge(1.0)), A_TUPLE),
    "mix, a number in a tuple": kind(
        lambda: olx.meta.mix((olx.ogd(0.1), 0.2), olx.hedge(1.0)),
        "mix: `inner` must be a Learner",
    ),
    "mix, a list": kind(
        lambda: olx.meta.mix([olx.ogd(0.1)], olx.hedge(1.0)),
        "mix: `inner` must be a Learner, got lis",
    ),
    "mix, no mixer": kind(
        lambda: olx.meta.mix(GRID, 0.3), "mix: `mixer` must be a Learner, got float"
    ),
    "drifting_game of no function": kind(
        lambda: experts.drifting_game(1.0, 5), "drifting_game: `final` must be a function"
    ),
    "drifting_game, no rounds": value(
        lambda: experts.drifting_game(step, 0), "drifting_game: `rounds` must be an integer"
    ),
    "drifting_game, beta 2": value(
        lambda: experts.drifting_game(step, 5, 2.0), r"drifting_game: `beta` must lie in \[0, 1\]"
    ),
    "drifting_game, beta above all moves": value(
        lambda: experts.drifting_game(step, 5, 0.5, (-1.0, 0.25)),
        r"drifting_game: `beta` must lie in \[0, 0.25\], got 0.5",
    ),
    "drifting_game, no moves": value(lambda: experts.drifting_game(step, 5, 0.0, ()), UNIT),
    "drifting_game, moves of 0": value(lambda: experts.drifting_game(step, 5, 0.0, (0.0,)), UNIT),
    "drifting_game, moves without a unit": value(
        lambda: experts.drifting_game(step, 5, 0.0, (-1.0, np.sqrt(2))), UNIT
    ),
    "drifting_game, infinite moves": value(
        lambda: experts.drifting_game(step, 5, 0.0, (-np.inf, 1.0)), UNIT
    ),
    "drifting_game, a table too large": value(
        lambda: experts.drifting_game(step, 2000, 0.0, (-1.0, 0.001)),
        "drifting_game: `moves` must have a larger common unit than 0.001",
    ),
    "hedge_quantile of adahedge": kind(
        lambda: olx.certify(
            experts.adahedge(), RUN, None, theorems=(olx.theorems.hedge_quantile(0.1),)
        ),
        "certify: `hedge_quantile` is about an `anytime_hedge` with a fixed step",
    ),
    "hedge_quantile, no trace": kind(
        lambda: olx.certify(
            experts.anytime_hedge(0.1), RUN, None, theorems=(olx.theorems.hedge_quantile(0.1),)
        ),
        "play it with record=olx.record.trace",
    ),
    "committed_draws of sampled": kind(
        lambda: olx.certify(
            experts.sampled(experts.anytime_hedge(0.1), KEY),
            RUN,
            HALF,
            theorems=(olx.theorems.committed_draws(0.1),),
        ),
        "certify: `committed_draws` is about a `committed` learner",
    ),
    "committed_draws, delta 0": value(
        lambda: olx.theorems.committed_draws(0.0), r"committed_draws: `delta` must lie in \(0, 1\]"
    ),
    "sampled_draws, delta 2": value(
        lambda: olx.theorems.sampled_draws(2.0, 10.0),
        r"sampled_draws: `delta` must lie in \(0, 1\]",
    ),
    "sampled_draws, no squares": value(
        lambda: olx.theorems.sampled_draws(0.1, -1.0),
        "sampled_draws: `squares` must be non-negative",
    ),
    "nearby_points of hedge": kind(
        lambda: olx.certify(
            olx.hedge(0.1), RUN, HALF, theorems=(olx.theorems.nearby_points(0.1, 0.0, 1.0),)
        ),
        "certify: `nearby_points` is about a `particles` learner",
    ),
    "equivalence of two_norm": kind(
        lambda: olx.certify(
            experts.two_norm(), RUN, None, theorems=(olx.theorems.equivalence(1.0),)
        ),
        "certify: `equivalence` is about one of `game_from_experts`",
    ),
    "interval_from of two_norm": kind(
        lambda: olx.certify(
            experts.two_norm(), RUN, HALF, theorems=(olx.theorems.interval_from(0),)
        ),
        "certify: `interval` is about an `ada_normal_hedge_tv` or `ada_normal_hedge_streaming`",
    ),
    "interval_from a fraction": kind(
        lambda: olx.theorems.interval_from(0.5),
        "interval_from: `start` must be an integer, got 0.5",
    ),
    "interval_from a negative round": value(
        lambda: olx.theorems.interval_from(-1),
        "interval_from: `start` must be non-negative, got -1",
    ),
    "random_gap, no gap": value(
        lambda: olx.theorems.random_gap(0.0), "random_gap: `gap` must be positive, got 0"
    ),
    "random_gap of another exponent": kind(
        lambda: olx.certify(
            experts.ada_normal_hedge(exponent=0.5),
            RUN,
            HALF,
            theorems=(olx.theorems.random_gap(0.1),),
        ),
        "certify: `random_gap` is about an `ada_normal_hedge` whose exponent is None",
    ),
    "quantile of points": kind(
        lambda: olx.theorems.quantile(olx.ogd(0.1), 0.5),
        "quantile: `inner` must be one of `olx.experts` that see all losses",
    ),
    "quantile of a potential": kind(
        lambda: olx.theorems.quantile(experts.potential_experts(lambda t, s: -s), 0.5),
        "quantile: `inner` must be one of `olx.experts` .* with a theorem about mixtures",
    ),
    "quantile, epsilon 0": value(
        lambda: olx.theorems.quantile(experts.two_norm(), 0.0), r"`epsilon` must lie in \(0, 1\]"
    ),
    "quantile of another learner": kind(
        lambda: olx.certify(
            experts.boa(), RUN, None, theorems=(olx.theorems.quantile(experts.two_norm(), 0.5),)
        ),
        "certify: `quantile` is about `two_norm`, for which it was made",
    ),
    "quantile_regret, epsilon 0": value(
        lambda: hindsight.quantile_regret(jnp.zeros((2, 2)), 0.0),
        r"quantile_regret: `epsilon` must lie in \(0, 1\]",
    ),
}
