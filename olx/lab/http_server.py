"""A served model over HTTP/1.1, by the standard library.

    POST /predict   a row, or a list of rows             what `olx predict` says about each
    POST /learn     the same, with the column of labels  the loss of each before it was learned
    POST /save      nothing                              stores the state now
    GET /health                                          rounds, mean loss, model, drift

A row is a JSON object with the names of the columns. An answer is JSON; an error is {"error": why}.
A status of 4xx is the client's: nothing was learned. 503 is the server's. There is no password, so
it listens on this machine alone unless another address is asked for. Only `application/json` is
taken, which a page in a browser cannot send to another origin without being asked first. A page
whose name was made to point to this machine has the origin of the service, but says its own name:
on a loopback address, or if names are given, requests for other hosts are refused.
"""

import ipaddress
import json
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

import olx
from olx import _archive as archive
from olx.lab.service import Closed, Service

BODY = 1 << 20  # bytes of a request, at most
ROWS = 1000  # of a request, at most
CONNECTIONS = 64  # at a time
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SECONDS = 30.0  # to wait for the next bytes of a client
_STOP_SECONDS = 5.0  # to wait for requests that are being answered


class _Refused(Exception):
    """A request that is not played: its status, and why in words."""

    def __init__(self, status: HTTPStatus, why: str):
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    server_version = f"olx/{olx.__version__}"
    sys_version = ""
    timeout = SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is sent at once

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request as JSON too; the standard library calls this."""
        self.close_connection = True
        self._send(HTTPStatus(code), {"error": message or HTTPStatus(code).phrase})

    def _answer(self, method: str) -> None:
        with self.server.busy():
            try:
                found = self._result(method)
                status = HTTPStatus.OK
            except _Refused as error:
                status, found = error.status, {"error": str(error)}
            except Closed as error:
                status, found = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
            except (ValueError, TypeError) as error:  # the library refuses the rows
                said = " ".join(str(error).split())
                said = said.replace("give allow_unknown=True", "start it with --allow-unknown")
                status, found = HTTPStatus.UNPROCESSABLE_ENTITY, {"error": said}
            except TimeoutError:
                self.close_connection = True
                return
            except OSError as error:
                status, found = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
            except Exception:
                traceback.print_exc(file=sys.stderr)
                why = "the server failed; its messages say why."
                status, found = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": why}
            self._send(status, found)

    def _result(self, method: str) -> dict[str, Any]:
        path = self.path.partition("?")[0]
        told = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        body = self._body() if method == "POST" or told else b""
        service = self.server.service
        known: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
            "/health": ("GET", service.health),
            "/save": ("POST", service.save),
            "/predict": ("POST", lambda: service.predict(_rows(body))),
            "/learn": ("POST", lambda: service.learn(_rows(body))),
        }
        if path not in known:
            why = f"there is no {path[:60]!r}; there are {', '.join(known)}."
            raise _Refused(HTTPStatus.NOT_FOUND, why)
        wanted, play = known[path]
        if method != wanted:
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked for by {wanted}.")
        self._check_host()
        if path in ("/predict", "/learn") and self.headers.get_content_type() != "application/json":
            why = "the rows must be JSON: give Content-Type: application/json."
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
        return play()

    def _check_host(self) -> None:
        given, known = self.headers.get_all("Host", []), self.server.hosts
        hosts = [host_name(each) for each in given]
        if len(given) > 1 or None in hosts:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the request must name one host, as name:port.")
        if hosts and known and hosts[0] not in known:
            why = f"{given[0][:60]!r} is not this service; whoever starts it may give --allow-host."
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, why)

    def _body(self) -> bytes:
        length, *more = set(self.headers.get_all("Content-Length", [""]))
        plain = length.isascii() and length.isdigit() and not more
        if "Transfer-Encoding" in self.headers or not plain:
            self.close_connection = True
            why = "say how long the body is: one Content-Length, and no Transfer-Encoding."
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, why)
        if len(length) > 9 or int(length) > BODY:
            self.close_connection = True
            self._skip(min(int(length[:9]), 8 * BODY))  # a client that still writes may not read
            why = f"the body has {length[:20]} bytes, at most {BODY} are read; send fewer rows."
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the body ended after {len(body)} bytes.")
        return body

    def _skip(self, length: int) -> None:
        """Read bytes that are not used, or as many as there are."""
        while length > 0 and (found := self.rfile.read(min(length, BODY))):
            length -= len(found)

    def _send(self, status: HTTPStatus, found: dict[str, Any]) -> None:
        body = json.dumps(found, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A thread per connection, up to a limit."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, address: tuple[str, int], service: Service, names: Sequence[str] = ()):
        self.service = service
        self.hosts = allowed_hosts(address[0], names)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free, self._busy = threading.Semaphore(CONNECTIONS), _Count()
        super().__init__(address, _Handler)

    def busy(self) -> "_Count":
        """A block in which a request is answered."""
        return self._busy

    def stop(self) -> None:
        """Wait for the requests that are being answered, then store the state."""
        self.service.close()
        self._busy.wait_for_none(_STOP_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection; close it if there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what failed; a client that left is no failure."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host.lower() == "localhost"


def allowed_hosts(address: str, names: Sequence[str]) -> set[str]:
    """The hosts that requests may name; empty for any, if others may reach it and none is given."""
    found = {name: host_name(name) for name in names}
    if wrong := [name for name, host in found.items() if host is None]:
        raise ValueError(f"--allow-host must be a name such as models.example, got {wrong[0]!r}.")
    if not names and not is_loopback(address):
        return set()
    return {*LOOPBACK, address.lower(), *map(str, found.values())}


def host_name(text: str) -> str | None:
    """The host of name:port, in small letters; None if it is of another form."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+?)\.?)(:\d*)?", text.strip(), re.ASCII)
    return None if found is None else (found[1] or found[2]).lower()


class _Count:
    """How many requests are being answered."""

    def __init__(self) -> None:
        self._changed, self._number = threading.Condition(), 0

    def __enter__(self) -> None:
        with self._changed:
            self._number += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._number -= 1
            self._changed.notify_all()

    def wait_for_none(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._number == 0, seconds)


def serve(
    service: Service, host: str, port: int, names: Sequence[str], say: Callable[[str], None]
) -> None:
    """Answer requests until SIGTERM or SIGINT, then store the state.

    names: other names by which requests may ask for it.
    say: told the address once it listens.
    """
    try:
        opened = Server((host, port), service, names)
    except OSError as error:
        raise OSError(f"it cannot listen on {host}, port {port}: {error.strerror}.") from error
    with opened as server:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: threading.Thread(target=server.shutdown).start())
        name = f"[{host}]" if ":" in host else host
        say(f"http://{name}:{server.server_address[1]}")
        server.serve_forever(poll_interval=0.1)
        server.stop()


def _rows(body: bytes) -> list[dict[str, Any]]:
    """The rows of a request."""
    try:
        found = json.loads(body, parse_constant=_no_number, object_pairs_hook=archive.once)
    except (ValueError, RecursionError) as error:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}.") from error
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        why = "the body must be a row, as a JSON object with a name per column, or a list of rows."
        raise _Refused(HTTPStatus.BAD_REQUEST, why)
    if len(rows) > ROWS:
        why = f"a request has at most {ROWS} rows, this one has {len(rows)}; send several."
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
    return rows


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
