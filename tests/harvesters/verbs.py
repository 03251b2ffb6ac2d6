"""Sends all six verbs by a harvester in Python, and prints the results as a line of JSON.

Sickle and oaipmh-scythe use the same names in their results. `sickle_verbs.py` and `scythe_verbs.py`
send the requests.
"""

import json


def prefix(plan):
    """The metadataPrefix of the lists and records of a plan."""
    return plan.get("prefix", "oai_dc")


def header(header):
    return [header.identifier, header.datestamp, sorted(header.setSpecs), header.deleted]


def record(record):
    return [*header(record.header), {} if record.deleted else dict(record.metadata)]


def error_of(request):
    """The name of the exception that a request raises, spelt as in the specification; None if it succeeds."""
    try:
        request()
    except Exception as exception:
        name = type(exception).__name__.removesuffix("Error")
        return name[:1].lower() + name[1:]
    return None


def run(harvester, plan):
    """Runs `plan` and prints the results; see `repositories.py`."""
    identify = harvester.identify()
    print(json.dumps({
        "identify": [identify.repositoryName, identify.protocolVersion, identify.earliestDatestamp,
                     identify.deletedRecord, identify.granularity, identify.adminEmail],
        "formats": [[one.metadataPrefix, one.schema, one.metadataNamespace] for one in harvester.formats()],
        "sets": [[one.setSpec, one.setName] for one in harvester.sets()],
        "identifiers": [header(one) for one in harvester.identifiers()],
        "records": [record(one) for one in harvester.records()],
        "set_records": [record(one) for one in harvester.records(set=plan["set"])],
        "window_headers": [header(one) for one in harvester.identifiers(from_=plan["from"], until=plan["until"])],
        "record": record(harvester.record(plan["identifier"])),
        "deleted": record(harvester.record(plan["deleted"])),
        "unknown": error_of(lambda: harvester.record(plan["unknown"])),
        "none": error_of(lambda: list(harvester.records(from_=plan["never"]))),
    }), flush=True)
