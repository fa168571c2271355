"""Which learners a theorem is about."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import PyTree

from olx.classification.aggressive_perceptron import AggressivePerceptronHparams
from olx.classification.alma import ALMAHparams
from olx.classification.passive_aggressive import PassiveAggressiveHparams
from olx.classification.self_tuned_winnow import self_tuned_winnow
from olx.core import Learner, Process
from olx.experts.ada_normal_hedge import ada_normal_hedge
from olx.experts.ada_normal_hedge import weigh as by_ada_normal
from olx.experts.base import ExpertHparams
from olx.experts.best_pruning import BestPruningHparams
from olx.experts.fixed_share import FixedShareHparams
from olx.experts.streaming import StreamingHparams
from olx.experts.tracking import TrackingHparams
from olx.first_order.strongly_convex_ogd import StronglyConvexHparams
from olx.frameworks.ascents.aggressive import aggressive
from olx.frameworks.ascents.conservative import conservative
from olx.frameworks.dual_ascent import DualAscentHparams
from olx.frameworks.ftrl import FTRLHparams
from olx.frameworks.lift import LiftHparams
from olx.frameworks.md import MDHparams
from olx.hindsight.game import About
from olx.losses.hinges import hinge
from olx.mirrors.entropy import negative_entropy
from olx.mirrors.euclidean import euclidean
from olx.mirrors.pnorm import pnorm
from olx.schedules import _scalar
from olx.schedules.decay import DecayHparams
from olx.schedules.fixed import LipschitzHorizonHparams
from olx.schedules.mistakes import update as count_mistakes
from olx.schedules.own_loss import OwnLossHparams
from olx.schedules.root_norms import RootNormsHparams
from olx.schedules.root_rounds import RootRoundsHparams


def innermost(learner: Learner) -> Learner:
    """The learner inside all models."""
    while isinstance(learner.hparams, LiftHparams):
        learner = learner.hparams.inner
    return learner


def alike(tree: PyTree, other: PyTree) -> bool:
    """Whether two trees were made by the same factory, whatever their numbers."""
    return jax.tree.structure(tree) == jax.tree.structure(other)


def with_hparams(kind: type, test: Callable[[Any], bool] | None = None) -> Callable:
    """Whether the learner inside all models has such hyperparameters."""

    def passes(learner: Learner) -> bool:
        hp = innermost(learner).hparams
        return isinstance(hp, kind) and (test is None or test(hp))

    return passes


def fixed(schedule: Process) -> bool:
    """Whether it gives the same number in every round."""
    return schedule.init_fn is _scalar.no_stats


def has_norm(hp: Any) -> bool:
    return hp.mirror.norm is not None and hp.mirror.modulus is not None


def _hinged(hp: DualAscentHparams) -> bool:
    return hp.loss.value_fn is hinge.value_fn


def _conservative(hp: DualAscentHparams) -> bool:
    return _hinged(hp) and alike(hp.ascent, conservative()) and has_norm(hp)


def _perceptron(hp: DualAscentHparams) -> bool:
    squared = any(alike(hp.mirror, mirror) for mirror in (euclidean(), pnorm(1.5)))
    return squared and _conservative(hp) and fixed(hp.schedule)


def _winnow(hp: DualAscentHparams) -> bool:
    return alike(hp.mirror, negative_entropy()) and _conservative(hp) and fixed(hp.schedule)


def _self_tuned_aggressive(hp: DualAscentHparams) -> bool:
    counts = hp.schedule.update_fn is count_mistakes
    return counts and _hinged(hp) and alike(hp.ascent, aggressive()) and has_norm(hp)


def _self_tuned_winnow(hp: DualAscentHparams) -> bool:
    return alike(hp, self_tuned_winnow().hparams)


def _expert(own: type | None = None) -> Callable:
    return with_hparams(ExpertHparams, lambda hp: own is None or isinstance(hp.own, own))


def _of(test: Callable[[DualAscentHparams], bool]) -> Callable:
    return with_hparams(DualAscentHparams, test)


def regularized(name: str, at: Callable) -> About:
    """Follow the regularized leader with the regularizer that `at` gives."""
    return About(name, with_hparams(FTRLHparams, lambda hp: hp.regularizer.at_fn is at))


def _tuned(kind: type, constant: str | None = None) -> Callable:
    """A map with a norm, such a schedule, and a loss that has the constant."""

    def passes(hp: DualAscentHparams) -> bool:
        known = constant is None or getattr(hp.loss, constant) is not None
        return has_norm(hp) and isinstance(hp.schedule.hparams, kind) and known

    return _of(passes)


DUAL_ASCENT = About("a `dual_ascent`", _of(lambda hp: True))
HINGED = About("a `dual_ascent` on `hinge` or `margin_hinge`", _of(_hinged))
CONSERVATIVE = About(
    "a `dual_ascent` on a hinge by `conservative()` with a fixed schedule and a norm",
    _of(lambda hp: _conservative(hp) and fixed(hp.schedule)),
)
PERCEPTRONS = About("`perceptron` or `pnorm_perceptron`", _of(_perceptron))
WINNOW = About("`winnow`", _of(_winnow))
SELF_TUNED_WINNOW = About("`self_tuned_winnow`", _of(_self_tuned_winnow))
SELF_TUNED_AGGRESSIVE = About("`self_tuned_aggressive`", _of(_self_tuned_aggressive))
FIXED = About(
    "a `dual_ascent` with a fixed schedule and a map that states its norm",
    _of(lambda hp: fixed(hp.schedule) and has_norm(hp)),
)
SELF_BOUNDED = About(
    "a `dual_ascent` on a self-bounded loss, with a fixed schedule and a map that states its norm",
    _of(lambda hp: fixed(hp.schedule) and has_norm(hp) and hp.loss.self_bound is not None),
)
HORIZON = About("a `dual_ascent` by `lipschitz_horizon`", _tuned(LipschitzHorizonHparams))
ROOT_ROUNDS = About("a `dual_ascent` by `root_rounds`", _tuned(RootRoundsHparams))
ROOT_NORMS = About(
    "a `dual_ascent` on a Lipschitz loss by `root_norms` or `root_lipschitz`",
    _tuned(RootNormsHparams, "lipschitz"),
)
OWN_LOSS = About(
    "a `dual_ascent` on a self-bounded loss by `own_loss` or `bounded_loss`",
    _tuned(OwnLossHparams, "self_bound"),
)
AGGRESSIVE_PERCEPTRON = About(
    "an `aggressive_perceptron`", with_hparams(AggressivePerceptronHparams)
)
PASSIVE_AGGRESSIVE = About("a `passive_aggressive`", with_hparams(PassiveAggressiveHparams))
ALMA = About("an `alma`", with_hparams(ALMAHparams))
FTRL = About("an `ftrl`", with_hparams(FTRLHparams))
MD_DECAY = About(
    "an `md` or `ogd` with steps by `decay`",
    with_hparams(MDHparams, lambda hp: isinstance(hp.eta.hparams, DecayHparams)),
)
FIXED_STEP = About(
    "an `ogd` or `md` with a fixed step and a map that states its norm",
    with_hparams(MDHparams, lambda hp: fixed(hp.eta) and has_norm(hp)),
)
STRONGLY_CONVEX_OGD = About(
    "a `strongly_convex_ogd` with a map that states its norm",
    with_hparams(StronglyConvexHparams, has_norm),
)
EXPERTS = About("one of `olx.experts` that see all losses", _expert())
ADA_NORMAL_HEDGE = About(
    "an `ada_normal_hedge` whose exponent is None",
    with_hparams(ExpertHparams, lambda hp: hp.weigh_fn is by_ada_normal and hp.own is None),
)
TRACKING = About("an `ada_normal_hedge_tv`", _expert(TrackingHparams))
INTERVALS = About(
    "an `ada_normal_hedge_tv` or `ada_normal_hedge_streaming`",
    lambda learner: _expert(TrackingHparams)(learner) or _expert(StreamingHparams)(learner),
)
FIXED_SHARE = About("a `fixed_share`", _expert(FixedShareHparams))
BEST_PRUNING = About(
    "a `best_pruning` of `ada_normal_hedge()`",
    with_hparams(BestPruningHparams, lambda hp: alike(hp.inner, ada_normal_hedge())),
)
