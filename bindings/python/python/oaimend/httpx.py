"""Repair for httpx.

    client = httpx.Client()
    oaimend.httpx.repair(client)
    client.get("https://repository.example/oai?verb=ListRecords&metadataPrefix=oai_dc")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Optional, TypeVar, Union

import httpx

from ._engine import Options
from ._page import Page, PageError
from ._transport import AsyncRepairedStream, AsyncResponseHook, RepairedStream, ResponseHook, add_hook

__all__ = ["AsyncRepairTransport", "RepairError", "RepairTransport", "repair"]

_Client = TypeVar("_Client", bound=Union[httpx.Client, httpx.AsyncClient])


class RepairError(PageError, httpx.RemoteProtocolError):
    """A response that a harvester would take for a complete list, or a page of a list that goes in circles."""


class _Stream(RepairedStream, httpx.SyncByteStream):
    pass


class _AsyncStream(AsyncRepairedStream, httpx.AsyncByteStream):
    pass


class _Hook(ResponseHook):
    http: ClassVar[Any] = httpx
    stream: ClassVar[Any] = _Stream
    error: ClassVar[type[PageError]] = RepairError


class _AsyncHook(AsyncResponseHook):
    http: ClassVar[Any] = httpx
    stream: ClassVar[Any] = _AsyncStream
    error: ClassVar[type[PageError]] = RepairError


class RepairTransport(httpx.BaseTransport):
    """Repairs the responses of another transport.

    Only successful responses to OAI-PMH requests are repaired. All other responses stay unchanged.

    transport: the transport that sends the requests. The default is a new `HTTPTransport`.
    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `RepairError`.
    """

    def __init__(
        self,
        transport: Optional[httpx.BaseTransport] = None,
        *,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
    ) -> None:
        self._transport = transport if transport is not None else httpx.HTTPTransport()
        self._repair = _Hook(options, on_page, allow_truncated)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request. The body of the response is repaired while it is read."""
        response = self._transport.handle_request(request)
        self._repair.repair(request, response)
        return response

    def close(self) -> None:
        """Closes the other transport."""
        self._transport.close()


class AsyncRepairTransport(httpx.AsyncBaseTransport):
    """Repairs the responses of another asynchronous transport. The arguments are those of `RepairTransport`."""

    def __init__(
        self,
        transport: Optional[httpx.AsyncBaseTransport] = None,
        *,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
    ) -> None:
        self._transport = transport if transport is not None else httpx.AsyncHTTPTransport()
        self._repair = _AsyncHook(options, on_page, allow_truncated)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request. The body of the response is repaired while it is read."""
        response = await self._transport.handle_async_request(request)
        self._repair.repair(request, response)
        return response

    async def aclose(self) -> None:
        """Closes the other transport."""
        await self._transport.aclose()


def repair(
    client: _Client,
    *,
    options: Optional[Options] = None,
    on_page: Optional[Callable[[Page], None]] = None,
    allow_truncated: bool = False,
) -> _Client:
    """Repairs all OAI-PMH responses of a client by an event hook, and returns the client.

    The other arguments are those of `RepairTransport`.
    """
    kind = _AsyncHook if isinstance(client, httpx.AsyncClient) else _Hook
    add_hook(client, kind(options, on_page, allow_truncated))
    return client
