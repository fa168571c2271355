"""Models that go on learning: `olx learn`, and `olx serve` on the loopback."""

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import cli
from olx.lab import drift, learned_models, models
from olx.lab.config import parse
from olx.lab.data import load
from olx.lab.data.json_rows import JsonRows
from olx.lab.http_server import BODY, ROWS, Server, allowed_hosts
from olx.lab.learn import learn, newest_progress, open_model
from olx.lab.rows_log import Entry, RowsLog, entries
from olx.lab.run import run
from olx.lab.service import Closed, Service

DRAW = np.random.default_rng(0)


def rows(count, noise=False):
    """Rows of a file: a number, a word, and a label that depends on both, or on chance alone."""
    found = []
    for _ in range(count):
        age, city = float(DRAW.integers(18, 80)), str(DRAW.choice(["Bonn", "Oslo", "Rome"]))
        score = (age - 45) / 20 + (city == "Oslo") + DRAW.normal(0, 0.5)
        buys = DRAW.integers(2) if noise else score > 0.3
        found.append({"age": age, "city": city, "buys": "yes" if buys else "no"})
    return found


def write(path, found):
    lines = [",".join(map(str, row.values())) for row in found]
    path.write_text("\n".join([",".join(found[0]), *lines]))
    return path


def config(place, **changes):
    data = {"name": str(place / "mine.csv"), "label": "mine", "scale": "standard"}
    ogd = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 0.5]}}
    return parse({"data": [data], "learners": [ogd], "seeds": [3], "baseline": False, **changes})


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A result, of which each test takes a copy."""
    place = tmp_path_factory.mktemp("service")
    write(place / "mine.csv", rows(400))
    run(config(place), place / "r")
    return place


@pytest.fixture
def result(played, tmp_path):
    for path in (played / "r").rglob("*"):
        if path.is_file():
            copy = tmp_path / "r" / path.relative_to(played / "r")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return tmp_path / "r"


class Client:
    """A connection that is kept until the block ends."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def ask(self, path, body=None, method="POST", **headers):
        text = body if isinstance(body, str | bytes | None) else json.dumps(body)
        headers = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextlib.contextmanager
def served(result, save_every=1000, allow_unknown=False):
    """A client of a service in this process, and the service."""
    with open_model(result) as model:
        service = Service(model, save_every, allow_unknown)
        with Server(("127.0.0.1", 0), service) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            try:
                with Client(server.server_address[1]) as client:
                    yield client, service
            finally:
                server.shutdown()
                thread.join()
                server.stop()


def same(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(a, b) and np.asarray(a).dtype == b.dtype for a, b in pairs)


def contexts(result, found):
    about = models.read(result).about
    reader = JsonRows(models.table_in(result, about), about["binarize"])
    x, y = reader.contexts(found), reader.outcomes(found)
    return olx.Rounds(x.astype(np.float32), y.astype(np.float32))


def taught_by_run(result, found, state=None):
    """A run on some rows from a state, or from the model."""
    model, rounds = models.read(result), contexts(result, found)
    with jax.enable_x64(False):
        return olx.run(
            model.learner,
            olx.losses.logistic,
            rounds,
            jnp.zeros(5),
            state=model.state if state is None else state,
            implementation="host",
            progress=False,
        )


def test_rows_are_read_like_files(result):
    table = models.table_in(result, models.read(result).about)
    reader, found = JsonRows(table, None), rows(20)
    bare = [{key: row[key] for key in ("age", "city")} for row in found]
    np.testing.assert_array_equal(reader.contexts(found), table.apply(bare))
    found[3]["city"] = " Oslo "  # a cell to look at closely
    found[3]["age"] = True
    np.testing.assert_array_equal(
        reader.contexts(found)[3:4], table.apply([{"age": True, "city": "Oslo"}])
    )


def test_dates_and_ids_are_read_like_those_of_files(tmp_path):
    found = [{"who": f"c{i}", "day": f"2024-01-{i + 1:02}", "y": i % 2} for i in range(28)]
    data = {"name": str(write(tmp_path / "d.csv", found)), "id": "who", "dates": "parts"}
    ogd = {"name": "ogd", "linear": True, "eta": 0.1}
    run(parse({"data": [data], "learners": [ogd], "baseline": False}), tmp_path / "r")
    served_rows = models.predict(tmp_path / "r", tmp_path / "d.csv").table
    with open_model(tmp_path / "r") as model:
        service = Service(model)
        assert service.predict(found)["predictions"] == served_rows.to_pylist()
        odd = [found[0] | {"who": 7}, {key: found[1][key] for key in ("day", "y")}]
        assert [row["who"] for row in service.predict(odd)["predictions"]] == [7, None]
        for day in (5, 2024.5, None, "31/12/2024"):
            with pytest.raises(ValueError, match="column 'day' holds"):
                service.predict([{"who": "x", "day": day}])


def test_predictions_are_those_of_the_command(result, tmp_path, capsys):
    found = rows(20)
    words = ["predict", str(result), str(write(tmp_path / "new.csv", found))]
    assert cli.main([*words, "--out", str(tmp_path / "p.parquet")]) == 0
    capsys.readouterr()
    theirs = models.predict(result, tmp_path / "new.csv").table.to_pylist()
    with served(result) as (client, _):
        status, answer = client.ask("/predict", found)
        one = [client.ask("/predict", row)[1]["predictions"][0] for row in found[:3]]
    assert status == 200
    assert answer == {"rounds": 400, "predictions": theirs}
    assert [row["prediction"] for row in one] == [row["prediction"] for row in theirs[:3]]
    for mine, row in zip(one, theirs[:3], strict=True):
        assert mine["score"] == pytest.approx(row["score"], rel=1e-6)
    assert not (result / "learned" / "mine.ogd" / "record.json").exists()  # nothing was learned


def test_a_service_learns_as_a_run_does(result):
    found = rows(60)
    done = taught_by_run(result, found)
    with served(result, save_every=25) as (client, service):
        pieces = [found[:1], found[1:20], *([row] for row in found[20:])]
        answers = [client.ask("/learn", piece)[1] for piece in pieces]
        state = service.newest.state
        health = client.ask("/health", method="GET")[1]
    losses = np.array([paid for answer in answers for paid in answer["losses"]], np.float32)
    assert same(state, done.state)
    np.testing.assert_array_equal(losses, done.losses)
    assert [answer["rounds"] for answer in answers][:3] == [401, 420, 421]
    assert (health["rounds"], health["learned"], health["saved_rounds"]) == (460, 60, 450)
    assert health["mean_loss"] == pytest.approx(float(np.mean(done.losses)))
    model = models.read(result)  # the service has stopped, and saved
    assert same(model.state, done.state)
    assert model.about["rounds"] == 460
    assert models.read(result / "models" / "mine.ogd.olx").about["rounds"] == 460


GOOD = {"age": 30, "city": "Oslo", "buys": "yes"}
REFUSED = {
    "another path": ("/predct", GOOD, 404, "there is no '/predct'; there are /health"),
    "no JSON": ("/predict", "{age: 30}", 400, "no JSON"),
    "no number": ("/predict", '{"age": NaN, "city": "Oslo"}', 400, "NaN is no number"),
    "a name twice": ("/predict", '{"age": 3, "age": 4}', 400, "a key is there twice"),
    "deep": ("/predict", "[" * 100_000, 400, "no JSON"),
    "no row": ("/learn", [], 400, "must be a row"),
    "a list of numbers": ("/learn", [30, 1], 400, "must be a row"),
    "many rows": ("/learn", [{}] * (ROWS + 1), 413, f"at most {ROWS} rows"),
    "a new word": ("/learn", [GOOD, GOOD | {"city": "Kiel"}], 422, "holds 'Kiel' in row 1"),
    "a word for a number": ("/learn", GOOD | {"age": "old"}, 422, "'age' holds 'old'; it must"),
    "a list in a cell": ("/learn", GOOD | {"age": [1, 2]}, 422, "'age'"),
    "mixed cells": ("/learn", [GOOD, GOOD | {"age": "old"}], 422, "rows cannot be read as a table"),
    "a large number": ("/learn", GOOD | {"age": 10**30}, 422, "int"),
    "a number without end": ("/learn", '{"age": 1e999, "city": "Oslo", "buys": "no"}', 422, "inf"),
    "a missing cell": ("/learn", {"age": 30, "buys": "yes"}, 422, "no column 'city'"),
    "a cell missing later": ("/learn", [GOOD, {"age": 30, "buys": "no"}], 422, "one has 'city'"),
    "no label": ("/learn", {"age": 30, "city": "Oslo"}, 422, "row 0 has no label 'buys'"),
    "a new label": ("/learn", GOOD | {"buys": "maybe"}, 422, "the label 'maybe' in row 0"),
    "a label of lists": ("/learn", GOOD | {"buys": [1]}, 422, r"the label of row 0 is \[1\]"),
    "a huge feature": ("/learn", GOOD | {"age": 1e300}, 422, "context"),
}


def test_rows_without_names_are_lists_of_numbers(tmp_path):
    x, y = DRAW.normal(size=(80, 4)), DRAW.integers(3, size=80)
    np.savez(tmp_path / "mine.npz", X=x[:60], y=y[:60])
    data = {"name": str(tmp_path / "mine.npz"), "task": "multiclass"}
    ogd = {"name": "ogd", "linear": True, "eta": 0.1}
    run(parse({"data": [data], "learners": [ogd], "seeds": [0], "baseline": False}), tmp_path / "r")
    found = [{"features": a.tolist(), "label": int(b)} for a, b in zip(x, y, strict=True)][60:]
    model = models.read(tmp_path / "r")
    table = models.table_in(tmp_path, model.about)
    rounds = olx.Rounds(table.apply(x[60:]).astype(np.float32), y[60:].astype(np.int32))
    options = {"state": model.state, "implementation": "host", "progress": False}
    with jax.enable_x64(False):
        start = jnp.zeros((3, rounds.context.shape[1]))
        done = olx.run(model.learner, olx.losses.cross_entropy, rounds, start, **options)
    with served(tmp_path / "r") as (client, service):
        assert client.ask("/learn", found)[1]["losses"] == done.losses.tolist()
        assert same(service.newest.state, done.state)
        assert client.ask("/predict", found[0])[1]["predictions"][0]["prediction"] in (0, 1, 2)
        status, answer = client.ask("/predict", {"features": [1.0, "2", 3.0, 4.0]})
        assert (status, "with 4 finite numbers" in answer["error"]) == (422, True)
        assert client.ask("/learn", found[0] | {"label": 7})[0] == 422


def test_dates_large_labels_and_large_predictions_are_no_numbers(tmp_path):
    x = DRAW.normal(size=60)
    days = [f"202{i % 4}-0{1 + i % 9}-11" for i in range(60)]
    lines = ["day,x,price", *(f"{day},{a},{9 * a}" for day, a in zip(days, x, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = {"name": str(tmp_path / "t.csv"), "task": "regression", "dates": "parts"}
    data |= {"target": "price", "scale": "standard"}
    ogd = {"name": "ogd", "linear": True, "eta": 0.05}
    run(parse({"data": [data], "learners": [ogd], "seeds": [0], "baseline": False}), tmp_path / "r")
    good = {"day": "2024-02-29", "x": 0.5, "price": 4.5}
    with served(tmp_path / "r") as (client, service):
        model = models.read(tmp_path / "r")
        seen = models.table_in(tmp_path, model.about).apply([{"day": "2024-02-29", "x": 0.5}])
        score = client.ask("/predict", good)[1]["predictions"][0]["score"]
        assert score == olx.predict(model.learner, model.state, seen.astype(np.float32))[0]
        before = service.newest
        for path, change, says in (
            ("/predict", {"day": 20240229}, "which is no date"),
            ("/learn", {"day": 1.7e9}, "which is no date"),
            ("/learn", {"price": 10**400}, "larger than all floats"),
            ("/predict", {"x": 3e38}, "the prediction of row 0 is -?inf"),
        ):
            status, answer = client.ask(path, good | change)
            assert (status, bool(re.search(says, answer.get("error", "")))) == (422, True), answer
        assert service.newest is before


def test_new_words_become_zeros_if_asked(result):
    new = GOOD | {"city": "Kiel"}
    with served(result) as (client, _):
        said = client.ask("/learn", new)[1]["error"]
        assert said.startswith("the request: column 'city' holds 'Kiel'")
        assert "start it with --allow-unknown" in said
    with served(result, allow_unknown=True) as (client, service):
        assert client.ask("/learn", [new, GOOD])[0] == 200
        learned = service.newest.state
        shutil.copytree(result, killed := result.parent / "killed")  # its state is not stored
    with open_model(killed) as model:
        assert model.folder.saved.rounds == 400
        assert same(newest_progress(model).state, learned)


def test_two_lengths_of_a_body_are_refused(result):
    with served(result) as (client, _):
        client.connection.putrequest("POST", "/learn")
        for name, value in (("Content-Type", "application/json"), *[("Content-Length", "9")] * 2):
            client.connection.putheader(name, value)
        client.connection.endheaders(b'{"age":1}')
        assert client.connection.getresponse().read().startswith(b'{"error":"the request')
        client.connection.putrequest("POST", "/learn")
        for name, value in (("Content-Type", "application/json"), ("Content-Length", "9")):
            client.connection.putheader(name, value)
        client.connection.putheader("Content-Length", "2")
        client.connection.endheaders(b'{"age":1}')
        assert client.connection.getresponse().status == 411


def test_a_page_whose_name_points_to_this_machine_is_refused(result):
    with served(result) as (client, service):
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:80"):
            status, answer = client.ask("/learn", GOOD, Host=host)
            assert status == 421
            assert "--allow-host" in answer["error"]
        assert service.newest.rounds == 400
        for host in ("localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1", "[::1]:80"):
            assert client.ask("/predict", GOOD, Host=host)[0] == 200
        for host in ("evil.example@localhost", "localhost/evil", "localhost:a", "[::1", "[nope]"):
            assert client.ask("/predict", GOOD, Host=host)[0] == 400


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "LOCALHOST", "::1"])
def test_a_loopback_address_has_few_names(address):
    assert allowed_hosts(address, []) == {"127.0.0.1", "::1", "localhost", address.lower()}
    assert "mine.example" in allowed_hosts(address, ["Mine.example:8080"])


def test_another_address_has_any_name_unless_some_are_given():
    assert allowed_hosts("0.0.0.0", []) == set()
    assert "mine.example" in allowed_hosts("0.0.0.0", ["mine.example"])
    with pytest.raises(ValueError, match="must be a name such as"):
        allowed_hosts("127.0.0.1", ["http://mine.example"])


def test_what_cannot_be_learned_is_refused_in_words(result):
    with served(result) as (client, service):
        before = service.newest
        for name, (path, body, status, says) in REFUSED.items():
            found, answer = client.ask(path, body)
            assert (found, list(answer)) == (status, ["error"]), (name, answer)
            assert re.search(says, answer["error"]), (name, answer)
        assert client.ask("/learn", GOOD, method="GET")[0] == 405
        assert client.ask("/learn", json.dumps(GOOD), Content_Type="text/plain")[0] == 415
        assert client.ask("/learn", GOOD, method="PUT")[0] == 501
        assert client.ask("/learn", b"x" * (BODY + 1))[0] == 413
        assert client.ask("/learn", b"{}", Transfer_Encoding="chunked")[0] == 411
        assert service.newest is before
        assert client.ask("/learn", GOOD)[1]["rounds"] == 401
        with pytest.raises(OSError, match=r"another run .* is using the learned model"):
            learn(result, result / "config.toml")
        assert client.ask("/save")[1] == {"rounds": 401}
        service.close()
        with pytest.raises(Closed, match="being stopped"):
            service.learn([GOOD])


def start(result, *words):
    """A service in a process of its own, and its port."""
    command = [sys.executable, "-m", "olx.cli", "serve", str(result), "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    for said in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", said):
            return process, int(found[1])
    raise AssertionError("the service did not start")


def test_no_acknowledged_row_is_lost_or_learned_twice(result):
    found, done, waiting = rows(400), {}, {}
    first = models.read(result).state
    process, port = start(result, "--save-every", "37")

    def teach(mine):
        with Client(port) as client, contextlib.suppress(OSError, http.client.HTTPException):
            for i in mine:
                waiting[mine] = i
                status, answer = client.ask("/learn", found[i])
                assert status == 200
                done[answer["rounds"]] = i
                if len(done) == 150:
                    process.kill()
                del waiting[mine]

    threads = [threading.Thread(target=teach, args=(range(k, 400, 3),)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.communicate()
    assert len(done) >= 150
    process, port = start(result)
    with Client(port) as client:
        health = client.ask("/health", method="GET")[1]
    process.send_signal(signal.SIGTERM)
    assert f"Saved after {health['rounds']} rounds" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
    places = range(401, health["rounds"] + 1)
    assert set(done) <= set(places)  # none is lost
    unknown = [place for place in places if place not in done]
    ends = []
    for chosen in itertools.permutations(waiting.values(), len(unknown)):
        order = done | dict(zip(unknown, chosen, strict=True))
        played = [found[order[place]] for place in places]
        ends.append(taught_by_run(result, played, first).state)
    assert any(same(models.read(result).state, state) for state in ends)
    assert models.read(result).about["learned"]["learned"] == len(places)
    logs = (result / "learned" / "mine.ogd").glob("*.rows")
    assert not any(path.stat().st_size for path in logs)  # an empty one, if it died right then


def test_a_log_ends_where_its_process_died(tmp_path):
    path = tmp_path / "9.rows"
    log = RowsLog(path)
    for i in range(3):
        log.append(Entry(9 + i, [[{"x": i}]]))
    log.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert [entry.rounds for entry in entries(path)] == [9, 10]
    assert len(path.read_bytes()) < len(whole) - 40
    path.write_bytes(whole.replace(b'"x":1', b'"x":7'))
    with pytest.raises(OSError, match="is damaged in the line at byte"):
        list(entries(path))


def test_a_full_disk_acknowledges_nothing(result, monkeypatch):
    with served(result) as (client, service):
        assert client.ask("/learn", GOOD)[0] == 200
        before = service.newest

        def full(_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("olx.lab.rows_log.os.fsync", full)
            status, answer = client.ask("/learn", GOOD)
        assert (status, service.newest) == (503, before)
        assert "No space left on device" in answer["error"]
        assert client.ask("/learn", GOOD)[0] == 503  # until it is started again
        assert client.ask("/predict", GOOD)[0] == 200
    assert models.read(result).about["rounds"] == 401


def test_a_record_names_no_file_of_another_folder(result):
    with served(result) as (client, _):
        assert client.ask("/learn", GOOD)[0] == 200
        assert client.ask("/save")[0] == 200
    place = result / "learned" / "mine.ogd" / "record.json"
    away = {"rounds": "../../models/mine.ogd", "state": "../../models/mine.ogd.olx"}
    place.write_text(json.dumps(json.loads(place.read_text()) | away))
    with pytest.raises(ValueError, match="is not what `olx learn` writes; move"):
        models.read(result)


def test_learning_a_file_is_a_run_over_both(result, played, tmp_path, capsys):
    found = rows(100)
    new = write(tmp_path / "new.csv", found)
    first = load(str(played / "mine.csv"), scale="standard", seed=3).rounds()
    more = contexts(result, found)
    contexts_of_both = np.concatenate([first.context, more.context])
    both = olx.Rounds(contexts_of_both, np.concatenate([first.outcome, more.outcome]))
    model = models.read(result)
    with jax.enable_x64(False):
        start = jnp.zeros(5)
        whole = olx.run(model.learner, olx.losses.logistic, both, start, progress=False)
    assert cli.main(["learn", str(result), str(new)]) == 0
    out = capsys.readouterr().out
    paid = np.asarray(whole.losses)
    assert same(models.read(result).state, whole.state)
    assert re.search(r"ogd .*after 500 rounds; 100 of them are of .*new\.csv", out)
    past = model.about["past"]
    assert f"mean loss {paid[400:].mean():.4g} ({past['loss']:.4g} in its run), mean error" in out
    assert "no drift" in out
    np.testing.assert_allclose(past["loss"], paid[:400].mean(), rtol=1e-5)
    last = past["last"]["mean"], past["last"]["variance"]
    np.testing.assert_allclose(last, (paid[200:400].mean(), paid[200:400].var()), rtol=1e-4)


def test_rows_of_a_killed_service_are_learned_first(result, tmp_path):
    found, more = rows(3), rows(40)
    with open_model(result) as model:
        service = Service(model)
        for row in found:
            service.learn([row])  # and it is never closed
    assert models.read(result).about["rounds"] == 400  # what was saved
    expected = taught_by_run(result, found).state
    learned = learn(result, write(tmp_path / "new.csv", more))
    assert (learned.replayed, learned.count, learned.rounds) == (3, 40, 443)
    model, both = models.read(result), contexts(result, more)
    with jax.enable_x64(False):
        start = jnp.zeros(5)
        whole = olx.run(model.learner, olx.losses.logistic, both, start, state=expected)
    assert same(model.state, whole.state)


def test_a_drift_raises_an_alarm(result, tmp_path, capsys):
    assert not learn(result, write(tmp_path / "same.csv", rows(100))).alarm
    words = ["learn", str(result), str(write(tmp_path / "noise.csv", rows(100, noise=True)))]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert re.search(r"drift: mean loss .* standard errors above", printed.err)
    few = learn(result, write(tmp_path / "few.csv", rows(10, noise=True)))
    assert not few.alarm
    assert "fewer than 30 rounds" in few.judgement
    assert few.rounds == 610


def test_a_false_alarm_is_as_rare_as_said():
    chance = np.random.default_rng(0)
    past, new = chance.exponential(size=(2, 10_000, 100))
    pairs = zip(map(drift.losses_of, past), map(drift.losses_of, new), strict=True)
    alarms = [drift.judgement(*pair)[0] for pair in pairs]
    assert 0.0003 < np.mean(alarms) < 0.004  # 0.00135 for normal means


def test_files_without_labels_teach_nothing(result, tmp_path, capsys):
    bare = write(tmp_path / "bare.csv", [{"age": 3, "city": "Oslo"}, {"age": 4, "city": "Bonn"}])
    assert cli.main(["learn", str(result), str(bare)]) == 2
    assert "has no column of labels 'buys'" in capsys.readouterr().err
    assert models.read(result).about["rounds"] == 400
    assert cli.main(["learn", str(bare), str(result)]) == 2
    assert f"the result comes first: olx learn {result} {bare}" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--port 70000", "--save-every 0"])
def test_bad_numbers_of_a_service_are_refused(words, capsys):
    assert cli.main(["serve", "nowhere", *words.split()]) == 2
    assert f"olx serve: {words.split()[0]} must be" in capsys.readouterr().err


def test_a_run_says_what_was_learned_since(result, played, tmp_path, capsys):
    learn(result, write(tmp_path / "new.csv", rows(40)))
    capsys.readouterr()
    run(config(played), result)
    assert "has learned 40 rows since its run" in capsys.readouterr().err
    assert models.read(result).about["rounds"] == 440
    (result / "models" / "mine.ogd.olx").write_bytes(b"another model")
    assert "a model that is now replaced" in learned_models.summary_of(result, "mine.ogd")
    with pytest.raises(ValueError, match="replaced since; move this folder away"):
        models.read(result)
