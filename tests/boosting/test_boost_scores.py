"""Boosting with the scores of the copies as votes, against the references of the rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_online_boosting as ref

import olx
from olx import boosting, losses


class Scores(ref.HingeDescent):
    """Votes with its score, clipped."""

    def predict(self, x):
        return float(np.clip(self.w @ x, -1, 1))


def stream(rows=150, features=4):
    source = np.random.default_rng(3)
    x = source.normal(size=(rows, features))
    y = np.where(x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] > 0, 1.0, -1.0)
    return x, y


RULES = {
    "online_bbm": (boosting.online_bbm(0.15), lambda c, x, y: ref.online_bbm(c, x, y, 0.15)),
    "adaboost_ol": (boosting.adaboost_ol(), ref.adaboost_ol),
}


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("name", RULES)
def test_copies_learn_what_the_rule_says(name, n):
    rule, play = RULES[name]
    x, y = stream()
    copies = [Scores(4, 0.05) for _ in range(n)]
    wanted = play(copies, x, y)
    learner = boosting.boost_scores(olx.linear(olx.ogd(0.05)), n, rule, loss=losses.hinge)
    run = olx.rollout(
        learner, losses.logistic, olx.Rounds(x, y), jnp.zeros(4), record=olx.record.trace
    )
    seen = run.trace.state.inner  # before each round
    points = np.asarray(jax.tree.leaves(seen)[0])
    np.testing.assert_allclose(np.clip(points @ x[:, :, None], -1, 1)[..., 0], wanted.h, atol=1e-10)
    score = wanted.h.mean(1) if name == "online_bbm" else (wanted.alpha * wanted.h).sum(1)
    np.testing.assert_allclose(run.trace.feedback.action, score, atol=1e-10)


def test_votes_of_sure_copies_are_those_of_boost():
    x, y = stream()
    sure = olx.linear(olx.ogd(1e6))  # every score is beyond -1 and +1, but for the first
    for rule in (boosting.online_bbm(0.1), boosting.osboost(0.1)):
        play = lambda boosted, rule=rule: olx.rollout(
            boosted(sure, 5, rule, loss=losses.hinge),
            losses.logistic,
            olx.Rounds(x, y),
            jnp.full(4, 1e3),
        )
        here, there = play(boosting.boost_scores), play(boosting.boost)
        np.testing.assert_allclose(here.losses, there.losses, rtol=1e-12)


def test_its_rules_prove_nothing_about_scores():
    learner = boosting.boost_scores(olx.linear(olx.ogd(0.1)), 3, boosting.online_bbm(0.1))
    assert learner.theorems == ()
