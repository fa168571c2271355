"""Checks of arguments. An error says what is wrong, the value seen, and the remedy.

A check of a value returns the value. A concrete number that is not legal raises at once. A traced
number, as in a grid under `vmap`, becomes NaN where it is not legal: a bad grid point then shows as
non-finite losses at its own index, and the other configurations go on.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from olx._cache import cached
from olx._memory import memory
from olx._refusal import RefusedType, RefusedValue
from olx._words import as_given

_AGREE = "they must agree"


def positive(name: str, value: object, each: bool = False) -> Any:
    """each: whether `value` may be a tree of arrays; every number in it is then checked."""
    legal = lambda v: (v > 0) & (v < np.inf)
    return _values(name, value, legal, "must be positive", each)


def non_negative(name: str, value: object, each: bool = False) -> Any:
    legal = lambda v: (v >= 0) & (v < np.inf)
    return _values(name, value, legal, "must be non-negative", each)


def finite(name: str, value: object, each: bool = False) -> Any:
    return _values(name, value, lambda v: abs(v) < np.inf, "must be finite", each)


def between(
    name: str,
    value: Any,
    low: float,
    high: float,
    slack: Any = 0.0,
    each: bool = False,
) -> Any:
    """slack: how far outside the range a value may lie; such a value is returned unchanged."""
    legal = lambda v: (v >= low - slack) & (v <= high + slack) & (v < np.inf)
    return _values(name, value, legal, f"must lie in [{low:g}, {high:g}]", each)


def above(name: str, value: object, low: float, high: float, each: bool = False) -> Any:
    legal = lambda v: (v > low) & (v <= high)
    return _values(name, value, legal, f"must lie in ({low:g}, {high:g}]", each)


def inside(name: str, value: object, low: float, high: float, each: bool = False) -> Any:
    legal = lambda v: (v > low) & (v < high)
    return _values(name, value, legal, f"must lie in ({low:g}, {high:g})", each)


def key(value: Any) -> None:
    """Refuse all but a random key of JAX, of the new or of the old form."""
    kind = getattr(value, "dtype", None)
    if kind is None or not (
        jnp.issubdtype(kind, jax.dtypes.prng_key) or (kind == np.uint32 and np.ndim(value) > 0)
    ):
        raise RefusedType(
            f"`key` must be a random key, got {seen_as(value)}; make one, as `jax.random.key(0)`."
        )


def iterable(name: str, value: object) -> None:
    """Refuse what holds no things one after the other; a word is one thing."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise RefusedType(f"`{name}` must be a list, got {quote(value)}.")


def flag(name: str, value: object) -> None:
    """Refuse all but True and False."""
    if not isinstance(value, bool | np.bool_):
        raise RefusedType(f"`{name}` must be True or False, got {quote(value)}.")


def seed(value: object) -> None:
    """Refuse all but integers from 0 on."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise RefusedValue(f"`seed` must be an integer from 0 on, got {quote(value)}.")


def numbers(name: str, value: object) -> None:
    """Refuse all but trees of real numbers, at least one; values are not looked at."""
    leaves = jax.tree.leaves(value)
    own = dataclasses.is_dataclass(value) and type(value).__module__.startswith("olx.")
    if own or not any(np.size(leaf) for leaf in leaves):  # a network may be a dataclass
        raise RefusedType(
            f"`{name}` must hold numbers, got {quote(value)}; give an array, or a tree of arrays."
        )
    for leaf in leaves:
        if not isinstance(leaf, Tracer):
            _real(name, np.asarray(leaf), leaf)


def array(name: str, value: Any, *axes: int) -> None:
    """Refuse all but arrays of finite real numbers with one of these numbers of axes."""
    numbers(name, value)
    if not hasattr(value, "shape") or value.ndim not in axes or value.size == 0:
        wanted = " or ".join(map(str, axes))
        seen = f"shape {value.shape}" if hasattr(value, "shape") else quote(value)
        raise RefusedType(f"`{name}` must be an array with {wanted} axes, got {seen}.")
    finite(name, value, each=True)


def count(name: str, value: object) -> None:
    """Refuse all but Python integers of at least 1; a count is the size of an array."""
    if isinstance(value, Tracer):
        raise RefusedType(
            f"`{name}` must be an integer of at least 1, got a traced number; it is the "
            "size of an array, so it cannot vary within a batch: make one batch per value."
        )
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise RefusedValue(f"`{name}` must be an integer of at least 1, got {quote(value)}.")


def size(name: str, value: Any, each: int = 1) -> None:
    """Refuse all but the count of an array with `each` numbers per entry that fits into memory."""
    count(name, value)
    asked = 4 * int(value) * int(each)
    if asked > memory() or value > np.iinfo(np.int32).max:
        raise RefusedValue(
            f"`{name}` must be smaller, got {value}: arrays of that size take "
            f"{asked / 1e9:,.3g} GB or more, and this machine has {memory() / 1e9:,.3g} GB."
        )


def function(name: str, value: object, remedy: str = "") -> None:
    if not callable(value):
        seen, remedy = type(value).__name__, remedy or remedy_for("function", value)
        raise RefusedType(f"`{name}` must be a function, got {seen}{_then(remedy)}.")


def takes(name: str, value: Any, *arguments: str, remedy: str = "") -> None:
    """Refuse a `value` that cannot be called with these `arguments`."""
    function(name, value, remedy)
    plain = isinstance(value, FunctionType)
    call, itself = (value, ()) if plain else (type(value).__call__, (value,))
    try:
        if isinstance(call, FunctionType):
            holds = call.__closure__ or call.__defaults__ or call.__kwdefaults__
            signature = inspect.signature if holds else _signature_of  # it may hold a tracer
            signature(call).bind(*itself, *arguments)
        else:
            inspect.signature(value).bind(*arguments)
    except TypeError as error:
        wanted = ", ".join(arguments)
        more = _then(remedy or uncalled(value, ""))
        raise RefusedType(f"`{name}` must take ({wanted}): {error}{more}.") from None
    except ValueError:
        return  # functions written in C may have no signature


_signature_of = cached(inspect.signature)  # reading one takes 40 us


def instance(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        seen, remedy = seen_as(value), remedy_for(kind.__name__, value)
        raise RefusedType(f"`{name}` must be {article} {kind.__name__}, got {seen}{_then(remedy)}.")


def quote(value: object) -> str:
    """Quote a value in few words, without its address in memory."""
    text = f"{value!r:.60}"
    return seen_as(value) if " at 0x" in text or text[:1] == "<" else " ".join(text.split())


def state(value: object, kind: type, maker: str) -> None:
    """Refuse all but the state of a learner of one kind."""
    if not isinstance(value, kind):
        raise RefusedType(
            f"`state` must be that of `{maker}`, got {seen_as(value)}; give `run.state`, "
            f"or the part of it that belongs to `{maker}`."
        )


def _then(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""


def same_structure(
    name: str, value: object, other_name: str, other: object, remedy: str = _AGREE
) -> None:
    if jax.tree.structure(value) != jax.tree.structure(other):
        seen, wanted = outline(value), outline(other)
        raise RefusedType(f"{name} has structure {seen}, {other_name} has {wanted}; {remedy}.")


def same_shape(
    name: str, value: object, other_name: str, other: object, remedy: str = _AGREE
) -> None:
    """Refuse two trees that differ in structure or in the shape of a leaf."""
    same_structure(name, value, other_name, other, remedy)
    for (path, leaf), like in zip(
        jax.tree_util.tree_leaves_with_path(value), jax.tree.leaves(other), strict=True
    ):
        if np.shape(leaf) != np.shape(like):
            raise RefusedType(
                f"{name}{jax.tree_util.keystr(path)} has shape {np.shape(leaf)}, "
                f"{other_name}{jax.tree_util.keystr(path)} has {np.shape(like)}; {remedy}."
            )


def outline(tree: object) -> str:
    """The structure of a tree, with a star for each array."""
    return str(jax.tree.map(lambda _: "*", tree)).replace("'", "")


def comparator(u: Any, decision: Any) -> Any:
    """`u` in the dtype of the decision; refuses a `u` of another shape."""
    remedy = "give a comparator like the decision"
    remedy += f", as jnp.zeros({decision.shape})" if hasattr(decision, "shape") else ""
    same_shape("`u`", u, "the decision", decision, remedy)
    return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, jnp.result_type(like)), u, decision)


def _values(name: str, value: object, legal: Callable[[Any], Any], demand: str, each: bool) -> Any:
    if each:
        numbers(name, value)
    else:
        _one_number(name, value)

    def look(path, leaf):
        if isinstance(leaf, Tracer):
            return as_given(jnp.where(legal(leaf), leaf, jnp.nan), leaf)
        seen = np.asarray(leaf)
        _real(f"{name}{jax.tree_util.keystr(path)}", seen, leaf)
        if not np.all(legal(seen)):
            first = leaf if seen.ndim == 0 else seen[~legal(seen)].flat[0]
            more = " and finite" if np.isposinf(first) and demand != "must be finite" else ""
            raise RefusedValue(f"`{name}{jax.tree_util.keystr(path)}` {demand}{more}, got {first}.")
        return leaf

    return jax.tree_util.tree_map_with_path(look, value)


def _one_number(name: str, value: Any) -> None:
    odd = isinstance(value, str | bool | FunctionType)
    if odd or not jax.tree_util.all_leaves([value]):
        seen = f"a {type(value).__name__}" if dataclasses.is_dataclass(value) else f"{value!r:.60}"
        seen = seen_as(value) if isinstance(value, FunctionType) else seen
        more = _then(remedy_for("number", value))
        raise RefusedType(f"`{name}` must be a number, got {seen}{more}.")
    if np.ndim(value) > 0:
        raise RefusedType(
            f"`{name}` must be one number, got an array of shape {np.shape(value)}; "
            f"`olx.batch` makes one learner per value."
        )


def _real(name: str, seen: np.ndarray, leaf: object) -> None:
    if not (jnp.issubdtype(seen.dtype, jnp.floating) or seen.dtype.kind in "iu"):
        raise RefusedType(f"`{name}` must be a real number, got {quote(leaf)}.")


_MAKE = {  # how to make what an argument must be
    "Adversary": "take one of `olx.streams`, as `olx.streams.heaviest_expert()`",
    "Ascent": "take one of `olx.ascents`, as `olx.ascents.subgradient()`",
    "ConvexSet": "take one of `olx.convex.sets`, as `olx.convex.sets.ball(1.0)`",
    "Game": "take one of `olx.games`, as `olx.games.labels()`",
    "HingeRule": "take one of `olx.games`, as `olx.games.projected_ascent()`",
    "Learner": "make one, as `olx.linear(olx.ogd(0.1))`",
    "MirrorMap": "take one of `olx.mirrors`, as `olx.mirrors.euclidean()`",
    "Norm": "take one of `olx.convex.norms`, as `olx.convex.norms.l2()`",
    "Process": "take one of `olx.schedules` or `olx.regularizers`",
    "Rounds": "put arrays into `olx.Rounds(contexts, outcomes)`",
    "Run": "play one, as `olx.run(learner, loss, rounds, params)`",
    "ScoreLoss": "take one of `olx.losses`, or make one, as `olx.losses.ScoreLoss(value_fn=...)`",
    "Theorem": "give those of the learner, as `learner.theorems`",
}
_OPTAX = "make a learner, as `olx.interop.optax.from_optax(optax.adam, learning_rate=0.1)`"
_INSTEAD = {  # what to do with something else, by the kind wanted and the kind seen
    ("ConvexSet", "MirrorMap"): "`olx.md` and `olx.omd` take a mirror map",
    ("Learner", "ScoreLoss"): "the learner comes before the loss",
    ("Learner", "Run"): "the learner comes before the run",
    ("Learner", "Batch"): "make a batch of the whole, as "
    "`olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=etas)`",
    ("Learner", "GradientTransformation"): _OPTAX,
    ("Learner", "GradientTransformationExtraArgs"): _OPTAX,
    ("MirrorMap", "ConvexSet"): "`olx.mirrors.euclidean(domain)` takes a set",
    ("MirrorMap", "Process"): "`olx.ftrl` takes what changes with time",
    ("function", "NoneType"): "give a function",
    ("function", "Rounds"): "the loss comes before the rounds",
    ("function", "str"): "give the function itself, not its name",
    ("number", "NoneType"): "give a number, as 0.1",
    ("number", "Process"): "`olx.md` and `olx.ogd` take a step size that changes with time",
    ("number", "MirrorMap"): "the step size comes first, as in `olx.omd(eta, mirror)`",
    ("number", "function"): "a step size that changes with time is one of `olx.schedules`, as "
    "`olx.schedules.decay(0.5)`",
    ("number", "list"): "`olx.batch` makes one learner per value",
    ("number", "tuple"): "`olx.batch` makes one learner per value",
    ("number", "str"): "give it without quotes",
    ("number", "bool"): "give 1.0 or 0.0",
    ("Run", "Learner"): "the learner comes first",
    ("Theorem", "tuple"): "make one of the functions, as "
    "`olx.Theorem(name, source, init, add, sides)`",
    ("Run", "ScoreLoss"): "`olx.certify(learner, loss, rounds, params, u)` plays the rounds itself",
    ("Theorem", "str"): "give theorems themselves, as `theorems=learner.theorems`",
}


def remedy_for(wanted: str, value: object) -> str:
    """What to do with a `value` that is not of the kind `wanted`; empty if that is not known."""
    kind = type(value).__name__
    return uncalled(value, wanted) or _INSTEAD.get((wanted, kind)) or _MAKE.get(wanted, "")


def uncalled(value: object, wanted: str) -> str:
    """What to do with a factory that was given in place of what it makes, which is `wanted`."""
    if not isinstance(value, FunctionType) or not value.__module__.startswith("olx."):
        return ""
    made = getattr(value.__annotations__.get("return"), "__name__", "")
    fits = made == wanted or (wanted == "number" and made == "Process")
    fits = fits or (wanted == "" and made in ("ScoreLoss", "PointLoss", "Keep"))
    return f"call it, as in `{value.__name__}(...)`" if fits else ""


def seen_as(value: object) -> str:
    """The kind of a value, and the name of a function or a class."""
    named = isinstance(value, FunctionType | type)
    return type(value).__name__ + (f" `{value.__name__}`" if named else "")
