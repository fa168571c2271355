"""A learner is shown in one line that says how to make it."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from table import TABLE

import olx
from olx import boosting

LINES = {
    "linear(omd(eta=0.1, mirror=euclidean()))": olx.linear(olx.omd(0.1, olx.mirrors.euclidean())),
    "linear(md(eta=0.1, mirror=euclidean(ball(2))))": olx.linear(
        olx.ogd(0.1, olx.convex.sets.ball(2.0))
    ),
    "md(eta=decay(eta=0.5, power=1), mirror=entropy(1))": olx.md(
        olx.schedules.decay(0.5, 1.0), olx.mirrors.negative_entropy()
    ),
    "linear(ftrl(eta=0.5, regularizer=adagrad(delta=1, rate=1)))": olx.linear(
        olx.ftrl(0.5, olx.regularizers.adagrad(delta=1.0))
    ),
    "online_bbm(gamma=0.1)": boosting.online_bbm(0.1),
    "potential_booster(potential=majority_at(5, 0.1))": boosting.potential_booster(
        boosting.majority_potential(5, 0.1)
    ),
    "osboost(gamma=0.1)": boosting.osboost(0.1),
    "osboost_ocp(gamma=0.1)": boosting.osboost_ocp(0.1),
    "adaboost_ol()": boosting.adaboost_ol(),
    "adaboost_ol_mean()": boosting.adaboost_ol_mean(),
    "squared()": olx.losses.squared,
    "hinge(1)": olx.losses.hinge,
    "ada_normal_hedge(prior=[0.25, 0.75])": olx.experts.ada_normal_hedge(
        prior=jnp.array([0.25, 0.75])
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_record_is_shown_as_the_call_that_makes_it(line):
    assert repr(LINES[line]) == line


@pytest.mark.parametrize("name", TABLE)
def test_every_learner_has_a_line_without_addresses(name):
    line = repr(TABLE[name].learner)
    assert "\n" not in line
    assert " at 0x" not in line
    assert len(line) < 400


def test_a_batch_shows_its_axes():
    batch = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, 0.2]))
    assert repr(batch).endswith("axes={eta: [0.1, 0.2]})")


def test_traced_numbers_are_shown_by_their_type():
    seen = []
    jax.jit(lambda eta: seen.append(repr(olx.ogd(eta))) or eta)(0.1)
    assert seen == ["md(eta=float64[], mirror=euclidean())"]


class OwnHparams(NamedTuple):
    eta: float


def test_numbers_of_a_record_may_be_a_named_tuple_of_any_name():
    assert repr(dataclasses.replace(olx.ogd(0.1), hparams=OwnHparams(0.5))) == "md(eta=0.5)"
