"""Sends all verbs to a base URL by Sickle; see `verbs.py`."""

import json
import sys

from sickle import Sickle

import verbs


class Harvester:
    def __init__(self, base_url):
        self.sickle = Sickle(base_url, timeout=20)
        self.identify = self.sickle.Identify
        self.formats = self.sickle.ListMetadataFormats
        self.sets = self.sickle.ListSets

    def records(self, **selection):
        return self.sickle.ListRecords(**arguments(selection))

    def identifiers(self, **selection):
        return self.sickle.ListIdentifiers(**arguments(selection))

    def record(self, identifier):
        return self.sickle.GetRecord(identifier=identifier, metadataPrefix="oai_dc")


def arguments(selection):
    return {"metadataPrefix": "oai_dc"} | {name.rstrip("_"): value for name, value in selection.items()}


verbs.run(Harvester(sys.argv[1]), json.loads(sys.argv[2]))
