"""Files that `olx.load` must refuse: names of things that are no part of a learner, and headers
that `olx.save` does not write. Each file has a right digest.

The layout is written here from its description, apart from the code of the library.
"""

import copy
import hashlib
import json

import numpy as np

LINE = b"olx learner and state, format 1\n"
OGD = {  # linear(ogd(0.1)) in five dimensions is too long to write out: this one plays its state
    "record": "olx.core:Learner",
    "fields": {
        "hparams": {"array": 0, "host": False},
        "init_fn": {"name": "olx.frameworks.md:init"},
        "predict_fn": {"name": "olx.frameworks.lift:dot"},
        "update_fn": {"name": "olx.schedules.fixed:no_news"},
    },
}
HEADER = {
    "learner": OGD,
    "state": {"dict": {"w": {"array": 1, "host": False}, "t": 3}},
    "arrays": [["float32", []], ["float32", [5]]],
}
ARRAYS = np.arange(6, dtype=np.float32).tobytes()


def sealed(body, line=LINE):
    whole = line + body
    return whole + hashlib.sha256(whole).digest()


def file_of(header, arrays=ARRAYS, line=LINE, length=None):
    """A file with a right digest; `header` may be text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return sealed(size.to_bytes(8, "little") + text + arrays, line)


def with_part(part, *path):
    """The header with something else at `path`."""
    header = copy.deepcopy(HEADER)
    here = header
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = part
    return header


def predicting(part):
    return with_part(part, "learner", "fields", "predict_fn")


_NAMES = """
os:system os:popen os:remove posix:system subprocess:run subprocess:Popen builtins:exec
builtins:eval builtins:open builtins:__import__ builtins:print importlib:import_module
runpy:run_path shutil:rmtree pickle:loads pathlib:Path.unlink functools:partial operator:call
operator:attrgetter ctypes:CDLL socket:socket sys:exit numpy:load numpy:save numpy:fromfile
numpy:memmap numpy:savez_compressed pandas:read_pickle scipy.io:loadmat olx:engine.team.os.system
olx:_import_module olx:engine.mapped.ctypes.CDLL olx.core:dataclasses.builtins.exec
olx.core:jax.numpy.save olx.core:lax.map olx:save olx:load olx:streams.read_svmlight
olx:__getattr__ olx:__dir__ olx.core:__builtins__ olx.core:__loader__ olx.core:Learner.__init__
olx.core:Learner.__class__ olx.core:Learner.__init__.__globals__ olx.core:Rounds._make
olx.core:dataclasses olx.core:Partial olx.core:Callable olx.core:NoSuch olx.needs:np.load
olx.losses:logistic olx.convex.legendre:np.save olx.boosting.weak:_call olx.boosting.oracle:_answer
olx.core:Run.plot olx.certificate:Certificates.plot
olx.boosting.weak:partial olx.streams.tables:os olx.streams.svmlight:read_svmlight
olx.engine.save:save olx.engine.save:load olx.engine.savable:importlib.import_module
olx.engine.checkpoint:write olx._archive:write olx._archive:write_text olx._archive:remove_drafts
olx.lab.worker:play olx.lab.user_factories:find olx.lab.executors:importlib olx.cli.main:main
olx.cli.__main__:main olx.testing:check_learner olx.interop:_import_module
olx.engine.numpy_functions:numpy_functions olx.hindsight.exact:importlib
olx.frameworks.lift:Partial.__reduce__ olx.tune.slopes:Learner olx.nothing.here:f jax.numpy:save
jax.numpy:load jax.numpy:savez jax.numpy:fromfile jax.numpy:ones jax.numpy:arange
jax.numpy:vectorize jax.numpy:apply_along_axis jax:pure_callback jax.lax:map jax.lax:scan
jax.lax:cond jax.lax:while_loop jax.experimental:io_callback jax.debug:callback jax:jit
jax._src.callback:io_callback jax.tree_util:tree_map jax.tree_util:Partial
optax:inject_hyperparams optax._src.wrappers:apply_if_finite optax._src.alias_test:AliasTest
optax._src.base:Callable optax._src.alias:functools.partial
"""
NAMES = _NAMES.split()
ODD_NAMES = [
    "", ":", "os", "os:", ":system", "os::system", "os.:system", ".os:system", "os:system ",
    "olx.core:Learner\n", "olx.core\0:Learner", "../evil:f", "evil/file:f", "__main__:f",
    "olx.core:Learner.", "olx..core:Learner", "olx.core:<lambda>", "olx.core:f.<locals>.g",
    "mine:update", "mine.__main__:update", "a" * 100_000 + ":f",
]  # fmt: skip
FIRST = OGD["fields"]
TINY = {"record": "olx.core:Rounds", "fields": {"context": 1, "outcome": 2}}
DEEP = b'{"tuple": [' * 10_000 + b"1" + b"]}" * 10_000
SHORT_DEEP = b'{"tuple": [' * 900 + b"1" + b"]}" * 900


def as_text(header):
    return json.dumps(header).encode()


def of_state(part):
    """A file whose state is `part`; it has the arrays of the learner alone."""
    header = {**with_part(part, "state"), "arrays": HEADER["arrays"][:1]}
    return file_of(header, ARRAYS[:4])


def of_arrays(*kinds, content=ARRAYS):
    return file_of({**HEADER, "arrays": list(kinds)}, content)


FIVE = ["float32", [5]]
FILES = {  # by what is wrong: the file
    "format 0": file_of(HEADER, line=LINE.replace(b"1", b"0")),
    "format 2": file_of(HEADER, line=LINE.replace(b"1", b"2")),
    "format -1": file_of(HEADER, line=LINE.replace(b"1", b"-1")),
    "format of many digits": file_of(HEADER, line=LINE.replace(b"1", b"1" * 5000)),
    "no format": file_of(HEADER, line=LINE.replace(b"1", b"")),
    "the first line alone": LINE,
    "nothing after the first line": sealed(b""),
    "seven bytes": sealed(b"1234567"),
    "a header longer than the file": file_of(HEADER, length=10**6),
    "a header of 2^64 - 1 bytes": file_of(HEADER, length=2**64 - 1),
    "a header that is too short": file_of(HEADER, length=20),
    "an empty header": file_of(b""),
    "a header that is no JSON": file_of(b"learner"),
    "a header that is no UTF-8": file_of(b"\xff\xfe{}"),
    "a header of depth 10,000": file_of(
        b'{"learner": ' + DEEP + b', "state": 1, "arrays": []}', b""
    ),
    "a learner of depth 900": file_of(
        b'{"learner": ' + SHORT_DEEP + b', "state": 1, "arrays": []}', b""
    ),
    "brackets": file_of(b"[" * 100_000, b""),
    "a number of 5,000 digits": file_of(b'{"learner": ' + b"9" * 5000 + b"}"),
    "NaN": file_of(as_text(HEADER).replace(b'"t": 3', b'"t": NaN')),
    "Infinity": file_of(as_text(HEADER).replace(b'"t": 3', b'"t": Infinity')),
    "a number with a point": file_of(as_text(HEADER).replace(b'"t": 3', b'"t": 3.0')),
    "a key twice": file_of(as_text(HEADER).replace(b'"t": 3', b'"t": 3, "t": 3')),
    "two learners": file_of(b'{"learner": 1, ' + as_text(HEADER)[1:]),
    "a list": file_of([1, 2, 3]),
    "null": file_of(None),
    "a word": file_of("learner"),
    "no state": file_of({key: HEADER[key] for key in ("learner", "arrays")}),
    "no arrays": file_of({key: HEADER[key] for key in ("learner", "state")}),
    "a further key": file_of({**HEADER, "code": "import os"}),
    "learner: 5": file_of({**HEADER, "learner": 5}),
    "learner: null": file_of({**HEADER, "learner": None}),
    "a function for a learner": file_of({**HEADER, "learner": {"name": "olx.frameworks.lift:dot"}}),
    "rounds for a learner": file_of({"learner": TINY, "state": 1, "arrays": []}, b""),
    "a class for a learner": file_of({**HEADER, "learner": {"name": "olx.core:Learner"}}),
    "a number for a function": file_of(predicting(5)),
    "a word for a function": file_of(predicting("os:system")),
    "no function": file_of(predicting(None)),
    "facts that are a number": file_of(with_part(5, "learner", "fields", "facts")),
    "needs that are a word": file_of(with_part("none", "learner", "fields", "needs")),
    "facts that contradict": file_of(
        with_part(
            {
                "record": "olx.facts:Facts",
                "fields": {"coordinates": {"record": "olx.facts:Refreshed", "fields": {}}},
            },
            "learner", "fields", "facts",
        )
    ),
    "an unknown field": file_of(with_part(5, "learner", "fields", "__class__")),
    "a missing field": file_of(
        with_part({"hparams": {"array": 0, "host": False}}, "learner", "fields")
    ),
    "fields in a list": file_of(with_part([1], "learner", "fields")),
    "a record without fields": file_of({**HEADER, "learner": {"record": "olx.core:Learner"}}),
    "a record with a number for a name": file_of(with_part(5, "learner", "record")),
    "a function for a record": file_of(with_part("olx.frameworks.lift:dot", "learner", "record")),
    "index -1": file_of(with_part(-1, "state", "dict", "w", "array")),
    "index 2": file_of(with_part(2, "state", "dict", "w", "array")),
    "index true": file_of(with_part(True, "state", "dict", "w", "array")),
    "index '1'": file_of(with_part("1", "state", "dict", "w", "array")),
    "an array twice": file_of(with_part(0, "state", "dict", "w", "array")),
    "an array of no one": file_of({**HEADER, "state": 1}),
    "host: 'yes'": file_of(with_part("yes", "state", "dict", "w", "host")),
    "shape [-1]": of_arrays(["float32", []], ["float32", [-1]]),
    "shape [true]": of_arrays(["float32", []], ["float32", [True]]),
    "shape ['5']": of_arrays(["float32", []], ["float32", ["5"]]),
    "shape 5": of_arrays(["float32", []], ["float32", 5]),
    "shape of 1,000 axes": of_arrays(["float32", []], ["float32", [1] * 999 + [5]]),
    "a shape of 10^12 numbers": of_arrays(["float32", []], ["float32", [10**12]]),
    "a shape of 10^40 numbers": of_arrays(["float32", []], ["float32", [10**40]]),
    "a shape of 0 times 2^63": of_arrays(["float32", []], ["float32", [0, 2**63]]),
    "one number too many": of_arrays(["float32", []], ["float32", [6]]),
    "one number too few": of_arrays(["float32", []], ["float32", [4]]),
    "a byte too many": file_of(HEADER, ARRAYS + b"\0"),
    "a byte too few": file_of(HEADER, ARRAYS[:-1]),
    "dtype U8": of_arrays(["float32", []], ["U8", [5]]),
    "dtype object": of_arrays(["float32", []], ["object", [5]]),
    "dtype O": of_arrays(["float32", []], ["O", [2]]),
    "dtype V8": of_arrays(["float32", []], ["V8", [5]]),
    "dtype of times": of_arrays(["float32", []], ["timedelta64", [5]]),
    "a structured dtype": of_arrays(["float32", []], ["f4,O", [5]]),
    "a dtype with an axis": of_arrays(["float32", []], ["(5,)f4", []]),
    "no dtype": of_arrays(["float32", []], ["nothing", [5]]),
    "a number for a dtype": of_arrays(["float32", []], [4, [5]]),
    "an array without a shape": of_arrays(["float32", []], ["float32"]),
    "arrays by name": file_of({**HEADER, "arrays": {"0": FIVE}}),
    "arrays: 2": file_of({**HEADER, "arrays": 2}),
    "a form that is unknown": of_state({"pickle": "gASV"}),
    "a form with a further key": of_state({"tuple": [], "call": "os:system"}),
    "an empty form": of_state({}),
    "a bare list": of_state([1, 2]),
    "a tuple of a word": of_state({"tuple": "abc"}),
    "a dict of a list": of_state({"dict": [1]}),
    "a float of letters": of_state({"float": "one"}),
    "a float of a number": of_state({"float": 1}),
    "bytes of letters": of_state({"bytes": "xyz"}),
    "a dtype of Python": of_state({"dtype": "f8, (2,)O"}),
    "a dtype of nothing": of_state({"dtype": "nothing"}),
    "a key of an unknown kind": file_of(
        with_part({"key": "evil", "data": {"array": 1, "host": False}}, "state")
    ),
    "a key of floats": file_of(
        with_part({"key": "threefry2x32", "data": {"array": 1, "host": False}}, "state")
    ),
    "a key of a word": of_state({"key": "threefry2x32", "data": "abc"}),
    "a Partial of a number": of_state({"Partial": 5, "args": [], "keywords": {}}),
    "a partial of nothing": of_state({"partial": None, "args": [], "keywords": {}}),
    "a Partial with args 5": of_state({"Partial": {"name": "olx:save"}, "args": 5, "keywords": {}}),
    "a name that is a number": of_state({"name": 5}),
    "a name that is a list": of_state({"name": ["os", "system"]}),
}  # fmt: skip
WRITES = {  # what a file would do, if its names were called: each writes `place`
    "system": lambda place: _calling("olx:engine.team.os.system", f"touch {place}"),
    "save": lambda place: _calling("numpy:savez_compressed", str(place)),
    "archive": lambda place: _calling("olx._archive:write_text", str(place), "owned"),
}


def _calling(name, *args):
    return file_of(predicting({"Partial": {"name": name}, "args": list(args), "keywords": {}}))
