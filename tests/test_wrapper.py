"""What a wrapper demands for the learner inside it: needs about parts that reach it unchanged."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx.needs import PARTS, Need
from olx.wrapper import WrapperView, lift_needs

KEY = jax.random.key(0)


def legal(hp, params, rounds):
    return hp > 0


def demanding(learner):
    """The learner with one need per part of the data."""
    needs = tuple(Need(part, legal, "it must be legal", "inner") for part in PARTS)
    return dataclasses.replace(learner, needs=needs)


POINT, SCORE, EXPERTS = map(demanding, (olx.ogd(0.1), olx.linear(olx.ogd(0.1)), olx.hedge(0.1)))
WRAPPERS = {
    "linear": (olx.linear(POINT), "params context outcome weight"),
    "average": (olx.meta.average(POINT), "params context outcome weight"),
    "anytime": (olx.meta.anytime(POINT), "params context weight"),
    "schedule_free": (olx.meta.schedule_free(POINT), "params weight"),
    "mechanic": (olx.meta.mechanic(POINT), "params weight"),
    "steps": (olx.meta.online_to_nonconvex(POINT, KEY), "params context weight"),
    "random_stop": (olx.meta.random_stop(POINT, KEY), "params context outcome weight"),
    "restarts": (olx.meta.restarts(POINT, 4, 2, KEY), "params context outcome weight"),
    "flh": (olx.meta.flh(POINT, 0.1, 2), "params context outcome weight"),
    "cbce": (olx.meta.cbce(POINT, 2), "params context outcome weight"),
    "saol": (olx.meta.saol(POINT, 2), "params context outcome weight"),
    "mix": (olx.meta.mix((POINT,), olx.hedge(1.0)), "params context outcome weight"),
    "sampled": (olx.experts.sampled(EXPERTS, KEY), "params context outcome weight"),
    "clipped": (olx.boosting.clipped(SCORE), "params context outcome weight"),
    "rows are scaled": (olx.second_order.diagonal_adaptation(SCORE), "params outcome weight"),
    "labels become signs": (olx.multiclass.one_vs_rest(SCORE, 3), "params context weight"),
    "losses are estimated": (olx.experts.bandit(EXPERTS, KEY), "params context weight"),
    "losses become moves": (olx.experts.experts_from_game(EXPERTS), "params context"),
    "moves become losses": (olx.experts.game_from_experts(EXPERTS), "params context weight"),
    "losses are gradients": (olx.experts.linearized(EXPERTS), "params weight"),
    "points become losses": (olx.experts.particles(EXPERTS, jnp.eye(2)), "params weight"),
    "hypotheses become losses": (olx.boosting.booster(EXPERTS), "params weight"),
    "inputs of its own": (olx.boosting.regression_stumps(SCORE), "outcome"),
}


def test_needs_of_the_inner_learner_are_lifted_where_it_sees_the_data():
    for name, (learner, parts) in WRAPPERS.items():
        seen = [need.where for need in learner.needs if need.owner == "inner"]
        assert seen == parts.split(), name


def test_a_lifted_need_is_about_the_numbers_of_the_inner_learner():
    inner = olx.Learner(jnp.array([1.0, -1.0]), None, None, None)
    inner = dataclasses.replace(demanding(inner), hparams=np.array([1.0, -1.0]))
    hparams = {"pair": (None, inner)}
    view = WrapperView("pair", 1, stacked=True, parts=("params", "weight"))
    first, last = lift_needs(view, inner)
    as_hparams = dataclasses.make_dataclass("Hparams", hparams)(**hparams)
    assert not first.legal_fn(as_hparams, None, None)  # one of two learners cannot start
    assert last.legal_fn(as_hparams, None, olx.Rounds(None, None)).tolist() == [True, False]
