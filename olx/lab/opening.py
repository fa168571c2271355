"""Open the folder of a result: keep the jobs whose story is the same, and say what changed.

A folder of something else, of a result with another format, or of an experiment with which this one
has no data set and no learner in common is refused.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from olx import _archive as archive
from olx.lab import schemas, store
from olx.lab.stories import Story, changes, name_of

REMEDY = "give another --out, or play it again from the start with --force"
DERIVED = (*(f"{name}.parquet" for name in schemas.SCHEMAS), "report.html")
FILES = ("jobs.json", "data.json", "environment.json", "config.toml")


def refuse_foreign(folder: Path, force: bool = False) -> None:
    """Refuse a folder that holds something else, before anything is written into it."""
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file; a result is a folder: give another --out.")
    if not (folder / "config.toml").is_file():
        ours = ("lock", "jobs", *FILES)  # these and drafts: left by a process killed in `begin`
        there = folder.iterdir() if folder.exists() else ()
        if any(path.name not in ours and path.suffix != ".draft" for path in there):
            raise FileExistsError(
                f"{folder} is not empty and holds no result; give another --out, or remove it."
            )
        return
    found = format_of(folder)
    if found != store.FORMAT and not force:
        raise FileExistsError(
            f"{folder} holds a result of format {found}, of another version of olx; this version "
            f"writes format {store.FORMAT}: {REMEDY}."
        )


def begin(
    folder: Path,
    config: str,
    stories: Sequence[Story],
    digests: Mapping[str, Any],
    environment: Mapping[str, Any],
    force: bool = False,
) -> list[str]:
    """Open `folder` for the experiment with the text `config` and the jobs with these stories.

    Jobs with other stories stay until the run ends. What changed is returned, one line each.
    force: forget all jobs that are there.
    """
    refuse_foreign(folder, force)
    there = stored(folder)
    names = [name_of(told) for told in stories]
    if not force:
        _refuse_another(folder, list(there.values()), stories)
    stale = {name: told for name, told in there.items() if force or name not in names}
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
    archive.write_json(folder / "jobs.json", {"format": store.FORMAT, "jobs": names})
    archive.write_json(folder / "data.json", dict(digests))
    now = _environments(folder, environment, bool(kept))
    archive.write_json(folder / "environment.json", now)
    archive.write_text(place, config)
    return [] if force else _told(list(stale.values()), stories, len(kept))


def format_of(folder: Path) -> int:
    """The format of a result; 1 was before a folder said so."""
    if not (folder / "jobs.json").is_file():
        return 1
    return store.text(folder, "jobs.json", json.loads)["format"]


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The stories of all jobs in a folder, by name."""
    places = sorted((folder / "jobs").glob("*/story.json"))
    names = [place.parent.name for place in places if place.parent.suffix != ".draft"]
    return {name: store.text(folder / "jobs" / name, "story.json", json.loads) for name in names}


def _refuse_another(folder: Path, there: list[Story], stories: Sequence[Story]) -> None:
    for word in ("dataset", "learner"):
        if {told[word] for told in there} & {told[word] for told in stories}:
            return
    if there:
        raise FileExistsError(
            f"{folder} holds the result of another config, with no data set and no learner in "
            f"common: {REMEDY}."
        )


def _told(stale: list[Story], stories: Sequence[Story], kept: int) -> list[str]:
    """What changed, and how many jobs are played, kept and dropped because of it."""
    key = lambda told: (told["dataset"], told["learner"], told["seed"])
    now = {key(told): told for told in stories}
    again = [told for told in stale if key(told) in now]
    if not stale:
        return []
    reasons = [why for told in again for why in changes(told, now[key(told)])]
    counts = [f"{len(again)} of {len(stories)} jobs are played again"] if again else []
    counts += [f"{kept} of {len(stories)} are kept"] if kept else []
    dropped = len(stale) - len(again)
    counts += [f"{dropped} no longer belong to the config and are dropped"] if dropped else []
    return [*(f"{why}." for why in dict.fromkeys(reasons)), f"{'; '.join(counts)}."]


def note_environment(folder: Path, now: Mapping[str, Any]) -> None:
    """Note the environment of a worker beside that of the run, if it is another one."""
    archive.write_json(folder / "environment.json", _environments(folder, now, True))


def _environments(folder: Path, now: Mapping[str, Any], resumed: bool) -> dict[str, Any]:
    """The environment of the first jobs, with those of later ones beside it."""
    if not resumed or not (folder / "environment.json").is_file():
        return dict(now)
    kept = store.text(folder, "environment.json", json.loads)
    bare = lambda one: {key: one[key] for key in one if key not in ("resumed", "seconds")}
    if all(bare(old) != bare(now) for old in [kept, *kept.get("resumed", [])]):
        kept["resumed"] = [*kept.get("resumed", []), dict(now)]
    return kept
