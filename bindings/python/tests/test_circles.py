"""Lists whose resumptionTokens lead back."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import requests

import oaimend
from oaimend._circles import LISTS_MAX, Circles
from oaimend.scythe import Scythe
from oaimend.sickle import Sickle
from pages import page, record

Next = Callable[[int], str]
"""The token on a page, by its number."""


@pytest.fixture
def start() -> Iterator[Callable[[int, Next], str]]:
    """Starts a repository of so many different pages, and returns its URL."""
    listeners = []

    def start_one(pages: int, token: Next) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                number = int(query.get("resumptionToken", ["0"])[0])
                element = f"<resumptionToken>{token(number)}</resumptionToken>".encode()
                body = page(*(record(number % pages * 2 + item, b"x") for item in range(2)), element)
                self.send_response(200)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        listeners.append(listener)
        threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{listener.server_port}/oai"

    yield start_one
    for listener in listeners:
        listener.shutdown()
        listener.server_close()


def follow(get: Callable[[str], bytes], url: str) -> Iterator[set[bytes]]:
    """Yields the identifiers of each page of a list."""
    query = "?verb=ListRecords&metadataPrefix=oai_dc"
    while True:
        body = get(url + query)
        yield {part.split(b"<")[0] for part in body.split(b"<identifier>")[1:]}
        token = body.split(b"<resumptionToken>")[1].split(b"<")[0].decode() if b"<resumptionToken>" in body else ""
        if not token:
            return
        query = f"?verb=ListRecords&resumptionToken={token}"


def with_requests() -> Callable[[str], bytes]:
    session = oaimend.requests.repair(requests.Session())
    return lambda url: session.get(url, timeout=20).content


def with_httpx() -> Callable[[str], bytes]:
    client = oaimend.httpx.repair(httpx.Client(timeout=20))
    return lambda url: client.get(url).content


CIRCLES: list[tuple[str, int, Next]] = [
    ("its own token", 2, lambda number: "1"),
    ("a token that leads back", 4, lambda number: "1" if number == 3 else str(number + 1)),
    ("new tokens", 4, lambda number: str(number + 1)),
]


@pytest.mark.parametrize("client", [with_requests, with_httpx])
@pytest.mark.parametrize(("name", "pages", "token"), CIRCLES)
def test_a_list_in_a_circle_ends_after_all_records(
    client: Callable[[], Callable[[str], bytes]], name: str, pages: int, token: Next, start: Any
) -> None:
    url, get = start(pages, token), client()
    for harvest in range(2):
        found: list[set[bytes]] = []
        with pytest.raises((oaimend.requests.RepairError, oaimend.httpx.RepairError), match="goes in circles"):
            for identifiers in itertools.islice(follow(get, url), 1_000):
                found.append(identifiers)
        assert len(set.union(*found)) == 2 * pages, f"{name}, harvest {harvest}"
        assert len(found) <= 6 * (pages + 1), f"{name}, harvest {harvest}"


def test_harvesters_that_follow_tokens_themselves_end_too(start: Any) -> None:
    url = start(4, lambda number: "1" if number == 3 else str(number + 1))
    found = set()
    with pytest.raises(oaimend.requests.RepairError, match="goes in circles"):
        for entry in itertools.islice(Sickle(url).ListRecords(metadataPrefix="oai_dc"), 1_000):
            found.add(entry.header.identifier)
    assert len(found) == 8
    with Scythe(url) as scythe, pytest.raises(oaimend.httpx2.RepairError, match="goes in circles"):
        for _ in itertools.islice(scythe.list_records(), 1_000):
            pass


def test_an_asynchronous_client_ends_too(start: Any) -> None:
    url = start(2, lambda number: str(number + 1))

    async def harvest() -> int:
        async with oaimend.httpx.repair(httpx.AsyncClient(timeout=20)) as client:
            for number in range(100):
                await client.get(f"{url}?verb=ListRecords&resumptionToken={number}")
        return number

    with pytest.raises(oaimend.httpx.RepairError, match="goes in circles"):
        asyncio.run(harvest())


def test_other_lists_and_repeated_requests_are_no_circle(start: Any) -> None:
    url, get = start(30, lambda number: str(number + 1) if number < 29 else ""), with_requests()
    for _ in range(5):
        assert len(list(follow(get, url))) == 30
    for _ in range(10):
        get(f"{url}?verb=ListRecords&resumptionToken=3")


def test_every_circle_is_found() -> None:
    for before in range(20):
        for circle in range(1, 20):
            circles, requests_max = Circles(), 6 * (before + circle + 1)
            for number in range(requests_max + 1):
                item = number if number < before else before + (number - before) % circle
                asked = f"&resumptionToken={number}" if number else ""
                if circles.note(f"http://x/?verb=ListSets{asked}", str(number + 1), item):
                    break
            assert before + circle <= number + 1 <= requests_max, (before, circle)


def test_the_memory_is_bounded() -> None:
    circles = Circles()
    for number in range(LISTS_MAX * 2):
        assert not circles.note(f"http://x/{number}?verb=ListSets", "1", number)
    assert len(circles._lists) == LISTS_MAX
