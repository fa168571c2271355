"""Import factories outside the library, which a config names `mypackage.module:factory`.

The `olx` command looks for the module among those installed, beside the config, and in the working
directory, in this order. Python code uses the usual search path. A result is tied to the file of
the factory: if the file has changed, the jobs that use it are played again. Files that it imports
are not checked.

A result is data of someone else: its files name modules, and whoever reads it says which of them to
trust. No module is imported from inside a result.
"""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from olx._refusal import in_words
from olx.lab.config import ConfigError, nearest

FORM = re.compile(r"((?:[^\W\d]\w*\.)*[^\W\d]\w*):([^\W\d]\w*)")


class Loaded(NamedTuple):
    spec: ModuleSpec | None  # of the module; replaced if the module is reloaded
    files: list[Path]  # of the module, and of the module that defines the factory
    sha256: str  # of the files when they were imported


_LOADED: dict[str, Loaded] = {}  # by name; files may change after import


def look_in(*folders: Path) -> None:
    """Append folders to the search path, so that they hide no installed module.

    A folder inside a result is left out.
    """
    own = [str(folder) for folder in folders if not is_inside_result(folder)]
    sys.path += [folder for folder in dict.fromkeys(own) if folder not in sys.path]


def is_inside_result(place: Path) -> bool:
    """Whether a file or a folder is a result, or is inside one."""
    place = place.resolve()
    return any(
        (folder / "config.toml").is_file()
        and any((folder / name).is_file() for name in ("jobs.json", "configurations.parquet"))
        for folder in (place, *place.parents)
    )


def refuse_inside(where: str, module: str) -> None:
    """Refuse a module that is found inside a result."""
    package = module.partition(".")[0]
    found = importlib.util.find_spec(package)
    homes = [] if found is None else [found.origin, *(found.submodule_search_locations or ())]
    for home in homes:
        if home is not None and is_inside_result(Path(home)):
            raise ConfigError(
                f"{where}: the module {package} is found inside a result, at {home}, and no code "
                "of a result is run; keep it in a folder of your own, and call olx from there."
            )


def named_modules(tree: object) -> set[str]:
    """The modules of all names `package.module:factory` in a tree of plain values."""
    if isinstance(tree, str):
        form = FORM.fullmatch(tree.removeprefix("stream:"))
        return {form[1]} if form else set()
    inside = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    return {module for each in inside for module in named_modules(each)}


def find(where: str, name: str) -> Any:
    """The object that `name` stands for."""
    form = FORM.fullmatch(name)
    if form is None:
        raise ConfigError(f"{where}: write {name!r} as package.module:factory.")
    module = _import(where, form[1])
    if not hasattr(module, form[2]):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise ConfigError(
            f"{where}: {form[1]}, which is {getattr(module, '__file__', None)}, has no {form[2]}; "
            f"{nearest(form[2], public, 'name one of its functions.')}"
        )
    thing = getattr(module, form[2])
    readable(where, name, thing)
    _remember(where, name, module, thing)
    return thing


def readable(where: str, name: str, thing: object) -> None:
    """Refuse a function whose arguments cannot be read."""
    try:
        if callable(thing):
            inspect.signature(thing, eval_str=True)
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"{where}: the arguments of {name} cannot be read: {error}.") from error


def digests(tree: object) -> dict[str, dict[str, str]]:
    """The SHA-256 of every factory outside the library that an experiment names."""
    if isinstance(tree, str) and tree.removeprefix("stream:") in _LOADED:
        name = tree.removeprefix("stream:")
        loaded = _LOADED[name]
        if _sha256(loaded.files) != loaded.sha256:
            raise ConfigError(
                f"{name}: its file has changed since this process imported it; start Python again, "
                "or reload the module."
            )
        return {name: {"sha256": loaded.sha256}}
    inside = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    return {name: found for each in inside for name, found in digests(each).items()}


def _import(where: str, name: str) -> ModuleType:
    importlib.invalidate_caches()
    refuse_inside(where, name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            hint = "put it beside the config or into the working directory, or install it"
            hint = "leave out .py" if name.endswith(".py") else hint
            raise ConfigError(f"{where}: there is no module {error.name}; {hint}.") from None
        raise _failed(where, name, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(where, name, error) from error


def _failed(where: str, name: str, error: BaseException) -> ConfigError:
    said = " ".join(in_words(error).split()).rstrip(".")
    return ConfigError(f"{where}: the module {name} cannot be imported: {said}.")


def _remember(where: str, name: str, module: ModuleType, thing: object) -> None:
    if name in _LOADED and _LOADED[name].spec is module.__spec__:
        return
    home = sys.modules.get(getattr(thing, "__module__", None) or "", module)
    homes = [module] if home.__name__.split(".")[0] == "olx" else [module, home]
    places = [getattr(each, "__file__", None) for each in homes]
    files = sorted({Path(place) for place in places if place})
    if not files:
        raise ConfigError(
            f"{where}: {name} has no file that a result could be tied to; put it into a module."
        )
    _LOADED[name] = Loaded(module.__spec__, files, _sha256(files))


def _sha256(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
