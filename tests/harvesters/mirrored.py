"""Harvests the mirror with all six verbs by real harvesters, after the source has ended or while it ends.

usage: mirrored.py OAIMEND [--required]

oaimend mirrors one repository twice, as `north` and as `south`. Then the source ends. Each harvester must get the
records in `holdings.py` from `/_mirror/north`, and from `/_all`, where `north` is preferred.

Other sources end in the middle of a list, and their mirrors continue it (`serve = "live-then-mirror"`). Each harvester
must get the same results as from a source that never ends. The program skips harvesters that are not installed and
prints their names. With --required it fails instead.
"""

import contextlib
import datetime
import json
import time
from concurrent.futures import ThreadPoolExecutor

import holdings
import repositories
from harvesters import CLIENT, HERE, VENV_PYTHON, command_line_with_source
from proxy import Proxy, wait_until_mirrored

HARVESTS_AT_ONCE = 4
SETTINGS = """
[mirror]
collisions = "prefer"
aggregate_name = "All holdings"
aggregate_emails = ["all@harvest.example"]
"""

# The list pages that a source serves before it ends: none, or some in the middle of all headers, of all records, or of
# the records of a set. The lists of all have eight pages.
PAGES_BEFORE_END = (0, 3, 11, 18)
FAILING_OVER = """
base_url = "{base_url}"
serve = "live-then-mirror"
[mirror]
[limits]
first_record_timeout_secs = 1
"""


def day(days_from_now):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days_from_now)).strftime("%Y-%m-%d")


# The datestamps are the times at which oaimend stored the records.
PLAN = repositories.PLAN | {"from": day(-1), "until": day(1)}


def without_datestamps(results):
    """The results with their lists in the order of the identifiers, and without the times of the mirror."""
    def item(one):
        identifier, _, *rest = one
        return [identifier, *rest]

    lists = ("identifiers", "records", "set_records", "window_headers")
    changed = {name: sorted((item(one) for one in results[name]), key=lambda one: one[0]) for name in lists}
    changed |= {name: item(results[name]) for name in ("record", "deleted")}
    name, version, _, *rest = results["identify"]
    return results | changed | {"identify": [name, version, *rest], "sets": sorted(results["sets"])}


def expected_of_one():
    """The correct results of the mirror of one repository."""
    results = repositories.expected_results()
    return without_datestamps(results | {"window_headers": results["identifiers"]})


def expected_of_all():
    """The correct results of `/_all`: the records of `north`, each in the set of its repository."""
    def of_north(one):
        identifier, sets, *rest = one
        return [identifier, ["north", *(f"north:{spec}" for spec in sets)], *rest]

    results = expected_of_one()
    lists = ("identifiers", "records", "set_records", "window_headers")
    sets = [[name, "Holdings"] for name in ("north", "south")]
    sets += [[f"{name}:{spec}", title] for name in ("north", "south") for spec, title in holdings.SETS.items()]
    return results | {name: [of_north(one) for one in results[name]] for name in lists} | {
        "identify": ["All holdings", *results["identify"][1:-1], "all@harvest.example"],
        "sets": sorted(sets),
        "record": of_north(results["record"]),
        "deleted": of_north(results["deleted"]),
    }


def check(oaimend, harvesters):
    """Checks the mirror with each harvester. Returns the number of failed ones."""
    with repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py") as base_url:
        files = {"oaimend.toml": SETTINGS} | {
            f"mappings/{name}.toml": f'base_url = "{base_url}"\n[mirror]\npriority = {priority}\n'
            for name, priority in (("north", 1), ("south", 0))
        }
        proxy = Proxy(oaimend, {}, files)
        proxy.__enter__()
        for name in ("north", "south"):
            wait_until_mirrored(proxy.base_url(f"_mirror/{name}"), PLAN["set"])
    failed = 0
    with_set = {"_mirror/north": "col", "_all": "north:col"}
    try:
        for path, expected in (("_mirror/north", expected_of_one()), ("_all", expected_of_all())):
            plan = PLAN | {"set": with_set[path]}
            for harvester in harvesters:
                got = repositories.run_plan(harvester, proxy.base_url(path), plan)
                got = got if "failed" in got else without_datestamps(got)
                failed += repositories.report_differences(f"from {path}", harvester, got, expected)
                print(f"{harvester.name}: {len(got.get('records', []))} records from {path}")
    finally:
        proxy.__exit__()
    return failed


def in_order_of_identifiers(results):
    """The results with their lists in the order of the identifiers. No record may be in a list twice."""
    lists = ("identifiers", "records", "set_records", "window_headers")
    return results | {name: sorted(results[name], key=lambda one: one[0]) for name in lists}


def failed_over_in_list(proxy, name):
    """Whether the first page of the mirror in place of a source continues a list; None if there is no such page."""
    pages = [page for page in proxy.log_lines() if page.get("repo") == name and page.get("outcome") == "failed-over"]
    return pages[0].get("token") is not None if pages else None


def check_failover(oaimend, harvesters):
    """Checks that the mirror continues the lists of sources that end. Returns the number of failed harvests."""
    cases = {f"x{at}": case for at, case in enumerate(
        (harvester, pages) for harvester in harvesters for pages in PAGES_BEFORE_END
    )}
    # A record that is not in the mirror may be in the source. No record is of the last day of the window, because the
    # client oaipmh requests its first second.
    plan = repositories.PLAN | {"unknown": repositories.PLAN["identifier"], "until": "2025-04-30"}
    expected = in_order_of_identifiers(repositories.expected_results(plan) | {"unknown": None})
    with contextlib.ExitStack() as running:
        sources = {name: repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py") for name in cases}
        files = {
            f"mappings/{name}.toml": FAILING_OVER.format(base_url=running.enter_context(source))
            for name, source in sources.items()
        }
        proxy = running.enter_context(Proxy(oaimend, {}, files))

        def harvest(name):
            harvester, pages = cases[name]
            wait_until_mirrored(proxy.base_url(f"_mirror/{name}"), PLAN["set"])
            sources[name].write_line(pages)
            return repositories.run_plan(harvester, proxy.base_url(name), plan)

        with ThreadPoolExecutor(HARVESTS_AT_ONCE) as pool:
            results = dict(zip(cases, pool.map(harvest, cases)))
        failed = 0
        for name, (harvester, pages) in cases.items():
            got = results[name] if "failed" in results[name] else in_order_of_identifiers(results[name])
            way = f"from a source that ends after {pages} list pages"
            wrong = repositories.report_differences(way, harvester, got, expected)
            if failed_over_in_list(proxy, name) is not (pages > 0) or sources[name].process.poll() is None:
                print(f"{harvester.name} {way}: the source has not ended there")
                wrong = True
            failed += wrong
            print(f"{harvester.name}: {len(got.get('records', []))} records {way}")
    return failed


def main():
    oaimend, harvesters = command_line_with_source(__doc__)
    harvesters.append(CLIENT)
    failed = check(oaimend, harvesters) + check_failover(oaimend, harvesters)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
