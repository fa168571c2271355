"""Pictures show the numbers of their run, and the best of a sweep is one that did not diverge."""

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from olx.certificate import Certificate, Certificates
from olx.core import Curve, Run

NAN, INF = float("nan"), float("inf")
GRID = {"eta": jnp.array([0.1, 0.1, 1.0, 1.0]), "q": jnp.array([1.0, 2.0, 1.0, 2.0])}


@pytest.fixture(autouse=True)
def no_window():
    with mpl.rc_context({"backend": "agg"}):
        yield
    plt.close("all")


def sweep(*totals, **axes):
    return Run((), jnp.array(totals)[:, None] / 2 * jnp.ones(2), axes=axes or GRID)


def test_the_best_configurations_are_finite():
    runs = sweep(NAN, 3.0, 1.0, INF)
    assert runs.best() == (2, 1.0, {"eta": 1.0, "q": 1.0})
    assert [one.place for one in runs.top(4)] == [2, 1]
    kept = Run((), None, curve=Curve(jnp.array([5]), runs.total[:, None]), axes=GRID)
    assert kept.top(2) == runs.top(2)


def test_without_a_best_configuration_there_is_a_reason():
    with pytest.raises(ValueError, match=r"best: all 4 configurations diverged; take smaller st"):
        sweep(NAN, INF, NAN, INF).best()
    with pytest.raises(TypeError, match=r"top: this needs a sweep.*total of shape \(\)"):
        Run((), jnp.ones(3)).top(2)


def test_a_run_is_drawn_as_its_mean_loss():
    (line,) = Run((), jnp.array([1.0, 3.0, 2.0])).plot().lines
    np.testing.assert_allclose(line.get_xydata(), [[1, 1], [2, 2], [3, 2]])
    curve = Curve(jnp.array([2, 8]), jnp.array([4.0, 8.0]))
    (line,) = Run((), None, curve=curve).plot().lines
    np.testing.assert_allclose(line.get_xydata(), [[2, 2], [8, 1]])


def test_a_sweep_is_drawn_by_one_argument_at_the_best_of_the_others():
    ax = sweep(4.0, 3.0, NAN, INF).plot("eta")
    line, lost = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0.1, 3.0], [1.0, NAN]])
    assert lost.get_xdata() == [1.0]
    assert lost.get_label() == "of 2: 1 diverged"
    assert (ax.get_xlabel(), ax.get_xscale()) == ("eta", "linear")
    wide = sweep(4.0, 3.0, eta=jnp.array([0.001, 1.0])).plot()
    assert (wide.get_xscale(), wide.get_yscale()) == ("log", "linear")


def test_a_grid_is_drawn_as_a_map_and_other_points_as_dots():
    ax = sweep(4.0, 3.0, 2.0, NAN).plot()
    cells = ax.collections[0].get_array()
    np.testing.assert_array_equal(cells, [[4.0, 2.0], [3.0, NAN]])  # rows of q, columns of eta
    assert ax.lines[0].get_label() == "of 4: 1 diverged"
    np.testing.assert_allclose(ax.get_xlim(), [-0.35, 1.45])
    dots = sweep(4.0, 3.0, eta=jnp.array([0.1, 1.0]), q=jnp.array([1.0, 2.0])).plot()
    np.testing.assert_array_equal(dots.collections[0].get_offsets(), [[0.1, 1.0], [1.0, 2.0]])


def test_totals_far_above_the_least_leave_the_picture():
    ax = sweep(4.0, 3.0, 2e30, NAN).plot()
    np.testing.assert_array_equal(ax.collections[0].get_array(), [[4.0, NAN], [3.0, NAN]])
    assert ax.lines[0].get_label() == "of 4: 1 diverged, 1 above 100 times the least"
    ax = sweep(4.0, 3.0, 2e30, eta=jnp.arange(3.0)).plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [4.0, 3.0, NAN])
    ax = sweep(-4.0, 3.0, 2e3, eta=jnp.arange(3.0)).plot()  # there is no scale
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-4.0, 3.0, 2e3])


def test_a_certificate_is_drawn_with_its_published_side():
    sides = jnp.arange(3.0), jnp.array([1.0, 2.0, 1.0]), jnp.ones(3), jnp.array([2.0, 2.0, INF])
    proof = Certificate(*sides, theorem="Ours", conditions={"weights": jnp.array([1, 1, 0]) > 0})
    (ax,) = Certificates((proof,)).plot()
    assert ax.get_title() == "Ours"
    left, right, published, broken = ax.lines
    np.testing.assert_array_equal(left.get_xydata(), [[1, 0], [2, 1], [3, 2]])
    np.testing.assert_array_equal(right.get_ydata(), [1, 2, 1])
    np.testing.assert_array_equal(published.get_ydata(), [2, 2, NAN])
    assert broken.get_label() == "says nothing from round 3: weights"
    assert "Last: 2 <= 1 (the published form says nothing);" in str(proof)


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: sweep(1.0, 2.0).plot("eat"), "plot: there is no axis 'eat'; it is eta, q"),
        (
            lambda: sweep(1.0, a=jnp.ones(1), b=jnp.ones(1), c=jnp.ones(1)).plot(),
            r"got 3; name them, as in runs.plot\('a', 'b'",
        ),
        (lambda: sweep(1.0, a=jnp.ones((1, 2))).plot(), "plot: an argument that is a vector"),
        (lambda: Run((), jnp.ones((2, 3))).plot(), r"plot: a picture shows one run, got losses of"),
        (
            lambda: Certificate(jnp.ones((2, 3)), jnp.ones((2, 3)), jnp.ones((2, 3))).plot(),
            "plot: a picture shows the certificate of one run",
        ),
    ],
)
def test_what_is_no_picture_is_refused(draw, said):
    with pytest.raises((TypeError, ValueError), match=said):
        draw()


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot: matplotlib is not installed; install the lab"):
        Run((), jnp.ones(3)).plot()
