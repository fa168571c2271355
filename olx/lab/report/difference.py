"""Two results side by side: which learners got better or worse, and what differs between the runs.

Losses are compared at the best configuration of each result. On the same data and seeds the change
is that of each seed, since both results play the same orders of rows; else the two means are
compared. A change counts if it is more than 2 standard errors.
"""

import json
import math
from typing import NamedTuple

import numpy as np

from olx.lab import store
from olx.lab.report.scores import Score, configuration, losses_by_seed, scores, winners
from olx.lab.report.tables import Column, Table, columns

CLEAR = 2.0  # standard errors


class Change(NamedTuple):
    """The change of the mean loss from the first to the second result."""

    mean: float
    error: float  # one standard error; NaN if it is not known


def tables(first: store.Result, second: store.Result, names: tuple[str, str]) -> list[Table]:
    """The learners, then what differs in config, data and environment, if anything."""
    parts = {
        "Config": [flat(result.config) for result in (first, second)],
        "Data": [flat(_data(result)) for result in (first, second)],
        "Environment": [flat(result.environment) for result in (first, second)],
    }
    found = [learner_table(first, second, names)]
    found += [_differences(title, old, new, names) for title, (old, new) in parts.items()]
    return [table for table in found if table.rows]


def learner_table(first: store.Result, second: store.Result, names: tuple[str, str]) -> Table:
    """One row per data set and learner of either result."""
    best = [winners(scores(result.configurations)) for result in (first, second)]
    before, after = _data(first), _data(second)
    same = {name for name in before if before[name] == after.get(name)}
    rows = []
    for key in dict.fromkeys([*best[0], *best[1]]):
        old, new = (each.get(key) for each in best)
        change = loss_change(first, old, second, new, key[0] in same) if old and new else None
        losses = [score.loss_text if score else "" for score in (old, new)]
        chosen = [configuration(score.hyperparameters) for score in (old, new) if score]
        rows.append([*key, *losses, *_change_cells(change), " → ".join(dict.fromkeys(chosen))])
    head = columns("data set, learner", [*names, "change", "in standard errors"])
    head += columns("verdict, best configuration")
    other = list(dict.fromkeys(name for name, _ in (*best[0], *best[1]) if name not in same))
    note = f"Mean loss of the best configuration. A change counts above {CLEAR:g} standard errors"
    note += " of the change over seeds" if same else ""
    note += "." if not other else f"; the data differ: {', '.join(other)}."
    return Table("Learners", head, rows, note)


def loss_change(
    first: store.Result, old: Score, second: store.Result, new: Score, paired: bool
) -> Change:
    """The change of the mean loss between two configurations."""
    mean = new.means["loss"] - old.means["loss"]
    before, after = (
        losses_by_seed(first.configurations, old),
        losses_by_seed(second.configurations, new),
    )
    if paired and before.keys() == after.keys() and math.isfinite(mean):
        each = np.array([after[seed] - before[seed] for seed in before])
        error = each.std(ddof=1) / math.sqrt(len(each)) if len(each) > 1 else math.nan
        return Change(float(each.mean()), float(error))
    return Change(mean, math.hypot(old.errors["loss"], new.errors["loss"]))


def verdict(change: Change) -> str:
    """What a change means, in a word or two."""
    mean, error = change
    if math.isnan(mean):
        return "both diverged"
    if math.isinf(mean):
        return "diverges now" if mean > 0 else "diverges no longer"
    if mean == 0:
        return "the same"
    side = "better" if mean < 0 else "worse"
    if math.isnan(error):
        return f"{side}; one seed says nothing about the spread"
    return side if abs(mean) > CLEAR * error else "within the spread"


def flat(tree: object, prefix: str = "") -> dict[str, str]:
    """Leaves by their path; parts of a list go by their label or name, if they have one."""
    if isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and tree and all(isinstance(one, dict) for one in tree):
        items = [(str(one.get("label") or one.get("name") or i), one) for i, one in enumerate(tree)]
    else:
        return {prefix: tree if isinstance(tree, str) else json.dumps(tree, ensure_ascii=False)}
    found: dict[str, str] = {}
    for key, value in items:
        found |= flat(value, f"{prefix}.{key}" if prefix else key)
    return found


def _change_cells(change: Change | None) -> list[str]:
    if change is None:
        return ["", "", "only in one result"]
    known = math.isfinite(change.mean)
    ratio = f"{change.mean / change.error:+.1f}" if known and change.error > 0 else ""
    return [f"{change.mean:+.3g}" if known else "", ratio, verdict(change)]


def _data(result: store.Result) -> dict[str, object]:
    if not (result.folder / "data.json").is_file():
        return {}
    return store.text(result.folder, "data.json", json.loads)


def _differences(
    title: str, old: dict[str, str], new: dict[str, str], names: tuple[str, str]
) -> Table:
    keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    show = lambda value: "" if value is None else value if len(value) < 80 else value[:77] + "..."
    rows = [[key, show(old.get(key)), show(new.get(key))] for key in keys]
    head = [*columns("key"), *(Column(name, False) for name in names)]
    return Table(f"{title}: what differs", head, rows)
