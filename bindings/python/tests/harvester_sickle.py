"""Sickle."""

from __future__ import annotations

from typing import Any

import requests
import sickle

from harvesting import Harvester, Records, first
from oaimend.sickle import Sickle


def harvest(client: Any, records: Records) -> None:
    for record in client.ListRecords(metadataPrefix="oai_dc"):
        fields = (first(record.metadata.get(name)) for name in ("title", "description"))
        records.append([record.header.identifier, record.header.datestamp, *fields])


HARVESTER = Harvester(
    name="Sickle",
    alone=sickle.Sickle,
    repaired=Sickle,
    harvest=harvest,
    list_sets=lambda client: list(client.ListSets()),
    request_error=requests.RequestException,
    bad_verb=sickle.oaiexceptions.BadVerb,
    harmless=frozenset({"none", "trailing-notice"}),
)
