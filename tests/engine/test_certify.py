"""What a certificate says where the conditions of its theorem break, and about weighted rounds."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import experts, losses, mirrors, schedules
from olx.convex import sets
from olx.engine.with_theorems import same_player, with_theorems
from olx.experts.drifting_game import drifting_game
from olx.frameworks import mistakes, primal_dual
from olx.trace_checks import ITS_OWN

T, D = 12, 3
KEY = jax.random.key(5)
ROWS = np.asarray(jax.random.normal(KEY, (T, D)))
TRUTH = np.array([1.0, -0.5, 0.25])
LABELS = np.sign(ROWS @ TRUTH) * np.where(np.arange(T) % 5 == 4, -1.0, 1.0)
ZEROS, UNIFORM = np.zeros(D), np.full(D, 1 / D)


def played(learner, loss, rounds, params):
    run = jax.jit(functools.partial(olx.rollout, record=olx.record.trace), static_argnums=1)
    return run(learner, loss, rounds, params)


def classified(learner, weight=None, rows=ROWS):
    return played(learner, losses.zero_one, olx.Rounds(rows, LABELS, weight), ZEROS)


def broken_from(proof):
    """The first round, counted from 1, in which each broken condition breaks."""
    return {
        name: int(np.argmin(met)) + 1 for name, met in proof.conditions.items() if not met.all()
    }


def test_infinity_is_at_most_infinity_and_nan_is_nothing():
    ones, inf, nan = np.ones(2), np.full(2, np.inf), np.full(2, np.nan)
    assert olx.Certificate(inf, inf, ones).holds
    assert olx.Certificate(ones, inf, inf).holds
    assert not olx.Certificate(2 * ones, ones, inf).holds
    for sides in ((nan, ones), (ones, nan), (nan, inf), (nan, nan)):
        assert not olx.Certificate(*sides, ones).holds
    assert float(olx.Certificate(ones, inf, ones).slack[0]) == np.inf
    assert np.isnan(olx.Certificate(nan, inf, ones).slack).all()
    assert "the run diverged in round 1 of 2" in str(olx.Certificate(nan, ones, ones))
    broken = olx.Certificate(np.array([1.0, np.nan]), ones, ones).given("rows", np.zeros(2, bool))
    assert not broken.holds
    assert "rows" in str(broken)  # it broke before


def test_a_broken_condition_is_named_with_its_first_round():
    ones = jnp.ones(4)
    proof = olx.Certificate(2 * ones, 3 * ones, ones, 4 * ones, "a theorem")
    proof = proof.given("rows must be short", np.array([True, True, False, True]))
    assert proof.right.tolist() == [3.0, 3.0, np.inf, np.inf]
    assert proof.published.tolist() == [4.0, 4.0, np.inf, np.inf]
    assert proof.holds
    assert proof.tightness == 2 / 3
    assert str(proof).endswith("It says nothing from round 3 on: rows must be short.")


IDLE = np.array([0.0, 1.0] * T)


def every_other(leaf):
    """A round of another time before each."""
    return np.stack([np.roll(leaf, 1, axis=0), leaf], 1).reshape(-1, *leaf.shape[1:])


def carried(name):
    """A theorem that the learner carries."""
    return lambda learner, run, u: olx.certify(learner, run, u)[name]


def made(theorem):
    return lambda learner, run, u: olx.certify(learner, run, u, theorems=(theorem,))[0]


COUNTS_MISTAKES = {
    "perceptron": (olx.classification.perceptron(), carried("perceptron_mistakes")),
    "conservative": (
        olx.classification.perceptron(),
        made(olx.theorems.conservative_mistakes(0.3)),
    ),
    "PA-I": (olx.classification.passive_aggressive_1(0.5), carried("mistakes")),
    "aggressive": (
        olx.classification.aggressive_perceptron(mirrors.euclidean()),
        carried("mistakes"),
    ),
    "alma": (
        olx.classification.alma(0.9),
        made(olx.theorems.alma_mistakes(0.1)),
    ),
    "self-tuned": (
        olx.classification.self_tuned_aggressive(mirrors.euclidean(), 2.0),
        carried("self_tuned_aggressive_mistakes"),
    ),
}


@pytest.mark.parametrize("name", COUNTS_MISTAKES)
def test_mistakes_in_rounds_of_weight_zero_do_not_count(name):
    learner, theorem = COUNTS_MISTAKES[name]
    u = TRUTH / 2
    rounds = olx.Rounds(every_other(ROWS), every_other(LABELS), IDLE)
    padded = theorem(learner, played(learner, losses.zero_one, rounds, ZEROS), u)
    plain = theorem(learner, classified(learner), u)
    for one, other in zip(jax.tree.leaves(padded), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(one[1::2], other, rtol=1e-12)
        np.testing.assert_allclose(one[2::2], other[:-1], rtol=1e-12)
    assert padded.left[0] == padded.right[0] == 0
    assert plain.left[-1] > 0


@pytest.mark.parametrize("name", COUNTS_MISTAKES)
def test_other_weights_are_named_where_a_theorem_is_not_proved_for_them(name):
    learner, theorem = COUNTS_MISTAKES[name]
    weight = np.where(np.arange(T) == 6, 0.5, 1.0)
    proof = theorem(learner, classified(learner, weight), TRUTH / 2)
    assert proof.holds
    assert broken_from(proof) == {"weights must be 0 or 1": 7}
    assert np.isfinite(proof.right[:6]).all()
    assert np.isinf(proof.right[6:]).all()


@pytest.mark.parametrize(
    "learner",
    [
        olx.classification.romma(),
        olx.classification.romma(1.0),
        olx.classification.passive_aggressive(),
    ],
)
def test_a_projection_is_the_same_for_every_weight_but_zero(learner):
    run = classified(learner, np.geomspace(0.01, 100.0, T))
    np.testing.assert_allclose(run.losses, classified(learner).losses)
    assert olx.certify(learner, run, 10 * TRUTH).holds


def test_a_run_of_one_round_is_certified():
    learner, rounds = olx.ogd(0.5), olx.Rounds(None, np.ones((1, 2)))
    run = olx.rollout(learner, losses.linear_loss, rounds, np.zeros(2), record=olx.record.trace)
    assert olx.certify(learner, run, np.ones(2)).holds


def test_no_round_at_all_is_no_violation():
    """All weights 0: the certificate used to fail."""
    assert olx.certify(
        olx.classification.romma(), classified(olx.classification.romma(), np.zeros(T)), TRUTH
    ).holds


def test_alma_says_nothing_about_weighted_rounds():
    run = classified(olx.classification.alma(0.9), np.where(np.arange(T) % 2, 0.01, 100.0))
    proof = olx.certify(olx.classification.alma(0.9), run, TRUTH / 2)[0]
    assert proof.holds
    assert broken_from(proof) == {"weights must be 0 or 1": 1}


WEIGHTED = {
    "omd": olx.omd(0.1, mirrors.pnorm(1.5)),
    "md": olx.md(schedules.decay(0.3), mirrors.euclidean(sets.ball(2.0))),
    "ftrl": olx.ftrl(0.2, olx.regularizers.adagrad()),
    "optimistic": olx.optimistic(0.1, mirrors.euclidean()),
    "optimistic md": olx.optimistic_md(0.1, mirrors.euclidean(sets.ball(2.0))),
    "ftrl proximal": olx.first_order.ftrl_proximal(0.5, l1=0.1),
    "coin betting": olx.first_order.coin_betting(30.0),
    "self-confident": olx.first_order.self_confident(mirrors.euclidean(sets.ball(2.0)), 2.0),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_regret_theorems_of_weighted_gradients_hold(name):
    learner, u = WEIGHTED[name], TRUTH / 2
    weight = np.abs(np.asarray(jax.random.normal(jax.random.key(1), (T,)))) * 3
    rounds = olx.Rounds(None, ROWS, weight)
    proof = olx.certify(learner, played(learner, losses.linear_loss, rounds, ZEROS), u)[0]
    assert proof.holds
    assert not broken_from(proof)
    assert np.isfinite(proof.right).all()
    actions = played(learner, losses.linear_loss, rounds, ZEROS).trace.feedback.action
    regret = np.cumsum(weight * np.sum(ROWS * (actions - u), axis=1))
    np.testing.assert_allclose(proof.left, regret, rtol=1e-9, atol=1e-9)


SCORE_LEARNERS = {
    "lipschitz": 1.0,
    "root_rounds": schedules.root_rounds(40.0, 1.0),
}


@pytest.mark.parametrize("name", SCORE_LEARNERS)
def test_primal_dual_theorems_hold_for_weighted_rounds(name):
    learner = olx.dual_ascent(
        SCORE_LEARNERS[name], mirrors.euclidean(), losses.hinge, olx.ascents.subgradient()
    )
    weight = np.linspace(0.0, 3.0, T)
    proofs = olx.certify(learner, classified(learner, weight), TRUTH)
    assert proofs.holds, str(proofs)
    assert not broken_from(proofs[name])
    assert broken_from(proofs["hinge_mistakes"]) == {"weights must be 0 or 1": 2}


MARGINS = (
    olx.theorems.conservative_mistakes(0.2),
    olx.theorems.separable_mistakes(0.2),
)


@pytest.mark.parametrize("theorems", [None, MARGINS])
def test_a_stream_that_is_replayed_has_the_certificates_of_its_recorded_run(theorems):
    learner, weight = olx.classification.perceptron(), np.where(np.arange(T) % 4, 1.0, 0.0)
    rounds = olx.Rounds(ROWS, LABELS, weight)
    recorded = olx.certify(learner, classified(learner, weight), TRUTH, theorems=theorems)
    game = learner, losses.zero_one, rounds, ZEROS, TRUTH
    replayed = olx.certify(*game, theorems=theorems, progress=False)
    assert replayed.names == recorded.names
    for one, other in zip(jax.tree.leaves(replayed), jax.tree.leaves(recorded), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_theorems_with_the_same_account_compute_it_once():
    traced = []

    def add(hp, account, state, feedback, u):
        traced.append(1)
        return account + feedback.value

    sides = lambda factor: lambda hp, total, u: olx.Certificate(total, factor * total, total)
    first = lambda hp, state, u: jnp.zeros(())
    own = tuple(olx.Theorem(f"at {k}", "mine", first, add, sides(k)) for k in (1.0, 2.0))
    learner = olx.linear(olx.ogd(0.1)).carrying(*own)
    rounds = olx.Rounds(ROWS, LABELS)
    proofs = olx.certify(learner, losses.hinge, rounds, ZEROS, ZEROS, theorems=own)
    calls = len(traced)
    olx.certify(learner, losses.hinge, rounds, ZEROS, ZEROS, theorems=own[:1])
    assert len(traced) == 2 * calls
    assert proofs["at 1.0"].right[-1] * 2 == proofs["at 2.0"].right[-1]


def test_lifted_theorems_share_an_account_and_totals_are_read_from_the_last_state():
    """A lift binds the functions of a theorem, and no theorem; lemmas of `dual_ascent` are joined.

    `keep.totals` records nothing in a round.
    """
    traced = []

    def add(hp, account, state, feedback, u):
        traced.append(1)
        return account + feedback.value

    sides = lambda hp, total, u: olx.Certificate(total, total, total)
    first = lambda hp, state, u: jnp.zeros(())
    own = tuple(olx.Theorem(f"number {k}", "mine", first, add, sides) for k in (1, 2))
    learner = olx.linear(olx.ogd(0.1).carrying(*own))
    about = learner.theorems[-2:]
    assert [one.name for one in about] == ["number 1", "number 2"]
    for inner, theorems, accounts in (
        (learner, about, 1),
        (olx.linear(olx.ogd(0.1)), None, 2),
        (olx.classification.balanced_winnow(0.3), None, 1),
        (olx.classification.perceptron(), None, 2),
    ):
        state = with_theorems(inner, theorems or inner.theorems, ZEROS).init(ZEROS)
        assert len(state.ledger.accounts) == accounts
    olx.certify(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS, ZEROS, theorems=about)
    calls = len(traced)
    olx.certify(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS, ZEROS, theorems=about[:1])
    assert len(traced) == 2 * calls


def test_a_player_is_remembered_for_the_same_arrays_and_others_may_change():
    learner, rounds, u = olx.linear(olx.ogd(0.1)), olx.Rounds(ROWS, LABELS), TRUTH.copy()
    fixed = jnp.asarray(u)
    again = [same_player(learner, learner.theorems, fixed, fixed) for _ in range(2)]
    assert again[0] is again[1]
    assert again[0] is not same_player(learner, learner.theorems, fixed, jnp.asarray(2 * u))
    play = lambda u: olx.certify(learner, losses.hinge, rounds, ZEROS, u)[0].left
    first = play(u)
    u *= 2
    np.testing.assert_array_equal(play(u), play(jnp.asarray(2 * TRUTH)))
    assert np.any(play(u) != first)


def test_a_joined_account_gives_the_certificates_of_the_theorems_alone():
    """Models that were saved with an account per theorem go on to be certified."""
    learner, rounds = olx.classification.balanced_winnow(0.3), olx.Rounds(ROWS, LABELS)
    alone = primal_dual.primal_dual_inequality, primal_dual.lipschitz, mistakes.hinge_mistakes
    stored = dataclasses.replace(learner, theorems=alone)
    games = [(one, losses.hinge, rounds, ZEROS, TRUTH / 9) for one in (learner, stored)]
    joined, apart = (olx.certify(*game, progress=False) for game in games)
    for one in apart:
        for name in ("left", "right", "scale", "published"):
            wanted = getattr(joined[one.name], name)
            np.testing.assert_allclose(getattr(one, name), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("many", [False, True])
def test_totals_are_those_of_the_last_round(many, monkeypatch):
    learner = olx.classification.perceptron()
    if many:
        learner = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.array([0.1, 0.2, 0.3]))
    game = learner, losses.hinge, [olx.Rounds(ROWS[:9], LABELS[:9]), olx.Rounds(ROWS, LABELS)]
    every = olx.certify(*game, ZEROS, TRUTH, keep=olx.keep.every(1), progress=False)
    monkeypatch.setattr("olx.engine.certify.sides", None)  # what a round would record
    totals = olx.certify(*game, ZEROS, TRUTH, keep=olx.keep.totals, progress=False)
    last = lambda leaf: np.asarray(leaf)[..., -1:]
    for one, other in zip(totals, every, strict=True):
        assert one.at.tolist() == [9 + T]
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, last(b), rtol=1e-12, atol=1e-12), one, other
        )


def test_what_is_no_stream_of_r_of_k_is_no_violation():
    """Rows beyond 1 are named; nothing is published for another step or a `u` without margin."""
    for eta, rows, broken in ((0.2, ROWS, {"rows must lie in [-1, 1]": 1}), (0.1, ROWS / 3, {})):
        learner = olx.classification.winnow(eta)
        asked = (olx.theorems.r_of_k_mistakes(1, 2),)
        proof = olx.certify(learner, classified(learner, rows=rows), UNIFORM, theorems=asked)[0]
        assert proof.holds, str(proof)
        assert broken_from(proof) == broken
        assert np.isinf(proof.published[-1])


def test_a_condition_that_broke_once_stays_broken():
    """A heavy round exceeds what the largest row so far allows for; a later row allows for it."""
    rows = np.where(np.arange(T)[:, None] < 8, ROWS, 50 * ROWS)
    schedule = schedules.root_norms(1.0, olx.convex.norms.l2())
    learner = olx.dual_ascent(
        schedule, mirrors.euclidean(), losses.hinge, olx.ascents.subgradient()
    )
    run = classified(learner, np.where(np.arange(T) == 3, 10.0, 1.0), rows)
    proofs = olx.certify(learner, run, TRUTH)
    assert proofs.holds, str(proofs)
    told = "subgradients must be at most what the schedule allows for"
    assert broken_from(proofs["root_norms"]) == {told: 4}


def test_weights_above_one_are_beyond_the_theorems_of_experts():
    rounds = olx.Rounds(None, np.abs(np.sin(ROWS)), np.full(T, 1.5))
    run = played(experts.prod(0.5), losses.linear_loss, rounds, UNIFORM)
    proof = olx.certify(experts.prod(0.5), run, UNIFORM)[0]
    assert proof.holds
    assert broken_from(proof) == {"weights must be at most 1": 1}


def test_moves_between_whole_ones_need_a_convex_final_loss():
    behind = lambda s: (s <= 0).astype(float)
    moves = np.where(np.arange(8)[:, None] < 3, [[1.0, -1.0]], [[0.5, -0.5]])
    game = drifting_game(behind, 8)
    proof = olx.certify(
        game, played(game, losses.linear_loss, olx.Rounds(None, moves), np.ones(2)), None
    )[0]
    assert proof.holds
    assert [first for name, first in broken_from(proof).items() if "moves must be of" in name] == [
        4
    ]
    smooth = drifting_game(lambda s: jnp.exp(-s), 8)
    run = played(smooth, losses.linear_loss, olx.Rounds(None, moves), np.ones(2))
    proof = olx.certify(smooth, run, None)[0]
    assert proof.holds
    assert not any("moves must be of" in name for name in broken_from(proof))


def test_gradients_beyond_the_constant_are_named_and_their_overflow_is_no_violation():
    learner = olx.first_order.coin_betting(np.float32(1.0))
    gradients = np.concatenate([np.full((4, 1), 0.5), np.full((60, 1), -1e3)]).astype(np.float32)
    start = np.zeros(1, np.float32)
    run = played(learner, losses.linear_loss, olx.Rounds(None, gradients), start)
    proof = olx.certify(learner, run, np.ones(1, np.float32))[0]
    (name,) = broken_from(proof)
    assert broken_from(proof)[name] == 5
    assert "at most `lipschitz`" in name
    assert proof.holds == np.isfinite(run.losses).all()


DIVERGING = {  # the second breaks conditions too, by its overflow
    "ogd": olx.linear(olx.ogd(1e3)),
    "dual ascent": olx.dual_ascent(
        1e3, mirrors.euclidean(), losses.squared, olx.ascents.subgradient()
    ),
}


@pytest.mark.parametrize("name", DIVERGING)
def test_a_run_that_diverged_says_so_and_is_not_certified(name):
    learner, loss, length = DIVERGING[name], losses.squared, 60
    rows = np.resize(ROWS, (length, D))
    rounds = olx.Rounds(rows, np.sign(rows[:, 0]))
    run = played(learner, loss, rounds, ZEROS)
    assert not np.isfinite(run.losses).all()
    lost = int(np.argmin(np.isfinite(run.losses))) + 1
    for proof in (
        *olx.certify(learner, run, TRUTH),
        *olx.certify(learner, loss, rounds, ZEROS, TRUTH, progress=False),
    ):
        assert not proof.holds
        assert lost - 1 <= proof.summary.diverged <= lost
        assert f"the run diverged in round {proof.summary.diverged} of {length}" in str(proof)
        assert "FAILS" not in str(proof)


def test_rows_that_are_no_signs_are_named():
    learner = olx.dual_ascent(
        10.0, mirrors.negative_entropy(), losses.margin_hinge(0.5), olx.ascents.aggressive_signs()
    )
    rows = np.where(np.arange(T)[:, None] < 5, np.sign(ROWS), 5 * ROWS)
    proofs = olx.certify(learner, classified(learner, rows=rows), UNIFORM)
    assert proofs.holds
    told = {"contexts must hold -1, 0 and 1 only, for `aggressive_signs`": 6}
    for name in ("primal_dual_inequality", "sandwich", "lipschitz", "hinge_mistakes"):
        assert broken_from(proofs[name]) == told


def test_steps_that_grow_are_named():
    growing = olx.experts.anytime_hedge(olx.core.Process(*_GROWING))
    rounds = olx.Rounds(None, np.abs(np.sin(ROWS)))
    proof = olx.certify(growing, played(growing, losses.linear_loss, rounds, UNIFORM), UNIFORM)[0]
    assert proof.holds
    assert broken_from(proof) == {"steps must not grow": 2}


def _rise(eta, stats, context):
    return eta * stats.now


_decay = schedules.decay(1.0)
_GROWING = (0.1, _decay.init_fn, _decay.update_fn, _rise, "step size")

OUTSIDE = {
    "tsallis": (olx.omd(0.5, mirrors.tsallis()), [-0.5, 1.0, 0.5]),
    "log barrier": (olx.omd(0.5, mirrors.log_barrier()), [-1.0, 1.0, 0.5]),
    "md entropy": (olx.md(0.5, mirrors.negative_entropy()), [-0.5, 1.0, 0.5]),
    "normal hedge": (experts.normal_hedge(), [-5.0, 3.0, 3.0]),
    "normal hedge dt": (experts.normal_hedge_dt(), [-5.0, 3.0, 3.0]),
    "ada normal hedge": (experts.ada_normal_hedge(), [-5.0, 3.0, 3.0]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_the_domain_the_right_side_is_infinite_and_never_nan(name):
    learner, u = OUTSIDE[name]
    rounds = olx.Rounds(None, np.abs(np.sin(ROWS)))
    proof = olx.certify(learner, played(learner, losses.linear_loss, rounds, UNIFORM), np.array(u))[
        0
    ]
    assert np.isposinf(proof.right).all()
    assert np.isfinite(proof.left).all()
    assert proof.holds
    assert broken_from(proof) == {"`u` must lie in the domain": 1}


def test_integer_comparators_are_cast():
    run = played(
        olx.hedge(0.5), losses.linear_loss, olx.Rounds(None, np.abs(np.sin(ROWS))), UNIFORM
    )
    real, whole = (
        olx.certify(olx.hedge(0.5), run, np.array([0, 1, 0], d))[0] for d in (float, int)
    )
    np.testing.assert_array_equal(real.right, whole.right)
    learner = experts.squint()
    run = played(learner, losses.linear_loss, olx.Rounds(None, np.abs(np.sin(ROWS))), UNIFORM)
    assert olx.certify(learner, run, np.array([0, 1, 0])).holds


def test_under_vmap_another_learners_run_is_a_broken_condition():
    learners = olx.batch(olx.classification.winnow, eta=np.array([0.1, 0.5])).learners
    play = lambda learner: classified(learner)
    runs = jax.vmap(play)(learners)
    check = jax.vmap(olx.certify, (0, 0, None))
    right = check(learners, runs, UNIFORM)
    swapped = check(jax.tree.map(lambda leaf: leaf[::-1], learners), runs, UNIFORM)
    for one, other in zip(right, swapped, strict=True):
        assert np.all(one.conditions[ITS_OWN])
        assert not np.any(np.all(other.conditions[ITS_OWN], axis=1))


def ascent(schedule, loss=losses.squared, mirror=None):
    mirror = mirrors.euclidean() if mirror is None else mirror
    return olx.dual_ascent(schedule, mirror, loss, olx.ascents.subgradient())


CARRIED = {  # beside the three of every `dual_ascent`
    "a number": (ascent(1.0), ["lipschitz", "self_bounded"]),
    "no norm": (ascent(1.0, mirror=mirrors.unnormalized_entropy()), []),
    "horizon": (
        ascent(schedules.lipschitz_horizon(9.0, 1.0, 1.0), losses.logistic),
        ["lipschitz", "self_bounded", "horizon"],
    ),
    "root rounds": (ascent(schedules.root_rounds(1.0, 1.0)), ["root_rounds"]),
    "root norms": (
        ascent(schedules.root_norms(1.0, olx.convex.norms.l2()), losses.hinge),
        ["root_norms", "hinge_mistakes"],
    ),
    "root norms, no Lipschitz loss": (
        ascent(schedules.root_norms(1.0, olx.convex.norms.l2())),
        [],
    ),
    "own loss": (ascent(schedules.own_loss(1.0, 1.0)), ["own_loss"]),
    "bounded loss": (ascent(schedules.bounded_loss(1.0, 1.0, 1.0)), ["own_loss", "bounded_loss"]),
    "perceptron": (
        olx.classification.perceptron(),
        ["lipschitz", "hinge_mistakes", "perceptron_mistakes"],
    ),
    "winnow": (
        olx.classification.winnow(0.1),
        ["lipschitz", "hinge_mistakes", "winnow_mistakes"],
    ),
    "self-tuned": (
        olx.classification.self_tuned_aggressive(mirrors.euclidean(), 1.0),
        ["hinge_mistakes", "self_tuned_aggressive_mistakes"],
    ),
}


@pytest.mark.parametrize("name", CARRIED)
def test_a_dual_ascent_carries_the_theorems_of_its_parts(name):
    learner, more = CARRIED[name]
    names = [one.name for one in learner.theorems]
    assert names == ["primal_dual_inequality", "weak_duality", "sandwich", *more]


EAGER = {
    "md": olx.md,
    "optimistic md": olx.optimistic_md,
}


@pytest.mark.parametrize("name", EAGER)
def test_weights_too_small_for_a_float_are_no_violation(name):
    """After some 100 rounds of float32 the first weight is 0, its dual is not."""
    half = lambda tree: jax.tree.map(np.float32, tree)
    learner = half(EAGER[name](1.0, mirrors.negative_entropy()))
    rounds = olx.Rounds(None, half(np.tile([1.0, 0.5, 0.0], (200, 1))))
    run = played(learner, losses.linear_loss, rounds, half(UNIFORM))
    assert run.trace.feedback.action[-1, 0] == 0
    for u in ([0.0, 0.0, 1.0], UNIFORM):
        proof = olx.certify(learner, run, half(np.array(u)))[0]
        assert proof.holds, str(proof)
        assert np.isfinite(proof.right).all()


@pytest.mark.parametrize("name", EAGER)
def test_exponents_close_to_one_are_no_violation(name):
    """A decision of `pnorm(1.02)` is the 50th power of its dual: most of it is too small."""
    half = lambda tree: jax.tree.map(np.float32, tree)
    learner = half(EAGER[name](0.1, mirrors.pnorm(1.02)))
    gradients = half(jax.random.normal(jax.random.key(2), (60, 20)))
    run = played(learner, losses.linear_loss, olx.Rounds(None, gradients), np.zeros(20, np.float32))
    for u in (np.eye(20)[0], np.zeros(20)):
        proof = olx.certify(learner, run, half(u))[0]
        assert proof.holds, str(proof)


SMALL = {  # potentials less a constant, on rows a million times smaller than it
    "optimistic entropy": (olx.optimistic(0.1, mirrors.negative_entropy()), UNIFORM),
    "binary entropy": (olx.omd(0.1, mirrors.binary_entropy()), np.full(D, 0.5)),
    "EG+-": (olx.omd(0.1, mirrors.signed_entropy(3.0)), ZEROS),
    "balanced Winnow": (olx.classification.balanced_winnow(0.1), ZEROS),
}


@pytest.mark.parametrize("name", SMALL)
def test_rounding_of_the_constants_of_a_potential_is_no_violation(name):
    learner, u = SMALL[name]
    for dtype, size in ((np.float32, 1e-3), (np.float64, 1e-6), (np.float64, 1e-9)):
        cast = lambda tree, dtype=dtype: jax.tree.map(lambda x: np.asarray(x, dtype), tree)
        rows = np.tile(ROWS, (4, 1)) * size
        rounds = olx.Rounds(None, rows)
        if name == "balanced Winnow":
            rounds = olx.Rounds(rows, np.tile(LABELS, 4))
        run = played(cast(learner), losses.linear_loss, cast(rounds), cast(u))
        proof = olx.certify(cast(learner), run, cast(u))[0]
        assert proof.holds, str(proof)


def test_several_runs_are_printed_as_one():
    x = jax.random.normal(jax.random.key(0), (40, D))
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.array([0.01, 0.1, 1.0, 1e30]))
    rounds = olx.Rounds(x, jnp.sign(x[:, 0]))
    proof = olx.certify(learners, losses.squared, rounds, ZEROS, jnp.ones(D), progress=False)[0]
    least = int(jnp.argmin(proof.summary.slack))
    assert str(proof) == (
        f"{proof.theorem}: holds in 3 of 4 runs, diverged in 1. Least slack "
        f"{proof.summary.slack[least]:.3g}, in run [{least}]."
    )


def test_several_runs_say_in_how_many_a_condition_breaks():
    ones = jnp.ones((3, 4))
    proof = olx.Certificate(2 * ones, 3 * ones, ones, 4 * ones, "", "A theorem")
    met = np.ones((3, 4), bool)
    met[1, 2] = False
    said = "A theorem: holds in 3 of 3 runs"
    assert str(proof).startswith(f"{said}. Least slack 1")
    assert str(proof.given("rows must be short", met)).startswith(
        f"{said}, says nothing from some round on in 1. Least slack 1"
    )
