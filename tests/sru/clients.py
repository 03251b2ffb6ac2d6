"""Searches a server with the SRU clients sruthi, srupy and yaz-client, which are not ours.

    clients.py URL    the server has the records "Title 0" to "Title 29" with the identifiers oai:c:00000 to oai:c:00029

With OAIMEND_SRU=required, yaz-client must be installed.
"""

import os
import shutil
import subprocess
import sys
import urllib.request
import xml.etree.ElementTree as ET

import sruthi
import srupy

TITLES = {f"Title {number}" for number in range(30)}


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r} instead of {expected!r}")


def with_sruthi(url, version):
    client = sruthi.Client(url=url, maximum_records=7, record_schema="oai_dc", sru_version=version)
    records = client.searchretrieve(query="dc.title = title")
    check(f"sruthi {version}, records", records.count, 30)
    check(f"sruthi {version}, titles", {record["title"] for record in records}, TITLES)
    check(f"sruthi {version}, schema", {record["schema"] for record in records}, {"info:srw/schema/1/dc-v1.1"})
    none = client.searchretrieve(query='dc.title = "no such title"')
    check(f"sruthi {version}, none", (none.count, list(none)), (0, []))
    one = client.searchretrieve(query='dc.title == "TITLE 7"')
    check(f"sruthi {version}, one", [record["title"] for record in one], ["Title 7"])
    explained = client.explain()
    check(f"sruthi {version}, port", f":{explained.server['port']}/" in url, True)
    check(f"sruthi {version}, index", explained.index["dc"]["title"], "Title")
    check(f"sruthi {version}, schema", explained.schema["oai_dc"]["identifier"], "info:srw/schema/1/dc-v1.1")
    check(f"sruthi {version}, limit", explained.config["maximumRecords"], 100)
    for query, message in [("dc.x = a", "Unsupported index"), ("(a", "Invalid or unsupported use of parentheses")]:
        try:
            client.searchretrieve(query=query)
        except sruthi.errors.SruError as error:
            check(f"sruthi {version}, error", message in str(error), True)
        else:
            sys.exit(f"sruthi {version}: {query} is accepted")


def with_srupy(url):
    for method in ["GET", "POST"]:
        client = srupy.SRUpy(url, http_method=method)
        records = client.get_records(query="cql.allRecords = 1", maximumRecords=1000)
        check(f"srupy {method}, records", records.number_of_records, 30)
        titles = {dict(record)["dc"]["title"] for record in records}
        check(f"srupy {method}, titles", titles, TITLES)
    explained = dict(srupy.SRUpy(url).explain())
    check("srupy, explain", "indexInfo" in explained["explain"], True)


def yaz(url, *commands):
    script = "\n".join([f"open {url}", "querytype cql", *commands, "quit", ""])
    done = subprocess.run(["yaz-client"], input=script, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def with_yaz(url):
    if shutil.which("yaz-client") is None:
        if os.environ.get("OAIMEND_SRU") == "required":
            sys.exit("yaz-client is not installed: scripts/sru install")
        print("skipped: scripts/sru install installs yaz-client")
        return
    for version in ["1.1", "1.2", "2.0"]:
        shown = yaz(url, f"sru get {version}", "find dc.title = title", "show 1+30")
        check(f"yaz {version}, hits", "Number of hits: 30" in shown, True)
        check(f"yaz {version}, titles", {title for title in TITLES if f"<dc:title>{title}</dc:title>" in shown}, TITLES)
        refused = yaz(url, f"sru get {version}", "find dc.x = a")
        check(f"yaz {version}, error", "info:srw/diagnostic/1/16" in refused, True)
    for form in ["post", "get"]:
        scanned = yaz(url, f"sru {form} 1.1", 'scan dc.title="title 8"')
        check(f"yaz {form}, scan", "Title 8" in scanned and "Title 9" in scanned, True)


def raw(url):
    """What the clients do not show: the number alone, the identifiers, and a scan from its start."""
    namespaces = {"s": "http://www.loc.gov/zing/srw/"}

    def get(query):
        with urllib.request.urlopen(f"{url}?version=1.2&{query}") as response:
            return ET.parse(response).getroot()

    counted = get("operation=searchRetrieve&query=title&maximumRecords=0")
    check("the number", counted.findtext("s:numberOfRecords", None, namespaces), "30")
    check("no records", counted.find("s:records", namespaces), None)
    found = get("operation=searchRetrieve&query=oai.identifier=oai:c:00004")
    identifiers = [element.text for element in found.iterfind(".//s:recordIdentifier", namespaces)]
    check("the identifier", identifiers, ["oai:c:00004"])
    scanned = get("operation=scan&scanClause=dc.title=%22%22&maximumTerms=3")
    values = [element.text for element in scanned.iterfind(".//s:value", namespaces)]
    check("the first values", values, ["Title 0", "Title 1", "Title 10"])


def main():
    url = sys.argv[1]
    with_sruthi(url, "1.1")
    with_sruthi(url, "1.2")
    with_srupy(url)
    with_yaz(url)
    raw(url)


main()
