"""A harvester under test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

Records = list[list[Optional[str]]]
"""Identifier, datestamp, title and description of each record."""


@dataclass(frozen=True)
class Harvester:
    name: str
    # Create the client for a base URL. `repaired` takes the arguments of the repair too.
    alone: Callable[..., Any]
    repaired: Callable[..., Any]
    # Adds each record to the list, up to the first error.
    harvest: Callable[[Any, Records], None]
    list_sets: Callable[[Any], object]
    # The error for a failed request, and the one for the OAI error badVerb.
    request_error: type[Exception]
    bad_verb: type[Exception]
    # The defects with which the harvester gets all records without help.
    harmless: frozenset[str]


def first(texts: Any) -> Optional[str]:
    return str(texts[0]) if texts else None
