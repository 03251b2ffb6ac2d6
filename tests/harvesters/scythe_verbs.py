"""Sends all verbs to a base URL by oaipmh-scythe; see `verbs.py`."""

import json
import sys

from oaipmh_scythe import Scythe

import verbs


class Harvester:
    def __init__(self, scythe):
        self.scythe = scythe
        self.identify = scythe.identify
        self.formats = scythe.list_metadata_formats
        self.sets = scythe.list_sets
        self.record = scythe.get_record

    def records(self, set=None, **dates):
        return self.scythe.list_records(set_=set, **dates)

    def identifiers(self, set=None, **dates):
        return self.scythe.list_identifiers(set_=set, **dates)


with Scythe(sys.argv[1]) as scythe:
    verbs.run(Harvester(scythe), json.loads(sys.argv[2]))
