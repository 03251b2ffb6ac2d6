"""Harvests query sets, and searches through ODL-Search, by real harvesters.

usage: searched.py OAIMEND [--required]

oaimend mirrors one repository and indexes it. Each harvester must get the records of a query from the query sets of
`/_mirror/north` and `/_all`, beside the correct results of all six verbs. Sickle and oaipmh-scythe must also get the
ranked records of a search from `/_search`; HTTP::OAI refuses a set with a slash. The program skips harvesters that are
not installed and prints their names. With --required it fails instead.
"""

import base64
import json
import subprocess
import time

import holdings
import mirrored
import repositories
from harvesters import HERE, VENV_PYTHON, command_line_with_source
from proxy import MIRROR_SECONDS_MAX, Proxy, wait_until_mirrored

SETTINGS = """
[search]
enabled = true
[mirror]
aggregate_name = "All holdings"
aggregate_emails = ["all@harvest.example"]
"""
NUMBERS = (7, 8, 30, 121)
QUERY = " ".join(f"title:{number}" for number in NUMBERS)
QUERY_SET = "q:" + base64.urlsafe_b64encode(QUERY.encode()).decode().rstrip("=")
FOUND = {holdings.HOLDINGS[number].identifier for number in NUMBERS}
LIVE = [one.identifier for one in holdings.HOLDINGS if not one.deleted]
SEARCHERS = ("Sickle", "oaipmh-scythe")


def wait_until_indexed(base_url):
    """Waits until a query set has all its records."""
    deadline = time.monotonic() + MIRROR_SECONDS_MAX
    while wait_until_mirrored(base_url, QUERY_SET).count(b"<header>") < len(NUMBERS):
        if time.monotonic() > deadline:
            raise SystemExit("the index is not complete in time")
        time.sleep(0.1)


def check_query_sets(proxy, harvesters):
    """Checks the query sets with each harvester. Returns the number of failed harvests."""
    of_all = mirrored.expected_of_all()
    of_all["sets"] = [one for one in of_all["sets"] if not one[0].startswith("south")]
    failed = 0
    for path, expected in (("_mirror/north", mirrored.expected_of_one()), ("_all", of_all)):
        expected = expected | {"set_records": [one for one in expected["records"] if one[0] in FOUND]}
        for harvester in harvesters:
            got = repositories.run_plan(harvester, proxy.base_url(path), mirrored.PLAN | {"set": QUERY_SET})
            got = got if "failed" in got else mirrored.without_datestamps(got)
            failed += repositories.report_differences(f"from a query set of {path}", harvester, got, expected)
            print(f"{harvester.name}: {len(got.get('set_records', []))} records from a query set of {path}")
    return failed


def check_searches(proxy, names):
    """Checks searches with these harvesters. Returns the number of failed ones."""
    sets = ["odlsearch1/mathematics/1/1000", "odlsearch1/mathematics/1/10", "odlsearch1/mathematics/11/20",
            f"odlsearch1/{QUERY}/1/10", "dleseodlsearch/mathematics/north/0/1000", "odlsearch1/nowhere/1/10"]
    failed = 0
    for name in names:
        command = [VENV_PYTHON, HERE / "searches.py", name, proxy.base_url("_search"), *sets]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        got = [json.loads(line) for line in ran.stdout.splitlines()]
        if ran.returncode != 0 or len(got) != len(sets):
            print(f"{name}: {ran.stderr.strip()[-600:]}")
            failed += 1
            continue
        whole, first, second, found, of_joai, nothing = got
        checks = {
            "all records": sorted(whole) == sorted(LIVE),
            "ranges": first + second == whole[:20],
            "a query of four words": set(found) == FOUND,
            "the dialect of jOAI": sorted(of_joai) == sorted(LIVE),
            "no record": nothing == "noRecordsMatch",
        }
        wrong = [what for what, holds in checks.items() if not holds]
        failed += bool(wrong)
        print(f"{name}: {len(whole)} records from /_search" + (f", wrong: {', '.join(wrong)}" if wrong else ""))
    return failed


def main():
    oaimend, harvesters = command_line_with_source(__doc__)
    names = [name for name in SEARCHERS if any(harvester.name == name for harvester in harvesters)]
    with repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py") as base_url:
        files = {"oaimend.toml": SETTINGS, "mappings/north.toml": f'base_url = "{base_url}"\n[mirror]\n'}
        with Proxy(oaimend, {}, files) as proxy:
            wait_until_mirrored(proxy.base_url("_mirror/north"), mirrored.PLAN["set"])
            wait_until_indexed(proxy.base_url("_all"))
            failed = check_query_sets(proxy, harvesters) + check_searches(proxy, names)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
