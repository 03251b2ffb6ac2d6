"""Repair for Sickle. Import `Sickle` from here instead of from `sickle`.

    from oaimend.sickle import Sickle

    for record in Sickle("https://repository.example/oai").ListRecords(metadataPrefix="oai_dc"):
        print(record.header.identifier)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional
from urllib.parse import urlencode

import sickle
from lxml import etree
from sickle.response import OAIResponse, XMLParser

from ._engine import Options
from ._page import Page, PageRepair, Settings
from .requests import RepairError

__all__ = ["RepairedResponse", "Sickle"]


class RepairedResponse(OAIResponse):
    """A response of Sickle with the repaired page. `http_response` has the page as it arrived."""

    def __init__(self, response: OAIResponse, page: bytes) -> None:
        super().__init__(response.http_response, response.params)
        self._page = page

    @property
    def raw(self) -> str:
        """The repaired page as text."""
        return self._page.decode("utf-8")

    @property
    def xml(self) -> Any:
        """The repaired page as a tree of lxml."""
        return etree.XML(self._page, parser=XMLParser)


class Sickle(sickle.Sickle):
    """Sickle whose responses are repaired.

    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `oaimend.requests.RepairError`.

    The other arguments are those of `sickle.Sickle`.
    """

    def __init__(
        self,
        endpoint: str,
        *arguments: Any,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
        **named_arguments: Any,
    ) -> None:
        super().__init__(endpoint, *arguments, **named_arguments)
        self._settings = Settings(options, on_page, allow_truncated, RepairError)

    def harvest(self, **arguments: Any) -> RepairedResponse:
        """Sends a request and repairs the response."""
        response = super().harvest(**arguments)
        received = response.http_response
        # requests does not send an argument without a value.
        sent = {name: value for name, value in arguments.items() if value is not None}
        url = f"{self.endpoint}?{urlencode(sent)}"
        page = PageRepair(url, received.headers.get("Content-Type"), self._settings)
        return RepairedResponse(response, b"".join(page.repair([received.content])))
