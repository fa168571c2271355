"""All charts of a result, and one of them on axes of matplotlib."""

from collections.abc import Mapping

import matplotlib
from matplotlib.axes import Axes

from olx._refusal import RefusedValue, public
from olx.lab.report import charts, figures, heat_maps, tables
from olx.lab.report.figures import Picture
from olx.lab.report.rank_diagram import rank_diagram
from olx.lab.report.scores import Score, scores, value_text, winners
from olx.lab.store import Result

COMPARATORS = {
    None: "",
    "zero": "the decision 0, or equal weights of experts",
    "truth": "the decision that generated the data",
    "best": "the best decision in hindsight",
}
KINDS = ("loss", "regret", "sensitivity", "pairs", "classes", "ranks")


def learner_numbers(everything: list[Score]) -> dict[str, int]:
    """The number of each learner, which gives its colour."""
    return {name: i for i, name in enumerate(dict.fromkeys(score.learner for score in everything))}


def pictures(result: Result, kind: str) -> list[Picture]:
    """The charts of one of `KINDS`."""
    everything = scores(result.configurations)
    best, order = winners(everything), learner_numbers(everything)
    comparator = comparator_text(result.config)
    if kind == "loss":
        return [*charts.loss_charts(result.curves, best, order, comparator)]
    if kind == "regret":
        return [*charts.regret_charts(result.curves, best, order, comparator)]
    if kind == "sensitivity":
        return [*charts.sensitivity_charts(everything, order, laws(result.config))]
    if kind == "pairs":
        return [*heat_maps.pair_maps(everything)]
    if kind == "classes":
        return [*heat_maps.confusion_maps(tables.confusions(result.confusions))]
    return [rank_diagram(best)]


def laws(config: Mapping) -> charts.Laws:
    """The ends of the ranges in the grids of a config, by learner and hyperparameter."""
    found = {}
    for learner in config.get("learners", []):
        for name, values in learner.get("grid", {}).items():
            if isinstance(values, dict):
                low, high, *_ = next(iter(values.values()))
                found[learner.get("label") or learner["name"], name] = (float(low), float(high))
    return found


def comparator_text(config: Mapping) -> str:
    """The comparator of an experiment in words; "" if there is none.

    >>> comparator_text({"comparator": "best", "radius": 2.0, "learners": []})
    'the best decision in hindsight in the ball of radius 2'
    """
    text = COMPARATORS[config.get("comparator")]
    if config.get("comparator") == "best" and "radius" in config:
        text += f" in the ball of radius {config['radius']:g}"
    own = [
        f"{one.get('label') or one['name']}: in {value_text(one['compare_in'])}"
        for one in config.get("learners", [])
        if one.get("compare_in")
    ]
    return f"{text} ({'; '.join(own)})" if own else text


NEEDED = {  # by a chart that a result may lack
    "regret": '; it needs a comparator, such as comparator = "best"',
    "sensitivity": "; it needs a learner with a grid",
    "pairs": "; it needs a learner with a grid of two numbers",
    "classes": "; it needs data with classes",
}


@public
def plot(result: Result, kind: str, of: str | None = None, axes: Axes | None = None) -> Axes:
    """Draw a chart of a result; see `olx.lab.store.Result.plot`."""
    if kind not in KINDS:
        raise RefusedValue(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r:.40}.")
    found = pictures(result, kind)
    names = [chart.heading for chart in found]
    asked = [chart for chart in found if of is None or of in (chart.heading, chart.dataset)]
    if not found:
        raise RefusedValue(f"the result has no chart of {kind}{NEEDED.get(kind, '')}.")
    if len(asked) != 1:
        seen = "no chart" if not asked else f"{len(asked)} charts"
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise RefusedValue(f"{seen} of {kind} here; give `of`, one of {listed}.")
    if axes is None:
        from matplotlib import pyplot

        with matplotlib.rc_context(figures.STYLE):
            _, axes = pyplot.subplots(figsize=figures.size(asked[0]), layout="constrained")
    figures.draw_on(axes, asked[0])
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    return axes
