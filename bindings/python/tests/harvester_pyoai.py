"""pyoai. It needs an older lxml than oaipmh-scythe, so its tests run in an environment of their own."""

from __future__ import annotations

from typing import Any

import oaipmh.client
import oaipmh.error
from oaipmh.metadata import MetadataRegistry, oai_dc_reader

from harvesting import Harvester, Records, first
from oaimend.pyoai import Client

REGISTRY = MetadataRegistry()
REGISTRY.registerReader("oai_dc", oai_dc_reader)


def harvest(client: Any, records: Records) -> None:
    for header, metadata, _ in client.listRecords(metadataPrefix="oai_dc"):
        fields = (first(metadata.getField(name)) for name in ("title", "description"))
        records.append([header.identifier(), f"{header.datestamp().isoformat()}Z", *fields])


HARVESTER = Harvester(
    name="pyoai",
    alone=lambda url: oaipmh.client.Client(url, REGISTRY, force_http_get=True),
    repaired=lambda url, **arguments: Client(url, REGISTRY, force_http_get=True, **arguments),
    harvest=harvest,
    list_sets=lambda client: list(client.listSets()),
    request_error=oaipmh.error.ClientError,
    bad_verb=oaipmh.error.BadVerbError,
    harmless=frozenset({"none"}),
)
