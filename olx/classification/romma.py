r"""ROMMA, the relaxed online maximum margin algorithm.

The support vector machine is the shortest vector with margin 1 on all examples. ROMMA replaces the
constraints of all past examples by one half-space. After an example whose margin is too small,

$$w_{t+1} = \arg\min \|w\| \quad \text{with} \quad y_t \langle w, x_t\rangle \ge 1, \quad
  \langle w, w_t\rangle \ge \|w_t\|^2.$$

With both constraints tight, $w_{t+1} = a w_t + b x_t$ for

$$a = \frac{\|x_t\|^2 \|w_t\|^2 - y_t s_t}{\|x_t\|^2 \|w_t\|^2 - s_t^2}, \qquad
  b = \frac{\|w_t\|^2 (y_t - s_t)}{\|x_t\|^2 \|w_t\|^2 - s_t^2}, \qquad
  s_t = \langle w_t, x_t\rangle;$$

if $y_t s_t \ge \|x_t\|^2 \|w_t\|^2$, the first constraint alone gives $w_{t+1} = y_t x_t /
\|x_t\|^2$. ROMMA changes after mistakes, its aggressive form whenever $y_t s_t < 1$.

For $u$ with $y_s \langle u, x_s\rangle \ge 1$ in all rounds with too small a margin,

$$\sum_{s \le t} \frac{(1 - y_s s_s)^2}{\|x_s\|^2} \le \|u\|^2,$$

summed over these rounds. A mistake adds at least $1 / \max_s \|x_s\|^2$, so there are at most
$\|u\|^2 \max_s \|x_s\|^2$ mistakes. Proof: $\langle w_{s+1}, w_s\rangle \ge \|w_s\|^2$, so
$\|w_{s+1}\|^2 \ge \|w_s\|^2 + \|w_{s+1} - w_s\|^2$. The last term is at least the squared distance
of $w_s$ to the half-space of the example, the summand. $u$ meets all constraints: $\|w_s\| \le
\|u\|$.

Li, Long, The Relaxed Online Maximum Margin Algorithm, 2002.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.convex import norms
from olx.core import Feedback, Learner, Scalar
from olx.facts import Aggregate, Facts, HasAggregate
from olx.frameworks.lift import dot
from olx.losses.margin import margin, short
from olx.losses.score import signs
from olx.theorem import MET, ZERO, summed


@pytree
class ROMMAHparams:
    threshold: Scalar


class ROMMAState(NamedTuple):
    w: PyTree


@public
def romma(threshold: Scalar = 0.0) -> Learner:
    """ROMMA: if the margin is at most `threshold`, change the decision to a margin of 1.

    threshold: from 0 (change after mistakes only) to 1 (change after every margin error).

    Only the shape of `params` is used: the first decision is 0. All weights other than 0 have the
    same effect. A row that is a multiple of the decision but contradicts it makes the constraints
    impossible; it is ignored. On inseparable data decisions grow; they are shrunk before overflow.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> run = olx.rollout(
    ...     romma(), olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(romma(), run, u / 0.2).holds)
    True
    """
    hparams = ROMMAHparams(check.between("threshold", threshold, 0, 1))
    facts, needs = Facts(coordinates=HasAggregate(_aggregate)), (signs("romma"),)
    theorems = (half_spaces,)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


@public
def aggressive_romma() -> Learner:
    """ROMMA that changes after every margin error."""
    return romma(1.0)


def init(hp: ROMMAHparams, params: PyTree) -> ROMMAState:
    return ROMMAState(tree.zeros_like(params))


def predict(hp: ROMMAHparams, state: ROMMAState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(hp: ROMMAHparams, state: ROMMAState, feedback: Feedback) -> ROMMAState:
    x, y, score = feedback.context, feedback.outcome, feedback.action
    own, row = jnp.asarray(tree.vdot(state.w, state.w)), jnp.asarray(tree.vdot(x, x))
    own_length, row_length = (jnp.sqrt(safe.or_one(size)) for size in (own, row))
    both = own_length * row_length  # own * row may overflow
    cosine = score / both
    fresh = (own == 0) | (y * cosine >= both)
    spread = (1 - cosine) * (1 + cosine)
    possible = spread > 8 * jnp.finfo(spread.dtype).eps
    divisor = safe.or_one(spread, possible)
    keep = jnp.where(fresh, 0.0, (1 - y * cosine / both) / divisor)
    add = jnp.where(fresh, y, (y - score) / divisor) / safe.or_one(row)
    changes = _asks(hp, feedback) & (row > 0) & (fresh | possible)
    keep, add = jnp.where(changes, keep, 1.0), jnp.where(changes, add, 0.0)
    length = keep * own_length + jnp.abs(add) * row_length  # an upper bound on the new length
    most = float(jnp.finfo(spread.dtype).max) ** 0.45  # its square is still a float
    cut = safe.divide(most, length, 1.0, length > most)
    keep, add = cut * keep, cut * add
    return ROMMAState(jax.tree.map(lambda w, x: keep * w + add * x, state.w, x))


class Account(NamedTuple):
    left: Float[Array, ""]
    fits: Bool[Array, ""]  # whether u had margin 1 in all rounds with too small a margin


def start(hp: ROMMAHparams, state: ROMMAState, u: PyTree) -> Account:
    check.comparator(u, state.w)
    return Account(ZERO, MET)


def terms(hp: ROMMAHparams, state: ROMMAState, feedback: Feedback, u: PyTree) -> Account:
    x, y, asks = feedback.context, feedback.outcome, _asks(hp, feedback)
    row = jnp.asarray(tree.vdot(x, x))
    gain = (1 - y * feedback.action) ** 2 / safe.or_one(row)
    misses = y * dot(u, x) < 1 - 1e3 * jnp.finfo(row.dtype).eps
    return Account(jnp.where(asks & (row > 0), gain, 0.0), ~(asks & misses))


def both_sides(hp: ROMMAHparams, account: Account, u: PyTree) -> Certificate:
    right = jnp.asarray(tree.vdot(u, u))
    proof = Certificate(account.left, right, 10 * account.left + right)
    return proof.given("`u` must have margin 1 in all rounds that need an update", account.fits)


half_spaces = summed("half_spaces", "Li, Long 2002", terms, both_sides, start)


def _aggregate(hp: ROMMAHparams) -> Aggregate:
    return norms.squares()


def _asks(hp: ROMMAHparams, feedback: Feedback) -> Array:
    return short(margin(feedback.action, feedback.outcome), hp.threshold)
