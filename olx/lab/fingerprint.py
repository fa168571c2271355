"""The fingerprint of a job: everything that can change its numbers.

It holds the rows of the data, the keys of the config that the job reads, the files of factories and
metrics outside the library, and the version of olx. The name of a job ends in a digest of its
fingerprint, so a stored job with the same fingerprint is not run again. A title, a description or a
published number is in no fingerprint: to change it repeats nothing.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import jax
import msgspec
import numpy as np

from olx.engine.device import data_of
from olx.lab import user_factories
from olx.lab.experiment import Data, Experiment, Player, Tree

Fingerprint = Tree


def fingerprint(
    experiment: Experiment, entry: Data, player: Player, seed: int, rows: Mapping[str, object]
) -> Fingerprint:
    """The fingerprint of a job on a data set with the digest `rows`."""
    keys = {"data": _keys(entry), "learner": _keys(player), **_settings(experiment)}
    return {
        "dataset": entry.label or entry.name,
        "learner": player.label or player.name,
        "seed": seed,
        "olx": version("olx"),
        "rows": dict(rows),
        "factories": user_factories.digests(keys),
        "keys": keys,
    }


def job_name(of: Fingerprint) -> str:
    """The name of the job with this fingerprint."""
    text = json.dumps(of, sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{slug(of['dataset'])}.{slug(of['learner'])}.{of['seed']}.{digest}"


def changes(then: Fingerprint, now: Fingerprint) -> Iterator[str]:
    """What differs between two fingerprints of the same data set and learner, one line each."""
    if then["olx"] != now["olx"]:
        yield f"olx {then['olx']} then, {now['olx']} now"
    for name in {**then["factories"], **now["factories"]}:
        both = then["factories"].get(name), now["factories"].get(name)
        if None not in both and both[0] != both[1]:
            yield f"the file of {name} changed"
    old, new = dict(_flat(then["keys"])), dict(_flat(now["keys"]))
    differ = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    owners = {"data": f"data {now['dataset']}: ", "learner": f"learner {now['learner']}: "}
    for key in differ:
        owner, _, rest = key.partition(".")
        words = f"{owners[owner]}{rest}" if owner in owners else key
        yield f"{words} = {_shown(old, key)} then, {_shown(new, key)} now"
    asked = any(key.startswith("data.") for key in differ)  # other rows are then no surprise
    if then["rows"] != now["rows"] and not asked:
        before, after = then["rows"].get("rows"), now["rows"].get("rows")
        same = f"{after} rows as before, other numbers"
        counted = same if before == after else f"{before} rows then, {after} now"
        yield f"data {now['dataset']} changed: {counted}"


def _keys(entry: Data | Player) -> Tree:
    """All keys of a table of the config, also those left out."""
    silent = "label", "arguments", "unpack", "group", "id", "dates"  # the rows say the rest
    own = [name for name in entry.__struct_fields__ if name not in silent]
    if isinstance(entry, Data) and not entry.name.startswith("stream:"):
        own = [name for name in own if name not in ("name", "sha256", "thing")]  # the rows say it
    plain = {name: _plain(getattr(entry, name)) for name in own if name != "thing"}
    given = {} if "thing" not in own or entry.thing is None else {"thing": _given(entry.thing)}
    return plain | given | _plain(entry.arguments)


def _settings(experiment: Experiment) -> Tree:
    """The keys of an experiment on which the numbers of its jobs depend."""
    names = ["protocol", "precision", "loss", "metrics", "comparator", "curve"]
    names += ["test"] if experiment.protocol == "split" else []
    names += ["delay"] if experiment.delay else []
    names += ["radius"] if experiment.comparator == "best" else []
    names += ["bound"] if experiment.comparator is not None else []
    names += ["shifts"] if experiment.bound is not None else []
    found = {name: _plain(getattr(experiment, name)) for name in names}
    return found | {"budget": {"memory": experiment.budget.memory}}


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=_with_digest)


def _given(thing: object) -> str:
    """What Python code gives in place of a name: its code, or all of its numbers.

    A function without a file is named by its address, so that it is played again.
    """
    if callable(thing) and hasattr(thing, "__qualname__"):
        return _with_digest(thing)
    leaves, structure = jax.tree.flatten(thing)
    digest = hashlib.sha256(str(structure).encode())
    for leaf in map(np.asarray, jax.tree.map(data_of, leaves)):
        digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
    return f"{type(thing).__name__} {digest.hexdigest()[:12]}"


def _with_digest(thing: object) -> str:
    """A function with a digest of its code, or a value."""
    if not callable(thing) or not hasattr(thing, "__qualname__"):
        return repr(thing)
    try:
        text = inspect.getsource(thing)
    except (OSError, TypeError):
        return repr(thing)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{thing.__module__}:{thing.__qualname__} {digest}"


def _flat(tree: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(keys: Mapping[str, object], key: str) -> str:
    if keys.get(key) is None:
        return "nothing"
    text = json.dumps(keys[key], ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def slug(label: str) -> str:
    """A label as a part of the name of a file."""
    return re.sub(r"[^\w-]+", "_", label)[:40]
