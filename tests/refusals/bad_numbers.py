"""Hyperparameters that no factory may accept: of the wrong sign, not finite, no number, several."""

import jax
import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad

import olx
from olx import (
    convex,
    experts,
    losses,
    meta,
    mirrors,
    regularizers,
    schedules,
    second_order,
    streams,
)

KEY = jax.random.key(0)
FLAT = mirrors.euclidean()
RULE = second_order.vaw(1.0).hparams.rule

POSITIVE = {  # by owner and argument, a factory of one number that must be positive
    ("ogd", "eta"): olx.ogd,
    ("md", "eta"): lambda v: olx.md(v, FLAT),
    ("omd", "eta"): lambda v: olx.omd(v, FLAT),
    ("hedge", "eta"): olx.hedge,
    ("ftrl", "eta"): lambda v: olx.ftrl(v, FLAT),
    ("optimistic", "eta"): lambda v: olx.optimistic(v, FLAT),
    ("optimistic_md", "eta"): lambda v: olx.optimistic_md(v, FLAT),
    ("adagrad", "eta"): olx.first_order.adagrad,
    ("adagrad", "delta"): lambda v: olx.first_order.adagrad(0.1, delta=v),
    ("rda", "eta"): lambda v: olx.first_order.rda(v, convex.l1(1.0)),
    ("implicit", "eta"): lambda v: olx.implicit(v, losses.squared),
    ("cocob", "alpha"): olx.first_order.cocob,
    ("coin_betting", "lipschitz"): olx.first_order.coin_betting,
    ("coin_betting", "wealth"): lambda v: olx.first_order.coin_betting(1.0, v),
    ("coordinate_betting", "lipschitz"): olx.first_order.coordinate_betting,
    ("coordinate_betting", "wealth"): lambda v: olx.first_order.coordinate_betting(1.0, v),
    ("freegrad", "wealth"): olx.first_order.freegrad,
    ("pistol", "wealth"): olx.first_order.pistol,
    ("pistol", "spread"): lambda v: olx.first_order.pistol(0.5, v),
    ("erfi_betting", "wealth"): olx.first_order.erfi_betting,
    ("ons_betting", "wealth"): olx.first_order.ons_betting,
    ("normalized_betting", "wealth"): olx.first_order.normalized_betting,
    ("ader", "diameter"): lambda v: olx.meta.ader(convex.sets.ball(1.0), v, 9),
    ("ader", "lipschitz"): lambda v: olx.meta.ader(convex.sets.ball(1.0), 2.0, 9, v),
    ("sword", "diameter"): lambda v: olx.meta.sword(convex.sets.ball(1.0), v, 9, 1.0),
    ("sword", "smooth"): lambda v: olx.meta.sword(convex.sets.ball(1.0), 2.0, 9, v),
    ("sword", "lipschitz"): lambda v: olx.meta.sword(convex.sets.ball(1.0), 2.0, 9, 1.0, v),
    ("strongly_convex_md", "sigma"): olx.first_order.strongly_convex_md,
    ("strongly_convex_ogd", "sigma"): olx.first_order.strongly_convex_ogd,
    ("ftrl_proximal", "eta"): olx.first_order.ftrl_proximal,
    ("exponentiated_gradient", "eta"): olx.first_order.exponentiated_gradient,
    ("multiclass.exponentiated_gradient", "eta"): olx.multiclass.exponentiated_gradient,
    ("exponentiated_gradient", "total"): lambda v: olx.first_order.exponentiated_gradient(0.1, v),
    ("signed_exponentiated_gradient", "eta"): olx.first_order.signed_exponentiated_gradient,
    ("signed_exponentiated_gradient", "total"): lambda v: (
        olx.first_order.signed_exponentiated_gradient(0.1, v)
    ),
    ("balanced_winnow", "total"): lambda v: olx.classification.balanced_winnow(0.1, v),
    ("passive_aggressive_1", "aggressiveness"): olx.classification.passive_aggressive_1,
    ("passive_aggressive_2", "aggressiveness"): olx.classification.passive_aggressive_2,
    ("scale_invariant_adagrad", "eta"): olx.first_order.scale_invariant_adagrad,
    ("normalized_adagrad", "eta"): olx.first_order.normalized_adagrad,
    ("normalized_adagrad", "curvature"): lambda v: olx.first_order.normalized_adagrad(0.5, v),
    ("self_confident", "start"): lambda v: olx.first_order.self_confident(
        mirrors.negative_entropy(), 1.0, v
    ),
    ("alma", "step"): lambda v: olx.classification.alma(0.5, step=v),
    ("dual_ascent", "eta"): lambda v: olx.dual_ascent(
        v, FLAT, losses.hinge, olx.ascents.conservative()
    ),
    ("fixed_share", "eta"): lambda v: experts.fixed_share(v, 0.1),
    ("anytime_hedge", "eta"): experts.anytime_hedge,
    ("gibbs", "eta"): lambda v: experts.gibbs(v, jnp.zeros(3), KEY),
    ("average", "weights"): lambda v: meta.average(olx.ogd(0.1), v),
    ("cbce", "span"): lambda v: meta.cbce(olx.ogd(0.1), 3, v),
    ("saol", "span"): lambda v: meta.saol(olx.ogd(0.1), 3, v),
    ("flh", "eta"): lambda v: meta.flh(olx.ogd(0.1), v, 3),
    ("margin_hinge", "margin"): losses.margin_hinge,
    ("negative_entropy", "scale"): mirrors.negative_entropy,
    ("unnormalized_entropy", "scale"): mirrors.unnormalized_entropy,
    ("binary_entropy", "scale"): mirrors.binary_entropy,
    ("floored_entropy", "scale"): lambda v: mirrors.floored_entropy(0.1, v),
    ("signed_entropy", "total"): mirrors.signed_entropy,
    ("hypentropy", "beta"): mirrors.hypentropy,
    ("log_barrier", "scale"): mirrors.log_barrier,
    ("log_barrier_simplex", "scale"): mirrors.log_barrier_simplex,
    ("tsallis", "scale"): lambda v: mirrors.tsallis(0.5, v),
    ("ball", "radius"): convex.sets.ball,
    ("simplex", "total"): convex.sets.simplex,
    ("l1_ball", "radius"): convex.sets.l1_ball,
    ("von_neumann", "scale"): mirrors.von_neumann,
    ("log_det", "scale"): mirrors.log_det,
    ("scale", "factor"): lambda v: mirrors.scale(FLAT, v),
    ("decay", "eta"): schedules.decay,
    ("root_rounds", "energy"): lambda v: schedules.root_rounds(v, 1.0),
    ("root_norms", "complexity"): lambda v: schedules.root_norms(v, convex.norms.l2()),
    ("own_loss", "start"): lambda v: schedules.own_loss(v, 1.0),
    ("mistakes", "complexity"): lambda v: schedules.mistakes(v, convex.norms.l2()),
    ("scale_invariant_adagrad", "lipschitz"): regularizers.scale_invariant_adagrad,
    ("adagrad_full", "eta"): second_order.adagrad_full,
    ("adagrad_full", "delta"): lambda v: second_order.adagrad_full(0.1, v),
    ("arow", "r"): second_order.arow,
    ("arow_original", "r"): second_order.arow_original,
    ("diagonal_arow", "r"): second_order.diagonal_arow,
    ("diagonal_arow_original", "r"): second_order.diagonal_arow_original,
    ("soft_confidence_weighted", "aggressiveness"): lambda v: second_order.soft_confidence_weighted(
        0.9, v
    ),
    ("second_order_perceptron", "a"): second_order.second_order_perceptron,
    ("ridge", "a"): second_order.ridge,
    ("vaw", "a"): second_order.vaw,
    ("implicit_newton", "a"): lambda v: second_order.implicit_newton(losses.squared, v),
    ("rank_one", "prior"): lambda v: second_order.rank_one(RULE, v),
    ("newton", "alpha"): lambda v: second_order.newton(v, 1.0, curvature=1.0),
    ("newton", "bound"): lambda v: second_order.newton(1.0, v, curvature=1.0),
    ("newton", "curvature"): lambda v: second_order.newton(1.0, 1.0, curvature=v),
    ("newton", "lipschitz"): lambda v: second_order.newton(1.0, 1.0, lipschitz=v),
    ("invariant_newton", "bound"): lambda v: second_order.invariant_newton(v, curvature=1.0),
    ("invariant_newton", "curvature"): lambda v: second_order.invariant_newton(1.0, curvature=v),
    ("invariant_newton", "lipschitz"): lambda v: second_order.invariant_newton(1.0, lipschitz=v),
    ("sketched_newton", "alpha"): lambda v: second_order.sketched_newton(None, v),
    ("sketched_newton", "bound"): lambda v: second_order.sketched_newton(None, 1.0, v),
    ("sketched_newton", "curvature"): lambda v: second_order.sketched_newton(
        None, 1.0, curvature=v
    ),
    ("sketched_newton", "lipschitz"): lambda v: second_order.sketched_newton(
        None, 1.0, 1.0, lipschitz=v
    ),
    ("oja", "rate"): lambda v: second_order.oja(2, v, key=KEY),
    ("adaptive_oja", "rate"): lambda v: second_order.adaptive_oja(2, v, key=KEY),
    ("projection_drift", "rate"): lambda v: olx.theorems.projection_drift(0.1, v),
    ("fixed_matrix_regret", "size"): olx.theorems.fixed_matrix_regret,
    ("best_matrix", "size"): lambda v: second_order.best_matrix(np.eye(2), v),
    ("tuned_winnow_mistakes", "margin"): olx.theorems.tuned_winnow_mistakes,
    ("repeated_game", "eta"): lambda v: olx.repeated_game(v, FLAT, olx.games.rows()),
    ("signs", "margin"): olx.games.signs,
    ("labels", "margin"): olx.games.labels,
    ("diagonal_adaptation", "start"): lambda v: second_order.diagonal_adaptation(
        second_order.vaw(1.0), v
    ),
}
NON_NEGATIVE = {
    ("ftrl_proximal", "beta"): lambda v: olx.first_order.ftrl_proximal(beta=v),
    ("ftrl_proximal", "l1"): lambda v: olx.first_order.ftrl_proximal(l1=v),
    ("ftrl_proximal", "l2"): lambda v: olx.first_order.ftrl_proximal(l2=v),
    ("epsilon_insensitive", "epsilon"): losses.epsilon_insensitive,
    ("linf", "strength"): convex.linf,
    ("group_l2", "strength"): convex.group_l2,
    ("decay", "power"): lambda v: schedules.decay(0.1, v),
    ("linear_regression", "noise"): lambda v: streams.linear_regression(KEY, 5, 2, noise=v),
}
IN_A_RANGE = {  # 2 and -1 lie outside
    ("prod", "eta"): experts.prod,
    ("exp3", "eta"): lambda v: experts.exp3(v, KEY),
    ("fixed_share", "alpha"): lambda v: experts.fixed_share(0.1, v),
    ("ada_normal_hedge", "exponent"): lambda v: experts.ada_normal_hedge(exponent=v),
    ("alma", "alpha"): olx.classification.alma,
    ("romma", "threshold"): olx.classification.romma,
    ("floored_entropy", "floor"): mirrors.floored_entropy,
    ("drifting_game", "beta"): lambda v: experts.drifting_game(jnp.exp, 3, v),
    ("confidence_weighted", "confidence"): second_order.confidence_weighted,
    ("soft_confidence_weighted", "confidence"): second_order.soft_confidence_weighted,
    ("ridge", "forget"): lambda v: second_order.ridge(1.0, v),
    ("projection_terms", "epsilon"): olx.theorems.projection_terms,
    ("projection_drift", "delta"): lambda v: olx.theorems.projection_drift(v, 1.0),
}
COUNTS = {
    ("play", "rounds"): lambda v: olx.play(
        olx.linear(olx.ogd(0.1)), streams.contradicting(losses.hinge), np.zeros(1), v
    ),
    ("every", "rounds"): olx.keep.every,
    ("log_spaced", "per_decade"): olx.keep.log_spaced,
    ("checkpoint", "every"): lambda v: olx.checkpoint("folder", v),
    ("squint", "rates"): lambda v: experts.squint(rates=v),
    ("ada_normal_hedge_tv", "rounds"): experts.ada_normal_hedge_tv,
    ("ada_normal_hedge_streaming", "rounds"): experts.ada_normal_hedge_streaming,
    ("drifting_game", "rounds"): lambda v: experts.drifting_game(jnp.exp, v),
    ("cbce", "levels"): lambda v: meta.cbce(olx.ogd(0.1), v),
    ("saol", "levels"): lambda v: meta.saol(olx.ogd(0.1), v),
    ("restarts", "length"): lambda v: meta.restarts(olx.ogd(0.1), v, 2, KEY),
    ("restarts", "blocks"): lambda v: meta.restarts(olx.ogd(0.1), 2, v, KEY),
    ("oja", "size"): lambda v: second_order.oja(v, key=KEY),
    ("adaptive_oja", "size"): lambda v: second_order.adaptive_oja(v, key=KEY),
    ("random_projection", "size"): lambda v: second_order.random_projection(v, KEY),
    ("projected_ascent", "steps"): olx.games.projected_ascent,
    ("averaged_steps", "steps"): olx.games.averaged_steps,
    ("frequent_directions", "size"): second_order.frequent_directions,
    ("epoch_frequent_directions", "size"): second_order.epoch_frequent_directions,
}
NO_NUMBER = {"text": "0.1", "a truth value": True, "two numbers": np.array([0.1, 0.2])}


def rows(factories, values, error) -> dict[str, Bad]:
    return {
        f"{owner} with {argument} {word}": Bad(
            lambda make=make, value=value: make(value), error, f"{owner}: `{argument}`"
        )
        for (owner, argument), make in factories.items()
        for word, value in values.items()
    }


BAD = {
    **rows({("l1", "strength"): convex.l1}, {"-1": -1.0, "NaN": np.nan}, ValueError),
    **rows({("l1", "strength"): convex.l1}, {"text": "0.1", "a truth value": True}, TypeError),
    **rows(POSITIVE, {"-1": -1.0, "0": 0.0, "NaN": np.nan, "infinite": np.inf}, ValueError),
    **rows(POSITIVE, NO_NUMBER, TypeError),
    **rows(NON_NEGATIVE, {"-1": -1.0, "NaN": np.nan}, ValueError),
    **rows(NON_NEGATIVE, NO_NUMBER, TypeError),
    **rows(IN_A_RANGE, {"-1": -1.0, "2": 2.0, "NaN": np.nan}, ValueError),
    **rows(IN_A_RANGE, NO_NUMBER, TypeError),
    **rows(COUNTS, {"0": 0, "-1": -1, "1.5": 1.5, "text": "3", "true": True}, ValueError),
}
