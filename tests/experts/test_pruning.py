"""Prunings of a tree: the learner against NumPy and its theorem, the comparator by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx.experts.ada_normal_hedge import ada_normal_hedge
from olx.experts.best_pruning import Path, best_pruning
from olx.hindsight.shifting import best_pruning_in_hindsight, edge_losses

# a tree of uneven depth: edges 0, 1 leave the root, 0 parts into 2, 3, 4, and so on
PARENTS = np.array([-1, -1, 0, 0, 0, 1, 1, 2, 2, 6, 6])
E, DEPTH, T = len(PARENTS), 4, 400
LEAVES = [e for e in range(E) if e not in PARENTS]
LEARNER = best_pruning(ada_normal_hedge())
distance = lambda action, outcome: jnp.abs(action - outcome)


def path_to(edge):
    return [] if edge < 0 else [*path_to(PARENTS[edge]), edge]


def prunings(edge=-1):
    """All prunings of the tree below an edge, as sets of edges; by enumeration."""
    children = [e for e in range(E) if PARENTS[e] == edge]
    parts = itertools.product(*map(prunings, children))
    below = [[e for part in choice for e in part] for choice in parts]
    return ([[edge]] if edge >= 0 else []) + (below if children else [])


def stream(kind: str, seed: int):
    """Paths, advice and outcomes; the outcome follows a hidden pruning where there is one."""
    rng = np.random.default_rng(seed)
    ends = rng.choice(LEAVES, T)
    paths = [path_to(e) for e in ends]
    edges = np.array([path + [-1] * (DEPTH - len(path)) for path in paths])
    says = rng.uniform(size=E)
    advice = np.where(edges >= 0, says[edges], np.nan)
    if kind == "noise":
        outcome = rng.integers(0, 2, T).astype(float)
    else:
        cut = prunings()[rng.integers(len(prunings()))]
        ending = np.array([says[next(e for e in path if e in cut)] for path in paths])
        outcome = np.clip(ending + 0.1 * rng.normal(size=T), 0, 1)
        if kind == "turning":
            outcome = np.where(np.arange(T) < T // 2, outcome, 1 - outcome)
    return olx.Rounds(Path(jnp.asarray(edges), jnp.asarray(advice)), jnp.asarray(outcome))


STREAMS = [stream(kind, seed) for seed, kind in enumerate(["pruned", "noise", "turning", "pruned"])]
STACKED = jax.tree.map(lambda *leaves: jnp.stack(leaves), *STREAMS)
CUTS = np.array([np.isin(np.arange(E), cut).astype(float) for cut in prunings()])


@pytest.fixture(scope="module")
def played():
    @jax.jit
    def play(rounds):
        run = olx.rollout(LEARNER, distance, rounds, jnp.ones(E), record=olx.record.trace)
        proofs = jax.vmap(lambda leaves: olx.certify(LEARNER, run, leaves)[0])(jnp.asarray(CUTS))
        return run, proofs, edge_losses(distance, rounds, E)

    return jax.vmap(play)(STACKED)


def reference(rounds):
    """A17 with A13: every edge in a full table, weights from the notes."""
    edges, advice = np.asarray(rounds.context.edges), np.asarray(rounds.context.advice)
    regret, size, actions = np.zeros(E), np.zeros(E), []
    phi = lambda r, c: np.exp(np.maximum(r, 0) ** 2 / (3 * c))
    for path, says, y in zip(edges, advice, np.asarray(rounds.outcome), strict=True):
        on = path[path >= 0]
        says = says[: len(on)]
        w = (phi(regret[on] + 1, size[on] + 1) - phi(regret[on] - 1, size[on] + 1)) / 2
        p = w / w.sum() if w.sum() > 0 else np.full(len(on), 1 / len(on))
        actions.append(p @ says)
        losses = np.abs(says - y)
        r = p @ losses - losses
        regret[on] += r
        size[on] += np.abs(r)
    return np.array(actions), regret, size


@pytest.mark.parametrize("which", range(len(STREAMS)))
def test_it_is_what_the_notes_say(played, which):
    run = jax.tree.map(lambda leaf: np.asarray(leaf[which]), played[0])
    actions, regret, size = reference(STREAMS[which])
    np.testing.assert_allclose(run.trace.feedback.action, actions, atol=1e-12)
    np.testing.assert_allclose(run.state.stats.regret, regret, atol=1e-11)
    np.testing.assert_allclose(run.state.stats.size, size, atol=1e-11)


def test_what_lies_past_the_leaf_never_leaks(played):
    assert np.isnan(STACKED.context.advice).any()
    assert np.all(np.isfinite(played[0].losses))


def test_edges_off_the_path_keep_their_state(played):
    trace = played[0].trace
    regret = np.asarray(trace.state.stats.regret[0])
    edges = np.asarray(STREAMS[0].context.edges)
    for t in range(50):
        moved = np.flatnonzero(regret[t + 1] != regret[t])
        assert set(moved) <= set(edges[t])


def test_the_regret_to_every_pruning_keeps_its_bound_after_every_round(played):
    proofs = played[1]
    assert proofs.left.shape == (len(STREAMS), len(CUTS), T)
    assert np.all(proofs.holds)
    assert np.max(proofs.tightness) > 0.3


def test_the_regret_in_the_bound_is_the_regret(played):
    run, proofs, _ = played
    for which, cut in enumerate(prunings()):
        edges, advice = (np.asarray(leaf[0]) for leaf in STACKED.context)
        says = np.nansum(np.where(np.isin(edges, cut), advice, 0.0), axis=1)
        other = np.abs(says - np.asarray(STACKED.outcome[0]))
        wanted = np.cumsum(np.asarray(run.losses[0]) - other)
        np.testing.assert_allclose(proofs.left[0, which], wanted, atol=1e-10)


def test_the_best_pruning_is_the_cheapest_of_all(played):
    find = jax.jit(lambda losses: best_pruning_in_hindsight(PARENTS, losses))
    for losses in np.asarray(played[2]):
        best = find(losses)
        costs = CUTS @ losses
        np.testing.assert_allclose(best.value, costs.min(), rtol=1e-12)
        np.testing.assert_array_equal(best.leaves, CUTS[costs.argmin()])


def test_it_beats_every_node_of_one_depth_where_the_world_is_a_pruning(played):
    run, _, totals = played
    best = (CUTS @ np.asarray(totals[0])).min()
    top = np.asarray(totals[0][:2]).sum()  # the nodes below the root
    assert run.losses[0].sum() < (best + top) / 2


def test_a_round_costs_the_same_in_a_larger_tree():
    one = jax.tree.map(lambda leaf: leaf[0], STREAMS[0])

    def flops(edges):
        def step(state):
            action = LEARNER.predict(state, one.context)
            seen = olx.Feedback(
                one.context,
                action,
                one.outcome,
                jax.tree_util.Partial(distance, one.outcome),
                distance(action, one.outcome),
                None,
            )
            return LEARNER.update(state, seen)

        state = jax.tree.map(jnp.asarray, LEARNER.init(jnp.ones(edges)))
        return jax.jit(step, donate_argnums=0).lower(state).compile().cost_analysis()["flops"]

    assert flops(100) == flops(10_000)


@pytest.mark.parametrize("parents", [[0, -1], [-1, 2, 0], [-2, 0]])
def test_parents_out_of_order_are_refused(parents):
    with pytest.raises(ValueError, match="`parents` must hold -1 or a smaller number"):
        best_pruning_in_hindsight(jnp.array(parents), jnp.ones(len(parents)))
