"""Bettors without a range: their theorems on 200 hard streams, and the inequalities of one step."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_first_order as ref
from scipy.sparse import csr_array
from stored import FOLDER, needs

import olx
from olx import losses
from olx.convex import sets
from olx.first_order import cocob, erfi_betting, freegrad, ons_betting, pistol
from olx.first_order.erfi_betting import RULE as ERFI
from olx.first_order.freegrad import RULE as FREEGRAD
from olx.first_order.pistol import RULE as PISTOL
from olx.frameworks.betting import Rule
from olx.testing.scale import check_scale

T, D, STREAMS = 120, 2, 200
BETTORS = {
    "freegrad": freegrad(),
    "pistol": pistol(),
    "erfi betting": erfi_betting(),
    "ons betting": ons_betting(),
}


def pull(w, z):
    """Linear losses, and distances to a point: these have the sign that hurts."""
    return jnp.sum(z[0] * w + z[1] * jnp.abs(w - z[2]))


def hard_streams():
    """Outcomes of `pull`: ten kinds of streams, in units from 1e-3 to 1e3."""
    rng = np.random.default_rng(0)
    t = np.arange(T)[:, None]
    noise = lambda: rng.normal(size=(T, D))
    kinds = [
        lambda: (noise(), 0, 0),
        lambda: (np.ones((T, D)) * [1, -1], 0, 0),
        lambda: ((-1.0) ** t * np.ones((1, D)), 0, 0),
        lambda: (np.where(t % 7, 0.01, 5) * noise(), 0, 0),
        lambda: (1.1**t * noise(), 0, 0),  # the range grows in many rounds
        lambda: (0.9**t * np.sign(noise()), 0, 0),
        lambda: (np.clip(rng.standard_cauchy((T, D)), -1e3, 1e3), 0, 0),
        lambda: (np.where(rng.random((T, D)) < 0.1, noise(), 0), 0, 0),
        lambda: (0, np.abs(noise()), rng.choice([0, 0.1, 3, 40]) * np.ones((T, D))),
        lambda: (0.2, 1, np.where(t < T // 2, 5, -5) * np.ones((1, D))),
    ]
    made = [kinds[i % len(kinds)]() for i in range(STREAMS)]
    whole = [np.stack([np.broadcast_to(part, (T, D)) for part in one], axis=1) for one in made]
    units = 10.0 ** rng.uniform(-3, 3, STREAMS)
    scaled = [
        one * np.array([unit, unit, 1])[:, None] for one, unit in zip(whole, units, strict=True)
    ]
    return olx.Rounds(None, np.stack(scaled))


COMPARATORS = np.array([[0, 0], [1e-3, -1], [1, 1], [-1, 1], [-30, 30], [3, 0], [0, -300.0]])


FREE = {
    "everywhere": (olx.scale_free(), COMPARATORS),
    "ball": (
        olx.scale_free(olx.mirrors.euclidean(sets.ball(1.0))),
        np.array([[0.6, -0.8], [0, 0]]),
    ),
    "simplex": (olx.scale_free(olx.mirrors.negative_entropy()), np.eye(2)),
    "descent everywhere": (olx.scale_free_md(), COMPARATORS),
    "descent in a ball": (
        olx.scale_free_md(olx.mirrors.euclidean(sets.ball(1.0))),
        np.array([[0.6, -0.8], [0, 0]]),
    ),
    "descent in the simplex": (olx.scale_free_md(olx.mirrors.negative_entropy()), np.eye(2)),
}


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def proofs(learner, rounds, comparators=COMPARATORS):
    """The certificates of all streams and comparators."""

    def alone(rounds):
        run = olx.rollout(learner, pull, rounds, jnp.full(D, 0.5), record=olx.record.trace)
        return jax.vmap(lambda u: olx.certify(learner, run, u)[0])(jnp.asarray(comparators))

    return jax.vmap(alone)(rounds)


def uphill(learner):
    """The same learner with a wrong sign."""
    turned = lambda hp, state, told: learner.update_fn(hp, state, told._replace(grad=-told.grad))
    return dataclasses.replace(learner, update_fn=turned, facts=olx.Facts())


@pytest.mark.parametrize("name", BETTORS)
def test_a_theorem_holds_on_200_hard_streams_and_fails_for_a_wrong_sign(name):
    proof = proofs(BETTORS[name], hard_streams())
    assert np.all(np.isfinite(proof.right))
    assert np.all(np.isfinite(proof.published))
    assert not np.any(proof.fails)
    assert np.mean(np.any(proof.left > 0.1 * proof.published, axis=-1)) > 0.02  # not vacuous
    wrong = proofs(uphill(BETTORS[name]), hard_streams())
    assert np.mean(np.any(wrong.fails, axis=-1)) > 0.1


@pytest.mark.parametrize("name", FREE)
def test_the_theorem_of_a_scale_free_learner_holds_and_fails_for_a_wrong_sign(name):
    learner, comparators = FREE[name]
    proof = proofs(learner, hard_streams(), comparators)
    assert np.all(np.isfinite(proof.published))
    assert not np.any(proof.fails)
    assert np.max(proof.left / proof.published, where=proof.published > 0, initial=0) > 0.2
    wrong = proofs(uphill(learner), hard_streams(), comparators)
    assert np.mean(np.any(wrong.fails, axis=-1)) > 0.3


ANY_UNIT = BETTORS | {name: learner for name, (learner, _) in FREE.items()}
ANY_UNIT |= {"cocob": cocob(), "mean": olx.meta.average(cocob())}


@pytest.mark.parametrize("name", ANY_UNIT)
def test_the_unit_of_the_losses_does_not_matter(name):
    rounds = jax.tree.map(lambda leaf: leaf[4], hard_streams())
    assert ANY_UNIT[name].facts.scale_free
    check_scale(ANY_UNIT[name], pull, rounds, np.full(D, 0.5))


@dataclasses.dataclass
class Numbers:
    """The hparams of a rule for a wealth of 1."""

    wealth: float = 1.0
    spread: float = 2.25


def grid():
    """Coins, sums and gradients of a step, for a range of 1; coins are at most the total."""
    rng = np.random.default_rng(1)
    n = 200_000
    total = 10 ** rng.uniform(-3, 4, n)
    coins = total * rng.choice([0, 1, 1e-3], n) * rng.random(n) ** rng.choice([0, 1, 4], n)
    squares = np.minimum(total, total**2) * 10 ** rng.uniform(-4, 0, n)
    g = np.where(rng.random(n) < 0.5, rng.choice([-1.0, 1.0], n), rng.uniform(-1, 1, n))
    return total, coins, squares, g


def rise(rule: Rule, sums, after, coins, g):
    """What a step adds to the reserve beyond what is won, relative to the numbers in it."""
    hp, one = Numbers(), jnp.ones_like(g)
    before, now = rule.reserve(hp, coins, one, *sums), rule.reserve(hp, coins - g, one, *after)
    won = -g * rule.bet(hp, coins, one, *sums)
    size = jnp.abs(before) + jnp.abs(now) + jnp.abs(won)
    small = size < 1e120  # where the exponential is not clipped
    return jnp.where(small, (now - before - won) / size, 0.0)


def test_no_step_raises_the_reserve_of_freegrad_beyond_what_is_won():
    _, coins, squares, g = grid()
    for first in (1.0, 0.1):
        of = lambda squares, first=first: (squares + first**2, jnp.full_like(squares, first))
        assert rise(FREEGRAD, of(squares), of(squares + g**2), coins, g).max() < 1e-12


def test_no_step_raises_the_reserve_of_the_erfi_bettor_beyond_what_is_won():
    _, coins, squares, g = grid()
    assert rise(ERFI, (squares,), (squares + g**2,), coins, g).max() < 1e-11


def test_no_step_raises_the_reserve_of_pistol_beyond_what_is_won():
    total, coins, _, g = grid()
    assert rise(PISTOL, (total,), (total + jnp.abs(g),), coins, g).max() < 1e-12


@pytest.mark.parametrize("rule", [FREEGRAD, ERFI, PISTOL])
def test_a_larger_range_does_not_raise_the_reserve(rule):
    total, coins, squares, _ = grid()
    sums = {FREEGRAD: (squares + 1, jnp.ones_like(squares)), ERFI: (squares,), PISTOL: (total,)}
    at = lambda h: rule.reserve(Numbers(), coins, jnp.full_like(coins, h), *sums[rule])
    small = jnp.abs(at(1.0)) < 1e120
    assert jnp.all(jnp.where(small, at(1.3) <= at(1.0) + 1e-12 * jnp.abs(at(1.0)), True))


def test_scores_of_normalized_betting_equal_the_reference():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6)) * 10.0 ** np.arange(-2, 4) * (rng.random((300, 6)) < 0.4)
    y = np.sign(x @ rng.normal(size=6) + 0.1)
    learner = olx.first_order.normalized_betting()
    done = olx.rollout(
        learner, losses.logistic, olx.Rounds(x, y), np.zeros(6), record=olx.record.actions
    )
    wanted = ref.normalized_betting(x, y, ref.logistic_slope, 4.0)
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(done.trace, wanted, atol=1e-10)


def a9a():
    z = np.load(FOLDER / "a9a.npz")
    n = int(z["n_train"])
    rows = csr_array((z["data"], z["indices"].astype(int), z["indptr"]), z["shape"])[:n]
    return olx.Rounds(rows.toarray().astype(float), z["y"][:n].astype(float))


VOWPAL = {"freegrad": 0.3496, "pistol": 0.3410}  # its losses with the same options and a constant


@needs("a9a.npz")
def test_normalized_betting_is_as_good_as_vowpal_wabbit_on_a9a():
    rounds = a9a()
    rows = np.hstack([rounds.context, np.ones((len(rounds.outcome), 1))])
    learner = olx.first_order.normalized_betting()
    run = olx.run(learner, losses.logistic, rounds._replace(context=rows), np.zeros(124))
    assert run.losses.mean() < 0.34123 + 0.001  # of --coin


@needs("a9a.npz")
@pytest.mark.parametrize("name", BETTORS)
def test_a_bettor_without_an_argument_is_as_good_as_vowpal_wabbit_on_a9a(name):
    run = olx.run(olx.affine(BETTORS[name]), losses.logistic, a9a(), np.zeros(124))
    assert run.losses.mean() < VOWPAL.get(name, 0.350) + 0.001
