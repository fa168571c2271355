"""A learner is shown in one line that says how to make it."""

import contextlib
import dataclasses
import inspect
from types import ModuleType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from table import TABLE

import olx
import olx.frameworks.hints
from olx import classification
from olx._call import Call
from olx.engine import save
from olx.engine.checkpoint import digest
from olx.engine.device import data_of

ROOMS = (
    olx.experts,
    olx.first_order,
    olx.second_order,
    olx.classification,
    olx.structured,
    olx.multiclass,
    olx.meta,
    olx.boosting,
    olx.convex.norms,
    olx.convex.sets,
    olx.convex,
    olx.streams,
    olx.regularizers,
    olx.losses,
    olx.schedules,
    olx.mirrors,
    olx.ascents,
    olx.games,
    olx.frameworks.hints,
    olx.interop.optax,
    olx,
    olx.ranking,
)
OTHERS = {"dot": olx.dot, "multiclass": olx.multiclass, "adam": optax.adam}


class Names(dict):
    """The names of a line; a few are those of two factories, and the first that fits is taken."""

    def __missing__(self, name):
        if name in OTHERS:
            return OTHERS[name]
        rooms = ROOMS[::-1] if "label_ranking" in self else ROOMS
        found = [vars(room)[name] for room in rooms if name in vars(room)]
        found = [thing for thing in found if not isinstance(thing, ModuleType)]
        if not inspect.isfunction(found[0]):
            return found[0]

        def made(*args, **named):
            for factory in found:
                with contextlib.suppress(TypeError):
                    return factory(*args, **named)
            raise TypeError(f"{name} does not take these arguments")

        return made


def evaluated(line):
    ranks = {"label_ranking": olx.ranking.label_ranking} if "label_ranking" in line else {}
    return eval(line, {"__builtins__": {}}, Names(ranks))


LINES = """
    hedge(eta=0.1)
    linear(omd(eta=0.1, mirror=euclidean()))
    linear(ogd(eta=0.1, domain=ball(radius=2)))
    linear(ftrl(eta=0.5, regularizer=adagrad(delta=2)))
    md(decay(eta=0.5, power=1), negative_entropy())
    md(decay(eta=0.5), negative_entropy(scale=2))
    model(ogd(eta=0.1), dot)
    boost(linear(ogd(eta=0.1)), 15, online_bbm(gamma=0.1))
    boost_scores(normalized_adagrad(eta=0.5), 3, osboost(gamma=0.1), squared)
    one_vs_rest(passive_aggressive_1(aggressiveness=0.3), 3)
    multiclass.passive_aggressive_2(aggressiveness=0.3)
    winnow(eta=0.1)
    winnow(beta=2)
    balanced_winnow(total=2, beta=3)
    pnorm_perceptron(p=3)
    arow(r=0.7)
    soft_confidence_weighted(confidence=0.8, aggressiveness=0.6, squared=True)
    best_pruning(ada_normal_hedge())
    ada_normal_hedge(low=-1, high=3)
    saol(linear(ogd(eta=0.1)), 4)
    from_optax(adam, learning_rate=0.1)
    majority(gamma=0.05)
    osboost_ocp(gamma=0.1)
    adaboost_ol()
    adaboost_ol_mean()
    structured(complexity=0.5, norm=linf())
    lipschitz_horizon(rounds=100, energy=0.5, complexity=2)
    add(euclidean(), hypentropy(beta=0.5))
    quadratic(curvature=2, penalty=elastic_net(l1=0.1, l2=0.2))
    euclidean(box(low=-1, high=1))
    margin_hinge(margin=2)
    huber(delta=0.1)
    squared
    max_loss(chain(3, 2))
    window(3, 4)
    averaged_steps(30)
"""


@pytest.mark.parametrize("line", [line.strip() for line in LINES.strip().splitlines()])
def test_a_record_is_shown_as_the_call_that_makes_it(line):
    assert repr(evaluated(line)) == line


NOT_SAID = {  # what a line leaves out, and so cannot be evaluated
    "[": "an array, shown as a list or by its kind",
    "key<fry>": "a random key",
    "_at(": "a function with numbers bound to it",
    "...": "a number that the learner does not hold",
    "cosh": "a function of the user",
    ", affine)": "a function of the user",
}


def is_said(line):
    return not any(part in line for part in NOT_SAID)


@pytest.mark.parametrize("name", [name for name in TABLE if is_said(repr(TABLE[name].learner))])
def test_the_line_of_a_learner_makes_it_again(name):
    learner = TABLE[name].learner
    again = evaluated(repr(learner))
    assert repr(again) == repr(learner)
    assert jax.tree.structure(again) == jax.tree.structure(learner)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(learner), strict=True):
        np.testing.assert_allclose(data_of(one), data_of(other), rtol=1e-5)  # six digits are shown


def test_most_lines_can_be_evaluated():
    assert sum(is_said(repr(case.learner)) for case in TABLE.values()) > 0.7 * len(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_every_learner_has_a_line_without_addresses(name):
    line = repr(TABLE[name].learner)
    assert "\n" not in line
    assert " at 0x" not in line
    assert len(line) < 400


def test_stacked_and_changed_learners_show_the_numbers_that_they_have():
    batch = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, 0.2]))
    line = "Batch(learners=linear(ogd(eta=[0.1, 0.2])), axes={eta: [0.1, 0.2]})"
    assert repr(batch) == line
    assert repr(batch[1]) == "linear(ogd(eta=0.2))"
    assert repr(jax.tree.map(lambda leaf: 3 * leaf, batch[0])) == "linear(ogd(eta=0.3))"


BATCHES = {  # numbers that are not kept as they are given, or that other factories are given
    "winnow(beta=3)": lambda x: classification.winnow(beta=x),
    "pnorm_perceptron(p=3)": lambda x: classification.pnorm_perceptron(x),
    "passive_aggressive_2(aggressiveness=3)": lambda x: classification.passive_aggressive_2(x),
    "strongly_convex_md(sigma=3)": lambda x: olx.first_order.strongly_convex_md(x),
    "ogd(eta=0.1, domain=ball(radius=3))": lambda x: olx.ogd(0.1, olx.convex.sets.ball(x)),
    "ogd(eta=0.1, domain=box(low=0, high=3))": lambda x: olx.ogd(0.1, olx.convex.sets.box(0.0, x)),
    "ada_normal_hedge(low=-1, high=3)": lambda x: olx.experts.ada_normal_hedge(low=-1.0, high=x),
}


@pytest.mark.parametrize("line", BATCHES)
def test_a_number_of_a_batch_is_found_where_it_is_kept(line):
    assert repr(olx.batch(BATCHES[line], x=jnp.array([2.0, 3.0]))[1]) == line


def test_traced_numbers_are_shown_by_their_type():
    seen = []
    jax.jit(lambda eta: seen.append(repr(olx.ogd(eta))) or eta)(0.1)
    assert seen == ["ogd(eta=float64[])"]


class OwnHparams(NamedTuple):
    eta: float


def mine(eta):
    plain = olx.ogd(eta)
    functions = plain.init_fn, plain.predict_fn, plain.update_fn
    return olx.Learner(OwnHparams(eta), *functions, name="mine")


UNNAMED = "Learner(hparams=OwnHparams(eta=0.5), init_fn=init, predict_fn=predict, update_fn=update)"


def test_a_factory_of_the_user_is_shown_under_its_name():
    assert repr(olx.linear(mine(0.5))) == "linear(mine(eta=0.5))"
    assert repr(dataclasses.replace(mine(0.5), name=Call())) == UNNAMED


def test_a_learner_with_parts_of_another_is_not_shown_as_the_call():
    learner = olx.ogd(0.1)
    other = dataclasses.replace(learner.hparams, mirror=olx.mirrors.negative_entropy())
    line = repr(dataclasses.replace(learner, hparams=other))
    assert line.startswith("Learner(hparams=MDHparams(")
    assert "mirror=negative_entropy()" in line
    assert repr(dataclasses.replace(learner, hparams=OwnHparams(0.5))) == UNNAMED


def test_a_name_is_no_part_of_the_structure():
    named, plain = dataclasses.replace(olx.ogd(0.1), name="mine"), olx.ogd(0.2)
    assert str(named.name) == "mine"
    assert jax.tree.structure(named) == jax.tree.structure(plain)
    assert digest(named) == digest(olx.ogd(0.1))
    renamed = dataclasses.replace(olx.experts.ada_normal_hedge(), name="mine")
    assert olx.experts.best_pruning(renamed).theorems != ()


def test_a_saved_learner_keeps_its_name_and_a_file_without_one_is_read(tmp_path, monkeypatch):
    learner = olx.first_order.strongly_convex_md(0.5, olx.mirrors.euclidean())
    path, state = tmp_path / "model.olx", learner.init(jnp.zeros(2))
    olx.save(path, learner, state)
    assert (
        repr(olx.load(path).learner)
        == repr(learner)
        == ("strongly_convex_md(sigma=0.5, mirror=euclidean())")
    )
    fields = save.fields_of
    without = lambda kind: {
        name: must
        for name, must in fields(kind).items()
        if not isinstance(getattr(kind, name, None), Call)
    }
    monkeypatch.setattr(save, "fields_of", without)  # as olx 0.1 wrote it
    olx.save(path, olx.ogd(0.1), state)
    monkeypatch.undo()
    old = olx.load(path).learner
    assert jax.tree.structure(old) == jax.tree.structure(olx.ogd(0.1))
    assert repr(old).startswith("Learner(hparams=MDHparams(")
