"""What a saved file may name: an allow-list of functions and records.

A file of `olx.save` holds names in place of code, as `module:name`. A name is read if

1. it is one of the functions of JAX below, which compute arrays from arrays; or its module is one
   that makes learners; or the caller trusts the module or its package,
2. no step from the module to the object leads through another module, and no part of the name
   starts with two underscores,
3. the object is defined there under that name, not just imported, and
4. it is a function or the class of a record: a `NamedTuple` or a dataclass.

To find a name imports its module, and calls nothing. The modules that make learners open no files,
start no processes and call no functions on the host; `tests/engine/test_hostile_files.py` reads
their source for that. So whatever a file names, `olx.load` and the drivers compute numbers only.
"""

import contextlib
import dataclasses
import functools
import importlib
import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax, nn

from olx._refusal import RefusedType, RefusedValue, in_words

LEARNERS = (  # packages and modules whose functions and records make learners
    "olx._call",
    "olx._clock",
    "olx._numeric",
    "olx.alignment",
    "olx.boosting",
    "olx.certificate",
    "olx.classification",
    "olx.convex",
    "olx.core",
    "olx.experts",
    "olx.facts",
    "olx.first_order",
    "olx.frameworks",
    "olx.interop.optax.from_optax",
    "olx.lab.tasks.baselines",
    "olx.losses",
    "olx.meta",
    "olx.mirrors",
    "olx.multiclass",
    "olx.needs",
    "olx.ranking",
    "olx.regularizers",
    "olx.schedules",
    "olx.second_order",
    "olx.structured",
    "olx.theorem",
    "olx.wrapper",
)
ON_HOST = ("olx.boosting.oracle", "olx.boosting.weak")  # they call functions on the host
DRAWING = tuple(  # methods of records that load matplotlib
    f"olx.{kind}.plot"
    for kind in ("core:Run", "certificate:Certificate", "certificate:Certificates")
)
OPTIMIZERS = ("optax._src.alias", "optax.contrib", "optax.tree_utils._tree_math")
RECORDS = ("optax",)  # the states of optimizers; of its functions only those above
_ARRAYS = {  # functions from arrays to arrays, and kinds of numbers
    np: "bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    jnp: """abs absolute add all any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
        argmin bfloat16 bool_ ceil clip cos cosh cumsum divide dot equal exp exp2 expm1 float16
        float32 float64 floor greater greater_equal hypot inner int8 int16 int32 int64 isfinite
        isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not
        logical_or matmul max maximum mean median min minimum mod multiply nan_to_num negative
        not_equal power prod ravel reciprocal remainder rint round sign sin sinh sort sqrt square
        std subtract sum tan tanh trace transpose true_divide uint8 uint16 uint32 uint64 var vdot
        where""",
    lax: """abs add cos exp expm1 log log1p logistic max min mul neg pow rsqrt sign sin sqrt square
        stop_gradient sub tanh""",
    nn: """celu elu gelu glu hard_sigmoid hard_tanh leaky_relu log_sigmoid log_softmax logsumexp
        mish relu relu6 selu sigmoid silu soft_sign softmax softplus squareplus""",
    jax.scipy.special: """betaln digamma entr erf erfc erfinv expit gammaln kl_div log_ndtr logit
        logsumexp ndtr rel_entr xlog1py xlogy""",
}
_BY_NAME = {
    f"{module.__name__}:{name}": vars(module)[name]
    for module, names in _ARRAYS.items()
    for name in names.split()
    if name in vars(module)
}
_BY_OBJECT = {id(thing): name for name, thing in reversed(_BY_NAME.items())}
_FUNCTIONS = (
    types.FunctionType,
    jax.custom_jvp,
    jax.custom_vjp,
    type(jax.jit(abs)),
    type(functools.cache(abs)),
)


class Unsavable(Exception):
    """Something that a file cannot hold; its text says what, and what to do."""


def name_of(thing: object) -> str:
    """`module:name` of a function or a class; refuses what `find` would not find."""
    if id(thing) in _BY_OBJECT:
        return _BY_OBJECT[id(thing)]
    module, path = _home(thing)
    if module == "__main__":
        raise Unsavable(
            f"{path} lives in the program itself, which another program cannot import; move it to "
            "a module of its own"
        )
    with contextlib.suppress(ImportError):
        if module and path and _defined(module, path) is thing:
            return f"{module}:{path}"
    shown = f"{module}.{path}" if path else repr(thing)
    raise Unsavable(
        f"{shown} is no function that is found under that name, so it cannot be saved; move it to "
        "the top of a module, and bind its numbers with `jax.tree_util.Partial`"
    )


def find(name: str, trust: tuple[str, ...]) -> Any:
    """The function or the class called `name`; `trust` names further modules to look in."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    module, _, path = name.partition(":")
    if len(name) > _LONGEST or not _are_words(module) or not _are_words(path):
        raise Unsavable(f"{name[:80]!r} is not the name of a function; {_FOREIGN}")
    if name in DRAWING:
        raise Unsavable(f"{name} draws a picture and makes no learner; {_FOREIGN}")
    if not is_in(module, trust) and not _makes_learners(module):
        raise Unsavable(f"{name} is not a part of olx that makes learners. {_remedy(module)}")
    try:
        found = _defined(module, path)
    except Exception as error:  # whatever a module of the user does
        gone = isinstance(error, ModuleNotFoundError) and is_in(error.name or "", ("olx",))
        if not gone:
            raise Unsavable(
                f"{module} cannot be imported ({in_words(error)}); install it, or mend it"
            ) from error
        found = None
    plain = is_in(module, trust) or not is_in(module, RECORDS) or is_in(module, OPTIMIZERS)
    if found is None or not (plain or is_record(found)):
        raise Unsavable(
            f"{name} is no function and no record that {module} defines. The file is of another "
            "version, or not of `olx.save`; save the learner again"
        )
    return found


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of `packages`, or in one of them."""
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def is_record(kind: object) -> bool:
    """Whether this is the class of a NamedTuple or of a dataclass."""
    if not isinstance(kind, type):
        return False
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def fields_of(kind: type) -> dict[str, bool]:
    """The fields of a record, and whether each must be given."""
    if not dataclasses.is_dataclass(kind):
        defaults: Any = kind._field_defaults  # pyright: ignore[reportAttributeAccessIssue]
        return {name: name not in defaults for name in kind._fields}  # pyright: ignore
    none = dataclasses.MISSING
    return {
        field.name: field.default is none and field.default_factory is none
        for field in dataclasses.fields(kind)
        if field.init
    }


def check_trust(trust: object) -> tuple[str, ...]:
    """The names of modules that are trusted; refuses a single string, and what is no name."""
    if isinstance(trust, str) or not isinstance(trust, tuple | list | set | frozenset):
        again = f"; write trust=[{trust!r}]" if isinstance(trust, str) else ""
        raise RefusedType(f"`trust` must be a list of modules, got {trust!r}{again}.")
    for module in trust:
        if not isinstance(module, str) or not _are_words(module):
            raise RefusedValue(
                f"`trust` must hold names of modules, such as 'mypackage', got {module!r}."
            )
    return tuple(trust)


_LONGEST = 500  # characters of a name
_FOREIGN = "the file was not written by `olx.save`: do not use it"


def _remedy(module: str) -> str:
    package = module.partition(".")[0]
    if package == "olx" or package in sys.stdlib_module_names:
        return _FOREIGN[0].upper() + _FOREIGN[1:]
    if package in ("jax", "jaxlib", "numpy", "optax", "scipy"):
        return "Call it in a function of a module of your own, and save the learner again"
    return f"If you trust the file and {package}, load it with trust=[{package!r}]"


def _makes_learners(module: str) -> bool:
    is_test = module.endswith(("_test", "test_utils"))
    return is_in(module, (*LEARNERS, *RECORDS)) and not is_in(module, ON_HOST) and not is_test


def _are_words(dotted: str) -> bool:
    """Whether these are identifiers with dots between them, none of them for Python itself."""
    return all(part.isidentifier() and not part.startswith("__") for part in dotted.split("."))


def _home(thing: object) -> tuple[str | None, str | None]:
    """The module and the name under which a thing says that it is defined."""
    return getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)


def _defined(module: str, path: str) -> Any:
    """The function or record that is defined in `module` under the name `path`, or None.

    It may be inside a class; a step to a module, or to anything that the module imported, ends the
    search.
    """
    here: Any = importlib.import_module(module)
    *classes, last = path.split(".")
    steps = vars(here)
    for name in classes:
        kind = steps.get(name)
        if not isinstance(kind, type) or kind.__module__ != module:
            return None
        steps = vars(kind)
    found = steps.get(last)
    found = found.__func__ if isinstance(found, staticmethod) else found
    legal = isinstance(found, _FUNCTIONS) or is_record(found)
    own = legal and _home(found) == (module, path)
    return found if own else None
