r"""Predict as well as the best pruning of a template tree.

An instance walks one path from the root of a tree to a leaf, and every node it meets gives advice.
A pruning cuts the tree and follows the advice of the node where the path then ends. Each edge is an
expert. It is awake when the path takes the edge, and gives the advice of the node below it:

$$\hat y_t = \sum_{e \in \mathrm{path}(x_t)} p_{t,e}\, y_{t,e}, \qquad
  \ell_{t,e} = f_t(y_{t,e}), \qquad r_{t,e} = \sum_{e'} p_{t,e'} \ell_{t,e'} - \ell_{t,e}.$$

The regret to a pruning is the sum of the regrets to its last edges, so a bound for sleeping experts
gives one for prunings; it is a theorem of `best_pruning(ada_normal_hedge())`. A round reads and
writes only the edges of its path, so its cost does not depend on the size of the tree.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.4; Helmbold, Schapire, Predicting
Nearly as Well as the Best Pruning of a Decision Tree, 1997.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Rounds
from olx.experts.ada_normal_hedge import ada_normal_hedge
from olx.experts.base import ExpertState
from olx.losses.points import linear_feedback
from olx.needs import Need
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


class Path(NamedTuple):
    """A context: the path of an instance, padded to the depth of the tree."""

    edges: Int[Array, " L"]  # from the root down; -1 past the leaf
    advice: PyTree  # of the nodes below the edges, leading axis L; any value past the leaf


@pytree
class BestPruningHparams:
    inner: Learner


@public
def best_pruning(inner: Learner) -> Learner:
    """Mix the advice along the path; `params` holds the prior weight of every edge, all 1.

    The context is a `Path`. The action is shaped like one piece of advice. The loss is convex in
    the action and lies in the range of losses of `inner`.

    inner: a learner of sleeping experts, such as `ada_normal_hedge`, whose context says who is
        awake. Arrays of its state must have a leading axis of experts, independent of each other
        up to normalization; its numbers must not be shaped like the experts.

    >>> import jax.numpy as jnp, olx
    >>> edges = jnp.array([[0, 2], [0, 3], [1, -1]] * 8)  # edge 0 parts into edges 2 and 3
    >>> advice = jnp.where(edges == 2, 1.0, jnp.where(edges == 3, 0.0, 0.5))
    >>> rounds = olx.Rounds(Path(edges, advice), jnp.array([1.0, 0.0, 0.5] * 8))
    >>> learner = best_pruning(ada_normal_hedge())
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.ones(4))
    >>> bool(run.losses[:3].sum() > 2 * run.losses[-3:].sum())
    True
    """
    check.instance("inner", inner, Learner)
    needs = (*lift_needs(WrapperView(parts=("params", "weight")), inner), _PATHS)
    plain = jax.tree.structure(inner) == jax.tree.structure(ada_normal_hedge())
    hparams, theorems = BestPruningHparams(inner), (prunings,) if plain else ()
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def _are_paths(hparams: BestPruningHparams, params: PyTree, rounds: Rounds) -> Path:
    """Whether edges are -1 or indices into `params`, and advice is finite along the path."""
    edges = rounds.context.edges
    known = (edges >= -1) & (edges < params.shape[0])
    past = lambda leaf: (edges < 0).reshape(edges.shape + (1,) * (leaf.ndim - 2))
    finite = lambda leaf: past(leaf) | (abs(leaf) < jnp.inf)
    return Path(known, jax.tree.map(finite, rounds.context.advice))


_PATHS = Need(
    "context",
    _are_paths,
    "a path must hold numbers of edges, or -1 past the leaf, and finite advice",
    "best_pruning",
    "`params` holds one weight per edge",
)


def init(hp: BestPruningHparams, params: Float[Array, " E"]) -> PyTree:
    return hp.inner.init(params)


def predict(hp: BestPruningHparams, state: PyTree, context: Path) -> PyTree:
    p = path_weights(hp, state, context)
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), _filled_advice(context))


def update(hp: BestPruningHparams, state: PyTree, feedback: Feedback) -> PyTree:
    path = feedback.context
    p = path_weights(hp, state, path)
    seen = linear_feedback(
        p, path_losses(feedback.loss, path), feedback.weight, _awake(path).astype(p.dtype)
    )
    after = hp.inner.update(_state_along(path, state), seen)
    at = _write_places(path)
    write = lambda whole, part: whole.at[at].set(part, mode="drop") if whole.ndim else part
    return jax.tree.map(write, state, after)


def path_weights(hp: BestPruningHparams, state: PyTree, path: Path) -> Float[Array, " L"]:
    """The distribution over the edges of the path."""
    dtype = jnp.result_type(*jax.tree.leaves(path.advice))
    return hp.inner.predict(_state_along(path, state), _awake(path).astype(dtype))


class Account(NamedTuple):
    size: Float[Array, " E"]  # C, the sum of |r| per edge
    met: Float[Array, " E"]  # 1 for the edges met so far
    excess: Float[Array, ""]
    regret: Float[Array, ""]
    paid: Float[Array, ""]
    equal: Bool[Array, ""]  # whether all priors are equal
    unit: Bool[Array, ""]  # whether all weights are 0 or 1


def open_account(hp: BestPruningHparams, state: ExpertState, u: Float[Array, " E"]) -> Account:
    prior = jnp.asarray(state.prior)
    check.comparator(u, prior)
    zeros, zero = jnp.zeros_like(prior), jnp.zeros((), prior.dtype)
    equal = jnp.max(prior) - jnp.min(prior) <= 64 * jnp.finfo(prior.dtype).eps
    return Account(zeros, zeros, zero, zero, zero, equal, jnp.ones((), bool))


def add_round(
    hp: BestPruningHparams, account: Account, state: ExpertState, feedback: Feedback, u: Array
) -> Account:
    path, value, edges = feedback.context, feedback.value, u.size
    losses, p = path_losses(feedback.loss, path), path_weights(hp, state, path)
    moves = on_edges(path, jnp.abs(jnp.sum(p * losses) - losses), edges)
    ends = jnp.where(_awake(path), u.at[path.edges].get(mode="clip"), 0.0)
    other = jnp.sum(ends * losses)
    return Account(
        account.size + moves,
        jnp.maximum(account.met, on_edges(path, jnp.ones_like(losses), edges)),
        account.excess + jnp.sum(moves / (1 + account.size)),
        account.regret + value - other,
        account.paid + jnp.abs(value) + jnp.abs(other),
        account.equal,
        account.unit & (feedback.weight == 1),
    )


def both_sides(hp: BestPruningHparams, account: Account, u: Float[Array, " E"]) -> Certificate:
    r"""The regret of `best_pruning(ada_normal_hedge())` with equal priors to a pruning.

    With $C_e$ the sum of $|r_{s,e}|$ so far, $m$ the number of edges met so far that
    end in a leaf of the pruning $P$, and $\hat\ell_s$ the mean loss on the path,

    $$\sum_{s \le t} f_s(\hat y_s) - f_s(P(x_s)) \le \sqrt{3 m \Big( \sum_{s \le t} |\hat\ell_s -
      f_s(P(x_s))| \Big) \ln\Big( 1 + \frac{3}{2m} \sum_{s \le t} \sum_e
      \frac{|r_{s,e}|}{1 + C_{s-1,e}} \Big)}.$$

    `published` has $\ln\frac Nm + \ln B + 1$ for the logarithm, with $N$ edges met so far and
    $B = 1 + \frac{3}{2N} \sum_e 1 + \ln(1 + C_e)$.

    u: 1 for the edges above the leaves of the pruning, else 0: `leaves` of an
        `olx.hindsight.Pruning`.
    """
    size, met, count, used = account.size, account.met, jnp.sum(account.met), account.met @ u
    b = 1 + 1.5 * jnp.sum(met * (1 + jnp.log1p(size))) / count
    root = lambda logarithm: jnp.sqrt(3 * used * (size @ u) * logarithm)
    right = root(jnp.log1p(1.5 * account.excess / used))
    published = root(jnp.log(count / used) + jnp.log(b) + 1)
    proof = Certificate(account.regret, right, account.paid + right, published)
    return proof.given("priors must be equal", account.equal).given(UNIT_WEIGHTS, account.unit)


prunings = Theorem("prunings", "Luo 2016, section 2.3.4", open_account, add_round, both_sides)


def path_losses(loss: Callable[[PyTree], Array], path: Path) -> Float[Array, " L"]:
    """The loss of every piece of advice on the path, 0 past its end."""
    return jnp.where(_awake(path), jax.vmap(loss)(_filled_advice(path)), 0.0)


def _state_along(path: Path, state: PyTree) -> PyTree:
    read = lambda whole: whole.at[path.edges].get(mode="clip") if whole.ndim else whole
    return jax.tree.map(read, state)


def _write_places(path: Path) -> Int[Array, " L"]:
    """The indices at which to write values of the edges of a path; out of range past the leaf."""
    return jnp.where(_awake(path), path.edges, jnp.iinfo(path.edges.dtype).max)


def on_edges(path: Path, values: Float[Array, " L"], edges: int) -> Float[Array, " E"]:
    """The sum of values on the edges of a path, or of several paths, per edge of the tree."""
    return jnp.zeros(edges, values.dtype).at[_write_places(path)].add(values, mode="drop")


def _awake(path: Path) -> Bool[Array, " L"]:
    return path.edges >= 0


def _filled_advice(path: Path) -> PyTree:
    """The advice of the nodes on the path; places after the leaf repeat that of the first node."""
    met = _awake(path)
    fill = lambda leaf: jnp.where(met.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, leaf[0])
    return jax.tree.map(fill, path.advice)
