"""Searches at a base URL by a harvester, through sets of ODL-Search.

usage: searches.py Sickle|oaipmh-scythe BASE_URL SET...

Prints a line of JSON for each set: the identifiers of the records in order, or the code of the error.
"""

import json
import sys

import sickle
import sickle.oaiexceptions
from oaipmh_scythe import Scythe
from oaipmh_scythe.exceptions import NoRecordsMatch


def with_sickle(base_url, set_spec):
    try:
        records = sickle.Sickle(base_url, timeout=20).ListRecords(metadataPrefix="oai_dc", set=set_spec)
        return [record.header.identifier for record in records]
    except sickle.oaiexceptions.NoRecordsMatch:
        return "noRecordsMatch"


def with_scythe(base_url, set_spec):
    with Scythe(base_url) as scythe:
        try:
            return [record.header.identifier for record in scythe.list_records(set_=set_spec)]
        except NoRecordsMatch:
            return "noRecordsMatch"


search = {"Sickle": with_sickle, "oaipmh-scythe": with_scythe}[sys.argv[1]]
for set_spec in sys.argv[3:]:
    print(json.dumps(search(sys.argv[2], set_spec)))
