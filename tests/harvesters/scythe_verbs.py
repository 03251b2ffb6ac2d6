"""Sends all verbs to a base URL by oaipmh-scythe; see `verbs.py`."""

import json
import sys

from oaipmh_scythe import Scythe

import verbs


class Harvester:
    def __init__(self, scythe, prefix):
        self.scythe, self.prefix = scythe, prefix
        self.identify = scythe.identify
        self.formats = scythe.list_metadata_formats
        self.sets = scythe.list_sets

    def records(self, set=None, **dates):
        return self.scythe.list_records(metadata_prefix=self.prefix, set_=set, **dates)

    def identifiers(self, set=None, **dates):
        return self.scythe.list_identifiers(metadata_prefix=self.prefix, set_=set, **dates)

    def record(self, identifier):
        return self.scythe.get_record(identifier, metadata_prefix=self.prefix)


with Scythe(sys.argv[1]) as scythe:
    plan = json.loads(sys.argv[2])
    verbs.run(Harvester(scythe, verbs.prefix(plan)), plan)
