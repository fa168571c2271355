r"""The account of experts: the regrets so far, and theorems about them.

For a comparator $u$ in the simplex the left side of every theorem is

$$R_t(u) = \sum_{s \le t} \sum_i u_i I_{s,i} (\hat\ell_s - \ell_{s,i}),$$

which is ordinary regret to the mixture $u$ if all experts are awake. Rounds may have weights up to
1, which act as confidences; for larger weights the theorems say nothing. The account does not
depend on $u$, so one account gives both sides for every mixture.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import as_tree
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar
from olx.experts.base import ExpertHparams, ExpertState, Seen, seen
from olx.theorem import About, Theorem, add_terms, first_sums

LIGHT = "weights must be at most 1"


class Account(NamedTuple):
    """The rounds so far, in units of the range of losses."""

    prior: PyTree  # shaped like a decision
    regret: Float[Array, " N"]  # to every expert
    clock: Clock
    light: Bool[Array, ""]  # whether the weights of all rounds were at most 1
    own: PyTree = ()  # further sums of the theorem

    @property
    def flat_prior(self) -> Float[Array, " N"]:
        return ravel_pytree(self.prior)[0]

    @property
    def rounds(self) -> Float[Array, ""]:
        """The number of rounds so far."""
        return self.clock.past


def expert_theorem(
    name: str,
    source: str,
    sides: Callable[..., Certificate],
    terms: Callable[..., PyTree] | None = None,
    start: Callable[..., PyTree] | None = None,
    *,
    mixtures: bool = True,
    about: About | None = None,
) -> Theorem:
    """A theorem about the regret of an `expert_learner` to a mixture.

    sides: `(hparams, account, u) -> Certificate`, most often by `certificate`.
    terms: `(hparams, account, state, seen) -> terms` of a round for its further sums `account.own`,
        which are added as in `olx.theorem.summed`; there are none if None.
    start: `(hparams, prior) -> sums` before the first round.
    mixtures: whether the account serves every mixture.

    Numbers in the statement are bound by `Partial`.
    """
    first, add = (
        Partial(_open, as_tree(start or _nothing)),
        Partial(_add, as_tree(terms or _nothing)),
    )
    both = Partial(_sides, as_tree(sides)) if mixtures else sides
    return Theorem(name, source, first, add, both, about=about)


def sequence_theorem(
    name: str,
    source: str,
    sides: Callable[..., Certificate],
    terms: Callable[..., PyTree],
    start: Callable[..., PyTree],
    about: About,
) -> Theorem:
    """A theorem about a comparator that changes; `terms` gets that of the round as one more."""
    first, add = Partial(_open_sequence, as_tree(start)), Partial(_add_sequence, as_tree(terms))
    return Theorem(name, source, first, add, sides, about=about, sequence=True)


def for_mixtures(theorems: tuple[Theorem, ...]) -> Theorem | None:
    """The first theorem with an account that serves every mixture; None if there is none."""
    return next((one for one in theorems if getattr(one.sides_fn, "func", None) is _sides), None)


def has_own(learner: Learner, kind: type) -> bool:
    """Whether `learner` is an expert learner with `own` numbers of type `kind`."""
    hp = learner.hparams
    return isinstance(hp, ExpertHparams) and isinstance(hp.own, kind)


def open_account(state: ExpertState, own: PyTree = ()) -> Account:
    """The account before the first round, from the first state."""
    prior, _ = ravel_pytree(state.prior)
    start = clock.start(None, prior)
    return Account(state.prior, jnp.zeros_like(prior), start, jnp.ones((), bool), own)


def add_round(account: Account, what: Seen, own: PyTree = ()) -> Account:
    """The account after one more round."""
    return Account(
        account.prior,
        account.regret + what.regret,
        clock.tick(None, account.clock, what.feedback),
        account.light & (what.feedback.weight <= 1),
        own,
    )


def mixture(account: Account, u: PyTree) -> Float[Array, " N"]:
    """The comparator as one vector; refused if it is not shaped like the prior."""
    return ravel_pytree(check.comparator(u, account.prior))[0]


def unit_of(hp: ExpertHparams) -> Scalar:
    """The width of the range of losses."""
    return 1.0 if hp.span is None else hp.span[1] - hp.span[0]


def certificate(
    hp: ExpertHparams, account: Account, u: PyTree, right: Array, published: Array | None = None
) -> Certificate:
    """The certificate "regret to `u` <= `right`", in the units of the losses."""
    flat = mixture(account, u)
    proof = in_units(hp, account, account.regret @ flat, right, published)
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, flat))


def certificate_of_any_range(
    account: Account, u: PyTree, unit: Array, right: Array, published: Array | None = None
) -> Certificate:
    """The same for losses without a range; `unit` is the size of the largest regret of a round."""
    flat = mixture(account, u)
    left = account.regret @ flat
    size = unit * account.rounds + jnp.abs(left) + jnp.where(jnp.isfinite(right), right, 0.0)
    proof = Certificate(left, right, size, published)
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, flat))


def in_units(
    hp: ExpertHparams, account: Account, left: Array, right: Array, published: Array | None
) -> Certificate:
    """A certificate from both sides, in the units of the losses."""
    unit = jnp.asarray(unit_of(hp), left.dtype)
    size = account.rounds + jnp.abs(left) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    published = None if published is None else unit * published
    return Certificate(unit * left, unit * right, unit * size, published).given(
        LIGHT, account.light
    )


def relative_entropy(u: Float[Array, " N"], prior: Float[Array, " N"]) -> Array:
    r"""$\sum_i u_i \ln (u_i / q_i)$, infinite where `u` has weight and the prior has none."""
    used = u > 0
    known = prior > 0
    ratio = safe.or_one(u, used) / safe.or_one(prior, used & known)
    terms = jnp.where(used, jnp.where(known, u * jnp.log(ratio), jnp.inf), 0.0)
    return jnp.maximum(jnp.sum(terms), 0.0)


def _nothing(*_: object) -> tuple[()]:
    return ()


def _open(start: Partial, hp: ExpertHparams, state: ExpertState, u: PyTree) -> Account:
    prior, _ = ravel_pytree(state.prior)
    return open_account(state, first_sums(start(hp, prior), prior))


def _add(
    terms: Partial,
    hp: ExpertHparams,
    account: Account,
    state: ExpertState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    what = seen(hp, state, feedback)
    return add_round(account, what, add_terms(account.own, terms(hp, account, state, what)))


def _sides(sides: Partial, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    return sides(hp, account, u)


def _open_sequence(start: Partial, hp: ExpertHparams, state: ExpertState, u: PyTree) -> Account:
    account = _open(start, hp, state, u)
    mixture(account, u)
    return account


def _add_sequence(
    terms: Partial,
    hp: ExpertHparams,
    account: Account,
    state: ExpertState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    what = seen(hp, state, feedback)
    added = terms(hp, account, state, what, mixture(account, u))
    return add_round(account, what, add_terms(account.own, added))
