"""For each theorem a game in which a mutant breaks it; `python -m benchmarks.mutants --games`."""

from cases_theorems import THEOREMS
from table import TABLE

from olx.testing.mutants import Mutant

MUTANT_CASES = {name: case for name, case in TABLE.items() if case.learner.theorems} | THEOREMS

UNBROKEN = {  # theorems that no mutant breaks, with the reason
    "by_width": "the width is that of the regrets that were made, and Jensen's inequality is about "
    "all regrets",
    "equivalence": "an identity of two games, for every play: the regrets of one are the positions "
    "of the other",
    "greedy_regret": "convexity relates two losses of the same votes, whatever the copies vote",
}

GAMES = {
    "horizon": {
        Mutant("opposite step", "again", 1.0, 0, 1.0): (
            "primal_dual_inequality",
            "sandwich",
            "lipschitz",
            "self_bounded",
            "horizon",
        ),
        Mutant("ten steps", "again", 1.0, 0, 1.0): ("weak_duality",),
    },
    "AdaBoost.OL, 80 copies": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): (
            "best_partial_vote",
            "drawn_vote",
            "adaboost_mistakes",
            "weak_adaboost_mistakes",
        ),
        Mutant("opposite step", "again", 1.0, 0, 1.0): ("partial_votes",),
    },
    "label ranking, root norms": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): (
            "label_duality",
            "label_regret",
            "label_schedule",
            "label_mistakes",
        ),
    },
    "majority": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): (
            "each_round",
            "exponential_loss",
            "training_error",
            "master_inequality",
        ),
    },
    "perceptron, margins": {
        Mutant("opposite action", "one", 1.0, 0, 3.0): (
            "conservative_mistakes",
            "separable_mistakes",
        ),
    },
    "root rounds": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("root_rounds", "hinge_mistakes"),
    },
    "bounded loss": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("own_loss", "bounded_loss"),
    },
    "best rank": {
        Mutant("opposite step", "again", 1.0, 0, 1.0): ("best_rank_regret",),
        Mutant("opposite step", "two", 1.0, 0, 1.0): ("lost_trace",),
    },
    "md euclidean": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("mirror_descent", "gradient_descent"),
    },
    "PA": {
        Mutant("opposite action", "one", 1.0, 1, 3.0): ("distance", "mistakes"),
    },
    "aggressive perceptron": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("sum_of_steps", "mistakes"),
    },
    "alma": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): (
            "regret_on_corrections",
            "alma_mistakes",
        ),
    },
    "strongly convex ogd": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): (
            "weighted_parabolas",
            "weighted_regret",
        ),
    },
    "newton, frequent directions": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("newton_regret", "directions_regret"),
    },
    "nh-boost.dt": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("normal_hedge_dt_regret", "margins"),
    },
    "gradient boost": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("span_regret", "span_stages"),
    },
    "gradient boost, hull": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("hull_regret", "hull_stages"),
    },
    "boost, BBM": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): (
            "exact_mistakes",
            "majority_mistakes",
        ),
    },
    "instance ranking": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): (
            "instance_regret",
            "instance_duality",
        ),
    },
    "ada normal hedge": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): (
            "ada_normal_hedge_regret",
            "small_losses",
        ),
    },
    "composite, root": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("root_regret",),
    },
    "leader": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("leader_regret",),
    },
    "surrogate": {
        Mutant("opposite loss", "again", 0.1, 0, 3.0): ("surrogate_regret",),
    },
    "multiclass perceptron, margins": {
        Mutant("opposite action", "one", 1.0, 1, 1.0): ("multiclass_perceptron_mistakes",),
    },
    "winnow, words": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("r_of_k_mistakes",),
    },
    "root norms": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("root_norms",),
    },
    "projection": {
        Mutant("opposite step", "again", 1.0, 0, 1.0): ("projection_terms",),
    },
    "invariant": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("rank_regret",),
    },
    "majority of weak copies": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("majority_mistakes_at",),
    },
    "potential": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("potential_mistakes",),
    },
    "stagewise": {
        Mutant("opposite step", "one", 1.0, 0, 1.0): ("stagewise_loss",),
    },
    "sampled, draws": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("sampled_draws",),
    },
    "committed, draws": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("committed_draws",),
    },
    "drifting game": {
        Mutant("constant action", "again", 1.0, 0, 1.0): ("mean_potential",),
    },
    "hedge, quantile": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("hedge_quantile",),
    },
    "ada normal hedge, quantile": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("quantile",),
    },
    "ada normal hedge, gap": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("random_gap",),
    },
    "ada normal hedge tv, interval": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("interval",),
    },
    "ada normal hedge tv, changing": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("changing",),
    },
    "fixed share, path": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("fixed_share_path",),
    },
    "points": {
        Mutant("constant action", "again", 1.0, 0, 1.0): ("nearby_points",),
    },
    "prunings": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("prunings",),
    },
    "bandit, potential": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("bandit_potential",),
    },
    "potential experts": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("mean_potential",),
    },
    "gibbs": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("expected_regret",),
    },
    "flh": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("interval_regret",),
    },
    "cbce": {
        Mutant("opposite action", "again", 1.0, 2, 1.0): ("interval_regret",),
    },
    "saol": {
        Mutant("opposite action", "again", 1.0, 2, 1.0): ("interval_regret",),
    },
    "structured, aggressive, fitted": {
        Mutant("opposite step", "again", 1.0, 0, 3.0): ("structured_aggressive_cost",),
    },
    "optimistic md": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("missed_gradients",),
    },
    "perceptron": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("perceptron_mistakes",),
    },
    "winnow": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("winnow_mistakes",),
    },
    "winnow, self-tuned": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("self_tuned_winnow_mistakes",),
    },
    "self-tuned aggressive": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("self_tuned_aggressive_mistakes",),
    },
    "romma": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("half_spaces",),
    },
    "implicit": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("proximal_steps",),
    },
    "strongly convex MD": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("strongly_convex_regret",),
    },
    "rda": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("composite_regret",),
    },
    "ftrl-proximal": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("strong_ftrl",),
    },
    "p-norm lms": {
        Mutant("opposite step", "again", 1.0, 0, 1.0): ("filtering",),
    },
    "self-confident": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "scale-invariant p-norm": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("scale_invariant_regret",),
    },
    "scale-invariant adagrad": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("scale_invariant_regret",),
    },
    "coin betting": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "freegrad": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "pistol": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "erfi betting": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "ons betting": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "scale free": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("telescoped_regret",),
    },
    "scale free descent": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("bounded_divergence_regret",),
    },
    "sum of learners": {
        Mutant("opposite loss", "again", 1.0, 1, 1.0): ("sum_regret",),
    },
    "direction and magnitude": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("product_regret",),
    },
    "constrained": {
        Mutant("opposite loss", "again", 1.0, 1, 1.0): ("constrained_regret",),
    },
    "anytime": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("anytime_regret",),
    },
    "schedule free": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("schedule_free_regret",),
    },
    "mechanic": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("tuned_scale_regret",),
    },
    "online to nonconvex": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("descent_by_steps",),
    },
    "ader, path": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("path_regret",),
    },
    "sword, path": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("path_variation_regret",),
    },
    "vaw": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("logarithmic_regret",),
    },
    "ridge": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("least_squares",),
    },
    "newton, implicit": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("newton_steps",),
    },
    "second-order perceptron": {
        Mutant("opposite step", "again", 1.0, 1, 1.0): ("mistakes_made",),
    },
    "arow": {
        Mutant("opposite step", "again", 0.1, 1, 1.0): ("updates_made",),
    },
    "arow, original": {
        Mutant("opposite action", "again", 0.1, 1, 1.0): ("mistakes_made",),
    },
    "newton": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("slab_regret",),
    },
    "newton, invariant": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("slab_regret",),
    },
    "gradient boost, linearized": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("linearized_regret",),
    },
    "multiclass arow": {
        Mutant("opposite step", "again", 1.0, 1, 1.0): ("updates_made",),
    },
    "one vs rest": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("copies_mistakes",),
    },
    "banditron": {
        Mutant("opposite step", "again", 1.0, 1, 1.0): ("drawn_steps",),
    },
    "label ranking, conservative": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("label_rate",),
    },
    "structured perceptron": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("structured_perceptron_cost",),
    },
    "structured PA": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("structured_cost",),
    },
    "structured, self-tuned, indices": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("self_tuned_structured_cost",),
    },
    "two norm": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("two_norm_regret",),
    },
    "anytime hedge": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "adahedge": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "prod": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "adapt ml prod": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "boa": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "squint": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "ml poly": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("second_order",),
    },
    "any range": {
        Mutant("opposite action", "one", 1.0, 0, 1.0): ("any_range",),
    },
    "delayed": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("mirror_descent", "gradient_descent"),
    },
    "delayed, hedge": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("master_inequality",),
    },
    "arow, diagonal, original": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("squared_hinges",),
    },
    "fixed share": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("one_mixture",),
    },
    "ada normal hedge tv": {
        Mutant("opposite action", "again", 1.0, 1, 1.0): ("whole_run",),
    },
    "ada normal hedge streaming": {
        Mutant("opposite action", "one", 1.0, 1, 1.0): ("whole_run",),
    },
    "exp3": {
        Mutant("opposite loss", "again", 1.0, 0, 1.0): ("estimated_regret",),
    },
    "mix": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("mixture",),
    },
    "mix, algorithms": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("mixture",),
    },
    "repeated game": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("game_duality", "game_regret"),
    },
    "winnow, tuned": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("tuned_winnow_mistakes",),
    },
    "one matrix": {
        Mutant("opposite action", "again", 1.0, 0, 1.0): ("fixed_matrix_regret",),
    },
    "projection, drift": {
        Mutant("constant action", "one", 0.1, 0, 1.0): ("projection_drift",),
    },
}
