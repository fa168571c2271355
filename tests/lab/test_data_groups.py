"""Rounds of several rows, and rows of several labels: tables and svmlight files as .npz files."""

import gzip

import jax
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from olx.lab.config import read
from olx.lab.data import load
from olx.lab.run import run


def test_tables_and_svmlight_files_give_the_rounds_of_an_npz_file(tmp_path):
    """Queries, sequences and several labels per row: a column of groups, or qid and 1,3."""
    draw = np.random.default_rng(2)
    group = np.repeat(np.arange(9), draw.integers(2, 6, 9))
    x = np.round(draw.normal(size=(len(group), 3)), 3) + 0.0005
    y = draw.integers(0, 3, len(group))
    many = np.eye(4, dtype=int)[draw.integers(0, 4, (len(group), 2))].max(axis=1)
    np.savez(tmp_path / "a.npz", X=x, y=y, qid=group)
    np.savez(tmp_path / "many.npz", X=x, y=many)
    columns = {"a": x[:, 0], "which": [f"s{9 - i}" for i in group], "b": x[:, 1], "c": x[:, 2]}
    table = pa.table({**columns, "y": y})
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pairs = [" ".join(f"{i}:{v}" for i, v in enumerate(row, 1)) for row in x]
    lines = [f"{label} qid:{id} {row}" for label, id, row in zip(y, group, pairs, strict=True)]
    (tmp_path / "a.svm").write_text("# a comment\n" + "\n".join(lines))
    sets = [",".join(map(str, np.flatnonzero(row))) for row in many]
    rows = [f"{label} {row}" for label, row in zip(sets, pairs, strict=True)]
    (tmp_path / "many.svm.gz").write_bytes(gzip.compress("\n".join(rows).encode()))

    def seen(name, **options):
        data = load(str(tmp_path / name), **options)
        return jax.tree.map(np.asarray, data.rounds(np.float64)), data

    for task in ("chain", "instance_ranking"):
        wanted, _ = seen("a.npz", task=task)
        for name, options in {
            "a.csv": {"group": "which"},
            "a.parquet": {"group": 1},
            "a.svm": {},
        }.items():
            jax.tree.map(np.testing.assert_array_equal, seen(name, task=task, **options)[0], wanted)
    wanted, _ = seen("many.npz", task="multilabel")
    found, data = seen("many.svm.gz", task="multilabel")
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert data.table.labels.classes == (0, 1, 2, 3)
    np.testing.assert_array_equal(data.table.apply(tmp_path / "many.svm.gz").toarray(), found[0])
    with pytest.raises(ValueError, match=r"row 0 has the labels .*task = .multilabel"):
        load(str(tmp_path / "many.svm.gz"), task="multiclass")
    with pytest.raises(ValueError, match=r"belong together; give group = the column"):
        load(str(tmp_path / "a.csv"), task="chain", without=["which"])
    with pytest.raises(ValueError, match="group is for a table; other files hold the groups as"):
        load(str(tmp_path / "a.npz"), task="chain", group="qid")
    (tmp_path / "a.svm").write_text("\n".join([*lines, "1 1:2"]))
    with pytest.raises(ValueError, match=f"row {len(lines)} has no qid, others have one"):
        load(str(tmp_path / "a.svm"), task="chain")


def test_sequences_of_a_csv_file_are_played_as_those_of_npz(tmp_path):
    draw = np.random.default_rng(3)
    word = np.repeat(np.arange(12), draw.integers(1, 5, 12))
    y = draw.integers(0, 2, len(word))
    x = np.eye(2)[y] + 0.25 * np.round(draw.normal(size=(len(y), 2)))
    np.savez(tmp_path / "a.npz", X=x, y=y, qid=word)
    rows = zip(word, *x.T, np.array(["n", "v"])[y], strict=True)
    lines = [",".join(map(str, row)) for row in [("word", "a", "b", "tag"), *rows]]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "c.toml").write_text(
        '[[data]]\nname = "a.npz"\ntask = "chain"\n'
        '[[data]]\nname = "a.csv"\ntask = "chain"\ngroup = "word"\n'
        '[[learners]]\nname = "structured_perceptron"\nstructure = "data"\n'
    )
    result = run(read(tmp_path / "c.toml"), tmp_path / "r")
    totals = {}
    for row in result.configurations.to_pylist():
        totals.setdefault(row["learner"], {})[row["dataset"]] = row["total"]
    assert totals["structured_perceptron"]["a.csv"] > 0
    assert all(each["a.csv"] == each["a.npz"] for each in totals.values())


@pytest.mark.parametrize("qid", ["abc", "1" * 30])
def test_a_query_that_is_no_whole_number_is_refused_with_its_row(qid, tmp_path):
    path = tmp_path / "mine.svm"
    path.write_text(f"1 qid:1 1:1\n0 qid:{qid} 1:2\n")
    with pytest.raises(ValueError, match=r"mine\.svm: row 1 "):
        load(str(path), task="instance_ranking")
