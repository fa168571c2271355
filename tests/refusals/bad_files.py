"""Data files and result folders that the lab may not accept; the message names the file."""

import bz2
import gzip
import io
import json
import tempfile
from pathlib import Path

import numpy as np
from bad_inputs import Bad
from fake_result import make

from olx.lab import store
from olx.lab.data import load
from olx.lab.fingerprint import job_name
from olx.lab.store import check_folder, open_result

FOLDER = tempfile.TemporaryDirectory(prefix="olx-bad-files-")
X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
SIGNS = np.array([1.0, -1.0, 1.0])


def file(name: str, content: str | bytes) -> str:
    path = Path(FOLDER.name) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refused(name: str, content: str | bytes, says: str, **options: object) -> Bad:
    """A file that `load` refuses, and names."""
    return Bad(lambda: load(file(name, content), **options), ValueError, f"{name}.*{says}")


def npz(**arrays: object) -> bytes:
    held = io.BytesIO()
    np.savez(held, **{name: np.asarray(array) for name, array in arrays.items()})
    return held.getvalue()


ROWS = "1,2,1\n3,4,-1\n5,6,1\n"
SVM = "+1 1:0.5 3:1\n-1 2:2\n"
CSR = {"data": [1.0, 2.0, 3.0], "indices": [0, 1, 0], "indptr": [0, 1, 2, 3], "shape": [3, 2]}

TABLES = {
    "a csv without a byte": refused("a.csv", "", "holds no rows"),
    "a csv of empty lines": refused("b.csv", "\n\n\n", "holds no rows"),
    "a csv with a header only": refused("c.csv", "a,b,label\n", "holds no rows"),
    "a csv with a short row": refused("d.csv", "1,2,1\n3,-1\n", "row 1 has 2 columns, row 0 has 3"),
    "a csv with a long row": refused(
        "e.csv", "a,b\n1,2\n3,4,5\n", "row 1 has 3 .*the header has 2"
    ),
    "a csv with a word": refused("f.csv", "1,2,1\n3,four,-1\n", "column '1' holds 'four' in row 1"),
    "a csv with an empty cell": refused("g.csv", "1,2,1\n,4,-1\n", "missing in column '0' .*row 1"),
    "a csv with NaN": refused("h.csv", "1,2,1\nnan,4,-1\n", "missing in column '0' .1 of 2"),
    "a csv with inf": refused("i.csv", "1,2,1\n3,-inf,-1\n", "feature -inf at row 1, column 1"),
    "a csv with a label NaN": refused(
        "j.csv", "1,2,1\n3,4,nan\n5,6,-1\n", "label .*1 of 3 rows.*row 1"
    ),
    "a csv with an empty label": refused(
        "k.csv", "1,2,1\n3,4,\n5,6,-1\n", "label in column '2' is missing.*row 1"
    ),
    "a csv of one class": refused("l.csv", "1,2,1\n3,4,1\n", "1 different label|alone"),
    "a csv of three classes": refused("m.csv", "1,1\n2,2\n3,3\n", "3 different labels.*binarize"),
    "a csv of one binary class": refused("n.csv", "1,1\n2,1\n", "alone", task="binary"),
    "a csv with dates": refused("o.csv", "2026-01-02,1\n2026-01-03,-1\n", "holds Date; make it"),
    "a csv with an index": refused("p.csv", ",a,b\n0,5,1\n1,6,-1\n", "counts the rows.*without"),
    "a csv with labels only": refused("q.csv", "1\n-1\n", "one column"),
    "a csv in another encoding": refused("r.csv", b"a,b\n\xe4,2\n", "UTF-8.*line 1.*cp1252"),
    "a csv in UTF-16": refused("s.csv", ROWS.encode("utf-16"), 'encoding = "utf-16"'),
    "a csv of random bytes": refused("t.csv", bytes(range(256)) * 4, "UTF-8"),
    "a csv with NUL": refused("u.csv", "1,2,1\n3,\x004,-1\n", "row 1"),
    "a csv without the column": refused("v.csv", "a,b\n1,2\n", "no column 'c'.*a, b", target="c"),
    "a csv with a column misspelt": refused(
        "w.csv", "width,label\n1,2\n", "no column 'lable'; did you mean label", target="lable"
    ),
    "a csv without a header": refused("x.csv", ROWS, "no column 'y'.*no header", target="y"),
    "a csv with too few columns": refused("y.csv", ROWS, "3 columns.*no column 3", target=3),
    "a csv with a column twice": refused("z.csv", "a,a\n1,2\n", "two columns.*'a'", target="a"),
    "a csv whose quote never ends": refused("aa.csv", '1,"2,1\n3,4,-1\n', "at row 0"),
    "words for a regression": refused("ab.csv", "1,a\n2,b\n", "numbers", task="regression"),
    "halves for classes": refused("ac.csv", "1,.5\n2,1\n", "whole numbers", task="multiclass"),
    "no such label": refused("ad.csv", ROWS, "no label 7 to binarize.*-1, 1", binarize=7),
    "prices of zero": refused(
        "ae.csv", "0,2\n1,2\n", "price relative 0 at row 0", task="portfolio"
    ),
    "another sha256": refused("ah.csv", ROWS, "has the sha256 .*expected 00", sha256="00"),
    "a scale of a csv": refused("ai.csv", ROWS, "scale must be one of none", scale="max"),
    "arguments of a csv": refused("aj.csv", ROWS, "only a stream", arguments={"rounds": 3}),
    "a svmlight file without a byte": refused("a.svm", "", "holds no rows"),
    "a svmlight file of comments": refused("b.svm", "# 1\n# 2\n", "holds no rows"),
    "a svmlight file without labels": refused("c.svm", "1:2 2:3\n1:1 2:2\n", "row 0.*label '1:2'"),
    "a svmlight label as a word": refused("d.svm", "yes 1:2\n", "row 0 has the label 'yes'"),
    "a svmlight value as a word": refused("e.svm", "1 1:2\n-1 1:x\n", "'1:x' at row 1, entry 0"),
    "a svmlight entry without a colon": refused("f.svm", "1 1:2 3\n", "'3' at row 0, entry 1"),
    "svmlight indices that fall": refused("g.svm", "1 2:1 1:1\n", "row 0 has index 1 after 2"),
    "svmlight indices twice": refused("h.svm", "1 2:1 2:1\n", "row 0 has index 2 after 2"),
    "a negative svmlight index": refused("i.svm", "1 -2:1\n", "'-2:1' at row 0, entry 0"),
    "a huge svmlight index": refused("j.svm", "1 99999999999:1\n-1 1:1\n", "99999999999"),
    "a svmlight NaN": refused("k.svm", "1 1:nan\n-1 1:1\n", "feature nan at row 0, column 0"),
    "a svmlight inf": refused("l.svm", "1 1:1\n-1 1:inf\n", "feature inf at row 1, column 0"),
    "svmlight labels only": refused("m.svm", "1\n-1\n", "no feature"),
    "svmlight random bytes": refused("n.svm", bytes(range(128, 256)) * 8, "row 0"),
    "svmlight NUL": refused("o.svm", b"1 1:2\x00\n-1 1:1\n", "row 0"),
    "svmlight of one class": refused("p.svm", "1 1:2\n1 1:1\n", "1 different label|alone"),
    "a csv called svmlight": refused("q.svm", ROWS, "row 0"),
    "gzip that is none": refused("a.svm.gz", SVM, "cannot be read|gzip"),
    "gzip cut short": refused("b.svm.gz", gzip.compress(SVM.encode() * 99)[:-12], "cannot be read"),
    "gzip damaged": refused("c.svm.gz", gzip.compress(SVM.encode())[:12] + b"\xff" * 20, "cannot"),
    "bzip2 that is none": refused("a.svm.bz2", SVM, "cannot be read"),
    "bzip2 cut short": refused("b.svm.bz2", bz2.compress(SVM.encode() * 99)[:-9], "cannot be read"),
    "a csv in a broken gzip": refused("a.csv.gz", gzip.compress(ROWS.encode())[:-9], "Truncated"),
    "an npz without a byte": refused("a.npz", b"", "cannot be read as .npz"),
    "an npz of text": refused("b.npz", "hello", "cannot be read as .npz"),
    "an npz cut short": refused("c.npz", npz(X=X, y=SIGNS)[:-40], "cannot be read as .npz"),
    "an npz damaged": refused(
        "d.npz", npz(X=X, y=SIGNS).replace(X.tobytes()[16:32], b"\x7f" * 16), "cannot be read"
    ),
    "an npz of nothing": refused("e.npz", npz(), "holds nothing.*must hold X"),
    "an npz of other names": refused("f.npz", npz(x=X, y=SIGNS), "holds x, y.*must hold X"),
    "an npz of a vector": refused("g.npz", npz(X=X[0], y=SIGNS), "X has shape"),
    "an npz of no rows": refused("h.npz", npz(X=X[:0], y=SIGNS[:0]), "no rows"),
    "an npz of no columns": refused("i.npz", npz(X=X[:, :0], y=SIGNS), "no columns"),
    "an npz of words": refused("j.npz", npz(X=X.astype(str), y=SIGNS), "numbers"),
    "an npz of objects": refused(
        "k.npz", npz(X=np.array([[None, 1]], object), y=[1.0]), "cannot be read|numbers"
    ),
    "an npz of complex numbers": refused("l.npz", npz(X=X * 1j, y=SIGNS), "numbers"),
    "an npz with too few labels": refused("m.npz", npz(X=X, y=SIGNS[:2]), "y has shape .2,."),
    "an npz with labels in a column": refused("n.npz", npz(X=X, y=SIGNS[:, None]), "y has shape"),
    "an npz without labels": refused("o.npz", npz(X=X), "holds no labels"),
    "an npz without labels to binarize": refused(
        "p.npz", npz(X=X), "holds no labels", binarize=1, task="experts"
    ),
    "an npz with NaN": refused("q.npz", npz(X=X * np.nan, y=SIGNS), "feature nan at row 0"),
    "an npz with more training rows than rows": refused(
        "r.npz", npz(X=X, y=SIGNS, n_train=9), "n_train"
    ),
    "an npz with a third label": refused(
        "s.npz", npz(X=X, y=[1.0, -1.0, 0.5]), "label 0.5 at row 2", task="binary"
    ),
    "CSR with a column too large": refused(
        "t.npz", npz(**{**CSR, "indices": [0, 9, 0]}, y=SIGNS), "CSR"
    ),
    "CSR with a negative column": refused(
        "u.npz", npz(**{**CSR, "indices": [0, -1, 0]}, y=SIGNS), "CSR"
    ),
    "CSR with pointers that fall": refused(
        "v.npz", npz(**{**CSR, "indptr": [0, 2, 1, 3]}, y=SIGNS), "CSR"
    ),
    "CSR with too few pointers": refused(
        "w.npz", npz(**{**CSR, "indptr": [0, 1, 3]}, y=SIGNS), "CSR"
    ),
    "CSR of three dimensions": refused("x.npz", npz(**{**CSR, "shape": [3, 2, 1]}, y=SIGNS), "CSR"),
    "no such file": Bad(
        lambda: load("nowhere.csv"), FileNotFoundError, "nowhere.csv: no such file"
    ),
    "a folder": Bad(lambda: load(FOLDER.name), ValueError, "is a folder"),
    "no such set": Bad(lambda: load("breast-cancr"), ValueError, "did you mean breast-cancer"),
}


def result(spoil: object) -> object:
    """A result folder, spoilt, then read."""
    folder = make(Path(tempfile.mkdtemp(dir=FOLDER.name)) / "result")
    spoil(folder)
    return store.read(folder)


def cut(folder: Path) -> None:
    table = folder / "curves.parquet"
    table.write_bytes(table.read_bytes()[:-20])


def older(folder: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "certificates.parquet")
    pq.write_table(table.drop_columns(["holds"]), folder / "certificates.parquet")


RESULTS = {
    "no folder": Bad(lambda: store.read("nowhere"), FileNotFoundError, "nowhere holds no result"),
    "a result without a table": Bad(
        lambda: result(lambda f: (f / "curves.parquet").unlink()), FileNotFoundError, "not finished"
    ),
    "a result with a table cut short": Bad(
        lambda: result(cut), ValueError, r"curves\.parquet cannot be read.*run its config again"
    ),
    "a result with a table of text": Bad(
        lambda: result(lambda f: (f / "times.parquet").write_text("x")), ValueError, "times.parquet"
    ),
    "a result with an older table": Bad(
        lambda: result(older),
        ValueError,
        r"certificates\.parquet has no column holds.*another vers",
    ),
    "a result with a config cut short": Bad(
        lambda: result(lambda f: (f / "config.toml").write_text("[[data")),
        ValueError,
        "config.toml",
    ),
    "a result without an environment": Bad(
        lambda: result(lambda f: (f / "environment.json").unlink()), ValueError, "environment.json"
    ),
    "a result with an environment cut short": Bad(
        lambda: result(lambda f: (f / "environment.json").write_text("{")),
        ValueError,
        "environment",
    ),
    "a folder of something else": Bad(
        lambda: check_folder(Path(file("note.txt", "")).parent), FileExistsError, "empty"
    ),
    "a file in place of a folder": Bad(
        lambda: check_folder(Path(file("note.txt", ""))), FileExistsError, "is a file"
    ),
    "a result of another format": Bad(
        lambda: check_folder(begun(format=1)), FileExistsError, "of format 1, .*--force"
    ),
    "a result of a newer format": Bad(
        lambda: check_folder(begun(format=99)), FileExistsError, "of format 99, of another vers"
    ),
    "a result of another config": Bad(
        lambda: open_result(begun(), "", [STORY | {"dataset": "b", "learner": "c"}], {}, {}),
        FileExistsError,
        "the result of another config, with no data set and no learner in common: .*--force",
    ),
}
STORY = {"dataset": "mine", "learner": "ogd", "seed": 0}


def begun(format: int = store.FORMAT) -> Path:
    """The folder of a run that has played one job."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    open_result(folder, "", [STORY], {}, {})
    store.put(folder, job_name(STORY), {}, STORY)
    (folder / "jobs.json").write_text(json.dumps({"format": format, "jobs": []}))
    return folder


BAD = {**TABLES, **RESULTS}
