"""The mixability gap: against exact arithmetic, and theorems where a leader loses a long lead."""

import decimal
from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import experts, hindsight
from olx.experts.base import seen
from olx.experts.hedge import mix_gap
from olx.losses.points import linear_feedback

RNG = np.random.default_rng(11)
both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def exact_gap(eta, regret, losses):
    """The gap of Hedge from a uniform prior, to 400 digits."""
    with decimal.localcontext(prec=400, Emin=-(10**9), Emax=10**9):
        eta = Decimal(float(eta))
        mass = [(eta * Decimal(float(r))).exp() for r in regret]
        share = [m / sum(mass) for m in mass]
        mean = sum(p * Decimal(float(z)) for p, z in zip(share, losses, strict=True))
        gain = [mean - Decimal(float(z)) for z in losses]
        mixed = sum(p * (eta * r).exp() for p, r in zip(share, gain, strict=True))
        return float(mixed.ln() / eta)


@jax.jit
@jax.vmap
def gap_of_hedge(eta, regret, losses):
    learner = experts.anytime_hedge(eta)
    state = learner.init(jnp.ones_like(regret))
    state = state._replace(stats=state.stats._replace(regret=regret))
    told = linear_feedback(learner.predict(state), losses, 1.0)
    round_ = seen(learner.hparams, state, told)
    return mix_gap(round_.log_share, round_.regret, eta)


def hard_cases(size):
    """Steps from tiny to huge; leads from none to a thousand times what a share can hold."""
    for eta in np.geomspace(1e-8, 1e6, 8):
        for lead in (0.0, 1.0, 30.0, 90.0, 800.0, 1e5):
            regret = np.zeros(size)
            regret[0] = lead / eta
            regret[1:] -= RNG.random(size - 1) * (lead > 1) / eta
            first = np.eye(size)[0]
            for losses in (first, 1 - first, RNG.random(size), first * 1e-6 + 0.5):
                yield eta, regret, losses


@both_precisions
@pytest.mark.parametrize("size", [2, 12])
def test_the_gap_is_exact_for_every_step_and_share(size, dtype):
    eta, regret, losses = (
        np.stack(part).astype(dtype) for part in zip(*hard_cases(size), strict=True)
    )
    gaps = np.asarray(gap_of_hedge(eta, regret, losses), np.float64)
    wanted = np.array([exact_gap(*case) for case in zip(eta, regret, losses, strict=True)])
    eps, lead = np.finfo(dtype).eps, np.max(np.abs(regret), axis=1)
    # A share is the exponential of a sum of the size eta times a regret, and as wrong as that sum;
    # what is too small for a number is 0. A gap of the size of a regret is as wrong as it is.
    relative = eps * (100 + 4 * np.minimum(eta * lead, 700)) * wanted
    least = np.finfo(dtype).tiny * (1 / eta + 2 * size)
    absolute = np.where(eta * wanted > 1, 4 * eps * (1 + lead), least)
    assert np.all(np.isfinite(gaps))
    wrong = np.abs(gaps - wanted) > relative + absolute
    assert not np.any(wrong), (eta[wrong], lead[wrong], gaps[wrong], wanted[wrong])


def test_the_gap_has_the_slope_of_differences():
    eta, regret, losses = (np.stack(part) for part in zip(*hard_cases(4), strict=True))
    tilt, step, at = np.array([0.3, -0.2, 0.1, 0.4]), 1e-6, (jnp.log(eta), 0.2 + 0.6 * losses)
    total = lambda log_eta, losses: gap_of_hedge(jnp.exp(log_eta), regret, losses)
    along = (jnp.ones(len(eta)), jnp.broadcast_to(tilt, losses.shape))
    _, slope = jax.jvp(total, at, along)
    move = lambda sign: np.asarray(total(at[0] + sign * step, at[1] + sign * step * tilt))
    assert np.all(np.isfinite(slope))
    calm = eta <= 100  # a step of 1e-6 is small for it
    differences = (move(1) - move(-1)) / (2 * step)
    np.testing.assert_allclose(slope[calm], differences[calm], rtol=1e-4, atol=1e-8)


def lead_then_alternate(lead, size, others, rounds=1000):
    losses = np.zeros((lead + rounds, 1 + others))
    losses[:lead, 1:] = size
    losses[lead::2, 0] = 1
    losses[lead + 1 :: 2, 1:] = 1
    return losses


def tied_at_first():
    """The first round ties all who are awake; then two experts take turns."""
    confidence, losses = np.ones((1001, 3)), np.ones((1001, 3))
    confidence[0], losses[0], losses[1, 1] = (0, 0.3, 0.3), 0.5, 0.5
    losses[2::2, 0] = losses[3::2, 1] = 0
    return confidence, losses


FALLS = {  # a learner, who is awake, losses
    "adahedge": (experts.adahedge(), None, lead_then_alternate(40, 0.002, 1)),
    "adahedge, many experts": (experts.adahedge(), None, lead_then_alternate(40, 0.002, 99)),
    "adahedge, a lead no share can hold": (
        experts.adahedge(),
        None,
        lead_then_alternate(600, 0.002, 1, 400),
    ),
    "adahedge, tied": (experts.adahedge(), *tied_at_first()),
    "anytime_hedge": (experts.anytime_hedge(1000.0), None, np.array([[1.0, 0.9], [0.0, 1.0]])),
    "fixed_share": (experts.fixed_share(100.0, 1e-9), None, lead_then_alternate(20, 0.5, 1, 120)),
}


@jax.jit
def fall(learner, rounds, start):
    run = olx.rollout(learner, olx.losses.linear_loss, rounds, start, record=olx.record.trace)
    regrets = hindsight.expert_regrets(learner, run)
    best = jax.nn.one_hot(jnp.argmax(regrets[-1]), start.size, dtype=start.dtype)
    return run.losses, jnp.max(regrets[-1]), olx.certify(learner, run, best)[0]


@both_precisions
@pytest.mark.parametrize("name", FALLS)
def test_a_leader_that_falls_costs_no_more_than_its_theorem_says(name, dtype):
    learner, confidence, losses = FALLS[name]
    awake = None if confidence is None else jnp.asarray(confidence, dtype)
    rounds = olx.Rounds(awake, jnp.asarray(losses, dtype))
    losses, regret, proof = fall(learner, rounds, jnp.ones(losses.shape[1], dtype))
    assert proof.holds, str(proof)
    assert np.all(np.isfinite(proof.right))
    assert np.all(np.isfinite(losses))
    assert regret <= proof.published[-1]


def test_rounds_in_which_all_lose_alike_teach_nothing_at_all():
    """A tie of losses that no binary number hits, with weights that do not add up to 1."""
    learner = experts.adahedge(prior=jnp.array([0.1, 0.2, 0.3, 0.7]))
    losses = jnp.broadcast_to(jnp.linspace(0.1, 0.9, 50)[:, None], (50, 4))
    confidence = jnp.asarray(RNG.random((50, 4)))
    rounds = olx.Rounds(confidence, losses)
    run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(4))
    np.testing.assert_array_equal(run.state.stats.regret, 0.0)
    np.testing.assert_array_equal(run.state.stats.gap, 0.0)


def test_an_expert_without_prior_does_not_swallow_fixed_share():
    rounds = olx.Rounds(None, jnp.array([[0.0, 1.0, 0.9]] * 3))
    learner = experts.fixed_share(1000.0, 0.01, prior=jnp.array([0.0, 1.0, 1.0]))
    run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(3))
    np.testing.assert_allclose(run.losses, [0.95, 0.9005, 0.9005], rtol=1e-12)


STREAMS = {2: 700, 30: 285, 1000: 15}  # how many of each size
LENGTH = 200


def drawn_numbers(streams):
    """How long the lead is and how large, how much is lost by turns, steps and shares."""
    low, high = np.array([0, -7, -2, -2, -2, -12]), np.array([2.3, 0, 0, 4, 3, -1])
    numbers = 10.0 ** RNG.uniform(low, high, (streams, 6))
    return numbers * np.array([1, 1, 1, 1, 1, 0.9]), np.arange(streams)


def one_stream(numbers, seed, size, dtype):
    """Expert 0 leads, then it and a random party take turns with the others."""
    lead, small, large = numbers[:3].astype(dtype)
    party, spread = jax.random.split(jax.random.fold_in(jax.random.key(0), seed))
    first = jnp.arange(size) == 0
    with_first = first | (jax.random.bernoulli(party, 0.3, (size,)) & (jnp.arange(size) != 1))
    t = jnp.arange(LENGTH, dtype=dtype)[:, None]
    behind = small * jax.random.uniform(spread, (size,), dtype, 0.5, 1.0)
    turn = jnp.where(with_first == (t % 2 == 0), large, jnp.zeros((), dtype))
    return jnp.where(t < lead, jnp.where(first, jnp.zeros((), dtype), behind), turn)


@both_precisions
@pytest.mark.parametrize("size", STREAMS)
def test_no_lead_that_is_lost_breaks_a_theorem_of_the_gap(size, dtype):
    """A thousand streams in all, each with a lead, then turns; every learner that uses the gap."""

    @jax.jit
    @jax.vmap
    def play(numbers, seed):
        losses = one_stream(numbers, seed, size, dtype)
        start, rounds = jnp.ones(size, dtype), olx.Rounds(None, losses)
        eta, share, alpha = numbers[3:].astype(dtype)
        judged = []
        for learner in (
            experts.adahedge(),
            experts.anytime_hedge(eta),
            experts.fixed_share(share, alpha),
        ):
            run = olx.rollout(
                learner, olx.losses.linear_loss, rounds, start, record=olx.record.trace
            )
            regret = jnp.cumsum(run.losses[:, None] - losses, axis=0)
            best = jax.nn.one_hot(jnp.argmax(regret[-1]), size, dtype=dtype)
            proof = olx.certify(learner, run, best)[0]
            rounding = 64 * jnp.finfo(dtype).eps * proof.scale
            printed = jnp.all(jnp.max(regret, axis=1) <= proof.published + rounding)
            judged.append((proof.holds, printed, jnp.isfinite(jnp.sum(proof.right))))
        return jnp.asarray(judged)

    numbers, seeds = drawn_numbers(STREAMS[size])
    judged = np.asarray(play(jnp.asarray(numbers), jnp.asarray(seeds)))
    assert judged.shape == (STREAMS[size], 3, 3)
    assert np.all(judged), numbers[~np.all(judged, axis=(1, 2))]
