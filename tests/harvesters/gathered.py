"""Harvests a tape, and a federation of the tape and its source, with all six verbs by real harvesters.

usage: gathered.py OAIMEND [--required]

oaimend builds a tape of a repository and serves it as `archive`. Each harvester must get the same results from it as from
the repository. A federation has `archive` and the live repository `north` as members, so each harvester must get every
record twice, in the sets of its repository. The program skips harvesters that are not installed and prints their names.
With --required it fails instead.
"""

import subprocess
import tempfile
from pathlib import Path

import holdings
import repositories
from harvesters import HERE, VENV_PYTHON, command_line_with_source
from proxy import Proxy

MEMBERS = ("archive", "north")
FEDERATION_FILE = """
repository_name = "Both"
admin_emails = ["both@harvest.example"]
repositories = ["archive", "north"]
"""
LISTS = ("identifiers", "records", "set_records", "window_headers")


def in_order(results):
    """The results with their lists in the order of the identifiers. Records with one identifier stay in their order."""
    return results | {name: sorted(results[name], key=lambda one: one[0]) for name in LISTS}


def expected_of_tape():
    """The correct results of the tape. Its earliestDatestamp is that of its first record."""
    results = repositories.expected_results()
    name, version, _, *rest = results["identify"]
    return results | {"identify": [name, version, holdings.HOLDINGS[0].datestamp, *rest]}


def expected_of_federation(plan):
    """The correct results of the federation."""
    def of_member(member, one):
        identifier, datestamp, sets, *rest = one
        return [identifier, datestamp, [member, *(f"{member}:{spec}" for spec in sets)], *rest]

    results = repositories.expected_results(plan)
    lists = {name: [of_member(member, one) for member in MEMBERS for one in results[name]] for name in LISTS}
    lists["set_records"] = [of_member("north", one) for one in results["set_records"]]
    sets = [one for member in MEMBERS for one in
            [[member, member], *([f"{member}:{spec}", name] for spec, name in holdings.SETS.items())]]
    return results | lists | {
        "identify": ["Both", *results["identify"][1:-1], "both@harvest.example"],
        "sets": sets,
        "record": of_member("archive", results["record"]),
        "deleted": of_member("archive", results["deleted"]),
    }


def check(way, harvesters, base_url, plan, expected):
    """Harvests a repository with each harvester. Returns the number of failed harvests."""
    failed = 0
    for harvester in harvesters:
        got = repositories.run_plan(harvester, base_url, plan)
        got = got if "failed" in got else in_order(got)
        failed += repositories.report_differences(way, harvester, got, in_order(expected))
        print(f"{harvester.name}: {len(got.get('records', []))} records {way}")
    return failed


def main():
    oaimend, harvesters = command_line_with_source(__doc__)
    with tempfile.TemporaryDirectory() as folder, \
            repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py") as base_url:
        tape = Path(folder, "archive.xml.gz")
        build = [oaimend, "tape", "build", tape, "--from", base_url]
        subprocess.run(build, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)
        files = {
            "mappings/archive.toml": f'tape_file = "{tape}"\n',
            "mappings/north.toml": f'base_url = "{base_url}"\n',
            "federations/both.toml": FEDERATION_FILE,
        }
        with Proxy(oaimend, {}, files) as proxy:
            plan = repositories.PLAN
            expected = expected_of_tape()
            failed = check("from a tape", harvesters, proxy.base_url("archive"), plan, expected)
            expected = expected_of_federation(plan)
            plan = plan | {"set": "north:col"}
            failed += check("from a federation", harvesters, proxy.base_url("_federation/both"), plan, expected)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
