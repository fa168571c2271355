"""Learners as optimizers of optax: the loops of optax play what `olx.rollout` plays."""

import equinox
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import olx
from olx.first_order import adagrad, cocob, coin_betting
from olx.interop.optax import from_optax, to_optax

TARGETS = jax.random.normal(jax.random.key(0), (15, 3))
START = jnp.array([0.3, -0.2, 0.5])
EVEN = jnp.full(3, 1 / 3)


def quadratic(w, target):
    return jnp.sum((w - target) ** 2) / 2


def linear(w, slope):
    return jnp.vdot(w, slope)


LEARNERS = {
    "ogd": (olx.ogd(0.1), START),
    "ogd in a ball": (olx.ogd(olx.schedules.decay(1.0), olx.convex.sets.ball(0.7)), START),
    "hedge": (olx.hedge(0.5), jnp.array([0.2, 0.3, 0.5])),
    "leader on the simplex": (olx.ftrl(0.5, olx.mirrors.negative_entropy()), EVEN),
    "adagrad": (adagrad(0.5), jnp.zeros(3)),
    "optimistic": (olx.optimistic_md(0.1, olx.mirrors.euclidean()), START),
    "coin betting": (coin_betting(5.0), START),
    "cocob": (cocob(2.0), START),
    "adam": (from_optax(optax.adam, learning_rate=0.1), START),
}


def decisions(optimizer, loss, start, **told):
    """The params in the loop that the documentation of optax shows."""

    def step(carry, target):
        w, state = carry
        value, g = jax.value_and_grad(loss)(w, target)
        extra = {"value": value, "value_fn": lambda w: loss(w, target)} if told else {}
        with jax.numpy_dtype_promotion("standard"):
            change, state = optimizer.update(g, state, w, **extra)
        return (optax.apply_updates(w, change), state), w

    return jax.lax.scan(step, (start, optimizer.init(start)), TARGETS)[1]


def played(learner, loss, start):
    rounds = olx.Rounds(None, TARGETS)
    return olx.rollout(learner, loss, rounds, start, record=olx.record.actions).trace


@pytest.mark.parametrize("case", LEARNERS)
def test_it_is_a_rollout(case):
    learner, start = LEARNERS[case]
    loss = linear if case == "hedge" else quadratic
    told = {"told": True} if case == "adam" else {}  # optax tells every optimizer the loss
    found = jax.jit(lambda w: decisions(to_optax(learner), loss, w, **told))(start)
    np.testing.assert_allclose(found, played(learner, loss, start), rtol=1e-12, atol=1e-12)


def test_a_learner_that_starts_at_0_plays_offsets_from_the_params():
    learner = adagrad(0.5)
    moved = lambda v, target: quadratic(START + v, target)
    found = decisions(to_optax(learner), quadratic, START)
    wanted = START + played(learner, moved, jnp.zeros(3))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_array_equal(found[0], START)


def test_a_learner_that_reads_the_loss_is_told_it():
    own = olx.ogd(olx.schedules.own_loss(4.0, 1.5))
    found = decisions(to_optax(own), quadratic, START, told=True)
    np.testing.assert_allclose(found, played(own, quadratic, START), rtol=1e-12)
    with pytest.raises(TypeError, match="reads the value of a round; give it, as"):
        decisions(to_optax(own), quadratic, START)


def test_it_works_in_a_chain():
    clipped = optax.chain(optax.clip(0.25), to_optax(olx.ogd(0.1)))
    other = optax.chain(optax.clip(0.25), optax.sgd(0.1))
    found, wanted = (decisions(one, quadratic, START) for one in (clipped, other))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_after_a_scale_the_params_are_a_moving_average_of_the_decisions():
    """The learner is told the gradients at the params, and each decision gets the share c."""
    learner, mean = coin_betting(5.0), START
    found = decisions(optax.chain(to_optax(learner), optax.scale(0.25)), quadratic, START)
    state = learner.init(START)
    for target, params in zip(TARGETS, found, strict=True):
        np.testing.assert_allclose(params, mean, rtol=1e-12)
        w, g = learner.predict(state), jax.grad(quadratic)(mean, target)
        state = learner.update(state, olx.Feedback(None, w, None, None, 0.0, g))
        mean = mean + 0.25 * (learner.predict(state) - mean)


def test_it_works_in_multi_steps():
    optimizer = optax.MultiSteps(to_optax(adagrad(0.5)), 3)  # it adds up in float32
    found = decisions(optimizer, quadratic, jnp.zeros(3))
    rounds = olx.Rounds(None, TARGETS.reshape(5, 3, 3).mean(1))
    run = olx.rollout(adagrad(0.5), quadratic, rounds, jnp.zeros(3), record=olx.record.actions)
    np.testing.assert_allclose(found, np.repeat(run.trace, 3, 0), rtol=1e-5)


def test_its_numbers_are_leaves_so_64_of_them_are_one_program():
    traced = []

    @jax.jit
    def train(optimizer):
        traced.append(1)
        return decisions(optimizer, quadratic, START)[-1]

    rates = jnp.geomspace(1e-3, 1.0, 64)
    ends = jax.vmap(lambda one: train(to_optax(one)))(olx.batch(olx.ogd, eta=rates).learners)
    assert ends.shape == (64, 3)
    for i in (0, 40):
        alone = train(to_optax(olx.ogd(rates[i])))
        np.testing.assert_allclose(ends[i], alone, rtol=1e-12)
    assert len(traced) == 1


class Net(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        return flax.linen.Dense(1)(jnp.tanh(flax.linen.Dense(8)(x)))[..., 0]


ROWS = jax.random.normal(jax.random.key(1), (32, 2), jnp.float32)
GOALS = jnp.sin(ROWS[:, 0]) * ROWS[:, 1]


def trained(learner, score, params):
    """The mean square before and after some steps, as a ratio."""
    paid = lambda params: jnp.mean((score(params, ROWS) - GOALS) ** 2)
    optimizer = to_optax(learner)

    @jax.jit
    def step(params, state):
        value, slope = jax.value_and_grad(paid)(params)
        with jax.numpy_dtype_promotion("standard"):
            change, state = optimizer.update(slope, state, params)
        return optax.apply_updates(params, change), state, value

    state, values = jax.jit(optimizer.init)(params), []
    for _ in range(100):
        params, state, value = step(params, state)
        values.append(value)
    return values[-1] / values[0]


def test_it_trains_a_network_of_flax():
    net = Net()
    params = jax.jit(net.init)(jax.random.key(2), ROWS)
    assert trained(cocob(), net.apply, params) < 0.5


def test_it_trains_a_network_of_equinox():
    draw = lambda key: equinox.nn.MLP(2, "scalar", 8, 1, key=key, dtype=jnp.float32)
    params, other = equinox.partition(
        equinox.filter_jit(draw)(jax.random.key(2)), equinox.is_inexact_array
    )
    score = lambda params, rows: jax.vmap(equinox.combine(params, other))(rows)
    assert trained(adagrad(0.2), score, params) < 0.5


def updated(learner, start=START, **extra):
    optimizer = to_optax(learner)
    given = {"params": start, **extra}
    return lambda: optimizer.update(given.pop("g", start), optimizer.init(start), **given)


MIX = olx.meta.mix(olx.batch(olx.ogd, eta=jnp.array([0.1, 0.2])), olx.hedge(1.0))
REFUSED = {
    "a predictor": (
        lambda: to_optax(olx.linear(olx.ogd(0.1))),
        "predicts scores of contexts. Give",
    ),
    "a batch": (lambda: to_optax(olx.batch(olx.ogd, eta=TARGETS[0])), "is a batch; give one of"),
    "an optimizer": (lambda: to_optax(optax.sgd(0.1)), "must be a Learner, got"),
    "a reader of rows": (updated(olx.second_order.arow(1.0)), "reads the context of a round; an"),
    "an expert": (
        updated(olx.experts.adahedge(), EVEN),
        "reads the context of a round; an optimizer",
    ),
    "a caller of the loss": (updated(MIX), "reads the loss of a round; give it, as `update(...,"),
    "a simplex": (updated(LEARNERS["leader on the simplex"][0]), "always starts at [0.3333"),
    "an outer start": (updated(olx.hedge(0.5)), "its weights must be positive"),
    "no params": (updated(olx.ogd(0.1), params=None), "`update` needs the params"),
    "a weight": (updated(olx.ogd(0.1), weight=-1.0), "`weight` must be non-negative, got -1"),
    "a gradient": (
        updated(olx.ogd(0.1), g=jnp.zeros(2)),
        "the gradient has shape (2,), `params` has",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_play_is_refused_with_the_remedy(case):
    call, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match="to_optax: ") as refusal:
        call()
    assert words in str(refusal.value)


def test_traced_params_that_it_cannot_start_from_give_nan():
    start = jax.jit(to_optax(LEARNERS["leader on the simplex"][0]).init)
    assert np.isnan(start(START).offset).all()
    np.testing.assert_array_equal(start(EVEN).offset, 0.0)


def test_a_round_of_weight_0_changes_nothing():
    optimizer = to_optax(cocob())
    state = optimizer.init(START)
    change, after = optimizer.update(START, state, START, weight=0.0)
    np.testing.assert_allclose(change, 0.0)
    jax.tree.map(np.testing.assert_array_equal, after, state)


@pytest.mark.parametrize("name", LEARNERS)
def test_optax_finds_what_is_like_the_params(name):
    learner, start = LEARNERS[name]
    optimizer = to_optax(learner)
    state = optimizer.init(start)
    kinds = lambda tree: jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)
    for shapes in (
        jax.eval_shape(optimizer.init, start),
        optimizer.init(jax.eval_shape(jnp.copy, start)),
    ):
        assert kinds(shapes) == kinds(state)
    marked = optax.tree.map_params(
        optimizer, lambda _: True, state, transform_non_params=lambda _: False
    )
    shaped = jax.tree.map(lambda leaf: jnp.shape(leaf) == start.shape, state)
    assert jax.tree.leaves(marked) == jax.tree.leaves(shaped)


OF_ONE_ARRAY = {
    "a root of a matrix": (olx.second_order.adagrad_full(0.3), jnp.zeros(4), 3),
    "density matrices": (olx.omd(0.3, olx.mirrors.von_neumann()), jnp.eye(3) / 3, 2),
    "a box per coordinate": (
        olx.ogd(0.1, olx.convex.sets.box(-jnp.ones(4), jnp.ones(4))),
        jnp.zeros(4),
        2,
    ),
    "a prior": (
        olx.experts.linearized(olx.experts.ada_normal_hedge(0.0, jnp.ones(4), low=-9.0, high=9.0)),
        jnp.full(4, 0.25),
        4,
    ),
    "a tuned scale": (olx.meta.mechanic(olx.second_order.adagrad_full(0.3)), jnp.zeros(6), 4),
}


@pytest.mark.parametrize("name", OF_ONE_ARRAY)
def test_optax_finds_what_is_like_the_params_of_a_learner_of_one_array(name):
    learner, start, count = OF_ONE_ARRAY[name]
    optimizer = to_optax(learner)
    state = optimizer.init(start)
    marked = optax.tree.map_params(
        optimizer, lambda _: True, state, transform_non_params=lambda _: False
    )
    each = zip(jax.tree.leaves(marked), jax.tree.leaves(state), strict=True)
    assert [leaf.shape for mark, leaf in each if mark] == [start.shape] * count
    kinds = lambda tree: jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)
    assert kinds(optimizer.init(jax.eval_shape(jnp.copy, start))) == kinds(state)


def test_a_root_of_a_matrix_has_no_half_precision():
    for kind in (jnp.float16, jnp.bfloat16):
        init = to_optax(olx.second_order.adagrad_full(0.1)).init
        for one in (init, jax.jit(init)):
            with pytest.raises(TypeError, match="has no half precision here"):
                one(jnp.zeros(3, kind))
        assert to_optax(olx.ogd(0.1)).init(jnp.zeros(3, kind)).inner.theta.dtype == kind


def test_optax_maps_params_of_a_tree():
    optimizer = optax.chain(optax.clip(1.0), to_optax(olx.ogd(0.1)))
    params = {"a": jnp.ones(2), "b": jnp.ones((2, 2))}
    names = optax.tree.map_params(
        optimizer, lambda _, name: name, optimizer.init(params), {"a": "A", "b": "B"}
    )
    assert names[1].offset == names[1].inner.theta == {"a": "A", "b": "B"}
