"""Reductions of learners: equal to second implementations, and their theorems on hard streams."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_reductions as ref
from refusal import said

import olx
from olx import losses
from olx.convex import sets
from olx.first_order import freegrad, ons_betting, pistol
from olx.meta import (
    add_learners,
    anytime,
    constrained,
    direction_and_magnitude,
    mechanic,
    online_to_nonconvex,
    schedule_free,
)
from olx.testing.scale import check_scale

T, D, STREAMS = 80, 3, 200
START = np.array([0.3, 0.0, -0.2])
REDUCED = {
    "constrained": constrained(freegrad(), sets.ball(1.0)),
    "constrained, box": constrained(pistol(), sets.box(-0.5, 1.0)),
    "direction and magnitude": direction_and_magnitude(freegrad()),
    "direction and magnitude, Newton": direction_and_magnitude(ons_betting()),
    "sum": add_learners((freegrad(), direction_and_magnitude(freegrad()))),
    "anytime": anytime(freegrad()),
    "schedule free": schedule_free(freegrad()),
    "online to nonconvex": online_to_nonconvex(freegrad(), jax.random.key(0)),
}
CERTIFIED = REDUCED | {"mechanic": mechanic(freegrad())}
INSIDE = np.array([[0.5, -0.5, 0.5], [0.0, 0.0, 0.0], [0.3, 0.0, -0.2], [0.1, 0.9, -0.4]])
OUTSIDE = np.array([[5.0, -5.0, 0.0], [0.0, 0.0, 40.0]])


def hard_streams():
    """Outcomes of `pull`: of seven kinds, in units from 1e-3 to 1e3."""
    rng, t = np.random.default_rng(0), np.arange(T)[:, None]
    noise = lambda: rng.normal(size=(T, D))
    kinds = [
        lambda: (noise(), 0, 0),
        lambda: (np.ones((T, D)) * [1, -1, 0.1], 0, 0),
        lambda: (1.1**t * noise(), 0, 0),
        lambda: (np.where(t % 7, 0.01, 5) * noise(), 0, 0),
        lambda: (np.where(rng.random((T, D)) < 0.2, noise(), 0), 0, 0),
        lambda: (0, np.abs(noise()), rng.choice([0, 0.4, 3]) * np.ones((T, D))),
        lambda: (0.2, 1, np.where(t < T // 2, 5, -5) * np.ones((1, D))),
    ]
    made = [kinds[i % len(kinds)]() for i in range(STREAMS)]
    whole = np.stack(
        [np.stack([np.broadcast_to(part, (T, D)) for part in one], axis=1) for one in made]
    )
    units = 10.0 ** rng.uniform(-3, 3, (STREAMS, 1, 1))
    whole[:, :, :2] *= units[..., None]
    return olx.Rounds(None, whole)


def pull(w, z):
    """Linear losses, and distances to a point: these have the sign that hurts."""
    return jnp.sum(z[0] * w + z[1] * jnp.abs(w - z[2]))


def proofs(learner, comparators):
    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def play(learner, rounds):
        def alone(rounds):
            run = olx.rollout(learner, pull, rounds, jnp.asarray(START), record=olx.record.trace)
            return jax.vmap(lambda u: olx.certify(learner, run, u)[0])(jnp.asarray(comparators))

        return jax.vmap(alone)(rounds)

    return play(learner, hard_streams())


def uphill(learner):
    """The same learner with a wrong sign."""
    turned = lambda hp, state, told: learner.update_fn(hp, state, told._replace(grad=-told.grad))
    return dataclasses.replace(learner, update_fn=turned, facts=olx.Facts())


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_theorem_holds_on_200_hard_streams_and_fails_for_a_wrong_sign(name):
    bounded = name.startswith("constrained")
    comparators = INSIDE if bounded else np.vstack([INSIDE, OUTSIDE])
    proof = proofs(CERTIFIED[name], comparators)
    assert np.all(np.isfinite(proof.right))
    assert not np.any(proof.fails)
    wrong = proofs(uphill(CERTIFIED[name]), comparators)
    assert np.mean(np.any(wrong.fails, axis=-1)) > 0.05


REFERENCES = {
    "constrained": ref.constrained,
    "direction and magnitude": ref.direction_and_magnitude,
    "sum": ref.add_learners,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_decisions_equal_the_reference(name):
    gradients = np.random.default_rng(3).normal(size=(150, D)) + np.array([0.5, -0.2, 0.0])
    rounds = olx.Rounds(None, gradients)
    game = losses.linear_loss, rounds, START
    done = olx.rollout(REDUCED[name], *game, record=olx.record.actions)
    wanted = REFERENCES[name](gradients, START)
    np.testing.assert_allclose(done.trace, wanted, rtol=1e-9, atol=1e-10)
    assert np.abs(wanted[-1] - START).max() > 0.1


@pytest.mark.parametrize("name", REDUCED)
def test_the_unit_of_the_losses_does_not_matter(name):
    rounds = jax.tree.map(lambda leaf: leaf[5], hard_streams())
    assert REDUCED[name].facts.scale_free
    check_scale(REDUCED[name], pull, rounds, START)


def test_a_constrained_learner_stays_in_its_set():
    rounds = olx.Rounds(None, np.full((40, 3), -2.0))
    game = losses.linear_loss, rounds, np.ones(3) / 3
    for domain in (sets.ball(0.7), sets.simplex(), sets.l1_ball(0.5), sets.box(0.0, 0.4)):
        done = olx.rollout(constrained(pistol(), domain), *game, record=olx.record.actions)
        assert np.all(jax.vmap(domain.contains)(done.trace))


def test_a_comparator_outside_the_set_is_named():
    learner = REDUCED["constrained"]
    game = losses.linear_loss, olx.Rounds(None, np.ones((5, 3))), START, np.full(3, 2.0)
    assert "`u` must lie in the domain" in str(olx.certify(learner, *game))


@pytest.mark.parametrize("wrap", ["direction", "sum", "steps"])
def test_an_inner_learner_that_cannot_start_at_0_is_refused(wrap):
    learner = {
        "direction": lambda: direction_and_magnitude(pistol(), olx.hedge(0.5)),
        "sum": lambda: add_learners((pistol(), olx.hedge(0.5))),
        "steps": lambda: online_to_nonconvex(olx.hedge(0.5), jax.random.key(0)),
    }[wrap]()
    game = losses.linear_loss, olx.Rounds(None, np.ones((3, 3))), np.ones(3) / 3
    with pytest.raises(ValueError, match="that learner starts at 0, whatever `params` are"):
        olx.run(learner, *game)


REFUSALS = {
    "one learner": (lambda: add_learners((pistol(),)), "add_learners: `inner` must be a tuple"),
    "a list": (lambda: add_learners([pistol(), pistol()]), "add_learners: `inner` must be a tuple"),
    "no set": (lambda: constrained(pistol(), 1.0), "constrained: `domain` must be a ConvexSet"),
    "no learner": (
        lambda: direction_and_magnitude(1.0),
        "direction_and_magnitude: `magnitude` must be a Learner",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_makes_no_sense_is_refused(name):
    act, message = REFUSALS[name]
    assert message in said(act, TypeError)
