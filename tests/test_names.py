"""Factories name their arguments alike and take them in one order."""

import inspect

import pytest

import olx
from olx.core import Learner
from olx.theorem import Theorem

ROOMS = (
    olx,
    olx.classification,
    olx.first_order,
    olx.second_order,
    olx.boosting,
    olx.structured,
    olx.multiclass,
    olx.experts,
    olx.meta,
    olx.interop.optax,
    olx.mirrors,
    olx.regularizers,
    olx.schedules,
    olx.ascents,
    olx.games,
)
FACTORIES = {
    f"{room.__name__}.{name}": thing
    for room in ROOMS
    for name, thing in vars(room).items()
    if inspect.isfunction(thing) and not name.startswith("_")
}
MADE_OF_TWO = {  # of several learners with parts of their own
    "olx.meta.mix",
    "olx.boosting.symmetrized",
    "olx.meta.direction_and_magnitude",
}


def makes_theorem(thing):
    made = inspect.isfunction(thing) and inspect.get_annotations(thing).get("return") is Theorem
    return made or isinstance(thing, Theorem)


def test_public_theorems_are_in_one_name_space():
    public = {name: one for name, one in vars(olx.theorems).items() if not name.startswith("_")}
    assert len(public) > 40
    assert all(map(makes_theorem, public.values()))
    assert not [one for room in ROOMS for one in list(vars(room).values()) if makes_theorem(one)]


def learners(factory):
    hints = inspect.get_annotations(factory)
    wrapped = [name for name, hint in hints.items() if hint is Learner and name != "return"]
    return wrapped if hints.get("return") is Learner else []


def test_there_are_factories_to_look_at():
    assert len(FACTORIES) > 100
    assert sum(bool(learners(factory)) for factory in FACTORIES.values()) > 12


@pytest.mark.parametrize("name", [name for name in FACTORIES if name not in MADE_OF_TWO])
def test_arguments_are_named_and_ordered_alike(name):
    parameters = inspect.signature(FACTORIES[name]).parameters
    order = list(parameters)
    if wrapped := learners(FACTORIES[name]):
        assert wrapped == order[:1] == ["inner"]
    if "eta" in order:  # only counts, such as that of copies, may come before it
        before = set(order[: order.index("eta")]) - set(wrapped)
        assert {parameters[name].annotation for name in before} <= {int}
    if "key" in order:
        assert order[-1] == "key"
    for word in ("low", "high"):
        if "prior" in order and word in order:
            assert parameters[word].kind is inspect.Parameter.KEYWORD_ONLY


def test_facts_about_a_mirror_map_are_given_by_name():
    flat = olx.mirrors.euclidean()
    with pytest.raises(TypeError, match="positional"):
        olx.MirrorMap(flat.potential, flat.conjugate, flat.norm)


def test_the_range_of_losses_is_said_once_for_all_experts():
    assert "\nlow, high: " in olx.experts.__doc__
    takes = [f for f in vars(olx.experts).values() if inspect.isfunction(f) and f.__doc__]
    takes = [f for f in takes if {"prior", "low", "high"} <= set(inspect.signature(f).parameters)]
    assert len(takes) > 10
    assert [f.__name__ for f in takes if "\nlow, high:" in inspect.getdoc(f)] == []
