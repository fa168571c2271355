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
    jobs/                   the same tables, one folder per finished job, and its fingerprint: all
                            that its numbers depend on, see `olx.lab.fingerprint`
    checkpoints/            states from which unfinished jobs continue

A job is stored completely or not at all, and a finished job is never repeated. A run that was
interrupted continues where it stopped, and gives the same tables bit by bit. If the data, the
config or a factory has changed, only the jobs that depend on it are played again. A folder of
something else, of a result with another format, or of an experiment with which this one has no data
set and no learner in common is refused.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import pyarrow as pa
import pyarrow.parquet as pq

import olx
from olx import _archive as archive
from olx._terminal import as_lines
from olx.lab.experiment import Tree
from olx.lab.fingerprint import Fingerprint, changes, job_name
from olx.lab.tables import SCHEMAS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = 3  # of the folder; a result of another format is not continued
FINGERPRINT = "story.json"  # the file of a fingerprint in this format
DERIVED = (*(f"{name}.parquet" for name in SCHEMAS), "report.html")
FILES = ("jobs.json", "data.json", "environment.json", "config.toml")
PACKAGES = ("olx", "jax", "jaxlib", "numpy", "scipy", "optax", "scikit-learn", "pyarrow")
REMEDY = "give another --out, or play it again from the start with --force"


class Result(NamedTuple):
    """A result in memory. Tables are of pyarrow: `result.curves.to_pandas()`."""

    folder: Path
    config: Tree
    environment: Tree
    configurations: pa.Table
    curves: pa.Table
    certificates: pa.Table
    confusions: pa.Table
    times: pa.Table

    @property
    def leaderboard(self) -> pa.Table:
        """The best configuration of each learner on each data set: rank, loss, metrics."""
        from olx.lab.report.paper import leaderboard_frame

        return leaderboard_frame(self)

    def table(self, columns: str = "data", metric: str = "loss") -> pa.Table:
        """Means and standard errors, learners against data sets; see `olx table` for LaTeX.

        columns: "data", or "learners" for the other way round.
        metric: "loss", or a metric of the result.
        """
        from olx.lab.report.paper import paper_table

        return paper_table(self, columns, metric).frame()

    def plot(self, kind: str, of: str | None = None, axes: "Axes | None" = None) -> "Axes":
        """Draw a chart of the report on axes of matplotlib.

        kind: "loss", "regret", "sensitivity", "pairs", "classes" or "ranks".
        of: which one, if there are several, such as the name of a data set.
        axes: where to draw; a new figure if None.
        """
        from olx.lab.report.plots import plot

        return plot(self, kind, of, axes)

    def report(self) -> Path:
        """Write the report into the folder of the result; the path of the page."""
        from olx.lab.report import write

        return write(self.folder)

    def __str__(self) -> str:
        from olx.lab.show import leaderboard

        return as_lines(leaderboard(self))

    def __repr__(self) -> str:
        return f"Result({str(self.folder)!r})"

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
        done = len(finished_jobs(folder))
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
    if name == "certificates" and "published" not in table.column_names:  # of an older result
        table = table.append_column("published", pa.nulls(table.num_rows, pa.float64()))
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


def text(folder: Path, name: str, loads: Callable[[str], Tree]) -> Tree:
    try:
        return loads((folder / name).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{folder / name} cannot be read: {error}.") from error


def finished_jobs(folder: Path) -> set[str]:
    """The names of the jobs that are done, of those that belong to the config."""
    if not (folder / "jobs.json").is_file():
        return set()
    names = text(folder, "jobs.json", json.loads)["jobs"]
    return {name for name in names if (folder / "jobs" / name).is_dir()}


def is_finished(folder: Path) -> bool:
    return all((folder / f"{name}.parquet").is_file() for name in SCHEMAS)


def put(folder: Path, job: str, tables: Mapping[str, pa.Table], fingerprint: Fingerprint) -> None:
    """Store the tables of a finished job, all of them or none.

    Two processes may store the same job: one that was thought to be lost, and the one after it.
    """
    with archive.adding_folder(folder / "jobs" / job) as draft:
        for name, table in tables.items():
            _write_table(draft, name, table)
        archive.write_json(draft / FINGERPRINT, fingerprint)
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


def check_folder(folder: Path, force: bool = False) -> None:
    """Refuse a folder that holds something else, before anything is written into it."""
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file; a result is a folder: give another --out.")
    if not (folder / "config.toml").is_file():
        # a process that was killed in `open_result` leaves these, and drafts
        ours = ("lock", "jobs", *FILES)
        there = folder.iterdir() if folder.exists() else ()
        if any(path.name not in ours and path.suffix != ".draft" for path in there):
            raise FileExistsError(
                f"{folder} is not empty and holds no result; give another --out, or remove it."
            )
        return
    found = format_of(folder)
    if found != FORMAT and not force:
        raise FileExistsError(
            f"{folder} holds a result of format {found}, of another version of olx; this version "
            f"writes format {FORMAT}: {REMEDY}."
        )


def open_result(
    folder: Path,
    config: str,
    fingerprints: Sequence[Fingerprint],
    digests: Mapping[str, object],
    environment: Mapping[str, object],
    force: bool = False,
) -> list[str]:
    """Open `folder` for the experiment with the text `config` and the jobs with these fingerprints.

    Jobs with other fingerprints stay until the run ends. What changed is returned, one line each.
    force: forget all jobs that are there.
    """
    check_folder(folder, force)
    there = stored_fingerprints(folder)
    names = [job_name(each) for each in fingerprints]
    if not force:
        _refuse_another(folder, list(there.values()), fingerprints)
    stale = {name: each for name, each in there.items() if force or name not in names}
    place = folder / "config.toml"
    fresh = place.is_file() and place.read_text(encoding="utf-8") == config and not stale
    if not fresh:  # what was made from the old jobs or the old config
        for name in DERIVED:
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "figures", ignore_errors=True)
    if force:
        for name in ("jobs", "checkpoints"):
            shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    archive.remove_drafts(folder)
    kept = [name for name in names if name in there and not force]
    archive.write_json(folder / "jobs.json", {"format": FORMAT, "jobs": names})
    archive.write_json(folder / "data.json", dict(digests))
    now = _environments(folder, environment, bool(kept))
    archive.write_json(folder / "environment.json", now)
    archive.write_text(place, config)
    return [] if force else _changes(list(stale.values()), fingerprints, len(kept))


def format_of(folder: Path) -> int:
    """The format of a result; 1 was before a folder said so."""
    if not (folder / "jobs.json").is_file():
        return 1
    return text(folder, "jobs.json", json.loads)["format"]


def stored_fingerprints(folder: Path) -> dict[str, Tree]:
    """The fingerprints of all jobs in a folder, by name."""
    places = sorted((folder / "jobs").glob(f"*/{FINGERPRINT}"))
    names = [place.parent.name for place in places if place.parent.suffix != ".draft"]
    return {name: text(folder / "jobs" / name, FINGERPRINT, json.loads) for name in names}


def _refuse_another(
    folder: Path, there: list[Fingerprint], fingerprints: Sequence[Fingerprint]
) -> None:
    for word in ("dataset", "learner"):
        if {each[word] for each in there} & {each[word] for each in fingerprints}:
            return
    if there:
        raise FileExistsError(
            f"{folder} holds the result of another config, with no data set and no learner in "
            f"common: {REMEDY}."
        )


def _changes(stale: list[Fingerprint], fingerprints: Sequence[Fingerprint], kept: int) -> list[str]:
    """What changed, and how many jobs are played, kept and dropped because of it."""
    key = lambda each: (each["dataset"], each["learner"], each["seed"])
    now = {key(each): each for each in fingerprints}
    again = [each for each in stale if key(each) in now]
    if not stale:
        return []
    reasons = [why for each in again for why in changes(each, now[key(each)])]
    counts = [f"{len(again)} of {len(fingerprints)} jobs are played again"] if again else []
    counts += [f"{kept} of {len(fingerprints)} are kept"] if kept else []
    dropped = len(stale) - len(again)
    counts += [f"{dropped} no longer belong to the config and are dropped"] if dropped else []
    return [*(f"{why}." for why in dict.fromkeys(reasons)), f"{'; '.join(counts)}."]


def note_environment(folder: Path, now: Mapping[str, object]) -> None:
    """Note the environment of a worker beside that of the run, if it is another one."""
    archive.write_json(folder / "environment.json", _environments(folder, now, True))


def _environments(folder: Path, now: Mapping[str, object], resumed: bool) -> Tree:
    """The environment of the first jobs, with those of later ones beside it."""
    if not resumed or not (folder / "environment.json").is_file():
        return dict(now)
    kept = text(folder, "environment.json", json.loads)
    bare = lambda one: {key: one[key] for key in one if key not in ("resumed", "seconds")}
    if all(bare(old) != bare(now) for old in [kept, *kept.get("resumed", [])]):
        kept["resumed"] = [*kept.get("resumed", []), dict(now)]
    return kept


def environment() -> Tree:
    devices = jax.local_devices()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "backend": jax.default_backend(),
        "devices": [device.device_kind for device in devices],
        "commit": _commit(),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of a checkout, marked if files differ from it; None outside a checkout."""
    here = Path(olx.__file__).parent
    try:
        git = lambda *words: subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
        return git("rev-parse", "HEAD") + (
            " changed" if git("status", "--short", "--", ".") else ""
        )
    except (OSError, subprocess.SubprocessError):
        return None
