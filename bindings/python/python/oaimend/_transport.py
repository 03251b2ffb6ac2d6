"""The parts of the adapters for httpx and httpx2 that are the same.

httpx2 is a fork of httpx with the same interface, so `http` is one of both modules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ClassVar, Optional, Union

from ._engine import Options
from ._page import CONTENT_TYPE, Page, PageError, PageRepair, Settings, find_request


class RepairedStream:
    """The repaired body of a response. `source` is the same response with the body as it arrived."""

    def __init__(self, source: Any, page: PageRepair) -> None:
        self._source = source
        self._page = page

    def __iter__(self) -> Iterator[bytes]:
        yield from self._page.repair(self._source.iter_bytes())

    def close(self) -> None:
        self._source.stream.close()


class AsyncRepairedStream:
    """The repaired body of an asynchronous response."""

    def __init__(self, source: Any, page: PageRepair) -> None:
        self._source = source
        self._page = page

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._source.aiter_bytes():
            for repaired in self._page.push(chunk):
                yield repaired
        yield self._page.finish()

    async def aclose(self) -> None:
        await self._source.stream.aclose()


class ResponseRepair:
    """Repairs responses of one of both modules."""

    http: ClassVar[Any]
    stream: ClassVar[Any]
    error: ClassVar[type[PageError]]

    def __init__(
        self,
        options: Optional[Options],
        on_page: Optional[Callable[[Page], None]],
        allow_truncated: bool,
    ) -> None:
        self._settings = Settings(options, on_page, allow_truncated, self.error)

    def repair(self, request: Any, response: Any) -> None:
        """Replaces the body of a successful response to an OAI-PMH request by the repaired one."""
        url = find_request(request.method, str(request.url), self._read_form(request))
        if url is None or not 200 <= response.status_code < 300:
            return
        received = response.headers.copy()
        for name in ("Content-Encoding", "Content-Length"):
            response.headers.pop(name, None)
        response.headers["Content-Type"] = CONTENT_TYPE
        content_type, encoding = received.get("Content-Type"), received.get("Content-Encoding")
        try:
            loaded = response.content
        except self.http.ResponseNotRead:
            page = PageRepair(url, content_type, self._settings, encoding)
            source = self.http.Response(response.status_code, headers=received, stream=response.stream)
            response.stream = self.stream(source, page)
        else:
            # A transport that caches returns a body that is already read, and nothing public replaces it.
            response._content = b"".join(PageRepair(url, content_type, self._settings).repair([loaded]))

    def _read_form(self, request: Any) -> Optional[bytes]:
        """The form of a request. A body that is streamed is no form."""
        try:
            form: bytes = request.content
        except self.http.RequestNotRead:
            return None
        return form


class ResponseHook(ResponseRepair):
    """The event hook of a synchronous client."""

    def __call__(self, response: Any) -> None:
        self.repair(response.request, response)


class AsyncResponseHook(ResponseRepair):
    """The event hook of an asynchronous client."""

    async def __call__(self, response: Any) -> None:
        self.repair(response.request, response)


def add_hook(client: Any, hook: Union[ResponseHook, AsyncResponseHook]) -> None:
    """Adds the hook to a client that has none yet. It precedes other hooks, because they may read the body."""
    hooks = client.event_hooks
    if not any(isinstance(other, ResponseRepair) for other in hooks["response"]):
        client.event_hooks = {**hooks, "response": [hook, *hooks["response"]]}
