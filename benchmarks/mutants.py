"""Which mutants break which theorems: the table of all learners and all their theorems.

    python -m benchmarks.mutants                  # the whole table, some minutes
    python -m benchmarks.mutants perceptron PA    # some rows of the table of learners
    python -m benchmarks.mutants --games          # the games that the tests play

A mutant is a learner with one error, which keeps the theorems of the right one; see
`olx.testing.mutants`. It breaks a theorem if the inequality fails in a game in which the right
learner keeps it. The games are made of the rounds and comparators of the tests.
"""

import argparse
import itertools
import pathlib
import pprint
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax

from olx.testing.mutants import Mutant, breaking_games

FOLDER = pathlib.Path(__file__).parents[1] / "tests" / "learners"


class Row(NamedTuple):
    """A theorem of a learner, and the games in which a mutant breaks it."""

    learner: str
    theorem: str
    source: str
    games: list[Mutant]

    @property
    def words(self) -> str:
        """The mutants that break it, each with a stream."""
        first = {one.mutant: one for one in reversed(self.games)}
        streams = (f"{one.mutant} ({one.order}, rows x {one.size:g})" for one in first.values())
        return "; ".join(streams) or "none"


def judged(name: str, case: Any) -> list[Row]:
    """The theorems of one row of the table of learners."""
    found = breaking_games(*case[:5])
    return [Row(name, one.name, one.source, found[one.name]) for one in case.learner.theorems]


def chosen(rows: Iterable[Row]) -> dict[str, dict[Mutant, list[str]]]:
    """Few learners, and few games of each, in which every theorem that can fail does."""
    left = {(row.theorem, row.source) for row in rows if row.games}
    found: dict[str, dict[Mutant, list[str]]] = {}
    while left:
        own: dict[str, list[Row]] = {}
        for row in rows:
            if row.games and (row.theorem, row.source) in left:
                own.setdefault(row.learner, []).append(row)
        name = max(own, key=lambda name: len(own[name]))
        left -= {(row.theorem, row.source) for row in own[name]}
        found[name] = _few(own[name])
    return found


def _few(rows: list[Row]) -> dict[Mutant, list[str]]:
    found = {}
    while rows:
        counts: dict[Mutant, int] = {}
        for one in itertools.chain.from_iterable(row.games for row in rows):
            counts[one] = counts.get(one, 0) + 1
        best = max(counts, key=lambda one: counts[one])
        found[best] = [row.theorem for row in rows if best in row.games]
        rows = [row for row in rows if best not in row.games]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("learners", nargs="*", help="rows of the table of learners; all if none")
    parser.add_argument("--games", action="store_true", help="print the games that the tests play")
    asked = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, str(FOLDER))
    from mutant_games import MUTANT_CASES, UNBROKEN

    rows = []
    for name in asked.learners or MUTANT_CASES:
        for row in judged(name, MUTANT_CASES[name]):
            why = f": {UNBROKEN[row.theorem]}" if row.theorem in UNBROKEN else ""
            print(
                f"| {row.learner} | {row.theorem} | {row.source} | {row.words}{why} |", flush=True
            )
            rows.append(row)
    if asked.games:
        pprint.pprint(chosen(rows), sort_dicts=False, width=100)
    lost = {row.theorem for row in rows} - {row.theorem for row in rows if row.games}
    print(
        f"{len(rows)} theorems of learners; no mutant breaks {', '.join(sorted(lost)) or 'none'}."
    )


if __name__ == "__main__":
    main()
