"""Repair for httpx2, the fork of httpx.

    client = httpx2.Client()
    oaimend.httpx2.repair(client)
    client.get("https://repository.example/oai?verb=ListRecords&metadataPrefix=oai_dc")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Optional, TypeVar, Union

import httpx2

from ._engine import Options
from ._page import Page, PageError
from ._transport import AsyncRepairedStream, AsyncResponseHook, RepairedStream, ResponseHook, add_hook

__all__ = ["RepairError", "repair"]

_Client = TypeVar("_Client", bound=Union[httpx2.Client, httpx2.AsyncClient])


class RepairError(PageError, httpx2.RemoteProtocolError):
    """A response that a harvester would take for a complete list, or a page of a list that goes in circles."""


class _Stream(RepairedStream, httpx2.SyncByteStream):
    pass


class _AsyncStream(AsyncRepairedStream, httpx2.AsyncByteStream):
    pass


class _Hook(ResponseHook):
    http: ClassVar[Any] = httpx2
    stream: ClassVar[Any] = _Stream
    error: ClassVar[type[PageError]] = RepairError


class _AsyncHook(AsyncResponseHook):
    http: ClassVar[Any] = httpx2
    stream: ClassVar[Any] = _AsyncStream
    error: ClassVar[type[PageError]] = RepairError


def repair(
    client: _Client,
    *,
    options: Optional[Options] = None,
    on_page: Optional[Callable[[Page], None]] = None,
    allow_truncated: bool = False,
) -> _Client:
    """Repairs all OAI-PMH responses of a client by an event hook, and returns the client.

    Only successful responses to OAI-PMH requests are repaired. All other responses stay unchanged.

    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `RepairError`.
    """
    kind = _AsyncHook if isinstance(client, httpx2.AsyncClient) else _Hook
    add_hook(client, kind(options, on_page, allow_truncated))
    return client
