"""The adapters for HTTP clients, with each client."""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import httpx
import httpx2
import pytest
import requests

import oaimend
from conftest import Server
from pages import BROKEN, CLEAN, HTML, QUARANTINED_RECORD, REPAIRED, TRUNCATED, WITH_QUARANTINE, page, record

QUERY = "?verb=ListRecords&metadataPrefix=oai_dc"


@dataclass(frozen=True)
class Client:
    """One way to send a request with repair: `send(method, url, form, **arguments_of_repair)`."""

    name: str
    send: Callable[..., Any]
    error: type[Exception]
    """The class of the client whose errors the error of the repair is one of."""


def with_requests(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    with requests.Session() as session:
        return oaimend.requests.repair(session, **arguments).request(method, url, data=form, timeout=20)


def with_adapter(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    with requests.Session() as session:
        session.mount("http://", oaimend.requests.RepairAdapter(**arguments))
        return session.request(method, url, data=form, timeout=20)


def with_httpx(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    with httpx.Client(timeout=20) as client:
        return oaimend.httpx.repair(client, **arguments).request(method, url, data=form)


def with_transport(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    with httpx.Client(transport=oaimend.httpx.RepairTransport(**arguments), timeout=20) as client:
        return client.request(method, url, data=form)


def with_async_httpx(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(timeout=20) as client:
            return await oaimend.httpx.repair(client, **arguments).request(method, url, data=form)

    return asyncio.run(send())


def with_async_transport(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    async def send() -> httpx.Response:
        transport = oaimend.httpx.AsyncRepairTransport(**arguments)
        async with httpx.AsyncClient(transport=transport, timeout=20) as client:
            return await client.request(method, url, data=form)

    return asyncio.run(send())


def with_httpx2(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    with httpx2.Client(timeout=20) as client:
        return oaimend.httpx2.repair(client, **arguments).request(method, url, data=form)


def with_async_httpx2(method: str, url: str, form: Optional[dict[str, str]], **arguments: Any) -> Any:
    async def send() -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=20) as client:
            return await oaimend.httpx2.repair(client, **arguments).request(method, url, data=form)

    return asyncio.run(send())


CLIENTS = [
    Client("requests", with_requests, requests.RequestException),
    Client("RepairAdapter", with_adapter, requests.RequestException),
    Client("httpx", with_httpx, httpx.TransportError),
    Client("RepairTransport", with_transport, httpx.TransportError),
    Client("async httpx", with_async_httpx, httpx.TransportError),
    Client("AsyncRepairTransport", with_async_transport, httpx.TransportError),
    Client("httpx2", with_httpx2, httpx2.TransportError),
    Client("async httpx2", with_async_httpx2, httpx2.TransportError),
]
each_client = pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])


@each_client
def test_page_is_repaired(client: Client, server: Server) -> None:
    server.body = BROKEN
    pages: list[oaimend.Page] = []
    response = client.send("GET", server.url + QUERY, None, on_page=pages.append)
    assert response.content == REPAIRED and "Café" in response.text
    assert response.headers["Content-Type"] == "text/xml; charset=UTF-8"
    assert "Content-Length" not in response.headers
    (result,) = pages
    assert result.url == server.url + QUERY
    assert result.report == oaimend.repair(BROKEN).report
    assert result.summary.repairs == {"bare-ampersand": 1, "windows-1252-byte": 1}


@each_client
def test_form_of_a_post_is_a_request_too(client: Client, server: Server) -> None:
    server.body = BROKEN
    pages: list[oaimend.Page] = []
    form = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}
    assert client.send("POST", server.url, form, on_page=pages.append).content == REPAIRED
    assert pages[0].url == server.url + QUERY


@each_client
def test_compressed_page_is_repaired(client: Client, server: Server) -> None:
    server.body = gzip.compress(BROKEN)
    server.headers["Content-Encoding"] = "gzip"
    response = client.send("GET", server.url + QUERY, None)
    assert response.content == REPAIRED and "Content-Encoding" not in response.headers
    # Compressed without a header, and compressed twice.
    del server.headers["Content-Encoding"]
    assert client.send("GET", server.url + QUERY, None).content == REPAIRED
    server.body = gzip.compress(server.body)
    server.headers["Content-Encoding"] = "gzip"
    assert client.send("GET", server.url + QUERY, None).content == REPAIRED


@each_client
def test_compressed_page_that_inflates_too_much_is_an_error(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oaimend._page.INFLATED_BYTES_MAX", 1 << 20)
    long = page(record(1, b" " * (4 << 20)))
    server.body = long
    assert len(client.send("GET", server.url + QUERY, None).content) > 4 << 20
    once = gzip.compress(long)
    for encoding, server.body in [("gzip", once), (None, once), ("gzip", gzip.compress(once))]:
        server.headers.pop("Content-Encoding", None)
        if encoding is not None:
            server.headers["Content-Encoding"] = encoding
        with pytest.raises(client.error, match="longer than 1 MiB after decompression"):
            client.send("GET", server.url + QUERY, None, allow_truncated=True)


@each_client
def test_charset_of_the_header_is_used(client: Client, server: Server) -> None:
    server.body = page(record(1, "ąę".encode("iso-8859-2"))).replace(b' encoding="UTF-8"', b"")
    server.headers["Content-Type"] = "text/xml; charset=iso-8859-2"
    assert "ąę" in client.send("GET", server.url + QUERY, None).text


@each_client
def test_other_responses_are_unchanged(client: Client, server: Server) -> None:
    server.body = BROKEN
    for query in ["", "?verb=Walk", "?page=2"]:
        response = client.send("GET", server.url + query, None)
        assert response.content == BROKEN and response.headers["Content-Length"] == str(len(BROKEN))
    assert client.send("PUT", server.url + QUERY, None).content == BROKEN
    assert client.send("HEAD", server.url + QUERY, None).content == b""
    assert client.send("POST", server.url, {"page": "2"}).content == BROKEN
    server.body, server.status = HTML, 503
    server.headers["Retry-After"] = "7"
    response = client.send("GET", server.url + QUERY, None)
    assert (response.status_code, response.content, response.headers["Retry-After"]) == (503, HTML, "7")


@each_client
def test_html_page_is_an_error_of_the_client(client: Client, server: Server) -> None:
    server.body = HTML
    with pytest.raises(client.error, match="HTML page.*check the base URL") as caught:
        client.send("GET", server.url + QUERY, None)
    error = caught.value
    assert isinstance(error, oaimend.PageError)
    assert (error.url, error.summary.why) == (server.url + QUERY, "html-page")
    server.body = b""
    with pytest.raises(oaimend.PageError, match="empty body; try again"):
        client.send("GET", server.url + QUERY, None, allow_truncated=True)


@each_client
def test_truncated_page_is_an_error(client: Client, server: Server) -> None:
    server.body = TRUNCATED
    with pytest.raises(client.error, match="1 items arrived.*request it again") as caught:
        client.send("GET", server.url + QUERY, None)
    assert isinstance(caught.value, oaimend.PageError) and caught.value.summary.outcome == "truncated"
    kept = client.send("GET", server.url + QUERY, None, allow_truncated=True).content
    assert b"oai:x:1" in kept and kept.rstrip().endswith(b"</OAI-PMH>")


@each_client
def test_compressed_page_that_ends_early_is_an_error(client: Client, server: Server) -> None:
    # The document is complete; only the checksum at the end is missing or wrong.
    for body in [gzip.compress(CLEAN)[:-4], gzip.compress(CLEAN)[:-8] + bytes(8)]:
        server.body = body
        with pytest.raises(oaimend.PageError, match="incomplete"):
            client.send("GET", server.url + QUERY, None)


def test_quarantined_record_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.body = WITH_QUARANTINE
    pages: list[oaimend.Page] = []
    with caplog.at_level(logging.WARNING, "oaimend"):
        with_requests("GET", server.url + QUERY, None, on_page=pages.append)
    assert [record.getMessage() for record in caplog.records] == [
        f"{server.url}{QUERY}: quarantined oai:x:2: illegal-payload"
    ]
    (item,) = pages[0].quarantined
    assert item.raw.strip() == QUARANTINED_RECORD.strip()


def test_repairs_are_logged_with_their_number(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.body = BROKEN
    with caplog.at_level(logging.INFO, "oaimend"):
        with_httpx("GET", server.url + QUERY, None)
    assert "repaired, 2 items, bare-ampersand 1, windows-1252-byte 1" in caplog.text


def test_options_reach_the_engine(server: Server) -> None:
    server.body = BROKEN
    off = oaimend.Options(off=["bare-ampersand"])
    for client in CLIENTS:
        assert b"oai:x:1" not in client.send("GET", server.url + QUERY, None, options=off).content


def test_session_keeps_its_adapters_and_is_repaired_once() -> None:
    with requests.Session() as session:
        session.mount("http://x.example/", own := requests.adapters.HTTPAdapter(max_retries=3))
        assert oaimend.requests.repair(oaimend.requests.repair(session)) is session
        adapter = session.get_adapter("http://x.example/oai")
        assert isinstance(adapter, oaimend.requests.RepairAdapter) and adapter._adapter is own
        assert set(session.adapters) == {"http://x.example/", "https://", "http://"}


def test_client_is_repaired_once_and_keeps_its_hooks(server: Server) -> None:
    server.body = WITH_QUARANTINE
    seen: list[bytes] = []
    pages: list[oaimend.Page] = []
    with httpx.Client(event_hooks={"response": [lambda response: seen.append(response.read())]}) as client:
        oaimend.httpx.repair(oaimend.httpx.repair(client, on_page=pages.append), on_page=pages.append)
        content = client.get(server.url + QUERY).content
    assert seen == [content] == [oaimend.repair(WITH_QUARANTINE).bytes]
    assert len(pages) == 1


def test_streams_and_connections_of_requests_work_as_before(server: Server) -> None:
    server.body = page(*(record(number, b"a & b") for number in range(2_000)))
    expected = oaimend.repair(server.body).bytes
    with requests.Session() as session:
        oaimend.requests.repair(session)
        with session.get(server.url + QUERY, stream=True, timeout=20) as response:
            assert b"".join(response.iter_content(1000)) == expected
        with session.get(server.url + QUERY, stream=True, timeout=20) as response:
            assert response.raw.read(10) == expected[:10]
            assert response.raw.read(decode_content=True) == expected[10:]
            assert (response.raw.status, response.raw.read()) == (200, b"")
        assert session.get(server.url + QUERY, timeout=20).content == expected
        assert len(server.connections) == 1
        with session.get(server.url + QUERY, stream=True, timeout=20) as response:
            next(response.iter_content(1000))
        assert response.raw.closed and response.raw._raw.closed
        assert session.get(server.url + QUERY, timeout=20).content == expected


def test_streams_and_connections_of_httpx_work_as_before(server: Server) -> None:
    server.body = page(*(record(number, b"a & b") for number in range(2_000)))
    expected = oaimend.repair(server.body).bytes
    # With one connection at most, a response that is not closed stops the next request.
    limits = httpx.Limits(max_connections=1)
    transport = oaimend.httpx.RepairTransport(httpx.HTTPTransport(limits=limits))
    timeout = httpx.Timeout(20, pool=1)
    for client in [
        oaimend.httpx.repair(httpx.Client(limits=limits, timeout=timeout)),
        httpx.Client(transport=transport, timeout=timeout),
    ]:
        server.connections.clear()
        with client:
            with client.stream("GET", server.url + QUERY) as response:
                assert b"".join(response.iter_bytes(1000)) == expected
            assert client.get(server.url + QUERY).content == expected
            assert len(server.connections) == 1
            with client.stream("GET", server.url + QUERY) as response:
                chunks = response.iter_bytes(1000)
                next(chunks)
            assert client.get(server.url + QUERY).content == expected


def test_redirect_is_followed(server: Server) -> None:
    server.body = BROKEN

    def redirect(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": server.url + QUERY}, text="moved")

    mounts = {"http://x.example": httpx.MockTransport(redirect)}
    with httpx.Client(mounts=mounts, follow_redirects=True, timeout=20) as client:
        oaimend.httpx.repair(client)
        response = client.get("http://x.example/oai" + QUERY)
    assert response.content == REPAIRED and [one.text for one in response.history] == ["moved"]


def test_body_that_is_already_read_is_repaired() -> None:
    def respond(request: Any) -> httpx.Response:
        return httpx.Response(200, content=BROKEN)

    class Cache(requests.adapters.BaseAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            response = requests.Response()
            response.status_code, response._content, response.request = 200, BROKEN, request
            return response

        def close(self) -> None:
            pass

    url = "http://x.example/oai" + QUERY
    with oaimend.httpx.repair(httpx.Client(transport=httpx.MockTransport(respond))) as client:
        assert client.get(url).content == REPAIRED
    with httpx.Client(transport=oaimend.httpx.RepairTransport(httpx.MockTransport(respond))) as client:
        assert client.get(url).content == REPAIRED
    with requests.Session() as session:
        session.mount("http://x.example", oaimend.requests.RepairAdapter(Cache()))
        assert session.get(url).content == REPAIRED


def test_compressed_data_is_expanded_in_bounded_pieces() -> None:
    from oaimend._gunzip import PIECE_BYTES_MAX, Gunzip

    data = bytes(5 * PIECE_BYTES_MAX)
    for chunk_bytes in (1, 2, 1000, 1 << 20):
        # Two members, with padding after the last one.
        body = gzip.compress(data) + gzip.compress(b"end") + bytes(100)
        gunzip = Gunzip()
        pieces = [piece for at in range(0, len(body), chunk_bytes) for piece in gunzip.push(body[at : at + chunk_bytes])]
        pieces += gunzip.finish()
        assert b"".join(pieces) == data + b"end" and not gunzip.is_broken
        assert max(map(len, pieces)) <= PIECE_BYTES_MAX


@pytest.mark.parametrize("body", [b"", b"\x1f", b"<", b"\x1fx", zlib.compress(b"x")])
def test_other_bodies_are_passed_on(body: bytes) -> None:
    from oaimend._gunzip import Gunzip

    gunzip = Gunzip()
    assert b"".join([*gunzip.push(body), *gunzip.finish()]) == body and not gunzip.is_broken
