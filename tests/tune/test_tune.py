"""Tuning: exact slopes, halving that plays no round twice, and what is refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_tuning as reference
from scipy.sparse import csr_array

import olx
from experiments import tuning
from olx.tune.gradient import Walk, next_walk, proposed_point
from olx.tune.halving import rungs
from olx.tune.problem import spread

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(120, 3))
Y = X @ np.array([1.0, -0.5, 0.2]) + 0.3 * DRAW.normal(size=120)
WEIGHTS = DRAW.choice([0.0, 1.0, 2.0], size=120)
ROUNDS, START = olx.Rounds(X, Y, WEIGHTS), jnp.zeros(3)
OVER = {"power": (0.0, 1.0), "eta": (1e-3, 10.0)}  # not in the order of the alphabet


def make(eta, power):
    return olx.linear(olx.ogd(olx.schedules.decay(eta, power)))


def tune(method, make=make, loss=olx.losses.squared, rounds=ROUNDS, over=OVER, **options):
    return method(make, loss, rounds, START, over=over, **options)


@pytest.fixture(scope="module")
def found():
    return tune(olx.tune.both, configurations=12, ratio=3, finalists=2, steps=8)


def swept(found):
    return [trial for trial in found.history if trial.slopes is None]


def stepped(found):
    return [trial for trial in found.history if trial.slopes is not None]


def test_slopes_are_those_of_finite_differences(found):
    assert len(stepped(found)) > 2
    for trial in stepped(found):
        total = reference.losses(X, Y, WEIGHTS, **trial.numbers).sum()
        np.testing.assert_allclose(trial.total, total, 1e-10)
        wanted = reference.slopes(X, Y, WEIGHTS, **trial.numbers)
        seen = [trial.slopes["eta"], trial.slopes["power"]]
        np.testing.assert_allclose(seen, wanted, 1e-5, 1e-6 * total)


def test_slopes_are_those_of_reverse_mode(found):
    trial = stepped(found)[0]
    total = lambda numbers: olx.rollout(make(**numbers), olx.losses.squared, ROUNDS, START).total
    seen = jax.grad(total)(trial.numbers)
    assert seen.keys() == trial.slopes.keys()
    for name, slope in seen.items():
        np.testing.assert_allclose(trial.slopes[name], slope, 1e-9)


def test_halving_with_carried_states_is_halving_of_runs_played_whole(found):
    ends, sizes = rungs(120, 12, 3, 2)
    assert (ends, sizes) == ([14, 40, 120], [12, 4, 2])
    first = [trial.numbers for trial in swept(found)[:12]]
    cumulative = np.array([np.cumsum(reference.losses(X, Y, WEIGHTS, **one)) for one in first])
    wanted = reference.halving(cumulative, ends, sizes)
    for trial, (i, end, total) in zip(swept(found), wanted, strict=True):
        assert trial.numbers == first[i]
        assert trial.rounds == end
        np.testing.assert_allclose(trial.total, total, 1e-10)


def test_the_cost_counts_every_round_once_and_slopes_as_runs(found):
    rounds = 12 * 14 + 4 * 26 + 2 * 80
    assert found.runs == pytest.approx(rounds / 120 + 3 * len(stepped(found)))


def test_the_best_is_a_minimum_and_better_than_a_grid(found):
    assert found.total == min(trial.total for trial in found.history if trial.rounds == 120)
    etas, powers = np.geomspace(1e-3, 10, 25), np.linspace(0, 1, 11)
    with np.errstate(over="ignore", invalid="ignore"):
        grid = [reference.losses(X, Y, WEIGHTS, a, b).sum() for a in etas for b in powers]
    assert found.total <= np.nanmin(grid)
    run = olx.run(found.learner, olx.losses.squared, ROUNDS, START)
    np.testing.assert_allclose(run.total, found.total, 1e-10)
    assert found.note == ""
    assert "eta=" in repr(found)


def test_trials_are_drawn(found):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    found.plot(axes, "eta")
    assert len(axes.lines) == 4
    assert axes.get_xscale() == "log"
    with pytest.raises(ValueError, match="no number is named `step`; there is `power`, `eta`"):
        found.plot(axes, "step")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_sweep_goes_on_from_its_states(kind):
    rows = X if kind == "dense" else olx.streams.sparse_rows(csr_array(X))
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.01, 0.1, 0.2]))
    part = lambda a, b: olx.Rounds(rows[a:b], Y[a:b])
    play = lambda a, b, **more: olx.sweep(learners, olx.losses.squared, part(a, b), START, **more)
    whole, first = play(0, 120), play(0, 50)
    then = play(50, 120, state=first.state)
    assert then.continued
    np.testing.assert_allclose(then.losses, whole.losses[:, 50:], 1e-12)
    again = play(50, 120, state=first.state)  # the states of the caller are not overwritten
    np.testing.assert_array_equal(again.losses, then.losses)
    if kind == "dense":
        with pytest.raises(TypeError, match=r"sweep: .*state.* has shape \(2,"):
            play(50, 120, state=jax.tree.map(lambda leaf: leaf[:2], first.state))


def test_a_start_that_diverges_is_set_aside_and_a_descent_stays_in_its_range():
    over = {"eta": (1e-3, 1e6), "power": (0.0, 0.1)}
    seen = tune(olx.tune.by_gradient, over=over, starts=4, steps=3)
    assert not all(np.isfinite(trial.total) for trial in seen.history)
    assert np.isfinite(seen.total)
    for trial in seen.history:
        assert 1e-3 * (1 - 1e-9) <= trial.numbers["eta"] <= 1e6 * (1 + 1e-9)
        assert 0 <= trial.numbers["power"] <= 0.1


def mistakes(action, outcome):
    return jnp.where(action * outcome > 0, 0.0, 1.0)


def test_numbers_without_slopes_are_named():
    step = lambda eta: olx.linear(olx.ogd(eta))
    wanted = "by_gradient: the total loss has the slope 0 in `eta` at all starts"
    with pytest.raises(ValueError, match=wanted):
        tune(olx.tune.by_gradient, step, mistakes, over={"eta": (0.01, 0.1)}, starts=2, steps=1)
    size = {"configurations": 4, "finalists": 2, "steps": 1}
    seen = tune(olx.tune.both, step, mistakes, over={"eta": (0.01, 0.1)}, **size)
    assert seen.note == "the slope in `eta` was exactly 0 wherever it was computed"


def test_runs_that_all_diverge_are_named():
    step = lambda eta: olx.linear(olx.ogd(eta))
    huge = {"eta": (1e200, 1e300)}
    with pytest.raises(ValueError, match=r"by_gradient: the run diverges from all 2 starts.*both"):
        tune(olx.tune.by_gradient, step, over=huge, starts=2, steps=1)
    with pytest.raises(ValueError, match="both: no configuration has a finite total loss"):
        tune(olx.tune.both, step, over=huge, configurations=4, finalists=2)


NORM = lambda eta, q: olx.linear(olx.omd(eta, olx.mirrors.pnorm(q)))
SKETCH = lambda eta, m: olx.second_order.sketched_newton(
    olx.second_order.frequent_directions(m), eta
)


def whole(eta: float, count: int):
    return olx.linear(olx.ogd(eta / count))


REFUSED = {
    "another name": (
        {"over": {"step": (0.1, 1.0)}},
        TypeError,
        "`over` names `step`, and `make` takes",
    ),
    "a name too few": ({"over": {"eta": (0.1, 1.0)}}, TypeError, "missing a required argument"),
    "no range": ({"over": {}}, TypeError, "`over` must name at least one number"),
    "one end": ({"over": {**OVER, "eta": 0.1}}, TypeError, r"range of `eta` must be a pair"),
    "ends turned round": (
        {"over": {**OVER, "eta": (1.0, 0.1)}},
        ValueError,
        "`eta`: the lower end",
    ),
    "an endless range": ({"over": {**OVER, "eta": (1.0, np.inf)}}, TypeError, "must be finite"),
    "a range the learner refuses": (
        {"over": {**OVER, "eta": (-1.0, 1.0)}},
        ValueError,
        "the learner refuses .*eta = .*`eta` must be positive.*Move the ends",
    ),
    "an open end": (
        {"make": NORM, "over": {"eta": (0.1, 1.0), "q": (1.0, 2.0)}},
        ValueError,
        "the learner refuses eta = .*, q = 1, which the ranges allow",
    ),
    "a size": (
        {"make": SKETCH, "over": {"eta": (0.1, 1.0), "m": (1, 5)}},
        TypeError,
        "`m` is not a continuous number of this learner: .*Fix it in `make`",
    ),
    "an integer": (
        {"make": whole, "over": {"eta": (0.1, 1.0), "count": (1, 5)}},
        TypeError,
        "`count` is not a continuous number of this learner: `make` takes an integer",
    ),
    "a learner": (
        {"make": olx.ogd(0.1)},
        TypeError,
        "`make` must be a function, got Learner; give",
    ),
    "no learner": ({"make": lambda eta, power: eta}, TypeError, "must be a Learner, got"),
    "an iterator": ({"rounds": iter([ROUNDS])}, TypeError, "an iterator, which can be played once"),
    "too few rounds": ({"rounds": olx.Rounds(X[:3], Y[:3])}, ValueError, "3 rounds, too few for"),
    "no ratio": ({"ratio": 1}, ValueError, "`ratio` must be at least 2, got 1"),
    "too many starts": (
        {"starts": 5},
        ValueError,
        "`starts` must be at most `finalists`, 4, got 5",
    ),
    "sparse rows": (
        {"rounds": olx.Rounds(olx.streams.sparse_rows(csr_array(X)), Y)},
        TypeError,
        "derivatives need dense rows: pass `rows.toarray",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name(name):
    changes, error, says = REFUSED[name]
    with pytest.raises(error, match=f"both: .*{says}"):
        tune(olx.tune.both, **changes)


def test_a_logarithmic_range_needs_positive_ends():
    with pytest.raises(ValueError, match="loguniform: the ends must be positive, got 0"):
        olx.tune.loguniform(0.0, 1.0)
    one = olx.tune.loguniform(1e-3, 10.0)
    np.testing.assert_allclose(one.place(one.at([0.0, 0.3, 1.0])), [0.0, 0.3, 1.0], atol=1e-12)
    slope = (one.at(0.3 + 1e-6) - one.at(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(one.stretch(one.at(0.3)), slope, 1e-6)


def test_points_are_spread_evenly():
    points = spread(64, 2)
    cells = {(int(4 * a), int(4 * b)) for a, b in points}
    assert len(cells) == 16
    assert points.min() > 0
    assert points.max() < 1


def test_a_descent_ends_at_the_lowest_point_of_the_box():
    def value(z):
        bent = (z[0] - 0.3) ** 2 + 10 * (z[1] - 1.2 + 0.5 * z[0]) ** 2
        side = 20 * (z[1] - 1.2 + 0.5 * z[0])
        return bent, np.array([2 * (z[0] - 0.3) + 0.5 * side, side])

    walk = Walk(np.array([0.9, 0.1]), *value([0.9, 0.1]))
    tries = 0
    while (point := proposed_point(walk)) is not None and tries < 40:
        assert np.all((point >= 0) & (point <= 1))
        walk, tries = next_walk(walk, point, *value(point)), tries + 1
    assert tries < 30
    fine = np.linspace(0, 1, 201)
    lowest = min(value([a, b])[0] for a in fine for b in fine)
    assert walk.value <= lowest + 1e-4


def test_a_descent_steps_back_from_where_runs_diverge():
    walk = Walk(np.array([0.5]), 1.0, np.array([-1.0]))
    point = proposed_point(walk)
    back = next_walk(walk, point, np.nan, np.array([np.nan]))
    assert back.at is walk.at
    assert proposed_point(back) - 0.5 == pytest.approx((point - 0.5) / 4)
    assert proposed_point(Walk(np.array([1.0]), 1.0, np.array([-1.0]))) is None
    assert proposed_point(Walk(np.array([0.5]), np.nan, np.array([1.0]))) is None


def test_the_experiment_counts_what_was_played_until_it_arrived():
    numbers = {"eta": 1.0, "q": 2.0}
    part = [olx.tune.Trial(numbers, 5, 1.0)] * 8
    whole = [olx.tune.Trial(numbers, 20, total) for total in (9.0, np.nan)]
    steps = [olx.tune.Trial(numbers, 20, total, numbers) for total in (8.0, 8.0, 7.0, 7.5)]
    seen = olx.tune.Tuned(numbers, 7.0, None, (*part, *whole, *steps), 3.5 + 3 * 4)
    assert tuning.arrival(seen, 9.0, 2) == 3.5
    assert tuning.arrival(seen, 8.5, 2) == 3.5 + 6
    assert tuning.arrival(seen, 7.0, 2) == 3.5 + 12
    assert tuning.arrival(seen, 7.0, 1) == 3.5 + 9
    assert tuning.arrival(seen, 6.0, 1) == np.inf
    row = tuning.Row("one", "both", 3.5, 15.5, 61.0, 1.0)
    assert "| one | both | 3.5 | 15.5 | 61.0 | 1.0000 |  |" in tuning.table([row])
    assert "on 0 of 1 streams." in tuning.table([row])
    at, low = tuning.path(seen, 7.0)
    np.testing.assert_allclose(at, [3.5, 3.5, 6.5, 9.5, 12.5, 15.5])
    np.testing.assert_allclose(low, np.array([9, 9, 8, 8, 7, 7]) / 7)
