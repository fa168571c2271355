"""Configs that no run may start from; the message names the key and the nearest legal word."""

import copy
import sys
import tempfile
import tomllib
import zlib
from pathlib import Path

from bad_inputs import Bad

from olx import cli
from olx.lab.config import ConfigError, parse, read
from olx.lab.prepare import DataCache, prepare

FOLDER = tempfile.TemporaryDirectory(prefix="olx-bad-configs-")
GOOD = tomllib.loads("""
baseline = false
[[data]]
name = "stream:linear_classification"
arguments = { rounds = 8, features = 3 }

[[learners]]
name = "ogd"
linear = true
grid.eta = [0.1, 1.0]
""")


def refused(says: str, **changes: object) -> Bad:
    """The good config, changed at the top."""
    return Bad(lambda: ready({**GOOD, **changes}), ConfigError, says)


def data(says: str, **changes: object) -> Bad:
    """The good config, its data changed."""
    return refused(says, data=[{**GOOD["data"][0], **changes}])


def learner(says: str, *without: str, **changes: object) -> Bad:
    """The good config, its learner changed."""
    kept = {key: value for key, value in GOOD["learners"][0].items() if key not in without}
    return refused(says, learners=[{**kept, **changes}])


def omd(says: str, **changes: object) -> Bad:
    return refused(says, learners=[{"name": "omd", "eta": 1.0, "linear": True, **changes}])


def grid(says: str, eta: object, **changes: object) -> Bad:
    return learner(says, grid={"eta": eta}, **changes)


def text(says: str, content: str | bytes) -> Bad:
    """A file that is no config."""

    def call():
        path = Path(FOLDER.name) / "bad.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        read(path)

    return Bad(call, ConfigError, f"bad.toml.*{says}")


def setting(says: str, word: str) -> Bad:
    def call():
        path = Path(FOLDER.name) / "good.toml"
        path.write_text('[[data]]\nname = "a9a"\n[[learners]]\nname = "ogd"\n')
        read(path, [word])

    return Bad(call, ConfigError, f"good.toml.*{says}")


def ready(tree: dict) -> object:
    experiment = parse(copy.deepcopy(tree))
    return prepare(experiment, DataCache(experiment))


def large(says: str, content: str, **changes: object) -> Bad:
    """A file with a number that float32 cannot hold."""

    def call():
        path = Path(FOLDER.name) / "large.csv"
        path.write_text(content)
        ready({**GOOD, "data": [{"name": str(path), **changes}]})

    return Bad(call, ConfigError, f"large.csv holds {says}, too large for float32")


def command(*words: str) -> Bad:
    """Ends with status 2 before anything is done."""

    def call():
        status = cli.main(words)
        raise SystemExit(status)

    return Bad(call, SystemExit, "^2$")


FILES = {
    "no TOML": text("is not TOML.*line 1", "seeds = \n"),
    "a key twice": text("is not TOML.*line 2", "seeds = 1\nseeds = 2\n"),
    "bytes": text("is not TOML", b"\xff\xfe\x00"),
    "an empty file": text("data: give at least one, as ..data", ""),
    "a folder": Bad(lambda: read(FOLDER.name), ConfigError, "is a folder; a config is a TOML file"),
    "no file": Bad(lambda: read("nowhere.toml"), ConfigError, "nowhere.toml: no such config"),
    "a setting without a value": setting("write it as key=value", "seeds"),
    "a setting of the eighth learner": setting("no '7' in the config", "learners.7.name=ogd"),
    "a setting of a learner by name": setting("no 'ogd' in the config", "learners.ogd.eta=1"),
    "a setting of an unknown key": setting("unknown key sede; did you mean seeds", "sede=1"),
}
TOP = {
    "an unknown key": refused("unknown key seed; did you mean seeds", seed=3),
    "no learners": refused("learners: give at least one", learners=[]),
    "one table of data": refused("data: expected tables, written ..data", data={"name": "a9a"}),
    "a learner as a word": refused("learners.0: expected a table, got 'ogd'", learners=["ogd"]),
    "data as a word": refused("data.0: expected a table", data=["a9a"]),
    "two learners of a name": refused("two are called 'ogd'", learners=GOOD["learners"] * 2),
    "two data sets of a name": refused("two are called 'stream", data=GOOD["data"] * 2),
    "half a seed": refused("seeds: expected a whole number or a list, got 1.5", seeds=1.5),
    "no seed": refused("seeds: give a number, or different seeds, got 0", seeds=0),
    "a negative seed": refused("seeds: .*got -1", seeds=-1),
    "a seed twice": refused(r"seeds: .*got \[1, 1\]", seeds=[1, 1]),
    "a huge seed": refused("seeds: a seed is less than 4294967296", seeds=[2**40]),
    "seeds as a word": refused(
        "seeds: expected a whole number or a list, got 'five'", seeds="five"
    ),
    "a protocol misspelt": refused("protocol: .*did you mean split", protocol="splt"),
    "a precision of half": refused("precision: there is no float16; did you", precision="float16"),
    "a test share of 0": refused("test: it is a share of the rows, got 0", test=0.0),
    "a test share of 2": refused("test: it is a share", test=2.0),
    "a test share of NaN": refused("test: it is a share", test=float("nan")),
    "no rows to test on": refused("split leaves a part of", protocol="split", test=1e-9),
    "no rows to learn on": refused("split leaves a part of", protocol="split", test=0.999),
    "a loss misspelt": refused("no loss called 'logstic'; did you mean logistic", loss="logstic"),
    "a loss as a number": refused("loss: expected a word or a table, got 3", loss=3),
    "a loss without a name": refused("loss: give a name", loss={"margin": 1.0}),
    "an argument of a loss misspelt": refused(
        "margn: margin_hinge has no such argument; did you mean margin",
        loss={"name": "margin_hinge", "margn": 1.0},
    ),
    "an argument of a loss without any": refused("takes no", loss={"name": "hinge", "margin": 1.0}),
    "a negative margin": refused("must be positive", loss={"name": "margin_hinge", "margin": -1.0}),
    "a metric misspelt": refused("there is no eror; did you mean error", metrics=["eror"]),
    "a metric of another task": refused("wealth is for portfolio data", metrics=["wealth"]),
    "a metric twice": refused("error is named twice", metrics=["error", "error"]),
    "metrics as a word": refused("metrics: expected a list, got 'error'", metrics="error"),
    "a comparator misspelt": refused("comparator: .*did you mean best", comparator="bst"),
    "negative shifts": refused("shifts: give a number from 0 on, got -1", shifts=-1),
    "a negative radius": refused("radius: give a positive", comparator="best", radius=-1.0),
    "a radius of NaN": refused("radius", comparator="best", radius=float("nan")),
    "a radius of nobody": refused("radius: it is for the best comparator", radius=1.0),
    "a bound misspelt": refused("bound: there is no al; did you mean all", bound="al"),
    "a bound against nobody": refused("bound: it needs a comparator", bound="all"),
    "a curve of no points": refused("curve: give 1 to 10,000 points", curve=0),
    "a budget misspelt": refused("budget.memry; did you mean memory", budget={"memry": 3}),
    "a negative budget": refused("budget.memory: give megabytes, got -3", budget={"memory": -3}),
    "a negative number of saves": refused("budget.save: .* got -1", budget={"save": -1}),
    "a budget as a word": refused("budget.memory: .*leave out the quotes", budget={"memory": "9"}),
    "no seeds": refused(r"seeds: give .* got \[\]", seeds=[]),
    "a seed that is true": refused("seeds: .* got True", seeds=True),
    "a list of curves": refused(r"curve: expected a whole number, got \[3, 4\]", curve=[3, 4]),
    "a test share as a word": refused("test: expected a number, got '0.2'; leave out", test="0.2"),
    "a list of radii": refused(r"radius: expected a number, got \[1.0\]", radius=[1.0]),
    "a list of losses": refused("loss: expected a word or a table", loss=["hinge"]),
    "margins of a loss": refused(
        r"loss.margin: expected a number, got \[1, 2\]\.",
        loss={"name": "margin_hinge", "margin": [1, 2]},
    ),
    "a budget of NaN": refused("budget.save", budget={"save": float("nan")}),
    "a budget as a number": refused("budget: expected a table, got 3", budget=3),
    "a title as a number": refused("title: expected a word, got 3", title=3),
    "print of another learner": refused(
        "published.0: there is no learner odg; did you mean ogd",
        published=[{"learner": "odg", "metric": "error", "source": "", "values": {}}],
    ),
    "print of other data": refused(
        "published.0.values: there is no data set a9a",
        published=[{"learner": "ogd", "metric": "error", "source": "", "values": {"a9a": 0.1}}],
    ),
}
DATA = {
    "data without a name": refused("data.0.name: it is missing", data=[{"scale": "rows"}]),
    "data named by a number": data("data.0.name: expected a word, got 3", name=3),
    "a stream misspelt": data(
        "did you mean stream:linear_class", name="stream:liner_classification"
    ),
    "a set misspelt": data("did you mean sklearn:iris", name="sklearn:irs", arguments={}),
    "a source of nobody": data("there is no module kaggle", name="kaggle:titanic", arguments={}),
    "no such file": data("nowhere.csv: no such file", name="nowhere.csv", arguments={}),
    "an unknown key of data": data("data.0.scal; did you mean scale", scal="rows"),
    "an order misspelt": data("data.0.order: .*did you mean shuffled", order="shufled"),
    "no rows of data": data("data.0.rows: give at least 1, got 0", rows=0),
    "negative rows of data": data("data.0.rows: give at least 1, got -5", rows=-5),
    "an argument misspelt": data(
        "has no such argument; did you mean rounds", arguments={"round": 3}
    ),
    "an argument missing": data("features", arguments={"rounds": 3}),
    "a negative argument": data("`rounds` must be", arguments={"rounds": -1, "features": 3}),
    "an argument as a word": data(
        "rounds: expected a number", arguments={"rounds": "a", "features": 3}
    ),
    "a stream with a scale": data("takes no scale", scale="rows"),
    "a stream with a bias": data("takes no bias", bias=True),
    "a stream with a task": data("takes no task", task="regression"),
    "a stream with a label": data("takes no binarize", binarize=1),
    "a task misspelt": data(
        "no task 'regresion'; did you mean regression", task="regresion", arguments={}
    ),
    "a scale of nobody": data("scale must be one of none", scale="max"),
    "features past float32": large("the feature 1e.300 at row 0, column 1", "1,1e300,1\n3,4,-1\n"),
    "labels past float32": large(
        "the outcome 1e.300 at row 1", "1,1\n3,1e300\n", task="regression"
    ),
    "reals for a loss of signs": refused(
        "learners.0 on sklearn:diabetes: .*labels must be -1 or .1.* at row 0",
        data=[{"name": "sklearn:diabetes"}],
        loss="logistic",
    ),
    "reals for a learner of signs": refused(
        "learners.0 on sklearn:diabetes: .* at row 0",
        data=[{"name": "sklearn:diabetes"}],
        learners=[{"name": "perceptron"}],
    ),
}
INNER, BBM = {"name": "ogd", "eta": 0.5, "linear": True}, {"name": "online_bbm", "gamma": 0.1}
LEARNERS = {
    "a learner misspelt": learner("no learner called 'odg'; did you mean", name="odg"),
    "a learner without a name": learner("learners.0.name: it is missing", "name"),
    "a module misspelt": learner("no module expert; did you mean experts", name="expert.hedge"),
    "a map for a learner": learner("no learner called 'pnorm'", name="pnorm"),
    "a learner that is private": learner("no learner called '__doc__'", name="__doc__"),
    "linear as a word": learner("learners.0.linear: expected true or false, got", linear="yes"),
    "a point for a score": learner("decides on a point.*add linear = true", linear=False),
    "a score made linear": refused(
        "learners.0 does not fit", learners=[{"name": "perceptron", "linear": True}]
    ),
    "an argument of nobody": learner("learners.0.etta: ogd has no such", etta=1.0),
    "an argument left out": learner("ogd needs the argument eta", "grid"),
    "a negative step": learner("`eta` must be positive, got -1", "grid", eta=-1.0),
    "a step of NaN": learner("`eta` must be positive, got nan", "grid", eta=float("nan")),
    "a step that is true": learner("eta: expected a number, got True", "grid", eta=True),
    "a step for each coordinate": learner(
        r"eta: expected a number, got .*; .* write grid.eta = \[0.1, 0.2, 1.0\]",
        "grid",
        eta=[0.1, 0.2, 1.0],
    ),
    "a step as a word": learner("learners.0.eta: there is no", "grid", eta="fast"),
    "a step in quotes": learner(
        "learners.0.eta: expected a number, got '0.1'; leave out the quotes", "grid", eta="0.1"
    ),
    "a step beside its grid": learner(
        "learners.0.eta is 0.1, and learners.0.grid.eta gives values to try; leave out", eta=0.1
    ),
    "a number of a map beside its grid": omd(
        "learners.0.mirror.q is 1.5, and learners.0.grid.mirror.q gives values",
        mirror={"name": "pnorm", "q": 1.5},
        grid={"mirror.q": [1.5, 2.0]},
    ),
    "numbers of a map": omd(
        r'mirror.q: expected a number.*write grid."mirror.q" = \[1.5, 2.0\]',
        mirror={"name": "pnorm", "q": [1.5, 2.0]},
    ),
    "a range for a step": learner(
        r"eta: give one value.*write grid.eta = { geomspace = \[1, 2, 3\] }",
        "grid",
        eta={"geomspace": [1, 2, 3]},
    ),
    "steps in quotes": grid("eta: expected a number, got '0.1'; leave out the", ["0.1", "0.2"]),
    "starts": learner("first: expected a number or a word, got", first=[0.0, 1.0]),
    "a list of keys": refused(
        r"learners.0.key: give a seed, a whole number, got \[1\]",
        learners=[{"name": "boost", "inner": INNER, "rule": BBM, "n": 3, "key": [1]}],
    ),
    "a map misspelt": omd("mirror: there is no mirror map called 'pnrm'; did", mirror="pnrm"),
    "a map as a number": omd("expected the name of a mirror map", mirror=3),
    "a list of maps": omd("mirror map.*grid.mirror = ..pnorm", mirror=["pnorm"]),
    "an argument of a map": omd("mirror.p: pnorm has no", mirror={"name": "pnorm", "p": 1.5}),
    "a map out of range": omd("`q` must lie in", mirror={"name": "pnorm", "q": 0.5}),
    "a map without its argument": omd("pnorm needs the argument q", mirror="pnorm"),
    "a start outside the domain": omd("learners.0 on .*domain.*first", mirror="negative_entropy"),
    "a start of NaN": learner("learners.0.first: give a finite", first=float("nan")),
    "a start as a word": learner("first: .*uniform", first="unform"),
    "a theorem misspelt": learner(
        "theorems.0: there is no theorem gradient_descend about ogd; did you mean gradient_descent",
        theorems=["gradient_descend"],
    ),
    "a theorem about another learner": learner(
        "no theorem hinge_mistakes", theorems=["hinge_mistakes"]
    ),
    "a set misspelt": learner("learners.0.compare_in: .*did you mean", compare_in="simplx"),
    "an empty grid": grid("grid.eta: the list is empty", []),
    "a grid as a number": grid("grid.eta: give a list", 0.1),
    "a grid with NaN": grid("grid.eta: the list holds nan", [0.1, float("nan"), 1.0]),
    "a grid with a negative step": grid("`eta` must be positive, got -1", [0.1, -1.0]),
    "a grid of truths": grid("expected a number, got True", [True]),
    "a grid of lists": grid("expected a number", [[0.1, 0.2]]),
    "a grid misspelt": grid("no geospace; did you mean geomspace", {"geospace": [1, 2, 3]}),
    "a grid of two ends": grid("geomspace takes .low, high, count", {"geomspace": [1, 2]}),
    "a grid from below 0": grid("takes positive ends", {"geomspace": [-1, 2, 3]}),
    "a grid of no values": grid("give .low, high, count", {"linspace": [1, 2, 0]}),
    "a grid to infinity": grid("takes finite numbers", {"linspace": [1, float("inf"), 3]}),
    "a grid of infinitely many": grid("finite numbers", {"linspace": [1, 2, float("inf")]}),
    "a grid of two kinds": grid("one of linspace", {"linspace": [1, 2, 3], "uniform": [1, 2]}),
    "draws that are not counted": grid("is drawn; give random", {"uniform": [1, 2]}),
    "draws from above": grid("lower end first", {"uniform": [2, 1]}, random={"samples": 3}),
    "no draws": grid("samples: give at least 1", {"uniform": [1, 2]}, random={"samples": 0}),
    "draws of nothing": learner("no axis of the grid is uniform", random={"samples": 3}),
    "draws misspelt": learner("random.sample; did you mean samples", random={"sample": 3}),
    "draws with a negative seed": grid(
        "random.seed: give at least 0", {"uniform": [1, 2]}, random={"samples": 3, "seed": -1}
    ),
    "an axis of nobody": learner("etta: ogd has no such", grid={"etta": [1.0]}),
    "an axis of no table": learner("no table mirror", grid={"mirror.q": [1.5]}),
}


def outside(says: str, name: str, **changes: object) -> Bad:
    """The good config, its learner made by a factory of `outside_factories`."""
    return learner(f"learners.0.*{says}", name=f"outside_factories:{name}", **changes)


def outside_stream(says: str, name: str, **arguments: object) -> Bad:
    name = f"stream:outside_factories:{name}"
    return data(f"data: {name}.*{says}", name=name, arguments=arguments)


def module(says: str, text: str) -> Bad:
    """A module that cannot be imported."""
    name = f"bad_module_{zlib.crc32(text.encode())}"

    def call():
        (Path(FOLDER.name) / f"{name}.py").write_text(text)
        if FOLDER.name not in sys.path:
            sys.path.append(FOLDER.name)
        ready({**GOOD, "learners": [{"name": f"{name}:make"}]})

    return Bad(call, ConfigError, f"learners.0: .*{name}.*{says}")


OUTSIDE = {
    "no such module": learner("no module mne; put it beside the config", name="mne:descent"),
    "no such module inside": learner("no module jax.mine; put it", name="jax.mine:descent"),
    "a file for a module": learner(
        "there is no module outside_factories.py; leave out .py", name="outside_factories.py:ball"
    ),
    "a path for a module": learner("write 'a/b:f' as package.module:factory", name="a/b:f"),
    "a factory of no module": learner("as package.module:factory", name=":descent"),
    "a module that needs another": module("ModuleNotFoundError: No module named 'no'", "import no"),
    "a module that is no Python": module("SyntaxError", "def make("),
    "a module that fails": module("ZeroDivisionError: division by zero", "1 / 0\n"),
    "a module that ends the process": module("SystemExit: 3", "raise SystemExit(3)"),
    "a factory misspelt": outside("factories.py, has no descend; did you mean descent", "descend"),
    "a number for a factory": outside("is a float; name a function that returns a l", "NUMBER"),
    "a loss for a learner": outside("is a ScoreLoss; name a function that returns a", "HALF"),
    "a factory of nothing": outside(
        "returned a NoneType; it must return a learner", "nothing", grid={}
    ),
    "a factory of maps": outside(
        "returned a MirrorMap; it must return a learner", "a_map", grid={}
    ),
    "a factory with an argument of nobody": outside(
        "etta: outside_factories:descent has no such argument; did you mean eta",
        "descent",
        etta=1.0,
    ),
    "a factory without its argument": outside("descent needs the argument eta", "descent", grid={}),
    "a factory out of range": outside(
        "`eta` must be positive", "descent", grid={"eta": [0.0, 1.0]}
    ),
    "half a count": outside("times: expected a whole number", "descent", times=1.5),
    "a sign as a number": outside("sign: expected a word, got 1", "descent", sign=1),
    "a factory that fails": outside("broken failed: KeyError: 'eta'", "broken"),
    "a factory that looks": outside("looks at a number that the grid sweeps; choose by", "looks"),
    "a factory of unknown types": outside("arguments .* cannot be read: .*Nowhere", "unknown_type"),
    "a name that stands for nothing": outside(
        "mirror: expected a number, got 'euclidean'; to allow a name, annotate the argument",
        "untold",
        mirror="euclidean",
    ),
    "a map of another module": omd("mirror: there is no module mne", mirror="mne:ball"),
    "a map that is none": omd("returned a NoneType", mirror="outside_factories:nothing"),
    "a map on an axis": omd(
        "mirror.radus: outside_factories:ball has no such argument; did you mean radius",
        mirror="outside_factories:ball",
        grid={"mirror.radus": [1.0]},
    ),
    "a loss of three arguments": refused(
        "takes key, rounds, features, scale; a loss takes an act", loss="outside_factories:noise"
    ),
    "a plain loss with an argument": refused(
        "quartic takes no arguments", loss={"name": "outside_factories:quartic", "scale": 1.0}
    ),
    "a loss without its argument": refused("needs the arg", loss="outside_factories:scaled"),
    "a stream misspelt outside": outside_stream("has no noises; did you mean noise", "noises"),
    "a stream with its key": outside_stream("leave out key", "noise", key=3),
    "a stream without its rounds": outside_stream("needs the argument rounds", "noise"),
    "a stream of rounds alone": outside_stream("must return a stream", "only_rounds", rounds=3),
    "a stream of weights": outside_stream("leave out their weights", "weighted", rounds=3),
    "a stream of no features": outside_stream("must be an array of 2 axes", "flat", rounds=3),
}
COMMANDS = {
    "no command": command(),
    "a command misspelt": command("rnu", "a.toml"),
    "an option misspelt": command("run", "a.toml", "--otu", "x"),
    "a run of nothing": command("run"),
    "a run of two configs": command("run", "a.toml", "b.toml"),
    "a run of no config": command("run", "nowhere.toml"),
    "a show of no result": command("show", "nowhere"),
    "a report of no result": command("report", "nowhere"),
    "a diff of no results": command("diff", "nowhere", "nowhere"),
    "a list of nobody": command("list", "learner"),
    "a benchmark of no rounds": command("bench", "--rounds", "0"),
    "a benchmark of a word": command("bench", "--rounds", "many"),
}
BAD = {**FILES, **TOP, **DATA, **LEARNERS, **OUTSIDE, **COMMANDS}
