"""Files of columns: their formats, their categories and gaps, and the record for new files."""

import datetime
import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import olx.lab
from olx import streams
from olx.lab.config import ConfigError, read
from olx.lab.data import Table, csv, digest, load
from olx.lab.data.table import outcomes_from

TEXT = """age,city,zip,buys
20.5,Oslo,0123,no
,Bonn,0456,yes
40,?,0123,no
41,Oslo,0456,yes
"""
OPTIONS = {"fill": "mean", "categories": ["zip"], "target": "buys"}
MEAN = (20.5 + 40 + 41) / 3
WANTED = [
    [20.5, 0, 1, 1, 0, 1],
    [MEAN, 1, 0, 0, 1, 1],
    [40, 0, 1, 1, 0, 1],
    [41, 0, 1, 0, 1, 1],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same table in all formats."""
    place = tmp_path_factory.mktemp("tables")
    (place / "a.csv").write_text(TEXT)
    (place / "semicolons.csv").write_text(TEXT.replace(",", ";").replace(".", ","))
    (place / "a.tsv").write_text(TEXT.replace(",", "\t"))
    (place / "quoted.csv").write_text(TEXT.replace("Oslo", '"Oslo"').replace("\n", "\r\n"))
    (place / "a.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    (place / "a.csv.zst").write_bytes(pa.compress(TEXT.encode(), "zstd", asbytes=True))
    frame = pd.read_csv(place / "a.csv", dtype={"zip": str}, na_values=["?"])
    frame.to_parquet(place / "a.parquet")
    table = pa.Table.from_pandas(frame)
    pyarrow.feather.write_feather(table, place / "a.feather")
    with pa.ipc.new_stream(str(place / "a.arrow"), table.schema) as stream:
        stream.write_table(table)
    return place


FORMATS = ["a.csv", "semicolons.csv", "a.tsv", "quoted.csv", "a.csv.gz", "a.csv.zst"]


@pytest.mark.parametrize("name", [*FORMATS, "a.parquet", "a.feather", "a.arrow"])
def test_all_formats_give_the_same_rows(name, folder):
    data = load(str(folder / name), **OPTIONS)
    np.testing.assert_allclose(data.context, WANTED)
    assert data.outcome.tolist() == [-1, 1, -1, 1]
    names = ["age", "city=Bonn", "city=Oslo", "zip=0123", "zip=0456", "intercept"]
    assert data.table.names == names


DAYS = [datetime.date(2026, 1, 1 + i % 3) for i in range(24)]
MIXED = pd.DataFrame(
    {
        "number": np.where(np.arange(24) % 5 == 2, np.nan, np.arange(24) / 7),
        "count": np.arange(24) % 4,
        "flag": np.arange(24) % 3 == 0,
        "gap flag": [None if i % 6 == 1 else i % 2 == 0 for i in range(24)],
        "city": [(None, "", "Oslo", "Bonn", " Oslo ")[i % 5] for i in range(24)],
        "code": [("NA", "a", "b", "?", "n/a", "a")[i % 6] for i in range(24)],
        "month": [1 + i % 12 for i in range(24)],
        "gap month": [None if i % 8 == 3 else 1 + i % 12 for i in range(24)],
        "day": pd.to_datetime(DAYS),
        "buys": [("no", "yes ")[i % 7 < 3] for i in range(24)],
    }
)
MIXED_OPTIONS = {
    "fill": "mean",
    "categories": ["month", "gap month", "day"],
    "target": "buys",
    "scale": "standard",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A table of words, gaps, dates and Booleans, in each format and as each kind of frame."""
    place = tmp_path_factory.mktemp("mixed")
    table = pa.Table.from_pandas(MIXED)
    MIXED.to_csv(place / "a.csv", index=False)
    MIXED.to_parquet(place / "a.parquet")
    pyarrow.feather.write_feather(table, place / "a.feather")
    files = {name: str(place / name) for name in ("a.csv", "a.parquet", "a.feather")}
    polars = pl.from_pandas(MIXED).with_columns(day=pl.Series(DAYS))
    return {**files, "pandas": MIXED, "polars": polars, "pyarrow": table}


def test_words_gaps_dates_and_booleans_mean_the_same_everywhere(mixed):
    loaded = {
        name: load(given if isinstance(given, str) else name, thing=thing, **MIXED_OPTIONS)
        for name, given in mixed.items()
        for thing in [None if isinstance(given, str) else given]
    }
    first = loaded["a.csv"]
    assert [name for name in first.table.names if name.startswith(("city", "code", "day"))] == [
        *("city=Bonn", "city=Oslo", "code=a", "code=b"),
        *("day=2026-01-01", "day=2026-01-02", "day=2026-01-03"),
    ]
    for name, data in loaded.items():
        assert data.table == first.table, name
        assert digest(data) == digest(first), name
        for given in mixed.values():  # `olx predict` on a file of another kind
            np.testing.assert_array_equal(data.table.apply(given), first.context, name)
    options = {key: MIXED_OPTIONS[key] for key in ("fill", "categories", "target")}
    for name, given in mixed.items():
        if not isinstance(given, str):
            rounds, columns = streams.from_frame(given, **options)
            assert [*columns.names, "intercept"] == first.table.names, name
            np.testing.assert_array_equal(columns.apply(given), first.table.columns.apply(MIXED))
            assert rounds.outcome.tolist() == first.outcome.tolist()


def test_a_table_gives_the_same_losses_in_the_lab_everywhere(mixed):
    given = {name: {"name": thing, **MIXED_OPTIONS} for name, thing in mixed.items()}
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.03, 0.1]}}
    result = olx.lab.compare({"ogd": learner}, given, models=False)
    losses = {name: [] for name in mixed}
    for row in result.configurations.to_pylist():
        losses[row["dataset"]].append(row["total"])
    assert len(losses["a.csv"]) == 3  # two of the grid, and the baseline
    assert all(each == losses["a.csv"] for each in losses.values())


def test_dates_are_refused_everywhere_unless_they_are_words(mixed, tmp_path):
    words = MIXED.assign(day=[str(day) for day in DAYS])
    words.to_parquet(tmp_path / "words.parquet")
    objects = MIXED.assign(day=DAYS)
    options = {**MIXED_OPTIONS, "categories": ["month", "gap month"]}
    for given in [*mixed.values(), str(tmp_path / "words.parquet"), objects]:
        name, thing = (given, None) if isinstance(given, str) else ("frame", given)
        with pytest.raises(ValueError, match=r"column 'day' holds (Date|dates, such as)"):
            load(name, thing=thing, **options)
    assert digest(load("frame", thing=objects, **MIXED_OPTIONS)) == digest(
        load(str(tmp_path / "words.parquet"), **MIXED_OPTIONS)
    )


def test_new_files_become_rows_in_the_same_way(folder, tmp_path):
    data = load(str(folder / "a.csv"), **OPTIONS, scale="standard")
    table = Table.from_json(data.table.to_json())
    assert table == data.table
    np.testing.assert_allclose(table.apply(folder / "a.parquet"), data.context)
    new = tmp_path / "new.csv"
    new.write_text("zip,age,city\n0456,41,Oslo\n0123,,Oslo\n")  # no zip is a word to the eye
    np.testing.assert_allclose(table.apply(new), [data.context[3], _at(data, MEAN)])
    np.testing.assert_allclose(table.apply(pd.read_csv(new, dtype={"zip": str})), table.apply(new))
    new.write_text("zip,age,city\n0456,41,Paris\n")
    with pytest.raises(ValueError, match=r"new\.csv: column 'city' holds 'Paris' in row 0"):
        table.apply(new)
    assert table.apply(new, allow_unknown=True).shape == (1, 6)
    with pytest.raises(ValueError, match="are found by name; give a table"):
        table.apply(np.zeros((1, 3)))
    assert table.predictions(np.array([-0.5, 2.0])).tolist() == ["no", "yes"]


def _at(data, age):
    """The third row, which differs from the second new one by its age alone."""
    row = data.context[2].copy()
    row[0] = (age - data.table.scale.shift[0]) / data.table.scale.size[0]
    return row


def test_rows_of_numbers_have_a_record_too(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "a.npz", X=x, y=[1.0, 2.0, 3.0, 6.0])
    options = {"task": "regression", "without": [1], "scale": "maximum", "center_target": True}
    data = load(str(tmp_path / "a.npz"), **options)
    table = Table.from_json(data.table.to_json())
    np.testing.assert_allclose(table.apply(x), data.context)
    np.testing.assert_allclose(table.predictions(data.outcome), [1, 2, 3, 6])
    with pytest.raises(ValueError, match="they need 3 features"):
        table.apply(x[:, :2])
    iris = load("sklearn:iris").table
    assert iris.predictions(np.eye(3)).tolist() == [0, 1, 2]
    two = load(str(tmp_path / "a.npz"), binarize=[1, 6]).table
    assert two.predictions(np.array([-1.0, 1.0])).tolist() == ["not 1 or 6", "1 or 6"]
    assert outcomes_from("new", two.labels, [1, 2.0, 6.0], [1, 6]).tolist() == [1, -1, 1]
    with pytest.raises(ValueError, match="new holds the label '6' in row 1, and labels are numb"):
        outcomes_from("new", two.labels, [1, "6"], [1, 6])
    (tmp_path / "b.csv").write_text("5,3,a\n6,2,b\n")
    bare = load(str(tmp_path / "b.csv")).table
    (tmp_path / "c.csv").write_text("5,3\n")  # no header, no labels
    assert bare.apply(tmp_path / "c.csv").tolist() == [[5, 3, 1]]


def test_an_intercept_is_there_where_it_can_change_a_prediction(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((4, 2)), y=[0, 1, 1, 0], qid=[0, 0, 1, 1])
    width = lambda **options: load(str(tmp_path / "a.npz"), **options).width
    assert [width(), width(bias=True), width(bias=False)] == [3, 3, 2]
    assert width(task="instance_ranking") == 2
    assert width(task="experts") == 2
    with pytest.raises(ValueError, match="experts data have no features; leave out bias"):
        width(task="experts", bias=True)
    stream = load("stream:linear_regression", arguments={"rounds": 4, "features": 2})
    assert (stream.width, stream.table.names) == (2, ["x0", "x1"])


def test_labels_may_be_words_booleans_or_zero_and_one(tmp_path):
    for low, high in (("no", "yes"), ("false", "true"), ("0", "1"), ("False", "True")):
        (tmp_path / "a.csv").write_text(f"x,y\n1,{low}\n2,{high}\n3,{high}\n")
        data = load(str(tmp_path / "a.csv"))
        assert data.outcome.tolist() == [-1, 1, 1]
        assert [str(label).lower() for label in data.table.labels.classes] == [
            low.lower(),
            high.lower(),
        ]


ODD = {
    "two headers": ("1,two,3\n4,5,6\n", "column '1' holds 'two' in row 0, where other rows hold"),
    "a header of numbers": ("2019,2020,y\n5,3,1\n", "give header = true if row 0 names"),
    "no encoding": (b"a,b\n1,2\n", "there is no encoding 'utf-99'"),
    "a group that is the labels": ("a,b\n1,2\n", "'b' is both the labels and the group"),
    "a group that is not there": ("a,b,c\n1,2,3\n", "has no column 'd'; it has a, b, c"),
    "a gap in the group": ("a,b,c\n1,,3\n2,1,4\n", "the group in column 'b' is missing in 1 of"),
    "a name twice": ("a,a\n1,2\n", "has two columns 'a'; rename one of them"),
    "no such column": ("a,b,c\n1,2,3\n", "has no column 'd' to leave out"),
}
SETTINGS = {
    "no encoding": {"encoding": "utf-99"},
    "no such column": {"without": ["d"]},
    "a group that is the labels": {"group": "b"},
    "a group that is not there": {"group": "d"},
    "a gap in the group": {"group": 1},
}


@pytest.mark.parametrize("case", ODD)
def test_a_file_that_could_be_misread_is_refused(case, tmp_path):
    text, said = ODD[case]
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=re.escape(said)):
        load(str(tmp_path / "a.csv"), task="multiclass", **SETTINGS.get(case, {}))


def test_what_is_asked_for_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes("2019:2020:y\n5:3:caf\xe9\n6:4:b\n".encode("latin-1"))
    data = load(str(tmp_path / "a.csv"), encoding="latin-1", separator=":", header=True)
    assert data.table.labels.classes == ("b", "café")
    assert data.table.names == ["2019", "2020", "intercept"]
    assert load(str(tmp_path / "a.csv"), encoding="latin-1", separator=":", header=True,
                without=["2019"]).context.tolist() == [[3, 1], [4, 1]]  # fmt: skip


@pytest.mark.parametrize("rows", [2999, 3000])
@pytest.mark.parametrize("cell", ["2.5", "", "word", '"2.5"', '"2.5\n"', '"2,5"', '"', "\ufeff2.5"])
def test_a_file_means_the_same_in_one_part_and_in_several(cell, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_SAMPLE", 1000)
    monkeypatch.setattr(csv, "_BLOCK", 2048)
    lines = [f"{i % 10},{i % 7},{i % 3}" for i in range(rows)]
    lines[1500] = f"{cell},1,2"  # the file is cut before or in this cell
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(lines))

    def table(parts: int) -> pa.Table | str:
        monkeypatch.setattr(pa, "cpu_count", lambda: parts)
        assert (len(csv._parts(path.read_bytes())) > 1) == (parts > 1)
        try:
            return csv.read_csv(path)[0]
        except ValueError as error:
            return str(error)

    assert table(1) == table(8)
    if cell == "2.5":
        assert np.array(table(8)).tolist() == [
            [float(c) for c in line.split(",")] for line in lines
        ]


def test_paths_are_relative_to_the_config(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    for place in (tmp_path / "sub" / "mine.csv", tmp_path / "here.csv"):
        place.write_text("1,2,1\n2,3,-1\n")
    config = tmp_path / "sub" / "c.toml"
    monkeypatch.chdir(tmp_path)
    given = lambda name: config.write_text(
        f'data_folder = "sets"\n[[data]]\nname = "{name}"\n[[learners]]\nname = "perceptron"\n'
    )
    given("mine.csv")
    experiment = read(config)
    assert (experiment.data[0].name, experiment.data[0].label) == (
        str(tmp_path / "sub" / "mine.csv"),
        "mine.csv",
    )
    assert experiment.data_folder == str(tmp_path / "sub" / "sets")
    given("here.csv")
    with pytest.raises(ConfigError, match=rf"not in {tmp_path}/sub, .*but in {tmp_path}, the work"):
        read(config)
    given("../here.csv")
    assert read(config).data[0].name == str(tmp_path / "here.csv")
