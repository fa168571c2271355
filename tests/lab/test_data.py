"""Data sets: where they come from, what is done to them, and what is refused."""

import bz2
import datetime
import functools
import gzip
import hashlib
import http.server
import io
import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from stored import FOLDER, needs

from olx.lab.data import catalogue, digest, sources
from olx.lab.data import load as load_with_intercept
from olx.lab.data.column_notes import Note, as_lines
from olx.lab.data.table import Table, ids_of, outcomes_of
from olx.lab.tasks.task import BINARY
from olx.streams.sparse_rows import SparseRows

load = functools.partial(load_with_intercept, bias=False)
X = np.array([[1.0, -2.0], [3.0, 0.0], [0.0, 4.0], [-1.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0, -1.0])


def csv(folder: Path, text: str, name: str = "mine.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def npz(folder: Path, **arrays) -> str:
    np.savez(folder / "mine.npz", **arrays)
    return str(folder / "mine.npz")


STORED = [
    ("a9a", "binary", 48842, 123, 32561),
    ("abalone", "regression", 4177, 10, None),
    ("breast-cancer", "binary", 683, 10, None),
    ("sentiment_kitchen", "binary", 2000, 93474, None),
    ("letter", "multiclass", 20000, 16, None),
    ("usps", "multiclass", 9298, 256, 7291),
    ("experts_french_load", "experts", 398, 65, None),
    ("portfolio_djia", "portfolio", 507, 30, None),
]


@pytest.mark.parametrize(
    ("name", "task", "rows", "width", "train"),
    [pytest.param(*row, marks=needs(f"{row[0]}.npz")) for row in STORED],
)
def test_a_set_of_the_folder_is_read_as_its_readme_says(name, task, rows, width, train):
    data = load(name, FOLDER)
    assert (data.task.name, len(data), data.width, data.train) == (task, rows, width, train)


@needs("usps.npz")
def test_the_scale_of_a_stored_set_is_applied():
    assert np.max(np.abs(load("usps", FOLDER).context)) == pytest.approx(1.0, abs=1e-3)


@needs("heart.npz")
def test_a_stored_set_that_was_changed_is_refused(tmp_path):
    whole = (FOLDER / "heart.npz").read_bytes()
    (tmp_path / "heart.npz").write_bytes(whole + b"0")
    with pytest.raises(ValueError, match="it is damaged or another file"):
        load("heart", tmp_path)


def test_the_folder_comes_from_the_argument_then_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("OLX_DATA", str(tmp_path / "there"))
    with pytest.raises(FileNotFoundError, match=r"there/a9a\.npz; put it there, or say where"):
        load("a9a")
    with pytest.raises(FileNotFoundError, match=r"here/a9a\.npz"):
        load("a9a", tmp_path / "here")


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "digits", "iris", "wine"])
def test_sets_of_scikit_learn_need_no_download(name):
    data = load(f"sklearn:{name}")
    entry = catalogue()[f"sklearn:{name}"]
    assert data.task.name == entry.task
    assert entry.what.endswith(f"{len(data)} x {data.width}")


def test_the_three_formats_agree(tmp_path):
    rows = "\n".join(f"{a:g},{b:g},{y:g}" for (a, b), y in zip(X, Y, strict=True))
    pairs = lambda row: " ".join(f"{i + 1}:{v:g}" for i, v in enumerate(row) if v)
    lines = "\n".join(f"{y:+g} {pairs(row)}" for row, y in zip(X, Y, strict=True))
    (tmp_path / "mine.svm.gz").write_bytes(gzip.compress(lines.encode()))
    files = [
        csv(tmp_path, rows),
        csv(tmp_path, "a,b,label\n" + rows, "named.csv"),
        csv(tmp_path, lines, "mine.svm"),
        str(tmp_path / "mine.svm.gz"),
        npz(tmp_path, X=X, y=Y),
    ]
    for file in files:
        rounds = load(file).rounds(np.float64)
        np.testing.assert_array_equal(rounds.context, X)
        np.testing.assert_array_equal(rounds.outcome, Y)


def test_a_file_is_looked_for_in_the_data_folder_too(tmp_path):
    csv(tmp_path, "1,0\n2,1")
    assert len(load("mine.csv", tmp_path)) == 2


@pytest.mark.parametrize("target", ["label", 0, -3])
def test_the_column_of_labels_is_found_by_name_or_number(target, tmp_path):
    data = load(csv(tmp_path, "label,a,b\n0,5,6\n1,7,8"), target=target)
    assert data.context.tolist() == [[5, 6], [7, 8]]
    assert data.outcome.tolist() == [-1, 1]


def test_labels_may_be_words(tmp_path):
    file = csv(tmp_path, "5,ham\n6,spam\n7,ham\n8,eggs")
    assert load(file, task="multiclass").outcome.tolist() == [1, 2, 1, 0]
    assert load(file, binarize="spam").outcome.tolist() == [-1, 1, -1, -1]


@pytest.mark.parametrize("labels", [(-1, 1), (0, 1), (1, 2), (2, 4)])
def test_the_larger_of_two_labels_is_plus_one(labels, tmp_path):
    low, high = labels
    file = npz(tmp_path, X=X, y=np.array([low, high, high, low]))
    assert load(file).outcome.tolist() == [-1, 1, 1, -1]


def test_several_labels_may_count_as_plus_one(tmp_path):
    file = npz(tmp_path, X=X, y=np.array([1, 2, 3, 2]))
    assert load(file, binarize=2).outcome.tolist() == [-1, 1, -1, 1]
    assert load(file, binarize=[1, 3]).outcome.tolist() == [1, -1, 1, -1]


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_chosen_by_label_and_columns_by_number(sparse, tmp_path):
    x, y = np.arange(12.0).reshape(4, 3), np.array([4, 9, 7, 9])
    rows = scipy.sparse.csr_array(x)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": x.shape}
    np.savez(tmp_path / "a.npz", y=y, n_train=3, **(parts if sparse else {"X": x}))
    file = str(tmp_path / "a.npz")
    found = load(file, labels=[4, 9], without=[1], binarize=9)
    context = found.context.toarray() if sparse else found.context
    np.testing.assert_array_equal(context, x[[0, 1, 3]][:, [0, 2]])
    assert found.outcome.tolist() == [-1, 1, 1]
    assert found.train == 2
    with pytest.raises(ValueError, match="holds no label 5 to choose rows by"):
        load(file, labels=[5])
    with pytest.raises(ValueError, match="has the columns 0 to 2; 3 is none"):
        load(file, without=[3])


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_scaled_as_asked(sparse, tmp_path):
    if sparse:
        rows = scipy.sparse.csr_array(X)
        parts = {"data": rows.data, "indices": rows.indices.astype(np.uint16)}
        file = npz(tmp_path, **parts, indptr=rows.indptr, shape=rows.shape, y=Y)
    else:
        file = npz(tmp_path, X=X, y=Y)
    context = lambda **options: load(file, **options).rounds(np.float64).context
    np.testing.assert_allclose(np.linalg.norm(context(scale="rows"), axis=1), 1.0)
    np.testing.assert_allclose(context(scale="maximum"), X / [3.0, 4.0])
    np.testing.assert_allclose(context(scale="standard"), (X - X.mean(0)) / X.std(0))
    np.testing.assert_array_equal(context(bias=True), np.c_[X, np.ones(4)])
    np.testing.assert_array_equal(context(), X)
    np.testing.assert_array_equal(context(bias=None), np.c_[X, np.ones(4)])


def test_a_column_that_is_constant_is_scaled_to_zero_or_left(tmp_path):
    file = npz(tmp_path, X=np.c_[X, np.zeros(4)], y=Y)
    for scale in ("rows", "standard", "maximum"):
        assert np.all(load(file, scale=scale).context[:, 2] == 0)


def test_a_seed_is_an_order_and_none_is_the_order_of_the_file(tmp_path):
    file = npz(tmp_path, X=np.arange(50.0)[:, None], y=np.arange(50) % 2)
    order = lambda seed: load(file, seed=seed).context[:, 0].tolist()
    assert order(None) == list(range(50))
    assert order(3) == order(3) != order(4)
    assert sorted(order(3)) == list(range(50))
    shuffled = load(file, seed=3)
    np.testing.assert_array_equal(shuffled.context[:, 0] % 2, (shuffled.outcome + 1) / 2)


def test_a_shuffled_set_has_forgotten_its_training_part(tmp_path):
    file = npz(tmp_path, X=X, y=Y, n_train=3)
    assert load(file).train == 3
    assert load(file, seed=0).train is None


def test_a_target_is_centred_as_asked(tmp_path):
    file = npz(tmp_path, X=X, y=np.array([1.0, 2.0, 3.0, 6.0]))
    outcome = load(file, task="regression", center_target=True).outcome
    assert outcome.mean() == pytest.approx(0.0)
    assert outcome.std() == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "power"), [("absolute", 1), ("squared", 2)])
def test_forecasts_become_losses_between_zero_and_one(kind, power, tmp_path):
    y = np.array([1.0, 2.0, 0.0, 0.0])
    data = load(npz(tmp_path, X=X, y=y), task="experts", expert_loss=kind)
    losses = np.abs(X - y[:, None]) ** power
    assert data.context is None
    np.testing.assert_allclose(data.outcome, losses / losses.max())


def test_sparse_rows_stay_sparse_where_asked(tmp_path):
    data = load(csv(tmp_path, "1 1:0.5\n0 3:2 7:1", "mine.svm"))
    assert data.is_sparse
    sparse = data.rounds(dense=False).context
    assert isinstance(sparse, SparseRows)
    np.testing.assert_array_equal(sparse.toarray(), data.rounds().context)


def test_new_svmlight_rows_count_their_features_as_the_first_ones_did(tmp_path):
    zero = load(csv(tmp_path, "1 0:0.5 2:1\n0 1:2", "zero.svm")).table
    one = load(csv(tmp_path, "1 1:0.5 3:1\n0 2:2", "one.svm")).table
    new = csv(tmp_path, "0 1:7", "new.svm")  # it does not say itself whether 0 is the first
    assert zero.apply(new).toarray().tolist() == [[0, 7, 0]]
    assert one.apply(new).toarray().tolist() == [[7, 0, 0]]
    with pytest.raises(ValueError, match=r"zero\.svm has the index 0; the rows of the data set"):
        one.apply(tmp_path / "zero.svm")


def test_a_generated_stream_is_another_one_for_every_seed():
    make = lambda seed: load(
        "stream:linear_classification", seed=seed, arguments={"rounds": 6, "features": 2}
    )
    assert make(0).task is BINARY
    assert make(0).truth.shape == (2,)
    assert not np.array_equal(make(0).context, make(1).context)
    np.testing.assert_array_equal(make(1).context, make(1).context)


BROKEN = {
    "a number that is none": ("1,2,0\n1,nan,1", "in column '1' (1 of 2 rows, the first is row 1)"),
    "an infinite one": ("1,inf,0\n1,2,1", "feature inf at row 0, column 1"),
    "a ragged row": ("a,b,y\n1,2,0\n1,2\n3,4,1", "row 1 has 2 columns, the header has 3."),
    "a word": (
        "1,2,0\n1,two,1",
        "column '1' holds 'two' in row 1, where other rows hold numbers; ",
    ),
    "an empty cell": (
        "1,2,0\n,5,1",
        "column '0' (1 of 2 rows, the first is row 1); drop these rows",
    ),
    "a third label": ("1,-1\n2,1\n3,0\n4,1", "label 0 at row 2; a binary task has (-1, 1) only."),
    "more labels": ("1,3\n2,4\n3,5", "holds 3 different labels (3, 4, 5); the third is in row 2"),
    "one label": ("1,1\n2,1", "holds the label 1.0 alone; a binary task needs two."),
    "no row": ("a,b,label", "holds no rows."),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_table_is_refused_by_row_and_column(case, tmp_path):
    text, said = BROKEN[case]
    file = csv(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        load(file, task="binary")
    assert str(caught.value).startswith(file)


ODD = {
    "svmlight, a word": ("1 1:0.5\nx 2:1", "row 1 has the label 'x'; give a number."),
    "svmlight, no value": (
        "1 1:0.5\n-1 2:",
        "holds '2:' at row 1, entry 0; it must be index:value",
    ),
    "svmlight, falling": ("1 3:0.5 2:1", "row 0 has index 2 after 3; they must rise."),
    "svmlight, nothing": ("", "holds no rows."),
    "svmlight, infinite": ("1 1:0.5\n-1 3:inf", "feature inf at row 1, column 2"),
}


@pytest.mark.parametrize("case", ODD)
def test_a_broken_svmlight_file_is_refused_by_row(case, tmp_path):
    text, said = ODD[case]
    with pytest.raises(ValueError, match=re.escape(said)):
        load(csv(tmp_path, text, "mine.svm"))


ARCHIVES = {
    "no rows": ({"x": X}, "holds x; it must hold X, or data, indices, indptr and shape"),
    "too few labels": ({"X": X, "y": Y[:3]}, r"y has shape \(3,\), there are 4 rows."),
    "a vector": ({"X": X[:, 0], "y": Y}, r"X has shape \(4,\); it must have a row per round."),
    "a pickle": ({"X": np.array([{}], object)}, "cannot be read as .npz"),
    "no labels": ({"X": X}, "holds no labels; it can only be of task experts or portfolio."),
    "a label NaN": ({"X": X, "y": Y * np.nan}, "holds the label nan at row 0; clean the file"),
    "a broken matrix": (
        {"data": Y, "indices": np.array([0, 1, 9, 0]), "indptr": np.arange(5), "shape": (4, 2)},
        "holds no proper CSR matrix",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_broken_archive_is_refused(case, tmp_path):
    arrays, said = ARCHIVES[case]
    with pytest.raises(ValueError, match=said):
        load(npz(tmp_path, **arrays))


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    file = npz(tmp_path, X=X, y=Y)
    Path(file).write_bytes(Path(file).read_bytes()[:200])
    with pytest.raises(ValueError, match=r"cannot be read as \.npz"):
        load(file)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a9b"}, "there is no data set 'a9b'; did you mean a9a?"),
        ({"name": "irs"}, "there is no data set 'irs'; did you mean sklearn:iris?"),
        ({"name": "stream:switching_los"}, "did you mean stream:switching_losses?"),
        (
            {"name": "stream:expert_losses", "arguments": {"round": 3}},
            "stream:expert_losses.round: expert_losses has no such argument; did you mean rounds?",
        ),
        ({"name": "sklearn:iris", "scale": "max"}, "scale must be one of none, rows, standard"),
        (
            {"name": "sklearn:iris", "task": "weather"},
            "there is no task 'weather'; it takes binary, multiclass",
        ),
        (
            {"name": "mine.csv", "task": "regresion"},
            "mine.csv: there is no task 'regresion'; did you mean regression?",
        ),
        ({"name": "sklearn:iris", "binarize": 7}, "holds no label 7 to binarize by; it holds 0, 1"),
        ({"name": "sklearn:iris", "arguments": {"a": 1}}, "only a stream takes arguments"),
        ({"name": "sklearn:breast_cancer", "task": "portfolio"}, "price relatives are positive"),
        ({"name": "libsvm:a1a"}, "sorted by task; give binary, multiclass or regression"),
    ],
)
def test_a_wrong_wish_is_refused_with_the_nearest_that_is_right(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        load(**options)


@pytest.fixture
def server(tmp_path):
    """A file server on localhost: its folder and its address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    serve = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=serve.serve_forever, args=(0.01,))
    thread.start()
    yield folder, f"http://127.0.0.1:{serve.server_port}"
    serve.shutdown()
    thread.join()
    serve.server_close()


TEXT = b"+1 1:0.5 3:1\n-1 2:2\n"
SHA = hashlib.sha256(TEXT).hexdigest()


def test_a_download_is_checked_and_kept(server, tmp_path):
    folder, address = server
    (folder / "mine.svm").write_bytes(TEXT)
    read = lambda: load(f"{address}/mine.svm", tmp_path / "cache", sha256=SHA).rounds().context
    np.testing.assert_array_equal(read(), [[0.5, 0, 1], [0, 2, 0]])
    (folder / "mine.svm").unlink()
    assert read().shape == (2, 3)


def test_a_download_with_another_checksum_is_refused(server, tmp_path):
    folder, address = server
    (folder / "mine.svm").write_bytes(TEXT)
    with pytest.raises(ValueError, match="does not have the sha256 0000"):
        load(f"{address}/mine.svm", tmp_path / "cache", sha256="0" * 64)


def test_a_download_without_a_checksum_tells_it(server, tmp_path):
    folder, address = server
    (folder / "mine.svm").write_bytes(TEXT)
    with pytest.raises(ValueError, match=f"give the expected sha256; .* sha256 = '{SHA}'"):
        load(f"{address}/mine.svm", tmp_path / "cache")


def test_what_is_not_there_cannot_be_downloaded(server, tmp_path):
    with pytest.raises(OSError, match=r"nothing\.svm cannot be downloaded: .*404"):
        load(f"{server[1]}/nothing.svm", tmp_path / "cache", sha256=SHA)


def test_the_libsvm_collection_is_a_download_by_task(server, tmp_path, monkeypatch):
    folder, address = server
    (folder / "binary").mkdir()
    (folder / "binary" / "a1a").write_bytes(TEXT)
    monkeypatch.setattr(sources, "LIBSVM", address)
    data = load("libsvm:a1a", tmp_path / "cache", task="binary", sha256=SHA)
    assert data.outcome.tolist() == [1, -1]


ARFF = b"@relation mini\n@attribute a numeric\n@attribute b numeric\n@attribute class {no,yes}\n"
ARFF += b"@data\n1,2,no\n3,4,yes\n5,6,no\n"


def test_openml_is_read_through_scikit_learn(server, tmp_path, monkeypatch):
    folder, address = server
    api = serve_openml(folder, address, hashlib.md5(ARFF).hexdigest())
    for name, path in api.items():
        monkeypatch.setattr(f"sklearn.datasets._openml.{name}", path)
    data = load("openml:7", tmp_path / "cache", binarize="yes")
    assert data.context.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.outcome.tolist() == [-1, 1, -1]


def test_openml_with_another_checksum_is_refused(server, tmp_path, monkeypatch):
    folder, address = server
    for name, path in serve_openml(folder, address, "0" * 32).items():
        monkeypatch.setattr(f"sklearn.datasets._openml.{name}", path)
    with pytest.raises(ValueError, match=r"openml:7 cannot be loaded: .*md5 checksum"):
        load("openml:7", tmp_path / "cache")


def serve_openml(folder: Path, address: str, md5: str) -> dict[str, str]:
    feature = lambda i, name, kind: {
        "index": str(i),
        "name": name,
        "data_type": kind,
        "is_target": str(name == "class").lower(),
        "is_ignore": "false",
        "is_row_identifier": "false",
        "number_of_missing_values": "0",
    }
    about = {
        "id": "7",
        "name": "mini",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "",
    }
    about |= {"file_id": "7", "md5_checksum": md5, "url": f"{address}/data/v1/download/7/mini.arff"}
    features = [
        feature(0, "a", "numeric"),
        feature(1, "b", "numeric"),
        feature(2, "class", "nominal"),
    ]
    quality = [
        {"name": "NumberOfInstances", "value": "3"},
        {"name": "NumberOfFeatures", "value": "3"},
    ]
    answers = {
        "info": {"data_set_description": about},
        "features": {"data_features": {"feature": features}},
        "qualities": {"data_qualities": {"quality": quality}},
    }
    for name, answer in answers.items():
        (folder / name).mkdir()
        (folder / name / "7").write_text(json.dumps(answer))
    for place in ("data/v1/download/7/mini.arff", "data/v1/download/7"):
        path = folder / place
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(ARFF)
    words = {"_DATA_INFO": "info", "_DATA_FEATURES": "features", "_DATA_QUALITIES": "qualities"}
    return {constant: f"{address}/{word}/{{}}" for constant, word in words.items()}


LINES = b"0 1:0\n" * 170_000  # 1 MB
PACKED = {
    "bomb.csv.gz": lambda: gzip.compress(LINES) * 70,
    "bomb.svm.gz": lambda: gzip.compress(LINES) * 70,
    "bomb.svm.bz2": lambda: bz2.compress(LINES) * 70,
    "bomb.csv.zst": lambda: bytes(pa.compress(LINES * 70, "zstd", asbytes=True)),
    "bomb.npz": lambda: packed(np.savez_compressed, X=np.zeros((9 * 10**6, 1)), y=np.ones(1)),
    "bomb.parquet": lambda: packed(pq.write_table, pa.table({"a": np.zeros(9 * 10**6)})),
}


def packed(write, *given, **named) -> bytes:
    if write is pq.write_table:
        held = pa.BufferOutputStream()
        write(*given, held)
        return held.getvalue().to_pybytes()
    held = io.BytesIO()
    write(held, *given, **named)
    return held.getvalue()


@pytest.mark.parametrize("name", PACKED)
def test_a_file_that_unpacks_to_far_more_is_refused_at_once(name, tmp_path):
    (tmp_path / name).write_bytes(PACKED[name]())
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"{name} cannot be read.*unpacks to .*give unpack = \d+"):
        load(str(tmp_path / name))
    assert time.process_time() - start < 1


def test_the_limit_of_unpacking_is_a_key(tmp_path):
    place = tmp_path / "small.csv.gz"
    place.write_bytes(gzip.compress(b"1,2,1\n3,4,-1\n" * 99))
    assert len(load(str(place))) == 198
    with pytest.raises(ValueError, match=r"at most 0 MB are allowed; .*unpack = 1, in megabytes"):
        load(str(place), unpack=1e-3)
    with pytest.raises(ValueError, match="`unpack` must be positive, got -1"):
        load(str(place), unpack=-1)


def frames(tmp_path, columns):
    """One table as files and in memory."""
    import pandas
    import polars

    table = pa.table(columns)
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    pq.write_table(table, tmp_path / "t.parquet")
    given = {"thing": pandas.DataFrame(columns)}, {"thing": polars.DataFrame(columns)}
    yield from [(str(tmp_path / name), {}) for name in ("t.csv", "t.parquet")]
    yield from (("frame", options) for options in given)


@pytest.mark.parametrize(
    "cells", [["1,000", "2,500"], ["$5", "6"], ["12%", "x", "3%"], ["€1.234,5"]]
)
def test_numbers_with_other_signs_are_no_words(tmp_path, cells):
    columns = {"price": cells, "y": [float(i) for i in range(len(cells))]}
    for name, given in frames(tmp_path, columns):
        with pytest.raises(ValueError, match="'price' holds numbers with other signs"):
            load(name, task="regression", target="y", **given)
        words = load(name, task="regression", target="y", categories=["price"], **given)
        assert words.width == len(cells)


def test_a_comma_that_groups_or_divides_is_refused(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("a;y\n1,234;1\n2,000;2\n")
    with pytest.raises(ValueError, match=r"'a' holds '1,234', which may be 1.234 or 1234"):
        load(str(file), task="regression")
    file.write_text("a;y\n1,234;1,5\n2,000;2,5\n")  # the other column has decimal commas
    assert load(str(file), task="regression").context[:, 0].tolist() == [1.234, 2.0]


def test_an_id_is_no_feature_and_a_table_says_how_it_was_read(tmp_path):
    rows = range(30)
    columns = {
        "customer": [f"{i:03}" for i in rows],
        "name": [f"n{i}" for i in rows],
        "age": [None if i % 10 == 0 else 1.0 + i % 3 for i in rows],
        "one": [1] * 30,
        "y": [i % 2 for i in rows],
    }
    wanted = {
        "y": "labels",
        "customer": "id, no feature",
        "name": "word with 30 levels, like an id",
        "age": "number, 3 missing filled with 2",
        "one": "number, constant",
    }
    seen = set()
    for name, given in frames(tmp_path, columns):
        data = load(name, target="y", id="customer", fill="median", **given)
        assert dict(data.notes) == wanted
        assert data.table.names[-2:] == ["age", "one"]
        seen.add(digest(data)["sha256"])
    assert len(seen) == 1
    data = load(str(tmp_path / "t.csv"), target="y", id="customer", fill=0)
    kept = Table.from_json(data.table.to_json())
    assert ids_of(kept, tmp_path / "t.csv").to_pylist()[:2] == ["000", "001"]
    many = [(f"c{i}", "number") for i in range(42)]
    assert as_lines("d", [Note(*each) for each in many])[-1] == "  and 30 more"
    with pytest.raises(ValueError, match="'y' is the id, and labels or group too"):
        load(str(tmp_path / "t.csv"), target="y", id="y")
    with pytest.raises(ValueError, match="id is for a table"):
        load("sklearn:iris", id="a")


def test_dates_become_parts(tmp_path):
    days = [datetime.datetime(2023, 12, 31, 18, 30), datetime.datetime(2024, 1, 1, 6)]
    columns = {"at": days, "word": [str(day) + "+02:00" for day in days], "y": [0.0, 1.0]}
    turn = lambda place, period: [
        np.sin(2 * np.pi * place / period),
        np.cos(2 * np.pi * place / period),
    ]
    wanted = [  # 31 December 2023 was a Sunday
        [
            23,
            *turn(11, 12),
            *turn(6, 7),
            *turn(18.5, 24),
            23,
            *turn(11, 12),
            *turn(6, 7),
            *turn(16.5, 24),
        ],
        [24, *turn(0, 12), *turn(0, 7), *turn(6, 24), 24, *turn(0, 12), *turn(0, 7), *turn(4, 24)],
    ]
    options = {"task": "regression", "target": "y"}
    seen = set()
    for name, given in frames(tmp_path, columns):
        with pytest.raises(ValueError, match='dates = "parts"'):
            load(name, **options, **given)
        data = load(name, dates="parts", **options, **given)
        np.testing.assert_allclose(data.context, wanted, atol=1e-12)
        assert data.notes[1].read_as == "date, as year, month, weekday, hour"
        seen.add(digest(data)["sha256"])
        kept = Table.from_json(data.table.to_json())
        np.testing.assert_array_equal(kept.apply(str(tmp_path / "t.csv")), data.context)
    assert len(seen) == 1
    assert kept.names[:3] == ["at.year", "at.month.sin", "at.month.cos"]
    (tmp_path / "t.csv").write_text("at,word,y\n2024-01-01,x,1\n")
    with pytest.raises(ValueError, match="column 'word' holds 'x' in row 0, which is no date"):
        kept.apply(str(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("at,y\n2024-01-01,1\n,1\n")
    with pytest.raises(ValueError, match="'at' holds no date in 1 of 2 rows, the first is row 1"):
        load(str(tmp_path / "t.csv"), dates="parts", **options)


def test_one_message_says_what_is_wrong_with_all_columns_of_a_file(tmp_path):
    head, rows = "name,paid,day,last,age,y", ["a,$5,2024-01-01,31/12/2024,1,0", "b,6,2024-01-02,"]
    text = f"{head}\n{rows[0]}\n{rows[1]}02/01/2025,x,1\nc,7,2024-01-03,03/01/2025,,1\n"
    wanted = {
        "age": r"column 'age' holds 'x' in row 1, where other rows hold numbers",
        "paid": r"column 'paid' holds numbers with other signs, such as '\$5'",
        "day": "column 'day' holds Date",
        "last": "column 'last' holds dates such as '31/12/2024'; write them as 2024-12-31",
    }
    file = csv(tmp_path, text)
    with pytest.raises(ValueError, match=" Also: ".join(f"{said}.*" for said in wanted.values())):
        load(file, task="binary")
    data = load(file, task="binary", without=list(wanted))  # what is left out is not judged
    assert data.table.names == ["name=a", "name=b", "name=c"]
    with pytest.raises(ValueError, match=wanted["last"]):
        load(file, task="binary", dates="parts", without=["age", "paid"])
    data = load(file, task="binary", categories=["age", "paid", "last"], dates="parts", fill="mean")
    assert dict(data.notes)["last"] == "word with 3 levels"
    with pytest.raises(ValueError, match=wanted["age"] + ".* Also: column 'paid' holds"):
        load(file, task="regression", target="name", without=["day", "last"])


def test_columns_that_are_not_used_are_not_judged_in_new_rows_either(tmp_path):
    text = "no,unit,age,y\n01,12,30,no\n02,12A,40,yes\n03,7,50,no\n"
    file = csv(tmp_path, text)
    table = load(file, task="binary", id="no", categories=["unit"]).table
    assert ids_of(table, Path(file)).to_pylist() == ["01", "02", "03"]
    assert outcomes_of(table, Path(file), None).tolist() == [-1, 1, -1]
    assert table.apply(file).shape == (3, 4)
    odd = csv(tmp_path, text.replace("age,", "age,odd,").replace("0,", "0,5,", 1), "odd.csv")
    with pytest.raises(ValueError, match="row 1 has 4 columns"):
        table.apply(odd)
    odd = csv(tmp_path, "odd,unit,age\n1,12,$30\nx,7,40\n", "odd.csv")
    with pytest.raises(ValueError, match=r"column 'age' holds '\$30'; it must hold numbers"):
        table.apply(odd)
    assert table.apply(csv(tmp_path, "odd,unit,age\n1,12,30\nx,7,40\n", "odd.csv")).shape == (2, 4)
    both = csv(tmp_path, "unit,age,y\n,x,no\n12,30,yes\n", "both.csv")
    with pytest.raises(ValueError, match=r"'age' holds 'x' in row 0, where"):
        table.apply(both)


def test_labels_with_other_signs_are_refused(tmp_path):
    file = csv(tmp_path, 'a,y\n1,"1,000"\n2,500\n3,$7\n')
    with pytest.raises(ValueError, match="'y' holds numbers with other signs, such as"):
        load(file, task="regression")
