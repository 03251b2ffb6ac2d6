"""Writes a local repository in all ways, and harvests it with all six verbs by real harvesters.

usage: deposited.py OAIMEND [--required]

About 300 records are written by PutRecord with GET and POST, by PUT, as a list, and by `oaimend put` from XML, BibTeX and
tables; some are deleted, some have sets, and some are in mods too, or only there. Each harvester must get what was
written, with the datestamps that the writers received: whole lists of several pages, a set, a window, single records,
and after changes and deletions the changed records. The program skips harvesters that are not installed and prints their
names. With --required it fails instead.
"""

import dataclasses
import datetime

import holdings
import repositories
from deposits import ID, MODS, OAI_DC, Writer, bibliography, dublin_core, table
from harvesters import CLIENT, HARVESTERS, command_line, installed
from proxy import Proxy

MAPPING = """
kind = "local"
[identify]
repository_name = "Deposits"
admin_email = "keeper@harvest.example"
"""
# Lists have several pages.
SETTINGS = """
[mirror]
"""
FORMATS = [
    ["oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", OAI_DC],
    ["mods", "http://www.loc.gov/standards/mods/v3/mods-3-8.xsd", MODS],
]
LISTS = ("identifiers", "records", "set_records", "window_headers")


def write_all(writer):
    """Writes all records. Returns a time between two halves of them."""
    live = [one for one in holdings.HOLDINGS if not one.deleted]
    for number, one in enumerate(live[:120]):
        writer.write_dublin_core(one, ("GET", "POST", "PUT")[number % 3])
    for one in live[60:120:4]:
        writer.write_mods(one.identifier, one.sets, one.fields["title"][0])
    half = writer.begin_list()
    writer.write_list(live[120:230])
    for one in live[230:240]:
        writer.write_mods(one.identifier, one.sets, one.fields["title"][0])
    files = {f"letter {number}": live[240 + number].fields for number in range(10)}
    texts = {f"{name}.xml": dublin_core(fields) for name, fields in files.items()}
    writer.write_files(texts, ("col:1",), {name.replace(" ", "%20"): fields for name, fields in files.items()})
    text, fields = bibliography(range(20))
    writer.write_files({"library.bib": text}, ("col:2", "maps"), fields)
    text, fields = table(range(20))
    writer.write_files({"export.csv": text}, (), fields)
    # A list may delete records that were never there.
    gone = [one for one in holdings.HOLDINGS if one.deleted]
    writer.write_list(gone)
    for number, one in enumerate(live[3:50:8]):
        delete(writer, one.identifier, number)
    return half


def delete(writer, identifier, number):
    """Deletes an item by DELETE or PutRecord."""
    if number % 2:
        stamp = writer.request("DELETE", writer.record_path(identifier, "oai_dc"))
    else:
        stamp = writer.put_record({"identifier": identifier, "status": "deleted"}, by_post=number % 4 == 0)
    writer.note_deleted(identifier, stamp)


def change_some(writer):
    """Changes and deletes some records, and writes one again that was deleted."""
    live = [one for one in holdings.HOLDINGS if not one.deleted]
    for number, way in ((4, "GET"), (9, "POST"), (12, "PUT"), (3, "PUT")):
        fields = live[number].fields | {"title": [f"New text by {way} <{number}>"]}
        writer.write_dublin_core(dataclasses.replace(live[number], fields=fields), way)
    writer.change_sets(live[20].identifier, "oai_dc", ("new", "col:3"))
    # Without a change, a record keeps its datestamp.
    unchanged = writer.records["oai_dc"][live[21].identifier]
    writer.write_dublin_core(live[21], "PUT")
    if writer.records["oai_dc"][live[21].identifier] != unchanged:
        raise SystemExit(f"{unchanged} has another datestamp now")
    # The crosswalk makes oai_dc of it again.
    writer.write_mods(live[231].identifier, live[231].sets, "New text in mods", makes_dublin_core=True)
    for number, position in enumerate((30, 61, 125, 232)):
        delete(writer, live[position].identifier, 2 * number)


def expected_results(writer, prefix, plan):
    """The correct results of a plan, in the form of `verbs.py` and in the order of the identifiers."""
    records = sorted(writer.records[prefix].values(), key=lambda one: one.identifier)
    full = lambda one: [*one.header(), one.fields or {}]
    in_set = [one for one in records if any(spec == plan["set"] or spec.startswith(plan["set"] + ":") for spec in one.sets)]
    in_window = [one for one in records if plan["from"] <= one.datestamp <= plan["until"]]
    everywhere = [one for records in writer.records.values() for one in records.values()]
    listed = {spec for one in everywhere for spec in one.sets}
    # A set above another one is listed too.
    specs = {":".join(spec.split(":")[:depth + 1]) for spec in listed for depth in range(spec.count(":") + 1)}
    return {
        "identify": ["Deposits", "2.0", None, "persistent", "YYYY-MM-DDThh:mm:ssZ", "keeper@harvest.example"],
        "formats": FORMATS,
        "sets": sorted(specs),
        "identifiers": [one.header() for one in records],
        "records": [full(one) for one in records],
        "set_records": [full(one) for one in in_set],
        "window_headers": [one.header() for one in in_window],
        "record": full(writer.records[prefix][plan["identifier"]]),
        "deleted": full(writer.records[prefix][plan["deleted"]]),
        "unknown": "idDoesNotExist",
        "none": "noRecordsMatch",
    }


def comparable(results, plan, has_fields, earliest):
    """The results in the order of the identifiers. Of mods only the title is compared, where a harvester reads it.

    A list may also have records that are older than `from`, because oaimend widens `from` for harvesters that repeat it.
    """
    def item(one):
        if len(one) < 5 or plan["prefix"] == "oai_dc":
            return one
        titles = {name: texts for name, texts in one[4].items() if name == "title"}
        return [*one[:4], titles if has_fields else {}]

    lists = {name: sorted(item(one) for one in results[name]) for name in LISTS}
    lists["window_headers"] = [one for one in lists["window_headers"] if one[1] >= plan["from"]]
    singles = {name: item(results[name]) for name in ("record", "deleted")}
    name, version, first, *rest = results["identify"]
    # earliestDatestamp may be earlier than all records, not later.
    first = None if first is None or first <= earliest else first
    return results | lists | singles | {
        "identify": [name, version, first, *rest],
        "sets": sorted(one[0] if isinstance(one, list) else one for one in results["sets"]),
    }


def check(way, harvesters, writer, plan):
    """Harvests all formats with each harvester. Returns the number of failed harvests."""
    failed = 0
    earliest = min(one.datestamp for records in writer.records.values() for one in records.values())
    for prefix, deleted in (("oai_dc", plan["deleted"]), ("mods", plan["deleted_mods"])):
        plan_of_format = plan | {"prefix": prefix, "deleted": deleted}
        expected = expected_results(writer, prefix, plan_of_format)
        for harvester in harvesters:
            if prefix != "oai_dc" and harvester is CLIENT:
                continue
            got = repositories.run_plan(harvester, writer.base_url, plan_of_format)
            has_fields = harvester.name != "HTTP::OAI"
            wanted = comparable(expected, plan_of_format, has_fields, earliest)
            if "failed" not in got:
                got = comparable(got, plan_of_format, has_fields, earliest)
            failed += repositories.report_differences(f"{way} in {prefix}", harvester, got, wanted)
            counts = [len(got.get(name, [])) for name in ("records", "set_records", "window_headers")]
            print(f"{harvester.name}: {counts[0]} records {way} in {prefix}, {counts[1]} of a set, {counts[2]} of a window")
    return failed


def seconds(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    oaimend, is_required = command_line(__doc__)
    harvesters = list(installed(is_required, [*HARVESTERS, CLIENT]))
    with Proxy(oaimend, {}, {"oaimend.toml": SETTINGS, f"mappings/{ID}.toml": MAPPING}) as proxy:
        writer = Writer(oaimend, proxy)
        half = write_all(writer)
        live = [one for one in holdings.HOLDINGS if not one.deleted]
        tomorrow = seconds(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1))
        plan = repositories.PLAN | {
            "from": "2000-01-01T00:00:00Z", "until": half,
            "never": seconds(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)),
            "identifier": live[64].identifier, "deleted": live[3].identifier, "deleted_mods": live[68].identifier,
        }
        delete(writer, live[68].identifier, 0)
        failed = check("as they were written", harvesters, writer, plan)
        last = writer.begin_list()
        change_some(writer)
        plan |= {"from": last, "until": tomorrow, "deleted_mods": live[232].identifier}
        failed += check("after changes", harvesters, writer, plan)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
