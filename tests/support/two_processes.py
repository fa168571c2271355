"""One of two processes of JAX that play sweeps together, as `test_many` asks.

python two_processes.py PORT PROCESS FOLDER ACT
"""

import os
import signal
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

import olx
from olx import losses, regularizers
from olx._refusal import in_words
from olx.engine import processes, tuning
from olx.engine.device import data_of

X = np.random.default_rng(0).normal(size=(70, 32)) / 6
LABELS = np.sign(X[:, 0])
DENSE = olx.Rounds(X, LABELS)
SPARSE = olx.Rounds(olx.streams.sparse_rows(csr_array(X * (abs(X) > 0.15))), LABELS)
ETAS = np.geomspace(1e-3, 1.0, 131)


def adagrad(eta):
    return olx.linear(olx.ftrl(eta, regularizers.adagrad(rate=eta)))


def mistaken(feedback):
    return feedback.action * feedback.outcome < 0


def swept(rounds, count=131, **options):
    learners = olx.batch(adagrad, eta=ETAS[:count])
    return olx.sweep(learners, losses.squared, rounds, jnp.zeros(32), **options)


def drawn():
    keys = jax.random.split(jax.random.key(0), 65)
    learners = olx.batch(olx.experts.exp3, eta=ETAS[:65], key=keys)
    return olx.sweep(learners, losses.linear_loss, olx.Rounds(None, abs(X)), jnp.full(32, 1 / 32))


WATCH = {"record": olx.record.actions, "measure": mistaken, "keep": olx.keep.every(16)}
SWEEPS = {
    "padded": lambda: swept(DENSE, **WATCH),  # 4 shares of 33, of which the last has 32
    "sparse": lambda: swept(SPARSE),
    "keys": drawn,
    "uncut": lambda: swept(DENSE, 63),
}


def pieces(disturb=lambda start: None):
    for start in range(0, 70, 10):
        disturb(start)
        yield jax.tree.map(lambda leaf, a=start: leaf[a : a + 10], DENSE)


def saved(folder, **disturb):
    place = olx.checkpoint(folder / "saved", every=1)
    return swept(pieces(**disturb), checkpoint=place)


def numbers(run):
    return [np.asarray(data_of(leaf)) for leaf in jax.tree.leaves(run)]


def store(folder, name, run):
    np.savez(folder / f"{name}.{jax.process_index()}.npz", *numbers(run))


def said(call):
    """The message of the error that a call raises."""
    try:
        call()
    except processes.Lost as error:
        return f"Lost: {error}"
    except (ValueError, RuntimeError) as error:
        return in_words(error)
    return "no error"


def dies(start):
    if start == 40 and jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if start == 40:
        time.sleep(tuning.LOST_SECONDS + 4 * tuning.SIGN_SECONDS)


def together(folder):
    for name, play in SWEEPS.items():
        store(folder, name, play())
    (folder / f"dealt.{jax.process_index()}").write_text(str(processes._counted))
    other = DENSE._replace(context=X + jax.process_index())
    (folder / f"other.{jax.process_index()}").write_text(said(lambda: swept(other)))
    (folder / f"dies.{jax.process_index()}").write_text(said(lambda: saved(folder, disturb=dies)))
    os._exit(0)  # JAX would wait for the dead process


def again(folder):
    store(folder, "again", saved(folder))
    wrong = said(lambda: swept(DENSE, checkpoint=olx.checkpoint(folder / "of_one")))
    (folder / f"of_one.{jax.process_index()}").write_text(wrong)


if __name__ == "__main__":
    port, process, where, act = sys.argv[1:]
    jax.config.update("jax_enable_x64", True)
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(process))
    tuning.SHARES_WORK, tuning.SIGN_SECONDS, tuning.LOST_SECONDS = 0, 0.1, 5.0
    {"together": together, "again": again}[act](Path(where))
