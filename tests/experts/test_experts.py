"""Experts: references, theorems after every round, and what holds for every one of them."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_experts as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random

import olx
from olx import experts, hindsight, schedules, streams
from olx._clock import Clock

T, N = 160, 10
KEY = random.key(5)
RNG = np.random.default_rng(5)
program = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": "0"})


def table_potential(t, s):
    """Lemma 2, with the horizon T."""
    now = jnp.exp(jnp.minimum(s, 0.0) ** 2 / (3 * jnp.maximum(t, 1.0)))
    return now - jnp.asarray(_B)[t.astype(int)]


_B = 1 - np.append(np.cumsum(np.expm1(4 / (3 * np.arange(T, 0.0, -1))))[::-1], 0.0) / 2

LEARNERS = {  # the learner, its weights in NumPy, the least tightness of its bound on some stream
    "ada_normal_hedge": (experts.ada_normal_hedge(), ref.ada_normal_hedge(1.0), 0.3),
    "ada_normal_hedge, half": (
        experts.ada_normal_hedge(exponent=0.5),
        ref.ada_normal_hedge(0.5),
        0.3,
    ),
    "ada_normal_hedge, zero": (
        experts.ada_normal_hedge(exponent=0.0),
        ref.ada_normal_hedge(0.0),
        0.25,
    ),
    "normal_hedge_dt": (experts.normal_hedge_dt(), ref.normal_hedge_dt, 0.25),
    "normal_hedge": (experts.normal_hedge(), ref.normal_hedge, 0.9),
    "two_norm": (experts.two_norm(), ref.two_norm, 0.3),
    "hedge": (experts.anytime_hedge(0.3), ref.hedge(lambda t: 0.3), 0.9),
    "hedge, decaying": (
        experts.anytime_hedge(schedules.decay(3.0)),
        ref.hedge(lambda t: 3 / np.sqrt(t)),
        0.6,
    ),
    "adahedge": (experts.adahedge(), ref.adahedge, 0.9),
    "prod": (experts.prod(0.3), functools.partial(ref.play_prod, 0.3), 0.5),
    "adapt_ml_prod": (experts.adapt_ml_prod(), ref.adapt_ml_prod, 0.5),
    "boa": (experts.boa(), ref.boa, 0.5),
    "squint": (experts.squint(rates=8), ref.squint(8), 0.4),
    "ml_poly": (experts.ml_poly(), ref.ml_poly, 0.3),
    "any_range, boa": (
        experts.any_range(experts.boa()),
        ref.any_range(ref.weight_by_rates, ref.boa_sums),
        0.5,
    ),
    "any_range, adapt_ml_prod": (
        experts.any_range(experts.adapt_ml_prod()),
        ref.any_range(ref.weight_by_rates, ref.adapt_ml_prod_sums),
        0.5,
    ),
    "any_range, squint": (
        experts.any_range(experts.squint(rates=8)),
        ref.any_range(ref.squint_weight(8), ref.squint_sums),
        0.4,
    ),
    "any_range, ada_normal_hedge": (
        experts.any_range(experts.ada_normal_hedge()),
        ref.any_range(ref.normal_weight_in_units, ref.normal_sums),
        0.3,
    ),
    "fixed_share": (experts.fixed_share(0.5, 0.02), ref.fixed_share(0.5, 0.02), 0.5),
    "ada_normal_hedge_tv": (
        experts.ada_normal_hedge_tv(T),
        ref.tracking(lambda start, now: True),
        0.2,
    ),
    "ada_normal_hedge_streaming": (
        experts.ada_normal_hedge_streaming(T),
        ref.tracking(ref.streaming_alive),
        0.1,
    ),
    "potential_experts": (
        experts.potential_experts(table_potential),
        ref.normal_hedge_dt,
        0.9,
    ),
}


class Row(NamedTuple):
    """A stream and a prior; where `against`, the answer is the heaviest expert's loss."""

    losses: np.ndarray
    confidence: np.ndarray
    prior: np.ndarray
    against: np.ndarray


def rows():
    random_losses, ones = RNG.random((T, N)), np.ones((T, N))
    order = RNG.permutation(N)
    coins = (RNG.random((T, N)) < 0.7).astype(float)
    coins[40:43] = 0.0  # nobody is awake
    some = np.where(RNG.random((T, N)) < 0.3, 0.0, RNG.random((T, N)))
    too_large = random_losses.copy()
    too_large[99, 3] = 1.5
    late = np.ones((T, N))
    late[:80, 5:] = 0.0
    drawn = lambda chances: (RNG.random((T, N)) < chances).astype(float)
    i, t = np.arange(N), np.arange(T)[:, None]
    made = {
        "gap": drawn(0.5 - 0.4 * (i == 4)),
        "alternating": np.where(t == 0, 0.5, 1.0) * (i % 2 == t % 2),
        "drifting": drawn((1 - np.cos(2 * np.pi * i / N - 0.02 * t)) / 2),
        "switching": drawn(0.5 * (i != (3 * (t // 32)) % N)),
        "random": random_losses,
        "small": 0.05 * random_losses,
        "equal": np.full((T, N), 0.3),
        "permuted": random_losses[:, order],
    }
    prior = RNG.random(N) + 0.1
    named = {name: Row(losses, ones, np.ones(N), False) for name, losses in made.items()}
    named |= {
        "scaled prior": Row(random_losses, ones, np.full(N, 3.7), False),
        "prior": Row(random_losses, ones, prior, False),
        "two experts": Row(random_losses, ones, np.array([0.0, 2.0] * 2 + [0.0] * (N - 4)), False),
        "sleepers": Row(np.where(coins == 0, np.nan, random_losses), coins, np.ones(N), False),
        "confident": Row(np.where(some == 0, np.nan, made["gap"]), some, prior, False),
        "late": Row(np.where(late == 0, np.nan, made["gap"]), late, np.ones(N), False),
        "too large": Row(too_large, ones, np.ones(N), False),
        "adversary": Row(random_losses, ones, np.ones(N), True),
    }
    return named, order


ROWS, ORDER = rows()
NAMES = list(ROWS)
BATCH = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *ROWS.values())
MIXTURES = jnp.concatenate(
    [
        jnp.eye(N),
        jnp.full((1, N), 1 / N),
        jnp.asarray(RNG.dirichlet(np.ones(N), 2)),
        jnp.asarray([[0.0, 1 / 3, 0.0, 0.0, 1 / 3, 0.0, 0.0, 0.0, 0.0, 1 / 3]]),
    ]
)


def first_round(row):
    return jnp.zeros((), int)


def ask(row, t):
    return row.confidence[t]


def answer(row, t, p):
    heaviest = jnp.zeros_like(p).at[jnp.argmax(p)].set(1.0)
    return jnp.where(row.against, heaviest, row.losses[t]), t + 1


def one_run(learner, row):
    adversary = olx.Adversary(row, experts.expected_loss, first_round, ask, answer)
    return olx.play(learner, adversary, row.prior, row.losses.shape[0], record=olx.record.trace)


class Judged(NamedTuple):
    losses: np.ndarray
    actions: np.ndarray
    outcomes: np.ndarray
    holds: np.ndarray
    tightness: np.ndarray


@program
def judge(learner, batch):
    def one(row):
        run = one_run(learner, row)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u))(MIXTURES)
        played, told = run.trace.feedback.action, run.rounds.outcome
        return Judged(run.losses, played, told, proofs.holds, proofs[0].tightness)

    return jax.vmap(one)(batch)


@functools.cache
def judged(name):
    """All rows of the table played by one learner, in one program."""
    return jax.tree.map(np.asarray, judge(LEARNERS[name][0], BATCH))


def row_of(name, row):
    return jax.tree.map(lambda leaf: leaf[NAMES.index(row)], judged(name))


FREE = [name for name, (learner, *_) in LEARNERS.items() if learner.facts.scale_free]
every_learner = pytest.mark.parametrize("name", LEARNERS)
LEGAL = [row for row in NAMES if row != "too large"]


@every_learner
def test_distributions_equal_the_reference(name):
    weights, few = LEARNERS[name][1], 60
    play = weights if name == "prod" else functools.partial(ref.play, weights)
    for row in ("gap", "prior", "sleepers", "confident", "adversary"):
        seen = row_of(name, row)
        wanted = play(seen.outcomes[:few], ROWS[row].confidence[:few], ROWS[row].prior)
        np.testing.assert_allclose(seen.actions[:few], wanted, atol=1e-10, err_msg=row)


@every_learner
def test_its_theorem_holds_after_every_round_for_every_mixture(name):
    for row in LEGAL:
        assert np.all(row_of(name, row).holds), (row, row_of(name, row).holds)


@every_learner
def test_its_theorem_is_not_vacuous(name):
    assert max(np.max(row_of(name, row).tightness) for row in LEGAL) > LEARNERS[name][2]


@every_learner
def test_actions_are_distributions_over_the_awake(name):
    for row in LEGAL:
        p = row_of(name, row).actions
        np.testing.assert_allclose(p.sum(1), np.any(ROWS[row].confidence, axis=1), atol=1e-12)
        assert np.all(p >= 0)
        assert np.all(p[ROWS[row].confidence == 0] == 0)


@every_learner
def test_unknown_losses_of_sleepers_never_leak(name):
    for row in ("sleepers", "confident", "late"):
        losses = row_of(name, row).losses
        assert np.all(np.isfinite(losses))
        assert np.all(losses[~np.any(ROWS[row].confidence, axis=1)] == 0)  # nobody to follow


@every_learner
def test_equal_experts_give_their_loss(name):
    np.testing.assert_allclose(row_of(name, "equal").losses, 0.3, rtol=1e-15)


@every_learner
def test_permuting_experts_permutes_the_weights(name):
    plain, moved = row_of(name, "random"), row_of(name, "permuted")
    np.testing.assert_allclose(moved.actions, plain.actions[:, ORDER], atol=1e-11)


@every_learner
def test_scaling_the_prior_changes_nothing(name):
    plain, scaled = row_of(name, "random"), row_of(name, "scaled prior")
    np.testing.assert_allclose(scaled.actions, plain.actions, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in FREE])
def test_a_traced_loss_out_of_range_turns_losses_to_nan_from_its_round_on(name):
    losses = row_of(name, "too large").losses
    assert np.all(np.isfinite(losses[:99]))
    assert np.all(np.isnan(losses[99:]))


def test_a_concrete_loss_out_of_range_is_refused():
    learner = experts.ada_normal_hedge()
    state = learner.init(jnp.ones(2))
    told = lambda losses: olx.Feedback(None, jnp.ones(2) / 2, losses, None, None, None)
    with pytest.raises(ValueError, match=r"`outcome` must lie in \[0, 1\], got 1.5"):
        learner.update(state, told(jnp.array([0.0, 1.5])))
    wide = experts.ada_normal_hedge(low=-1.0, high=2.0)
    wide.update(wide.init(jnp.ones(2)), told(jnp.array([-1.0, 1.5])))
    with pytest.raises(ValueError, match="high - low"):
        wide.update(wide.init(jnp.ones(2)), told(jnp.array([-1.0, 2.5])))


BAD = {
    "eta": lambda: experts.anytime_hedge(-0.1),
    "exponent": lambda: experts.ada_normal_hedge(exponent=1.5),
    "prior": lambda: experts.boa(prior=jnp.array([1.0, -1.0])),
    "high - low": lambda: experts.two_norm(low=1.0, high=0.5),
    "alpha": lambda: experts.fixed_share(1.0, 0.0),
    "rates": lambda: experts.squint(rates=0),
    "rounds": lambda: experts.ada_normal_hedge_tv(0),
    "beta": lambda: experts.drifting_game(np.exp, 3, beta=2.0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_numbers_are_refused(name):
    with pytest.raises(ValueError, match=name):
        BAD[name]()


@program
def variants(losses, weights):
    """One algorithm in several forms, which must agree."""
    plain, wide = experts.ada_normal_hedge(), experts.ada_normal_hedge(low=-2.0, high=3.0)

    def play(learner, rounds):
        loss = olx.losses.linear_loss
        run = olx.rollout(learner, loss, rounds, jnp.ones(N) / N, record=olx.record.trace)
        return run.trace.feedback.action, olx.certify(learner, run, jnp.eye(N)[0])[0]

    shared = jnp.broadcast_to(weights[:, None], losses.shape)
    return (
        play(plain, olx.Rounds(None, losses)),
        play(plain, olx.Rounds(jnp.ones_like(losses), losses)),
        play(wide, olx.Rounds(None, 5 * losses - 2)),
        play(plain, olx.Rounds(None, losses, weights)),
        play(plain, olx.Rounds(shared, losses)),
        play(plain, olx.Rounds(None, losses, 3 * weights))[1],
        play(experts.anytime_hedge(0.4), olx.Rounds(None, losses))[0],
        play(olx.hedge(0.4), olx.Rounds(None, losses))[0],
    )


@pytest.fixture(scope="module")
def forms():
    return variants(jnp.asarray(ROWS["random"].losses), jnp.asarray(RNG.random(T)))


def test_no_context_means_that_all_are_awake(forms):
    np.testing.assert_allclose(forms[0][0], forms[1][0], atol=1e-14)


def test_losses_of_another_range_are_rescaled_with_their_bound(forms):
    np.testing.assert_allclose(forms[2][0], forms[0][0], atol=1e-11)
    np.testing.assert_allclose(forms[2][1].left, 5 * forms[0][1].left, atol=1e-10)
    np.testing.assert_allclose(forms[2][1].right, 5 * forms[0][1].right, rtol=1e-10)


def test_the_weight_of_a_round_is_the_confidence_of_all(forms):
    np.testing.assert_allclose(forms[3][0], forms[4][0], atol=1e-12)
    assert forms[3][1].holds


def test_weights_above_one_are_beyond_the_theorem(forms):
    assert np.isinf(forms[5].right[-1])
    assert np.isfinite(forms[5].left[-1])


def test_a_fixed_step_is_hedge(forms):
    np.testing.assert_allclose(forms[6], forms[7], atol=1e-12)


def test_the_prior_decides_among_awake_experts_without_weight():
    learner = experts.two_norm(prior=jnp.array([1.0, 1.0, 3.0]))
    state = learner.init(jnp.ones(3))
    behind = state._replace(stats=jnp.array([-5.0, 0.0, -7.0]))
    awake = jnp.array([1.0, 0.0, 1.0])
    np.testing.assert_allclose(learner.predict(behind, awake), [0.25, 0.0, 0.75])
    np.testing.assert_array_equal(learner.predict(behind, jnp.zeros(3)), 0.0)
    unknown = experts.two_norm(prior=jnp.array([0.0, 1.0, 0.0]))
    nobody = unknown.init(jnp.ones(3))
    np.testing.assert_allclose(unknown.predict(nobody, awake), [0.5, 0.0, 0.5])


@program
def after_many_rounds(scale):
    """Every learner's distribution, from statistics of that size in single precision."""
    size = 10_000
    prior = jnp.full(size, 1 / size, jnp.float32)
    regret = jnp.linspace(-30.0, 1.0, size, dtype=jnp.float32) * scale
    square = scale**2 / 4
    fill = {"regret": regret, "total": regret, "size": jnp.full(size, square, jnp.float32)}
    fill |= {"squares": fill["size"], "gap": scale / 2}
    fill["clock"] = Clock(square.astype(jnp.uint32), jnp.float32)
    seen = {}
    for name in LONG:
        learner = LEARNERS[name][0]
        state = learner.init(prior)
        stats = regret
        if hasattr(state.stats, "_fields"):
            kept = {key: value for key, value in fill.items() if key in state.stats._fields}
            stats = state.stats._replace(**kept)
        seen[name] = learner.predict(state._replace(stats=stats))
    return seen


LONG = [
    "ada_normal_hedge",
    "normal_hedge_dt",
    "normal_hedge",
    "two_norm",
    "hedge",
    "adahedge",
    "prod",
    "adapt_ml_prod",
    "squint",
]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 3e3])
def test_single_precision_neither_overflows_nor_loses_the_best(scale):
    """Up to millions of rounds, ten thousand experts, and a regret of two roots to the best."""
    for name, p in after_many_rounds(jnp.asarray(scale, jnp.float32)).items():
        assert p.dtype == np.float32, name
        assert np.all(np.isfinite(p)), name
        assert abs(float(np.sum(p, dtype=np.float64)) - 1) < 1e-4, name
        assert p[-1] == np.max(p), name


MANY = {name: LEARNERS[name][0] for name in ("ada_normal_hedge", "normal_hedge")}


@pytest.mark.parametrize(("size", "length"), [(2, 10_000), (1000, 30), (10_000, 30)])
def test_theorems_hold_for_few_and_for_many_experts(size, length):
    losses = RNG.random((length, size)) * RNG.random(size)
    mixtures = np.zeros((3, size))
    mixtures[0, losses.sum(0).argmin()] = mixtures[2, -1] = 1.0
    mixtures[1] = 1 / size

    @program
    def several(losses, mixtures):
        rounds, proofs = olx.Rounds(None, losses), []
        for learner in MANY.values() if size > 2 else [MANY["ada_normal_hedge"]]:
            run = olx.rollout(
                learner, olx.losses.linear_loss, rounds, jnp.ones(size), record=olx.record.trace
            )
            judge = lambda u, own=learner, run=run: olx.certify(own, run, u)[0]
            proofs.append(jax.vmap(judge)(mixtures))
        return proofs

    for proof in several(losses, mixtures):
        assert np.all(proof.holds)
        assert np.max(proof.tightness) > 0.2


TOTALS = {
    "ada_normal_hedge": lambda numbers: experts.ada_normal_hedge(numbers[0], numbers[1:]),
    "normal_hedge": lambda numbers: experts.normal_hedge(numbers[1:], high=1 + numbers[0]),
}


@pytest.mark.parametrize("name", TOTALS)
def test_total_loss_is_differentiable_in_numbers_and_prior(name):
    losses = jnp.asarray(ROWS["random"].losses[:20, :4])

    def total(numbers):
        learner = TOTALS[name](numbers)
        return jnp.sum(
            olx.rollout(
                learner, olx.losses.linear_loss, olx.Rounds(None, losses), jnp.ones(4)
            ).losses
        )

    numbers = jnp.array([0.6, 1.0, 2.0, 0.5, 1.5])
    both = program(jax.value_and_grad(total))
    slope = both(numbers)[1]
    along = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    step = 1e-6
    ahead, behind = both(numbers + step * along)[0], both(numbers - step * along)[0]
    np.testing.assert_allclose(slope @ along, (ahead - behind) / (2 * step), rtol=1e-5)


NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@functools.cache
def small_judge():
    names = ("ada_normal_hedge", "adapt_ml_prod")

    def several(losses, confidence, u):
        rounds, loss, good = olx.Rounds(confidence, losses), experts.expected_loss, []
        for name in names:
            learner = LEARNERS[name][0]
            run = olx.rollout(learner, loss, rounds, jnp.ones(3), record=olx.record.trace)
            good.append(olx.certify(learner, run, u).holds)
        return good

    return program(several)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=12, max_size=12),
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=12, max_size=12),
    st.integers(0, 4),
)
def test_no_stream_breaks_a_theorem(losses, confidence, which):
    mixtures = np.array([*np.eye(3), [1 / 3] * 3, [0.5, 0.5, 0.0]])
    told = (np.array(losses), np.array(confidence), mixtures[which])
    assert np.all(small_judge()(*map(jnp.asarray, told)))


def test_lemmas_two_and_three_hold_on_a_grid():
    square = lambda s, t: np.exp(np.minimum(s, 0) ** 2 / (3 * t))
    for t in (2, 3, 10, 500):
        s = np.linspace(-2 * t, 3, 2001)
        left = square(s - 1, t) + square(s + 1, t) - 2 * square(s, t - 1)
        assert np.all(left <= np.expm1(4 / (3 * t)) + 1e-12 * square(s, t - 1))
    c = np.geomspace(1e-3, 300, 60)[:, None, None]
    r = c * np.linspace(-1, 1, 41)[None, :, None]
    move = np.linspace(-1, 1, 21)
    left = ref.phi(r + move, c + np.abs(move))
    right = ref.phi(r, c) + ref.normal_weight(r, c) * move + 1.5 * np.abs(move) / (c + 1)
    assert np.all(left <= right * (1 + 1e-12))


STARTS, LOSSES = jnp.array([0, 1, 37]), jnp.asarray(ROWS["random"].losses)


@pytest.fixture(scope="module")
def tracked():
    """AdaNormalHedge.TV, its streaming version and Fixed Share on losses that switch."""
    losses = jnp.asarray(ROWS["switching"].losses)
    path = hindsight.best_shifting_expert(losses, 4).path
    blurred = 0.7 * jax.nn.one_hot(path, N) + 0.1 * jax.nn.one_hot((path + 1) % N, N)
    corners = jnp.stack([jnp.eye(N)[i] for i in (0, 3, int(path[0]), int(path[-1]))])
    names = ("ada_normal_hedge_tv", "ada_normal_hedge_streaming", "fixed_share")

    @program
    def judge(losses):
        runs = {}
        for name in names:
            learner, rounds = LEARNERS[name][0], olx.Rounds(None, losses)
            loss = olx.losses.linear_loss
            runs[name] = olx.rollout(learner, loss, rounds, jnp.ones(N), record=olx.record.trace)
        own = {name: LEARNERS[name][0] for name in names}
        exact, chained, share = names
        about = lambda name, u, one: olx.certify(own[name], runs[name], u, theorems=(one,))[0]
        interval = lambda u, begin: about(exact, u, olx.theorems.interval_from(begin))
        within = jax.vmap(jax.vmap(interval, (None, 0)), (0, None))
        covered = lambda u, begin: about(chained, u, olx.theorems.interval_from(begin))
        return {
            "intervals": within(corners, jnp.arange(T)),
            "chained": jax.vmap(jax.vmap(covered, (None, 0)), (0, None))(corners, STARTS),
            "shifts": about(exact, jax.nn.one_hot(path, N), olx.theorems.changing),
            "changing": about(exact, blurred, olx.theorems.changing),
            "share": about(share, jax.nn.one_hot(path, N), olx.theorems.fixed_share_path),
            "share, blurred": about(share, blurred, olx.theorems.fixed_share_path),
        }

    return judge(losses)


def test_regret_is_small_on_every_interval(tracked):
    proofs = tracked["intervals"]
    assert np.all(proofs.holds)
    assert np.max(proofs.tightness[:, 20:]) > 0.2


def test_regret_of_the_streaming_version_is_small_on_chained_intervals(tracked):
    assert np.all(tracked["chained"].holds)
    assert np.max(tracked["chained"].tightness) > 0.1


@pytest.mark.parametrize("kind", ["shifts", "changing", "share"])
def test_regret_to_competitors_that_change_is_bounded(tracked, kind):
    assert tracked[kind].holds
    assert tracked[kind].tightness > 0.1


def test_a_path_of_mixtures_is_not_judged_as_one_of_experts(tracked):
    assert np.all(np.isinf(tracked["share, blurred"].right))
    assert "must follow one expert" in str(tracked["share, blurred"])


@pytest.mark.parametrize("make", [experts.ada_normal_hedge_tv, experts.ada_normal_hedge_streaming])
def test_rounds_that_no_copy_covers_are_not_judged(make):
    """Made for 3 rounds: of the one copies start in the first 3, of the other in none divisible by
    4, so that one of round 5 covers rounds 5 to 7."""
    learner, game = make(3), (olx.losses.linear_loss, olx.Rounds(None, LOSSES[:8]), jnp.ones(N))
    late = olx.theorems.interval_from(4)
    whole, part = (
        olx.certify(learner, *game, jnp.eye(N)[0], theorems=(one,))[0]
        for one in (olx.theorems.interval_from(0), late)
    )
    assert whole.holds
    assert part.holds
    copied = make is experts.ada_normal_hedge_tv
    np.testing.assert_array_equal(np.isfinite(whole.right), [True] * 3 + [copied] * 5)
    np.testing.assert_array_equal(np.isinf(part.right), np.arange(8) >= (4 if copied else 7))


def test_a_comparator_that_changes_needs_a_row_for_every_round():
    learner, rounds = experts.fixed_share(0.5, 0.1), olx.Rounds(None, LOSSES[:6])
    game = olx.losses.linear_loss, rounds, jnp.ones(N)
    few, share = jnp.eye(N)[jnp.zeros(4, int)], (olx.theorems.fixed_share_path,)
    proof = olx.certify(learner, *game, few, theorems=share)[0]
    np.testing.assert_array_equal(np.isinf(proof.right), np.arange(6) >= 4)
    run = olx.rollout(learner, *game, record=olx.record.trace)
    with pytest.raises(TypeError, match="certify: `u` must have a row for each of 6 rounds"):
        olx.certify(learner, run, few, theorems=share)
    whole = jnp.concatenate([few, few[:2]])
    recorded = olx.certify(learner, run, whole, theorems=share)[0]
    replayed = olx.certify(learner, *game, whole, theorems=share)[0]
    np.testing.assert_allclose(recorded.right, replayed.right, rtol=1e-12)
    np.testing.assert_allclose(recorded.left, replayed.left, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_a_sequence_is_a_sum_of_intervals_of_least_weight(size):
    v = np.round(RNG.random(size) * (RNG.random(size) < 0.8), 2)
    pieces = hindsight.intervals(v)
    rebuilt = np.zeros(size)
    for piece in pieces:
        rebuilt[piece.start : piece.stop] += piece.weight
    np.testing.assert_allclose(rebuilt, v, atol=1e-12)
    total = sum(piece.weight for piece in pieces)
    np.testing.assert_allclose(total, ref.peeled(v), atol=1e-12)
    np.testing.assert_allclose(
        total, hindsight.upward_variation(jnp.asarray(v)[:, None]), atol=1e-12
    )


EPSILONS = (0.05, 0.3)


@pytest.fixture(scope="module")
def looked_back():
    """Quantiles and small losses, for learners on random losses."""
    names = ("ada_normal_hedge", "two_norm")

    @program
    def look(losses):
        seen = {}
        for name in names:
            learner, rounds = LEARNERS[name][0], olx.Rounds(None, losses)
            loss = olx.losses.linear_loss
            run = olx.rollout(learner, loss, rounds, jnp.ones(N), record=olx.record.trace)
            theorems = tuple(olx.theorems.quantile(learner, eps) for eps in EPSILONS)
            quantiles = list(olx.certify(learner, run, None, theorems=theorems))
            seen[name] = hindsight.expert_regrets(learner, run), quantiles
            if name == "ada_normal_hedge":
                small = lambda u, own=learner, run=run: olx.certify(own, run, u)["small_losses"]
                seen["small losses"] = jax.vmap(small)(MIXTURES)
        return seen

    return look(jnp.asarray(ROWS["gap"].losses[:80] * np.linspace(0.1, 1, N)))


def test_regret_to_every_quantile_is_bounded(looked_back):
    for regrets, quantiles in (looked_back["ada_normal_hedge"], looked_back["two_norm"]):
        for eps, proof in zip(EPSILONS, quantiles, strict=True):
            assert proof.holds, str(proof)
            rank = int(np.ceil(N * eps))
            wanted = np.sort(np.asarray(regrets), axis=1)[:, -rank]
            np.testing.assert_allclose(proof.left, wanted, atol=1e-12)
    root = np.sqrt(np.arange(1, 81) / 0.3)
    proof = looked_back["two_norm"][1][1]
    np.testing.assert_allclose(proof.right, root, rtol=1e-9)  # sqrt(T / epsilon)


def test_regret_is_bounded_by_small_losses(looked_back):
    assert np.all(looked_back["small losses"].holds)
    assert np.max(looked_back["small losses"].tightness) > 0.1


def test_mean_regret_with_a_gap_is_bounded():
    learner, gap = experts.ada_normal_hedge(), 0.3

    @program
    @jax.vmap
    def play(key):
        rounds, truth = streams.expert_losses(key, T, N, gap=gap)
        run = olx.rollout(
            learner, olx.losses.linear_loss, rounds, jnp.ones(N), record=olx.record.trace
        )
        regret = jnp.cumsum(run.losses - rounds.outcome @ truth)
        proof = olx.certify(learner, run, truth, theorems=(olx.theorems.random_gap(gap),))[0]
        return regret, proof.right

    regrets, bounds = play(random.split(KEY, 20))
    mean, most = np.mean(regrets, axis=0), np.mean(bounds, axis=0)
    assert np.all(mean <= most)
    assert mean[-1] > most[-1] / 50


def behind(s):
    return (s <= 0).astype(float)


def slope(s):
    return jnp.maximum(1.0 - s, 0.0)


MOVES = {
    "two": ((-1.0, 1.0), 0.3),
    "two, fair": ((-1.0, 1.0), 0.0),
    "three": ((-1.0, 0.0, 1.0), 0.2),
    "three, fair": ((-1.0, 0.0, 1.0), 0.0),  # the least mean is one of the moves
    "uneven": ((-0.5, 0.25, 1.5), 0.1),
    "up only": ((0.25, 0.5), 0.25),
}


@pytest.mark.parametrize("name", MOVES)
def test_potentials_of_the_drifting_game_solve_its_recursion(name):
    moves, beta = MOVES[name]
    rounds, unit = 5, 0.25
    game = experts.drifting_game(behind, rounds, beta, moves)
    grid = np.round(np.asarray(game.hparams.unit) / unit)
    middle = game.hparams.table.shape[1] // 2
    for t in (0, 2, 4):
        chips = grid * unit * np.arange(-3, 4)
        state = game.init(jnp.zeros(7))._replace(position=jnp.asarray(chips), rounds=jnp.asarray(t))
        p, wanted = np.asarray(game.predict(state)), []
        for k, s in enumerate(chips):
            value, weights = ref.drifting_value(
                lambda v: float(v <= 1e-9), beta, t, rounds, s, moves
            )
            np.testing.assert_allclose(game.hparams.table[t, middle - 3 + k], value, atol=1e-12)
            wanted.append((weights.min(), weights.max()))
        low, high = np.array(wanted).T
        assert np.all(p * high.sum() >= low - 1e-9)  # p is proportional to weights in their ranges
        assert np.all(p * low.sum() <= high + 1e-9)


@pytest.mark.parametrize("name", ["two", "three", "uneven"])
def test_chips_never_cost_more_than_the_first_potential(name):
    rounds, (options, beta) = 24, MOVES[name]
    game = experts.drifting_game(behind, rounds, beta, options)

    def moves(row, t, p):
        """Up as few as it takes, those of most weight first, by turns with all other moves."""
        order = jnp.argsort(-p)
        low, top = jnp.asarray(options)[t % (len(options) - 1)], options[-1]
        needed = jnp.cumsum(p[order]) - p[order] < (beta - low) / (top - low)
        return jnp.zeros_like(p).at[order].set(jnp.where(needed, top, low)), t + 1

    nature = olx.Adversary(None, olx.losses.linear_loss, first_round, lambda row, t: None, moves)
    run = program(lambda: olx.play(game, nature, jnp.ones(12), rounds, record=olx.record.trace))()
    proof = olx.certify(game, run, None)[0]
    assert proof.holds
    assert np.all(np.isfinite(proof.right))
    cost = np.mean(np.asarray(run.state.position) <= 0)
    assert cost <= proof.published[-1] + 1e-12
    assert proof.tightness > 0.9


def test_what_the_drifting_game_is_not_about_is_not_judged():
    def judged(final, moves, rounds=6, beta=0.0):
        game = experts.drifting_game(final, rounds, beta)
        told = olx.Rounds(None, jnp.asarray(moves))
        run = olx.rollout(game, olx.losses.linear_loss, told, jnp.ones(2), record=olx.record.trace)
        return olx.certify(game, run, None)[0]

    halves = judged(behind, [[0.5, 0.5]] * 6)  # not legal: the potential is not convex
    assert halves.holds
    assert np.all(np.isinf(halves.right))
    legal = judged(slope, [[0.5, -0.5], [-0.5, 0.5]] * 3)
    assert legal.holds
    assert np.isfinite(legal.right[0])
    far = judged(slope, [[1.5, 1.5]] * 6)
    assert np.all(np.isinf(far.right))
    late = judged(behind, [[1.0, 1.0]] * 8)
    np.testing.assert_array_equal(np.isinf(late.right), np.arange(8) >= 6)
    assert late.holds


@pytest.mark.parametrize("moves", [(), (0.0,), (-1.0, np.sqrt(2)), (-1.0, np.inf), (-1e-4, 3.0)])
def test_moves_without_a_common_unit_are_refused(moves):
    with pytest.raises(ValueError, match="drifting_game: `moves` must"):
        experts.drifting_game(behind, 200, 0.0, moves)


def test_theorem_1_counts_losers_in_both_games():
    length, margins = 60, (0.0, 0.5, 1.0, 2.0, 4.0)
    losses = jnp.asarray(ROWS["switching"].losses[:length])
    there = experts.experts_from_game(experts.drifting_game(slope, length))
    back = experts.game_from_experts(experts.ada_normal_hedge())

    @program
    def play(losses):
        loss = olx.losses.linear_loss
        run = olx.rollout(
            there, loss, olx.Rounds(None, losses), jnp.ones(N), record=olx.record.trace
        )
        moves = 0.5 * losses - 0.05  # to both sides, more than 0 in the mean or not
        game = olx.rollout(
            back, loss, olx.Rounds(None, moves), jnp.ones(N), record=olx.record.trace
        )
        theorems = tuple(olx.theorems.equivalence(margin) for margin in margins)
        both = [
            list(olx.certify(learner, one, None, theorems=theorems))
            for learner, one in ((there, run), (back, game))
        ]
        return both, olx.certify(there, run, None)[0], run.losses

    theorems = (olx.theorems.equivalence(1.0),)
    (here, there_), proof, value = play(losses)
    regret = np.cumsum(np.asarray(value)[:, None] - np.asarray(losses), axis=0)
    for margin, one in zip(margins, here, strict=True):
        assert one.holds
        np.testing.assert_allclose(one.left, np.mean(regret >= margin, axis=1), atol=1e-12)
        np.testing.assert_allclose(one.right, one.left, atol=1e-12)
    for one in there_:
        assert one.holds
    assert np.isfinite(there_[0].right[0])
    assert np.max([one.left for one in here]) > 0.2
    assert proof.holds  # the mean of L at minus the regrets
    np.testing.assert_allclose(proof.left[-1], np.mean(np.maximum(1 + regret[-1], 0)), atol=1e-9)
    with pytest.raises(TypeError, match="certify: `equivalence` is about one of"):
        olx.certify(experts.two_norm(), olx.Run(None, None), None, theorems=theorems)


def test_the_two_conversions_undo_each_other():
    """Theorem 1: the same distributions, and as many chips behind as experts with regret."""
    length = 40
    losses = jnp.asarray(ROWS["random"].losses[:length])
    game = experts.drifting_game(slope, length)
    there = experts.experts_from_game(game)
    back = experts.experts_from_game(experts.game_from_experts(there))

    @program
    def play(losses):
        loss, rounds = olx.losses.linear_loss, olx.Rounds(None, losses)
        runs = [
            olx.rollout(each, loss, rounds, jnp.ones(N), record=olx.record.actions)
            for each in (there, back)
        ]
        return [run.trace for run in runs], runs[0].losses, runs[0].state.position

    (first, second), value, position = play(losses)
    np.testing.assert_allclose(first, second, atol=1e-10)
    regrets = np.sum(np.asarray(value)[:, None] - np.asarray(losses), axis=0)
    np.testing.assert_allclose(-position, regrets, atol=1e-10)
    mean = np.mean(slope(np.asarray(position)))
    assert mean <= game.hparams.table[0, length + 1] + 1e-9
