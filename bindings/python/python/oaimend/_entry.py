"""The type of the entries of a report."""

from __future__ import annotations

from typing import Union

from ._engine import Quarantined, Repair, SwallowedItems, UnresolvedField

ReportEntry = Union[Repair, Quarantined, UnresolvedField, SwallowedItems]
"""One entry of a report."""
