"""oaipmh-scythe."""

from __future__ import annotations

from typing import Any

import httpx2
import oaipmh_scythe

from harvesting import Harvester, Records, first
from oaimend.scythe import Scythe


def harvest(client: Any, records: Records) -> None:
    with client:
        for record in client.list_records(metadata_prefix="oai_dc"):
            fields = (first(record.metadata.get(name)) for name in ("title", "description"))
            records.append([record.header.identifier, record.header.datestamp, *fields])


def list_sets(client: Any) -> object:
    with client:
        return list(client.list_sets())


HARVESTER = Harvester(
    name="oaipmh-scythe",
    alone=oaipmh_scythe.Scythe,
    repaired=Scythe,
    harvest=harvest,
    list_sets=list_sets,
    request_error=httpx2.TransportError,
    bad_verb=oaipmh_scythe.exceptions.BadVerb,
    harmless=frozenset({"none", "trailing-notice"}),
)
