"""What to do when an argument is not what it must be."""

from types import FunctionType
from typing import Any

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
    ("Run", "ScoreLoss"): "`olx.certify(learner, loss, rounds, params, u)` plays the rounds itself",
    ("Theorem", "str"): "give theorems themselves, as `theorems=learner.theorems`",
}


def remedy_for(wanted: str, value: Any) -> str:
    """What to do with a `value` that is not of the kind `wanted`; empty if that is not known."""
    kind = type(value).__name__
    return uncalled(value, wanted) or _INSTEAD.get((wanted, kind)) or _MAKE.get(wanted, "")


def uncalled(value: Any, wanted: str) -> str:
    """What to do with a factory that was given in place of what it makes, which is `wanted`."""
    if not isinstance(value, FunctionType) or not value.__module__.startswith("olx."):
        return ""
    made = getattr(value.__annotations__.get("return"), "__name__", "")
    fits = made == wanted or (wanted == "number" and made == "Process")
    fits = fits or (wanted == "" and made in ("ScoreLoss", "PointLoss", "Keep"))
    return f"call it, as in `{value.__name__}(...)`" if fits else ""


def seen_as(value: Any) -> str:
    """The kind of a value, and the name of a function or a class."""
    named = isinstance(value, FunctionType | type)
    return type(value).__name__ + (f" `{value.__name__}`" if named else "")
