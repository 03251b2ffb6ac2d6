"""The broken repositories of the tests, on loopback.

`provider` has one base URL for each defect of tests/harvesters/defects.py of the project. `server` sends the responses
that a test puts there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

# How often a server looks whether it has to end.
POLL_SECS = 0.01
PROJECT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT / "tests" / "harvesters"))


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """The URL of a provider. The name of a defect follows it."""
    import provider as broken_provider

    server = broken_provider.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@dataclass
class Server:
    """A server that sends the same response to every request."""

    url: str = ""
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/xml"})
    connections: set[Any] = field(default_factory=set)
    """The addresses of the clients' connections."""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.connections.add(self.client_address)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(state.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(state.body)

        do_HEAD = do_POST = do_PUT = do_GET

        def log_message(self, *arguments: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignores connections that a client has closed."""

    listener = Listener(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(POLL_SECS,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{listener.server_port}/oai"
    yield state
    listener.shutdown()
    listener.server_close()
    thread.join()
