"""The whole table of learners, and which of its rows are alike."""

import dataclasses
from collections.abc import Callable, Hashable
from types import FunctionType

import jax
import jax.numpy as jnp
from cases import CASES, Case
from cases_boosting import BOOSTING
from cases_experts import EXPERT, META
from cases_first_order import FIRST_ORDER
from cases_multiclass import MULTICLASS
from cases_ranking import RANKING
from cases_second_order import SECOND_ORDER
from cases_structured import STRUCTURED
from jax.tree_util import Partial

from olx import Learner

TASKS = MULTICLASS | RANKING | STRUCTURED
TABLE = CASES | FIRST_ORDER | SECOND_ORDER | BOOSTING | TASKS | EXPERT | META

# One of every kind of state and program, for what does not depend on the algorithm.
KINDS = [
    "omd euclidean",
    "omd simplex",
    "omd unseen potential",
    "hedge",
    "omd density matrices",
    "md ball, decaying",
    "ftrl adagrad l1",
    "ftrl composite group",
    "optimistic from context",
    "optimistic md",
    "model",
    "dual ascent, window",
    "winnow, self-tuned",
    "PA-I",
    "ada normal hedge, sleeping",
    "ada normal hedge streaming",
    "bandit",
    "mix",
]

PARTS = ("olx.convex", "olx.losses", "olx.mirrors", "olx.schedules")  # handed to algorithms


def functions(part: object) -> set[Callable]:
    """The functions of a learner, and those of all that its numbers hold, without its facts."""
    if isinstance(part, FunctionType):
        return {part}
    if isinstance(part, Learner):
        inside = (part.init_fn, part.predict_fn, part.update_fn, part.hparams)
    elif isinstance(part, Partial):
        inside = (part.func, part.args, part.keywords)
    elif isinstance(part, tuple | list):
        inside = part
    elif isinstance(part, dict):
        inside = part.values()
    elif dataclasses.is_dataclass(part):
        inside = [getattr(part, field.name) for field in dataclasses.fields(part)]
    else:
        return set()
    return set().union(*map(functions, inside))


def algorithm(case: Case) -> Hashable:
    """The functions of the algorithm; a map, a loss or a set may be another one."""
    found = functions(case.learner)
    return frozenset(one for one in found if not one.__module__.startswith(PARTS))


def program(case: Case) -> Hashable:
    """The functions of the learner, and of the learners inside it, whatever they are given."""
    inner = lambda part: isinstance(part, Learner)
    triple, learners = [], [case.learner]
    while learners:
        one = learners.pop()
        triple.append((one.init_fn, one.predict_fn, one.update_fn))
        learners += filter(inner, jax.tree.leaves(one.hparams, is_leaf=inner))
    return tuple(triple)


def claims(case: Case) -> Hashable:
    """The facts of the learner and its mirror map, about a state of vectors or matrices."""
    state = jax.tree.map(jnp.ndim, jax.eval_shape(case.learner.init, case.params))
    maps = [one for one in functions(case.learner) if one.__module__.startswith("olx.mirrors")]
    kind = jax.tree.structure(state), *jax.tree.leaves(state)
    return case.learner.facts, frozenset(maps), kind


def one_of_each(key: Callable[[Case], Hashable]) -> list[str]:
    """The first row of the table of every key."""
    return list({key(case): name for name, case in reversed(TABLE.items())}.values())[::-1]
