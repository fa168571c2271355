"""An error names the public function that the user called."""

import inspect
import pickle
import sys
import timeit
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest

from olx._refusal import (
    Refusal,
    RefusedFile,
    RefusedImport,
    RefusedLock,
    RefusedType,
    RefusedValue,
    in_words,
    own_name,
    public,
    public_as,
    public_methods,
)


@public
def inner(x: float, *, fail: bool = True) -> float:
    """The doc string."""
    if fail:
        raise RefusedValue(f"`x` must be positive, got {x}.")
    return x


@public
def outer(x):
    return inner(x)


@public_as("family.other")
def other(x):
    return inner(x)


@public
def calls(make):
    with own_name():
        return make(-1)


@public
def counted(n):
    yield 1
    yield inner(n)


@own_name("rule")
def of_a_rule():
    raise RefusedType("`row` is short.")


@public
def play():
    return of_a_rule()


@public
def again(pickled):
    raise pickle.loads(pickled)


@own_name("a.csv")
def in_a_file():
    return inner(-1)


class Table:
    @public
    def read(self):
        raise RefusedType("no table.")


@public_methods
class Model:
    def fit(self):
        return self._fit()

    def _fit(self):
        return inner(-1)


def said(call, *args):
    with pytest.raises(Refusal) as refusal:
        call(*args)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: inner(-1), "inner"),
        (lambda: outer(-1), "outer"),
        (lambda: other(-1), "family.other"),
        (lambda: calls(inner), "inner"),
        (lambda: calls(outer), "outer"),
        (lambda: calls(lambda x: calls(outer)), "outer"),
        (lambda: list(counted(-1)), "counted"),
        (lambda: calls(lambda x: in_a_file()), "a.csv"),
        (lambda: Model().fit(), "Model"),
        (lambda: next(ThreadPoolExecutor(1).map(outer, [-1])), "outer"),
        (lambda: jax.jit(outer, static_argnums=0)(-1), "outer"),
    ],
)
def test_the_outermost_public_function_is_named_once(call, name):
    assert said(call) == f"{name}: `x` must be positive, got -1."


def test_a_rule_keeps_its_own_name_and_a_method_has_the_name_of_its_class():
    assert said(play) == "rule: `row` is short."
    assert said(Table().read) == "Table.read: no table."


def test_an_error_is_a_type_or_value_error_that_can_be_raised_twice_and_pickled():
    with pytest.raises(ValueError, match=r"^outer: `x`") as first:
        outer(-1)

    assert said(again, pickle.dumps(first.value)) == "again: `x` must be positive, got -1."
    with pytest.raises(TypeError, match=r"^rule: ") as kept:
        play()
    assert str(pickle.loads(pickle.dumps(kept.value))) == "rule: `row` is short."
    assert str(RefusedType("no name yet.")) == "no name yet."
    assert in_words(first.value) == "ValueError: outer: `x` must be positive, got -1."


@pytest.mark.parametrize("kind", [RefusedFile, RefusedImport, RefusedLock])
def test_errors_of_files_and_packages_are_named_too(kind):
    @public_as("save")
    def save():
        raise kind("no room.")

    with pytest.raises(kind.__mro__[2]) as refusal:
        save()
    assert str(pickle.loads(pickle.dumps(refusal.value))) == "save: no room."


def test_a_public_function_looks_like_itself_and_costs_little():
    assert str(inspect.signature(inner)) == "(x: float, *, fail: bool = True) -> float"
    assert (inner.__name__, inner.__doc__) == ("inner", "The doc string.")
    assert pickle.loads(pickle.dumps(inner)) is inner
    assert inspect.isgeneratorfunction(counted)

    plain = inspect.unwrap(inner)
    cost = lambda f: min(timeit.repeat(lambda: f(1.0, fail=False), number=20_000, repeat=5))
    more = (cost(inner) - cost(plain)) / 20_000
    assert sys.gettrace() is not None or more < 2e-6
