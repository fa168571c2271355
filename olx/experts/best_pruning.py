r"""Predict as well as the best pruning of a template tree.

An instance walks one path from the root of a tree to a leaf, and every node it meets gives advice.
A pruning cuts the tree, and follows the advice of the node where its path then ends. Each edge is
an expert who wakes when the path takes the edge and says what the node below it says:

$$\hat y_t = \sum_{e \in \mathrm{path}(x_t)} p_{t,e}\, y_{t,e}, \qquad
  \ell_{t,e} = f_t(y_{t,e}), \qquad r_{t,e} = \sum_{e'} p_{t,e'} \ell_{t,e'} - \ell_{t,e}.$$

The regret to a pruning is the sum of the regrets to the edges it ends in, so a bound for sleeping
experts is one for prunings: `olx.hindsight.pruning_bound`. A round reads and writes the edges of
its path alone, whatever the size of the tree.

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
from olx.core import Feedback, Learner, Rounds
from olx.losses.points import linear_feedback
from olx.needs import Need, within


class Path(NamedTuple):
    """A context: the path of an instance, padded to the depth of the tree."""

    edges: Int[Array, " L"]  # from the root down; -1 past the leaf
    advice: (
        PyTree  # of the node below each edge, a leading axis of length L; anything past the leaf
    )


@pytree
class BestPruningHparams:
    inner: Learner


def best_pruning(inner: Learner) -> Learner:
    """Mix the advice along the path; `params` holds the prior weight of every edge, all 1.

    The context is a `Path`, the action shaped like one piece of advice, the loss convex in it and
    in the range that `inner` asks for.

    inner: a learner of sleeping experts, such as `ada_normal_hedge`, whose context says who is
        awake. Arrays of its state must have a leading axis of experts who meet in the distribution
        alone; its numbers must not be shaped like the experts.

    >>> import jax.numpy as jnp, olx
    >>> from olx.experts.ada_normal_hedge import ada_normal_hedge
    >>> edges = jnp.array([[0, 2], [0, 3], [1, -1]] * 8)  # edge 0 parts into edges 2 and 3
    >>> advice = jnp.where(edges == 2, 1.0, jnp.where(edges == 3, 0.0, 0.5))
    >>> rounds = olx.Rounds(Path(edges, advice), jnp.array([1.0, 0.0, 0.5] * 8))
    >>> learner = best_pruning(ada_normal_hedge())
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.ones(4))
    >>> bool(run.losses[:3].sum() > 2 * run.losses[-3:].sum())
    True
    """
    check.instance("best_pruning", "inner", inner, Learner)
    needs = (*within(inner, "inner", "params", "weight"), _PATHS)
    return Learner(BestPruningHparams(inner), init, predict, update, needs=needs)


def _are_paths(hparams: BestPruningHparams, params: PyTree, rounds: Rounds) -> Path:
    """Edges are -1 or numbers of edges that `params` has; advice is finite along the path."""
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
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), _filled(context))


def update(hp: BestPruningHparams, state: PyTree, feedback: Feedback) -> PyTree:
    path = feedback.context
    p = path_weights(hp, state, path)
    seen = linear_feedback(
        p, path_losses(feedback.loss, path), feedback.weight, _awake(path).astype(p.dtype)
    )
    after = hp.inner.update(_along(path, state), seen)
    at = jnp.where(_awake(path), path.edges, jnp.iinfo(path.edges.dtype).max)
    write = lambda whole, part: whole.at[at].set(part, mode="drop") if whole.ndim else part
    return jax.tree.map(write, state, after)


def path_weights(hp: BestPruningHparams, state: PyTree, path: Path) -> Float[Array, " L"]:
    """The distribution over the edges of the path."""
    dtype = jnp.result_type(*jax.tree.leaves(path.advice))
    return hp.inner.predict(_along(path, state), _awake(path).astype(dtype))


def path_losses(loss: Callable[[PyTree], Array], path: Path) -> Float[Array, " L"]:
    """The loss of every piece of advice on the path, 0 past its end."""
    return jnp.where(_awake(path), jax.vmap(loss)(_filled(path)), 0.0)


def _along(path: Path, state: PyTree) -> PyTree:
    read = lambda whole: whole.at[path.edges].get(mode="clip") if whole.ndim else whole
    return jax.tree.map(read, state)


def _awake(path: Path) -> Bool[Array, " L"]:
    return path.edges >= 0


def _filled(path: Path) -> PyTree:
    """The advice with that of the first node in place of what lies past the leaf."""
    awake = _awake(path)
    fill = lambda leaf: jnp.where(awake.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, leaf[0])
    return jax.tree.map(fill, path.advice)
