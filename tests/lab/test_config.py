"""Configs: what they may say, how grids are made, and what is refused."""

import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest

import olx
from olx.core import Learner
from olx.first_order import freegrad
from olx.lab import config, names
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.jobs import fill_in, first_decision, grid_points, learner_job
from olx.lab.prepare import DataCache, prepare
from olx.lab.tasks.task import TASKS
from olx.meta import add_learners, direction_and_magnitude

DATA = """
[[data]]
name = "stream:linear_classification"
arguments = { rounds = 20, features = 3 }
"""
OGD = """
[[learners]]
name = "ogd"
linear = true
grid.eta = { geomspace = [0.01, 1, 3] }
"""
CONFIGS = sorted(Path(__file__).parents[2].glob("configs/*.toml"))


def write(folder: Path, text: str) -> Path:
    (folder / "mine.toml").write_text(text)
    return folder / "mine.toml"


def read(folder: Path, text: str, *settings: str):
    return config.read(write(folder, text), settings)


def jobs_of(experiment):
    return prepare(experiment, DataCache(experiment))[0]


def player(text: str):
    return config.parse(tomllib.loads(DATA + "[[learners]]\n" + text)).learners[0]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_of_the_project_is_legal(path):
    experiment = config.read(path)
    for i, each in enumerate(experiment.learners):
        learner_job(i, each)


def test_the_quickstart_needs_no_download_and_is_not_small():
    experiment = config.read(Path(__file__).parents[2] / "configs" / "quickstart.toml")
    assert all(data.name.startswith(("sklearn:", "stream:")) for data in experiment.data)
    assert len(experiment.learners) >= 8
    assert len(experiment.all_seeds) >= 5
    for i, each in enumerate(experiment.learners):
        assert len(grid_points(f"learners.{i}", each)) >= 32


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_what_is_written_reads_back_as_the_same(path):
    experiment = config.read(path)
    assert config.parse(tomllib.loads(experiment.text())) == experiment


def test_words_with_quotes_and_lines_survive():
    tree = tomllib.loads(DATA + OGD) | {"title": 'a "b" \\ c\nd é', "radius": 1e-7}
    tree["data"][0]["label"] = "a b"
    tree["published"] = [
        {"learner": "ogd", "metric": "loss", "source": "x", "values": {"a b": 1.0}}
    ]
    experiment = config.parse(tree)
    assert config.parse(tomllib.loads(experiment.text())) == experiment
    assert experiment.title == tree["title"]


@pytest.mark.parametrize(
    ("first", "task", "wanted"),
    [
        (None, "binary", 0.0),
        ("uniform", "binary", 0.25),
        (2.0, "binary", 2.0),
        (None, "experts", 0.25),
    ],
)
def test_the_first_decision_is_told_or_goes_by_the_task(first, task, wanted):
    each = learner_job(0, player('name = "hedge"\neta = 1.0'))._replace(first=first)
    rows = np.zeros((5, 4))
    data = Dataset("x", TASKS[task], None if task == "experts" else rows, rows)
    assert first_decision(each, data, np.float32).tolist() == [wanted] * 4


def test_a_learner_that_throws_dice_takes_a_seed_for_its_key():
    text = {"name": "meta.random_stop", "key": 3, "inner": {"name": "ogd", "eta": 0.1}}
    made = names.make("learners.0", text, Learner)
    assert any(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in arrays(made))


def test_a_set_is_named_by_its_factory():
    box = {"name": "box", "low": [0.0, -1.0], "high": 1.0}
    learner = names.make("", {"name": "ogd", "eta": 0.1, "domain": box}, Learner)
    near = learner.hparams.mirror.to_primal(np.array([-5.0, -5.0]))
    assert near.tolist() == [0.0, -1.0]
    penalty = {"name": "indicator", "domain": "simplex"}
    learner = names.make("", {"name": "rda", "eta": 0.1, "penalty": penalty}, Learner)
    assert float(learner.hparams.regularizer.hparams.penalty.value(np.full(4, 0.25))) == 0


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        ("log_cosh", olx.losses.log_cosh),
        ({"name": "huber", "delta": 2.0}, olx.losses.huber(2.0)),
        ({"name": "pinball", "q": 0.9}, olx.losses.pinball(0.9)),
        ("absolute", olx.losses.absolute),
    ],
    ids=str,
)
def test_a_loss_of_regression_has_a_name_a_conjugate_and_a_proximal_map(named, wanted):
    loss = names.make("loss", named, *names.LOSS)
    assert float(loss(3.0, 1.0)) == float(wanted(3.0, 1.0)) > 0
    near, tau = loss.prox(0.5, 3.0, 1.0), loss.pull(0.5, 3.0, 1.0)
    np.testing.assert_allclose(loss(near, 1.0) + loss.conjugate(tau, 1.0), tau * near, rtol=1e-6)
    learner = {"name": "implicit", "eta": 0.1, "loss": named}
    assert str(names.make("", learner, Learner).hparams.loss) == str(wanted)


def arrays(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]


def test_values_are_set_from_outside(tmp_path):
    settings = ("seeds=[3, 4]", "learners.0.grid.eta=[0.5]", "data.0.arguments.rounds=7")
    experiment = read(tmp_path, DATA + OGD, *settings, "title=two words", "radius=2.5")
    assert experiment.seeds == [3, 4]
    assert experiment.learners[0].grid == {"eta": [0.5]}
    assert experiment.data[0].arguments["rounds"] == 7
    assert (experiment.title, experiment.radius) == ("two words", 2.5)


def test_a_grid_is_a_product_with_the_last_axis_fastest():
    found = grid_points(
        "", player('name = "omd"\ngrid = { a = [1, 2], b = { linspace = [0, 1, 3] } }')
    )
    assert [(p["a"], p["b"]) for p in found] == [(a, b) for a in (1, 2) for b in (0, 0.5, 1)]


def test_a_geometric_grid_has_its_ends_and_equal_ratios():
    etas = [
        p["eta"]
        for p in grid_points("", player('name = "a"\ngrid.eta = { geomspace = [0.1, 10, 5] }'))
    ]
    np.testing.assert_allclose(etas, 10 ** np.linspace(-1, 1, 5))


def test_a_random_search_is_set_by_its_seed():
    text = 'name = "a"\nrandom = {{ samples = 200, seed = {} }}\n'
    text += (
        "grid = {{ x = {{ uniform = [2, 3] }}, y = {{ loguniform = [1e-3, 1e3] }}, z = [1, 2] }}"
    )
    draw = lambda seed: grid_points("", player(text.format(seed)))
    assert draw(1) == draw(1) != draw(2)
    assert len(draw(1)) == 400
    x, y = (np.array([p[axis] for p in draw(1)]) for axis in "xy")
    assert np.all((x >= 2) & (x <= 3) & (y >= 1e-3) & (y <= 1e3))
    assert 0.4 < np.mean(y < 1) < 0.6
    assert abs(np.corrcoef(x, np.log(y))[0, 1]) < 0.2


def test_numbers_are_one_program_and_structure_is_another():
    made = learner_job(
        0,
        player(
            'name = "omd"\nlinear = true\n'
            'grid.mirror = ["euclidean", { name = "hypentropy", beta = 2.0 }]\n'
            "grid.eta = [0.1, 0.2, 0.3]"
        ),
    )
    assert [part.index for part in made.parts] == [[0, 1, 2], [3, 4, 5]]
    assert [part.numbers for part in made.parts] == [{"eta": [0.1, 0.2, 0.3]}] * 2


def test_counts_are_structure():
    made = learner_job(0, player('name = "experts.squint"\ngrid.rates = [4, 8]'))
    assert [part.index for part in made.parts] == [[0], [1]]


def test_numbers_reach_nested_arguments():
    made = learner_job(
        0, player('name = "omd"\neta = 0.5\nmirror = "pnorm"\ngrid."mirror.q" = [1.5, 2.0]')
    )
    for q in (1.5, 2.0):
        learner = made.parts[0].make(**{"mirror.q": q})
        wanted = olx.omd(0.5, olx.mirrors.pnorm(q))
        assert jax.tree.leaves(learner) == jax.tree.leaves(wanted)


def test_a_name_in_two_modules_is_the_one_that_fits():
    assert names.find("", "adagrad", Learner) is olx.first_order.adagrad
    ftrl = names.make("", {"name": "ftrl", "eta": 1.0, "regularizer": "adagrad"}, Learner)
    assert ftrl.hparams.regularizer.at_fn is olx.regularizers.adagrad().at_fn
    assert names.find("", "linear_loss", *names.LOSS) is olx.losses.linear_loss


def test_a_learner_made_of_learners():
    text = {"name": "meta.mix", "mixer": {"name": "hedge", "eta": 1.0}}
    text["inner"] = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 0.2]}}
    experts = names.make("", text, Learner).hparams.experts
    assert experts.hparams.inner.hparams.eta.hparams.tolist() == [0.1, 0.2]


def test_a_list_of_learners():
    nested = {"name": "direction_and_magnitude", "magnitude": "freegrad"}
    made = names.make("", {"name": "add_learners", "inner": ["freegrad", nested]}, Learner)
    wanted = freegrad(), direction_and_magnitude(freegrad())
    assert jax.tree.leaves(made) == jax.tree.leaves(add_learners(wanted))
    ogd = {"name": "ogd", "eta": 0.1, "linear": True}
    text = {"name": "mix", "mixer": "ml_poly", "inner": [ogd, {"name": "vaw", "a": 2.0}]}
    assert len(names.make("", text, Learner).hparams.experts) == 2
    filled = fill_in({"inner": ["freegrad", {"name": "a", "n": "classes"}]}, 3, 2)
    assert filled == {"inner": ["freegrad", {"name": "a", "n": 3}]}
    with pytest.raises(ConfigError, match=r"x\.inner\.1: there is no learner called 'freegrat'"):
        names.make("x", {"name": "add_learners", "inner": ["freegrad", "freegrat"]}, Learner)
    with pytest.raises(ConfigError, match=r"x\.inner\.0: expected the name of a learner, got 3"):
        names.make("x", {"name": "add_learners", "inner": [3, "freegrad"]}, Learner)


BROKEN = {
    "not TOML": ("seeds = [1,", "is not TOML: "),
    "unknown key": ("seed = 3\n" + DATA + OGD, "unknown key seed; did you mean seeds?"),
    "unknown key of data": (
        DATA + 'scaling = "rows"\n' + OGD,
        "unknown key data.0.scaling; did you mean scale?",
    ),
    "wrong type": (
        'seeds = "five"\n' + DATA + OGD,
        "seeds: expected a whole number or a list, got 'five'.",
    ),
    "wrong word": (
        'protocol = "progresive"\n' + DATA + OGD,
        "protocol: there is no progresive; did you mean progressive?",
    ),
    "no learner": (DATA, "learners: give at least one, as [[learners]]."),
    "no data": ("data = []\n" + OGD, "data: give at least one, as [[data]]."),
    "one table for many": (
        '[data]\nname = "a9a"\n' + OGD,
        "data: expected tables, written [[data]], got one [data].",
    ),
    "twins": (DATA + OGD + OGD, "learners: two are called 'ogd'; give one of them a label."),
    "equal seeds": ("seeds = [1, 1]\n" + DATA + OGD, "seeds: give a number, or different seeds"),
    "a bound against nobody": (
        'bound = "all"\n' + DATA + OGD,
        'bound: it needs a comparator; give comparator = "best".',
    ),
    "a share above one": ("test = 1.5\n" + DATA + OGD, "test: it is a share of the rows, got 1.5."),
    "unknown learner": (
        DATA + OGD.replace("ogd", "ogdd"),
        "learners.0: there is no learner called 'ogdd'; did you mean ogd?",
    ),
    "unknown argument": (
        DATA + OGD + "domian = 3\n",
        "learners.0.domian: ogd has no such argument; did you mean domain?",
    ),
    "missing argument": (
        DATA + '[[learners]]\nname = "omd"\neta = 0.1\n',
        "learners.0: omd needs the argument mirror.",
    ),
    "unknown map": (
        DATA + '[[learners]]\nname = "omd"\neta = 0.1\nmirror = "euclidaen"\n',
        "learners.0.mirror: there is no mirror map called 'euclidaen'; did you mean "
        "mirrors.euclidean?",
    ),
    "unknown set": (
        DATA + OGD + 'domain = { name = "bal", radius = 1.0 }\n',
        "learners.0.domain: there is no set called 'bal'; did you mean sets.ball?",
    ),
    "a map for a set": (
        DATA + OGD + 'domain = "euclidean"\n',
        "learners.0.domain: there is no set called 'euclidean'",
    ),
    "a set of no size": (
        DATA + OGD + 'domain = { name = "ball", radius = 0.0 }\n',
        "learners.0.domain: ball: `radius` must be positive, got 0.0.",
    ),
    "a word for a number": (
        DATA + '[[learners]]\nname = "ogd"\neta = "fast"\n',
        "learners.0.eta: there is no process called 'fast'",
    ),
    "a value out of range": (
        DATA + '[[learners]]\nname = "ogd"\ngrid.eta = [0.1, -1.0]\n',
        "`eta` must be positive, got -1.0.",
    ),
    "an unknown range": (
        DATA + '[[learners]]\nname = "ogd"\ngrid.eta = { geomspce = [1, 2, 3] }\n',
        "learners.0.grid.eta: there is no geomspce; did you mean geomspace?",
    ),
    "a range without a count": (
        DATA + '[[learners]]\nname = "ogd"\ngrid.eta = { linspace = [1, 2] }\n',
        "learners.0.grid.eta: linspace takes [low, high, count], got [1, 2].",
    ),
    "a law without samples": (
        DATA + '[[learners]]\nname = "ogd"\ngrid.eta = { uniform = [1, 2] }\n',
        "learners.0.grid.eta is drawn; give random = { samples = 64, seed = 0 }.",
    ),
    "a point for a score": (
        DATA + OGD.replace("linear = true", ""),
        "learners.0: ogd decides on a point of 3 numbers, stream:linear_classification asks for a "
        "score; add linear = true.",
    ),
    "a score for a point": (
        '[[data]]\nname = "stream:expert_losses"\narguments = { rounds = 5, experts = 3 }\n' + OGD,
        "learners.0.linear: it needs features, and these data have none; leave it out.",
    ),
    "unknown loss": (
        'loss = "logistc"\n' + DATA + OGD,
        "loss: there is no loss called 'logistc'; did you mean logistic?",
    ),
    "unknown metric": (
        'metrics = ["erorr"]\n' + DATA + OGD,
        "metrics: there is no erorr; did you mean error?",
    ),
    "unknown data": (
        '[[data]]\nname = "sklearn:irsi"\n' + OGD,
        "data: there is no data set 'sklearn:irsi'; did you mean sklearn:iris?",
    ),
    "a binary learner of three classes": (
        '[[data]]\nname = "sklearn:iris"\n[[learners]]\nname = "passive_aggressive"\n',
        "learners.0 on sklearn:iris: passive_aggressive: labels must be -1 or +1, got 0",
    ),
    "copies for two of three classes": (
        '[[data]]\nname = "sklearn:iris"\n[[learners]]\nname = "one_vs_rest"\nk = 2\n'
        'inner = "passive_aggressive"\n',
        "learners.0: one_vs_rest decides on a point of 2 numbers, sklearn:iris asks for a point of "
        "3 numbers",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_config_is_refused_in_one_line(case, tmp_path):
    text, said = BROKEN[case]
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        jobs_of(config.read(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seeds", "--set seeds: write it as key=value, such as seeds=3."),
        ("learners.4.eta=1", "--set learners.4.eta=1: there is no '4' in the config."),
        ("seedz=3", "unknown key seedz; did you mean seeds?"),
    ],
)
def test_a_wrong_setting_is_refused(setting, said, tmp_path):
    with pytest.raises(ConfigError, match=re.escape(said)):
        read(tmp_path, DATA + OGD, setting)
