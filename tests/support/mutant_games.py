"""For each theorem a game in which a mutant breaks it; `python -m benchmarks.mutants --games`."""

from cases_theorems import THEOREMS
from table import TABLE

from olx.testing.mutants import Game

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
        Game("opposite step", "again", 1.0, 0, 1.0): (
            "primal_dual_inequality",
            "sandwich",
            "lipschitz",
            "self_bounded",
            "horizon",
        ),
        Game("ten steps", "again", 1.0, 0, 1.0): ("weak_duality",),
    },
    "AdaBoost.OL, 80 copies": {
        Game("opposite action", "one", 1.0, 0, 1.0): (
            "best_partial_vote",
            "drawn_vote",
            "adaboost_mistakes",
            "weak_adaboost_mistakes",
        ),
        Game("opposite step", "again", 1.0, 0, 1.0): ("partial_votes",),
    },
    "label ranking, root norms": {
        Game("opposite action", "again", 1.0, 0, 1.0): (
            "label_duality",
            "label_regret",
            "label_schedule",
            "label_mistakes",
        ),
    },
    "majority": {
        Game("opposite action", "one", 1.0, 0, 1.0): (
            "each_round",
            "exponential_loss",
            "training_error",
            "master_inequality",
        ),
    },
    "perceptron, margins": {
        Game("opposite action", "one", 1.0, 0, 3.0): (
            "conservative_mistakes",
            "separable_mistakes",
        ),
    },
    "root rounds": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("root_rounds", "hinge_mistakes"),
    },
    "bounded loss": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("own_loss", "bounded_loss"),
    },
    "best rank": {
        Game("opposite step", "again", 1.0, 0, 1.0): ("best_rank_regret", "lost_trace"),
    },
    "md euclidean": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("mirror_descent", "gradient_descent"),
    },
    "PA": {
        Game("opposite action", "one", 1.0, 1, 3.0): ("distance", "mistakes"),
    },
    "aggressive perceptron": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("sum_of_steps", "mistakes"),
    },
    "alma": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("regret_on_corrections", "alma_mistakes"),
    },
    "strongly convex ogd": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("weighted_parabolas", "weighted_regret"),
    },
    "newton, frequent directions": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("newton_regret", "directions_regret"),
    },
    "nh-boost.dt": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("normal_hedge_dt_regret", "margins"),
    },
    "gradient boost": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("span_regret", "span_stages"),
    },
    "gradient boost, hull": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("hull_regret", "hull_stages"),
    },
    "boost, BBM": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("exact_mistakes", "majority_mistakes"),
    },
    "instance ranking": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("instance_regret", "instance_duality"),
    },
    "ada normal hedge": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("ada_normal_hedge_regret", "small_losses"),
    },
    "composite, root": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("root_regret",),
    },
    "leader": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("leader_regret",),
    },
    "surrogate": {
        Game("opposite loss", "again", 0.1, 0, 3.0): ("surrogate_regret",),
    },
    "multiclass perceptron, margins": {
        Game("opposite action", "one", 1.0, 1, 1.0): ("multiclass_perceptron_mistakes",),
    },
    "winnow, words": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("r_of_k_mistakes",),
    },
    "root norms": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("root_norms",),
    },
    "projection": {
        Game("opposite step", "again", 1.0, 0, 1.0): ("projection_terms",),
    },
    "invariant": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("rank_regret",),
    },
    "majority of weak copies": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("majority_mistakes_at",),
    },
    "potential": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("potential_mistakes",),
    },
    "stagewise": {
        Game("opposite step", "one", 1.0, 0, 1.0): ("stagewise_loss",),
    },
    "sampled, draws": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("sampled_draws",),
    },
    "committed, draws": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("committed_draws",),
    },
    "drifting game": {
        Game("constant action", "again", 1.0, 0, 1.0): ("mean_potential",),
    },
    "hedge, quantile": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("hedge_quantile",),
    },
    "ada normal hedge, quantile": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("quantile",),
    },
    "ada normal hedge, gap": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("random_gap",),
    },
    "ada normal hedge tv, interval": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("interval",),
    },
    "ada normal hedge tv, changing": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("changing",),
    },
    "fixed share, path": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("fixed_share_path",),
    },
    "points": {
        Game("constant action", "again", 1.0, 0, 1.0): ("nearby_points",),
    },
    "prunings": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("prunings",),
    },
    "bandit, potential": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("bandit_potential",),
    },
    "potential experts": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("mean_potential",),
    },
    "gibbs": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("expected_regret",),
    },
    "flh": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("interval_regret",),
    },
    "saol": {
        Game("opposite action", "again", 1.0, 2, 1.0): ("interval_regret",),
    },
    "structured, aggressive, fitted": {
        Game("opposite step", "again", 1.0, 0, 3.0): ("structured_aggressive_cost",),
    },
    "optimistic md": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("missed_gradients",),
    },
    "perceptron": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("perceptron_mistakes",),
    },
    "winnow": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("winnow_mistakes",),
    },
    "winnow, self-tuned": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("self_tuned_winnow_mistakes",),
    },
    "self-tuned aggressive": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("self_tuned_aggressive_mistakes",),
    },
    "romma": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("half_spaces",),
    },
    "implicit": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("proximal_steps",),
    },
    "strongly convex MD": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("strongly_convex_regret",),
    },
    "rda": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("composite_regret",),
    },
    "ftrl-proximal": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("strong_ftrl",),
    },
    "p-norm lms": {
        Game("opposite step", "again", 1.0, 0, 1.0): ("filtering",),
    },
    "self-confident": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "scale-invariant p-norm": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("scale_invariant_regret",),
    },
    "scale-invariant adagrad": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("scale_invariant_regret",),
    },
    "coin betting": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("betting_regret",),
    },
    "vaw": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("logarithmic_regret",),
    },
    "ridge": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("least_squares",),
    },
    "second-order perceptron": {
        Game("opposite step", "again", 1.0, 1, 1.0): ("mistakes_made",),
    },
    "arow": {
        Game("opposite step", "again", 0.1, 1, 1.0): ("updates_made",),
    },
    "arow, original": {
        Game("opposite action", "again", 0.1, 1, 1.0): ("mistakes_made",),
    },
    "newton": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("slab_regret",),
    },
    "newton, invariant": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("slab_regret",),
    },
    "gradient boost, linearized": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("linearized_regret",),
    },
    "multiclass arow": {
        Game("opposite step", "again", 1.0, 1, 1.0): ("updates_made",),
    },
    "one vs rest": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("copies_mistakes",),
    },
    "banditron": {
        Game("opposite step", "again", 1.0, 1, 1.0): ("drawn_steps",),
    },
    "label ranking, conservative": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("label_rate",),
    },
    "structured perceptron": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("structured_perceptron_cost",),
    },
    "structured PA": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("structured_cost",),
    },
    "structured, self-tuned, indices": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("self_tuned_structured_cost",),
    },
    "two norm": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("two_norm_regret",),
    },
    "anytime hedge": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "adahedge": {
        Game("opposite action", "one", 1.0, 0, 1.0): ("mixability_gaps",),
    },
    "prod": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "adapt ml prod": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "boa": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "squint": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("second_order",),
    },
    "fixed share": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("one_mixture",),
    },
    "ada normal hedge tv": {
        Game("opposite action", "again", 1.0, 1, 1.0): ("whole_run",),
    },
    "ada normal hedge streaming": {
        Game("opposite action", "one", 1.0, 1, 1.0): ("whole_run",),
    },
    "exp3": {
        Game("opposite loss", "again", 1.0, 0, 1.0): ("estimated_regret",),
    },
    "mix": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("mixture",),
    },
    "mix, algorithms": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("mixture",),
    },
    "repeated game": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("game_duality", "game_regret"),
    },
    "winnow, tuned": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("tuned_winnow_mistakes",),
    },
    "one matrix": {
        Game("opposite action", "again", 1.0, 0, 1.0): ("fixed_matrix_regret",),
    },
    "projection, drift": {
        Game("constant action", "one", 0.1, 0, 1.0): ("projection_drift",),
    },
}
