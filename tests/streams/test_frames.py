"""Tables of several libraries, dictionaries, examples and loaders as streams. Nothing is played."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from olx import streams
from olx.streams import Columns, Features, from_dicts, from_examples, from_frame, from_loader
from olx.streams.scales import Scale, fit_scale, uneven_spreads

PEOPLE = {
    "age": [20, 30, 40, 50],
    "city": ["Oslo", "Bonn", "Oslo", "Rome"],
    "member": [True, False, True, True],
    "buys": ["no", "yes", "no", "yes"],
}
GAPS = {**PEOPLE, "age": [20.0, None, 40.0, None], "city": ["Oslo", None, "Oslo", "Rome"]}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
library = pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)


@library
def test_all_libraries_give_the_same_stream(make):
    rounds, columns = from_frame(make(PEOPLE), "buys")
    assert columns.names == ["age", "city=Bonn", "city=Oslo", "city=Rome", "member"]
    assert rounds.context.tolist() == [
        [20, 0, 1, 0, 1],
        [30, 1, 0, 0, 0],
        [40, 0, 1, 0, 1],
        [50, 0, 0, 1, 1],
    ]
    assert rounds.outcome.tolist() == [-1, 1, -1, 1]


@library
def test_new_rows_get_the_columns_of_the_first(make):
    """Also after a way through text, in another order, and without the target."""
    columns = Columns.from_json(from_frame(make(PEOPLE), "buys").columns.to_json())
    new = make({"member": [False], "city": ["Rome"], "age": [33], "more": [1]})
    assert columns.apply(new).tolist() == [[33, 0, 0, 1, 0]]
    strange = make({"member": [False], "city": ["Paris"], "age": [33]})
    with pytest.raises(ValueError, match=r"'city' holds 'Paris' in row 0.*Bonn, Oslo, Rome"):
        columns.apply(strange)
    assert columns.apply(strange, allow_unknown=True).tolist() == [[33, 0, 0, 0, 0]]
    with pytest.raises(ValueError, match="no column 'city'; it has age"):
        columns.apply(make({"age": [33]}))


@library
def test_missing_values_are_refused_or_filled(make):
    said = r"missing in column 'age' \(2 of 4 rows, the first is row 1\), 'city' \(1 of 4 rows"
    with pytest.raises(ValueError, match=said):
        from_frame(make(GAPS), "buys")
    rounds, columns = from_frame(make(GAPS), "buys", fill="mean")
    assert rounds.context[1].tolist() == [30, 1, 0, 0]
    assert columns.apply(make({"age": [None], "city": [None], "member": [True]})).tolist() == [
        [30, 1, 0, 1]
    ]
    rounds, columns = from_frame(make(GAPS), "buys", fill={"age": 0, "city": "none"})
    assert columns.names == ["age", "city=Oslo", "city=Rome", "city=none", "member"]
    assert rounds.context[1].tolist() == [0, 0, 0, 1, 0]


def test_targets_are_numbers_signs_or_classes():
    of = lambda values, **more: from_frame(pa.table({"a": [1, 2, 3], "y": values}), "y", **more)
    assert of([0.5, 1.5, 2.5]).rounds.outcome.tolist() == [0.5, 1.5, 2.5]
    assert of([True, False, True]).rounds.outcome.tolist() == [1, -1, 1]
    three = of(["b", "a", "c"])
    assert three.rounds.outcome.tolist() == [1, 0, 2]
    assert three.rounds.outcome.dtype.kind == "i"
    assert of([7, 8, 9], positive=8).rounds.outcome.tolist() == [-1, 1, -1]
    assert of([7, 9, 9], labels=True).rounds.outcome.tolist() == [0, 1, 1]
    assert of([7, 9, 9], labels=True).columns.outcome(pa.table({"y": [9]})).tolist() == [1]


REFUSED = {
    "an array": (np.zeros((2, 2)), {}, "ndarray; give a table .*from_arrays"),
    "a lazy frame": (pl.LazyFrame(PEOPLE), {}, "LazyFrame.*collect"),
    "no such target": (pa.table(PEOPLE), {"target": "bys"}, "`target` names the column 'bys'"),
    "no such feature": (pa.table(PEOPLE), {"features": ["agee"]}, "`features` names .*'agee'"),
    "the target as a feature": (pa.table(PEOPLE), {"features": ["buys"]}, "is among the features"),
    "dates": (
        pa.table({**PEOPLE, "day": pd.date_range("2026", periods=4)}),
        {},
        "'day' holds Date",
    ),
    "nothing": (pa.table({**PEOPLE, "a": pa.nulls(4)}), {}, "'a' holds no value; leave it out"),
    "one label": (pa.table({"a": [1], "y": ["b"]}), {"target": "y"}, "holds b alone"),
    "a strange fill": (pa.table(GAPS), {"fill": "mode"}, 'fill must be "mean", "median", a number'),
    "a fill of words by a number": (pa.table(GAPS), {"fill": 0.0}, "missing in column 'city'"),
    "words by the thousand": (
        pa.table({"a": [str(i) for i in range(1001)], "buys": np.arange(1001)}),
        {},
        "'a' holds 1001 different words.*from_dicts",
    ),
    "mixed cells": (
        pd.DataFrame({"a": ["x", 1], "buys": [1, 2]}),
        {},
        "words and the int 1 in row 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_used_is_refused(case):
    frame, options, said = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        from_frame(frame, **{"target": "buys", **options})
    assert str(caught.value).startswith("from_frame: ")


def test_features_of_dictionaries_have_a_column_each_or_share_one():
    grows, hashed = Features(3), Features(3, hashed=True)
    examples = [({"a": 2, "b": "x"}, 1.0), ({}, -1.0), ({"c": True}, 1.0)]
    rounds = list(from_dicts(examples, grows, size=2))
    assert [piece.context.toarray().tolist() for piece in rounds] == [
        [[2, 1, 0], [0, 0, 0]],
        [[0, 0, 1]],
    ]
    with pytest.raises(ValueError, match=r"'d' is one more than the 3 columns; .*hashed=True"):
        grows.row({"d": 1.0})
    rows = np.array([hashed.row({name: 1.0}) for name in "abcdefgh"])
    assert (np.abs(rows).sum(axis=1) == 1).all()
    assert {-1, 1} <= set(rows.ravel().tolist())
    again = Features.from_json(hashed.to_json())
    np.testing.assert_array_equal(again.row({"a": 1, "new": 2}), hashed.row({"a": 1, "new": 2}))
    with pytest.raises(ValueError, match="'a' is nan; give a finite number or a word"):
        grows.row({"a": np.nan})
    with pytest.raises(TypeError, match="an example is a dictionary, got a list"):
        list(from_dicts([([1.0], 1.0)], grows))


class Tensor:
    """A tensor as PyTorch has it: on a device, with a gradient, not an array itself."""

    def __init__(self, array, ready=False):
        self.array, self.ready = array, ready

    def detach(self):
        return Tensor(self.array)

    def cpu(self):
        return Tensor(self.array, ready=True)

    def numpy(self):
        assert self.ready
        return self.array


def test_batches_of_a_loader_are_pieces_of_a_stream():
    x, y = np.arange(6.0).reshape(3, 2), np.array([1, 0, 2])
    loader = [(Tensor(x), Tensor(y)), (Tensor(x[:1]), Tensor(y[:1]))]
    pieces = list(from_loader(loader, epochs=2))
    assert [piece.context.tolist() for piece in pieces] == [x.tolist(), x[:1].tolist()] * 2
    assert pieces[0].outcome.tolist() == [1, 0, 2]
    assert pieces[0].outcome.dtype.kind == "i"
    for bad, said in {
        "a dictionary": ([{"x": x, "y": y}], "batch 0 is a dict of 2; give \\(x, y\\)"),
        "a column": ([(x, y[:, None])], "shape \\(3, 1\\); give one number per round"),
        "nothing": ([], "no batch in epoch 0"),
    }.values():
        with pytest.raises((TypeError, ValueError), match=said):
            list(from_loader(bad))
    with pytest.raises(TypeError, match="can be read once"):
        list(from_loader(iter(loader), epochs=2))


def test_examples_are_stacked():
    (first, second) = from_examples((([i, 1], i, 0.5) for i in range(3)), size=2)
    assert first.context.tolist() == [[0, 1], [1, 1]]
    assert second.outcome.tolist() == [2]
    assert second.weight.tolist() == [0.5]
    with pytest.raises(TypeError, match="example 1 is a int; give pairs"):
        list(from_examples([([1], 1), 3]))
    with pytest.raises(TypeError, match=re.escape("shape (2,), that of the first (1,)")):
        list(from_examples([([1], 1), ([1, 2], 1)]))


def test_an_intercept_is_a_last_feature_of_dense_and_sparse_rows():
    (rounds,) = from_dicts([({"a": 2.0}, 1.0), ({}, 1.0)], Features(2))
    sparse = streams.with_intercept(rounds).context.toarray()
    assert sparse.tolist() == [[2, 0, 1], [0, 0, 1]]
    json.dumps(
        from_frame(pd.DataFrame({"a": pd.Categorical([3, 4]), "y": [1, 2]}), "y")[1].to_json()
    )


@pytest.mark.parametrize("kind", ["rows", "standard", "maximum"])
def test_a_scale_is_kept_for_new_rows(kind):
    table = pa.table({"a": [1.0, 2.0, 6.0], "b": [3000.0, -4000.0, 0.0], "y": [1.0, 2.0, 3.0]})
    x = np.array([[1.0, 3000.0], [2.0, -4000.0], [6.0, 0.0]])
    wanted = {
        "rows": x / np.linalg.norm(x, axis=1, keepdims=True),
        "standard": (x - x.mean(0)) / x.std(0),
        "maximum": x / [6.0, 4000.0],
    }[kind]
    rounds, columns = from_frame(table, "y", scale=kind)
    np.testing.assert_allclose(rounds.context, wanted, rtol=1e-6)
    kept = Columns.from_json(columns.to_json())
    np.testing.assert_allclose(kept.apply(table.slice(1, 1)), wanted[1:2])
    with pytest.warns(UserWarning, match=r"the spread of 'b' is 1e\+03 times that of 'a'"):
        from_frame(table, "y")
    with pytest.raises(ValueError, match="scale must be one of none, rows"):
        from_frame(table, "y", scale="unit")


@pytest.mark.parametrize("rows", [1, 2048, 5000])
def test_the_spread_of_a_long_column_is_that_of_all_its_rows(rows):
    x = np.random.default_rng(0).normal(size=(rows, 2)) * [1.0, 900.0] + 1e4
    x[2048:, 1] *= 40.0  # later rows differ
    ratio = x[:, 1].std() / (x[:, 0].std() or 1.0)
    said = f"the spread of 'b' is {ratio:.1g} times that of 'a'"
    assert uneven_spreads(["a", "b"], x) == (said if ratio > 1000 else "")
    if ratio > 1000:
        table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "t": x[:, 0]})
        with pytest.warns(UserWarning, match=re.escape(said)):
            from_frame(table, "t")


def test_a_number_may_spread_far_more_than_words():
    table = pd.DataFrame({"w": ["x", "y"] * 20, "a": np.linspace(0, 9e3, 40), "t": [1.0] * 40})
    with pytest.warns(UserWarning, match=r"'a' is 5e\+03 times that of 'w'"):
        from_frame(table, "t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_frame(table.assign(w=["x"] + ["y"] * 39, a=table["a"] / 10), "t")  # a rare word


def test_one_message_says_what_is_wrong_with_all_columns():
    empty = {f"e{i}": pa.nulls(2) for i in range(10)}
    table = pa.table({"a": ["$1", "$2"], **empty, "gap": [1.0, None], "y": [0.0, 1.0]})
    says = r"'a' holds numbers with other signs.* Also: column 'e8' holds no value.*And 2 more\."
    with pytest.raises(ValueError, match=says) as caught:
        from_frame(table, "y")
    assert str(caught.value).startswith("from_frame: ")
    both = table.select(["a", "gap", "y"])
    with pytest.raises(ValueError, match=r"'a' holds numbers.* Also: values are missing in.*'gap'"):
        from_frame(both, "y")


def test_a_constant_column_is_not_divided_by_the_rounding_of_its_mean():
    table = {"a": np.full(1000, 0.1), "b": np.arange(1000.0), "y": np.arange(1000.0)}
    rounds, columns = from_frame(pa.table(table), "y", scale="standard")
    assert np.all(np.asarray(rounds.context)[:, 0] == 0)
    new = columns.apply(pa.table({"a": [0.2], "b": [0.0]}))
    np.testing.assert_allclose(new[0, 0], 0.1)


def test_scales_of_numbers_whose_squares_leave_the_floats():
    x = np.array([[1e200, -1e200], [3e-300, 4e-300], [5e-324, 0.0], [0.0, 0.0]])
    for rows in (x, scipy.sparse.csr_array(x)):
        found = Scale("rows").apply(rows)
        found = found if rows is x else found.toarray()
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0])
    with pytest.raises(ValueError, match=r"feature 0 spreads past all floats, up to 1e\+200"):
        fit_scale(x, "standard")


def test_times_with_an_offset_are_refused():
    times = pa.table({"at": ["10:00", "11:30"], "y": [0.0, 1.0]})
    columns = from_frame(times, target="y", dates="parts").columns
    assert columns.names == ["at.hour.sin", "at.hour.cos"]
    with pytest.raises(ValueError, match=r"holds the time 10:00:00\+02:00 with an offset in row 0"):
        columns.apply(pa.table({"at": ["10:00+02:00"]}))
