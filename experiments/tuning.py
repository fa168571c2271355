"""What it costs to choose two numbers of a learner: `olx.tune`, grids and Optuna.

Five streams, each with a learner of two numbers and wide ranges for both:

  elec2        electricity prices, in the order of time; p-norm mirror descent, eta and q
  cal_housing  house values, in the order of the file; AdaGrad, eta and delta
  a9a          incomes; FTRL-Proximal, eta and l2
  weather      rain, in the order of time; gradient descent with the step eta / t^power
  switching    20 experts, the best of which changes ten times; Fixed Share, eta and alpha

The yardstick is the best of a grid of 1,000 (40 times 25) over the same ranges. A method has
arrived when one of its configurations has a total loss on the whole stream of at most 1.01 times
that of the best of the grid. The columns are:

  rounds   rounds played until then, divided by the rounds of the stream. A round with the
           derivatives by n numbers counts 1 + n
  all      the same for the whole call, also what it plays after it has arrived
  time     CPU seconds of all threads, divided by those of one `olx.run` of one configuration,
           which is timed before and after. For `olx.tune` it is that of the whole call. Nothing
           is compiled in it: the same call came before
  end      the lowest total loss of the method, divided by the best of the grid
  first    wall seconds of the first call, which compiles

and the methods are:

  both, by_halving, by_gradient   of `olx.tune`, with their default numbers
  grid, as one sweep              all of the 1,000, played by `olx.sweep`
  grid, in random order           one by one by `olx.run`; the expected number until arrival
  Optuna, TPE                     one by one by `olx.run`; the median over seeds, and the worst

The data folder (OLX_DATA, or --data) holds the .npz files; --streams switching needs none.

    python -m experiments.tuning
    python -m experiments.tuning --streams weather switching --seeds 3
"""

import csv
import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx import experts, first_order, losses, mirrors, schedules

NEAR = 1.01
COLUMNS = ("stream", "method", "rounds", "all", "time", "end", "first")
SHAPE = (40, 25)  # of the grid
TRIALS = 200  # of Optuna, at most


class Case(NamedTuple):
    make: Callable[..., olx.Learner]
    over: dict[str, tuple[float, float]]
    loss: Callable
    rounds: olx.Rounds
    start: jax.Array


def pnorm(eta, q):
    return olx.linear(olx.omd(eta, mirrors.pnorm(q)))


def adagrad(eta, delta):
    return olx.linear(first_order.adagrad(eta, delta=delta))


def ftrl(eta, l2):
    return olx.linear(first_order.ftrl_proximal(eta, l2=l2))


def decaying(eta, power):
    return olx.linear(olx.ogd(schedules.decay(eta, power)))


def share(eta, alpha):
    return experts.fixed_share(eta, alpha)


def stored(name: str, folder: Path | None, make: Callable, loss: Callable, over: dict) -> Case:
    from olx.lab.data import load

    scale = "none" if name == "a9a" else "standard"
    data = load(name, folder, scale=scale, center_target=loss is losses.squared)
    rows = data.context.toarray() if hasattr(data.context, "toarray") else data.context
    rounds = olx.Rounds(np.asarray(rows, np.float32), np.asarray(data.outcome, np.float32))
    return Case(make, over, loss, rounds, jnp.zeros(rows.shape[1]))


def cases(folder: Path | None) -> dict[str, Callable[[], Case]]:
    kept = lambda name, *rest: lambda: stored(name, folder, *rest)
    return {
        "elec2": kept("elec2", pnorm, losses.logistic, {"eta": (1e-5, 1e2), "q": (1.05, 2.0)}),
        "cal_housing": kept(
            "cal_housing", adagrad, losses.squared, {"eta": (1e-4, 1e2), "delta": (1e-4, 1e4)}
        ),
        "a9a": kept("a9a", ftrl, losses.logistic, {"eta": (1e-4, 1e2), "l2": (1e-4, 1e4)}),
        "weather": kept(
            "weather", decaying, losses.logistic, {"eta": (1e-4, 1e2), "power": (0.0, 1.0)}
        ),
        "switching": switching,
    }


def switching() -> Case:
    rounds = olx.streams.switching_losses(jax.random.key(0), 20_000, 20, 10, 0.3).rounds
    over = {"eta": (1e-4, 1e2), "alpha": (1e-6, 1.0)}
    return Case(share, over, losses.linear_loss, rounds, jnp.full(20, 0.05))


def ranges(case: Case) -> dict[str, olx.tune.Range]:
    pick = lambda low, high: (olx.tune.loguniform if low > 0 else olx.tune.uniform)(low, high)
    return {name: pick(*ends) for name, ends in case.over.items()}


class Row(NamedTuple):
    """A line of the table; infinite if the method did not arrive."""

    stream: str
    method: str
    rounds: float
    all: float
    time: float
    end: float
    first: float | None = None


def whole_grid(case: Case) -> np.ndarray:
    """The total losses of the grid; a configuration that diverges has an infinite one."""
    each = zip(ranges(case).items(), SHAPE, strict=True)
    axes = {name: np.float32(one.at(np.linspace(0, 1, count))) for (name, one), count in each}
    batch = olx.batch(case.make, **olx.grid(**axes))
    run = olx.sweep(batch, case.loss, case.rounds, case.start, keep=olx.keep.totals)
    return np.where(np.isfinite(run.total), run.total, np.inf)


def play(case: Case, **numbers: float) -> float:
    learner = case.make(**{name: jnp.float32(value) for name, value in numbers.items()})
    run = olx.run(learner, case.loss, case.rounds, case.start, keep=olx.keep.totals)
    return float(run.total)


def busy(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the CPU seconds of all threads of this process."""
    start = time.process_time()
    return call(), time.process_time() - start


def one_run(case: Case, numbers: dict[str, float], times: int = 7) -> float:
    """CPU seconds of one run, in the median."""
    play(case, **numbers)
    return statistics.median(busy(lambda: play(case, **numbers))[1] for _ in range(times))


def arrival(found: olx.tune.Tuned, goal: float, beside: int) -> float:
    """Rounds played, in runs, until a configuration has a total loss of at most `goal`.

    beside: how many descents are played side by side. A rung is also played as a whole.
    """
    length = max(one.rounds for one in found.history)
    whole = [one for one in found.history if one.rounds == length]
    steps = [one for one in whole if one.slopes is not None]
    price = 1.0 + len(found.numbers)
    played = found.runs - price * len(steps)
    near = lambda trials: any(one.total <= goal for one in trials)
    if near(one for one in whole if one.slopes is None):
        return played
    for i in range(0, len(steps), beside):
        played += price * beside
        if near(steps[i : i + beside]):
            return played
    return np.inf


def tuned(name: str, case: Case, best: float, method: Callable) -> tuple[Row, olx.tune.Tuned]:
    call = lambda: method(case.make, case.loss, case.rounds, case.start, over=case.over)
    jax.clear_caches()  # so that the first call compiles all that it needs
    begin = time.perf_counter()
    found = call()
    first = time.perf_counter() - begin
    before = one_run(case, found.numbers)
    found, spent = busy(call)
    run = statistics.mean([before, one_run(case, found.numbers)])
    rounds = arrival(found, NEAR * best, method.__kwdefaults__.get("starts", 1))
    cost = spent / run if np.isfinite(rounds) else np.inf
    return Row(name, method.__name__, rounds, found.runs, cost, found.total / best, first), found


def searched(name: str, case: Case, best: float, seeds: int) -> tuple[Row, list[np.ndarray]]:
    """Optuna: the median over seeds, the worst one in the name, and the lowest losses so far."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rounds, costs, paths = [], [], []
    for seed in range(seeds):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        middle = {key: float(one.at(0.5)) for key, one in ranges(case).items()}
        run, spent, values = one_run(case, middle, 3), 0.0, []
        while len(values) < TRIALS and (not values or min(values) > NEAR * best):
            value, more = busy(lambda study=study: _ask(study, case))
            spent += more
            values.append(value)
        arrived = min(values) <= NEAR * best
        rounds.append(len(values) if arrived else np.inf)
        costs.append(spent / run if arrived else np.inf)
        paths.append(np.minimum.accumulate(values) / best)
    end = statistics.median(path[-1] for path in paths)
    label = f"Optuna, TPE (worst of {seeds}: {max(rounds):g})"
    median = statistics.median(rounds)
    return Row(name, label, median, median, statistics.median(costs), end), paths


def _ask(study: Any, case: Case) -> float:
    trial = study.ask()
    numbers = {
        key: trial.suggest_float(key, one.low, one.high, log=one.logarithmic)
        for key, one in ranges(case).items()
    }
    value = play(case, **numbers)
    value = value if np.isfinite(value) else np.finfo(np.float32).max
    study.tell(trial, value)
    return value


def compare(name: str, case: Case, seeds: int) -> tuple[list[Row], dict[str, list]]:
    whole_grid(case)
    totals, spent = busy(lambda: whole_grid(case))
    best = float(totals.min())
    middle = {key: float(one.at(0.5)) for key, one in ranges(case).items()}
    count, near = totals.size, int(np.sum(totals <= NEAR * best))
    expected = (count + 1) / (near + 1)
    rows, paths = [], {}
    for method in (olx.tune.both, olx.tune.by_halving, olx.tune.by_gradient):
        row, found = tuned(name, case, best, method)
        rows.append(row)
        paths[method.__name__] = [path(found, best)]
    rows.append(Row(name, "grid, as one sweep", count, count, spent / one_run(case, middle), 1.0))
    rows.append(Row(name, "grid, in random order", expected, count, expected, 1.0))
    if seeds:
        row, each = searched(name, case, best, seeds)
        rows.append(row)
        paths["Optuna, TPE"] = [(np.arange(1, len(one) + 1), one) for one in each]
    return rows, paths


def path(found: olx.tune.Tuned, best: float) -> tuple[np.ndarray, np.ndarray]:
    """The cost in runs, and the lowest loss of a whole run so far; of those that finished."""
    length = max(one.rounds for one in found.history)
    whole = [one for one in found.history if one.rounds == length]
    prices = np.array([1.0 + len(one.numbers) if one.slopes else 0.0 for one in whole])
    at = found.runs - prices.sum() + np.cumsum(prices)
    low = np.minimum.accumulate([one.total if np.isfinite(one.total) else np.inf for one in whole])
    return at, low / best


def table(rows: list[Row]) -> str:
    show = lambda value: "" if value is None else "never" if np.isinf(value) else f"{value:.1f}"
    cells = lambda row: (*map(show, row[2:5]), f"{row.end:.4f}", show(row.first))
    lines = [output.table(COLUMNS, ((row.stream, row.method, *cells(row)) for row in rows))]
    mine = [row for row in rows if row.method == "both"]
    met = [row.stream for row in mine if max(row.rounds, row.all, row.time) <= 60]
    lines.append(
        f"\n`olx.tune.both` arrives with at most 60 runs of rounds and of time on {len(met)} of "
        f"{len(mine)} streams{': ' * bool(met)}{', '.join(met)}."
    )
    return "\n".join(lines)


def draw(paths: dict[str, dict[str, list]], out: Path) -> None:
    figure = output.figure(3.1 * len(paths), 3.0)
    if figure is None:
        return
    panels = np.atleast_1d(figure.subplots(1, len(paths)))
    for axes, (stream, methods) in zip(panels, paths.items(), strict=True):
        for i, (method, each) in enumerate(methods.items()):
            for k, (at, ratio) in enumerate(each):
                label = method if k == 0 else None
                axes.step(at, ratio, where="post", color=f"C{i}", lw=1.2, label=label, marker=".")
        axes.axhline(NEAR, color="grey", lw=0.8)
        axes.set(title=stream, xscale="log", ylim=(0.97, 1.25), xlabel="runs of rounds")
    panels[0].set_ylabel("lowest loss / best of the grid")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(out / "tuning.png", dpi=110)
    figure.savefig(out / "tuning.svg")


def main() -> None:
    parser = output.arguments(__doc__, data=True, out="tuning")
    parser.add_argument("--streams", nargs="+", choices=list(cases(None)), default=None)
    parser.add_argument("--seeds", type=int, default=5, help="of Optuna; 0 leaves it out")
    asked = parser.parse_args()
    if asked.seeds and importlib.util.find_spec("optuna") is None:
        parser.error("Optuna is missing: `pip install optuna`, or --seeds 0 leaves it out")
    known = cases(asked.data)
    asked.out.mkdir(parents=True, exist_ok=True)
    rows, paths = [], {}
    for name in asked.streams or known:
        more, paths[name] = compare(name, known[name](), asked.seeds)
        rows += more
        print(table(more), flush=True)
    text = table(rows)
    print(f"\n{text}")
    (asked.out / "tuning.md").write_text(text + "\n")
    with open(asked.out / "tuning.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    draw(paths, asked.out)
    print(f"written: {asked.out}/tuning.md, .csv, and with matplotlib .png and .svg")


if __name__ == "__main__":
    main()
