"""Rows for theorems that no learner of the table carries, or that its streams cannot break.

Their comparators and streams are made so that a mutant breaks each theorem within a few hundred
rounds. `u` of a theorem about comparators that change has a row for every round of a game.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from cases import CLASSES, EXPERTS, KEY, TRUTH, UNIFORM, VERTICES, ZEROS, Case
from cases_boosting import ANSWERS, GRADIENT, LINE, fit
from cases_experts import DRAWN
from cases_multiclass import MULTICLASS
from cases_ranking import REAL, smooth_ranking
from cases_ranking import TRUTH as RELEVANT
from cases_ranking import ZEROS as LABEL_ZEROS
from cases_second_order import KEY as SKETCH_KEY
from cases_second_order import SECOND_ORDER, forecast, sketched
from cases_structured import CHAIN, DENSE
from jax import lax
from jax.tree_util import Partial

import olx
from olx import boosting, classification, convex, experts, losses, mirrors, schedules, second_order
from olx.engine.certify import asked_of
from olx.experts.best_pruning import Path
from olx.structured.chain import ChainWeights
from olx.testing.mutants import LENGTH

EUCLIDEAN = mirrors.euclidean()
SUBGRADIENT = olx.ascents.subgradient()


def about(case: Case, *theorems) -> Case:
    """The row with `theorems` in place of those that its learner carries."""
    asked = asked_of(case.learner, theorems)
    return case._replace(learner=dataclasses.replace(case.learner, theorems=asked))


def margins(learner, *theorems, loss=losses.hinge, comparators=(TRUTH,)) -> Case:
    case = Case(learner, loss, CLASSES, ZEROS, comparators)
    return about(case, *theorems) if theorems else case


def mixtures(learner, *theorems, rounds=DRAWN, comparators=(VERTICES[2],), loss=losses.linear_loss):
    case = Case(learner, loss, rounds, UNIFORM, comparators)
    return about(case, *theorems) if theorems else case


def perceptron_loss(score, label):
    """1 for a mistake, with the slope -y of the Perceptron."""
    margin = label * score
    slope = jnp.where(margin <= 0, lax.stop_gradient(margin) - margin, 0.0)
    return lax.stop_gradient(jnp.where(margin <= 0, 1.0, 0.0)) + slope


def ascent(schedule, loss=losses.hinge):
    return olx.dual_ascent(schedule, EUCLIDEAN, loss, SUBGRADIENT)


def behind(s):
    return jnp.maximum(1.0 - s, 0.0)


def exponential(eta, rounds, arms, t, s):
    """The potential of EXP3."""
    step = (jnp.exp(eta) + jnp.exp(-eta) + arms * jnp.exp(eta) * eta**2) / 2
    return jnp.exp(-eta * s) * step ** (rounds - t)


def square_potential(t, s):
    return jnp.minimum(s, 0.0) ** 2 - t


def ball_square(w, y):
    """In [0, 1] on the unit ball."""
    return jnp.sum((w - y) ** 2) / 4


def box_square(w, y):
    """In [0, 1] on the box [-1, 1]^2."""
    return jnp.sum((w - y) ** 2) / 8


def absolute(action, outcome):
    return jnp.abs(action - outcome)


def always(vertex):
    """A path that stays at one expert."""
    return np.tile(np.asarray(vertex), (LENGTH, 1))


def paths() -> olx.Rounds:
    """A tree with two leaves below each of two edges; the outcome is the advice of edge 0 or 1."""
    ends = np.arange(24) % 4
    edges = np.stack([ends // 2, 2 + ends], axis=1)
    says = np.array([0.2, 0.8, 0.9, 0.7, 0.1, 0.3])
    rows = Path(jnp.asarray(edges), jnp.asarray(says[edges]))
    return olx.Rounds(rows, jnp.asarray(says[edges[:, 0]]))


BOTH = mirrors.quadratic(0.5, convex.l1(0.05))
GRID = jnp.linspace(-1.0, 1.0, 5)
POINTS = jnp.stack(jnp.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
IN_BOX = olx.Rounds(None, jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.0, (24, 2))))
COPIES = olx.md(schedules.decay(2.0, 1.0), mirrors.euclidean(convex.sets.ball(1.0)))
WORDS, FEW = olx.streams.r_of_k(KEY, rounds=24, features=4, r=1, k=2)
FITTED = ChainWeights(
    jnp.asarray(np.random.default_rng(0).normal(size=(3, 2))),
    jnp.zeros((3, 3)),
    jnp.zeros(3),
    jnp.zeros(3),
)

THEOREMS = {
    "composite, root": margins(
        olx.linear(olx.ftrl(0.3, olx.regularizers.composite(convex.l1(0.1), rate=0.3))),
        olx.theorems.root_regret(EUCLIDEAN, convex.l1(0.1).value),
    ),
    "leader": margins(
        olx.linear(olx.ftrl(1.0, olx.regularizers.growing(BOTH, 1.0))),
        olx.theorems.leader_regret(BOTH),
    ),
    "surrogate": margins(
        olx.linear(olx.ogd(1.0)), olx.theorems.surrogate_regret(losses.hinge), loss=perceptron_loss
    ),
    "perceptron, margins": margins(
        classification.perceptron(),
        olx.theorems.conservative_mistakes(1.0),
        olx.theorems.separable_mistakes(1.0),
    ),
    "winnow, positive orthant, one word": margins(
        classification.unnormalized_winnow(0.3), comparators=tuple(VERTICES)
    ),
    "multiclass perceptron, margins": about(
        MULTICLASS["multiclass perceptron"], olx.theorems.multiclass_perceptron_mistakes(1.0)
    ),
    "winnow, words": about(
        Case(classification.winnow(1 / 5), losses.hinge, WORDS, ZEROS, (FEW,)),
        olx.theorems.r_of_k_mistakes(1, 2),
    ),
    "winnow, tuned": about(
        Case(classification.winnow(1 / 5), losses.hinge, WORDS, ZEROS, (FEW,)),
        olx.theorems.tuned_winnow_mistakes(1 / 5),
    ),
    "one matrix": margins(
        olx.linear(olx.omd(0.1, EUCLIDEAN)), olx.theorems.fixed_matrix_regret(1.0)
    ),
    "projection, drift": about(
        forecast(sketched(second_order.random_projection(2, SKETCH_KEY))),
        olx.theorems.projection_drift(0.5, 0.1),
    ),
    "repeated game": margins(
        olx.repeated_game(0.1, EUCLIDEAN, olx.games.signs(), olx.games.worst_hinge())
    ),
    "horizon": margins(ascent(schedules.lipschitz_horizon(240.0, 8.0, 1.0), losses.logistic)),
    "root rounds": margins(ascent(schedules.root_rounds(8.0, 1.0))),
    "root norms": margins(ascent(schedules.root_norms(1.0, convex.norms.l2()))),
    "bounded loss": margins(ascent(schedules.bounded_loss(50.0, 50.0, 1.0), losses.squared)),
    "label ranking, root norms": Case(
        olx.ranking.label_ranking(
            schedules.root_norms(1.0, convex.norms.l2()), EUCLIDEAN, olx.ranking.optimal()
        ),
        smooth_ranking,
        REAL._replace(weight=None),
        LABEL_ZEROS,
        (RELEVANT,),
    ),
    "best rank": about(
        SECOND_ORDER["newton, epochs"],
        olx.theorems.best_rank_regret(),
        olx.theorems.lost_trace(),
    ),
    "projection": about(
        forecast(sketched(second_order.random_projection(40, SKETCH_KEY))),
        olx.theorems.projection_terms(0.65),
    ),
    "invariant": about(SECOND_ORDER["newton, invariant"], olx.theorems.rank_regret),
    "greedy": about(GRADIENT["gradient boost, hull"], olx.theorems.greedy_regret()),
    "majority of weak copies": margins(
        boosting.boost(LINE, 5, boosting.online_bbm(0.1), loss=losses.hinge),
        olx.theorems.majority_mistakes_at(5.0),
    ),
    "AdaBoost.OL, 80 copies": margins(
        boosting.boost(LINE, 80, boosting.adaboost_ol(), loss=losses.hinge),
        *boosting.adaboost_ol().theorems,
        olx.theorems.weak_adaboost_mistakes(0.49, 0.1),
    ),
    "potential": margins(
        boosting.boost(
            LINE,
            5,
            boosting.potential_booster(boosting.exponential_potential(5, 0.1, 0.3)),
            loss=losses.hinge,
        ),
        olx.theorems.potential_mistakes(0.1),
    ),
    "stagewise": about(
        Case(boosting.shrunken_stagewise(0.1), fit, olx.Rounds(None, ANSWERS), ZEROS, (ZEROS,)),
        olx.theorems.stagewise_loss(1.0, 2.0),
    ),
    "sampled, draws": mixtures(
        experts.sampled(olx.hedge(0.3), KEY),
        olx.theorems.sampled_draws(0.1, 1.0 * LENGTH),
        rounds=EXPERTS,
    ),
    "committed, draws": mixtures(
        experts.committed(experts.anytime_hedge(0.3), KEY), olx.theorems.committed_draws(0.1)
    ),
    "from a drifting game": mixtures(
        experts.experts_from_game(experts.drifting_game(behind, LENGTH)),
        olx.theorems.equivalence(1.0),
        comparators=(None,),
    ),
    "drifting game": Case(
        experts.drifting_game(behind, LENGTH),
        losses.linear_loss,
        olx.Rounds(None, 2 * DRAWN.outcome - 1),
        UNIFORM,
        (None,),
    ),
    "hedge, quantile": mixtures(
        experts.anytime_hedge(0.4), olx.theorems.hedge_quantile(0.5), comparators=(None,)
    ),
    "ada normal hedge, quantile": mixtures(
        experts.ada_normal_hedge(),
        olx.theorems.quantile(experts.ada_normal_hedge(), 0.5),
        comparators=(None,),
    ),
    "ada normal hedge, gap": mixtures(experts.ada_normal_hedge(), olx.theorems.random_gap(0.5)),
    "ada normal hedge tv, interval": mixtures(
        experts.ada_normal_hedge_tv(LENGTH), olx.theorems.interval_from(4)
    ),
    "ada normal hedge tv, changing": mixtures(
        experts.ada_normal_hedge_tv(LENGTH),
        olx.theorems.changing,
        comparators=(always(VERTICES[2]),),
    ),
    "fixed share, path": mixtures(
        experts.fixed_share(0.5, 0.1),
        olx.theorems.fixed_share_path,
        comparators=(always(VERTICES[2]),),
    ),
    "points": about(
        Case(
            experts.particles(experts.ada_normal_hedge(), POINTS),
            box_square,
            IN_BOX,
            jnp.ones(len(POINTS)),
            (jnp.array([0.5, 0.5]),),
        ),
        olx.theorems.nearby_points(0.5, -1.0, 1.0),
    ),
    "prunings": Case(
        experts.best_pruning(experts.ada_normal_hedge()),
        absolute,
        paths(),
        jnp.ones(6),
        (jnp.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]),),
    ),
    "bandit, potential": mixtures(
        experts.bandit(
            experts.potential_experts(Partial(exponential, 0.05, float(LENGTH), 4)), KEY
        ),
        loss=experts.expected_loss,
        comparators=(None,),
    ),
    "potential experts": mixtures(experts.potential_experts(square_potential), comparators=(None,)),
    "gibbs": Case(
        experts.gibbs(0.5, POINTS, KEY),
        box_square,
        IN_BOX,
        jnp.full(len(POINTS), 1 / len(POINTS)),
        (jnp.asarray(np.eye(len(POINTS))[18]),),
    ),
    "ader, path": about(
        Case(
            olx.meta.ader(convex.sets.ball(1.0), 2.0, LENGTH),
            ball_square,
            IN_BOX,
            jnp.zeros(2),
            (np.full((LENGTH, 2), 0.6),),
        ),
        olx.theorems.path_regret,
    ),
    "sword, path": about(
        Case(
            olx.meta.sword(convex.sets.ball(1.0), 2.0, LENGTH, 2.0),
            ball_square,
            IN_BOX,
            jnp.zeros(2),
            (np.full((LENGTH, 2), 0.6),),
        ),
        olx.theorems.path_variation_regret,
    ),
    "flh": Case(
        olx.meta.flh(COPIES, 0.5, 7), ball_square, IN_BOX, jnp.zeros(2), tuple(np.eye(14)[::3])
    ),
    "cbce": Case(
        olx.meta.cbce(COPIES, 7), ball_square, IN_BOX, jnp.zeros(2), tuple(np.eye(7)[::3])
    ),
    "saol": Case(
        olx.meta.saol(COPIES, 7), ball_square, IN_BOX, jnp.zeros(2), tuple(np.eye(7)[::3])
    ),
    "structured, aggressive, fitted": Case(
        olx.structured.structured_aggressive(CHAIN, 0.1, steps=3),
        olx.structured.crf(CHAIN),
        DENSE,
        CHAIN.zeros(),
        (FITTED,),
    ),
}
