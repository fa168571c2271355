"""What learners decide on and play in each kind of task."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import olx
from olx import structured
from olx.convex.sets import ConvexSet, ball, everywhere, simplex
from olx.core import Learner
from olx.hindsight import itself

Data = Any  # an `olx.lab.data.Dataset`, which holds a task


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision of a learner in a round, and its comparator."""

    shape: Callable[[Data], tuple[int, ...] | None]  # of what is played; None for a tree
    starts: Callable[[Data], tuple[Any, ...]]  # first decisions, as trees of shapes; a learner gets
    # the first one from which it plays something of the shape above
    first: float | str  # every coordinate of the usual first decision, or "uniform"
    lift: Callable[[Learner], Learner] | None  # makes a point learner predict from features;
    # None if there are no features
    apply: Callable[..., Any]  # (u, context) -> what the comparator u plays
    zero: Callable[[Any], Any]  # first decision -> the trivial comparator
    domain: Callable[[float | None], ConvexSet]  # radius -> the set of comparators


def shaped(*shape: int) -> jax.ShapeDtypeStruct:
    """The shape of an array of a decision."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def chain_of(classes: int, features: int) -> structured.Structure:
    """The structure of sequences, which a config calls "data"."""
    return structured.chain(classes, features)


def chain_parts(w: structured.ChainWeights, context: structured.Sequences) -> structured.Parts:
    """The scores that these weights of a chain give to the parts of a sequence."""
    return chain_of(*w.emission.shape).parts(w, context)


SCORE = Decision(
    shape=lambda data: (),
    starts=lambda data: (shaped(data.width),),
    first=0.0,
    lift=olx.linear,
    apply=olx.dot,
    zero=jnp.zeros_like,
    domain=lambda radius: everywhere() if radius is None else ball(radius),
)
WEIGHTS = Decision(
    shape=lambda data: (data.width,),
    starts=lambda data: (shaped(data.width),),
    first="uniform",
    lift=None,
    apply=itself,
    zero=lambda start: start,
    domain=lambda radius: simplex(),
)
SCORES = dataclasses.replace(
    SCORE,
    shape=lambda data: (data.classes,),
    starts=lambda data: (shaped(data.classes, data.width), shaped(data.width)),  # for reductions
)
LABELS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    starts=lambda data: (shaped(*data.outcome.shape[1:], data.width),),
)
ROWS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    lift=olx.ranking.rank_rows,
    apply=olx.ranking.row_scores,
)
PARTS = dataclasses.replace(
    SCORE,
    shape=lambda data: None,
    starts=lambda data: (jax.eval_shape(chain_of(data.classes, data.width).zeros),),
    lift=lambda inner: olx.model(inner, chain_parts),
    apply=chain_parts,
    zero=lambda start: jax.tree.map(jnp.zeros_like, start),
)
