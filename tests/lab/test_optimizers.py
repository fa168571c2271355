"""Optimizers of optax by name in a config."""

import pytest

from olx.lab.config import ConfigError, parse
from olx.lab.jobs import learner_job
from olx.lab.names import optimizers

DATA = [{"name": "stream:linear_regression", "arguments": {"rounds": 20, "features": 2}}]


def planned(**learner):
    return learner_job(
        0, parse({"data": DATA, "learners": [{"linear": True, **learner}]}).learners[0]
    )


def test_numbers_share_a_program_and_counts_do_not():
    grid = {"learning_rate": {"geomspace": [1e-3, 1.0, 64]}}
    [part] = planned(name="optax.adam", b1=0.8, grid=grid).parts
    assert len(part.index) == 64
    assert repr(part.first()) == "linear(from_optax(adam, b1=0.8, learning_rate=0.001))"
    grid = {"learning_rate": [0.1, 1.0], "memory_size": [2, 3]}
    assert [part.index for part in planned(name="optax.lbfgs", grid=grid).parts] == [[0, 2], [1, 3]]


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # optax says so
def test_each_optimizer_that_needs_a_rate_only_becomes_a_learner():
    for name, make in optimizers().items():
        known = make.__signature__.parameters
        rate = next(word for word in known if "learning_rate" in word)
        if {word for word, each in known.items() if each.default is each.empty} <= {rate}:
            key = {"key": 0} if "key" in known else {}
            learner = planned(name=name, **{rate: 0.1}, **key).parts[0].first()
            assert learner.hparams.inner.hparams.numbers[rate] == 0.1
    assert {"optax.adam", "optax.sgd", "optax.contrib.prodigy"} <= set(optimizers())
    assert not {"optax.scale_by_adam", "optax.clip", "optax.chain"} & set(optimizers())


REFUSED = {
    "a name": ({"name": "optax.adm"}, "no optimizer 'optax.adm'; did you mean optax.adam?"),
    "a far name": ({"name": "optax.zzz"}, "'optax.zzz'; `olx list optimizers` shows all."),
    "a contributed one": ({"name": "optax.prodigi"}, "did you mean optax.contrib.prodigy?"),
    "no rate": ({"name": "optax.adam"}, "learners.0: optax.adam needs the argument learning_rate."),
    "an argument": ({"name": "optax.adam", "eta": 1.0}, "learners.0.eta: optax.adam has no such"),
    "a list": (
        {"name": "optax.adam", "learning_rate": [0.1]},
        "to try several values",
    ),
    "a word": ({"name": "optax.adam", "learning_rate": "fast"}, "expected a number, got 'fast'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_optimizer_is_refused_by_its_key(case):
    learner, words = REFUSED[case]
    with pytest.raises(ConfigError) as refusal:
        planned(**learner)
    assert words in str(refusal.value)
