r"""The account of experts: the regrets so far, and theorems about them.

For a comparator $u$ in the simplex the left side of every theorem is

$$R_t(u) = \sum_{s \le t} \sum_i u_i I_{s,i} (\hat\ell_s - \ell_{s,i}),$$

which is ordinary regret to the mixture $u$ if all experts are awake. Rounds may have weights up to
1, which act as confidences; for larger weights the theorems say nothing. The account does not
depend on $u$, so one account gives both sides for every mixture.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import as_tree
from olx.convex import _domain
from olx.core import Feedback, Scalar
from olx.experts.base import ExpertHparams, ExpertState, Seen, seen
from olx.theorem import DOMAIN, About, Certificate, Theorem

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
    open_own: Callable[..., Any] | None,
    add_own: Callable[..., Any] | None,
    sides: Callable[..., Certificate],
    *,
    about: About | None = None,
) -> Theorem:
    """A theorem about the regret of an `expert_learner` to a mixture.

    open_own: `(hparams, prior) -> own`, the first value of its further sums; none if None.
    add_own: `(hparams, account, state, seen) -> own`, these sums after one more round.
    sides: `(hparams, account, u) -> Certificate`, most often by `certificate`.

    Numbers in the statement are bound by `Partial`.
    """
    own = (as_tree(part or _nothing) for part in (open_own, add_own, sides))
    parts = (Partial(part, one) for part, one in zip((_open, _add, _sides), own, strict=True))
    return Theorem(name, source, *parts, about=about)


def for_mixtures(theorems: tuple[Theorem, ...]) -> Theorem | None:
    """The first theorem with an account that serves every mixture; None if there is none."""
    return next((one for one in theorems if getattr(one.sides_fn, "func", None) is _sides), None)


def has_own(learner: Any, kind: type) -> bool:
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


def _nothing(*_: Any) -> tuple:
    return ()


def _open(open_own: Partial, hp: ExpertHparams, state: ExpertState, u: PyTree) -> Account:
    return open_account(state, open_own(hp, ravel_pytree(state.prior)[0]))


def _add(add_own: Partial, hp: ExpertHparams, account: Account, state, feedback: Feedback, u):
    what = seen(hp, state, feedback)
    return add_round(account, what, add_own(hp, account, state, what))


def _sides(sides: Partial, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    return sides(hp, account, u)
