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


# The rows of README.md: one defect of each kind (bytes, references, markup, page, transfer).
EXCERPT = ["latin1-field", "bare-ampersand", "unterminated-cdata", "missing-namespace", "truncated"]


def rows(results):
    """The name, the title and the cells of each defect, with one cell for the harvesters that parse leniently."""
    for index, defect in enumerate(DEFECTS):
        yield defect.name, defect.title, (
            merge_cells([results[name][0][index].cell(defect) for name in lenient(results)]),
            results["HTTP::OAI"][0][index].cell(defect),
            merge_cells([results[name][1][index].cell(defect) for name in results]),
        )


def lenient(results):
    return [name for name in results if name != "HTTP::OAI"]


def table(results, titles_and_cells):
    lines = [f"| one defect on page 1 of 2 | {', '.join(lenient(results))} | HTTP::OAI | all three through oaimend |",
             "|---|---|---|---|"]
    return "\n".join(lines + [f"| {title} | {' | '.join(cells)} |" for title, cells in titles_and_cells])


def full_table(results):
    """One row for all defects with the same cells."""
    titles = {}
    for _, title, cells in rows(results):
        titles.setdefault(cells, []).append(title)
    return table(results, [("; ".join(same), cells) for cells, same in titles.items()])


def short_table(results):
    """The rows of EXCERPT."""
    return table(results, [(title, cells) for name, title, cells in rows(results) if name in EXCERPT])


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

This page shows what real harvesters receive from a broken repository, directly and through `oaimend serve`. For
example, if one field contains Latin-1 bytes, a strict harvester stops before its record, and a lenient one delivers
three damaged records without an error. Through oaimend, both receive every record with the right text.
`scripts/harvesters table` measures this and writes the page.

## One defect at a time

The repository has ten records on two pages. Each run has one defect from `tests/harvesters/defects.py`, in record 3
or around the records of page 1. The harvesters are {versions}.

*All 10* means that identifier, datestamp, title and description of every record are right. **No error** means that
records are missing or damaged (with wrong text), but the harvester reported nothing. An HTML page, and a page that
is cut off at every attempt, cannot be repaired, so there an error is the right result.

{full_table(results)}

{sources.section(source_results, all_versions)}
## Records with more than 10 MB of text

libxml2 gives up a document when one text in it is longer than 10,000,000 bytes, unless `huge_tree` is on. Sickle
and oaipmh-scythe hide this error with `recover=True`. The rest of the page and its resumptionToken are missing, so
the harvest ends there with **no error**. oaimend passes such a page on unchanged, because it is clean. There are two
ways out:

- The mirror stores no record that is longer than `limits.record_bytes_max` (8 MiB by default, also in a mapping),
  so with `serve = "mirror"` such harvesters receive all others. `oaimend mirror status` counts the records that are
  left out.
- A parser with `huge_tree` reads them. Both packages have theirs in a variable, `sickle.response.XMLParser` and
  `oaipmh_scythe.response.XMLParser`. Replace it by
  `lxml.etree.XMLParser(recover=True, huge_tree=True, remove_blank_text=True, resolve_entities=False)`.

## Whole repositories

`scripts/harvesters repositories` and `scripts/harvesters mirrored` harvest whole repositories and their mirror with
Sickle, oaipmh-scythe and HTTP::OAI, with all six verbs, sets and dates, and records that do not exist.

- From OAI-PMH 2.0 with nested sets and deleted records, each harvester receives the same 300 records through
  oaimend as directly, white space included.
- From OAI-PMH 1.0 and 1.1, each receives the same records as 2.0. Their headers name a set only where the harvester
  requested one, because 1.x does not say which sets a record belongs to.
- From the mirror, at `/_mirror/ID` and at `/_all`, each receives all records while the source is down.
- If a source with a mirror ends for good in the middle of a list, each receives every record of every list once.
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
