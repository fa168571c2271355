"""A chunk of rounds as one kernel plays as `rollout` does, in interpret mode; no GPU is needed.

It is also lowered for CUDA. `python -m benchmarks.gpu_table` plays the whole table.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas
from jax.experimental.pallas import triton
from scipy.sparse import csr_array
from table import TABLE

import olx
from olx import losses, mirrors
from olx._memory import equations
from olx.engine.arguments import check_game
from olx.engine.game import game_of
from olx.engine.implementations import IMPLEMENTATIONS, choose, gpu_kernel, gpu_resources
from olx.engine.implementations.gpu_legalize import constants_of, play
from olx.engine.implementations.gpu_padding import pad, padded_shape, unpad
from olx.engine.implementations.gpu_rules import RULES
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

X = np.random.default_rng(0).normal(size=(19, 5)) / 3
ROUNDS = olx.Rounds(X, np.sign(X[:, 0] + 0.1))
START, ETAS = jnp.zeros(5), jnp.geomspace(0.01, 0.5, 7)
BLOCKS = {"GPU_PROGRAMS": 2}  # so that a program plays several configurations of a small sweep
KERNEL = {"implementation": "gpu_kernel"}

SAMPLE = [
    "omd simplex",  # a sort
    "omd unseen potential",  # a loop of several games
    "omd density matrices",  # eigenvectors
    "ftrl adagrad l1",
    "newton, oja",  # a refresh of a table
    "boost, potential",  # keys, gathers
    "bandit",  # draws
]


def descent(eta):
    return olx.linear(olx.ogd(eta))


def matrix(eta):
    return olx.second_order.arow(1 + eta)


def single(tree):
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32) if real(leaf) else leaf, tree)


@pytest.mark.parametrize("name", SAMPLE)
def test_learners_of_the_table_play_as_rollout_does(name):
    learner, loss, rounds, params, *_ = TABLE[name]
    seen = olx.run(learner, loss, rounds, params, **KERNEL)
    wanted = olx.rollout(learner, loss, rounds, params)
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12, 1e-12)


def test_single_precision_stays_single_precision():
    learner, rounds, params = single(
        (olx.linear(olx.omd(0.1, mirrors.pnorm(1.5))), ROUNDS, START + 1)
    )
    seen = olx.run(learner, losses.logistic, rounds, params, **KERNEL)
    wanted = olx.rollout(learner, losses.logistic, rounds, params)
    assert seen.losses.dtype == np.float32
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-5)


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_any_number_of_configurations_and_of_features(count, retune):
    retune(**BLOCKS)
    for width in (1, 3, 50, 1000):
        x = np.random.default_rng(width).normal(size=(3, width))
        etas = jnp.geomspace(0.01, 0.5, count)
        given = losses.logistic, olx.Rounds(x, np.sign(x[:, 0])), jnp.zeros(width)
        seen = olx.sweep(olx.batch(descent, eta=etas), *given, **KERNEL)
        wanted = jax.vmap(lambda eta, given=given: olx.rollout(descent(eta), *given).losses)(etas)
        np.testing.assert_allclose(seen.losses, wanted, 1e-12, 1e-12)


@pytest.mark.parametrize("make", [descent, matrix])
def test_chunks_with_a_rest_weights_of_zero_and_what_is_recorded(make, retune):
    retune(CHUNK_ROUNDS=4, **BLOCKS)
    rounds = ROUNDS._replace(weight=np.where(np.arange(19) % 3, 1.0, 0.0))
    record = lambda state, feedback: (feedback.action, feedback.grad)
    batch, given = olx.batch(make, eta=ETAS), (losses.logistic, rounds, START)
    seen = olx.sweep(batch, *given, record=record, **KERNEL)
    wanted = olx.sweep(batch, *given, record=record, implementation="dense")
    for one, other in zip(*map(jax.tree.leaves, (seen, wanted)), strict=True):
        np.testing.assert_allclose(one, other, 1e-11, 1e-12)


def test_curves_are_those_of_the_plain_loop(retune):
    retune(CHUNK_ROUNDS=4, **BLOCKS)
    wrong = lambda feedback: {"wrong": feedback.action * feedback.outcome <= 0}
    given = olx.batch(descent, eta=ETAS), losses.hinge, ROUNDS, START
    options = {"measure": wrong, "keep": olx.keep.every(5)}
    seen, wanted = (olx.sweep(*given, **options, **how).curve for how in (KERNEL, {}))
    np.testing.assert_allclose(seen.total, wanted.total, 1e-12)
    np.testing.assert_array_equal(seen.sums["wrong"], wanted.sums["wrong"])


def test_learners_are_refreshed_when_they_are_due(retune):
    retune(**BLOCKS)
    oja = olx.second_order.oja(2, key=jax.random.key(0))
    make = lambda eta: olx.second_order.sketched_newton(oja, 1 + eta, 5.0, lipschitz=1.0)
    given = olx.batch(make, eta=ETAS), losses.hinge, ROUNDS, START
    seen, wanted = (
        olx.sweep(*given, **how).losses for how in (KERNEL, {"implementation": "dense"})
    )
    np.testing.assert_allclose(seen, wanted, 1e-9, 1e-10)


def test_a_run_that_resumes_ends_in_the_same_bits(tmp_path, retune):
    retune(CHUNK_ROUNDS=4, **BLOCKS)
    given = olx.batch(descent, eta=ETAS), losses.hinge
    first = jax.tree.map(lambda leaf: leaf[:8], ROUNDS)
    saved = lambda: olx.checkpoint(tmp_path / "saved", every=4)
    olx.sweep(*given, first, START, checkpoint=saved(), **KERNEL)
    again = olx.sweep(*given, ROUNDS, START, checkpoint=saved())
    assert saved().implementation() == "gpu_kernel"
    whole = olx.sweep(*given, ROUNDS, START, **KERNEL)
    np.testing.assert_array_equal(again.losses, whole.losses)


def test_bad_numbers_are_refused_by_name_as_by_the_plain_loop(retune):
    retune(FINITE_NUMBERS=1)  # so that they are seen in the output of their round
    bad = ROUNDS._replace(context=np.where(np.arange(95).reshape(19, 5) == 37, np.nan, X))
    with pytest.raises(ValueError, match=r"^run: rounds.context holds nan at row 7, column 2;"):
        olx.run(descent(0.1), losses.logistic, bad, START, **KERNEL)


def test_a_diverged_configuration_shows_at_its_own_index():
    etas = jnp.array([0.1, 1e200, 0.2])
    given = losses.squared, olx.Rounds(X * 1e60, X[:, 0]), START
    seen = olx.sweep(olx.batch(descent, eta=etas), *given, **KERNEL).losses
    assert not np.all(np.isfinite(seen[1]))


def test_sparse_rows_are_refused():
    sparse = ROUNDS._replace(context=olx.streams.sparse_rows(csr_array(X)))
    with pytest.raises(
        ValueError, match=r"'gpu_kernel' cannot play this game: the rows are sparse"
    ):
        olx.run(descent(0.1), losses.hinge, sparse, START, **KERNEL)


def test_a_primitive_without_a_legal_form_is_refused_by_name():
    learner, loss, rounds, params, *_ = TABLE["omd schatten"]
    said = r"cannot play this game: svd has no legal form, in a round of omd\(eta=0.1"
    with pytest.raises(ValueError, match=said):
        olx.run(learner, loss, rounds, params, **KERNEL)


def game(learner):
    numbers = numbers_of(learner, losses.hinge, check_game)
    return game_of("run", numbers, ROUNDS, START, Recorder())


def test_on_a_cpu_it_is_passed_over_without_a_trace(monkeypatch, capsys):
    monkeypatch.setattr(gpu_kernel, "legal_round", None)
    assert choose(game(descent(0.3))).name == "dense"
    olx.run(descent(0.3), losses.hinge, ROUNDS, START, explain=True)
    assert re.search(r"gpu_kernel +for a GPU; this is cpu", capsys.readouterr().out)


def test_on_a_gpu_it_is_taken_and_a_version_that_does_not_fit_is_a_reason(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose(game(descent(0.7))).name == "gpu_kernel"
    monkeypatch.setitem(RULES, "dot_general", lambda given, kinds, outs: [])
    olx._cache.clear()
    reason = gpu_kernel.GPU_KERNEL.cannot(game(descent(0.7)))
    assert reason.startswith(f"jax {jax.__version__} has no GPU form of a round (TypeError")
    assert choose(game(descent(0.7))).name == "dense"
    olx._cache.clear()


def test_on_a_gpu_a_round_without_a_legal_form_is_played_by_the_plain_loop(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    learner, loss, rounds, params, *_ = TABLE["omd schatten"]
    numbers = numbers_of(learner, loss, check_game)
    assert choose(game_of("run", numbers, rounds, params, Recorder())).name == "dense"


def chunk(make, count, span=None):
    """The program of a chunk, lowered for CUDA as on a machine with a GPU."""
    batch = olx.batch(make, eta=jnp.geomspace(0.01, 0.5, count))
    state = jax.vmap(lambda one: one.init(START))(batch.learners)
    function = functools.partial(gpu_kernel.play_chunk, Recorder(fields=("value",)), True, False)
    given = state, batch.learners, losses.hinge, jax.tree.map(jnp.asarray, ROUNDS), span
    return jax.jit(function).trace(*given)


@pytest.mark.parametrize("span", [None, np.array([0, 7], np.int32)])
def test_a_chunk_is_one_call_of_triton_and_nothing_of_the_host(span, retune):
    retune(**BLOCKS)
    lowered = chunk(descent, 7, span).lower(lowering_platforms=("cuda",)).as_text()
    calls = re.findall(r"custom_call @([\w.$]+)", lowered)
    assert calls == ["__gpu$xla.gpu.triton"]
    assert "callback" not in lowered


def test_all_shapes_inside_a_kernel_are_powers_of_two(retune):
    retune(**BLOCKS)
    calls = equations(chunk(matrix, 7).jaxpr.jaxpr)
    kernel = next(one for one in calls if one.primitive.name == "pallas_call").params["jaxpr"]
    kinds = [atom.aval for one in equations(kernel) for atom in one.outvars]
    shapes = {kind.shape for kind in kinds if hasattr(kind, "shape")}
    assert len(shapes) > 5
    assert all(shape == padded_shape(shape) for shape in shapes)


@pytest.mark.parametrize("live", [10, 200, 5000, 40_000])
@pytest.mark.parametrize("count", [1, 1000, 100_000])
def test_a_kernel_is_cut_to_the_limits_of_the_devices(live, count):
    needs = gpu_resources.Resources(live, 16, False)
    found = gpu_resources.cut_of(needs, count)
    assert not found.why_not()
    assert found.registers <= 255
    assert found.registers * 32 * found.warps <= 65_536
    assert found.block * found.shared <= 99 * 1024
    large = gpu_resources.cut_of(needs._replace(live=70_000), count)
    assert "leaves the registers" in large.why_not()


A, B = np.random.default_rng(1).normal(size=(2, 3, 5))
PLACES = np.array([2, 0, 9, 2])
WORDS = np.array([0, 3], np.uint32)
FORMS = {
    "mean": lambda a: jnp.mean(a, 1),
    "maximum": lambda a: jnp.max(jnp.where(a > 0.5, jnp.nan, a), 0),
    "minimum of two": lambda a: jnp.minimum(jnp.where(a > 0.5, jnp.nan, a), 0.1),
    "clip": lambda a: jnp.clip(jnp.where(a > 0.5, jnp.nan, a), -0.1, 0.1),
    "argmax": lambda a: jnp.argmax(jnp.where(a > 0.5, jnp.nan, a), 1),
    "argmin": lambda a: jnp.argmin(a, 0),
    "any": lambda a: jnp.any(a > 1, 1),
    "all": lambda a: jnp.all(a > -3, 1),
    "softmax": lambda a: jax.nn.softmax(a, 1),
    "product": lambda a: a @ B.T,
    "large product": lambda a: jnp.tile(a, (7, 4)) @ jnp.tile(B, (7, 4)).T,
    "prefix sum": lambda a: jnp.cumsum(a, 1),
    "suffix sum": lambda a: lax.cumsum(a, 1, reverse=True),
    "reshape": lambda a: a.reshape(5, 3) + a.reshape(15)[:5, None],
    "slice": lambda a: a[1:, 4:0:-2],
    "join": lambda a: jnp.concatenate([a, B[:, :0], B, a[:, :1]], 1),
    "stack": lambda a: jnp.stack([a, B], 1),
    "pad": lambda a: lax.pad(a, 0.5, ((1, 2, 1), (0, 3, 0))),
    "reverse": lambda a: a[::-1, ::-1],
    "sort": lambda a: jnp.sort(jnp.where(a > 0.5, jnp.nan, a), 1),
    "order": lambda a: jnp.argsort(a, 0),
    "take": lambda a: jnp.take(a, PLACES, 0),
    "take along": lambda a: jnp.take_along_axis(a, jnp.argsort(a, 1), 1),
    "dynamic slice": lambda a: lax.dynamic_slice(a, (PLACES[1], PLACES[2]), (2, 3)),
    "set": lambda a: a.at[PLACES].set(a[0]),
    "add at": lambda a: a.at[PLACES, 1].add(1.0),
    "write a slice": jax.vmap(lambda x: lax.dynamic_update_slice(x, x[:2], (9,))),
    "loop": lambda a: jax.vmap(lambda x: lax.while_loop(lambda y: y.sum() < 9, lambda y: y + 1, x))(
        a
    ),
    "scan": lambda a: lax.scan(lambda c, x: (c + x, c * x), B[0], a, reverse=True)[1],
    "branch": lambda a: lax.cond(a[0, 0] > 0, jnp.sin, jnp.cos, a),
    "eigenvalues": lambda a: jnp.linalg.eigh(a @ a.T)[0],
    "draws": lambda a: (
        a + jax.random.uniform(jax.random.split(jax.random.wrap_key_data(WORDS), 3)[1], (3, 5))
    ),
    "folded": lambda a: (
        a + jax.random.normal(jax.random.fold_in(jax.random.wrap_key_data(WORDS), 7), (5,))
    ),
}


def legal_form(name):
    """The legal form of a function, as one of padded arrays, and the shape of its result."""
    closed = jax.make_jaxpr(FORMS[name])(A)
    held = {key: pad(jnp.asarray(value)) for key, value in constants_of(closed).items()}

    def legal(x, *constants):
        return play(closed, dict(zip(held, constants, strict=True)), x)[0]

    return legal, list(held.values()), closed.out_avals[0].shape


@pytest.mark.parametrize("name", FORMS)
def test_a_legal_form_gives_the_numbers_of_the_primitive(name):
    """The padding holds NaN, which no result may show."""
    check_form(*legal_form(name), FORMS[name](jnp.asarray(A)))


def check_form(legal, held, shape, wanted):
    padded = np.full(padded_shape(A.shape), np.nan)
    padded[:3, :5] = A
    seen = jax.jit(legal)(padded, *held)
    assert seen.shape == padded_shape(shape)
    np.testing.assert_allclose(unpad(seen, shape), wanted, 1e-12, 1e-12)


@pytest.mark.parametrize("name", ["maximum", "minimum of two", "clip", "argmax"])
def test_nan_stays_though_the_maximum_of_a_device_drops_it(name, monkeypatch):
    form, wanted = legal_form(name), FORMS[name](jnp.asarray(A))  # before the change
    assert name == "argmax" or np.isnan(wanted).any()
    monkeypatch.setattr(lax, "max", jnp.fmax)
    monkeypatch.setattr(lax, "min", jnp.fmin)
    monkeypatch.setattr(jnp, "max", jnp.nanmax)
    check_form(*form, wanted)


@pytest.mark.parametrize("name", FORMS)
def test_a_legal_form_is_one_that_triton_has(name):
    legal, held, _ = legal_form(name)
    given = [jnp.zeros(padded_shape(A.shape)), *held]

    def kernel(*references):
        references[-1][...] = legal(*(one[...] for one in references[:-1]))

    shape = jax.eval_shape(legal, *given)
    call = pallas.pallas_call(kernel, shape, compiler_params=triton.CompilerParams())
    jax.jit(call).trace(*given).lower(lowering_platforms=("cuda",))


def test_it_comes_before_what_launches_kernels_in_every_round():
    names = [one.name for one in IMPLEMENTATIONS]
    assert names.index("gpu_kernel") < names.index("blocks") < names.index("dense")
