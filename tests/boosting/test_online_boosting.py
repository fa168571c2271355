"""Online boosting: the rules, their theorems, and the ways in which a boosted learner is played."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_online_boosting as reference
import scipy.sparse
from scipy.stats import binom

import olx
from olx import boosting, losses, streams
from olx.boosting import adaboost_ol, boost, online_bbm
from olx.boosting.boost import init
from olx.boosting.online_bbm import at_most_half
from olx.lab.names import make as make_from_config

KEY = jax.random.key(5)
WIDTH, COPIES, GAMMA, ETA = 6, 11, 0.1, 0.1
ROUNDS, TRUTH = streams.linear_classification(KEY, 2000, WIDTH, noise=0.1)
X, Y = np.asarray(ROUNDS.context), np.asarray(ROUNDS.outcome)
ZEROS = jnp.zeros(WIDTH)
WEAK = olx.linear(olx.ogd(ETA))
SOME = jax.tree.map(lambda leaf: leaf[:200], ROUNDS)


def exponential(i, s):
    return reference.exponential_potential(COPIES, GAMMA, 0.2, i, s)


def majority(i, s):
    return reference.bbm_potential(COPIES, GAMMA, i, s)


RULES = {
    "BBM": (online_bbm(GAMMA), lambda weak: reference.online_bbm(weak, X, Y, GAMMA)),
    "exponential": (
        boosting.potential_booster(boosting.exponential_potential(COPIES, GAMMA, 0.2)),
        lambda weak: reference.potential_booster(weak, X, Y, exponential),
    ),
    "majority": (
        boosting.potential_booster(boosting.majority_potential(COPIES, GAMMA)),
        lambda weak: reference.potential_booster(weak, X, Y, majority),
    ),
    "AdaBoost.OL": (adaboost_ol(), lambda weak: reference.adaboost_ol(weak, X, Y)),
    "OSBoost": (boosting.osboost(GAMMA), lambda weak: reference.osboost(weak, X, Y, GAMMA)),
    "OSBoost.OCP": (
        boosting.osboost_ocp(GAMMA),
        lambda weak: reference.osboost_ocp(weak, X, Y, GAMMA),
    ),
}


def close(seen, wanted, tolerance=1e-8):
    np.testing.assert_allclose(seen, wanted, tolerance, tolerance)


@pytest.mark.parametrize("name", RULES)
def test_it_is_its_reference_over_many_rounds(name):
    rule, play = RULES[name]
    weak = [reference.HingeDescent(WIDTH, ETA) for _ in range(COPIES)]
    wanted = play(weak)
    learner = boost(WEAK, COPIES, rule, loss=losses.hinge)
    seen = olx.run(learner, losses.zero_one, ROUNDS, ZEROS, record=olx.record.actions)
    close(seen.state.inner.theta, [one.w for one in weak])
    predicted = np.where(np.asarray(seen.trace) >= 0, 1, -1)
    if name == "AdaBoost.OL":
        np.testing.assert_array_equal(predicted, wanted.partial[:, -1])
        close(seen.trace, np.sum(wanted.alpha * wanted.h, axis=1))
        close(seen.state.rule.alpha, wanted.alphas[-1])
        np.testing.assert_array_equal(seen.state.rule.log_v, wanted.log_v[-1])
    else:
        np.testing.assert_array_equal(predicted, wanted.prediction)
    if name == "OSBoost.OCP":
        close(seen.state.rule.alpha, wanted.alphas[-1])


def test_the_expected_vote_gives_the_chance_of_a_mistake():
    wanted = reference.adaboost_ol(
        [reference.HingeDescent(WIDTH, ETA) for _ in range(COPIES)], X[:200], Y[:200]
    )
    learner = boost(WEAK, COPIES, boosting.adaboost_ol_mean(), loss=losses.hinge)
    seen = olx.run(learner, losses.zero_one, SOME, ZEROS, record=olx.record.actions)
    mistakes = wanted.chance * (wanted.partial != Y[:200, None])
    close((1 - Y[:200] * np.asarray(seen.trace)) / 2, mistakes.sum(1))


def test_drawn_votes_err_as_often_as_expected():
    make = lambda key: boost(WEAK, COPIES, adaboost_ol(key), loss=losses.hinge)
    batch = olx.batch(make, key=jax.random.split(KEY, 64))
    seen = olx.sweep(batch, losses.zero_one, SOME, ZEROS, record=olx.record.actions)
    assert set(np.unique(seen.trace)) == {-1.0, 1.0}
    learner = boost(WEAK, COPIES, boosting.adaboost_ol_mean(), loss=losses.hinge)
    mean = olx.run(learner, losses.zero_one, SOME, ZEROS, record=olx.record.actions).trace
    chance = (1 - Y[:200] * np.asarray(mean)) / 2
    spread = np.sqrt(np.sum(chance * (1 - chance)) / 64)
    assert spread > 0
    assert abs(np.mean(seen.losses.sum(1)) - chance.sum()) < 5 * spread


def counting():
    """A weak learner that always votes +1 and adds up the weights of its rounds."""
    return olx.Learner(
        None,
        lambda hp, params: jnp.zeros((), params.dtype),
        lambda hp, state, x: jnp.ones_like(state),
        lambda hp, state, feedback: state + feedback.weight,
    )


def test_copies_are_passed_rounds_with_the_chance_of_their_importance():
    rule, weight = online_bbm(GAMMA), np.arange(2000) % 3.0
    play = lambda key: olx.run(
        boost(counting(), COPIES, rule, key=key), losses.zero_one, ROUNDS, ZEROS
    )
    mean, drawn = play(None).state.inner, play(KEY).state.inner
    np.testing.assert_array_equal(drawn, np.round(drawn))
    assert np.all(np.abs(drawn - mean) <= 5 * np.sqrt(mean))
    assert np.any(drawn != mean)
    weighed = olx.run(
        boost(counting(), COPIES, rule), losses.zero_one, ROUNDS._replace(weight=weight), ZEROS
    )
    tables = [reference.Table(np.ones(2000)) for _ in range(COPIES)]
    weights = reference.online_bbm(tables, X, Y, GAMMA).p
    close(weighed.state.inner, weight @ weights)


def reading():
    """A weak learner that reads its own vote out of the context; its state is its number."""
    return olx.Learner(
        None,
        lambda hp, params: jnp.zeros((), jnp.int32),
        lambda hp, state, votes: votes[state],
        lambda hp, state, feedback: state,
    )


def numbered(hp, params):
    return init(hp, params)._replace(inner=jnp.arange(hp.n))


def voting(n, rule, **options):
    return dataclasses.replace(boost(reading(), n, rule, **options), init_fn=numbered)


def table_of_votes(kind, n, rounds=120):
    draw = np.random.default_rng(n)
    y = draw.choice([-1.0, 1.0], rounds)
    right = {
        "coins": draw.random((rounds, n)) < 0.5,
        "good": draw.random((rounds, n)) < 0.7,
        "all wrong": np.zeros((rounds, n), bool),
        "all right": np.ones((rounds, n), bool),
        "first half wrong": np.tile(np.arange(n) >= n / 2, (rounds, 1)),
        "just lost": np.argsort(draw.random((rounds, n))) < n / 2 - 0.6,
        "alternating": (np.arange(n) + np.arange(rounds)[:, None]) % 2 == 0,
    }[kind]
    return olx.Rounds(np.where(right, 1.0, -1.0) * y[:, None], y)


KINDS = ["coins", "good", "all wrong", "all right", "first half wrong", "just lost", "alternating"]


@pytest.mark.parametrize("n", [1, 8, 101])
def test_lemma_8_is_an_equality_for_any_votes(n):
    learner, zeros = voting(n, online_bbm(0.07)), jnp.zeros(n)
    for kind in KINDS:
        rounds = table_of_votes(kind, n)
        for weight in (np.ones(120), np.arange(120) % 3 * 0.7):
            game = losses.zero_one, rounds._replace(weight=weight), zeros, zeros
            proofs = olx.certify(learner, *game)
            assert bool(proofs.holds), f"{kind}: {proofs}"
            exact = proofs["exact_mistakes"]
            np.testing.assert_allclose(exact.left, exact.right, rtol=0, atol=1e-9)
            y, s = rounds.outcome, np.sum(rounds.context, axis=1)
            assert exact.left[-1] == pytest.approx(weight @ (y * s <= 0))


@pytest.mark.parametrize("n", [1, 12])
def test_the_theorems_of_adaboost_hold_for_any_votes(n):
    learner, zeros = voting(n, adaboost_ol()), jnp.zeros(n)
    for kind in KINDS:
        proofs = olx.certify(learner, losses.zero_one, table_of_votes(kind, n), zeros, zeros)
        assert bool(proofs.holds), f"{kind}: {proofs}"
        assert np.isfinite(proofs["partial_votes"].right[-1])


def test_measured_regrets_prove_theorem_11():
    run = reference.adaboost_ol([reference.HingeDescent(WIDTH, ETA) for _ in range(5)], X, Y)
    left, right, regrets = reference.theorem11(run, Y)
    assert left <= right
    assert np.all(regrets <= 6 * math.sqrt(len(Y)))
    learner = boost(WEAK, 5, adaboost_ol(), loss=losses.hinge)
    proofs = olx.certify(learner, losses.zero_one, ROUNDS, ZEROS, ZEROS, keep=olx.keep.totals)
    proof = proofs["partial_votes"]
    assert float(proof.left[-1]) == pytest.approx(left, rel=1e-9)
    assert right <= proof.right[-1]
    expected, bound = reference.hedge_over_experts(run, Y)
    drawn = proofs["drawn_vote"]
    close([drawn.left[-1], drawn.right[-1]], [expected, bound])


def test_no_constant_below_6_bounds_the_regret_of_the_factors():
    """Slopes that alternate at the end of the interval, then push the factor to the other end."""
    t, a, paid, total = 20_000, 0.0, 0.0, 0.0
    for s in range(1, t + 1):
        eta = 4 / math.sqrt(s)
        z = 1.0 if a < 2 - eta / 2 and s <= t - math.sqrt(t) else -1.0
        paid, total, a = paid - z * a, total + z, min(2.0, max(-2.0, a + eta * z))
    assert 5.7 * math.sqrt(t) < paid + 2 * abs(total) <= 6 * math.sqrt(t)


@pytest.mark.parametrize("share", np.linspace(0, 1, 41))
def test_lemma_10(share):
    least, bound = reference.lemma10(share)
    assert least <= bound + 1e-15


WEAK_THEOREMS = {
    "BBM": (online_bbm(0.1), olx.theorems.majority_mistakes_at),
    "AdaBoost.OL": (
        adaboost_ol(),
        lambda excess: olx.theorems.weak_adaboost_mistakes(0.1, excess),
    ),
}


@pytest.mark.parametrize("name", WEAK_THEOREMS)
def test_theorems_about_weak_learners_name_a_broken_condition(name):
    rule, theorem = WEAK_THEOREMS[name]
    zeros, n = jnp.zeros(25), 25
    rounds, _ = streams.weak_votes(KEY, 600, n, 0.1)
    proofs = olx.certify(
        voting(n, rule), losses.zero_one, rounds, zeros, zeros, theorems=(theorem(25.0),)
    )
    assert bool(proofs.holds), str(proofs)
    assert np.isfinite(proofs[0].right[-1])
    bad = table_of_votes("all wrong", n)
    proofs = olx.certify(
        voting(n, rule), losses.zero_one, bad, zeros, zeros, theorems=(theorem(1.0),)
    )
    assert np.isposinf(proofs[0].right[-1])
    assert "edge" in str(proofs[0])


POTENTIALS = {
    "exponential": boosting.exponential_potential(7, 0.1, 0.3),
    "majority": boosting.majority_potential(7, 0.1),
}


@pytest.mark.parametrize("name", POTENTIALS)
def test_lemma_8_holds_for_potentials(name):
    learner = voting(7, boosting.potential_booster(POTENTIALS[name]))
    for kind in KINDS:
        game = losses.zero_one, table_of_votes(kind, 7), jnp.zeros(7), jnp.zeros(7)
        proof = olx.certify(learner, *game, theorems=(olx.theorems.potential_mistakes(0.1),))[0]
        assert bool(proof.holds), f"{kind}: {proof}"
        if name == "majority":
            np.testing.assert_allclose(proof.left, proof.right, rtol=0, atol=1e-9)
        assert np.isfinite(proof.right[-1])


def test_a_potential_that_does_not_fall_fast_enough_is_named():
    rule = boosting.potential_booster(boosting.exponential_potential(7, 0.1, 0.3))
    game = losses.zero_one, table_of_votes("coins", 7), jnp.zeros(7), jnp.zeros(7)
    proof = olx.certify(voting(7, rule), *game, theorems=(olx.theorems.potential_mistakes(0.01),))[
        0
    ]
    assert np.isposinf(proof.right[-1])
    assert "the potentials must meet (3.4)" in str(proof)


def test_a_potential_that_increases_is_seen():
    learner = boost(WEAK, 5, boosting.potential_booster(lambda i, s: jnp.exp(0.1 * s)))
    run = olx.run(learner, losses.hinge, SOME, ZEROS)
    assert np.all(np.isnan(run.losses[1:]))


def test_divergence_of_the_copies_is_seen():
    learner = boost(olx.linear(olx.ogd(1e200)), 5, online_bbm(0.1), loss=losses.squared)
    assert np.isnan(olx.run(learner, losses.hinge, SOME, ZEROS).losses[-1])


@pytest.mark.parametrize("n", [5, 100, 2001])
def test_the_table_of_bbm_is_accurate_in_single_precision(n):
    gamma = 0.1
    table = jax.jit(lambda gamma: online_bbm(gamma).init(n, jnp.float32).p)
    p = np.asarray(table(np.float32(gamma)))
    assert p.dtype == np.float32
    for i in {1, 2, n // 2, n - 1, n}:
        chances = binom.pmf(np.arange(n - i + 1), n - i, 0.5 + gamma / 2)
        k = n // 2 - np.arange(n // 2 + 1)
        inside = k <= n - i
        wanted = np.where(inside, chances[np.where(inside, k, 0)], 0.0) / chances.max()
        np.testing.assert_allclose(p[i - 1, :-1], wanted, rtol=2e-5, atol=1e-30)
        assert p[i - 1, -1] == 0
    first = float(jax.jit(at_most_half, static_argnums=1)(np.float32(gamma), n))
    assert first == pytest.approx(binom.cdf(n // 2, n, 0.5 + gamma / 2), rel=1e-4)
    assert first <= math.exp(-n * gamma**2 / 2)


def test_the_table_of_bbm_is_differentiable_in_gamma():
    table = jax.jit(lambda gamma: online_bbm(gamma).init(9, jnp.float64).p)
    slope = jax.jit(jax.jacfwd(table))(0.1)
    close(slope, (table(0.1 + 1e-6) - table(0.1 - 1e-6)) / 2e-6, 1e-6)
    assert np.any(slope != 0)


def test_the_votes_of_the_lower_bound_err_as_the_binomial_says():
    n, gamma, rounds = 25, 0.05, 20_000
    stream = streams.weak_votes(KEY, rounds, n, gamma)
    run = olx.run(voting(n, online_bbm(gamma)), losses.zero_one, stream.rounds, jnp.zeros(n))
    wanted = reference.majority_error(n, gamma)
    assert abs(np.mean(run.losses) - wanted) < 5 * math.sqrt(wanted / rounds)
    np.testing.assert_array_equal(
        run.losses, np.asarray(stream.rounds.outcome) * (stream.rounds.context @ stream.truth) <= 0
    )
    blind = streams.weak_votes(KEY, 4000, n, gamma, blind=4000).rounds
    assert abs(np.mean(blind.context * blind.outcome[:, None])) < 5 / math.sqrt(4000 * n)


def network(w, x):
    return jnp.vdot(w["out"], jnp.tanh(w["hidden"] @ x))


START = {"hidden": jax.random.normal(KEY, (4, WIDTH)), "out": jnp.ones(4) / 4}
LEARNERS = {
    "ogd": (WEAK, ZEROS),
    "perceptron": (olx.classification.perceptron(), ZEROS),
    "PA-I": (olx.classification.passive_aggressive_1(0.1), ZEROS),
    "AROW": (olx.second_order.arow(1.0), ZEROS),
    "AdaGrad": (olx.linear(olx.first_order.adagrad(0.3)), ZEROS),
    "network": (olx.model(olx.ogd(0.05), network), START),
    "boost": (boost(WEAK, 3, adaboost_ol(), loss=losses.hinge), ZEROS),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_any_predictor_is_boosted(name):
    weak, params = LEARNERS[name]
    learner = boost(weak, 7, online_bbm(0.1), loss=losses.hinge)
    seen = olx.run(learner, losses.zero_one, ROUNDS, params)
    assert seen.losses.mean() < 0.3  # 0.1 of the labels are flipped
    states = jax.tree.leaves(seen.state.inner)
    assert all(len(leaf) == 7 for leaf in states)
    apart = [np.ptp(np.asarray(leaf, float), axis=0).max() for leaf in states]
    assert max(apart) > 0, "all copies learned the same"


def rows(count=60, width=23):
    draw = np.random.default_rng(3)
    dense = draw.normal(size=(count, width)) * (draw.random((count, width)) < 0.3)
    return dense, streams.sparse_rows(scipy.sparse.csr_array(dense))


SPARSE = {
    "ogd": WEAK,
    "AdaGrad": olx.linear(olx.first_order.adagrad(0.3)),
    "PA-I": olx.classification.passive_aggressive_1(0.1),
    "boost": boost(WEAK, 3, online_bbm(0.1), loss=losses.hinge),
    "sketch": olx.second_order.sketched_newton(
        olx.second_order.oja(2, key=KEY), 4.0, 6.0, curvature=0.1
    ),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_are_dense_rows(name):
    (dense, sparse), zeros = rows(), jnp.zeros(23)
    y = np.where(dense @ np.linspace(-1, 1, 23) >= 0, 1.0, -1.0)
    learner = boost(SPARSE[name], 23, adaboost_ol(), loss=losses.hinge)
    options = {"record": olx.record.actions}
    wanted = olx.run(learner, losses.logistic, olx.Rounds(dense, y), zeros, **options)
    seen = olx.run(learner, losses.logistic, olx.Rounds(sparse, y), zeros, **options)
    pairs = jax.tree.map(close, (seen.trace, seen.state), (wanted.trace, wanted.state))
    assert not jax.tree.leaves(pairs)


def test_a_sweep_of_64_boosted_learners_with_100_copies_is_one_program():
    make = lambda gamma, eta: boost(
        olx.linear(olx.ogd(eta)), 100, online_bbm(gamma), loss=losses.hinge
    )
    grid = jnp.geomspace(0.01, 0.4, 64), jnp.geomspace(0.01, 1.0, 64)
    seen = olx.sweep(jax.vmap(make)(*grid), losses.logistic, SOME, ZEROS)
    assert seen.losses.shape == (64, 200)
    for i in (0, 17, 63):
        alone = olx.run(make(grid[0][i], grid[1][i]), losses.logistic, SOME, ZEROS)
        close(seen.losses[i], alone.losses, 1e-10)


def bits(leaf):
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def pieces(most=4):
    for at in range(0, 200, 50):
        if at == 50 * most:
            raise KeyboardInterrupt
        yield jax.tree.map(lambda leaf, at=at: leaf[at : at + 50], SOME)


def test_a_run_that_is_interrupted_and_resumed_has_the_same_bits(tmp_path):
    learner = boost(WEAK, 5, adaboost_ol(KEY), loss=losses.hinge, key=KEY)
    play = lambda rounds, **options: olx.run(learner, losses.logistic, rounds, ZEROS, **options)
    saving = lambda: olx.checkpoint(tmp_path, every=1)
    with pytest.raises(KeyboardInterrupt):
        play(pieces(2), checkpoint=saving())
    seen, whole = play(pieces(), checkpoint=saving()), play(SOME)
    np.testing.assert_array_equal(seen.losses, whole.losses)
    same = lambda a, b: np.testing.assert_array_equal(bits(a), bits(b))
    jax.tree.map(same, seen.state, whole.state)


def test_a_sweep_is_certified():
    make = lambda gamma: boost(WEAK, 9, online_bbm(gamma), loss=losses.hinge)
    batch = olx.batch(make, gamma=jnp.array([0.02, 0.1, 0.3]))
    proofs = olx.certify(batch, losses.zero_one, SOME, ZEROS, ZEROS)
    assert np.all(proofs.holds)
    exact = proofs["exact_mistakes"]
    np.testing.assert_allclose(exact.left, exact.right, rtol=0, atol=1e-9)


def test_copies_of_a_learner_with_a_key_draw_for_themselves():
    inner = boost(WEAK, 3, online_bbm(0.1), loss=losses.hinge, key=KEY)
    state = jax.jit(boost(inner, 4, online_bbm(0.1)).init)(ZEROS)
    assert len(np.unique(jax.random.key_data(state.inner.key), axis=0)) == 4


def test_a_config_describes_a_boosted_learner():
    inner = {"name": "ogd", "eta": 0.1, "linear": True}
    rule = {"name": "online_bbm", "gamma": 0.1}
    table = {"name": "boost", "inner": inner, "n": 5, "rule": rule, "loss": "hinge"}
    made = make_from_config("learner", table, olx.Learner)
    wanted = boost(WEAK, 5, online_bbm(0.1), loss=losses.hinge)
    assert jax.tree.structure(made) == jax.tree.structure(wanted)


def refused(make, kind, message):
    with pytest.raises(kind) as caught:
        make()
    assert str(caught.value) == message


def test_bad_arguments_are_refused_by_name():
    rule = online_bbm(0.1)
    refused(
        lambda: boost(WEAK, 0, rule),
        ValueError,
        "boost: `n` must be an integer of at least 1, got 0.",
    )
    for gamma in (0.0, 0.5, -1.0):
        for make in (online_bbm, boosting.osboost, boosting.osboost_ocp):
            said = f"{make.__name__}: `gamma` must lie in (0, 0.5), got {gamma}."
            refused(lambda make=make, gamma=gamma: make(gamma), ValueError, said)
    refused(
        lambda: boost(WEAK, 3, online_bbm),
        TypeError,
        "boost: `rule` must be a BoostingRule, got function `online_bbm`; call it, as in "
        "`online_bbm(...)`.",
    )
    refused(
        lambda: olx.run(boost(olx.ogd(0.1), 3, rule), losses.hinge, SOME, ZEROS),
        TypeError,
        "boost: `inner` must be a predictor, whose action is one score; its action has shape (6,). "
        "`olx.linear` makes a point learner a predictor.",
    )
    bits = SOME._replace(outcome=(SOME.outcome + 1) / 2)
    with pytest.raises(ValueError, match=r"labels must be -1 or \+1"):
        olx.run(boost(WEAK, 3, rule), losses.squared, bits, ZEROS)
