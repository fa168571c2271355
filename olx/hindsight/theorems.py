"""The theorems about a learner, by name."""

from collections.abc import Callable
from typing import NamedTuple

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner
from olx.hindsight import about
from olx.hindsight.certify import certify
from olx.hindsight.duality import sandwich, weak_duality
from olx.hindsight.experts import small_loss_bound
from olx.hindsight.first_order import (
    FILTERING,
    SCALE_INVARIANT_ADAGRAD,
    SCALE_INVARIANT_PNORM,
    filtering_bound,
    gradient_descent_bound,
    scale_invariant_adagrad_bound,
    scale_invariant_pnorm_bound,
    weighted_regret_bound,
)
from olx.hindsight.game import About
from olx.hindsight.margin_errors import aggressive_perceptron_bound, passive_aggressive_bound
from olx.hindsight.mistakes import (
    hinge_bound,
    perceptron_mistake_bound,
    self_tuned_aggressive_bound,
)
from olx.hindsight.primal_dual import (
    horizon_bound,
    lipschitz_bound,
    own_loss_bound,
    root_norms_bound,
    root_rounds_bound,
    self_bounded_bound,
)

Statement = Callable[..., Certificate]  # (learner, run, u)


class Theorem(NamedTuple):
    """A theorem that takes a learner, its run and a comparator, and gives a certificate."""

    name: str  # that of the function; "certify" for the one that the learner carries
    function: Statement


_KNOWN: tuple[tuple[Statement, About], ...] = (
    (weak_duality, about.DUAL_ASCENT),
    (sandwich, about.DUAL_ASCENT),
    (lipschitz_bound, about.FIXED),
    (self_bounded_bound, about.SELF_BOUNDED),
    (horizon_bound, about.HORIZON),
    (root_rounds_bound, about.ROOT_ROUNDS),
    (root_norms_bound, about.ROOT_NORMS),
    (own_loss_bound, about.OWN_LOSS),
    (hinge_bound, about.HINGED),
    (perceptron_mistake_bound, about.PERCEPTRONS),
    (self_tuned_aggressive_bound, about.SELF_TUNED_AGGRESSIVE),
    (aggressive_perceptron_bound, about.AGGRESSIVE_PERCEPTRON),
    (passive_aggressive_bound, about.PASSIVE_AGGRESSIVE),
    (gradient_descent_bound, about.FIXED_STEP),
    (weighted_regret_bound, about.STRONGLY_CONVEX_OGD),
    (scale_invariant_pnorm_bound, SCALE_INVARIANT_PNORM),
    (scale_invariant_adagrad_bound, SCALE_INVARIANT_ADAGRAD),
    (filtering_bound, FILTERING),
    (small_loss_bound, about.ADA_NORMAL_HEDGE),
)


def theorems(learner: Learner) -> tuple[Theorem, ...]:
    """The theorems about `learner` that need nothing but a run of it and a comparator.

    Theorems with further numbers, such as a margin, are functions of `olx.hindsight`.

    >>> import olx
    >>> [theorem.name for theorem in theorems(olx.classification.passive_aggressive())]
    ['certify', 'passive_aggressive_bound']
    """
    check.instance("theorems", "learner", learner, Learner)
    own = () if learner.bound_fn is None else (Theorem("certify", certify),)
    found = (Theorem(one.__name__, one) for one, kind in _KNOWN if kind.test(learner))
    return (*own, *found)
