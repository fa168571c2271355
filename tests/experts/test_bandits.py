"""Drawing one expert, and bandits: against NumPy, and against their theorems over many draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx.experts.ada_normal_hedge import ada_normal_hedge
from olx.experts.bandit import bandit, estimate
from olx.experts.base import expected_loss
from olx.experts.exp3 import exp3, exp3_bound, exp3_step
from olx.experts.potential_experts import potential_experts
from olx.experts.sampled import committed, sampled, sampled_draws
from olx.losses.points import linear_feedback

T, N, GAMES = 300, 5, 400
KEYS = jax.random.split(jax.random.key(3), GAMES)
UNIFORM = jnp.full(N, 1 / N)
DELTA = 0.1
FREAK = 1e-6  # the chance that a true theorem would fail a test, were the seeds not fixed
STREAMS = {
    "gap": olx.streams.expert_losses(jax.random.key(0), T, N, gap=0.25).rounds.outcome,
    "no gap": olx.streams.expert_losses(jax.random.key(1), T, N, gap=0.0).rounds.outcome,
    "alternating": olx.streams.alternating_losses(T, N).rounds.outcome,
    "drifting": olx.streams.drifting_losses(jax.random.key(2), T, N, 0.02).rounds.outcome,
}
LOSSES = jnp.stack(list(STREAMS.values()))


def lucky(share: float) -> float:
    """How often something of chance at most `share` may happen in GAMES games."""
    return share + np.sqrt(np.log(1 / FREAK) / (2 * GAMES))


@pytest.fixture(scope="module")
def hedges():
    """Sampled Hedge on every stream: regrets [stream, game, T, N], certificates, actions, p."""
    eta = np.sqrt(2 * np.log(N / DELTA) / T)

    @jax.jit
    def play(losses, key):
        learner = sampled(olx.hedge(eta), key)
        rounds = olx.Rounds(None, losses)
        run = olx.rollout(learner, olx.losses.linear_loss, rounds, UNIFORM, record=olx.record.trace)
        squares = jnp.sum((jnp.max(losses, axis=1) - jnp.min(losses, axis=1)) ** 2)
        draws = (sampled_draws(DELTA, squares),)
        judge = lambda u: olx.certify(learner, run, u, theorems=draws)[0]
        proofs = jax.vmap(judge)(jnp.eye(N))
        p = jax.vmap(learner.hparams.inner.predict)(run.trace.state.inner)
        return run.losses, proofs.slack, proofs.tightness, run.trace.feedback.action, p

    over = jax.vmap(jax.vmap(play, (None, 0)), (0, None))
    return eta, jax.tree.map(np.asarray, over(LOSSES, KEYS))


def test_an_action_is_a_vertex(hedges):
    action = hedges[1][3]
    assert np.all((action == 0) | (action == 1))
    np.testing.assert_array_equal(action.sum(-1), 1.0)


def test_experts_are_drawn_as_often_as_their_weights_say(hedges):
    _, _, _, action, p = hedges[1]
    apart = np.abs(action.mean(1) - p[:, 0])
    assert apart.max() < np.sqrt(np.log(2 * apart.size / FREAK) / (2 * GAMES))
    assert np.ptp(p[0, 0, -1]) > 0.5  # the chances are not all the same


def test_draws_lose_little_more_than_the_bound_of_their_distribution(hedges):
    """Fails by chance with probability below FREAK a comparator."""
    slack, tightness = hedges[1][1], hedges[1][2]
    broken = np.any(slack < 0, axis=-1).mean(axis=1)
    assert broken.max() <= lucky(DELTA)
    assert tightness.max() > 0.4


def test_draws_of_hedge_keep_its_bound_with_high_probability(hedges):
    """Section 2.1.5: P(regret to any expert >= R) <= N cosh(eta)^T exp(-eta R)."""
    eta, (losses, *_) = hedges
    regret = losses.sum(-1)[..., None] - np.asarray(LOSSES).sum(1)[:, None]
    right = (np.log(N / DELTA) + T * np.log(np.cosh(eta))) / eta
    assert right <= np.sqrt(2 * T * np.log(N / DELTA))
    assert np.any(regret >= right, axis=-1).mean(axis=1).max() <= lucky(DELTA)
    assert regret.max() > 0.5 * right


def normal_hedge_dt(s, t):
    low = lambda x: np.minimum(x, 0) ** 2 / (3 * t)
    w = np.exp(low(s - 1)) - np.exp(low(s + 1))
    return w / w.sum()


@pytest.fixture(scope="module")
def normal_hedges():
    @jax.jit
    def play(losses, key):
        learner = committed(ada_normal_hedge(exponent=0.0), key)
        record = lambda state, feedback: (
            feedback.action,
            learner.hparams.inner.predict(state.inner),
        )
        rounds = olx.Rounds(None, losses)
        run = olx.rollout(learner, olx.losses.linear_loss, rounds, UNIFORM, record=record)
        return run.losses, *run.trace

    over = jax.vmap(jax.vmap(play, (None, 0)), (0, None))
    return jax.tree.map(np.asarray, over(LOSSES, KEYS))


def test_a_committed_learner_is_charged_with_its_draw(normal_hedges):
    _, action, p = normal_hedges
    for stream in range(len(STREAMS)):
        losses, s, wanted = np.asarray(LOSSES[stream]), np.zeros(N), []
        for t in range(T):
            wanted.append(normal_hedge_dt(s, t + 1))
            s = s + losses[t] - losses[t] @ action[stream, 0, t]
        np.testing.assert_allclose(p[stream, 0], wanted, atol=1e-12)


def test_draws_of_normal_hedge_dt_keep_its_bound_with_high_probability(normal_hedges):
    """Corollary 2 at epsilon = delta / N, at each number of rounds."""
    losses, *_ = normal_hedges
    regret = np.cumsum(losses, -1)[..., None] - np.cumsum(np.asarray(LOSSES), 1)[:, None]
    t = np.arange(1, T + 1)
    potential = np.cumsum(np.expm1(4 / (3 * t))) / 2
    right = np.sqrt(3 * t * np.log(potential * N / DELTA + 1))
    assert np.any(regret >= right[:, None], axis=-1).mean(axis=1).max() <= lucky(DELTA)
    assert (regret.max(-1) / right).max() > 0.3


@pytest.fixture(scope="module")
def bandits():
    eta = float(exp3_step(T, N))

    @jax.jit
    def play(losses, key):
        learner = exp3(eta, key)
        run = olx.rollout(
            learner, expected_loss, olx.Rounds(None, losses), UNIFORM, record=olx.record.trace
        )
        points = jnp.concatenate([jnp.eye(N), UNIFORM[None]])
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(points)
        p = jnp.exp(run.trace.state.inner.log_weights)
        return run.losses, proofs.holds, proofs.tightness, run.trace.feedback.action, p

    over = jax.vmap(jax.vmap(play, (None, 0)), (0, None))
    return eta, jax.tree.map(np.asarray, over(LOSSES, KEYS))


def test_exp3_is_what_the_notes_say(bandits):
    eta, (_, _, _, action, p) = bandits
    for stream in range(len(STREAMS)):
        losses, total, wanted = np.asarray(LOSSES[stream]), np.zeros(N), []
        for t in range(T):
            w = np.exp(-eta * (total - total.min()))
            wanted.append(w / w.sum())
            arm = action[stream, 1, t].argmax()
            total[arm] += losses[t, arm] / wanted[-1][arm]
        np.testing.assert_allclose(p[stream, 1], wanted, atol=1e-12)


def test_exp3_keeps_its_bound_on_estimates_whatever_it_drew(bandits):
    _, holds, tightness, *_ = bandits[1]
    assert np.all(holds)
    assert tightness.max() > 0.5


def test_exp3_keeps_its_bound_in_expectation(bandits):
    """Theorem 21, every number of rounds; the mean of games may err by five standard errors."""
    eta, (losses, *_) = bandits
    regret = np.cumsum(losses, -1)[..., None] - np.cumsum(np.asarray(LOSSES), 1)[:, None]
    mean, error = regret.mean(1), regret.std(1) / np.sqrt(GAMES)
    right = np.asarray(exp3_bound(eta, np.arange(1.0, T + 1), N))
    assert np.all(mean <= right[:, None] + 5 * error)
    assert (mean[:, -1].max(-1) / right[-1]).max() > 0.1
    second = np.sort(regret[:, :, -1].mean(1), axis=-1)[:, -2]  # epsilon = 2 / N
    assert np.all(second <= exp3_bound(eta, float(T), N, 2 / N) + 5 * error.max())


def test_exp3_is_the_bandit_of_hedge(bandits):
    rounds = olx.Rounds(None, LOSSES[0])
    eta, (losses, *_) = bandits
    run = olx.rollout(bandit(olx.hedge(eta), KEYS[0]), expected_loss, rounds, UNIFORM)
    np.testing.assert_array_equal(run.losses, losses[0, 0])


def test_only_the_loss_of_the_arm_pulled_is_looked_at(bandits):
    eta, (losses, _, _, action, _) = bandits
    hidden = jnp.where(action[0, 0] == 1, LOSSES[0], jnp.nan)
    run = olx.rollout(exp3(eta, KEYS[0]), expected_loss, olx.Rounds(None, hidden), UNIFORM)
    np.testing.assert_array_equal(run.losses, losses[0, 0])
    assert np.all(np.isfinite(run.state.inner.log_weights))


def test_exp3_keeps_its_bound_on_weighted_rounds():
    rounds = olx.Rounds(None, LOSSES[1], jnp.asarray(np.random.default_rng(0).uniform(0, 2, T)))
    learner = exp3(0.1, KEYS[0])
    run = olx.rollout(learner, expected_loss, rounds, UNIFORM, record=olx.record.trace)
    proof = olx.certify(learner, run, jnp.eye(N)[2])[0]
    assert proof.holds
    seen = run.trace.feedback.action * rounds.outcome / jnp.exp(run.trace.state.inner.log_weights)
    gap = rounds.weight * (run.losses - seen[:, 2])
    np.testing.assert_allclose(proof.left, jnp.cumsum(gap), rtol=1e-9, atol=1e-9)


def test_estimates_are_unbiased_and_cost_what_was_paid():
    p, losses = np.array([0.1, 0.2, 0.7]), np.array([0.3, 0.9, 0.5])
    arms = np.eye(3)
    seen = [
        np.asarray(
            estimate(jnp.asarray(p), linear_feedback(jnp.asarray(arm), jnp.asarray(losses), 1.0))
        )
        for arm in arms
    ]
    np.testing.assert_allclose(p @ np.stack(seen), losses, rtol=1e-14)
    np.testing.assert_allclose([each @ p for each in seen], losses, rtol=1e-14)


def test_the_tuned_step_is_best():
    step = float(exp3_step(1000, 10))
    others = [float(exp3_bound(step * factor, 1000.0, 10)) for factor in (0.9, 1.0, 1.1)]
    assert np.argmin(others) == 1
    wanted = np.sqrt(2 * 1000 * (1 + 10 * np.sqrt(np.e)) * np.log(10))
    np.testing.assert_allclose(others[1], wanted, rtol=1e-12)


def test_other_potentials_make_other_bandits():
    @jax.jit
    def play(key):
        learner = bandit(olx.omd(0.3, olx.mirrors.tsallis(0.5)), key)
        return olx.rollout(learner, expected_loss, olx.Rounds(None, LOSSES[0]), UNIFORM).total

    uniform, best = LOSSES[0].mean(1).sum(), LOSSES[0].sum(0).min()
    assert jax.vmap(play)(KEYS[:20]).mean() < (uniform + best) / 2


@pytest.mark.parametrize("eta", [0.0, -0.1, 1.5])
def test_exp3_refuses_steps_its_theorem_is_not_for(eta):
    with pytest.raises(ValueError, match=r"exp3: `eta` must lie in \(0, 1\]"):
        exp3(eta, KEYS[0])


@pytest.mark.parametrize("make", [sampled, committed, bandit])
def test_what_is_no_learner_is_refused(make):
    with pytest.raises(TypeError, match="`inner` must be a Learner"):
        make("hedge", KEYS[0])


def test_a_bad_grid_point_shows_at_its_own_index():
    learners = olx.batch(lambda eta: exp3(eta, KEYS[0]), eta=jnp.array([0.1, -1.0, 0.2]))
    rounds = olx.Rounds(None, LOSSES[0][:20])
    losses = olx.sweep(learners, expected_loss, rounds, UNIFORM).losses
    assert np.all(np.isfinite(losses[np.array([0, 2])]))
    assert np.isnan(losses[1, 1:]).all()  # the first draw is from the prior alone


def exponential(eta, rounds, arms, t, s):
    """The potential of EXP3 at R = 0: (A.3) holds with equality."""
    step = (jnp.exp(eta) + jnp.exp(-eta) + arms * jnp.exp(eta) * eta**2) / 2
    return jnp.exp(-eta * s) * step ** (rounds - t)


def exponential_bandit(key, **span):
    potential = Partial(exponential, float(exp3_step(T, N)), float(T), N)
    return bandit(potential_experts(potential, **span), key)


@pytest.fixture(scope="module")
def potential_bandit():
    learner, wider = exponential_bandit(KEYS[0]), exponential_bandit(KEYS[0], low=-2.0, high=3.0)

    @jax.jit
    def play(losses):
        rounds = olx.Rounds(None, losses)
        run = olx.rollout(learner, expected_loss, rounds, UNIFORM, record=olx.record.trace)
        wide = olx.Rounds(None, 5 * losses - 2)
        other = olx.rollout(wider, expected_loss, wide, UNIFORM)
        return run.losses, other.losses, olx.certify(learner, run, None)[0]

    return jax.vmap(play)(LOSSES)


def test_algorithm_24_with_the_exponential_potential_is_exp3(potential_bandit, bandits):
    np.testing.assert_array_equal(potential_bandit[0], bandits[1][0][:, 0])


def test_a_bandit_of_another_range_is_rescaled(potential_bandit):
    np.testing.assert_allclose((potential_bandit[1] + 2) / 5, potential_bandit[0], atol=1e-12)


def test_the_potential_of_a_bandit_does_not_rise_in_expectation(potential_bandit):
    """Theorem 20, after every round."""
    proof = potential_bandit[2]
    assert np.all(proof.holds)
    assert np.all(np.isfinite(proof.published))
    assert np.min(proof.tightness) > 0.9


def test_a_potential_without_the_condition_of_theorem_20_is_not_judged_by_it():
    steep = lambda t, s: jnp.exp(-0.3 * s)  # falls by no factor from round to round
    learner = bandit(potential_experts(steep), KEYS[0])
    rounds = olx.Rounds(None, LOSSES[0][:20])
    run = olx.rollout(learner, expected_loss, rounds, UNIFORM, record=olx.record.trace)
    proof = olx.certify(learner, run, None)[0]
    assert proof.holds
    assert np.all(np.isinf(proof.published))
    assert np.all(np.isfinite(proof.right))


@pytest.mark.parametrize(
    "experts", [ada_normal_hedge(), olx.experts.prod(0.1), olx.experts.adahedge()]
)
def test_experts_whose_losses_are_bounded_are_not_for_bandits(experts):
    owner = experts.hparams.owner
    with pytest.raises(TypeError, match=f"bandit: `inner` must take .*, got `{owner}`"):
        bandit(experts, KEYS[0])


def test_an_anytime_hedge_makes_a_bandit_and_refuses_losses_out_of_range():
    learner = bandit(olx.experts.anytime_hedge(0.1), KEYS[0])
    losses = LOSSES[0][:20]
    fine = olx.rollout(learner, expected_loss, olx.Rounds(None, losses), UNIFORM)
    same = olx.rollout(exp3(0.1, KEYS[0]), expected_loss, olx.Rounds(None, losses), UNIFORM)
    np.testing.assert_array_equal(fine.losses, same.losses)
    beyond = olx.Rounds(None, losses.at[5].set(1.5))
    assert np.isnan(olx.rollout(learner, expected_loss, beyond, UNIFORM).losses[6:]).all()


def test_nobody_awake_means_that_nobody_is_drawn():
    awake = jnp.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    losses = jnp.where(awake == 0, jnp.nan, 0.5)
    learner = sampled(ada_normal_hedge(), KEYS[0])
    run = olx.rollout(learner, expected_loss, olx.Rounds(awake, losses), jnp.ones(2))
    np.testing.assert_array_equal(run.losses, [0.5, 0.0, 0.5])
