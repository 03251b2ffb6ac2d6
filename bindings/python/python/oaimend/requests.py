"""Repair for requests.

    session = requests.Session()
    oaimend.requests.repair(session)
    session.get("https://repository.example/oai?verb=ListRecords&metadataPrefix=oai_dc")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Optional

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from ._engine import Options
from ._page import CONTENT_TYPE, Page, PageError, PageRepair, Settings, find_request
from ._reader import ChunkReader

__all__ = ["RepairAdapter", "RepairError", "repair"]


class RepairError(PageError, requests.exceptions.RequestException):
    """A response that a harvester would take for a complete list, or a page of a list that goes in circles."""


class RepairAdapter(BaseAdapter):
    """Repairs the responses of another adapter.

    Only successful responses to OAI-PMH requests are repaired. All other responses stay unchanged.

    adapter: the adapter that sends the requests. The default is a new `HTTPAdapter`.
    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `RepairError`.
    """

    def __init__(
        self,
        adapter: Optional[BaseAdapter] = None,
        *,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
    ) -> None:
        super().__init__()
        self._adapter = adapter if adapter is not None else HTTPAdapter()
        self._settings = Settings(options, on_page, allow_truncated, RepairError)

    def send(self, request: requests.PreparedRequest, *arguments: Any, **named_arguments: Any) -> requests.Response:
        """Sends the request. The body of the response is repaired while it is read."""
        response: requests.Response = self._adapter.send(request, *arguments, **named_arguments)
        form = request.body if isinstance(request.body, (str, bytes)) else None
        url = find_request(request.method or "", request.url or "", form)
        if url is not None and 200 <= response.status_code < 300:
            # A body that is already read is in memory, however long it is.
            encoding = None if isinstance(response._content, bytes) else response.headers.get("Content-Encoding")
            page = PageRepair(url, response.headers.get("Content-Type"), self._settings, encoding)
            if isinstance(response._content, bytes):
                # An adapter that caches returns a body that is already read, and nothing public replaces it.
                response._content = b"".join(page.repair([response._content]))
            else:
                response.raw = _RepairedBody(response.raw, page)
            for name in ("Content-Encoding", "Content-Length"):
                response.headers.pop(name, None)
            response.headers["Content-Type"] = CONTENT_TYPE
            response.encoding = "utf-8"
        return response

    def close(self) -> None:
        """Closes the other adapter."""
        self._adapter.close()


class _RepairedBody(ChunkReader):
    """The body of a response, in place of the one of urllib3."""

    def __init__(self, raw: Any, page: PageRepair) -> None:
        super().__init__(page.repair(_read_chunks(raw)))
        self._raw = raw

    def stream(self, amt: Optional[int] = None, decode_content: Optional[bool] = None) -> Iterator[bytes]:
        """Yields the body, as the method of urllib3 does. requests calls it, and maps the errors of urllib3."""
        while True:
            chunk = self.read(CHUNK_BYTES if amt is None else amt)
            if not chunk:
                return
            yield chunk

    def read(self, amt: Optional[int] = -1, decode_content: Optional[bool] = None) -> bytes:
        """Reads the body. It is decoded, whatever `decode_content` says."""
        return super().read(-1 if amt is None else amt) or b""

    def close(self) -> None:
        super().close()
        self._raw.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


CHUNK_BYTES = 64 << 10
"""The length of one read, in bytes."""


def _read_chunks(raw: Any) -> Iterator[bytes]:
    if hasattr(raw, "stream"):
        yield from raw.stream(CHUNK_BYTES, decode_content=True)
        return
    while True:
        chunk = raw.read(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def repair(
    session: requests.Session,
    *,
    options: Optional[Options] = None,
    on_page: Optional[Callable[[Page], None]] = None,
    allow_truncated: bool = False,
) -> requests.Session:
    """Repairs all OAI-PMH responses of a session, and returns the session.

    Adapters that are mounted later are not repaired: mount a `RepairAdapter` with them.
    The other arguments are those of `RepairAdapter`.
    """
    for prefix, adapter in list(session.adapters.items()):
        if not isinstance(adapter, RepairAdapter):
            repairing = RepairAdapter(
                adapter, options=options, on_page=on_page, allow_truncated=allow_truncated
            )
            session.mount(prefix, repairing)
    return session
