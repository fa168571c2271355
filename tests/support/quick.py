"""The quick tests: `pytest -m quick tests` runs them in less than two minutes.

They touch every part of the library. A line names a file of the tests, or a test in it. To add one,
choose what compiles little, and look at the time of the whole.
"""

FILES = """
alignment/test_alignment.py::test_costs
alignment/test_alignment.py::test_bad_recordings_are_refused
boosting/test_boost_scores.py
convex/test_roots.py
engine/test_boundary.py
engine/test_contexts.py
engine/test_drivers.py
engine/test_run.py::test_contexts_and_decisions_may_be_dictionaries
engine/test_run.py::test_it_goes_on_from_a_state
engine/test_run.py::test_it_refuses
engine/test_run.py::test_rounds_are_weighed
engine/test_serving.py
experts/test_linearized.py
hindsight/test_regret.py
lab/test_config.py
lab/test_data.py
losses/test_losses.py::test_a_loss_is_its_formula
losses/test_losses.py::test_a_value_is_the_one_found_by_hand
meta/test_average.py::test_before_the_first_round_the_mean_is_zero
ranking/test_bad_ranking.py
ranking/test_metrics.py
references/test_boosting_references.py
refusals/test_bad_inputs.py
regularizers/test_regularizers.py
schedules/test_schedules.py::test_every_schedule_equals_its_formula
schedules/test_schedules.py::test_refusals_name_the_factory
second_order/test_matrices.py::test_illegal_numbers_are_refused_by_name
streams/test_streams.py::test_a_key_repeats_with_and_without_jit
streams/test_streams.py::test_arrays_lists_and_trees_become_one_kind_of_float
streams/test_streams.py::test_without_noise_the_truth_explains_every_outcome
structured/test_structured_experiments.py
test_cli.py::test_a_refusal_is_one_line_and_status_two
test_cli.py::test_a_run_prints_its_leaderboard_and_says_where_it_is
test_cli.py::test_help_is_there
test_cli.py::test_settings_reach_the_run
test_cli.py::test_theorems_are_certified
test_core.py
test_names.py
test_notebooks.py
test_promises.py::test_three_learning_rates_compile_once
test_safe.py
test_versions.py
test_words.py
tune/test_tune.py::test_it_is_refused_by_name
"""
LEARNERS = (  # rows of the table, one of each family
    "omd euclidean",
    "hedge",
    "ftrl adagrad",
    "implicit",
    "perceptron",
    "PA",
    "coin betting",
    "arow",
    "newton, frequent directions",
    "multiclass perceptron, uniform",
    "label ranking, optimal",
    "structured perceptron",
    "boost, BBM",
    "ada normal hedge",
    "bandit",
    "mix",
)
LINES = (
    *FILES.split(),
    *(f"learners/test_learners.py::test_it_conforms[{name}]" for name in LEARNERS),
)


def lines_of(file: str) -> list[str]:
    """The lines about a file, whose name begins below the folder of the tests."""
    return [line for line in LINES if line.partition("::")[0] == file]


def is_quick(test: str) -> bool:
    """Whether a line names this test, its function, or its file."""
    file, _, rest = test.partition("::")
    function = rest.partition("[")[0]
    return any(line in (file, f"{file}::{function}", test) for line in lines_of(file))
