"""The tables of the experiment with learned regularizers, from numbers that are known."""

import numpy as np

from experiments import learned_regularizer, learned_report
from olx import mirrors


def test_a_table_shows_totals_and_paired_differences():
    fixed = learned_regularizer.Tuned(
        {"eta": 0.1}, np.array([7.0, 9.0]), np.array([6.0, 8.0]), np.array([5.0, 8.0])
    )
    losses = {"learned network": np.array([[1.0, 2.0], [2.0, 3.0]])}
    found = learned_report.Family(
        "signs", {"Euclidean": fixed}, losses, np.array([1.0, 1.0]), {}, {}, mirrors.euclidean(),
        0.1, "Euclidean",
    )  # fmt: skip
    lines = learned_report.table(found).split("\n")
    assert "| the target itself | 1.00 ± 0.00 | -3.00 ± 1.00 |  |  |" in lines
    assert "| learned network | 4.00 ± 1.00 |  |  |  |" in lines
    assert "| Euclidean | 8.00 ± 1.00 | +4.00 ± 0.00 | +3.00 ± 0.00 | +2.50 ± 0.50 |" in lines
