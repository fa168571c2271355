r"""Follow the regularized leader, with a time-varying regularizer and any update vectors.

$$\theta_1 = 0, \qquad w_t = \nabla f_t^*(\theta_t) = \arg\max_w \langle\theta_t, w\rangle - f_t(w),
  \qquad \theta_{t+1} = \theta_t + z_t.$$

$f_t$ may depend on all earlier rounds and on the context $x_t$, which is known before predicting.
$z_t$ is $-\eta g_t$ unless another direction is given. Dual averaging, AdaGrad and composite
losses are choices of $f_t$. The forecaster of Vovk, Azoury and Warmuth and the classification
algorithms are choices of $f_t$ and $z_t$. The bound is the master inequality of
`olx.frameworks.accounts`, divided by the step size.

Three closed forms bound the regret on the losses themselves, $\sum_{s \le t} \ell_s(w_s) + F(w_s) -
\ell_s(u) - F(u)$, for rounds of weight 1. $F$ is the penalty in the regularizer, if there is one.
The regret is at most

$$(5) \quad \frac{b_t(u)}{\eta} + \eta \sum_{s \le t} \frac{\|g_s\|_{s,*}^2}{2 \beta_s}
  \quad \text{for } f_t = b_t + \eta t F \text{ with } b_t \ge 0 \text{ that never shrinks,}$$
$$(6) \quad \sqrt t \, \Big( \frac{b(u)}{\eta} + \frac\eta\beta \max_{s \le t} \|g_s\|_*^2 \Big)
  \quad \text{for } f_t = \sqrt t\, b + \eta t F,$$
$$(7) \quad \max_{s \le t} \|g_s\|_*^2 \, \frac{1 + \ln t}{2\beta}
  \quad \text{for } f_t = t F \text{ with } F\ \beta\text{-strongly convex and } \eta = 1.$$

The form of $f_t$ is a condition: it is checked at $u$ and at $w_t$ in every round.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, algorithm 1 and corollary 1.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx._numeric import Sum
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Scalar
from olx.facts import Facts, Separable
from olx.frameworks import accounts
from olx.frameworks.accounts import Regret, Step
from olx.mirrors.base import MirrorMap
from olx.regularizers.growing import as_regularizer, constant, constant_init
from olx.theorem import About, Theorem


@pytree
class FTRLHparams:
    eta: Scalar
    regularizer: Process
    direction: Partial


class FTRLState(NamedTuple):
    theta: Sum  # a compensated sum: theta grows as fast as f_t
    stats: PyTree


def downhill(feedback: Feedback) -> PyTree:
    """Minus the gradient, times the weight of the round."""
    return tree.scale(-feedback.weight, feedback.grad)


@public
def ftrl(
    eta: Scalar,
    regularizer: MirrorMap | Process,
    direction: Callable[[Feedback], PyTree] = downhill,
) -> Learner:
    r"""Sum `eta` times the directions and play $\nabla f_t^*$ of the sum.

    regularizer: a `MirrorMap`, or one of `olx.regularizers` for an $f_t$ that changes.
    direction: from the feedback of a round, what is added to the dual (before the factor `eta`);
        a named function or a `Partial`. It must multiply by `feedback.weight`. Inside `linear` the
        feedback also holds $x_t$ and $y_t$.

    Only the shape of `params` is used: the first decision is the minimizer of $f_1$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=5)
    >>> lasso = olx.regularizers.composite(olx.convex.l1(5.0), rate=0.1)
    >>> learner = olx.linear(olx.ftrl(0.1, lasso))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, jnp.zeros(5)).holds)
    True
    """
    eta = check.positive("eta", eta)
    check.function("direction", direction)
    regularizer = as_regularizer("regularizer", regularizer)
    hparams = FTRLHparams(eta, regularizer, as_tree(direction))
    alone = regularizer.separable and direction is downhill
    facts = Facts(coordinates=Separable() if alone else None)
    theorems = (master_inequality,)
    return Learner(hparams, init, predict, update, facts=facts, theorems=theorems)


def init(hp: FTRLHparams, params: PyTree) -> FTRLState:
    return FTRLState(_numeric.start(tree.zeros_like(params)), hp.regularizer.init(params))


def predict(hp: FTRLHparams, state: FTRLState, context: PyTree) -> PyTree:
    return hp.regularizer.at(state.stats, context).to_primal(state.theta.value)


def update(hp: FTRLHparams, state: FTRLState, feedback: Feedback) -> FTRLState:
    f = hp.regularizer.at(state.stats, feedback.context)
    theta = _numeric.add(Sum(f.center(state.theta.value), state.theta.rest), _move(hp, feedback))
    return FTRLState(theta, hp.regularizer.update(state.stats, feedback))


def step(hp: FTRLHparams, state: FTRLState, feedback: Feedback) -> Step:
    """The round in the notation of the lemma."""
    f = hp.regularizer.at(state.stats, feedback.context)
    theta, after = state.theta.value, update(hp, state, feedback).theta.value
    return Step(f, theta, theta, _move(hp, feedback), feedback.action, after)


master_inequality = accounts.master_inequality(step)


def _move(hp: FTRLHparams, feedback: Feedback) -> PyTree:
    return tree.scale(hp.eta, hp.direction(feedback))


Penalized = Callable[[PyTree], Array]


@public
def composite_regret(base: MirrorMap | Process, penalty: Penalized | None = None) -> Theorem:
    """The bound (5), for an `ftrl`.

    base: the regularizer $b_t$. It must have the same statistics as the learner's regularizer:
        `growing(euclidean(), power)` for `composite`, `adagrad(delta=delta)` for `adagrad`.
    penalty: $F$; no penalty if None.

    The step size of the learner and the `rate` of its penalty must be equal.
    """
    base = as_regularizer("base", base)
    about = About(
        "an `ftrl` of minus gradients whose regularizer has the same statistics as `base`",
        Leads(base.init_fn, base.update_fn),
    )
    return _corollary("composite_regret", "(5)", base, penalty, COMPOSITE, about)


@public
def root_regret(base: MirrorMap, penalty: Penalized | None = None) -> Theorem:
    """The bound (6), for an `ftrl`; `base` is $b$, `penalty` is $F$ (no penalty if None)."""
    base = _measured("base", base)
    return _corollary("root_regret", "(6)", constant(base), penalty, ROOT, GROWING)


@public
def leader_regret(penalty: MirrorMap) -> Theorem:
    """The bound (7), for an `ftrl` with step size 1; `penalty` is $F$."""
    penalty = _measured("penalty", penalty)
    base, value = constant(penalty), penalty.potential
    return _corollary("leader_regret", "(7)", base, value, LEADER, GROWING)


class Corollary(NamedTuple):
    regret: Regret
    paid: Float[Array, ""]  # b_t(u)
    energy: Float[Array, ""]  # the sum of |g|^2 / (2 beta)
    largest: Float[Array, ""]  # the largest term of `energy`
    inside: Bool[Array, ""]  # whether u was in the domain of every b_t
    grows: Bool[Array, ""]  # whether b_t was not negative at u and w_t, and never shrank at u
    formed: Bool[Array, ""]  # whether f_t had the form of the statement at u and w_t


@pytree
class Form:
    """What a statement demands of the regularizer, and its right side."""

    demand: str = static()
    regularizer_fn: Callable[..., Array] = static()  # (eta, t, b_t(w), F(w)) -> f_t(w)
    right_fn: Callable[..., Array] = static()  # (hparams, account) -> the right side


def _composite(eta: Scalar, t: Array, b: Array, penalty: Array) -> Array:
    return b + eta * t * penalty


def _composite_bound(hp: FTRLHparams, account: Corollary) -> Array:
    return account.paid / hp.eta + hp.eta * account.energy


def _root(eta: Scalar, t: Array, b: Array, penalty: Array) -> Array:
    return jnp.sqrt(t) * b + eta * t * penalty


def _root_bound(hp: FTRLHparams, account: Corollary) -> Array:
    each = account.paid / hp.eta + 2 * hp.eta * account.largest
    return jnp.sqrt(account.regret.rounds.past) * each


def _leader(eta: Scalar, t: Array, b: Array, penalty: Array) -> Array:
    return jnp.where(eta == 1, t * penalty, jnp.inf)


def _leader_bound(hp: FTRLHparams, account: Corollary) -> Array:
    return accounts.logarithmic(account.largest, account.regret)


COMPOSITE = Form(
    "the regularizer must be `base` plus eta t times `penalty`", _composite, _composite_bound
)
ROOT = Form(
    "the regularizer must be sqrt(t) times `base` plus eta t times `penalty`", _root, _root_bound
)
LEADER = Form(
    "the regularizer must be t times `penalty`, and the step size 1", _leader, _leader_bound
)
GROWS = "`base` must not be negative and must not shrink"


@dataclasses.dataclass(frozen=True)
class Leads:
    """Tests for an `ftrl` that adds minus gradients, with the statistics of `base` if given."""

    init_fn: Callable | None = None
    update_fn: Callable | None = None

    def __call__(self, learner: Learner) -> bool:
        hp = learner.hparams
        if not isinstance(hp, FTRLHparams):
            return False
        if jax.tree.structure(hp.direction) != jax.tree.structure(Partial(downhill)):
            return False
        if self.init_fn is None:
            return hp.regularizer.init_fn is not constant_init
        return self == Leads(hp.regularizer.init_fn, hp.regularizer.update_fn)


GROWING = About("an `ftrl` of minus gradients whose regularizer changes with time", Leads())


def _corollary(
    name: str, number: str, base: Process, penalty: Penalized | None, form: Form, about: About
) -> Theorem:
    if penalty is not None:
        check.takes("penalty", penalty, "w")
        penalty = as_tree(penalty)
    source = f"Orabona et al. 2015, corollary 1 {number}"
    add, sides = Partial(_add_round, base, penalty, form), Partial(_sides, form)
    return Theorem(name, source, _open, add, sides, about=about)


def _open(hp: FTRLHparams, state: FTRLState, u: PyTree) -> Corollary:
    regret, true = accounts.open_regret(state.theta.value, u), jnp.ones((), bool)
    zero = jnp.zeros_like(regret.left)
    return Corollary(regret, zero, zero, zero, true, true, true)


@own_name("composite_regret")
def _add_round(
    base: Process,
    penalty: Partial | None,
    form: Form,
    hp: FTRLHparams,
    account: Corollary,
    state: FTRLState,
    feedback: Feedback,
    u: PyTree,
) -> Corollary:
    f, b = (one.at(state.stats, feedback.context) for one in (hp.regularizer, base))
    energy, t, w = b.energy(feedback.grad), account.regret.rounds.now, feedback.action
    if energy is None:
        raise RefusedType("the map of `base` must state its norm and its modulus.")
    (at_u, other_u), (at_w, other_w) = (
        _compared(f, b, penalty, form, hp.eta, t, point) for point in (u, w)
    )
    tiny = 1e3 * jnp.finfo(energy.dtype).eps * (jnp.abs(account.paid) + accounts.constants(b, u))
    return Corollary(
        accounts.add_regret(account.regret, feedback, u, penalty=penalty),
        at_u,
        account.energy + energy,
        jnp.maximum(account.largest, energy),
        account.inside & (b.outside(u) == 0),
        account.grows & ~((at_u < account.paid - tiny) | (at_w < -tiny)),  # NaN must show
        account.formed & ~(other_u | other_w),
    )


def _sides(form: Form, hp: FTRLHparams, account: Corollary, u: PyTree) -> Certificate:
    proof = accounts.regret_sides(account.regret, form.right_fn(hp, account))
    return proof.under({DOMAIN: account.inside, GROWS: account.grows, form.demand: account.formed})


def _measured(name: str, mirror: MirrorMap) -> MirrorMap:
    check.instance(name, mirror, MirrorMap)
    if not mirror.states_norm:
        raise RefusedType(f"`{name}` must state its norm and its modulus.")
    return mirror


def _compared(
    f: MirrorMap,
    b: MirrorMap,
    penalty: Partial | None,
    form: Form,
    eta: Scalar,
    t: Array,
    point: PyTree,
) -> tuple[Array, Array]:
    """b_t at a point, and whether f_t has another form there, beyond rounding."""
    own, part = f.potential(point), b.potential(point)
    more = jnp.zeros_like(part) if penalty is None else penalty(point)
    asked = form.regularizer_fn(eta, t, part, more)
    size = (
        jnp.abs(own)
        + jnp.abs(asked)
        + accounts.constants(f, point)
        + t * accounts.constants(b, point)
    )
    apart = jnp.where(own == asked, 0.0, jnp.abs(own - asked))  # both may be infinite
    rounding = 1e3 * jnp.finfo(part.dtype).eps * jnp.where(jnp.isinf(size), 0.0, size)
    return part, apart > rounding
