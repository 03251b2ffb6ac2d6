"""Harvests formats that a repository lacks, made by crosswalks, by real harvesters.

usage: crossed.py OAIMEND [--required]

oaimend serves one repository of oai_dc twice, live as `live` and mirrored as `north`, with crosswalks to mods and
oai_datacite. Each harvester must get the identifiers and datestamps of oai_dc in both formats: whole lists of several
pages, a set, a window, single records, and after a change of the source the changed records. The program skips harvesters
that are not installed and prints their names. With --required it fails instead.
"""

import datetime
import subprocess

import holdings
import repositories
from harvesters import HERE, VENV_PYTHON, command_line_with_source
from proxy import Proxy, free_port, wait_until_mirrored

CROSSWALKS = """
[crosswalks]
mods = "built-in"
oai_datacite = "built-in"
"""
FORMATS = ("mods", "oai_datacite")
LISTS = ("identifiers", "records", "set_records", "window_headers")
CHANGED, IS_DELETED = 12, 30


def headers(results):
    """The results with headers in place of records, in the order of the identifiers, and without the formats."""
    lists = {name: sorted(one[:4] for one in results[name]) for name in LISTS}
    singles = {name: results[name][:4] for name in ("record", "deleted")}
    return results | lists | singles | {"formats": None}


def check(way, harvesters, base_url, plan, expected=None):
    """Harvests all formats with each harvester. Returns the number of failed harvests.

    Without `expected`, the results are those of oai_dc by the same harvester.
    """
    failed = 0
    for harvester in harvesters:
        wanted = expected or repositories.run_plan(harvester, base_url, plan)
        for prefix in FORMATS:
            got = repositories.run_plan(harvester, base_url, plan | {"prefix": prefix})
            listed = [one[0] for one in got.get("formats", [])]
            if "failed" not in wanted and "failed" not in got:
                got, compared = headers(got), headers(wanted)
            else:
                compared = wanted
            failed += repositories.report_differences(f"{way} in {prefix}", harvester, got, compared)
            identifiers = {one[0] for one in got.get("identifiers", [])}
            if listed != ["oai_dc", *FORMATS] or identifiers != {one.identifier for one in holdings.HOLDINGS}:
                print(f"{harvester.name} {way} in {prefix}: {listed}, {len(identifiers)} identifiers")
                failed += 1
            print(f"{harvester.name}: {len(got.get('records', []))} records {way} in {prefix}")
    return failed


def day(days_from_now):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days_from_now)).strftime("%Y-%m-%d")


def main():
    oaimend, harvesters = command_line_with_source(__doc__)
    source, admin = repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py"), f"127.0.0.1:{free_port()}"
    with source as base_url:
        files = {
            "mappings/live.toml": f'base_url = "{base_url}"\n{CROSSWALKS}',
            "mappings/north.toml": f'base_url = "{base_url}"\n[mirror]\n{CROSSWALKS}',
        }
        with Proxy(oaimend, {}, files, admin) as proxy:
            live, mirror = proxy.base_url("live"), proxy.base_url("_mirror/north")
            wait_until_mirrored(mirror, "col")
            plan = repositories.PLAN
            failed = check("of a live source", harvesters, live, plan, repositories.expected_results(plan))
            plan |= {"from": day(-1), "until": day(1)}
            failed += check("of the mirror", harvesters, mirror, plan)
            for number, fields in ((CHANGED, {"title": ["New text"]}), (IS_DELETED, None)):
                source.change(number, fields)
                holdings.change(number, fields)
            sync = [oaimend, "mirror", "sync", "north", "--admin", admin]
            subprocess.run(sync, check=True, cwd=proxy.data.name, stdout=subprocess.DEVNULL, timeout=60)
            plan |= {"identifier": holdings.HOLDINGS[CHANGED].identifier,
                     "deleted": holdings.HOLDINGS[IS_DELETED].identifier}
            # No other record of the source is so new.
            expected = repositories.expected_results(plan)
            failed += check("of a live source that has changed", harvesters, live, plan, expected)
            failed += check("of the mirror after a change", harvesters, mirror, plan)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
