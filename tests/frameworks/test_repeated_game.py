"""One player for four games: against NumPy, and its theorems, which a player that lies breaks."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import reference_games as reference
import reference_ranking as ranking_reference

import olx
from experiments import one_game
from olx import games, losses, mirrors

DRAW = np.random.default_rng(5)
LENGTH, LABELS, WIDTH = 30, 4, 6
ROWS = DRAW.normal(size=(LENGTH, WIDTH))
WORDS = (DRAW.random((LENGTH, WIDTH)) < 0.5).astype(float)
MASKS = (DRAW.random((LENGTH, LABELS)) < 0.4).astype(float)
WEIGHT = DRAW.uniform(0.5, 1.5, LENGTH)
SIGNS = np.sign(ROWS[:, 0] + 0.5 * DRAW.normal(size=LENGTH))
FLAT, ENTROPY = mirrors.euclidean(), mirrors.negative_entropy()
FINE = games.projected_ascent(500)


def played(player, loss, rounds, params, u):
    """The run, after its theorems were checked against `u` and the first decision."""
    run = olx.rollout(player, loss, rounds, params, record=olx.record.trace)
    for point in (u, np.asarray(player.hparams.mirror.to_primal(jnp.zeros_like(params)))):
        proofs = olx.certify(player, run, point)
        assert proofs.names == ("game_duality", "game_regret")
        assert proofs.holds, str(proofs)
        assert all(np.all(np.isfinite(proof.published)) for proof in proofs)
    return run, proofs


@pytest.mark.parametrize("entropy", [False, True])
def test_labels_are_ranked_as_by_the_optimal_update(entropy):
    c, margin, x = 0.7, 0.4, WORDS if entropy else ROWS
    mirror = mirrors.rowwise(ENTROPY) if entropy else FLAT
    player = olx.repeated_game(1 / c, mirror, games.labels(margin), FINE)
    rounds, u = olx.Rounds(x, MASKS, WEIGHT), np.full((LABELS, WIDTH), 1 / WIDTH)
    run, _ = played(player, losses.label_hinge(margin), rounds, jnp.zeros((LABELS, WIDTH)), u)
    scores, _, acc = ranking_reference.label_ranking(x, MASKS, margin, c, "III", entropy, WEIGHT)
    np.testing.assert_allclose(run.trace.feedback.action, scores, atol=1e-8)
    np.testing.assert_allclose(run.state.acc, acc, atol=1e-7)


def test_rows_are_ranked_by_averaged_steps():
    sizes, c, steps = DRAW.integers(2, 6, LENGTH), 0.7, 40
    x = DRAW.normal(size=(sizes.sum(), WIDTH))
    y = np.digitize(x[:, 0] + 0.3 * DRAW.normal(size=len(x)), [-1.0, 1.0]).astype(float)
    rounds = olx.ranking.group_rows(x, y, sizes)
    player = olx.repeated_game(1 / c, FLAT, games.rows(), games.averaged_steps(steps))
    run, _ = played(player, losses.max_pairs, rounds, jnp.zeros(WIDTH), np.eye(WIDTH)[0])
    cuts = np.cumsum(sizes)[:-1]
    groups = list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))
    scores, w = reference.rank_rows(groups, c, steps)
    np.testing.assert_allclose(run.state.acc / c, w, atol=1e-9)
    for seen, wanted in zip(run.trace.feedback.action, scores, strict=True):
        np.testing.assert_allclose(seen[: len(wanted)], wanted, atol=1e-9)


def test_signs_are_learned_as_by_a_passive_aggressive_learner():
    c, margin = 0.7, 0.8
    player = olx.repeated_game(1 / c, FLAT, games.signs(margin), FINE)
    loss = losses.margin_hinge(margin)
    run, _ = played(player, loss, olx.Rounds(ROWS, SIGNS), jnp.zeros(WIDTH), np.eye(WIDTH)[0])
    wanted = reference.classify(ROWS, SIGNS, c, margin)
    np.testing.assert_allclose(run.trace.feedback.action, wanted, atol=1e-9)


def test_examples_are_weighed_as_by_adaboost_and_its_bound_is_that_of_the_game():
    gamma, wrong = 0.05, np.array([0, 1, 2, 3, 4, 5] * 5)
    v = np.where(np.arange(12)[None] % 6 == wrong[:, None], -1.0, 1.0)
    v[:, :2] *= np.where(DRAW.random((LENGTH, 2)) < 0.3, -1.0, 1.0)
    c, uniform = 1 / (2 * gamma), np.full(12, 1 / 12)
    player = olx.repeated_game(1 / c, ENTROPY, games.examples(), FINE)
    run, proofs = played(player, losses.linear_loss, olx.Rounds(None, v), jnp.zeros(12), uniform)
    weights, alphas = reference.boost(v, c)
    np.testing.assert_allclose(run.trace.feedback.action, weights, atol=1e-9)
    loss = np.mean(np.exp(-np.cumsum(alphas[:, None] * v, axis=0)), axis=1)
    dual = proofs["game_duality"]
    np.testing.assert_allclose(np.exp(-np.asarray(dual.right) / c), loss, rtol=1e-9)
    least = np.min(np.sum(weights * v, axis=1))
    assert least > gamma
    promised = (least - gamma) * LENGTH  # the edges minus the norms, which are 1
    assert loss[-1] <= np.exp(-dual.left[-1] / c) <= np.exp(-promised / c)


def test_any_rule_keeps_the_bounds_and_a_player_that_lies_breaks_them():
    rounds, zeros = olx.Rounds(ROWS, MASKS), jnp.zeros((LABELS, WIDTH))
    lazy = games.HingeRule(0, lambda steps, turn: 0 * turn.gaps)  # it never moves by itself
    honest = olx.repeated_game(0.1, FLAT, games.labels(), lazy)
    played(honest, losses.label_hinge(), rounds, zeros, DRAW.normal(size=zeros.shape))
    liar = dataclasses.replace(honest, predict_fn=lambda *given: -honest.predict_fn(*given))
    proofs = olx.certify(liar, losses.label_hinge(), rounds, zeros, zeros)
    assert not proofs["game_duality"].holds
    assert not proofs["game_regret"].holds


def test_a_learner_a_booster_and_a_ranker_are_one_game(monkeypatch):
    made, make = [], olx.repeated_game
    monkeypatch.setattr(olx, "repeated_game", lambda *given: made.append(given) or make(*given))
    seen = one_game.results(rounds=30)
    assert [one.hparams is None for _, _, one in made] == [False, True, False]
    assert list(seen) == ["learner", "booster", "ranker"]
    for one in seen.values():
        assert one.duality.holds, str(one.duality)
        assert one.regret.holds, str(one.regret)
        assert one.duality.left[-1] > 0  # it says something
    assert np.min(seen["booster"].run.losses) >= 2 * one_game.GAMMA - 1e-6
    assert one_game.table(seen).count("holds") == 3


REFUSED = {
    "a rule for another map": (
        lambda: olx.repeated_game(1.0, ENTROPY, games.examples(), games.averaged_steps()),
        TypeError,
        r"repeated_game: this rule is for .*projected_ascent",
    ),
    "no game": (lambda: olx.repeated_game(1.0, FLAT, None), TypeError, "`game` must be a Game"),
    "labels": (
        lambda: olx.run(
            olx.repeated_game(1.0, FLAT, games.signs()),
            losses.hinge,
            olx.Rounds(ROWS, 2 * SIGNS),
            jnp.zeros(WIDTH),
        ),
        ValueError,
        "signs: labels must be -1 or \\+1",
    ),
    "a group": (
        lambda: olx.rollout(
            olx.repeated_game(1.0, FLAT, games.rows()),
            losses.max_pairs,
            olx.Rounds(ROWS[None], np.zeros((1, LENGTH))),
            jnp.zeros(3),
        ),
        TypeError,
        r"rows: the rows have shape \(30, 6\), the weights \(3,\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_played_is_refused_by_name(name):
    make, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        make()
