"""Harvests a view by real harvesters, whole and incrementally.

usage: viewed.py OAIMEND [--required]

oaimend mirrors one repository and has a view of its records that match a query. Each harvester must get the members
whole, with the correct results of all six verbs. Then records of the source enter the view, change and leave it: one is
deleted, another does not match any more. A harvest from the time of the one before must get these records alone, and
those that have left as deleted records. The program skips harvesters that are not installed and prints their names. With
--required it fails instead.
"""

import datetime
import re
import subprocess
import time
import urllib.error
import urllib.request

import holdings
import mirrored
import repositories
from harvesters import HERE, VENV_PYTHON, command_line_with_source
from proxy import MIRROR_SECONDS_MAX, Proxy, free_port, wait_until_mirrored

VIEW = "_view/mathematics"
VIEW_FILE = """
repository_name = "Mathematics"
admin_emails = ["mathematics@harvest.example"]
query = "+mathematics -title:40"
"""
LEAVES_FIRST, LEAVES, IS_DELETED, ENTERS, CHANGES, NEVER_MEMBER = 8, 9, 30, 5, 10, 40
OTHER_SUBJECT = {"title": ["Another subject"], "subject": ["physics"]}
MATCHING = {"title": ["New text"], "subject": ["mathematics"]}


def expected_results(left, changed):
    """The correct results, in the form of `verbs.py`. `left` has the numbers of the records that have left the view,
    `changed` those of the incremental harvest."""
    members = [number for number, one in enumerate(holdings.HOLDINGS)
               if number in left or not one.deleted and number != NEVER_MEMBER]

    def header(number):
        one = holdings.HOLDINGS[number]
        return [one.identifier, ["north", *(f"north:{spec}" for spec in one.sets)], number in left]

    def record(number):
        return [*header(number), {} if number in left else holdings.HOLDINGS[number].fields]

    of_all = mirrored.expected_of_all()
    # The sets of a record that has left may be unknown, so that each set contains it.
    in_set = [number for number in members if number in left or holdings.HOLDINGS[number].sets]
    return {
        "identify": ["Mathematics", *of_all["identify"][1:-1], "mathematics@harvest.example"],
        "formats": of_all["formats"],
        "sets": [one for one in of_all["sets"] if one[0].startswith("north")],
        "identifiers": [header(number) for number in members],
        "records": [record(number) for number in members],
        "set_records": [record(number) for number in in_set],
        "window_headers": [header(number) for number in (members if changed is None else sorted(changed))],
        "record": record(CHANGES),
        "deleted": record(max(left)) if len(left) == 1 else record(LEAVES),
        "unknown": "idDoesNotExist",
        "none": "noRecordsMatch",
    }


class World:
    """A source, its mirror, and the view."""

    def __init__(self, oaimend, source, proxy, admin):
        self.oaimend, self.source, self.proxy, self.admin = oaimend, source, proxy, admin

    def change(self, changes):
        """Changes records of the source and harvests it. Each is a number and new fields, or None if it is deleted."""
        for number, fields in changes.items():
            self.source.change(number, fields)
            holdings.change(number, fields)
        command = [self.oaimend, "mirror", "sync", "north", "--admin", self.admin]
        subprocess.run(command, check=True, cwd=self.proxy.data.name, stdout=subprocess.DEVNULL, timeout=60)

    def time_after(self, number):
        """The time of the view, once it is after the change of a record.

        GetRecord says it, because a list has an effect: later lists repeat what has changed since.
        """
        identifier = urllib.request.quote(holdings.HOLDINGS[number].identifier)
        url = f"{self.proxy.base_url(VIEW)}?verb=GetRecord&metadataPrefix=oai_dc&identifier={identifier}"
        deadline = time.monotonic() + MIRROR_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                page = urllib.request.urlopen(url, timeout=20).read().decode()
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
                time.sleep(0.1)
                continue
            response_date, datestamp = (
                re.search(f"<{name}>(.*?)</{name}>", page)[1] for name in ("responseDate", "datestamp")
            )
            if response_date > datestamp:
                return response_date
            time.sleep(0.1)
        raise SystemExit("the time of the view does not pass")


def check(world, harvesters, way, plan, expected):
    """Harvests the view with each harvester. Returns the number of failed harvests."""
    failed = 0
    for harvester in harvesters:
        got = repositories.run_plan(harvester, world.proxy.base_url(VIEW), plan)
        got = got if "failed" in got else mirrored.without_datestamps(got)
        failed += repositories.report_differences(way, harvester, got, expected)
        records, window = (len(got.get(name, [])) for name in ("records", "window_headers"))
        print(f"{harvester.name}: {records} records from a view, {window} {way}")
    return failed


def main():
    oaimend, harvesters = command_line_with_source(__doc__)
    source, admin = repositories.Source(VENV_PYTHON, HERE / "provider_oaipmh.py"), f"127.0.0.1:{free_port()}"
    with source as base_url:
        files = {"mappings/north.toml": f'base_url = "{base_url}"\n[mirror]\n', "views/mathematics.toml": VIEW_FILE}
        with Proxy(oaimend, {}, files, admin) as proxy:
            world = World(oaimend, source, proxy, admin)
            wait_until_mirrored(proxy.base_url("_mirror/north"), "col")
            world.time_after(LEAVES_FIRST)
            world.change({LEAVES_FIRST: OTHER_SUBJECT})
            since = world.time_after(LEAVES_FIRST)
            plan = mirrored.PLAN | {
                "set": "north:col",
                "identifier": holdings.HOLDINGS[CHANGES].identifier,
                "deleted": holdings.HOLDINGS[LEAVES_FIRST].identifier,
                "unknown": holdings.HOLDINGS[NEVER_MEMBER].identifier,
            }
            failed = check(world, harvesters, "of the last days", plan, expected_results({LEAVES_FIRST}, None))
            world.change({LEAVES: OTHER_SUBJECT, IS_DELETED: None, ENTERS: MATCHING, CHANGES: MATCHING})
            world.time_after(LEAVES)
            tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
            plan |= {"from": since, "until": tomorrow.strftime("%Y-%m-%dT%H:%M:%SZ"),
                     "deleted": holdings.HOLDINGS[LEAVES].identifier}
            expected = expected_results({LEAVES_FIRST, LEAVES, IS_DELETED}, {LEAVES, IS_DELETED, ENTERS, CHANGES})
            failed += check(world, harvesters, "since the harvest before", plan, expected)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
