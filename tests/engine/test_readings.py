"""`rollout` compiles once, and sees every change of what its functions read.

The other drivers keep their programs, and see what can be seen without a call.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx._readings import visible_readings

ROUNDS = olx.Rounds(np.eye(2), np.ones(2))
START = jnp.zeros(2)
LINE = olx.linear(olx.ogd(0.1))
SCALE = 2.0


def total(learner, loss, **options):
    return olx.rollout(learner, loss, ROUNDS, START, **options).total


def squared(a, y):
    return (a - y) ** 2


def scaled(scale, a, y):
    return scale * squared(a, y)


def helped(a, y):
    return SCALE * jnp.where(y > 0, squared(a, y), 0.0)


class State(NamedTuple):
    theta: jax.Array


def start(hparams, params):
    return State(params)


def score(hparams, state, context):
    return jnp.vdot(state.theta, context)


def move(hparams, state, feedback):
    return State(state.theta - hparams * feedback.grad * feedback.context)


COSH = olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True)
KNOWN = {
    "a loss of the library": lambda eta: (olx.linear(olx.ogd(eta)), olx.losses.squared),
    "a function that calls another": lambda eta: (olx.linear(olx.ogd(eta)), helped),
    "a Partial": lambda eta: (olx.linear(olx.ogd(eta)), Partial(scaled, 2 * eta)),
    "a derived map": lambda eta: (olx.linear(olx.omd(eta, COSH)), olx.losses.squared),
    "a learner by hand": lambda eta: (olx.Learner(eta, start, score, move), squared),
}


@pytest.mark.parametrize("make", KNOWN.values(), ids=KNOWN)
def test_another_call_compiles_nothing(make, caplog):
    play = lambda eta: total(*make(eta))
    for driver in (play, jax.grad(play), lambda eta: jax.vmap(play)(eta + jnp.arange(2.0))):
        driver(0.1)
        with jax.log_compiles():
            driver(0.2)
        assert not [one for one in caplog.records if "Compiling" in one.message]


NUMBER = "def loss(a, y): return scale * (a - y) ** 2"
CHANGES = {  # by what is read: code that makes a loss of 1, and code after which it is 3
    "a number": (f"scale = 1.0\n{NUMBER}", "scale = 3.0"),
    "the type of a number": (
        "n = 3\ndef loss(a, y): return (1.0 if isinstance(n, int) else n) * (a - y) ** 2",
        "n = 3.0",
    ),
    "an array": (f"import numpy as np\nscale = np.ones(())\n{NUMBER}", "scale[...] = 3.0"),
    "a list": ("s = [1.0]\ndef loss(a, y): return s[0] * (a - y) ** 2", "s[0] = 3.0"),
    "a helper": (
        "def scale(): return 1.0\ndef loss(a, y): return scale() * (a - y) ** 2",
        "def scale(): return 3.0",
    ),
    "what a helper reads": (
        "scale = 1.0\ndef help(): return scale\ndef loss(a, y): return help() * (a - y) ** 2",
        "scale = 3.0",
    ),
    "what a gradient reads": (
        "import jax\nscale = 0.5\nslope = jax.grad(lambda z: scale * z**2)\n"
        "def loss(a, y): return -slope(a - y)",
        "scale = 1.5",
    ),
    "what an inner function reads": (
        "scale = 1.0\ndef loss(a, y): return (lambda z: scale * z**2)(a - y)",
        "scale = 3.0",
    ),
    "a module": (
        "import types\nown = types.ModuleType('own'); own.scale = 1.0\n"
        "def loss(a, y): return own.scale * (a - y) ** 2",
        "own.scale = 3.0",
    ),
    "an object": (
        "import types\no = types.SimpleNamespace(scale=1.0)\n"
        "def loss(a, y): return o.scale * (a - y) ** 2",
        "o.scale = 3.0",
    ),
    "a class": (
        "class C: scale = 1.0\ndef loss(a, y): return C.scale * (a - y) ** 2",
        "C.scale = 3.0",
    ),
    "the class of an object": (
        "class B: scale = 1.0\nclass C(B): pass\no = C()\n"
        "def loss(a, y): return o.scale * (a - y) ** 2",
        "B.scale = 3.0",
    ),
    "an array of an object": (
        "import types, numpy as np\no = types.SimpleNamespace(scale=np.ones(()))\n"
        "def loss(a, y): return o.scale * (a - y) ** 2",
        "o.scale = np.array(3.0)",
    ),
    "an object of an object": (
        "import types\no = types.SimpleNamespace(s=[types.SimpleNamespace(scale=1.0)])\n"
        "def loss(a, y): return o.s[0].scale * (a - y) ** 2",
        "o.s[0].scale = 3.0",
    ),
    "a slot": (
        "class C: __slots__ = ('scale',)\no = C()\no.scale = 1.0\n"
        "def loss(a, y): return o.scale * (a - y) ** 2",
        "o.scale = 3.0",
    ),
    "a set": ("s = {1.0}\ndef loss(a, y): return max(s) * (a - y) ** 2", "s.add(3.0)"),
    "what a call of an object reads": (
        "scale = 1.0\nclass C:\n  def __call__(self, a, y): return scale * (a - y) ** 2\n"
        "loss = C()",
        "scale = 3.0",
    ),
    "an argument of a partial function": (
        "import functools\ns = [1.0]\ndef scaled(s, a, y): return s[0] * (a - y) ** 2\n"
        "loss = functools.partial(scaled, s)",
        "s[0] = 3.0",
    ),
    "an attribute of a function": (
        "def loss(a, y): return loss.scale * (a - y) ** 2\nloss.scale = 1.0",
        "loss.scale = 3.0",
    ),
    "a method": (
        "class C:\n  scale = 1.0\n  def __call__(self, a, y): return self.scale * (a - y) ** 2\n"
        "loss = C().__call__",
        "loss.__self__.scale = 3.0",
    ),
    "a default": (
        "def loss(a, y, s=[1.0]): return s[0] * (a - y) ** 2",
        "loss.__defaults__[0][0] = 3.0",
    ),
    "another default": (
        "def loss(a, y, *, s=1.0): return s * (a - y) ** 2",
        "loss.__kwdefaults__['s'] = 3.0",
    ),
    "a closure": (
        "def make(s): return lambda a, y: s[0] * (a - y) ** 2\ns = [1.0]\nloss = make(s)",
        "s[0] = 3.0",
    ),
    "its own text": (
        "def loss(a, y): return (a - y) ** 2",
        "loss.__code__ = (lambda a, y: 3.0 * (a - y) ** 2).__code__",
    ),
    "what it imports": (
        "import sys, types\nown = sys.modules['olx_own'] = types.SimpleNamespace(s=1.0)\n"
        "def loss(a, y):\n  import olx_own\n  return olx_own.s * (a - y) ** 2",
        "own.s = 3.0",
    ),
    "all names": (
        "scale = 1.0\ndef loss(a, y): return globals()['scale'] * (a - y) ** 2",
        "scale = 3.0",
    ),
    "random numbers": (
        "import numpy as np\nnp.random.seed(1)\n"
        "def loss(a, y): return float(np.random.get_state()[1][0]) * (a - y) ** 2",
        "np.random.seed(3)",
    ),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(before, after):
    space = {"__name__": "own"}
    first_loss = lambda: olx.rollout(LINE, space["loss"], ROUNDS, START).losses[0]
    exec(before, space)
    assert first_loss() == 1.0
    exec(after, space)
    assert first_loss() == 3.0


UNSEEN = {"what it imports", "all names", "random numbers"}
DRIVERS = {
    "run": lambda loss: olx.run(LINE, loss, ROUNDS, START).losses[0],
    "run by name": lambda loss: olx.run(LINE, loss, ROUNDS, START, implementation="dense").losses[
        0
    ],
    "sweep": lambda loss: olx.sweep(LINES, loss, ROUNDS, START).losses[0, 0],
    "step": lambda loss: olx.step(LINE, loss, LINE.init(START), *SECOND).loss,
    "a long step": lambda loss: olx.step(LINE, loss, LINE.init(WIDE[0]), *WIDE).loss,
    "measure": lambda loss: (
        olx.run(
            LINE,
            olx.losses.squared,
            ROUNDS,
            START,
            measure=lambda feedback: loss(feedback.action, 1.0),
            keep=olx.keep.totals,
        ).curve.sums[0]
        / 2  # rounds
    ),
}
LINES = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=[0.1, 0.2])
SECOND = np.array([0.0, 1.0]), 1.0
WIDE = jnp.zeros(5_000), 1.0


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS)
@pytest.mark.parametrize("name", [name for name in CHANGES if name not in UNSEEN])
def test_kept_programs_see_a_change(driver, name):
    before, after = CHANGES[name]
    space = {"__name__": "own"}
    exec(before, space)
    for scale, change in ((1.0, ""), (1.0, ""), (3.0, after)):
        exec(change, space)
        assert driver(space["loss"]) == scale


def test_what_a_large_object_holds_is_compared_to_a_limit():
    """A chain of objects and a large table are read in milliseconds; near parts by value."""
    space = {}
    chain = (
        "class Node: pass\no = None\nfor i in range(3000):\n  n = Node()\n  n.next = o\n  o = n\n"
    )
    table = "o.table = {i: [float(i)] * 100 for i in range(3000)}\no.scale = 1.0\n"
    exec(f"{chain}{table}def loss(a, y): return o.scale * (a - y) ** 2", space)
    assert len(visible_readings([space["loss"]])) < 20_000
    for scale in (1.0, 3.0):
        space["o"].scale = scale
        assert DRIVERS["run"](space["loss"]) == scale


def test_predict_sees_a_change():
    space = {"scale": 1.0}
    exec("def act(hparams, w, x): return scale * (w @ x)", space)
    learner = olx.Learner(None, lambda _, w: w, space["act"], lambda _, w, feedback: w)
    state = learner.init(jnp.ones(2))
    for scale in (1.0, 3.0):
        space["scale"] = scale
        assert olx.predict(learner, state, np.eye(2)).tolist() == [scale] * 2


def test_the_best_in_hindsight_sees_a_change():
    space = {}
    exec("def loss(a, y): return scale + (a - y) ** 2", space)
    for scale in (1.0, 3.0):
        space["scale"] = scale
        best = olx.hindsight.best_in_hindsight(space["loss"], ROUNDS, START, apply=olx.dot)
        np.testing.assert_allclose(best.value, 2 * scale, rtol=1e-5)


def test_the_starts_of_a_sweep_see_a_change():
    space = {}
    exec("def start(hparams, params): return scale + params", space)
    make = lambda eta: olx.Learner(eta, space["start"], score_of, stay)
    for scale in (1.0, 3.0):
        space["scale"] = scale
        runs = olx.sweep(olx.batch(make, eta=[0.1, 0.2]), squared, ROUNDS, START)
        assert runs.losses[0, 0] == (scale - 1) ** 2


def score_of(hparams, w, context):
    return w @ context


def stay(hparams, w, feedback):
    return w


def test_the_start_sees_a_change():
    space = {"scale": [1.0]}
    exec("def start(hparams, params): return scale[0] + params", space)
    learner = olx.Learner(None, space["start"], lambda _, w, x: w @ x, lambda _, w, feedback: w)
    assert total(learner, squared) == 0.0
    space["scale"][0] = 3.0
    assert total(learner, squared) == 8.0


def counted(hparams, state, feedback):
    return state - sum(0.1 for _ in range(hparams)) * feedback.grad * feedback.context


class Unhashable:
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __call__(self, state, feedback):
        return feedback.value


def test_what_cannot_be_kept_is_played_as_it_is():
    run = olx.rollout(LINE, squared, ROUNDS, START, record=Unhashable())
    np.testing.assert_array_equal(run.trace, run.losses)
    plain = olx.Learner(1, lambda _, w: w, lambda _, w, x: w @ x, counted)
    assert total(plain, squared) == total(LINE, squared)


def test_a_function_may_hold_a_tracer():
    losses = {
        "closure": lambda scale: lambda a, y: scale * squared(a, y),
        "default": lambda scale: lambda a, y, scale=scale: scale * squared(a, y),
        "method": lambda scale: Scaled(scale).loss,
    }
    for make in losses.values():
        play = lambda scale, make=make: total(LINE, make(scale))
        with jax.checking_leaks():
            slope = jax.jit(jax.grad(play))(2.0)
        np.testing.assert_allclose(slope, jax.grad(lambda s: total(LINE, Partial(scaled, s)))(2.0))


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def loss(self, a, y):
        return self.scale * squared(a, y)
