"""Repairs broken OAI-PMH responses.

    repaired = oaimend.repair(page)           # bytes in; bytes, a report and an outcome out

An existing harvester gains repair in one line:

    oaimend.requests.repair(session)          # requests
    oaimend.httpx.repair(client)              # httpx, also asynchronous; `oaimend.httpx2` for httpx2
    from oaimend.sickle import Sickle         # instead of: from sickle import Sickle
    from oaimend.scythe import Scythe         # instead of: from oaipmh_scythe import Scythe
    from oaimend.pyoai import Client          # instead of: from oaipmh.client import Client
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from ._check import CheckError, CheckReport, CheckedRule, check
from ._engine import (
    Limits,
    Options,
    Quarantined,
    Repair,
    Repaired,
    Repairer,
    Summary,
    SwallowedItems,
    UnresolvedField,
    __version__,
    repair,
)
from ._entry import ReportEntry
from ._page import Page, PageError
from ._reader import RepairReader

if TYPE_CHECKING:
    from . import httpx as httpx
    from . import httpx2 as httpx2
    from . import pyoai as pyoai
    from . import requests as requests
    from . import scythe as scythe
    from . import sickle as sickle

__all__ = [
    "CheckError",
    "CheckReport",
    "CheckedRule",
    "Limits",
    "Options",
    "Page",
    "PageError",
    "Quarantined",
    "Repair",
    "RepairReader",
    "Repaired",
    "Repairer",
    "ReportEntry",
    "Summary",
    "SwallowedItems",
    "UnresolvedField",
    "__version__",
    "check",
    "repair",
]

_ADAPTERS = frozenset({"httpx", "httpx2", "pyoai", "requests", "scythe", "sickle"})


def __getattr__(name: str) -> ModuleType:
    """Imports an adapter when it is used first, because its HTTP client is an optional dependency."""
    if name in _ADAPTERS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
