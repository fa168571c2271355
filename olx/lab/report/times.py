"""Where the time of a run went; the parts of a row add up to its seconds."""

import pyarrow as pa

from olx.lab.report.tables import Column, Table
from olx.lab.report.words import count, seconds

END = "_seconds"


def times(table: pa.Table, outside: float) -> Table | None:
    """Seconds by part, summed over seeds; what no part counts is in the column "other".

    outside: the seconds of the run outside its jobs.
    """
    if not table.num_rows:
        return None
    parts = [name for name in table.column_names if name.endswith(END)]
    parts = [name for name in parts if sum(table[name].to_pylist())]  # what took some time
    asked = [(name, "sum") for name in ("seconds", *parts)] + [("rounds_per_second", "mean")]
    grouped = table.group_by(["dataset", "learner"], use_threads=False).aggregate(asked).to_pylist()
    lines = [[row["seconds_sum"], *(row[f"{part}_sum"] for part in parts)] for row in grouped]
    lines = [[*line, max(line[0] - sum(line[1:]), 0.0)] for line in lines]
    total = [sum(column) for column in zip(*lines, strict=True)]
    has_other = total[-1] > 1e-3 * total[0]
    width = len(total) if has_other else len(total) - 1
    show = lambda line: [seconds(value) for value in line[:width]]
    rows = [
        [row["dataset"], row["learner"], *show(line), count(row["rounds_per_second_mean"])]
        for row, line in zip(grouped, lines, strict=True)
    ]
    blank = [""] * width
    foot = [
        ["all jobs", "", *show(total), ""],
        ["outside jobs", "", seconds(outside), *blank],
        ["the run", "", seconds(total[0] + outside), *blank],
    ]
    names = [WORDS.get(part, part.removesuffix(END)) for part in parts]
    names = ["seconds", *names, *(["other"] * has_other)]
    head = [Column("data set", False), Column("learner", False), *map(Column, names)]
    head.append(Column("rounds per second"))
    note = (
        "Seconds are the sum over seeds; the columns after them are their parts, and add up to "
        "them. Outside jobs the run prepares and stores them. A round is one round of one "
        "configuration; rounds per second are those while playing."
    )
    return Table("Time", head, rows, note, foot)


WORDS = {"compiled_seconds": "compiling"}
