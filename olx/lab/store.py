"""A result: one folder per run of a config, readable in one line by pandas or polars.

    config.toml             the experiment, with the settings of the command line
    jobs.json               the format of the folder, and the names of all jobs in order
    data.json               rows and SHA-256 of every data set as it was played; SHA-256 of every
                            factory outside the library
    environment.json        versions, devices, git commit
    configurations.parquet  one row per data set, learner, configuration and seed
    curves.parquet          cumulative loss, regret and bound at some rounds
    certificates.parquet    both sides of theorems after the last round
    confusions.parquet      how often a class was predicted for another, if outcomes are classes
    times.parquet           seconds; separate, since they differ between runs
    outside.json            seconds of the run outside its jobs, such as preparing and storing
    jobs/                   the same tables, one folder per finished job, and its story: all that
                            its numbers depend on, see `olx.lab.stories`
    checkpoints/            states from which unfinished jobs continue

A job is stored completely or not at all, and a finished job is never repeated. A run that was
interrupted continues where it stopped, and gives the same tables bit by bit. If the data, the
config or a factory has changed, only the jobs that depend on it are played again.
"""

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from olx import _archive as archive
from olx.lab.schemas import SCHEMAS

FORMAT = 3  # of the folder; a result of another format is not continued


class Result(NamedTuple):
    """A result in memory. Tables are of pyarrow: `result.curves.to_pandas()`."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, Any]
    configurations: pa.Table
    curves: pa.Table
    certificates: pa.Table
    confusions: pa.Table
    times: pa.Table

    def report(self) -> Path:
        """Write the report into the folder of the result; the path of the page."""
        from olx.lab.report import write

        return write(self.folder)

    def _repr_html_(self) -> str:
        """The leaderboards, for a notebook."""
        from olx.lab.show import leaderboard_html

        return leaderboard_html(self)


def read(folder: str | os.PathLike) -> Result:
    """Read the result in `folder`; an unfinished result is refused."""
    folder = Path(folder)
    if not (folder / "config.toml").is_file():
        raise FileNotFoundError(
            f"{folder} holds no result; give the folder that `olx run` wrote, such as "
            "results/quickstart."
        )
    missing = [name for name in SCHEMAS if not (folder / f"{name}.parquet").is_file()]
    if missing:
        done = len(finished(folder))
        raise FileNotFoundError(
            f"{folder} is not finished: {done} jobs are done; run its config again to continue."
        )
    tables = {name: _table(folder, name) for name in SCHEMAS}
    config = text(folder, "config.toml", tomllib.loads)
    return Result(folder, config, text(folder, "environment.json", json.loads), **tables)


def _table(folder: Path, name: str) -> pa.Table:
    place = folder / f"{name}.parquet"
    try:
        table = pq.read_table(place)
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{place} cannot be read: {said}. Remove it, and run its config again."
        ) from error
    missing = [field.name for field in SCHEMAS[name] if field.name not in table.column_names]
    if missing:
        raise ValueError(
            f"{place} has no column {missing[0]}: another version of olx wrote it; run its config "
            "again into another folder."
        )
    return table


def _write_table(folder: Path, name: str, table: pa.Table) -> None:
    with archive.replacing(folder / f"{name}.parquet") as file:
        pq.write_table(table, file)


def text(folder: Path, name: str, loads: Callable[[str], Any]) -> dict[str, Any]:
    try:
        return loads((folder / name).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{folder / name} cannot be read: {error}.") from error


def finished(folder: Path) -> set[str]:
    """The names of the jobs that are done, of those that belong to the config."""
    if not (folder / "jobs.json").is_file():
        return set()
    names = text(folder, "jobs.json", json.loads)["jobs"]
    return {name for name in names if (folder / "jobs" / name).is_dir()}


def is_finished(folder: Path) -> bool:
    return all((folder / f"{name}.parquet").is_file() for name in SCHEMAS)


def put(folder: Path, job: str, tables: Mapping[str, pa.Table], story: Mapping[str, Any]) -> None:
    """Store the tables of a finished job, all of them or none.

    Two processes may store the same job: one that was thought to be lost, and the one after it.
    """
    with archive.adding_folder(folder / "jobs" / job) as draft:
        for name, table in tables.items():
            _write_table(draft, name, table)
        archive.write_json(draft / "story.json", story)
    shutil.rmtree(folder / "checkpoints" / job, ignore_errors=True)


def finish(folder: Path, jobs: list[str]) -> None:
    """Join the tables of all jobs, in the order given; drop the jobs that are not among them."""
    for name, schema in SCHEMAS.items():
        parts = [pq.read_table(folder / "jobs" / job / f"{name}.parquet") for job in jobs]
        whole = pa.concat_tables([schema.empty_table(), *parts], promote_options="default")
        _write_table(folder, name, whole)
    for place in (folder / "jobs").iterdir():
        if place.name not in jobs:
            shutil.rmtree(place)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
