"""The decompression of bodies that are gzip without a Content-Encoding header.

Some repositories compress their responses twice, or compress them and do not say so.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_MAGIC = b"\x1f\x8b"
PIECE_BYTES_MAX = 1 << 20
"""The longest piece of decompressed data, in bytes. A small chunk can expand to a thousand times its length."""


class Gunzip:
    """Decompresses a body that begins as gzip, and passes on any other body unchanged."""

    def __init__(self) -> None:
        self.is_broken = False
        """Whether the compressed data is damaged or ends early."""
        self._start: bytes | None = b""
        self._member: zlib._Decompress | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the body begins as gzip. False until that is known."""
        return self._member is not None

    def push(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the decompressed pieces of a chunk."""
        if self._start is not None:
            chunk = self._start + chunk
            if len(chunk) < len(_MAGIC) and _MAGIC.startswith(chunk):
                self._start = chunk
                return
            self._start = None
            if chunk.startswith(_MAGIC):
                self._member = zlib.decompressobj(wbits=31)
        if self._member is None:
            yield chunk
        elif not self.is_broken:
            yield from self._decompress(chunk)

    def finish(self) -> Iterator[bytes]:
        """Ends the body. Yields the bytes that were too few to recognise gzip."""
        if self._start:
            yield self._start
        self._start = None
        if self._member is not None and not self._member.eof:
            self.is_broken = True

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        assert self._member is not None, "the body is gzip"
        while data:
            if self._member.eof:
                if not data.startswith(_MAGIC[:1]):
                    return  # Padding after the last member.
                self._member = zlib.decompressobj(wbits=31)
            try:
                yield self._member.decompress(data, PIECE_BYTES_MAX)
            except zlib.error:
                self.is_broken = True
                return
            data = self._member.unconsumed_tail or self._member.unused_data
