"""Rows that Python code gives, in place of a file.

A loader of yours, which a config names `mypackage.module:load`, returns one of these; so do the
arguments of `olx.lab.compare`:

(X, y)      features, an array or a SciPy sparse matrix of one row per round, and labels; prepared
            as the rows of a file are. (X, None) for rows without labels, such as prices.
a frame     of pandas, polars or pyarrow, with a column of labels
Rounds      played as they are; also an `olx.streams.Stream`
"""

from typing import Any

import jax
import numpy as np
import scipy.sparse

from olx._refusal import in_words, own_name
from olx.core import Rounds
from olx.lab import user_factories
from olx.lab.config import nearest
from olx.lab.data.csv_table import Named
from olx.lab.data.framed import Reading, features_and_labels
from olx.lab.data.generated import from_stream
from olx.lab.data.readers import Rows
from olx.lab.names import parameters
from olx.streams import Stream

LEGAL = "(X, y), a frame of pandas, polars or pyarrow, Rounds, or a Stream"


def is_loader(name: str, schemes: tuple[str, ...]) -> bool:
    """Whether the name of a data set is that of a function outside the library."""
    return user_factories.FORM.fullmatch(name) is not None and name.partition(":")[0] not in schemes


def called(name: str, arguments: dict[str, Any]) -> Any:
    """What the loader `name` returns."""
    loader = user_factories.find(name, name)
    if not callable(loader):
        return loader
    known = parameters(loader)
    if "key" in known:
        raise ValueError(f"{name} draws with a key: name it stream:{name}, and it gets one.")
    for word in arguments:
        starred = any(each.kind is each.VAR_KEYWORD for each in known.values())
        if word not in known and not starred:
            near = nearest(word, list(known)) if known else "it takes none."
            raise ValueError(f"{name} has no argument {word}; {near}")
    for word, each in known.items():
        must = each.default is each.empty and each.kind is not each.VAR_KEYWORD
        if must and word not in arguments:
            raise ValueError(f"{name} needs the argument {word}; give it in arguments.")
    try:
        made = loader(**arguments)
    except Exception as error:
        said = " ".join(in_words(error).split()).rstrip(".")
        raise ValueError(f"{name} failed: {said}.") from error
    if made is None:
        raise ValueError(f"{name} returned nothing; it must return {LEGAL}.")
    return made


def is_stream(thing: Any) -> bool:
    return isinstance(thing, Rounds | Stream)


def stream_of(name: str, thing: Any) -> Any:
    """Rounds as a data set."""
    stream = Stream(thing, None) if isinstance(thing, Rounds) else thing
    return from_stream(name, jax.tree.map(np.asarray, stream))


def rows_of(name: str, thing: Any, reading: Reading) -> Rows:
    """(X, y) or a frame as features and labels."""
    if isinstance(thing, tuple) and len(thing) == 2:
        if reading.target is not None:
            raise ValueError(f"{name}: target is for a frame; the labels are y of (X, y).")
        return _pair(name, *thing)
    if not hasattr(thing, "columns") or not hasattr(thing, "__getitem__"):
        raise ValueError(f"{name}: the rows must be {LEGAL}, got a {type(thing).__name__}.")
    with own_name(name):
        x, y, columns, target = features_and_labels(name, Named(thing), reading, labelled=True)
    return Rows(x, y, columns=columns, target=target)


def _pair(name: str, x: Any, y: Any) -> Rows:
    x = scipy.sparse.csr_matrix(x) if scipy.sparse.issparse(x) else np.asarray(x)
    labels = None if y is None else np.asarray(y)
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise ValueError(
            f"{name}: X must hold numbers, one row per round; got shape {x.shape} of {x.dtype}."
        )
    if labels is not None and (labels.ndim not in (1, 2) or len(labels) != x.shape[0]):
        raise ValueError(
            f"{name}: y must have one label per row; X has {x.shape[0]} rows, y has shape "
            f"{labels.shape}."
        )
    return Rows(x, labels)
