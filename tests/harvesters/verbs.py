"""All six verbs asked by a harvester in Python, and what came as a line of JSON.

Sickle and oaipmh-scythe name what they bring alike; how they are asked stands in `sickle_verbs.py`
and `scythe_verbs.py`.
"""

import json


def header(header):
    return [header.identifier, header.datestamp, sorted(header.setSpecs), header.deleted]


def record(record):
    return [*header(record.header), {} if record.deleted else dict(record.metadata)]


def error_of(ask):
    """The name of the error that an answer was taken for, as the specification spells it; None where it was none."""
    try:
        ask()
    except Exception as exception:
        name = type(exception).__name__
        return name[:1].lower() + name[1:]
    return None


def tell(harvester, plan):
    """Prints what came of `plan`; see `repositories.py`."""
    identify = harvester.identify()
    print(json.dumps({
        "identify": [identify.repositoryName, identify.protocolVersion, identify.earliestDatestamp,
                     identify.deletedRecord, identify.granularity, identify.adminEmail],
        "formats": [[one.metadataPrefix, one.schema, one.metadataNamespace] for one in harvester.formats()],
        "sets": [[one.setSpec, one.setName] for one in harvester.sets()],
        "identifiers": [header(one) for one in harvester.identifiers()],
        "records": [record(one) for one in harvester.records()],
        "of_a_set": [record(one) for one in harvester.records(set=plan["set"])],
        "of_some_days": [header(one) for one in harvester.identifiers(from_=plan["from"], until=plan["until"])],
        "one": record(harvester.record(plan["identifier"])),
        "deleted": record(harvester.record(plan["deleted"])),
        "unknown": error_of(lambda: harvester.record(plan["unknown"])),
        "none": error_of(lambda: list(harvester.records(from_=plan["never"]))),
    }), flush=True)
