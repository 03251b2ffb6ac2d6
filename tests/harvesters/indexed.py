"""Harvests the repository index with all six verbs by real harvesters.

usage: indexed.py OAIMEND [--required]

oaimend has 120 mappings, so that the lists of `/_index` have several pages, and one of them is removed while it runs.
Each harvester must get a record for each mapping, and a deleted one for the mapping that is gone. The program skips
harvesters that are not installed and prints their names. With --required it fails instead.
"""

import time
import urllib.request
from pathlib import Path

import mirrored
import repositories
from harvesters import command_line, installed
from proxy import MIRROR_SECONDS_MAX, Proxy

NAMES = [f"x{number:03}" for number in range(120)]
REMOVED = "x007"
SETS = [
    ["dynamic", "Repositories whose records may change"],
    ["static", "Repositories whose records never change"],
    ["kind", "Repositories by the place of their records"],
    ["kind:live", "Repositories whose records are at their sources"],
    ["kind:local", "Repositories whose records are written here"],
    ["kind:mirrored", "Mirrored repositories"],
    ["kind:tape", "Repositories whose records are in a file"],
    ["kind:view", "Views of mirrored repositories"],
    ["kind:federation", "Federations of repositories"],
]


def wait_until_removed(proxy):
    """Waits until the index has a deleted record. oaimend watches its mappings."""
    deadline = time.monotonic() + MIRROR_SECONDS_MAX
    identifier = urllib.request.quote(proxy.base_url(REMOVED))
    url = f"{proxy.base_url('_index')}?verb=GetRecord&metadataPrefix=oai_dc&identifier={identifier}"
    while b'status="deleted"' not in urllib.request.urlopen(url, timeout=20).read():
        if time.monotonic() > deadline:
            raise SystemExit("the removed mapping stays in the index")
        time.sleep(0.1)


def expected_results(proxy):
    """The correct results, in the form of `verbs.py`, without the times at which oaimend saw the mappings."""
    def header(name):
        return [proxy.base_url(name), ["dynamic", "kind:live"], name == REMOVED]

    def record(name):
        fields = {
            "title": [name],
            "description": ["OAI-PMH repository, answered by its source"],
            "type": ["Service"],
            "identifier": [proxy.base_url(name)],
        }
        return [*header(name), {} if name == REMOVED else fields]

    schema = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
    records = [record(name) for name in NAMES]
    return {
        "identify": [f"Repositories at {proxy.base_url('')[:-1]}", "2.0", "persistent", "YYYY-MM-DDThh:mm:ssZ",
                     "postmaster@localhost.localdomain"],
        "formats": [
            ["INDEX", proxy.base_url("_index/schema.xsd"), "urn:x-oaimend:repository-index:1"],
            ["oai_dc", schema, "http://www.openarchives.org/OAI/2.0/oai_dc/"],
        ],
        "sets": sorted(SETS),
        "identifiers": [header(name) for name in NAMES],
        "records": records,
        "set_records": records,
        "window_headers": [header(name) for name in NAMES],
        "record": record(NAMES[3]),
        "deleted": record(REMOVED),
        "unknown": "idDoesNotExist",
        "none": "noRecordsMatch",
    }


def without_times(results):
    """The results without datestamps. The date of a record must be its datestamp, and goes too."""
    for _, datestamp, _, is_deleted, fields in [*results["records"], *results["set_records"], results["record"]]:
        if not is_deleted and fields.pop("date") != [datestamp]:
            fields["date"] = "another one"
    return mirrored.without_datestamps(results)


def main():
    oaimend, is_required = command_line(__doc__)
    harvesters, failed = installed(is_required), 0
    # Nothing listens there, and nothing is asked.
    files = {f"mappings/{name}.toml": f'base_url = "http://127.0.0.1:9/{name}"\n' for name in NAMES}
    with Proxy(oaimend, {}, files) as proxy:
        urllib.request.urlopen(f"{proxy.base_url('_index')}?verb=Identify", timeout=20).close()
        Path(proxy.data.name, f"mappings/{REMOVED}.toml").unlink()
        wait_until_removed(proxy)
        plan = mirrored.PLAN | {
            "set": "kind:live",
            "identifier": proxy.base_url(NAMES[3]),
            "deleted": proxy.base_url(REMOVED),
            "unknown": proxy.base_url("unknown"),
        }
        for harvester in harvesters:
            got = repositories.run_plan(harvester, proxy.base_url("_index"), plan)
            got = got if "failed" in got else without_times(got)
            failed += repositories.report_differences("from the index", harvester, got, expected_results(proxy))
            print(f"{harvester.name}: {len(got.get('records', []))} records from the index")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
