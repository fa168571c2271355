"""Mirror maps, losses, comparators, sparse rows, arrays and wrappers that must be refused."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from bad_inputs import Bad
from jax.scipy.special import entr, logsumexp

import olx
from olx import experts, losses, meta, mirrors, streams
from olx.convex import norms, sets
from olx.streams.sparse_rows import SparseRows

KEY = jax.random.key(0)
X, Y, ZEROS = np.random.default_rng(0).normal(size=(6, 2)), np.array([1.0, -1.0] * 3), np.zeros(2)
ROUNDS = olx.Rounds(X, Y)

NOT_CONVEX = {
    "concave": lambda w: -jnp.vdot(w, w),
    "a cube": lambda w: jnp.sum(w**3),
    "a sine": lambda w: jnp.sum(jnp.sin(w)),
    "a root": lambda w: jnp.sum(jnp.sqrt(jnp.abs(w))),
}
FLAT = {
    "linear": jnp.sum,
    "absolute values": lambda w: jnp.sum(jnp.abs(w)),
    "a maximum": jnp.max,
    "a norm": lambda w: jnp.sqrt(jnp.vdot(w, w)),
    "steps": lambda w: jnp.sum(jnp.round(w)),
    "the square of a sum": lambda w: jnp.sum(w) ** 2,
    "constant": lambda w: 0.0 * jnp.sum(w),
}
OF_SYMMETRIC = {
    "minus the log-determinant": lambda w: -jnp.linalg.slogdet(w)[1],
    "minus its logarithm by a root": lambda w: (
        -jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(w))))
    ),
    "the entropy of eigenvalues": lambda w: -jnp.sum(entr(jnp.linalg.eigvalsh(w))),
    "the squares of eigenvalues": lambda w: jnp.sum(jnp.linalg.eigvalsh(w) ** 2),
}
square = lambda w: jnp.vdot(w, w) / 2
MAPS = {
    **{
        f"a potential: {name}, start {start}": Bad(
            lambda f=f, start=start: olx.mirror_map(f, start=start),
            ValueError,
            "for a function of symmetric matrices use `olx.mirrors.log_det` or",
        )
        for name, f in OF_SYMMETRIC.items()
        for start in (0.0, 1.0)
    },
    **{
        f"a potential: {name}": Bad(
            lambda f=f: olx.mirror_map(f), ValueError, "mirror_map: `potential` must be convex"
        )
        for name, f in NOT_CONVEX.items()
    },
    **{
        f"a potential: {name}": Bad(
            lambda f=f: olx.mirror_map(f), ValueError, "mirror_map: `potential` must be strictly"
        )
        for name, f in FLAT.items()
    },
    "a concave conjugate": Bad(
        lambda: olx.mirror_map(None, NOT_CONVEX["concave"]), ValueError, "`conjugate` must be conv"
    ),
    "a linear conjugate": Bad(
        lambda: olx.mirror_map(None, jnp.sum), ValueError, "`conjugate` must be strictly"
    ),
    "a potential that is not separable": Bad(
        lambda: olx.mirror_map(lambda w: square(w) + logsumexp(w), separable=True),
        ValueError,
        "mirror_map: `potential` is not a sum over coordinates",
    ),
    "an entropy from 0": Bad(
        lambda: olx.mirror_map(lambda w: -jnp.sum(entr(w))), ValueError, "give a `start` inside"
    ),
    "a barrier from 0": Bad(
        lambda: olx.mirror_map(lambda w: -jnp.sum(jnp.log(w))), ValueError, "give a `start` inside"
    ),
    "a potential of vectors": Bad(
        lambda: olx.mirror_map(lambda w: w**2), TypeError, "mirror_map: .*one real number"
    ),
    "a potential of nothing": Bad(
        lambda: olx.mirror_map(lambda w: None), TypeError, "mirror_map: .*one real number"
    ),
    "a potential of whole numbers": Bad(
        lambda: olx.mirror_map(lambda w: 3), TypeError, "mirror_map: .*one real number"
    ),
    "a potential by name": Bad(lambda: olx.mirror_map("entropy"), TypeError, "must be a function"),
    "a potential of two": Bad(lambda: olx.mirror_map(lambda a, b: a), TypeError, "must take"),
    "nothing": Bad(olx.mirror_map, TypeError, "mirror_map: give a potential"),
    "a total of a conjugate": Bad(
        lambda: olx.mirror_map(None, square, total=1.0), TypeError, "mirror_map: `total`"
    ),
    "a NaN total": Bad(lambda: olx.mirror_map(square, total=np.nan), ValueError, "`total`"),
    "a NaN start": Bad(lambda: olx.mirror_map(square, start=np.nan), ValueError, "`start`"),
    "a start of text": Bad(lambda: olx.mirror_map(square, start="0"), TypeError, "`start`"),
    "a modulus of 0": Bad(lambda: olx.mirror_map(square, modulus=0.0), ValueError, "`modulus`"),
    "a norm that is none": Bad(lambda: olx.mirror_map(square, norm=2), TypeError, "`norm` must be"),
    "a domain that is none": Bad(
        lambda: olx.mirror_map(square, contains=True), TypeError, "`contains` must be a function"
    ),
    "a prior with a zero": Bad(
        lambda: mirrors.negative_entropy(prior=np.array([1.0, 0.0])), ValueError, "`prior`"
    ),
    "pnorm of 3": Bad(lambda: mirrors.pnorm(3.0), ValueError, "pnorm: `q`"),
    "pnorm of 1": Bad(lambda: mirrors.pnorm(1.0), ValueError, "pnorm: `q`"),
    "tsallis of 1": Bad(lambda: mirrors.tsallis(1.0), ValueError, "tsallis"),
    "tsallis of -1": Bad(lambda: mirrors.tsallis(-1.0), ValueError, "tsallis: `alpha`"),
    "a negative curvature": Bad(
        lambda: mirrors.quadratic(np.array([1.0, -1.0])), ValueError, "quadratic: `curvature`"
    ),
    "a matrix that is not square": Bad(
        lambda: mirrors.precompose(mirrors.euclidean(), jnp.ones((2, 3))), TypeError, "square"
    ),
    "a sum of domains without a start": Bad(
        lambda: mirrors.add(mirrors.negative_entropy(), mirrors.euclidean()), TypeError, "add: give"
    ),
    "euclidean on a radius": Bad(
        lambda: mirrors.euclidean(1.0), TypeError, "euclidean: `domain` must be a ConvexSet"
    ),
    "euclidean on a projection": Bad(
        lambda: mirrors.euclidean(jnp.abs), TypeError, "euclidean: `domain` must be a ConvexSet"
    ),
}
UNEVEN = {"a": np.zeros(2)}, {"b": np.ones(2)}
SETS = {
    "a box upside down": Bad(lambda: sets.box(1.0, 0.0), ValueError, "box: `low` must not exceed"),
    "a box upside down in one coordinate": Bad(
        lambda: sets.box(0.0, np.array([1.0, -1.0])), ValueError, "box: `low` must not exceed"
    ),
    "a box from NaN": Bad(lambda: sets.box(np.nan, 1.0), ValueError, "box: `low` must lie"),
    "a box to NaN": Bad(lambda: sets.box(0.0, np.nan), ValueError, "box: `high` must lie"),
    "a box at infinity": Bad(lambda: sets.box(np.inf, np.inf), ValueError, "box: `low` must lie"),
    "a box below all": Bad(lambda: sets.box(0.0, -np.inf), ValueError, "box: `high` must lie"),
    "a box of text": Bad(lambda: sets.box("0", 1.0), TypeError, "box: `low` must be a real number"),
    "a box of two structures": Bad(lambda: sets.box(*UNEVEN), TypeError, "box: `low` has struct"),
    "a projection that is a number": Bad(
        lambda: sets.projected(1.0), TypeError, "projected: `project` must be a function"
    ),
    "a projection of two points": Bad(
        lambda: sets.projected(lambda w, v: w), TypeError, "projected: `project` must take"
    ),
    "a farthest point": Bad(
        lambda: sets.projected(jnp.abs, ZEROS), TypeError, "projected: `farthest` must be a funct"
    ),
    "the support of a projection": Bad(
        lambda: sets.projected(jnp.abs).support(ZEROS), TypeError, "support: .* give its farthest"
    ),
    "the indicator of a radius": Bad(
        lambda: olx.convex.indicator(1.0), TypeError, "indicator: `domain` must be a ConvexSet"
    ),
    "strongly_convex_ogd on a map": Bad(
        lambda: olx.first_order.strongly_convex_ogd(1.0, mirrors.euclidean()),
        TypeError,
        "strongly_convex_ogd: `domain` must be a ConvexSet, got MirrorMap",
    ),
}


def best(loss=losses.squared, rounds=ROUNDS, params=ZEROS, apply=olx.dot, **options):
    return olx.best_in_hindsight(loss, rounds, params, apply=apply, **options)


def weighed(weight):
    return olx.Rounds(X, Y, weight)


def against(error, says, *given, **options) -> Bad:
    return Bad(lambda: best(*given, **options), error, f"best_in_hindsight: {says}")


bowl = lambda w, z: -jnp.vdot(w, w)
HINDSIGHT = {
    "negative weights": against(ValueError, "rounds.weight must", losses.squared, weighed(-(Y**2))),
    "weights in a column": against(TypeError, "rounds.w", losses.squared, weighed(Y[:, None] ** 2)),
    "too few weights": against(TypeError, "leaves of", losses.squared, weighed(np.ones(3))),
    "NaN weights": against(ValueError, "rounds.weight", losses.squared, weighed(Y * np.nan)),
    "labels 0 and 1": against(
        ValueError, "hinge: labels must", losses.hinge, olx.Rounds(X, (Y + 1) / 2)
    ),
    "NaN rows": against(ValueError, "rounds.context", losses.squared, olx.Rounds(X * np.nan, Y)),
    "a NaN start": against(ValueError, "`params` holds nan", params=ZEROS * np.nan),
    "a whole start": against(TypeError, "`params` holds int", params=np.zeros(2, int)),
    "a start of another shape": against(TypeError, "context has shape", params=np.zeros(3)),
    "no rounds": against(TypeError, "`rounds` must be a Rounds", rounds=X),
    "a loss by name": against(TypeError, "`loss` must be a function", "hinge"),
    "a model by name": against(TypeError, "`apply` must be a function", apply="dot"),
    "a radius for a domain": against(TypeError, "`domain` must be a ConvexSet", domain=1.0),
    "a domain without a farthest point": against(
        TypeError, "`domain` is given by its projection", domain=sets.projected(jnp.abs)
    ),
    "a negative tolerance": against(ValueError, "`tolerance`", tolerance=-1.0),
    "negative steps": against(ValueError, "`steps`", steps=-1),
    "sparse rows": against(
        TypeError,
        "sparse rows",
        rounds=olx.Rounds(streams.sparse_rows(scipy.sparse.csr_array(X)), Y),
    ),
    "mistakes": against(ValueError, "`loss` is not convex", losses.zero_one),
    "a sine": against(ValueError, "`loss` is not convex", lambda s, y: jnp.sin(s - y)),
    "a Cauchy loss": against(
        ValueError, "`loss` is not conv", lambda s, y: jnp.log1p((s - y) ** 2)
    ),
    "a concave loss": against(ValueError, "`loss` is not convex", lambda s, y: -((s - y) ** 2)),
    "a concave loss of the point": against(
        ValueError,
        "`loss` is not convex",
        bowl,
        apply=olx.hindsight.itself,
        domain=sets.ball(1.0),
    ),
}


def in_unit_ball(eta):
    return olx.linear(olx.ogd(eta, sets.ball(1.0)))


def on_sparse_rows(drive, learner, width):
    """A game on two sparse rows of three columns, from a decision of `width` numbers."""
    rounds = olx.Rounds(streams.sparse_rows(matrix()), np.ones(2))
    return drive(learner, losses.zero_one, rounds, np.zeros(width))


def matrix(**parts):
    """A matrix of shape (2, 3) some of whose parts were overwritten."""
    made = scipy.sparse.csr_array(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]))
    for name, value in parts.items():
        setattr(made, name, np.asarray(value, getattr(made, name).dtype))
    return made


def rows(error, says, given) -> Bad:
    return Bad(lambda: streams.sparse_rows(given), error, f"sparse_rows: .*{says}")


def entries(says, pointers, indices, values=2, width=3) -> Bad:
    arrays = np.array(pointers), np.array(indices, np.int32), np.zeros(values)
    return Bad(lambda: SparseRows(*arrays, width), (ValueError, TypeError), f"SparseRows: .*{says}")


def displaced():
    made = scipy.sparse.coo_array(np.eye(2))
    made.coords[1][0] = 5
    return made


@functools.cache
def folder() -> Path:
    place = Path(tempfile.mkdtemp(prefix="olx-bad-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def read(name, text, **options):
    path = folder() / name
    path.write_text(text)
    return streams.read_svmlight(path, **options)


SPARSE = {
    **{
        f"a column {column} of 3": rows(
            ValueError, f"from 0 to 2, got {column} in entry 1", matrix(indices=[1, column, 0])
        )
        for column in (3, 10, 10**6, -1)
    },
    **{
        f"row pointers {pointers}": rows(
            ValueError, "row pointers must rise", matrix(indptr=pointers)
        )
        for pointers in ([0, 3], [0, 3, 2], [1, 2, 3], [0, 2, 7], [0, -1, 3], [0, 2, 3, 3])
    },
    "too few values": rows(ValueError, "values for", matrix(data=[1.0, 2.0])),
    "complex numbers": rows(TypeError, "complex", scipy.sparse.csr_array(np.eye(2) * 1j)),
    "no columns": rows(TypeError, "rows and columns", scipy.sparse.csr_array((2, 0))),
    "a dense matrix": rows(TypeError, "SciPy sparse", np.eye(2)),
    "a coordinate out of range": rows(ValueError, "from 0 to 1, got 5", displaced()),
    "a column out of range, transposed": rows(ValueError, "got 9", matrix(indices=[1, 9, 0]).T),
    "entries: a column 3 of 3": entries("got 3 in entry 1", [0, 2], [0, 3]),
    "entries: a column -1": entries("got -1 in entry 0", [0, 2], [-1, 0]),
    "entries: pointers past the end": entries("must rise", [0, 3], [0, 1]),
    "entries: pointers that fall": entries("must rise", [0, 2, 1], [0, 1]),
    "entries: three values": entries("of one length", [0, 2], [0, 1], values=3),
    "entries: a column twice": entries("got 1 after 1 in row 1", [0, 1, 3], [0, 1, 1], values=3),
    "an empty file": Bad(lambda: read("empty", ""), ValueError, "read_svmlight: .*no rows"),
    "a file of comments": Bad(
        lambda: read("notes", "# one\n"), ValueError, "read_svmlight: .*no r"
    ),
    "a file of text": Bad(lambda: read("text", "1 a:b\n"), ValueError, "read_svmlight: .*format"),
    "a file of too many features": Bad(
        lambda: read("wide", "1 5:1\n", features=2), ValueError, "read_svmlight: "
    ),
    "features that are no number": Bad(
        lambda: read("some", "1 5:1\n", features="5"), ValueError, "read_svmlight: `features`"
    ),
    "a file that is not there": Bad(
        lambda: streams.read_svmlight(folder() / "none"), FileNotFoundError, "read_svmlight: "
    ),
    "sparse rows of another width": Bad(
        lambda: on_sparse_rows(olx.run, olx.classification.perceptron(), 4),
        TypeError,
        "run: `params` has shape",
    ),
    "sparse rows in a sweep of a learner that needs dense ones": Bad(
        lambda: on_sparse_rows(olx.sweep, olx.batch(in_unit_ball, eta=np.ones(2)), 3),
        TypeError,
        "sweep: sparse rows need a learner that states how its coordinates interact",
    ),
    "sparse rows in a rollout": Bad(
        lambda: on_sparse_rows(olx.rollout, olx.classification.perceptron(), 3),
        TypeError,
        "rollout: .*sparse rows",
    ),
}


def arrays(error, says, *given, **options) -> Bad:
    return Bad(lambda: streams.from_arrays(*given, **options), error, f"from_arrays: {says}")


ARRAYS = {
    "NaN": arrays(ValueError, "context holds nan at row 0", X * np.nan, Y),
    "infinity": arrays(ValueError, "outcome holds inf at row 0", X, Y + np.inf),
    "text": arrays(ValueError, "outcome holds 'a' at row 0", X, list("abcdef")),
    "ragged rows": arrays(TypeError, "context is ragged: row 1", [[1, 2], [3]], [1, 2]),
    "lengths that differ": arrays(TypeError, "numbers of rows differ", X, Y[:2]),
    "no rows": arrays(ValueError, "there are no rows", X[:0], Y[:0]),
    "no outcome": arrays(TypeError, "outcome holds no array", X, None),
    "one number": arrays(TypeError, "context is a float", 1.0, Y),
    "negative weights": arrays(ValueError, "weight holds -1.0 at row 1", X, Y, Y),
    "weights in a column": arrays(TypeError, "weight has shape", X, Y, Y[:, None] ** 2),
    "NaN weights": arrays(ValueError, "weight holds nan", X, Y, Y * np.nan),
    "a masked context": arrays(TypeError, "context is a masked", np.ma.masked_less(X, 0), Y),
    "masked outcomes": arrays(TypeError, "outcome is a masked", X, np.ma.masked_less(Y, 0)),
    "complex": arrays(ValueError, "context holds", X * 1j, Y),
    "classes of -1": arrays(ValueError, "outcome holds -1.0 at row 1", X, Y, labels=True),
    "classes of 0.5": arrays(ValueError, "outcome holds 0.5", X, Y / 2, labels=True),
    "sparse rows": arrays(TypeError, "context is a", scipy.sparse.csr_array(X), Y),
}

LEARNER = olx.ogd(0.1)
WRAPPERS = {
    f"{name} of no learner": Bad(make, TypeError, f"{name}: `{argument}` must be a Learner")
    for (name, argument), make in {
        ("linear", "inner"): lambda: olx.linear(0.1),
        ("model", "inner"): lambda: olx.model(0.1, olx.dot),
        ("average", "inner"): lambda: meta.average(olx.ogd),
        ("random_stop", "inner"): lambda: meta.random_stop("ogd", KEY),
        ("restarts", "inner"): lambda: meta.restarts(None, 2, 2, KEY),
        ("cbce", "inner"): lambda: meta.cbce(3, 2),
        ("saol", "inner"): lambda: meta.saol(3, 2),
        ("mix", "mixer"): lambda: olx.meta.mix(olx.batch(olx.ogd, eta=np.ones(2)), None),
        ("sampled", "inner"): lambda: experts.sampled(None, KEY),
        ("committed", "inner"): lambda: experts.committed(None, KEY),
        ("bandit", "inner"): lambda: experts.bandit(0.5, KEY),
        ("linearized", "inner"): lambda: experts.linearized(None),
        ("best_pruning", "inner"): lambda: experts.best_pruning(None),
        ("particles", "inner"): lambda: experts.particles(None, jnp.zeros(3)),
        ("experts_from_game", "inner"): lambda: experts.experts_from_game(None),
        ("game_from_experts", "inner"): lambda: experts.game_from_experts(None),
    }.items()
} | {
    "a mixture of one learner": Bad(
        lambda: olx.meta.mix(LEARNER, olx.hedge(0.1)), TypeError, "mix: `inner` must be a batch"
    ),
    "a model by name": Bad(
        lambda: olx.model(LEARNER, "dot"), TypeError, "model: `apply` must be a function"
    ),
    "omd with a number for a map": Bad(
        lambda: olx.omd(0.1, 2.0), TypeError, "omd: `mirror` must be a MirrorMap"
    ),
    "ogd with a radius for a domain": Bad(
        lambda: olx.ogd(0.1, 2.0), TypeError, "ogd: `domain` must be a ConvexSet"
    ),
    "dual_ascent on mistakes": Bad(
        lambda: olx.dual_ascent(
            1.0, mirrors.euclidean(), losses.zero_one, olx.ascents.conservative()
        ),
        ValueError,
        "dual_ascent: `loss` must be convex in the score",
    ),
    "implicit on mistakes": Bad(
        lambda: olx.implicit(0.1, losses.zero_one), ValueError, "implicit: `loss` must be convex"
    ),
    "the conjugate of mistakes": Bad(
        lambda: losses.zero_one.conjugate(0.0, 1.0), ValueError, "conjugate: `loss` must be convex"
    ),
    "the proximal map of a ramp": Bad(
        lambda: losses.ScoreLoss(value_fn=lambda _, s, y: jnp.clip(1 - y * s, 0, 1)).prox(1, 0, 1),
        ValueError,
        "prox: `loss` must be convex in the score; this one is not, near a score of",
    ),
    "implicit on a function": Bad(
        lambda: olx.implicit(0.1, jnp.dot), TypeError, "implicit: `loss` must be a ScoreLoss"
    ),
    "an empty axis": Bad(
        lambda: olx.batch(olx.ogd, eta=np.ones(0)), ValueError, "batch: axis `eta` is empty"
    ),
    "an axis of one number": Bad(
        lambda: olx.batch(olx.ogd, eta=0.1), TypeError, "batch: axis `eta` is a single number"
    ),
    "axes of two lengths": Bad(
        lambda: olx.batch(olx.first_order.adagrad, eta=np.ones(2), delta=np.ones(3)),
        TypeError,
        "batch: axes",
    ),
    "no axis": Bad(lambda: olx.batch(olx.ogd), TypeError, "batch: give at least one axis"),
    "an axis of text": Bad(
        lambda: olx.batch(olx.ogd, eta=["a", "b"]), TypeError, "batch: axis `eta`"
    ),
    "an argument that is not there": Bad(
        lambda: olx.batch(olx.ogd, step=np.ones(2)), TypeError, "batch: .*step"
    ),
}

MAP, STEPS = mirrors.euclidean(), olx.schedules.decay(1.0)
REGULARIZER = olx.regularizers.constant(MAP)
PROCESSES = {
    "a regularizer as the step of md": Bad(
        lambda: olx.md(REGULARIZER, MAP), TypeError, "md: `eta` must give a step size, got .* regul"
    ),
    "a map as the step of md": Bad(
        lambda: olx.md(MAP, MAP), TypeError, "md: `eta` must be a number, got a MirrorMap"
    ),
    "a schedule as the regularizer of ftrl": Bad(
        lambda: olx.ftrl(0.1, STEPS), TypeError, "ftrl: `regularizer` must give a regularizer"
    ),
    "a schedule as the hint of optimistic": Bad(
        lambda: olx.optimistic(0.1, MAP, STEPS), TypeError, "optimistic: `hint` must give a grad"
    ),
    "a schedule as the step of omd": Bad(
        lambda: olx.omd(STEPS, MAP), TypeError, "omd: `eta` must be a number, got a Process"
    ),
    "a regularizer as the weights of average": Bad(
        lambda: meta.average(olx.ogd(0.1), REGULARIZER),
        TypeError,
        "average: `weights` must give a weight, got a process that gives a regularizer",
    ),
    "a step size as the weights of average": Bad(
        lambda: meta.average(olx.ogd(0.1), STEPS),
        TypeError,
        "average: `weights` must give a weight, got a process that gives a step size",
    ),
    "a regularizer as the step of ogd": Bad(
        lambda: olx.ogd(REGULARIZER), TypeError, "ogd: `eta` must give a step size, got .* regul"
    ),
    "a count of mistakes in a point learner": Bad(
        lambda: olx.rollout(
            olx.linear(olx.ogd(olx.schedules.mistakes(1.0, norms.l2()))),
            olx.losses.hinge,
            olx.Rounds(np.ones((3, 2)), np.ones(3)),
            np.zeros(2),
        ),
        TypeError,
        "mistakes: this schedule counts mistakes of a score",
    ),
}

BAD = {
    f"{table}: {name}": bad
    for table, entries in {
        "mirror_map": MAPS,
        "sets": SETS,
        "best_in_hindsight": HINDSIGHT,
        "sparse": SPARSE,
        "from_arrays": ARRAYS,
        "made of": WRAPPERS,
        "what changes with time": PROCESSES,
    }.items()
    for name, bad in entries.items()
}
