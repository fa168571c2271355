"""Two processes give the bits of one; one that dies costs what it had not saved."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import two_processes
from two_processes import DENSE, ETAS, SWEEPS, numbers, pieces, swept

import olx
from olx.engine import processes, threads, tuning
from olx.engine.device import Devices, devices_of
from olx.engine.numbers import Leaves

PROGRAM = Path(two_processes.__file__)


@pytest.fixture(autouse=True, scope="module")
def short_streams_are_cut_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "SHARES_WORK", 0)
        yield


def started(folder, act):
    """What two processes print; they have the flags of the compiler that the tests have."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    words = lambda i: [sys.executable, str(PROGRAM), port, str(i), str(folder), act]
    both = [
        subprocess.Popen(words(i), env=environment, stderr=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    try:
        return [process.communicate(timeout=240)[1] for process in both]
    finally:
        for process in both:
            process.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    errors = started(folder, "together")
    assert (folder / "dies.0").is_file(), errors
    return folder


@pytest.fixture(scope="module")
def resumed(folder):
    kept = {path: path.read_bytes() for path in (folder / "saved").glob("*/steps/*.step")}
    swept(DENSE, checkpoint=olx.checkpoint(folder / "of_one"))
    errors = started(folder, "again")
    assert (folder / "of_one.1").is_file(), errors
    return kept


def same(folder, name, wanted):
    for i in range(2):
        with np.load(folder / f"{name}.{i}.npz") as found:
            seen = list(found.values())
        assert len(seen) == len(wanted)
        for one, other in zip(seen, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", SWEEPS)
def test_two_processes_change_no_bit(name, folder):
    same(folder, name, numbers(SWEEPS[name]()))


def test_all_but_the_uncut_sweep_were_dealt(folder):
    assert [(folder / f"dealt.{i}").read_text() for i in range(2)] == [str(len(SWEEPS) - 1)] * 2


def test_a_process_with_other_data_is_named(folder):
    words = "plays another stream than process"
    said = [(folder / f"other.{i}").read_text() for i in range(2)]
    assert said[0].startswith(f"ValueError: sweep: process 1 {words} 0; every process must make")
    assert said[1].startswith(f"ValueError: sweep: process 0 {words} 1; every process must make")


def test_a_process_that_dies_is_named(folder):
    assert (folder / "dies.0").read_text() == (
        "Lost: sweep: process 1 of 2 has given no sign of life for 5 seconds; it has died, or its "
        "machine cannot be reached. Start all processes again with the same call: each continues "
        "from its checkpoint."
    )
    assert not (folder / "dies.1").exists()


def test_the_run_continues_from_the_checkpoints(folder, resumed):
    rounds = {i: set() for i in range(2)}
    for path, content in resumed.items():
        assert path.read_bytes() == content  # not played again
        rounds[int(path.parts[-3].split("-")[1])].add(int(path.stem))
    assert max(rounds[0]) == 50  # it saved before it stopped
    assert max(rounds[1]) == 40
    same(folder, "again", numbers(swept(pieces())))


def test_a_checkpoint_of_another_number_of_processes_is_refused(folder, resumed):
    words = "is of a run of 1 process, this run has 2. Start as many, or give another directory."
    for i in range(2):
        assert (folder / f"of_one.{i}").read_text().endswith(words)
    with pytest.raises(ValueError, match=r"is of a run of 2 processes, this run has 1\."):
        swept(pieces(), checkpoint=olx.checkpoint(folder / "saved"))


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_every_share_is_dealt_once(count, monkeypatch):
    whole, mine = threads.Shares(131, 4, 33), []
    monkeypatch.setattr(jax, "process_count", lambda: count)
    monkeypatch.setattr(processes, "_is_cut", lambda *_: True)
    monkeypatch.setattr(processes, "Heartbeat", lambda *_: None)
    game = Leaves([ETAS], [], ())
    for i in range(count):
        monkeypatch.setattr(jax, "process_index", lambda i=i: i)
        crew = processes.ProcessGroup("sweep", Devices(1, 1), False)
        state, own, part = crew.deal(None, 32, whole, ETAS, game)
        assert (part.configurations, part.of, part.width) == (len(state), 131, 33)
        np.testing.assert_array_equal(own.own[0], state)
        mine.append(state)
    dealt = np.concatenate(mine[:4])  # with more processes than shares some are played twice
    np.testing.assert_array_equal(dealt, ETAS)
    for i in range(4, count):
        np.testing.assert_array_equal(mine[i], mine[i - 4])


def test_a_plain_loop_is_played_whole_by_each_process(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(processes, "part", lambda cut, start, stop, state, own: (state, own))
    forms = SimpleNamespace(plain=0, choose=lambda *_: (0, "plain loop"))
    program = SimpleNamespace(forms=lambda _: forms)
    given = threads.Shares(131, 4, 33), ETAS, Leaves([ETAS], [], ())
    crew = processes.ProcessGroup("sweep", Devices(1, 1), False)
    found = crew.deal(program, 32, *given)
    assert all(one is other for one, other in zip(found, (*given[1:], given[0]), strict=True))
    assert crew.peers is None
    assert crew.words == "; each process plays all configurations"


def test_each_process_has_the_same_number_of_devices(monkeypatch):
    for name, number in (("process_count", 2), ("device_count", 3), ("local_device_count", 2)):
        monkeypatch.setattr(jax, name, lambda number=number: number)
    with pytest.raises(ValueError, match="process 0 has 2 of 3 devices; give each of the 2"):
        devices_of(8)
