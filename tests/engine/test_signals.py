"""SIGINT and SIGTERM end a run between two chunks; one with a checkpoint is saved first."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.engine.outputs import Outputs

X = np.random.default_rng(0).normal(size=(600, 3))
LEARNER = olx.linear(olx.ogd(0.1))
ENDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}


def pieces(before=lambda piece: None):
    for piece in range(6):
        before(piece)
        rows = slice(100 * piece, 100 * piece + 100)
        yield olx.Rounds(X[rows], X[rows, 0])


def play(stream, **options):
    return olx.run(LEARNER, losses.squared, stream, jnp.zeros(3), **options)


def sent(number, at):
    return lambda piece: os.kill(os.getpid(), number) if piece == at else None


def ended(call, number):
    with pytest.raises(ENDS[number]) as caught:
        call()
    if number == signal.SIGTERM:
        assert caught.value.code == 143


@pytest.mark.parametrize("number", ENDS)
def test_a_run_that_waits_for_its_stream_is_saved(number, tmp_path, capsys):
    ended(lambda: play(pieces(sent(number, 3)), checkpoint=olx.checkpoint(tmp_path)), number)
    assert capsys.readouterr().err == (
        f"run: interrupted after 300 rounds, saved in {tmp_path}; repeat the same call to "
        "continue.\n"
    )
    seen = play(pieces(), checkpoint=olx.checkpoint(tmp_path))
    np.testing.assert_array_equal(seen.losses, play(pieces()).losses)


@pytest.mark.parametrize("number", ENDS)
def test_a_run_at_work_is_saved_after_its_chunk(number, tmp_path, capsys, monkeypatch):
    hold = Outputs.hold
    with monkeypatch.context() as patch:
        kill = lambda self, chunk, out: (sent(number, 200)(chunk.start), hold(self, chunk, out))
        patch.setattr(Outputs, "hold", kill)
        ended(lambda: play(pieces(), checkpoint=olx.checkpoint(tmp_path)), number)
    assert "run: interrupted after 300 rounds, saved in" in capsys.readouterr().err
    seen = play(pieces(), checkpoint=olx.checkpoint(tmp_path))
    np.testing.assert_array_equal(seen.losses, play(pieces()).losses)


def test_without_a_checkpoint_it_ends_after_its_chunk(monkeypatch, capsys):
    seen, hold = [], Outputs.hold

    def kill(self, chunk, out):
        os.kill(os.getpid(), signal.SIGINT)
        seen.append(chunk.start)
        hold(self, chunk, out)

    monkeypatch.setattr(Outputs, "hold", kill)
    ended(lambda: play(pieces()), signal.SIGINT)
    assert seen == [0]
    assert capsys.readouterr().err == ""


def test_a_second_signal_is_not_put_off(monkeypatch, tmp_path):
    def kill(self, chunk, out):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr(Outputs, "hold", kill)
    ended(lambda: play(pieces(), checkpoint=olx.checkpoint(tmp_path)), signal.SIGINT)


def test_handlers_are_as_they_were_and_those_of_the_user_stay(tmp_path):
    before = [signal.getsignal(number) for number in ENDS]
    play(pieces(), checkpoint=olx.checkpoint(tmp_path / "a"))
    assert [signal.getsignal(number) for number in ENDS] == before
    taken = []
    signal.signal(signal.SIGTERM, lambda *given: taken.append(given))
    try:
        play(pieces(sent(signal.SIGTERM, 2)), checkpoint=olx.checkpoint(tmp_path / "b"))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert len(taken) == 1


def test_a_run_in_another_thread_takes_no_signals(tmp_path):
    done = []
    work = lambda: done.append(play(pieces(), checkpoint=olx.checkpoint(tmp_path)))
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    np.testing.assert_array_equal(done[0].losses, play(pieces()).losses)


SCRIPT = """
import sys, time
import jax.numpy as jnp, numpy as np, olx
def pieces():
    x = np.random.default_rng(0).normal(size=(100, 3))
    for i in range(10_000):
        if i == 3:
            print("playing", flush=True)
        yield olx.Rounds(x, x[:, 0])
learner = olx.linear(olx.ogd(0.1))
place = olx.checkpoint(sys.argv[1], every=10**9)
olx.run(learner, olx.losses.squared, pieces(), jnp.zeros(3), keep=olx.keep.totals, checkpoint=place)
print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)]
)
def test_a_process_ends_with_the_usual_status(number, status, tmp_path):
    worker = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert worker.stdout.readline() == "playing\n"
    worker.send_signal(number)
    out, err = worker.communicate(timeout=120)
    assert (worker.returncode, out) == (status, "")
    assert "rounds, saved in" in err
    assert len(list(tmp_path.glob("steps/*.step"))) == 1
