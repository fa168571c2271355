"""The `olx` command: what it prints, how it refuses, what Ctrl-C leaves behind."""

import itertools
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from olx import cli
from olx.cli.commands import names
from olx.lab import config, store, tables
from olx.lab import run as running
from olx.lab.compare import _explained
from olx.lab.experiment import Budget, Data, Experiment, Player, Published, Random, keys
from olx.lab.names import MODULES
from olx.lab.report.tables import Column, Table
from olx.lab.show import _text

CONFIG = """
title = "Tiny"
seeds = 2
precision = "float64"
models = false

[[data]]
name = "stream:linear_classification"
label = "half-space"
arguments = { rounds = 40, features = 3 }

[[learners]]
name = "ogd"
label = "descent"
linear = true
grid.eta = [0.1, 1.0]

[[learners]]
name = "perceptron"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return tmp_path


def olx(capsys, *words):
    """The exit status, and what was printed where."""
    capsys.readouterr()
    status = cli.main(words)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_run_prints_its_leaderboard_and_says_where_it_is(here, capsys):
    status, out, _ = olx(capsys, "run", "tiny.toml", "--no-report")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "half-space"
    assert "mean loss" in lines[1]
    assert "mean error" in lines[1]
    assert any("descent" in line and "eta = " in line for line in lines)
    assert any("perceptron" in line for line in lines)
    assert lines[-1] == "The tables are in results/tiny."
    assert olx(capsys, "show", "results/tiny")[1].splitlines() == lines[:-1]


def test_settings_reach_the_run(here, capsys):
    words = ("--set", "seeds=1", "--set", "learners.0.grid.eta=[0.5]", "--out", "other")
    assert olx(capsys, "run", "tiny.toml", "--no-report", *words)[0] == 0
    assert store.read("other").configurations.column("h.eta").to_pylist() == [0.5, None, None]


def test_theorems_are_certified(here, capsys):
    words = ("certify", "tiny.toml", "--set", "seeds=1")
    status, out, _ = olx(capsys, *words, "--set", "comparator=truth", "--out", "sure")
    assert status == 0
    assert "Shalev-Shwartz" in out
    proofs = store.read("sure").certificates
    assert set(proofs.column("learner").to_pylist()) == {"descent", "perceptron"}


def test_a_theorem_that_fails_shows_in_the_status(here, capsys, monkeypatch):
    made = tables.table
    lie = lambda name, columns: made(
        name,
        {**columns, "holds": [False for _ in columns["holds"]]} if "holds" in columns else columns,
    )
    monkeypatch.setattr(tables, "table", lie)
    words = ("certify", "tiny.toml", "--set", "seeds=1", "--set", "comparator=zero")
    status, out, _ = olx(capsys, *words)
    assert status == 1
    assert "fails" in out


def test_ctrl_c_leaves_what_can_be_resumed(here, capsys, monkeypatch):
    play, played = running.play_job, []

    def twice(*rest):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(1)
        return play(*rest)

    with monkeypatch.context() as patch:
        patch.setattr(running, "play_job", twice)
        status, out, err = olx(capsys, "run", "tiny.toml", "--no-report")
    assert (status, out) == (130, "")
    kept = "2 jobs are kept in results/tiny, repeat the same command to continue"
    assert err == f"olx run: interrupted; {kept}.\n"
    assert len(store.finished_jobs(here / "results" / "tiny")) == 2
    assert olx(capsys, "run", "tiny.toml", "--no-report")[0] == 0
    experiment = config.read("tiny.toml")
    whole = running.run(experiment, "whole")
    assert whole.configurations.equals(store.read("results/tiny").configurations)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_a_run_between_two_jobs(number, status, here):
    process = start("run", "tiny.toml", "--no-report", "--set", "seeds=200")
    result = here / "results" / "tiny"
    waiting = time.monotonic() + 120
    while not store.finished_jobs(result) and time.monotonic() < waiting:
        time.sleep(0.005)
    process.send_signal(number)
    err = process.communicate()[1]
    assert process.returncode == status, err
    kept = len(store.finished_jobs(result))
    assert kept > 0
    assert err.splitlines() == [
        "olx: stopping at the next save; a second signal stops at once.",
        f"olx run: interrupted; {kept} jobs are kept in results/tiny, repeat the same command to "
        "continue.",
    ]


def test_a_signal_before_the_first_job_ends_the_command_at_once(here):
    process = start("run", "tiny.toml")
    time.sleep(0.5)  # jax is being imported
    process.send_signal(signal.SIGINT)
    err = process.communicate()[1]
    assert process.returncode == -signal.SIGINT
    assert err == ""


def start(*words):
    """The command as a process of its own."""
    handler = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{handler}; import olx_command; olx_command.main()"  # a shell may ignore the signal
    root = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=root)


REFUSED = {
    "no such config": ("run none.toml", "olx run: none.toml: no such config; "),
    "no config": ("run", "olx run: the following arguments are required: config; see olx run"),
    "no such command": ("walk", "olx: there is no command walk"),
    "no such option": ("show --fast x", "olx show: it takes no option --fast"),
    "unknown key": ("run tiny.toml --set sede=1", "unknown key sede; did you mean seeds?"),
    "no result": ("show .", "olx show: . holds no result; give the folder that `olx run` wrote"),
    "no list": ("list learner", "there is no list of learner; did you mean learners?"),
    "no name": ("list omdd", "there is no list of omdd; did you mean omd?"),
    "no topic": ("help rnu", "olx help: there is no topic rnu; did you mean run?"),
    "no kind": ("new map mine", "argument kind: invalid choice: 'map'"),
    "no Python name": ("new learner my-own", "'my-own' is no name of Python; use letters"),
    "a word of Python": ("new learner class", "'class' is no name of Python"),
    "a module": ("new regularizer numpy", "there is a module numpy already; choose another name"),
    "a file": ("new experiment tiny", "olx new: tiny.toml is there already; choose another name"),
    "no data": (
        "run tiny.toml --set data.0.name=b9a",
        "there is no data set 'b9a'; did you mean a9a?",
    ),
    "no rounds": ("bench --rounds 0", "bench: `rounds` must be an integer of at least 1, got 0."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_one_line_and_status_two(case, here, capsys):
    words, said = REFUSED[case]
    try:
        status = cli.main(words.split())
    except SystemExit as exit:
        status = exit.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("command", ["", *names()])
def test_help_is_there(command, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main([*command.split(), "--help"])
    assert exit.value.code == 0
    assert f"usage: olx {command}".strip() in capsys.readouterr().out


def test_what_a_config_may_name_is_listed_with_a_line_about_each(capsys):
    _, out, _ = olx(capsys, "list")
    lines = out.splitlines()
    for name in ("omd", "experts.squint", "mirrors.pnorm", "regularizers.adagrad", "hinge", "a9a"):
        assert any(line.split()[:1] == [name] for line in lines), name
    for line, after in itertools.pairwise([*lines, ""]):
        if line[:2] == "  " and line[2:3] != " ":  # a name; a long one has its own line
            says = len(line.split(maxsplit=1)) == 2 or after.startswith("    ")
            assert says, f"{line} says nothing"


def test_theorems_are_listed_with_their_source_and_learners(capsys):
    status, out, _ = olx(capsys, "list", "theorems")
    assert status == 0
    lines = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert "Shalev-Shwartz 2007, corollaries 5 and 7; about `perc" in lines["perceptron_mistakes"]
    assert "theorems.winnow_mistakes(margin)" in lines


def test_one_kind_is_listed_alone(capsys):
    status, out, _ = olx(capsys, "list", "metrics")
    assert status == 0
    assert out.startswith("metrics:\n  error")
    assert "learners" not in out


def test_a_benchmark_gives_rounds_a_second(capsys):
    status, out, _ = olx(capsys, "bench", "--rounds", "64")
    assert status == 0
    assert len(out.splitlines()) == 5
    assert all(line.endswith("rounds per second") for line in out.splitlines())


def test_one_name_is_explained(capsys):
    _, out, _ = olx(capsys, "list", "omd")
    for part in (
        "omd: learner",
        "eta",
        "must be given",
        "eta: positive.",
        ">>> ",
        "theta_(t+1) = theta_t - eta g_t",
        "mirror_",
    ):
        assert part in out, part
    assert '  [[learners]]\n  name = "omd"\n  eta = ...\n  mirror = ...' in out
    for name, part in {
        "pnorm": "mirrors.pnorm: mirror map\n\nArguments and their defaults:\n  q  must be given",
        "hinge": 'loss = "hinge"',
        "a9a": "task binary",
        "error": "For binary, multiclass data.",
        "stream:linear_regression": "arguments = { rounds = ..., features = ... }",
        "optax.adam": "  b1             0.9",
        "winnow_mistakes": 'theorems = [{ name = "theorems.winnow_mistakes", margin = ... }]',
    }.items():
        assert part in olx(capsys, "list", name)[1], name


def test_lists_are_words_that_a_terminal_shows(capsys):
    _, out, _ = olx(capsys, "list")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 120
    assert not set("$\\") & set(out)
    [steps] = [line for line in lines if "schedules.root_rounds" in line]
    assert steps.endswith("The step size 1 / sqrt(t L / U).")
    linear = olx(capsys, "list", "linear")[1]
    assert "<w, x>" in linear
    assert "langle" not in out
    assert not re.search(r"/_|frac(?!tion)", olx(capsys, "list", "ogd")[1])


@pytest.mark.parametrize(("word", "hint"), [("rnu", "run"), ("lst", "list")])
def test_a_command_with_a_typing_error_is_answered_by_the_nearest(word, hint, capsys):
    with pytest.raises(SystemExit):
        cli.main([word])
    assert f"there is no command {word}; did you mean {hint}?" in capsys.readouterr().err


def test_a_config_that_is_not_there_is_answered_by_the_nearest(tmp_path, capsys):
    (tmp_path / "quickstart.toml").write_text("")
    said = olx(capsys, "run", str(tmp_path / "quikstart.toml"))
    assert "no such config; did you mean quickstart.toml?" in said[2]


@pytest.mark.parametrize("package", [name for name in MODULES if name])
def test_a_package_is_a_list(package, capsys):
    status, out, _ = olx(capsys, "list", package)
    assert (status, out.splitlines()[0]) == (0, f"{package}:")
    assert len(out.splitlines()) > 1


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("odg", "ogd"),
        ("OGD", "ogd"),
        ("mirors", "mirrors"),
        ("adagrd", "first_order.adagrad"),
        ("learner", "learners"),
    ],
)
def test_a_hint_is_the_nearest_name(asked, near, capsys):
    said = olx(capsys, "list", asked)[2]
    assert said == f"olx list: there is no list of {asked}; did you mean {near}?\n"


def test_a_hint_in_a_config_knows_the_package(here, capsys):
    hint = lambda *words: olx(capsys, "run", "tiny.toml", *(f"--set={word}" for word in words))[2]
    assert "no learner called 'OGD'; did you mean ogd?" in hint("learners.0.name=OGD")
    assert "did you mean first_order.adagrad?" in hint("learners.0.name=adagrd")
    spaced = hint("learners.0.grid.eta={logspace = [-3, 0, 4]}")
    assert "there is no logspace; did you mean geomspace?" in spaced


def test_a_wide_table_is_wrapped(monkeypatch):
    column = lambda name, number: Column(name, number)
    head = [column("learner", False), column("loss", True), column("what it says", False)]
    rows = [["descent", "0.5", "a long story " * 20], ["other", "0.25", "short"]]
    lines = _text(Table("A table", head, rows, "note " * 60)).splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[3].startswith("descent   0.5  a long story")
    assert " ".join(" ".join(lines[3:]).split()).count("a long story") == 20


def test_a_short_name_of_two_things_shows_both(capsys):
    _, out, _ = olx(capsys, "list", "adagrad")
    assert "first_order.adagrad: learner" in out
    assert "regularizers.adagrad: regularizer or schedule" in out
    assert "optax.adagrad: optimizer of optax" in out


def test_every_key_of_a_config_is_explained(capsys):
    _, out, _ = olx(capsys, "help", "config")
    for kind in (Experiment, Data, Player, Budget, Published, Random):
        for key in keys(kind).values():
            assert f"\n  {key.name:<14}" in out
            assert len(key.meaning) > 5
    assert set(Player.__struct_fields__) - set(keys(Player)) == {"arguments", "thing", "points"}
    assert set(Data.__struct_fields__) - set(keys(Data)) == {"thing"}
    assert 'default "shuffled"' in " ".join(out.split())
    assert "geomspace = [1e-3, 10, 32]" in out


def test_help_is_that_of_the_command(capsys):
    for topic in ((), ("run",)):
        status, out, _ = olx(capsys, "help", *topic)
        assert status == 0
        assert out.startswith(" ".join(["usage: olx", *topic]))


def test_a_missing_device_is_named_with_its_remedy(capsys, monkeypatch):
    def missing(what):
        raise AssertionError

    monkeypatch.setattr("olx.lab.listing.listing", missing)
    with pytest.raises(AssertionError):
        olx(capsys, "list")
    monkeypatch.setattr("jax.devices", lambda: missing(None))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    status, _, err = olx(capsys, "list")
    assert status == 2
    assert err.startswith("olx list: JAX finds no device for JAX_PLATFORMS=cuda; unset it")


def test_a_missing_extra_is_named_with_its_remedy(capsys, monkeypatch):
    def missing(what):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet")

    monkeypatch.setattr("olx.lab.listing.listing", missing)
    status, _, err = olx(capsys, "list")
    assert (status, err) == (
        2,
        "olx list: pyarrow is not installed; install the lab with pip install 'olx[lab]'.\n",
    )
    with pytest.raises(ModuleNotFoundError, match="compare: msgspec is not installed; install the"):
        _explained(compare)()


def compare():
    raise ModuleNotFoundError("No module named 'msgspec'", name="msgspec")


def test_the_example_is_the_quickstart(here, capsys):
    status, out, _ = olx(capsys, "example", "mine")
    assert (status, out) == (
        0,
        "Wrote mine/quickstart.toml.\nTry it: olx run mine/quickstart.toml\n",
    )
    kept = Path(__file__).parent.parent / "configs" / "quickstart.toml"
    assert (here / "mine" / "quickstart.toml").read_text() == kept.read_text()
    assert config.read("mine/quickstart.toml").title == "Quickstart"
    assert olx(capsys, "example", "mine")[0] == 2


@pytest.mark.parametrize("kind", ["learner", "regularizer"])
def test_a_new_file_passes_the_kit(kind, here, capsys, monkeypatch):
    name = f"my_{kind}"
    status, out, _ = olx(capsys, "new", kind, name)
    assert status == 0
    assert out.splitlines()[-1] == f"Try it: pytest test_{name}.py"
    monkeypatch.syspath_prepend(here)
    written = runpy.run_path(f"test_{name}.py")
    [check] = [thing for word, thing in written.items() if word.startswith("test_")]
    check()


def test_a_new_experiment_runs(here, capsys):
    assert olx(capsys, "new", "experiment", "first")[0] == 0
    small = ("--set", "seeds=1", "--set", "data.0.arguments.rounds=40", "--set", "comparator=zero")
    status, out, _ = olx(capsys, "run", "first.toml", "--no-report", *small)
    assert status == 0
    assert "optax.adam" in out
