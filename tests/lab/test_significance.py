"""Whether a difference is real, and tables that say so: numbers by hand, or of Demsar's paper."""

import csv
import io
import itertools
import json
import math

import fake_result
import numpy as np
import pyarrow as pa
import pytest

import olx
import olx.lab
from olx._refusal import RefusedValue
from olx.cli import main
from olx.lab import store
from olx.lab.report import comparisons, paper, rank_diagram, significance
from olx.lab.report.scores import plus_minus, scores, winners

# AUC of C4.5 without and with two parameters tuned (m, cf, both) on 14 data sets; Demsar, JMLR 7,
# 2006, table 6, written from memory and not compared with the print. It rounds two values of
# "voting" to 0.975 and ranks them 2 and 3.
AUC = """
    0.763 0.768 0.771 0.798   0.599 0.591 0.590 0.569   0.954 0.971 0.968 0.967
    0.628 0.661 0.654 0.657   0.882 0.888 0.886 0.898   0.936 0.931 0.916 0.931
    0.661 0.668 0.609 0.685   0.583 0.583 0.563 0.625   0.775 0.838 0.866 0.875
    1.000 1.000 1.000 1.000   0.940 0.962 0.965 0.962   0.619 0.666 0.614 0.669
    0.972 0.981 0.975 0.9749  0.957 0.978 0.946 0.970
"""
LOSSES = 1 - np.array(AUC.split(), float).reshape(14, 4)


def test_ranks_and_the_critical_difference_are_those_of_the_paper():
    ranks = significance.mean_ranks(LOSSES)
    np.testing.assert_allclose(ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert significance.critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert significance.critical_difference(4, 14, level=0.1) == pytest.approx(1.12, abs=5e-3)
    # chi squared is 9.28; shared ranks divide it by 1 - (3 * 6 + 60) / (14 * 60), and with
    # three degrees of freedom P(chi squared > x) = erfc(sqrt(x / 2)) + sqrt(2 x / pi) exp(-x / 2)
    sums = 12 * 14 / 20 * (np.sum(ranks**2) - 25)
    assert sums == pytest.approx(9.28, abs=0.01)
    x = sums / (1 - 78 / 840)
    by_hand = math.erfc(math.sqrt(x / 2)) + math.sqrt(2 * x / math.pi) * math.exp(-x / 2)
    assert significance.friedman(LOSSES) == pytest.approx(by_hand)


def test_signed_ranks_are_those_of_the_paper():
    """R+ = 93 and R- = 12 on 14 data sets; 21 or less is significant at 5%."""
    found = significance.wilcoxon(LOSSES[:, 0] - LOSSES[:, 1])
    mean, spread = 14 * 15 / 4, np.sqrt(14 * 15 * 29 / 24)
    z = (12 - mean) / spread
    assert z == pytest.approx(-2.54, abs=0.01)
    assert found == pytest.approx(0.011, abs=1e-3)


@pytest.mark.parametrize(
    "differences",
    [[1, 2, 3, 4, 5, 6], [0.1, -0.2, 0.3, 0.3, 0.5, 0.6, -0.1], [0, 0, 1, 2, np.inf, np.inf, -3]],
)
def test_few_signed_ranks_are_counted(differences):
    """The share of all signs for which the sum is as far from its middle."""
    ranks = {value: np.mean([i + 1 for i, one in enumerate(sorted(map(abs, differences)))
                             if one == abs(value)]) for value in differences}  # fmt: skip
    own = np.array([ranks[value] for value in differences if value != 0])
    seen = abs(sum(ranks[value] * np.sign(value) for value in differences))
    every = [abs(own @ signs) for signs in itertools.product([-1, 1], repeat=own.size)]
    expected = np.mean(np.array(every) >= seen - 1e-9)
    assert significance.wilcoxon(differences) == pytest.approx(expected)


def test_what_no_test_can_say_is_refused_in_words():
    with pytest.raises(RefusedValue, match=r"5 pairs: too few. The least possible p is 0.062"):
        significance.wilcoxon([1, 2, 3, 4, 5])
    with pytest.raises(RefusedValue, match="2 data sets: too few to rank 12 learners"):
        significance.friedman(np.ones((2, 12)))
    with pytest.raises(RefusedValue, match="3 learners or more, got 2"):
        significance.critical_difference(2, 30)
    with pytest.raises(RefusedValue, match="2 seeds: too few for a test"):
        significance.paired_t([1.0, 2.0])
    with pytest.raises(RefusedValue, match="diverged"):
        significance.paired_t([1.0, 2.0, np.inf])


def test_seeds_are_compared_by_their_differences():
    """Differences 1, 2, 3: t = 2 / (1 / sqrt 3) with two degrees of freedom."""
    t = 2 * np.sqrt(3)
    by_hand = 1 - t / np.sqrt(2 + t**2)  # the tails of the law of Student with two degrees
    assert significance.paired_t([1.0, 2.0, 3.0]) == pytest.approx(by_hand)
    assert significance.paired_t([1e200, 2e200, 3e200]) == pytest.approx(by_hand)
    assert significance.paired_t([0.0] * 3) == 1
    assert significance.paired_t([0.5] * 3) == 0


def test_bars_join_what_is_within_the_critical_difference():
    assert significance.groups(np.array([1.0, 3.0, 5.0]), 1.0) == []
    assert significance.groups(np.array([1.0, 1.5, 1.8, 3.0]), 1.0) == [(0, 2)]
    assert significance.groups(np.array([1.0, 2.0, 2.5, 3.4]), 1.5) == [(0, 2), (1, 3)]


LOSS = {  # by learner: on each data set, the mean losses of three seeds
    "a_b": [[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]],
    "c & 50%": [[1.001, 1.102, 1.201], [2.0, 2.2, 2.2]],
    "[d]": [[3.0, 3.3, 3.2], [np.nan, 4.0, 4.0]],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A small result with the losses above."""
    place = fake_result.make(tmp_path_factory.mktemp("lab") / "result")
    rows = [
        {"dataset": dataset, "learner": learner, "configuration": 0, "seed": seed, "rounds": 10}
        | {"hyperparameters": "{}", "loss": loss, "total": 10 * loss, "diverged": loss != loss}
        | {"error": loss / 10}
        for learner, table in LOSS.items()
        for dataset, losses in zip(["x^2", "y|z"], table, strict=True)
        for seed, loss in enumerate(losses)
    ]
    return store.read(place)._replace(configurations=pa.Table.from_pylist(rows))


def test_the_best_is_bold_and_what_is_alike_is_underlined(result):
    table = paper.paper_table(result)
    assert (table.rows, table.columns) == (["a_b", "c & 50%", "[d]"], ["x^2", "y|z"])
    marks = [[(cell.best, cell.alike) for cell in row] for row in table.cells]
    # x^2: differences 0.001, 0.002, 0.001 have t = 4 and p = 0.057, times 1; 2, 2.2, 2 is far.
    # y|z: 0, 0.1, 0 has t = 1 and p = 0.42
    best, alike, neither = (True, False), (False, True), (False, False)
    assert marks == [[best, best], [alike, alike], [neither, neither]]
    assert "paired t-test over seeds" in table.caption
    assert [round(cell.mean, 6) for cell in table.cells[0]] == [1.1, 2.1]
    assert table.cells[0][0].error == pytest.approx(0.1 / np.sqrt(3))


def test_it_is_written_in_latex(result):
    text = paper.text_of(paper.paper_table(result), "latex")
    lines = [line.strip() for line in text.splitlines()]
    assert r"learner & x\textasciicircum{}2 & y\textbar{}z \\" in lines
    assert r"a\_b & $\mathbf{1.100} {\scriptstyle\pm 0.058}$ & $\mathbf{2.100} " in text
    assert r"c \& 50\% & $\underline{1.101} {\scriptstyle\pm 0.058}$ & $\underline{2.133} " in text
    assert r"{[}d{]} & $3.167 {\scriptstyle\pm 0.088}$ & diverged \\" in lines
    assert text.count("{") == text.count("}")
    assert r"\label{tab:result}" in lines  # the name of its folder
    odd = paper.latex(paper.paper_table(result)._replace(name="my (2nd) result!"))
    assert r"\label{tab:my-2nd-result}" in odd
    assert r"\label{tab:results}" in paper.latex(paper.paper_table(result)._replace(name="日本"))
    for rule in ("toprule", "midrule", "bottomrule"):
        assert f"\\{rule}" in lines
    hostile = '\\end{table} $x^2$ # ~ " \x1b --'
    escaped = paper.latex_text(hostile)
    assert escaped == (
        r"\textbackslash{}end\{table\} \$x\textasciicircum{}2\$ \# \textasciitilde{} \string"
        r'" \textbackslash{}x1b {-}{-}'
    )


def test_it_is_written_in_markdown_and_csv(result):
    text = paper.text_of(paper.paper_table(result, "learners", "error"), "markdown")
    first, rule, row, *_ = text.splitlines()
    assert first == r"| data set | a\_b | c \& 50% | \[d\] |"
    assert rule == "|---|---:|---:|---:|"
    assert row == "| x^2 | **0.1100** ± 0.0058 | <ins>0.1101</ins> ± 0.0058 | 0.3167 ± 0.0088 |"
    assert r"y\|z" in text
    rows = list(csv.reader(io.StringIO(paper.text_of(paper.paper_table(result), "csv"))))
    assert rows[0][:3] == ["learner", "x^2", "x^2, standard error"]
    assert [row[0] for row in rows[1:]] == list(LOSS)
    assert float(rows[1][1]) == pytest.approx(1.1)
    assert rows[3][3:] == ["inf", ""]
    frame = result.table()
    assert frame.column_names == rows[0]
    assert frame.column("x^2").to_pylist() == [float(row[1]) for row in rows[1:]]
    with pytest.raises(RefusedValue, match="`columns` must be one of data, learners, got 'rows'"):
        result.table("rows")
    with pytest.raises(RefusedValue, match="`metric` must be one of loss, error, got 'lss'"):
        result.table(metric="lss")


def test_a_metric_that_a_data_set_lacks_leaves_it_out(result):
    """As of data of another task, or of one class; what diverged is never bold."""
    rows = result.configurations.to_pylist()
    for unknown in (None, np.nan):
        table = [row | {"error": unknown} if row["dataset"] == "x^2" else row for row in rows]
        table = [row | {"error": np.nan} if row["diverged"] else row for row in table]
        found = result._replace(configurations=pa.Table.from_pylist(table))
        shown = paper.paper_table(found, metric="error")
        assert shown.columns == ["y|z"]
        assert [row[0].best for row in shown.cells] == [True, False, False]
        assert "| \\[d\\] | diverged |" in paper.text_of(shown, "markdown")
        only = found.configurations.filter(pa.compute.field("learner") == "[d]")
        alone = paper.paper_table(found._replace(configurations=only), metric="error")
        assert "| \\[d\\] | diverged |" in paper.text_of(alone, "markdown")


def test_few_seeds_are_shown_and_not_tested(result):
    seed = pa.compute.field("seed")
    two = result._replace(configurations=result.configurations.filter(seed < 2))
    table = paper.paper_table(two)
    assert "2 seeds are too few for a test" in table.caption
    assert not any(cell.alike for row in table.cells for cell in row)
    one = result._replace(configurations=result.configurations.filter(seed < 1))
    assert "one seed, so nothing is tested" in paper.paper_table(one).caption
    assert "±" not in paper.text_of(paper.paper_table(one), "markdown")


def test_wins_are_counted_and_too_few_data_sets_are_said(result):
    best = winners(scores(result.configurations))
    table = comparisons.leader_table(result.configurations, best)
    assert table.title == "a_b against the others"
    assert table.rows == [["c & 50%", "2 / 0 / 0", "4 / 2 / 0"], ["[d]", "2 / 0 / 0", "6 / 0 / 0"]]
    assert "No p: 2 pairs: too few." in table.note
    assert "seeds of one data set are no independent data sets" in table.note
    chosen = [score for (dataset, _), score in best.items() if dataset == "x^2"]
    by_seed = comparisons.seed_table(result.configurations, chosen)
    assert by_seed.rows[0][:3] == ["c & 50%", "0.00133 ± 0.00033", "3 / 0 / 0"]
    assert by_seed.rows[0][4] == "not shown"
    assert by_seed.rows[1][4] == "yes"
    assert "not of other data sets" in by_seed.note
    with pytest.raises(RefusedValue, match="2 data sets: too few"):
        rank_diagram.rank_diagram(best)


def test_a_result_is_shown_and_drawn_from_python(result, tmp_path):
    assert str(result).startswith("x^2\n")
    assert repr(result) == f"Result({str(result.folder)!r})"
    frame = result.leaderboard.to_pylist()
    assert [row["learner"] for row in frame[:3]] == list(LOSS)
    assert (frame[0]["rank"], frame[0]["loss"]) == (1, pytest.approx(1.1))
    assert json.loads(frame[0]["hyperparameters"]) == {}
    played = store.read(result.folder)
    axes = played.plot("regret", "heart")
    assert axes.get_xlabel() == "round"
    assert {line.get_label() for line in axes.lines} >= {"adagrad", "random"}
    assert played.plot("sensitivity", "delta on heart", axes) is axes
    for kind, of, words in (
        ("regret", None, "2 charts of regret here; give `of`, one of heart, a<b"),
        ("loss", "nowhere", "no chart of loss here"),
        ("losses", None, "`kind` must be one of loss, regret"),
        ("ranks", None, "2 data sets: too few"),
    ):
        with pytest.raises(RefusedValue, match=words):
            played.plot(kind, of)


def test_a_chart_that_is_not_there_says_what_it_needs():
    sides = (np.eye(4), [1.0, -1.0, 1.0, -1.0])
    played = olx.lab.compare({"plain": olx.linear(olx.ogd(0.1))}, sides, baseline=False)
    for kind, words in (("regret", 'such as comparator = "best"'), ("pairs", "grid of two")):
        with pytest.raises(RefusedValue, match=f"has no chart of {kind}; it needs.*{words}"):
            played.plot(kind)


def test_wide_tables_have_upright_heads():
    cell = paper.Cell(0.5, 0.1, False, False)
    wide = paper.PaperTable(
        "mine", "Mean loss", "data set", ["d"], ["a_learner.of_a_long_name"] * 7, [[cell] * 7]
    )
    assert paper.latex(wide).count(r"\rotatebox{90}{a\_learner.of\_a\_long\_name}") == 7
    few = wide._replace(columns=wide.columns[:6], cells=[[cell] * 6])
    assert "rotatebox" not in paper.latex(few)


def test_the_command_prints_a_table(result, capsys):
    assert main(["table", str(result.folder), "--format", "markdown", "--metric", "error"]) == 0
    assert "| learner | heart | a\\<b |" in capsys.readouterr().out
    assert main(["table", str(result.folder), "--metric", "lss"]) == 2
    assert "table: `metric` must be one of loss, error" in capsys.readouterr().err


def test_numbers_are_short():
    shown = [
        plus_minus(*pair) for pair in ((6.784e7, 7e7), (1234.5, 120), (0.5, 0.0), (2e-7, 1e-8))
    ]
    assert shown == ["6.8e7 ± 7e7", "1230 ± 120", "0.5 ± 0", "2.00e-7 ± 1e-8"]


def test_numbers_without_a_rank_are_refused():
    with pytest.raises(RefusedValue, match="`differences` holds NaN, which has no rank"):
        significance.wilcoxon([np.nan, 1, 2, 3, 4, 5, 6])
    with pytest.raises(RefusedValue, match="`losses` holds NaN"):
        significance.friedman(np.where(np.eye(10, 3) > 0, np.nan, 1.0))
