"""Harvests a repository with each defect by real harvesters, directly and through oaimend.

usage: run.py check OAIMEND [--required]   checks that each harvester gets all records through the proxy
       run.py table OAIMEND                as check and sources.py; writes docs/explanation/harvesters.md
                                           and an excerpt of it to README.md

The program skips harvesters that are not installed and prints their names. With --required it
fails instead. `scripts/harvesters install` installs them.
"""

import sys
from pathlib import Path

import provider
import sources
from defects import DEFECTS
from harvesters import ALL_HARVESTERS, PROJECT, installed
from proxy import Proxy


def measure(oaimend, harvesters):
    """Returns for each harvester the results without and with the proxy."""
    source = provider.start()
    direct = {defect.name: f"http://127.0.0.1:{source.server_port}/{defect.name}" for defect in DEFECTS}
    with Proxy(oaimend, direct) as proxy:
        proxied = [proxy.base_url(name) for name in direct]
        return {
            harvester.name: (harvester.harvest(list(direct.values())), harvester.harvest(proxied))
            for harvester in harvesters
        }


def check(results):
    """Prints the wrong results and returns their number."""
    failed = 0
    for name, (_, proxied) in results.items():
        for defect, result in zip(DEFECTS, proxied):
            if result.is_right(defect):
                continue
            failed += 1
            print(f"{name} through oaimend, {defect.name}: {result.cell(defect)}; {result.error}")
            for got, expected in zip(result.records, defect.expected()):
                if got != expected:
                    print(f"    got      {got}\n    expected {expected}")
        print(f"{name}: {len(DEFECTS)} defects through oaimend, {failed} wrong so far")
    return failed


def merge_cells(cells):
    """Merges equal cells into one, and joins different ones."""
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def full_table(results):
    names = list(results)
    lines = ["| one defect, in record 3 of 10 or around page 1 of 2 | "
             + " | ".join(f"{name} alone" for name in names) + " | "
             + " | ".join(f"{name} with oaimend" for name in names) + " |",
             "|---|" + "---|" * (2 * len(names))]
    for index, defect in enumerate(DEFECTS):
        cells = [results[name][way][index].cell(defect) for way in (0, 1) for name in names]
        lines.append(f"| {defect.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# The rows of README.md: one defect of each kind (bytes, references, markup, page, transfer).
EXCERPT = ["latin1-field", "bare-ampersand", "unterminated-cdata", "missing-namespace", "truncated"]


def short_table(results):
    """The rows of EXCERPT, with one column for the harvesters that parse leniently."""
    lenient = [name for name in results if name != "HTTP::OAI"]
    lines = [f"| one defect on page 1 of 2 | {', '.join(lenient)} | HTTP::OAI | all three through oaimend |",
             "|---|---|---|---|"]
    for index, defect in enumerate(DEFECTS):
        if defect.name not in EXCERPT:
            continue
        cells = [
            merge_cells([results[name][0][index].cell(defect) for name in lenient]),
            results["HTTP::OAI"][0][index].cell(defect),
            merge_cells([results[name][1][index].cell(defect) for name in results]),
        ]
        lines.append(f"| {defect.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def replace_between_marks(path, table):
    """Replaces the text between the two comments that mark the place of the table."""
    start, end = "<!-- harvesters: written by scripts/harvesters -->\n", "<!-- /harvesters -->"
    text = path.read_text()
    head, rest = text.split(start)
    path.write_text(head + start + "\n" + table + "\n\n" + end + rest.split(end, 1)[1])


def write_tables(results, versions, source_results, all_versions):
    versions = ", ".join(f"{name} {version}" for name, version in versions.items())
    page = PROJECT / "docs" / "explanation" / "harvesters.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"""# Harvesters with and without oaimend

This page shows what real harvesters receive from a broken repository, directly and through `oaimend serve`.
The script `scripts/harvesters table` measures it and writes this page.

## One defect at a time

The repository has ten records on two pages. Each run has one defect from `tests/harvesters/defects.py`, in record 3
or around the records of page 1. The harvesters are {versions}.

| result | meaning |
|---|---|
| all 10 | identifier, datestamp, title and description of every record are right |
| damaged | the record arrived with wrong text |
| error | the harvester reported an error |
| **no error** | records are missing or damaged, and the harvester reported nothing |

The last two defects cannot be repaired. There, the right result is an error that the harvester reports.

{full_table(results)}

{sources.section(source_results, all_versions)}
## Records with more than 10 MB of text

libxml2 gives up a document when one text in it is longer than 10,000,000 bytes, unless `huge_tree` is on. Sickle and
oaipmh-scythe parse with `recover=True`, which hides this error: the rest of the page and its resumptionToken are missing,
so the harvest ends there, and the harvester reports **no error**. Such a page is clean, so oaimend passes it on
unchanged, whatever its length, and the harvest ends there through oaimend too. There are two ways out:

- The mirror does not store a record that is longer than `limits.record_bytes_max`, which is 8 MiB by default and can be set
  for one repository in its mapping. A mapping with `serve = "mirror"` therefore gives such harvesters all other records.
  `oaimend mirror status` counts the records that are left out.
- A parser with `huge_tree` reads these records. Both packages have theirs in a variable:
  `sickle.response.XMLParser = lxml.etree.XMLParser(recover=True, huge_tree=True, remove_blank_text=True, resolve_entities=False)`,
  and the same for `oaipmh_scythe.response`.

## Whole repositories

`scripts/harvesters repositories` harvests whole repositories with Sickle, oaipmh-scythe and HTTP::OAI,
directly and through `oaimend serve`. `scripts/harvesters mirrored` harvests the mirror.

| repository | contents | result |
|---|---|---|
| OAI-PMH 2.0, served by the data provider of the package oaipmh 4.0.0 | 300 records on eight pages, nested sets, deleted records | each harvester receives the same through oaimend as directly, white space included |
| the same records in OAI-PMH 1.0 and 1.1 (`tests/harvesters/provider_one.py`) | day datestamps, ListIdentifiers without datestamps, status 400 for unknown arguments, empty lists instead of errors | each harvester receives all records as OAI-PMH 2.0 |
| the mirror of the first one, at `/_mirror/ID` and at `/_all`, while its source is down | as the first one. `/_all` contains the repository twice and shows one of both | each harvester, and the client of the package oaipmh 4.0.0, receives all records |
| the first one with a mirror, which ends for good in the middle of a list (`serve = "live-then-mirror"`) | as the first one | each harvester, and the client of the package oaipmh 4.0.0, receives every record of every list once |

The harvesters send all six verbs, with sets and dates, and also ask for records that do not exist.
OAI-PMH 1.x does not say which sets a record belongs to. Therefore the 1.x records have their set only where the
harvester requested one.
""")
    replace_between_marks(PROJECT / "README.md", short_table(results))


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "table"):
        raise SystemExit(__doc__)
    oaimend = str(Path(sys.argv[2]).resolve())
    is_table = sys.argv[1] == "table"
    all_harvesters = installed(True, ALL_HARVESTERS) if is_table else {}
    if is_table and len(all_harvesters) < len(ALL_HARVESTERS):
        raise SystemExit("the table has a row for each harvester: install the missing ones, then repeat this command")
    harvesters = installed("--required" in sys.argv or is_table)
    results = measure(oaimend, harvesters)
    failed = check(results)
    if is_table:
        source_results = sources.measure(oaimend, all_harvesters)
        failed += sources.check(source_results)
        versions = {harvester.name: version for harvester, version in harvesters.items()}
        write_tables(results, versions, source_results, all_harvesters)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
