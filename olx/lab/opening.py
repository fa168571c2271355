"""Open the folder of a result; it must be of the same experiment, data and factories."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olx.lab import store


def begin(
    folder: Path, config: str, digests: Mapping[str, Any], environment: Mapping[str, Any]
) -> None:
    """Open `folder` for the experiment with the text `config` and these digests.

    A folder of another experiment, or of other data or factories, is refused.
    """
    place = folder / "config.toml"
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file; a result is a folder: give another --out.")
    if place.is_file():
        if place.read_text() != config:
            raise FileExistsError(
                f"{folder} holds the result of another config; give another --out, or remove it."
            )
        _refuse_other_data(folder, digests)
        kept = store.text(folder, "environment.json", json.loads)
        seen = [kept, *kept.get("resumed", [])]
        if all({**old, "resumed": None} != {**environment, "resumed": None} for old in seen):
            kept["resumed"] = [*kept.get("resumed", []), dict(environment)]
            _replace(folder / "environment.json", json.dumps(kept, indent=1))
        return
    drafts = [f"{name}.draft" for name in ("data", "environment", "config")]
    ours = ("jobs", "data.json", "environment.json", *drafts)  # left by a process killed in `begin`
    if folder.exists() and any(path.name not in ours for path in folder.iterdir()):
        raise FileExistsError(
            f"{folder} is not empty and holds no result; give another --out, or remove it."
        )
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    _replace(folder / "data.json", json.dumps(dict(digests), indent=1))
    _replace(folder / "environment.json", json.dumps(dict(environment), indent=1))
    _replace(place, config)


def _refuse_other_data(folder: Path, digests: Mapping[str, Any]) -> None:
    place = folder / "data.json"
    if not place.is_file():
        raise FileExistsError(
            f"{folder} does not say which data it was played on; give another --out, or remove it."
        )
    kept = store.text(folder, "data.json", json.loads)
    for name, now in digests.items():
        then = kept.get(name, {})
        if then != now:
            what = f"on other data: {name} has changed since then ({then.get('rows')} rows then, "
            what += f"{now.get('rows')} now)"
            if "rows" not in now:
                what = f"by another {name}: its file has changed since then"
            raise FileExistsError(
                f"{folder} holds a result {what}; give another --out, or remove it."
            )


def _replace(place: Path, text: str) -> None:
    draft = place.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(place)
