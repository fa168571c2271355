"""Which form of a program is taken, why, and that the choice does not change the numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses, mirrors, regularizers
from olx.convex import sets
from olx.engine import compile
from olx.engine.implementations import IMPLEMENTATIONS
from olx.engine.implementations.dense import dense_program
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

ON_CPU = jax.default_backend() == "cpu"
LEARNERS = {
    "euclidean": olx.omd(0.1, mirrors.euclidean()),
    "simplex": olx.omd(0.1, mirrors.euclidean(sets.simplex())),
    "hypentropy": olx.omd(0.1, mirrors.hypentropy(0.5)),
    "adagrad": olx.ftrl(0.1, regularizers.adagrad()),
}


def stream(width):
    x = np.random.default_rng(width).normal(size=(40, width))
    return olx.Rounds(x, x.sum(1))


def run(inner, width=5, **options):
    params = jnp.full(width, 1 / width)
    return olx.run(olx.linear(inner), losses.squared, stream(width), params, **options)


def rollout(inner, width):
    params = jnp.full(width, 1 / width)
    return olx.rollout(olx.linear(inner), losses.squared, stream(width), params)


@pytest.mark.skipif(not ON_CPU, reason="one kernel is for the CPU")
def test_this_version_of_jax_still_takes_the_attribute():
    reason = compile.unavailable()
    assert not reason, (
        f"jax {jax.__version__}: {reason}. The engine plays on, through plain loops, some times "
        "slower: see olx/engine/compile.py."
    )


@pytest.mark.skipif(not ON_CPU, reason="one kernel is for the CPU")
def test_the_euclidean_map_is_one_kernel(capsys):
    run(LEARNERS["euclidean"], explain=True)
    first, *table = capsys.readouterr().out.splitlines()
    assert first == "run: one kernel; chunks of 64 rounds on cpu."
    reasons = dict(line.split(maxsplit=1) for line in table)
    assert list(reasons) == [one.name for one in IMPLEMENTATIONS]
    assert reasons["dense"] == "used"
    assert reasons["blocks"] == "one learner is played, not a batch"
    assert reasons["sparse_rows"] == "the rows are dense"


@pytest.mark.skipif(not ON_CPU, reason="one kernel is for the CPU")
def test_a_sort_is_a_plain_loop(capsys):
    run(LEARNERS["simplex"], explain=True)
    said = capsys.readouterr().out
    assert said.startswith("run: plain loop: one kernel cannot hold sort, which a round needs;")


def test_nothing_is_said_unless_asked_for(capsys):
    run(LEARNERS["euclidean"])
    assert capsys.readouterr().out == ""


def test_off_the_cpu_the_loop_is_plain(capsys, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    monkeypatch.setattr(compile, "unavailable", compile.unavailable.__wrapped__)
    seen = run(LEARNERS["euclidean"], explain=True)
    said = capsys.readouterr().out
    assert said.startswith("run: plain loop: one kernel is for the CPU, this is tpu;")
    np.testing.assert_allclose(seen.losses, rollout(LEARNERS["euclidean"], 5).losses, 1e-12, 1e-12)


@pytest.mark.skipif(not ON_CPU, reason="one kernel is for the CPU")
@pytest.mark.parametrize("name", ["euclidean", "hypentropy", "adagrad"])
def test_when_the_compiler_refuses_the_plain_loop_gives_the_same(name, capsys, monkeypatch):
    def refuse(*_, **__):
        raise jax.errors.JaxRuntimeError("INTERNAL: not in this version\nand more")

    monkeypatch.setattr(jax.stages.Lowered, "compile", refuse)
    seen = run(LEARNERS[name], width=7, explain=True)
    said = capsys.readouterr().out
    assert "plain loop: the compiler refuses one kernel (INTERNAL: not in this version);" in said
    wanted = rollout(LEARNERS[name], 7)
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12, 1e-12)
    np.testing.assert_allclose(seen.state.theta, wanted.state.theta, 1e-12, 1e-12)


def test_a_version_that_does_not_know_the_attribute_is_noticed(monkeypatch):
    def unknown(*_, **__):
        raise ValueError("no such option")

    monkeypatch.setattr(compile, "set_xla_metadata", unknown)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    said = compile.unavailable.__wrapped__()
    assert said == "this version of jax does not take the attribute (ValueError)"


def test_a_version_that_computes_something_else_is_noticed(monkeypatch):
    wrong = lambda tree, **_: jax.tree.map(lambda leaf: leaf + 1, tree)
    monkeypatch.setattr(compile, "set_xla_metadata", wrong)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert compile.unavailable.__wrapped__() == "one kernel gave other numbers on a probe"


def arguments(inner, width=5):
    learner = jax.tree.map(jnp.asarray, olx.linear(inner))
    state = learner.init(jnp.full(width, 1 / width))
    return game_of(learner), state, stream(width), np.array([0, 40], np.int32)


def game_of(learner):
    return numbers_of(learner, losses.squared, lambda *_: None).leaves


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", LEARNERS)
def test_it_is_lowered_for_other_devices_without_a_word_about_cpus(name, platform, monkeypatch):
    monkeypatch.setattr(compile, "unavailable", lambda: "elsewhere")
    game, state, *rest = arguments(LEARNERS[name])
    given = state, game.numbers, *rest
    call, _ = dense_program(Recorder()).forms(game).choose(5, *given)
    exported = jax.export.export(jax.jit(call), platforms=[platform])(*given)
    assert exported.platforms == (platform,)
    assert "xla_cpu" not in exported.mlir_module()


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_sweep_is_lowered_for_other_devices(platform, monkeypatch):
    monkeypatch.setattr(compile, "unavailable", lambda: "elsewhere")
    _, _, rounds, count = arguments(LEARNERS["adagrad"])
    make = lambda eta: olx.linear(olx.ftrl(eta, regularizers.adagrad()))
    learners = olx.batch(make, eta=jnp.array([0.1, 0.2])).learners
    states = jax.vmap(lambda learner: learner.init(jnp.zeros(5)))(learners)
    game = game_of(learners)
    given = states, game.numbers, rounds, count
    call, _ = dense_program(Recorder(), batched=True).forms(game).choose(5, *given)
    exported = jax.export.export(jax.jit(call), platforms=[platform])(*given)
    assert "xla_cpu" not in exported.mlir_module()
