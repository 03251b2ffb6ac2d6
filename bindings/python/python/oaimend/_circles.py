"""Detects lists that go in circles: the repository sends the same pages again and again.

By Brent's algorithm: one page of a list is kept, and all later ones are compared with it. After twice as many pages a
later one takes its place. So the memory of a list is constant, and a circle of any length is found.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple
from urllib.parse import parse_qs

LISTS_MAX = 1_000
"""The most lists that are followed at the same time. Of more of them, the oldest are forgotten."""

REPEATS_MIN = 2
"""How often a page comes again in a circle. A repository that has lost its place may send a page a second time."""


class _Pages(NamedTuple):
    """The pages of a list up to a token."""

    number: int = 0
    kept: int | None = None
    """The hash of the page that later ones are compared with."""
    repeats: int = 0
    """How often it came again."""

    def add(self, page: int) -> _Pages:
        number = self.number + 1
        if self.kept == page:
            return _Pages(number, page, self.repeats + 1)
        # A power of two.
        if number & (number - 1) == 0:
            return _Pages(number, page, 0)
        return _Pages(number, self.kept, self.repeats)


class Circles:
    """The lists of one client, by their last token. Its threads share it."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[str, str, str], _Pages] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, url: str, token: str | None, items: int | None) -> bool:
        """Notes a page. Returns whether its list goes in circles.

        url: the request, with its arguments.
        token: the resumptionToken of the page, if the list continues.
        items: the hash of the identifiers of the page, if it has items.
        """
        if not token:
            return False
        base, _, query = url.partition("?")
        arguments = parse_qs(query)
        verb = arguments.get("verb", [""])[0]
        asked = arguments.get("resumptionToken", [""])[0]
        with self._lock:
            pages = self._lists.get((base, verb, asked), _Pages()) if asked else _Pages()
            if items is not None:
                pages = pages.add(items)
            self._lists[base, verb, token] = pages
            self._lists.move_to_end((base, verb, token))
            if len(self._lists) > LISTS_MAX:
                self._lists.popitem(last=False)
        return pages.repeats >= REPEATS_MIN
