"""Readers for code that expects a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ._engine import Options, Repairer, Summary
from ._entry import ReportEntry

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ChunkReader(io.RawIOBase):
    """Makes an iterator of bytes readable as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self.closed:
            raise ValueError("the reader is closed")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class RepairReader(ChunkReader):
    """Reads a response from an iterable of bytes and gives out the repaired one, with bounded memory.

        with open("page.xml", "rb") as file:
            tree = lxml.etree.parse(oaimend.RepairReader(file))

    The other arguments are those of `repair`. Errors of the iterable are passed on.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        *,
        request: str | None = None,
        charset: str | None = None,
        options: Options | None = None,
    ) -> None:
        self._repairer = Repairer(request=request, charset=charset, options=options)
        super().__init__(self._repair(chunks))

    def _repair(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield self._repairer.push(chunk)
        yield self._repairer.finish()

    @property
    def summary(self) -> Summary | None:
        """The outcome and the counts, after the last byte was read."""
        return self._repairer.summary

    def take_report(self) -> tuple[ReportEntry, ...]:
        """The entries of the report since the last call. Entries that are not taken stay in memory."""
        return self._repairer.take_report()
