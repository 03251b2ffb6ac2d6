"""Sends all verbs to a base URL by Sickle; see `verbs.py`."""

import json
import sys

from sickle import Sickle

import verbs


class Harvester:
    def __init__(self, base_url, prefix):
        self.sickle, self.prefix = Sickle(base_url, timeout=20), prefix
        self.identify = self.sickle.Identify
        self.formats = self.sickle.ListMetadataFormats
        self.sets = self.sickle.ListSets

    def records(self, **selection):
        return self.sickle.ListRecords(**self.arguments(selection))

    def identifiers(self, **selection):
        return self.sickle.ListIdentifiers(**self.arguments(selection))

    def record(self, identifier):
        return self.sickle.GetRecord(identifier=identifier, metadataPrefix=self.prefix)

    def arguments(self, selection):
        return {"metadataPrefix": self.prefix} | {name.rstrip("_"): value for name, value in selection.items()}


plan = json.loads(sys.argv[2])
verbs.run(Harvester(sys.argv[1], verbs.prefix(plan)), plan)
