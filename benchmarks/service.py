"""`olx serve` under load: speed beside river with FastAPI, a kill in the middle, and memory.

    python -m benchmarks.service                          # 10,000 requests, then 100,000 for memory
    python -m benchmarks.service --requests 2000 --memory 0

Four clients send a row to learn and a row to predict in turn, over connections that they keep, on
the loopback. In the middle the server is killed with SIGKILL and started again, and clients send
what was not acknowledged again. A row may so be learned twice by the will of its client; none that
was acknowledged may be lost: the server must have learned at least as many rows as were
acknowledged, and at most as many as were sent. Latencies include the load of the machine; the
seconds of the processor per request do not.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from olx.lab.config import parse
from olx.lab.run import run

CLIENTS = 4
FEATURES = 10
LIMIT = 1800.0  # seconds, of all requests of a server


def rows(count: int, seed: int) -> list[dict]:
    chance = np.random.default_rng(seed)
    found = []
    for x in chance.normal(size=(count, FEATURES)):
        city = str(chance.choice(["Bonn", "Oslo", "Rome"]))
        label = "yes" if x[:3].sum() + (city == "Oslo") > 0.3 else "no"
        cells = {f"x{i}": round(float(cell), 4) for i, cell in enumerate(x)}
        found.append({**cells, "city": city, "label": label})
    return found


def result(place: pathlib.Path) -> pathlib.Path:
    """The result of a run of 2,000 rows."""
    first = rows(2000, 0)
    lines = [",".join(map(str, row.values())) for row in first]
    (place / "first.csv").write_text("\n".join([",".join(first[0]), *lines]))
    learner = {"name": "ogd", "linear": True, "eta": 0.1}
    data = {"name": str(place / "first.csv"), "scale": "standard"}
    run(parse({"data": [data], "learners": [learner], "baseline": False}), place / "r")
    return place / "r"


class Server:
    """A server in a process of its own, which is started again after a kill."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = [*command, "--port", str(self.port)]
        self.environment = {**os.environ, **environment}
        self.seconds = 0.0  # of the processor, of processes that have ended
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.learned()
                self._idle = self._processor()
                return
            time.sleep(0.1)
        raise TimeoutError("the server did not start")

    def learned(self) -> int:
        with contextlib.closing(connection(self.port)) as to:
            return ask(to, "GET", "/health")["learned"]

    def stop(self, how: signal.Signals) -> None:
        self.seconds += self._processor() - self._idle
        self.process.send_signal(how)
        self.process.wait(60)

    def memory(self) -> float:
        """In megabytes."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def _processor(self) -> float:
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        ticks = sum(map(int, text.split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")


def connection(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def ask(to: http.client.HTTPConnection, method: str, path: str, row: dict | None = None) -> dict:
    body = None if row is None else json.dumps(row)
    to.request(method, path, body, {"Content-Type": "application/json"})
    answer = to.getresponse()
    found = answer.read()
    if answer.status != 200:
        raise ValueError(f"{path} answers {answer.status}: {found[:200]!r}")
    return json.loads(found)


class Load:
    """What some clients measured."""

    def __init__(self, server: Server, requests: int, kill: bool):
        self.server, self.requests, self.kill_at = server, requests, requests // 2 if kill else -1
        self.latencies: dict[str, list[float]] = {"/learn": [], "/predict": []}
        self.sent = 0  # rows to learn, also those that were not acknowledged
        self.memory: list[float] = []
        self._lock, self._up = threading.Lock(), threading.Event()
        self._up.set()
        self._down = 0.0
        start = time.monotonic()
        self._end = start + LIMIT
        threads = [threading.Thread(target=self._client, args=(k,)) for k in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds = time.monotonic() - start - self._down
        if self.done < requests // CLIENTS * CLIENTS:
            raise RuntimeError(f"{self.done} of {requests} requests were answered")

    @property
    def done(self) -> int:
        return sum(map(len, self.latencies.values()))

    def _client(self, number: int) -> None:
        own, to = rows(500, number + 1), connection(self.server.port)
        for i in range(self.requests // CLIENTS):
            path, row = ("/learn", "/predict")[i % 2], own[i // 2 % len(own)]
            while time.monotonic() < self._end:
                self._up.wait()
                begin = time.perf_counter()
                with self._lock:
                    self.sent += path == "/learn"
                try:
                    ask(to, "POST", path, row)
                except (OSError, http.client.HTTPException):
                    to.close()
                    time.sleep(0.05)
                    continue
                self._count(path, time.perf_counter() - begin)
                break
        to.close()

    def _count(self, path: str, latency: float) -> None:
        with self._lock:
            self.latencies[path].append(latency)
            done = self.done
            if done % max(self.requests // 10, 1) == 0:
                self.memory.append(self.server.memory())
            if done == self.kill_at:
                self._up.clear()
                begin = time.monotonic()
                self.server.stop(signal.SIGKILL)
                self.server.start()
                self._down = time.monotonic() - begin
                self._up.set()

    def row(self, name: str, learned: int) -> str:
        acknowledged = len(self.latencies["/learn"])
        cells = [name, f"{self.done / self.seconds:.0f}"]
        for path in self.latencies:
            each = np.array(self.latencies[path]) * 1e3
            cells += [f"{np.median(each):.2f}", f"{np.quantile(each, 0.99):.2f}"]
        cells.append(f"{self.server.seconds / self.done * 1e3:.2f}")
        cells.append(f"{max(acknowledged - learned, 0)} of {acknowledged}")
        cells.append(f"{max(learned - self.sent, 0)}")
        return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--memory", type=int, default=100_000, help="requests; 0 leaves it out")
    asked = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| server | requests/s | learn p50 ms | p99 | predict p50 ms | p99 | processor ms/request"
          " | acknowledged and lost | learned beyond those sent |")  # fmt: skip
    print("|---" * 9 + "|")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        olx = [sys.executable, "-m", "olx.cli", "serve", str(result(place))]
        river = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.service_river:app"]
        river += ["--host", "127.0.0.1", "--log-level", "error"]
        log = {"SERVICE_LOG": str(place / "river.log")}
        for name, command in {"olx serve": olx, "river, FastAPI, uvicorn": river}.items():
            server = Server(command, log)
            load = Load(server, asked.requests, kill=True)
            learned = server.learned()
            server.stop(signal.SIGTERM)
            print(load.row(name, learned), flush=True)
        if asked.memory:
            server = Server(olx, log)
            load = Load(server, asked.memory, kill=False)
            server.stop(signal.SIGTERM)
            sizes = ", ".join(f"{size:.0f}" for size in load.memory)
            print(f"MB of `olx serve` after each tenth of {load.done:,} requests: {sizes}")


if __name__ == "__main__":
    main()
