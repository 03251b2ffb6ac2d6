"""Repair for pyoai. Import `Client` from here instead of from `oaipmh.client`.

    from oaimend.pyoai import Client

    client = Client("https://repository.example/oai", registry)
    for header, metadata, about in client.listRecords(metadataPrefix="oai_dc"):
        print(header.identifier())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional
from urllib.parse import urlencode

import oaipmh.client
import oaipmh.error

from ._engine import Options
from ._page import Page, PageError, PageRepair, Settings

__all__ = ["Client", "RepairError"]


class RepairError(PageError, oaipmh.error.ClientError):
    """A response that a harvester would take for a complete list, or a page of a list that goes in circles."""


class Client(oaipmh.client.Client):
    """The client of pyoai whose responses are repaired.

    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `RepairError`.

    The other arguments are those of `oaipmh.client.Client`.
    """

    def __init__(
        self,
        base_url: str,
        *arguments: Any,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
        **named_arguments: Any,
    ) -> None:
        super().__init__(base_url, *arguments, **named_arguments)
        self._url = base_url
        self._settings = Settings(options, on_page, allow_truncated, RepairError)

    def makeRequest(self, **arguments: Any) -> bytes:
        """Sends a request and repairs the response."""
        received: bytes = super().makeRequest(**arguments)
        # pyoai returns the body without its headers.
        page = PageRepair(f"{self._url}?{urlencode(arguments)}", None, self._settings)
        return b"".join(page.repair([received]))
