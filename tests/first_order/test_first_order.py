"""First-order learners: scores equal to second implementations, bounds after every round."""

import functools
from typing import NamedTuple

import jax
import numpy as np
import optax
import pytest
import reference_first_order as ref
from jax import lax
from refusal import said
from scipy.sparse import csr_array
from stored import FOLDER, reason, there

import olx
from olx import convex, losses, mirrors
from olx.convex import sets
from olx.first_order.coin_betting import cocob, coin_betting, coordinate_betting
from olx.first_order.dual_averaging import adagrad, rda
from olx.first_order.erfi_betting import erfi_betting
from olx.first_order.freegrad import freegrad
from olx.first_order.ftrl_proximal import ftrl_proximal
from olx.first_order.ons_betting import ons_betting
from olx.first_order.pistol import pistol
from olx.first_order.pnorm_lms import adaptive_filter, pnorm_lms
from olx.first_order.scale_invariant import scale_invariant_adagrad, scale_invariant_pnorm
from olx.first_order.self_confident import self_confident
from olx.first_order.strongly_convex import strongly_convex_md, strongly_convex_ogd
from olx.frameworks.implicit import implicit
from olx.interop.optax import from_optax

T, D = 2000, 123  # as many columns as a9a; the other streams leave the last ones empty
NAMES = ("independent", "drifting", "a9a", "covtype")


def independent(rng):
    """Twelve features in a row, the last units ten times the first."""
    x = np.zeros((T, D))
    for row in x:
        row[rng.choice(D - 3, 12, replace=False)] = rng.normal(size=12)
    chance = 1 / (1 + np.exp(-2 * x @ rng.normal(size=D)))
    return x * np.geomspace(0.1, 1, D), np.where(rng.random(T) < chance, 1.0, -1.0)


def drifting(rng):
    """Heavy tails, and a truth that turns round every 500 rows."""
    x = np.clip(rng.standard_t(3, size=(T, D)), -4, 4) / 4 * (rng.random((T, D)) < 0.2)
    x[:, -3:] = 0
    turns = np.where(np.arange(T) // 500 % 2, -1.0, 1.0)
    return x, turns * np.where(x @ rng.normal(size=D) >= 0, 1.0, -1.0)


def a9a():
    z = np.load(FOLDER / "a9a.npz")
    rows = csr_array((z["data"], z["indices"].astype(int), z["indptr"]), z["shape"])
    return rows[:T].toarray().astype(float), z["y"][:T].astype(float)


def covtype():
    z = np.load(FOLDER / "covtype.npz")
    x = np.zeros((T, D))
    x[:, :54] = z["X"][:T]
    return x / np.maximum(np.abs(x).max(axis=0), 1), np.where(z["y"][:T] == 2, 1.0, -1.0)


@functools.cache
def streams():
    """The rows and labels of every stream there is, by name."""
    rng = np.random.default_rng(0)
    found = {"independent": independent(rng), "drifting": drifting(rng)}
    for name, load in (("a9a", a9a), ("covtype", covtype)):
        if there(f"{name}.npz"):
            found[name] = load()
    return found


def ridge(x, y):
    return np.linalg.solve(x.T @ x + np.eye(D), x.T @ y)


@functools.cache
def stacked():
    """All streams as one array, and for each the comparators 0, ridge and a random point."""
    x, y = (np.stack(part) for part in zip(*streams().values(), strict=True))
    random = np.random.default_rng(1).normal(size=D) / 10
    us = [np.stack([np.zeros(D), ridge(*one), random]) for one in zip(x, y, strict=True)]
    return olx.Rounds(x, y), np.stack(us)


# Nearly all the time goes into compilation, and the programs are short-lived.
@functools.partial(
    jax.jit, static_argnames="theorems", compiler_options={"xla_backend_optimization_level": 0}
)
def study(learners, loss, rounds, comparators, theorems):
    """Scores, the last decision and all certificates: [configuration, stream, comparator, ...]."""

    def alone(learner, rounds, us):
        run = olx.rollout(learner, loss, rounds, np.zeros(D), record=olx.record.trace)
        prove = lambda name: jax.vmap(lambda u: olx.certify(learner, run, u)[name])(us)
        state = run.state
        last = state.w if hasattr(state, "w") else learner.hparams.inner.predict(state, np.zeros(D))
        return run.trace.feedback.action, last, [prove(theorem) for theorem in theorems]

    return lax.map(lambda one: jax.vmap(alone, (None, 0, 0))(one, rounds, comparators), learners)


class Case(NamedTuple):
    make: object  # of one number
    numbers: tuple  # the first is that of the reference
    reference: object  # of rows and outcomes
    tight: tuple = ()  # how close each bound gets to what it bounds; empty where elsewhere told
    loss: object = losses.logistic
    theorems: tuple = ()  # by name; none where other tests have the same certificate


SLOPE = ref.logistic_slope
LINEAR = lambda make: lambda number: olx.linear(make(number))
CASES = {
    "strongly convex MD on a ball": Case(
        LINEAR(lambda sigma: strongly_convex_md(sigma, mirrors.euclidean(sets.ball(2.0)))),
        (0.5, 0.02),
        lambda x, y: ref.strongly_convex_md(x, y, SLOPE, 0.5, 2.0),
    ),
    "strongly convex": Case(
        LINEAR(strongly_convex_ogd),
        (0.2, 2.0),
        lambda x, y: ref.strongly_convex(x, y, SLOPE, 0.2)[0],
        theorems=("weighted_parabolas",),
    ),
    "rda": Case(
        LINEAR(lambda eta: rda(eta, convex.l1(0.001))),
        (0.5, 5.0),
        lambda x, y: ref.rda_l1(x, y, SLOPE, 0.5, 0.001),
    ),
    "adagrad": Case(
        LINEAR(lambda eta: adagrad(eta, convex.l1(0.001), 0.3)),
        (0.5, 2.0),
        lambda x, y: ref.adagrad_l1(x, y, SLOPE, 0.5, 0.3, 0.001),
    ),
    "ftrl proximal": Case(
        LINEAR(lambda eta: ftrl_proximal(eta, 0.7, 0.5, 0.1)),
        (0.3, 2.0),
        lambda x, y: ref.ftrl_proximal(x, y, SLOPE, 0.3, 0.7, 0.5, 0.1),
        (0.6,),
        theorems=("strong_ftrl",),
    ),
    "scale-invariant p-norm": Case(
        LINEAR(scale_invariant_pnorm),
        (1.0, 5.0),
        lambda x, y: ref.scale_invariant_pnorm(x, y, SLOPE, 1.0, 1.0),
        (0.03,),
        theorems=("scale_invariant_regret",),
    ),
    "scale-invariant adagrad": Case(
        LINEAR(scale_invariant_adagrad),
        (1.0, 5.0),
        lambda x, y: ref.scale_invariant_adagrad(x, y, SLOPE, 1.0, 1.0),
        (0.3,),
        theorems=("scale_invariant_regret",),
    ),
    "p-norm lms": Case(
        LINEAR(pnorm_lms),
        (3.5, 2.0),
        lambda x, y: ref.pnorm_lms(x, y, 1.4),
        (0.2,),
        losses.squared,
        ("filtering",),
    ),
    "implicit hinge": Case(
        lambda eta: implicit(eta, losses.hinge),
        (0.1, 2.0),
        lambda x, y: ref.implicit_hinge(x, y, 0.1),
        (0.8,),
        losses.hinge,
        ("proximal_steps",),
    ),
    "implicit squared": Case(
        lambda eta: implicit(eta, losses.squared),
        (0.1, 2.0),
        lambda x, y: ref.implicit_squared(x, y, 0.1),
        loss=losses.squared,
    ),
    "implicit logistic": Case(
        lambda eta: implicit(eta, losses.logistic),
        (0.5, 5.0),
        lambda x, y: ref.implicit_logistic(x, y, 0.5),
        (0.8,),
        theorems=("proximal_steps",),
    ),
    "coin betting": Case(
        LINEAR(lambda wealth: coin_betting(6.0, wealth)),
        (1.0, 0.1),
        lambda x, y: ref.coin_betting(x, y, SLOPE, 6.0, 1.0),
        (0.8,),
        theorems=("betting_regret",),
    ),
    "coordinate betting": Case(
        LINEAR(lambda wealth: coordinate_betting(6.0, wealth)),
        (1.0, 0.1),
        lambda x, y: ref.coordinate_betting(x, y, SLOPE, 6.0, 1.0),
        (0.6,),
        theorems=("betting_regret",),
    ),
    "scale free on a ball": Case(
        LINEAR(lambda radius: olx.scale_free(mirrors.euclidean(sets.ball(radius)))),
        (2.0, 0.5),
        lambda x, y: ref.scale_free(x, y, SLOPE, 2.0),
    ),
    "scale free descent on a ball": Case(
        LINEAR(lambda radius: olx.scale_free_md(mirrors.euclidean(sets.ball(radius)))),
        (2.0, 0.5),
        lambda x, y: ref.scale_free_md(x, y, SLOPE, 2.0),
    ),
    "freegrad": Case(
        LINEAR(freegrad),
        (1.0, 0.1),
        lambda x, y: ref.freegrad(x, y, SLOPE, 1.0),
        (0.3,),
        theorems=("betting_regret",),
    ),
    "pistol": Case(
        LINEAR(pistol),
        (0.5, 2.0),
        lambda x, y: ref.pistol(x, y, SLOPE, 0.5, 2.25),
        (0.15,),
        theorems=("betting_regret",),
    ),
    "erfi betting": Case(
        LINEAR(erfi_betting),
        (0.3, 2.0),
        lambda x, y: ref.erfi_betting(x, y, SLOPE, 0.3),
        (0.3,),
        theorems=("betting_regret",),
    ),
    "ons betting": Case(
        LINEAR(ons_betting),
        (1.0, 0.1),
        lambda x, y: ref.ons_betting(x, y, SLOPE, 1.0),
        (0.3,),
        theorems=("betting_regret",),
    ),
    "cocob": Case(LINEAR(cocob), (100.0, 2.0), lambda x, y: ref.cocob(x, y, SLOPE, 100.0)),
}
PROVED = [name for name, case in CASES.items() if case.theorems]


def stack(learners):
    return jax.tree.map(lambda *numbers: np.stack(numbers), *learners)


@functools.cache
def played(name):
    case = CASES[name]
    rounds, us = stacked()
    learners = stack([case.make(number) for number in case.numbers])
    done = study(learners, case.loss, rounds, us, case.theorems)
    return jax.tree.map(np.asarray, done)


@pytest.mark.parametrize("stream", NAMES)
@pytest.mark.parametrize("name", CASES)
def test_scores_equal_the_reference(name, stream):
    if stream not in streams():
        pytest.skip(reason(f"{stream}.npz"))
    scores, _, _ = played(name)
    wanted = CASES[name].reference(*streams()[stream])
    assert np.abs(wanted).max() > 0.01
    np.testing.assert_allclose(scores[0, list(streams()).index(stream)], wanted, atol=1e-10)


@pytest.mark.parametrize("name", PROVED)
def test_bounds_hold_after_every_round(name):
    for proof in played(name)[2]:
        assert np.all(np.isfinite(proof.right))
        rounding = 64 * np.finfo(float).eps * proof.scale
        assert np.all(proof.left <= proof.right + rounding), proof.theorem
        if proof.published is not None:
            assert np.all(proof.right <= proof.published + rounding), proof.theorem


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.tight])
def test_bounds_are_not_vacuous(name):
    for proof, floor in zip(played(name)[2], CASES[name].tight, strict=True):
        positive = proof.right > 1e-3 * proof.scale
        used = np.where(positive, proof.left / np.where(positive, proof.right, 1.0), 0.0)
        assert used.max() > floor, proof.theorem


@pytest.mark.parametrize("name", CASES)
def test_unseen_coordinates_have_weight_0(name):
    last = played(name)[1]
    for k, (x, _) in enumerate(streams().values()):
        unseen = ~x.any(axis=0)
        assert np.all(last[:, k, unseen] == 0)
        assert np.any(last[:, k, ~unseen] != 0)


@pytest.mark.parametrize("name", ["scale-invariant p-norm", "scale-invariant adagrad"])
def test_units_of_features_do_not_matter(name):
    case = CASES[name]
    rounds, us = stacked()
    units = 10 ** np.random.default_rng(2).uniform(-6, 6, size=D)
    units[::2] *= -1
    learners = stack([case.make(number) for number in case.numbers])
    other = rounds._replace(context=rounds.context * units)
    scores = study(learners, case.loss, other, us / units, case.theorems)[0]
    np.testing.assert_allclose(scores, played(name)[0], atol=1e-9)


SHORT, FEW = 300, 8
RNG = np.random.default_rng(3)
GRADIENTS = np.stack(
    [
        RNG.uniform(size=(SHORT, FEW)) + np.linspace(0, 0.2, FEW),
        np.eye(FEW)[np.arange(SHORT) % 2] * np.linspace(1, 50, SHORT)[:, None],
        np.where(np.arange(SHORT)[:, None] < SHORT // 2, 1e-3, 10.0)
        * RNG.normal(size=(SHORT, FEW)),
    ]
)
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@quick
def confident(learner, gradients, us):
    """Decisions, what was paid, and certificates, on each stream of linear losses."""

    def alone(gradients):
        rounds = olx.Rounds(None, gradients)
        run = olx.rollout(
            learner, losses.linear_loss, rounds, np.zeros(FEW), record=olx.record.trace
        )
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u))(us)
        return run.trace.feedback.action, run.state.paid.value, proofs

    return jax.vmap(alone)(gradients)


@pytest.fixture(scope="module")
def on_the_simplex():
    learner = self_confident(mirrors.negative_entropy(), np.log(FEW), 1e-6)
    return confident(learner, GRADIENTS, np.eye(FEW))


def test_with_the_entropy_it_is_adahedge(on_the_simplex):
    decisions, paid, _ = on_the_simplex
    for k, losses_of_experts in enumerate(GRADIENTS):
        wanted, gaps = ref.adahedge(losses_of_experts, 1e-6)
        np.testing.assert_allclose(decisions[k], wanted, atol=1e-10)
        np.testing.assert_allclose(paid[k], gaps, rtol=1e-10)


def test_no_expert_beats_adahedge_by_more_than_twice_what_it_paid(on_the_simplex):
    decisions, paid, proofs = on_the_simplex
    assert np.all(proofs.holds)
    regret = np.sum(decisions * GRADIENTS, axis=(1, 2)) - GRADIENTS.sum(axis=1).min(axis=1)
    assert np.all(regret <= 2 * paid + 1e-6 * np.log(FEW) + 1e-9)
    assert np.max(regret / (2 * paid)) > 0.4


def test_it_does_not_know_the_size_of_the_losses(on_the_simplex):
    learner = self_confident(mirrors.negative_entropy(), np.log(FEW), 1e-3)
    decisions, paid, _ = confident(learner, 1e3 * GRADIENTS, np.eye(FEW))
    np.testing.assert_allclose(decisions, on_the_simplex[0], atol=1e-9)
    np.testing.assert_allclose(paid, 1e3 * on_the_simplex[1], rtol=1e-9)


def test_it_pays_the_root_of_the_squares_on_a_ball():
    us = np.stack([np.zeros(FEW), np.full(FEW, FEW**-0.5), -GRADIENTS[2].sum(axis=0) / 1e3])
    learner = self_confident(mirrors.euclidean(sets.ball(1.0)), 0.5, 1e-6)
    _, paid, proofs = confident(learner, GRADIENTS, us)
    assert np.all(proofs.holds)
    # Each gap is at most 2 |g| and |g|^2 / (4 Delta), so Delta^2 grows by less than 4.5 |g|^2.
    squares = np.sum(GRADIENTS**2, axis=(1, 2))
    assert np.all(paid**2 <= 4.5 * squares)
    assert np.max(proofs[0].tightness) > 0.4


def regression_stream():
    x = RNG.normal(size=(SHORT, FEW)) * (RNG.random((SHORT, FEW)) < 0.5)
    return x, np.where(x @ RNG.normal(size=FEW) + RNG.normal(size=SHORT) >= 0, 1.0, -1.0)


@quick
def decisions(learner, x, y):
    """The decisions of a point learner on the logistic loss, and their gradients."""
    keep = lambda state, feedback: (
        learner.predict(state, feedback.context),
        feedback.grad * feedback.context,
    )
    rounds = olx.Rounds(x, y)
    return olx.rollout(
        olx.linear(learner), losses.logistic, rounds, np.zeros(FEW), record=keep
    ).trace


@pytest.mark.parametrize("l1", [0.0, 3.0])
def test_ftrl_proximal_is_that_of_river_on_the_same_gradients(l1):
    """river decides before it adds the gradient, so it plays each decision a round late, and it
    leaves a weight as it was where the penalty should make it 0."""
    optim = pytest.importorskip("river.optim")

    ours, gradients = map(
        np.asarray, decisions(ftrl_proximal(0.3, 1.0, l1, 0.5), *regression_stream())
    )
    peer, w = optim.FTRLProximal(alpha=0.3, beta=1.0, l1=l1, l2=0.5), {}
    for own, g in zip(ours, gradients, strict=True):
        active = np.abs([peer.z[i] for i in range(FEW)]) > l1
        w = peer.step(dict(enumerate(own)), dict(enumerate(g)))
        theirs = np.array([w[i] for i in range(FEW)])
        np.testing.assert_allclose(own, np.where(active, theirs, 0.0), atol=1e-12)
    assert np.all(ours[-1] != 0) if l1 == 0 else np.any(ours == 0)


def test_adagrad_of_optax_is_that_of_river_and_ours_is_the_other_form():
    optim = pytest.importorskip("river.optim")
    x, y = regression_stream()
    numbers = {"learning_rate": 0.5, "initial_accumulator_value": 0.0, "eps": 1e-8}
    eager = from_optax(optax.adagrad, **numbers)
    ours, gradients = map(np.asarray, decisions(eager, x, y))
    peer, w = optim.AdaGrad(0.5, eps=1e-8), dict.fromkeys(range(FEW), 0.0)
    for own, g in zip(ours, gradients, strict=True):
        np.testing.assert_allclose(own, [w[i] for i in range(FEW)], atol=1e-10)
        w = peer.step(w, dict(enumerate(g)))
    lazy, _ = decisions(adagrad(0.5, delta=1e-8), x, y)
    assert np.abs(lazy - ours).max() > 0.01


def test_cocob_is_that_of_optax():
    x, y = regression_stream()
    ours, _ = decisions(cocob(7.0), x, y)
    theirs, _ = decisions(from_optax(optax.contrib.cocob, alpha=7.0, eps=1e-30), x, y)
    assert np.abs(ours).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


REFUSALS = {
    "scale": (
        lambda: scale_invariant_pnorm(1.0).predict(
            scale_invariant_pnorm(1.0).init(np.zeros(2)), None
        ),
        TypeError,
        "put the learner inside `olx.linear`",
    ),
    "filter": (
        lambda: adaptive_filter(olx.mirror_map(lambda w: (w**4).sum(), separable=True)),
        TypeError,
        "must state its norm",
    ),
    "alpha": (
        lambda: ftrl_proximal(-1.0),
        ValueError,
        "ftrl_proximal: `eta` must be positive, got -1.0.",
    ),
    "sigma": (
        lambda: strongly_convex_md(0.0),
        ValueError,
        "strongly_convex_md: `sigma` must be positive",
    ),
    "wealth": (
        lambda: coin_betting(1.0, 0.0),
        ValueError,
        "coin_betting: `wealth` must be positive",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_makes_no_sense_is_refused(name):
    act, kind, message = REFUSALS[name]
    assert message in said(act, kind)


STEEP = olx.Rounds(None, np.array([[1.0, 0.5], [-1.0, 1.0], [3.0, 0.0], [0.5, 0.5]]))


@pytest.mark.parametrize("make", [coin_betting, coordinate_betting])
def test_a_gradient_beyond_lipschitz_shows_in_the_losses_of_its_own_bettor(make):
    bettors = olx.batch(make, lipschitz=np.array([1.5, 5.0]))
    seen = olx.sweep(bettors, losses.linear_loss, STEEP, np.zeros(2))
    assert np.isfinite(seen.losses).tolist() == [[True, True, True, False], [True] * 4]
    assert seen.state.breach.round.tolist() == [3, 0]
    assert seen.state.breach.size.tolist() == [3.0, 0.0]


SLOPES = np.array([1.0, -1.0, 3.0, 0.5])
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


def steps(learner, loss, rounds, params):
    """`olx.step` for each round of `rounds`."""
    state = learner.init(params)
    for row, outcome in zip(rounds.context, rounds.outcome, strict=True):
        state, *_ = olx.step(learner, loss, state, row, outcome)


def sparse(learner, loss, rounds, params):
    """`olx.run` on sparse rows."""
    olx.run(
        learner, loss, rounds._replace(context=olx.streams.sparse_rows(csr_array(ROWS))), params
    )


def wrapped(learner, loss, rounds, params):
    """`olx.run` of a mixture of two copies."""
    two = jax.tree.map(lambda leaf: np.stack([leaf] * 2), learner)
    olx.run(olx.meta.mix(two, olx.hedge(0.1)), loss, rounds, params)


@pytest.mark.parametrize("drive", [olx.rollout, olx.run, steps, sparse, wrapped])
@pytest.mark.parametrize("make", [coin_betting, coordinate_betting])
def test_a_gradient_beyond_lipschitz_is_refused_with_its_round(make, drive):
    game = losses.linear_loss, olx.Rounds(ROWS, SLOPES), np.zeros(2)
    wanted = f"{make.__name__}: gradients times weights must be at most `lipschitz`, got 3 in its "
    seen = said(lambda: drive(olx.linear(make(1.5)), *game), ValueError)
    assert f"{wanted}round 3; give a larger `lipschitz`, or take" in seen
    drive(olx.linear(make(3.0)), *game)


@pytest.mark.parametrize("make", [coin_betting, coordinate_betting])
def test_the_bound_of_a_bettor_is_infinite_once_a_coin_is_larger_than_one(make):
    (proof,) = olx.certify(make(1.5), losses.linear_loss, STEEP, np.zeros(2), np.ones(2))
    assert "from round 3 on: gradients times weights must be at most `lipschitz`" in str(proof)
    assert np.isfinite(proof.right).tolist() == [True, True, False, False]
