"""Rows of the table: boosted learners."""

from cases import Case

BOOSTING: dict[str, Case] = {}
