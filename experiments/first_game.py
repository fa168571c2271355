"""A first game: olx derives an algorithm, a sweep, a certificate and a gradient from a potential.

No library contains the potential below. olx derives its conjugate, plays mirror descent with 64
step sizes as one program, checks every run against its theorem after every round, and tunes the
step size by a gradient through the whole run.
"""

import jax
import jax.numpy as jnp

import olx


def potential(w):
    return jnp.sum(jnp.cosh(w)) + jnp.sum(jnp.abs(w) ** 1.5)


def main() -> None:
    mirror = olx.mirror_map(potential, separable=True)
    rounds, truth = olx.streams.linear_regression(jax.random.key(0), rounds=500, features=8)
    loss, start = olx.losses.squared, jnp.zeros(8)
    make = lambda eta: olx.linear(olx.omd(eta, mirror))

    etas = jnp.geomspace(1e-3, 10.0, 64)
    learners = olx.batch(make, eta=etas)
    runs = olx.sweep(learners, loss, rounds, start, record=olx.record.trace)
    proofs = jax.vmap(olx.certify, (0, 0, None))(learners.learners, runs, truth)[0]

    print(f"{'eta':>9} {'total loss':>12} {'regret <= bound':>24}  theorem")
    for i in range(0, 64, 7):
        verdict = "holds" if proofs.holds[i] else "FAILS"
        left, right = proofs.left[i, -1], proofs.right[i, -1]
        print(f"{etas[i]:9.4f} {runs.total[i]:12.2f} {left:12.2f} <= {right:8.2f}  {verdict}")

    best = int(jnp.argmin(jnp.where(jnp.isfinite(runs.total), runs.total, jnp.inf)))
    total = jax.jit(
        jax.value_and_grad(lambda eta: olx.rollout(make(eta), loss, rounds, start).total)
    )
    value, slope = total(etas[best])
    print(f"\nbest of the grid: eta = {etas[best]:.4f}, total loss {value:.3f}, slope {slope:.1f}")
    tuned = etas[best] - 0.02 * etas[best] * jnp.sign(slope)
    print(f"one small step downhill: eta = {tuned:.4f}, total loss {total(tuned)[0]:.3f}")

    learner = make(float(etas[best]))
    run = olx.rollout(learner, loss, rounds, start, record=olx.record.trace)
    print(f"\n{olx.certify(learner, run, truth)}")


if __name__ == "__main__":
    main()
