"""Sends all verbs to a base URL by the client of the package oaipmh; see `verbs.py`."""

import json
import sys
from datetime import datetime
from types import SimpleNamespace

from oaipmh.client import Client
from oaipmh.metadata import MetadataRegistry, oai_dc_reader

import verbs


def moment(date):
    """The moment of a datestamp in days or in seconds."""
    return datetime.fromisoformat(date.removesuffix("Z"))


def written(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def header_of(header):
    return SimpleNamespace(
        identifier=header.identifier(), datestamp=written(header.datestamp()),
        setSpecs=header.setSpec(), deleted=header.isDeleted(),
    )


def record_of(parts):
    header, metadata, _ = parts
    fields = {name: texts for name, texts in metadata.getMap().items() if texts} if metadata else {}
    return SimpleNamespace(header=header_of(header), deleted=header.isDeleted(), metadata=fields)


class Harvester:
    def __init__(self, base_url):
        registry = MetadataRegistry()
        registry.registerReader("oai_dc", oai_dc_reader)
        self.client = Client(base_url, registry)

    def identify(self):
        identify = self.client.identify()
        return SimpleNamespace(
            repositoryName=identify.repositoryName(), protocolVersion=identify.protocolVersion(),
            earliestDatestamp=written(identify.earliestDatestamp()), deletedRecord=identify.deletedRecord(),
            granularity=identify.granularity(), adminEmail=identify.adminEmails()[0],
        )

    def formats(self):
        for prefix, schema, namespace in self.client.listMetadataFormats():
            yield SimpleNamespace(metadataPrefix=prefix, schema=schema, metadataNamespace=namespace)

    def sets(self):
        for spec, name, _ in self.client.listSets():
            yield SimpleNamespace(setSpec=spec, setName=name)

    def records(self, **selection):
        return map(record_of, self.client.listRecords(**arguments(selection)))

    def identifiers(self, **selection):
        return map(header_of, self.client.listIdentifiers(**arguments(selection)))

    def record(self, identifier):
        return record_of(self.client.getRecord(identifier=identifier, metadataPrefix="oai_dc"))


def arguments(selection):
    dates = {name: moment(day) for name, day in selection.items() if name in ("from_", "until")}
    return {"metadataPrefix": "oai_dc"} | selection | dates


verbs.run(Harvester(sys.argv[1]), json.loads(sys.argv[2]))
