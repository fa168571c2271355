"""Learners made of learners: mixtures of a batch, and copies restarted for changing worlds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.meta import flh, mix, saol

T, D, LEVELS = 300, 3, 7
RNG = np.random.default_rng(0)
CENTERS = np.repeat(RNG.uniform(-0.5, 0.5, size=(6, D)), T // 6, axis=0)
STREAMS = jnp.asarray(
    np.stack(
        [
            0.3 * RNG.uniform(-1, 1, size=(T, D)) + 0.2,
            CENTERS + 0.1 * RNG.uniform(-1, 1, size=(T, D)),
            np.where(np.arange(T) < 250, -1, 1)[:, None] * np.ones(D) / np.sqrt(D),
        ]
    )
)
ETAS = np.geomspace(0.01, 1.0, 6)
BALL = olx.mirrors.euclidean(olx.convex.sets.ball(1.0))


def square(w, y):
    """In [0, 1] on the ball, for outcomes in a ball of radius 1; half-exp-concave there."""
    return jnp.sum((w - y) ** 2) / 4


def ball(v):
    return v / max(1.0, np.linalg.norm(v))


def slope(w, y):
    return (w - y) / 2


@pytest.fixture(scope="module")
def mixed():
    grid = olx.batch(lambda eta: olx.md(eta, BALL), eta=jnp.asarray(ETAS))
    learner = mix(grid, olx.hedge(0.8))
    points = jnp.asarray(np.stack([np.zeros(D), np.full(D, 0.2), CENTERS[0]]))

    @jax.jit
    def play(outcomes):
        rounds = olx.Rounds(None, outcomes)
        run = olx.rollout(learner, square, rounds, jnp.zeros(D), record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(points)
        p = jax.vmap(learner.hparams.mixer.predict)(run.trace.state.mixer)
        alone = lambda one: olx.rollout(one, square, rounds, jnp.zeros(D))
        return run, proofs, p, jax.vmap(alone)(grid.learners)

    return jax.vmap(play)(STREAMS)


@pytest.mark.parametrize("which", range(len(STREAMS)))
def test_a_mixture_is_what_it_says(mixed, which):
    run, _, p, _ = jax.tree.map(lambda leaf: np.asarray(leaf[which]), mixed)
    w, total, actions, weights = np.zeros((len(ETAS), D)), np.zeros(len(ETAS)), [], []
    for y in np.asarray(STREAMS[which]):
        q = np.exp(-0.8 * (total - total.min()))
        weights.append(q / q.sum())
        actions.append(weights[-1] @ w)
        total = total + np.sum((w - y) ** 2, axis=1) / 4
        w = np.array([ball(v - e * slope(v, y)) for v, e in zip(w, ETAS, strict=True)])
    np.testing.assert_allclose(run.trace.feedback.action, actions, atol=1e-12)
    np.testing.assert_allclose(p, weights, atol=1e-12)


def test_every_learner_of_a_mixture_learns_as_if_alone(mixed):
    run, _, _, alone = mixed
    olx.testing.report.close("states", run.state.experts, alone.state, rtol=1e-12)


def test_a_mixture_keeps_its_bound_after_every_round(mixed):
    proofs = mixed[1]
    assert proofs.left.shape == (3, 3, T)
    assert np.all(proofs.holds)
    assert np.max(proofs.tightness) > 0.3


def test_the_left_side_of_its_bound_is_at_least_the_regret(mixed):
    run, proofs, *_ = mixed
    other = np.sum((0.2 - np.asarray(STREAMS)) ** 2, axis=2) / 4
    regret = np.cumsum(np.asarray(run.losses) - other, axis=1)
    assert np.all(np.asarray(proofs.left[:, 1]) >= regret - 1e-10)


def test_a_mixture_is_close_to_the_best_of_its_grid(mixed):
    run, _, _, alone = mixed
    best = np.asarray(alone.losses).sum(-1).min(-1)
    assert np.all(np.asarray(run.losses).sum(-1) <= best + np.log(len(ETAS)) / 0.8 + T * 0.1)
    worst = np.asarray(alone.losses).sum(-1).max(-1)
    assert np.any(np.asarray(run.losses).sum(-1) < (best + worst) / 2)


def test_what_is_no_batch_is_refused():
    with pytest.raises(TypeError, match="mix: `inner` must be a batch"):
        mix(olx.ogd(0.1), olx.hedge(1.0))


ADAGRAD = olx.ftrl(0.5, olx.regularizers.adagrad())


@pytest.fixture(scope="module")
def algorithms():
    """Three algorithms in one mixture; and a tuple of equals beside the batch of them."""
    several = (olx.md(0.3, BALL), olx.omd(0.1, olx.mirrors.euclidean()), ADAGRAD)
    learner = mix(several, olx.hedge(0.8))
    grid = olx.batch(lambda eta: olx.md(eta, BALL), eta=jnp.asarray(ETAS))
    apart = mix(tuple(olx.md(eta, BALL) for eta in ETAS.tolist()), olx.hedge(0.8))

    @jax.jit
    def play(outcomes):
        rounds, start = olx.Rounds(None, outcomes), jnp.zeros(D)
        run = olx.rollout(learner, square, rounds, start, record=olx.record.trace)
        proof = olx.certify(learner, run, jnp.full(D, 0.2))[0]
        alone = [olx.rollout(one, square, rounds, start) for one in several]
        same = [
            olx.rollout(one, square, rounds, start) for one in (apart, mix(grid, olx.hedge(0.8)))
        ]
        return run, proof, alone, same

    return jax.vmap(play)(STREAMS)


def test_different_algorithms_are_mixed_each_as_if_alone(algorithms):
    run, proof, alone, _ = algorithms
    for own, one in zip(run.state.experts, alone, strict=True):
        olx.testing.report.close("states", own, one.state, rtol=1e-12)
    best = np.min([one.losses.sum(-1) for one in alone], axis=0)
    assert np.all(run.losses.sum(-1) <= best + np.log(3) / 0.8 + T * 0.1)
    assert np.all(proof.holds)
    assert np.all(np.isfinite(proof.right))
    other = np.sum((0.2 - np.asarray(STREAMS)) ** 2, axis=2) / 4
    regret = np.cumsum(np.asarray(run.losses) - other, axis=1)
    assert np.all(np.asarray(proof.left) >= regret - 1e-10)


def test_a_tuple_of_equals_is_the_batch_of_them(algorithms):
    tuple_, batch = algorithms[3]
    np.testing.assert_allclose(tuple_.losses, batch.losses, rtol=1e-12)


def test_a_tuple_must_hold_learners_of_one_shape():
    grid = olx.batch(lambda eta: olx.md(eta, BALL), eta=jnp.asarray(ETAS))
    with pytest.raises(TypeError, match="mix: `inner` must be a tuple of learners"):
        mix((olx.ogd(0.1), grid), olx.hedge(1.0))
    with pytest.raises(TypeError, match="mix: `inner` must be a tuple of learners"):
        mix((), olx.hedge(1.0))
    with pytest.raises(TypeError, match="mix: `inner` must be a Learner"):
        mix((olx.ogd(0.1), 0.3), olx.hedge(1.0))
    scores = mix((olx.ogd(0.1), olx.linear(olx.ogd(0.1))), olx.hedge(1.0))
    with pytest.raises(TypeError, match="mix: an action of `inner` has shape"):
        scores.predict(scores.init(jnp.zeros(3)), jnp.ones(3))


def started(maker, t):
    """The births of the copies alive in round t, from the words of the two papers."""
    if maker is saol:
        return {k: t - t % 2**k for k in range(LEVELS) if t >= 2**k}
    births = {}
    for birth in range(1, t + 1):
        k = min((birth & -birth).bit_length() - 1, LEVELS - 1)
        life = 2 ** (k + 2) if k < LEVELS - 1 else 2**LEVELS
        if t < birth + life:
            births[birth] = birth
    return births


def adaptive_reference(maker, outcomes, number, warm=False):
    """Copies in a dictionary, born and dead as `started` says, each the mean of its outcomes.

    warm: whether a copy starts from the last action.
    """
    copies, weights, actions = {}, {}, []
    for t, y in enumerate(outcomes, start=1):
        alive = {(slot, birth) for slot, birth in started(maker, t).items()}
        new = [name for name in alive if name not in copies]
        born = actions[-1] if warm and actions else np.zeros(D)
        copies = {name: copies.get(name, born) for name in alive}
        if maker is saol:
            enters = {name: min(0.5, 2 ** (-name[0] / 2)) for name in alive}
            weights = {name: weights.get(name, enters[name]) for name in alive}
        else:
            rest = sum(weights.get(name, 0.0) for name in alive if name not in new)
            older = {name: (1 - 1 / t) * weights[name] / rest for name in alive if name not in new}
            weights = older | dict.fromkeys(new, 1 / t)
        total = sum(weights.values())
        p = {name: w / total for name, w in weights.items()}
        actions.append(sum(p[name] * copies[name] for name in alive))
        cost = {name: np.sum((copies[name] - y) ** 2) / 4 for name in alive}
        mean = sum(p[name] * cost[name] for name in alive)
        for name in alive:
            if maker is saol:
                weights[name] *= 1 + enters[name] * (mean - cost[name]) / number
            else:
                weights[name] = p[name] * np.exp(-number * cost[name])
            copies[name] = ball(copies[name] - 2 / (t + 1 - name[1]) * slope(copies[name], y))
    return np.array(actions)


BASE = olx.md(olx.schedules.decay(2.0, 1.0), BALL)  # the mean of all outcomes: it cannot forget
ADAPTIVE = {saol: saol(BASE, LEVELS), flh: flh(BASE, 0.5, LEVELS)}


@pytest.fixture(scope="module", params=ADAPTIVE, ids=["saol", "flh"])
def adapted(request):
    learner = ADAPTIVE[request.param]
    slots = jnp.eye(len(learner.hparams.period))

    @jax.jit
    def play(outcomes):
        rounds = olx.Rounds(None, outcomes)
        run = olx.rollout(learner, square, rounds, jnp.zeros(D), record=olx.record.trace)
        return run, jax.vmap(lambda u: olx.certify(learner, run, u)[0])(slots)

    return request.param, jax.vmap(play)(STREAMS)


@pytest.mark.parametrize("which", range(len(STREAMS)))
def test_copies_are_born_mixed_and_die_as_the_papers_say(adapted, which):
    maker, (run, _) = adapted
    number = 1.0 if maker is saol else 0.5
    wanted = adaptive_reference(maker, np.asarray(STREAMS[which]), number)
    np.testing.assert_allclose(run.trace.feedback.action[which], wanted, atol=1e-11)


WARM = saol(BASE, LEVELS, warm=True)


def test_warm_copies_start_from_the_last_action_and_keep_the_bound():
    rounds = olx.Rounds(None, STREAMS[1])
    run = olx.rollout(WARM, square, rounds, jnp.zeros(D), record=olx.record.trace)
    wanted = adaptive_reference(saol, np.asarray(STREAMS[1]), 1.0, warm=True)
    np.testing.assert_allclose(run.trace.feedback.action, wanted, atol=1e-11)
    for slot in np.eye(LEVELS):
        assert olx.certify(WARM, run, slot).holds


def test_warm_copies_track_a_target_that_moves_slowly():
    turn = np.linspace(0, 3, 300)
    rounds = olx.Rounds(None, 0.9 * np.stack([np.cos(turn), np.sin(turn)], axis=1))
    slow = olx.md(0.1, BALL)
    play = lambda warm: olx.rollout(saol(slow, 8, warm=warm), square, rounds, jnp.zeros(2)).total
    assert play(True) < 0.5 * play(False)


def test_warm_copies_of_a_predictor_are_refused():
    learner = saol(olx.linear(olx.ogd(0.1)), 3, warm=True)
    with pytest.raises(TypeError, match=r"saol: a copy from the action.* learner of points"):
        olx.rollout(learner, losses.squared, olx.Rounds(np.ones((4, 2)), np.ones(4)), np.zeros(2))


def test_the_regret_to_each_copy_on_its_life_keeps_its_bound(adapted):
    maker, (_, proofs) = adapted
    assert np.all(proofs.holds)
    assert np.all(proofs.right[..., 2 ** (LEVELS + 1) :] != 0)  # every slot is in use
    assert np.max(proofs.tightness) > (0.15 if maker is saol else 0.4)


def test_exp_concave_losses_cost_a_logarithm(adapted):
    maker, (_, proofs) = adapted
    if maker is flh:
        assert np.all(proofs.right <= np.log(np.arange(1, T + 1)) / 0.5 + 1e-9)


def test_some_copy_is_young_enough_for_every_interval():
    """Hazan, Seshadhri: for all s < t one alive at t was born in [s, (s + t) / 2]."""
    for t in range(2, 2**LEVELS):
        births = np.array(sorted(started(flh, t).values()))
        s = np.arange(1, t)
        reached = births[np.searchsorted(births, s)]
        assert np.all(reached <= (s + t) / 2)
        assert len(births) <= 2 * LEVELS


def test_copies_beat_their_base_where_the_world_turns(adapted):
    run = adapted[1][0]
    base = olx.rollout(BASE, square, olx.Rounds(None, STREAMS[1]), jnp.zeros(D))
    assert run.losses[1].sum() < 0.75 * base.total


def test_rounds_of_weight_zero_do_not_count(adapted):
    learner = ADAPTIVE[adapted[0]]
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0], 60)
    rounds = olx.Rounds(None, STREAMS[1][:60], jnp.asarray(weight))
    play = lambda rounds: olx.rollout(
        learner, square, rounds, jnp.zeros(D), record=olx.record.trace
    )
    run, left = play(rounds), play(jax.tree.map(lambda leaf: leaf[weight > 0], rounds))
    np.testing.assert_allclose(run.losses[weight > 0], left.losses, rtol=1e-12)
    slots = jnp.eye(len(learner.hparams.period))
    proofs = jax.jit(jax.vmap(lambda u: olx.certify(learner, run, u)[0]))(slots)
    assert np.all(proofs.holds)


def test_copies_of_predictors_see_the_context():
    rounds, _ = olx.streams.switching(jax.random.key(0), 60, 3, 2)
    run = olx.rollout(saol(olx.linear(olx.ogd(0.1)), 5, 50.0), losses.squared, rounds, jnp.zeros(3))
    assert np.all(np.isfinite(run.losses))


def test_losses_beyond_the_span_show():
    run = olx.rollout(
        saol(olx.ogd(5.0), 4, 0.01), square, olx.Rounds(None, STREAMS[1][:40]), jnp.zeros(D)
    )
    assert np.isnan(run.losses).any()


@pytest.mark.parametrize("levels", [0, 30, 2.0])
def test_levels_are_counted(levels):
    with pytest.raises(ValueError, match="saol: `levels` must be"):
        saol(olx.ogd(0.1), levels)
