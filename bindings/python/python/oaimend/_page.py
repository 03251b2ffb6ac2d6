"""The repair of HTTP responses, for all adapters.

A page is one response to an OAI-PMH request. `PageRepair` repairs its body while it arrives. It raises `PageError` at
the end of a page that a harvester would take for a complete list, and of a page that comes again and again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from html import unescape
from typing import Optional
from urllib.parse import parse_qs, urlsplit

from ._circles import Circles
from ._engine import Options, Quarantined, Repairer, Summary
from ._entry import ReportEntry
from ._gunzip import Gunzip

_log = logging.getLogger("oaimend")

_VERBS = frozenset({"GetRecord", "Identify", "ListIdentifiers", "ListMetadataFormats", "ListRecords", "ListSets"})

CONTENT_TYPE = "text/xml; charset=UTF-8"
"""The Content-Type of every repaired page."""

INFLATED_BYTES_MAX = 256 << 20
"""The longest compressed page, in bytes after decompression. Two megabytes of gzip can become two gigabytes, and most
harvesters hold a page in memory. A page that is not compressed has no limit, because it costs its sender as much."""


@dataclass(frozen=True)
class Page:
    """The result of the repair of one page, for `on_page`."""

    url: str
    """The URL of the request, with its arguments."""
    summary: Summary
    """The outcome and the counts."""
    report: tuple[ReportEntry, ...]
    """Every change and every remark, in the order of the text."""

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """The quarantined items, with their bytes."""
        return tuple(entry for entry in self.report if isinstance(entry, Quarantined))


class PageError(Exception):
    """A response that a harvester would take for a complete list, although it is none; or a page of a list that goes in
    circles.

    It is the fault of the repository. The message says what arrived and what to do.
    """

    def __init__(self, url: str, summary: Summary, message: str) -> None:
        super().__init__(f"{url}: {message}")
        self.url = url
        """The URL of the request, with its arguments."""
        self.summary = summary
        """The outcome and the counts. The outcome is `truncated` or `not-oai`, except in a list that goes in circles."""
        self._message = message

    def __reduce__(self) -> tuple[type[PageError], tuple[str, Summary, str]]:
        """For pickle: an error can come from another process."""
        return type(self), (self.url, self.summary, self._message)


@dataclass(frozen=True)
class Settings:
    """The arguments that all adapters have in common."""

    options: Optional[Options]
    on_page: Optional[Callable[[Page], None]]
    allow_truncated: bool
    error: type[PageError]
    """The class of the error, which the HTTP client's error handling catches too."""
    circles: Circles = field(default_factory=Circles)
    """The lists that the client follows."""


def find_request(method: str, url: str, form: str | bytes | None) -> str | None:
    """Returns the URL of an OAI-PMH request with its arguments, and None for every other request."""
    if method == "POST":
        query = form.decode("latin-1") if isinstance(form, bytes) else form or ""
        url = f"{url.partition('?')[0]}?{query}"
    elif method != "GET":
        return None
    verbs = parse_qs(urlsplit(url).query).get("verb", [])
    return url if any(verb in _VERBS for verb in verbs) else None


def find_charset(content_type: str | None) -> str | None:
    """Returns the charset of a Content-Type header."""
    message = Message()
    message["Content-Type"] = content_type or ""
    charset = message.get_param("charset")
    return charset if isinstance(charset, str) and charset else None


class PageRepair:
    """Repairs the body of one page, chunk by chunk.

    content_encoding: the header of that name, if the HTTP client decompresses the body while it arrives.
    """

    def __init__(
        self, url: str, content_type: str | None, settings: Settings, content_encoding: str | None = None
    ) -> None:
        self._url = url
        self._settings = settings
        self._repairer = Repairer(request=url, charset=find_charset(content_type), options=settings.options)
        self._gunzip = Gunzip()
        self._is_compressed = content_encoding is not None
        self._inflated_bytes = 0
        self._report: list[ReportEntry] = []

    def push(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the repaired bytes that are ready. Raises the error of the settings for a page that inflates too much."""
        for piece in self._gunzip.push(chunk):
            self._limit_inflation(len(piece))
            yield self._repairer.push(piece)
            self._collect()

    def finish(self) -> bytes:
        """Ends the page and returns its last bytes. Raises the error of the settings for an unusable page."""
        start = b"".join(self._repairer.push(piece) for piece in self._gunzip.finish())
        last = start + self._repairer.finish()
        self._collect()
        summary = self._repairer.summary
        assert summary is not None, "finish sets the summary"
        self._announce(summary)
        message = self._judge(summary) or self._find_circle()
        if message is not None:
            raise self._settings.error(self._url, summary, message)
        return last

    def repair(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the repaired bytes of the whole page."""
        for chunk in chunks:
            yield from self.push(chunk)
        yield self.finish()

    def _limit_inflation(self, piece_bytes: int) -> None:
        """Counts decompressed bytes. Raises the error of the settings if a compressed page has too many of them."""
        self._inflated_bytes += piece_bytes
        is_compressed = self._is_compressed or self._gunzip.is_compressed
        if self._inflated_bytes <= INFLATED_BYTES_MAX or not is_compressed:
            return
        self._repairer.finish()
        self._collect()
        summary = self._repairer.summary
        assert summary is not None, "finish sets the summary"
        self._announce(summary)
        raise self._settings.error(
            self._url,
            summary,
            f"the compressed page is longer than {INFLATED_BYTES_MAX >> 20} MiB after decompression; "
            "tell the operator of the repository",
        )

    def _collect(self) -> None:
        """Takes the entries of the report. Without `on_page`, only quarantined items are of use."""
        entries = self._repairer.take_report()
        if self._settings.on_page is not None:
            self._report.extend(entries)
        for entry in entries:
            if isinstance(entry, Quarantined):
                _log.warning("%s: quarantined %s: %s", self._url, entry.identifier or "an item", entry.why)

    def _announce(self, summary: Summary) -> None:
        if summary.repairs:
            counts = ", ".join(f"{name} {count}" for name, count in summary.repairs.items())
            _log.info("%s: %s, %d items, %s", self._url, summary.outcome, summary.records, counts)
        if self._settings.on_page is not None:
            self._settings.on_page(Page(self._url, summary, tuple(self._report)))

    def _find_circle(self) -> str | None:
        """Returns the message of the error if the list goes in circles."""
        token = self._repairer.resumption_token
        token = None if token is None else unescape(token)
        if not self._settings.circles.note(self._url, token, self._repairer.items_hash):
            return None
        return (
            "the list goes in circles: its resumptionTokens lead back to pages that arrived before. "
            "All its records arrived; tell the operator of the repository"
        )

    def _judge(self, summary: Summary) -> str | None:
        """Returns the message of the error; None for a page that a harvester can use."""
        is_lost = summary.outcome == "not-oai"
        if is_lost and not self._gunzip.is_broken:
            return summary.message
        if summary.outcome != "truncated" and not self._gunzip.is_broken:
            return None
        if self._settings.allow_truncated and not is_lost:
            _log.warning("%s: the page is incomplete: %d items arrived", self._url, summary.records)
            return None
        cause = "its compressed data is damaged" if self._gunzip.is_broken else "the list has more"
        return (
            f"the page is incomplete: {summary.records} items arrived, and {cause}; request it again. "
            "If it is always incomplete, tell the operator of the repository. allow_truncated=True keeps such pages"
        )
