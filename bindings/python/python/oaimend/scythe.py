"""Repair for oaipmh-scythe. Import `Scythe` from here instead of from `oaipmh_scythe`.

    from oaimend.scythe import Scythe

    with Scythe("https://repository.example/oai") as scythe:
        for record in scythe.list_records():
            print(record.header.identifier)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Optional

import oaipmh_scythe

from ._engine import Options
from ._page import Page

__all__ = ["Scythe"]


class Scythe(oaipmh_scythe.Scythe):
    """Scythe whose responses are repaired.

    options: the settings of the repository.
    on_page: called after each page, with its report.
    allow_truncated: keeps an incomplete page, instead of raising `RepairError` of `oaimend.httpx2`.

    The other arguments are those of `oaipmh_scythe.Scythe`.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        options: Optional[Options] = None,
        on_page: Optional[Callable[[Page], None]] = None,
        allow_truncated: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(endpoint, **arguments)
        self._repair_arguments = {
            "options": options,
            "on_page": on_page,
            "allow_truncated": allow_truncated,
        }

    @property
    def client(self) -> Any:
        """The HTTP client, with repair. Scythe creates a new one after `close`."""
        client = super().client
        # Scythe uses httpx2 since version 0.16, and httpx before.
        library = type(client).__module__.partition(".")[0]
        adapter = importlib.import_module(f"{__package__}.{library}")
        return adapter.repair(client, **self._repair_arguments)
