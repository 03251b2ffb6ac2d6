"""Reads the pages of records with real readers of citations and links.

    check.py FILE

FILE is JSON: the URL of the page of an article, what its readers must find, and the URL of a page of a hostile record.
Exits 1 at the first fault, and prints it.
"""

import json
import sys
import urllib.request
import warnings

# citeproc-py calls a part of lxml that is old.
warnings.filterwarnings("ignore")

import bibtexparser
import extruct
import rispy
import signposting
from citeproc import Citation, CitationItem, CitationStylesBibliography, CitationStylesStyle, formatter
from citeproc.source.json import CiteProcJSON


def fetch(url, accept=None):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request) as response:
        return response.read().decode("utf-8")


def equal(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def bibtex_of(text):
    library = bibtexparser.parse_string(text)
    equal("failed blocks", [block.raw for block in library.failed_blocks], [])
    equal("number of entries", len(library.entries), 1)
    return library.entries[0]


def check_bibtex(page, expected):
    entry = bibtex_of(fetch(page, "application/x-bibtex"))
    equal("BibTeX type", entry.entry_type, "article")
    fields = {field.key: field.value for field in entry.fields}
    for name in ["journal", "volume", "number", "year", "doi", "issn"]:
        equal(f"BibTeX {name}", fields[name], expected[name])
    equal("BibTeX pages", fields["pages"], expected["pages"].replace("-", "--"))
    equal("BibTeX author", fields["author"], " and ".join(expected["authors"]))


def check_ris(page, expected):
    [entry] = rispy.loads(fetch(page, "application/x-research-info-systems"))
    equal("RIS type", entry["type_of_reference"], "JOUR")
    equal("RIS authors", entry["authors"], expected["authors"])
    equal("RIS title", entry["title"], expected["title"])
    equal("RIS journal", entry.get("secondary_title") or entry.get("journal_name"), expected["journal"])
    equal("RIS DOI", entry["doi"], expected["doi"])
    equal("RIS pages", f"{entry['start_page']}-{entry['end_page']}", expected["pages"])


def check_csl(page, expected):
    item = json.loads(fetch(page, "application/vnd.citationstyles.csl+json"))
    bibliography = CitationStylesBibliography(
        CitationStylesStyle("harvard-cite-them-right", validate=False), CiteProcJSON([item]), formatter.plain
    )
    bibliography.register(Citation([CitationItem(item["id"])]))
    [shown] = [str(entry) for entry in bibliography.bibliography()]
    for part in [expected["authors"][0].split(",")[0], expected["title"], expected["journal"], expected["year"]]:
        if part not in shown:
            sys.exit(f"citeproc: {part!r} is not in {shown!r}")


def check_structured_data(page, expected):
    found = extruct.extract(fetch(page), base_url=page, syntaxes=["json-ld", "opengraph"])
    [work] = found["json-ld"]
    equal("JSON-LD type", work["@type"], "ScholarlyArticle")
    orcids = [author.get("@id") for author in work["author"]]
    equal("JSON-LD ORCIDs", [orcid for orcid in orcids if orcid], expected["orcids"])
    [preview] = found["opengraph"]
    equal("Open Graph", dict(preview["properties"])["og:title"], expected["title"])


def check_signposting(page, expected):
    for source, found in [
        ("headers", signposting.find_signposting_http(page)),
        ("JSON", signposting.find_signposting_linkset(page + ".linkset.json")),
        ("text", signposting.find_signposting_linkset(page + ".linkset")),
    ]:
        if source != "headers":
            found = found.for_context(page)
        targets = lambda links: sorted(str(link.target) for link in links)
        equal(f"cite-as ({source})", str(found.citeAs.target), f"https://doi.org/{expected['doi']}")
        equal(f"authors ({source})", targets(found.authors), expected["orcids"])
        equal(f"items ({source})", targets(found.items), expected["files"])
        equal(f"license ({source})", str(found.license.target), expected["license"])
        equal(f"types ({source})", len(found.types), 2)
        for link in found.describedBy:
            with urllib.request.urlopen(str(link.target)) as response:
                media_type = response.headers["Content-Type"].split(";")[0]
                equal(f"type of {link.target}", media_type, str(link.type))
        equal(f"descriptions ({source})", len(found.describedBy), 5)
    equal("link sets", len(signposting.find_signposting_http(page).linksets), 2)


def check_hostile(page):
    bibtex_of(fetch(page + ".bib"))
    equal("RIS references", len(rispy.loads(fetch(page + ".ris"))), 1)
    json.loads(fetch(page + ".csl.json"))
    signposting.find_signposting_linkset(page + ".linkset")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        described = json.load(file)
    page, expected = described["page"], described["expected"]
    for check in [check_bibtex, check_ris, check_csl, check_structured_data, check_signposting]:
        check(page, expected)
        print(f"{check.__name__}: ok")
    check_hostile(described["hostile"])
    print("check_hostile: ok")


main()
