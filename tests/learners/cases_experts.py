"""Rows of the table: learners of experts, and learners made of learners."""

import jax
import jax.numpy as jnp
import numpy as np
from cases import KEY, ONES, REGRESSION, SIMPLEX_BALL, UNIFORM, ZEROS, Case, experts, regression

import olx
from olx import losses, schedules
from olx.regularizers import adagrad

BALL, PRIOR = olx.convex.sets.ball(1.0), jnp.array([1.0, 2.0, 0.5, 0.5])


@jax.jit
def generated():
    drawn, asleep = jax.random.uniform(KEY, (24, 4)), jax.random.bernoulli(KEY, 0.3, (24, 4))
    return olx.Rounds(None, drawn), olx.Rounds(jnp.where(asleep, 0.0, 1.0), drawn)


DRAWN, SLEEPY = generated()


def vertices(learner: olx.Learner) -> Case:
    """Plays vertices, so only the losses it drew are looked at."""
    return experts(learner)._replace(loss=olx.experts.expected_loss, trees=False)


def over(learner: olx.Learner, params, comparators) -> Case:
    return Case(learner, losses.squared, REGRESSION, params, comparators, trees=False)


def linear_ogd(eta):
    return olx.linear(olx.ogd(eta))


ADVISED = olx.experts.ada_normal_hedge

EXPERT = {
    "ada normal hedge": experts(ADVISED(prior=PRIOR), DRAWN),
    "ada normal hedge, exponent": experts(ADVISED(0.5, PRIOR), DRAWN),
    "ada normal hedge, sleeping": experts(ADVISED(prior=PRIOR), SLEEPY),
    "normal hedge dt": experts(olx.experts.normal_hedge_dt(PRIOR)),
    "normal hedge": experts(olx.experts.normal_hedge(PRIOR), DRAWN),
    "two norm": experts(olx.experts.two_norm(PRIOR)),
    "anytime hedge": experts(olx.experts.anytime_hedge(schedules.decay(2.0))),
    "adahedge": experts(olx.experts.adahedge(PRIOR), DRAWN),
    "prod": experts(olx.experts.prod(0.3)),
    "adapt ml prod": experts(olx.experts.adapt_ml_prod(PRIOR)),
    "boa": experts(olx.experts.boa(PRIOR)),
    "squint": experts(olx.experts.squint(PRIOR, rates=6)),
    "ml poly": experts(olx.experts.ml_poly(PRIOR), DRAWN),
    "ml poly, sleeping": experts(olx.experts.ml_poly(PRIOR), SLEEPY),
    "any range": experts(olx.experts.any_range(olx.experts.boa(PRIOR)), DRAWN),
    "any range, ml prod": experts(olx.experts.any_range(olx.experts.adapt_ml_prod(PRIOR)), DRAWN),
    "any range, squint": experts(olx.experts.any_range(olx.experts.squint(PRIOR)), SLEEPY),
    "any range, ada normal hedge": experts(olx.experts.any_range(ADVISED(0.5, PRIOR)), SLEEPY),
    "fixed share": experts(olx.experts.fixed_share(0.5, 0.1)),
    "ada normal hedge tv": experts(olx.experts.ada_normal_hedge_tv(24, PRIOR)),
    "ada normal hedge streaming": experts(olx.experts.ada_normal_hedge_streaming(24, PRIOR)),
    "sampled": experts(olx.experts.sampled(olx.hedge(0.7), KEY))._replace(trees=False),
    "committed": experts(olx.experts.committed(ADVISED(prior=PRIOR), KEY))._replace(trees=False),
    "bandit": vertices(olx.experts.bandit(olx.hedge(0.2), KEY)),
    "linearized": regression(
        olx.experts.linearized(ADVISED(prior=PRIOR, low=-20.0, high=20.0)), UNIFORM, SIMPLEX_BALL
    ),
    "linearized, any range": regression(
        olx.experts.linearized(olx.experts.any_range(ADVISED())), UNIFORM, SIMPLEX_BALL
    ),
    "delayed": regression(olx.meta.delayed(olx.ogd(0.1), 3)),
    "delayed, hedge": experts(olx.meta.delayed(olx.hedge(0.7), 2)),
    "exp3": vertices(olx.experts.exp3(0.2, KEY)),
}
FREE = olx.first_order.freegrad()

META = {
    "constrained": regression(olx.meta.constrained(FREE, BALL), ZEROS, (ZEROS, ONES / 4)),
    "constrained, box": regression(
        olx.meta.constrained(FREE, olx.convex.sets.box(-1.0, 1.0)), ZEROS, (ZEROS, ONES / 4)
    ),
    "ader": regression(olx.meta.ader(BALL, 2.0, 24), ZEROS, (ZEROS, ONES / 4)),
    "sword": regression(olx.meta.sword(BALL, 2.0, 24, 4.0), ZEROS, (ZEROS, ONES / 4)),
    "direction and magnitude": regression(
        olx.meta.direction_and_magnitude(
            FREE, olx.first_order.self_confident(olx.mirrors.euclidean(BALL), 0.5, 0.01)
        )
    ),
    "sum of learners": regression(olx.meta.add_learners((FREE, olx.first_order.ons_betting()))),
    "anytime": regression(olx.meta.anytime(olx.ogd(0.1), olx.meta.rising())),
    "schedule free": regression(olx.meta.schedule_free(olx.ogd(0.1))),
    "mechanic": regression(olx.meta.mechanic(olx.ogd(1.0), first_scale=0.01)),
    "online to nonconvex": regression(
        olx.meta.online_to_nonconvex(olx.ogd(0.1, BALL), KEY), ZEROS, (ZEROS, ONES / 4)
    ),
    "mix": over(
        olx.meta.mix(olx.batch(linear_ogd, eta=jnp.array([0.05, 0.2])), olx.hedge(0.3)),
        ZEROS,
        (ZEROS, ONES / 3),
    ),
    "mix, algorithms": over(
        olx.meta.mix((linear_ogd(0.1), olx.linear(olx.ftrl(0.5, adagrad()))), olx.hedge(0.3)),
        ZEROS,
        (ZEROS, ONES / 3),
    ),
    "cbce, predictors": over(
        olx.meta.cbce(linear_ogd(0.05), 4, 20.0), ZEROS, tuple(np.eye(4)[::3])
    ),
}
