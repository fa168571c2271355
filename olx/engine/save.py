"""`save` and `load`: a learner and its state in one file.

The file holds a line with the name and the version of the format, the learner and the state in
words (JSON), the arrays, and a digest of all of it. It holds no code and no pickle. A function is
named as `module:name`, so it must live at the top of a module. A record is its class and its
fields. To read a file looks names up in an allow-list (`olx.engine.savable`) and builds records; it
calls no function that the file names.
"""

import functools
import os
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PyTree

from olx import _archive as archive
from olx import _check as check
from olx._call import Call
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Batch, Learner, Run
from olx.engine.numbers import refuse_tracers
from olx.engine.savable import Unsavable, check_trust, fields_of, find, is_record, name_of
from olx.facts import Facts

_FIRST, _VERSION = b"olx learner and state, format ", 1
_FUNCTIONS = ("init_fn", "predict_fn", "update_fn")


class Saved(NamedTuple):
    """What a file holds."""

    learner: Learner
    state: PyTree


@public
def save(path: str | os.PathLike, learner: Learner, state: PyTree) -> None:
    """Write a learner and its state to a file that `olx.load` reads.

    The functions of a learner of your own must live at the top of a module that can be imported;
    the file names them. The file is complete or not there, also if several processes write it: it
    is renamed when it is written.

    >>> import jax.numpy as jnp, olx, os, tempfile
    >>> learner = olx.linear(olx.ogd(0.1))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.olx")
    >>> olx.save(path, learner, learner.init(jnp.zeros(3)))
    >>> learner, state = olx.load(path)
    >>> olx.predict(learner, state, jnp.ones((2, 3))).tolist()
    [0.0, 0.0]
    """
    path = _path(path)
    if isinstance(learner, Batch):
        raise RefusedType("`learner` is a batch; save one of its learners, as in batch[0].")
    check.instance("learner", learner, Learner)
    if isinstance(state, Run):
        raise RefusedType("`state` is a Run; give its state, as `run.state`.")
    if path.is_dir():
        raise IsADirectoryError(f"save: {path} is a folder; give the path of a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save: there is no folder {path.parent}; make it first.")
    arrays: list[np.ndarray] = []
    try:
        leaves = jax.tree.leaves((learner, state))
        remedy = "return the state, and save it then"
        refuse_tracers(leaves, "writes numbers to a file", remedy)
        words = {"learner": encode(learner, arrays), "state": encode(state, arrays)}
        header = {**words, "arrays": [archive.kind_of(array) for array in arrays]}
    except Unsavable as problem:
        raise RefusedType(f"{problem}.") from None
    except (RecursionError, SystemError):  # the second where JAX flattens it
        raise RefusedType("the learner or its state is nested too deeply.") from None
    parts = [_FIRST + b"%d\n" % _VERSION, *archive.packed(header, arrays)]
    archive.write(path, [*parts, archive.seal_of(parts)])


@public
def load(path: str | os.PathLike, trust: tuple[str, ...] | list[str] = ()) -> Saved:
    """Read a learner and its state from a file of `olx.save`.

    To load a file runs no code that the file chooses. It may name functions of the parts of olx
    that make learners, optimizers of optax and some functions of JAX; anything else is refused.

    trust: the names of modules outside olx whose functions the file may name, such as your own. A
        package stands for all modules in it. They are imported, as by `import`.
    """
    trust = check_trust(trust)
    place = _path(path)
    if place.is_dir():
        raise IsADirectoryError(f"load: {place} is a folder; give the path that `olx.save` wrote.")
    if not place.is_file():
        raise FileNotFoundError(
            f"load: there is no file {place}; give the path that `olx.save` wrote."
        )
    body = _body(place, place.read_bytes())
    try:
        header, rest = archive.header_in(body)
        if not isinstance(header, dict) or tuple(header) != (*Saved._fields, "arrays"):
            raise archive.Damaged("its header is not that of a learner and its state")
        arrays = dict(enumerate(archive.arrays_in(rest, header["arrays"])))
        learner, state = (decode(header[part], arrays, trust) for part in Saved._fields)
        if arrays:
            raise archive.Damaged(f"array {min(arrays)} belongs to nothing")
        _check_learner(learner)
    except Unsavable as problem:
        raise RefusedValue(f"{place}: {problem}.") from None
    except archive.Damaged as problem:
        raise RefusedValue(f"{place}: {problem}; {_AGAIN}.") from None
    except RecursionError:
        raise RefusedValue(f"{place}: it is nested too deeply; {_AGAIN}.") from None
    return Saved(learner, state)


_AGAIN = "`olx.save` wrote no such file: save the learner again"


def _path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        seen = type(path).__name__
        raise RefusedType(f"`path` must be the path of a file, got {seen}; it comes first.")
    return Path(path)


def _body(path: Path, whole: bytes) -> memoryview:
    """What is between the first line and the seal; refuses foreign, newer and damaged files."""
    first, _, rest = whole.partition(b"\n")
    version = first.removeprefix(_FIRST)
    if not first.startswith(_FIRST) or not version.isdigit() or len(version) > 9:
        raise RefusedValue(f"{path} is not a file of `olx.save`.")
    if int(version) > _VERSION:
        raise RefusedValue(
            f"{path} has format {int(version)}; this version of olx reads up to {_VERSION}. "
            "Install a newer olx."
        )
    if int(version) < 1:
        raise RefusedValue(f"{path} has format {int(version)}; {_AGAIN}.")
    body = memoryview(whole)[: -archive.SEAL]
    if archive.seal_of([body]) != whole[-archive.SEAL :]:
        raise RefusedValue(f"{path} is truncated or damaged; save it again.")
    return body[len(whole) - len(rest) :]


def _check_learner(learner: object) -> None:
    """Refuse what is not a learner, before anyone plays it."""
    if not isinstance(learner, Learner):
        raise archive.Damaged(f"its learner is a {type(learner).__name__}")
    parts = {"facts": Facts, "needs": tuple, "theorems": tuple, "name": Call}
    wrong = [name for name in _FUNCTIONS if not callable(getattr(learner, name))]
    wrong += [name for name, kind in parts.items() if not isinstance(getattr(learner, name), kind)]
    if wrong:
        seen = type(getattr(learner, wrong[0])).__name__
        raise archive.Damaged(f"the {wrong[0]} of its learner is a {seen}")


_FORMS = {  # the keys of each form, in order
    ("float",),
    ("key", "data"),
    ("array", "host"),
    ("Partial", "args", "keywords"),
    ("partial", "args", "keywords"),
    ("record", "fields"),
    ("tuple",),
    ("list",),
    ("dict",),
    ("dtype",),
    ("bytes",),
    ("name",),
}


def encode(thing: Any, arrays: list[np.ndarray]) -> Any:
    """`thing` as values of JSON; its arrays are appended to `arrays`."""
    again = functools.partial(encode, arrays=arrays)
    if isinstance(thing, float):
        return {"float": repr(float(thing))}
    if isinstance(thing, str | int | None):
        return thing
    if isinstance(thing, jax.Array) and jax.numpy.issubdtype(thing.dtype, jax.dtypes.prng_key):
        kind = str(jax.random.key_impl(thing))
        return {"key": kind, "data": again(jax.random.key_data(thing))}
    if isinstance(thing, jax.Array | np.ndarray | np.generic):
        arrays.append(np.asarray(thing))
        if not archive.is_numeric(arrays[-1].dtype):
            raise Unsavable(f"an array of dtype {arrays[-1].dtype} cannot be saved; keep numbers")
        return {"array": len(arrays) - 1, "host": not isinstance(thing, jax.Array)}
    if isinstance(thing, functools.partial):  # also a `Partial` of JAX
        kind = "Partial" if isinstance(thing, Partial) else "partial"
        given = [again(part) for part in thing.args]
        return {kind: again(thing.func), "args": given, "keywords": _each(again, thing.keywords)}
    if is_record(type(thing)):
        fields = {name: again(getattr(thing, name)) for name in fields_of(type(thing))}
        return {"record": name_of(type(thing)), "fields": fields}
    if type(thing) in (tuple, list):
        return {type(thing).__name__: [again(part) for part in thing]}
    if isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        return {"dict": _each(again, thing)}
    if isinstance(thing, np.dtype):
        return {"dtype": str(thing)}
    if isinstance(thing, bytes):
        return {"bytes": thing.hex()}
    if callable(thing):
        return {"name": name_of(thing)}
    raise Unsavable(f"a {type(thing).__name__} cannot be saved; keep it in an array or a number")


def decode(words: object, arrays: dict[int, np.ndarray], trust: tuple[str, ...]) -> Any:
    """The thing that `encode` encoded; `trust` names further modules that names may come from.

    arrays: by number; each is taken out when it is used, so that none is used twice.
    """
    if isinstance(words, str | int | None):
        return words
    if not isinstance(words, dict) or tuple(words) not in _FORMS:
        raise _meaningless(words)
    again = functools.partial(decode, arrays=arrays, trust=trust)
    match words:
        case {"float": str(number)}:
            return _made("a number", float, number)
        case {"key": str(kind), "data": dict(data)}:
            return _made("a random key", jax.random.wrap_key_data, again(data), impl=kind)
        case {"array": int(index), "host": bool(host)}:
            if type(index) is bool or index not in arrays:
                raise Unsavable(f"array {index} is not there, or is used twice")
            array = arrays.pop(index)
            return array.copy() if host else jax.numpy.asarray(array)
        case {"Partial": function, "args": list(args), "keywords": dict(named)}:
            given = map(again, args)
            return _made("a Partial", Partial, again(function), *given, **_each(again, named))
        case {"partial": function, "args": list(args), "keywords": dict(named)}:
            given, named = map(again, args), _each(again, named)
            return _made("a partial", functools.partial, again(function), *given, **named)
        case {"record": str(name), "fields": dict(fields)}:
            fields = _of_today(name, fields)
            return _made(name, _record(name, fields, trust), **_each(again, fields))
        case {"tuple": list(parts)}:
            return tuple(map(again, parts))
        case {"list": list(parts)}:
            return list(map(again, parts))
        case {"dict": dict(parts)}:
            return _each(again, parts)
        case {"dtype": str(name)} if name.isalnum():
            return _made("a dtype", np.dtype, name)
        case {"bytes": str(digits)}:
            return _made("bytes", bytes.fromhex, digits)
        case {"name": str(name)}:
            return find(name, trust)
    raise _meaningless(words)


_OF_0_1 = {  # fields of records in files of olx 0.1: their names now, or None if they are gone
    "olx.facts:Facts": {"conservative": None},
    "olx.facts:Separable": {"still": "keeps_decision"},
}


def _of_today(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    now = _OF_0_1.get(name, {})
    renamed = {now.get(field, field): part for field, part in fields.items()}
    return {field: part for field, part in renamed.items() if field is not None}


def _record(name: str, fields: dict[str, Any], trust: tuple[str, ...]) -> type:
    """The class of a record; refuses fields that it does not have, and missing ones."""
    kind = find(name, trust)
    if not is_record(kind):
        raise Unsavable(f"{name} is not a record")
    known = fields_of(kind)
    for field in fields:
        if field not in known:
            raise Unsavable(
                f"the record {name} has no field {field[:40]!r}. The file is of another version, "
                "or not of `olx.save`; save the learner again"
            )
    for field, must in known.items():
        if must and field not in fields:
            raise Unsavable(f"the record {name} lacks the field {field!r}")
    return kind


def _made(what: str, make: Callable[..., PyTree], *args: object, **named: object) -> Any:
    try:
        return make(*args, **named)
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise Unsavable(f"{what} cannot be made of what it holds ({said})") from error


def _meaningless(words: object) -> Unsavable:
    return Unsavable(f"{reprlib.repr(words)} has no meaning in it")


def _each(function: Callable[[Any], Any], parts: dict[str, Any]) -> dict[str, Any]:
    return {name: function(part) for name, part in parts.items()}
