"""A local repository as its writers see it: all ways to write a record, and what each record must be afterwards."""

import contextlib
import json
import os
import re
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

ID = "deposits"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
MODS = "http://www.loc.gov/mods/v3"
REQUEST_SECONDS_MAX = 60
CLOCK_SECONDS_MAX = 10


@dataclass(frozen=True)
class Record:
    """A record that was written. `fields` is None if it is deleted."""

    identifier: str
    datestamp: str
    sets: tuple
    fields: dict | None

    def header(self):
        return [self.identifier, self.datestamp, sorted(self.sets), self.fields is None]


def dublin_core(fields):
    elements = "".join(
        f"<dc:{name}>{escape(text)}</dc:{name}>" for name, texts in fields.items() for text in texts
    )
    return (
        f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd">{elements}</oai_dc:dc>'
    )


def mods(title):
    return (
        f'<mods xmlns="{MODS}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{MODS} http://www.loc.gov/standards/mods/v3/mods-3-8.xsd">'
        f"<titleInfo><title>{escape(title)}</title></titleInfo></mods>"
    )


def record_list(records):
    """A response to ListRecords with records (identifier, setSpecs, metadata or None)."""
    def element(identifier, sets, metadata):
        status = "" if metadata else ' status="deleted"'
        specs = "".join(f"<setSpec>{spec}</setSpec>" for spec in sets)
        header = (
            f"<header{status}><identifier>{escape(identifier)}</identifier>"
            f"<datestamp>2001-01-01</datestamp>{specs}</header>"
        )
        return f"<record>{header}{f'<metadata>{metadata}</metadata>' if metadata else ''}</record>"

    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        "<responseDate>2001-01-01T00:00:00Z</responseDate><request>http://harvest.example/</request>"
        f"<ListRecords>{''.join(element(*record) for record in records)}</ListRecords></OAI-PMH>"
    )


class Writer:
    """Writes to the local repository of a running oaimend, and notes what its records are by format and identifier."""

    def __init__(self, oaimend, proxy):
        self.oaimend, self.folder, self.base_url = oaimend, Path(proxy.data.name), proxy.base_url(ID)
        self.records = {"oai_dc": {}, "mods": {}}
        create = [oaimend, "token", "create", "--repository", ID, "--data", self.folder / "data"]
        self.token = subprocess.run(
            create, check=True, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ).stdout.strip()
        self.token_file = self.folder / "token"
        with open(os.open(self.token_file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self.token)

    def note(self, prefix, identifier, datestamp, sets, fields):
        self.records[prefix][identifier] = Record(identifier, datestamp, tuple(sets), fields)

    def note_deleted(self, identifier, datestamp, prefixes=("oai_dc", "mods")):
        for prefix in prefixes:
            before = self.records[prefix].get(identifier)
            if before is not None and before.fields is not None:
                self.note(prefix, identifier, datestamp, before.sets, None)

    def request(self, method, path, body=None, kind="application/xml"):
        """Sends a request. Returns the datestamp of what was written."""
        request = urllib.request.Request(self.base_url + path, body, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", kind)
        with contextlib.closing(urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX)) as response:
            response.read()
            return response.headers["Oaimend-Datestamp"]

    def put_record(self, arguments, by_post):
        query = urlencode({"verb": "PutRecord"} | arguments)
        if by_post:
            return self.request("POST", "", query.encode(), "application/x-www-form-urlencoded")
        return self.request("GET", f"?{query}")

    def record_path(self, identifier, prefix, sets=()):
        arguments = {"metadataPrefix": prefix} | ({"sets": ",".join(sets)} if sets else {})
        return f"/record/{quote(identifier, safe='')}?{urlencode(arguments)}"

    def write_dublin_core(self, one, way):
        """Writes a `holdings.Holding` by PutRecord with GET or POST, or by PUT."""
        metadata = dublin_core(one.fields)
        if way == "PUT":
            stamp = self.request("PUT", self.record_path(one.identifier, "oai_dc", one.sets), metadata.encode())
        else:
            arguments = {"identifier": one.identifier, "metadataPrefix": "oai_dc", "sets": ",".join(one.sets),
                         "metadata": metadata}
            stamp = self.put_record(arguments, way == "POST")
        self.note("oai_dc", one.identifier, stamp, one.sets, one.fields)

    def write_mods(self, identifier, sets, title, makes_dublin_core=False):
        """Writes mods. An item without `oai_dc` gets it by a crosswalk, and gets it again after a change."""
        stamp = self.request("PUT", self.record_path(identifier, "mods", sets), mods(title).encode())
        self.note("mods", identifier, stamp, sets, {"title": [title]})
        if makes_dublin_core or identifier not in self.records["oai_dc"]:
            self.note("oai_dc", identifier, stamp, sets, {"title": [title]})

    def change_sets(self, identifier, prefix, sets):
        """Gives an item in one format these sets."""
        stamp = self.request("PATCH", self.record_path(identifier, prefix), json.dumps({"sets": sets}).encode())
        self.note(prefix, identifier, stamp, sets, self.records[prefix][identifier].fields)

    def write_list(self, holdings):
        """Writes records of `oai_dc` as one list. Those without fields are deleted."""
        listed = [(one.identifier, one.sets, None if one.deleted else dublin_core(one.fields)) for one in holdings]
        stamp = self.request("POST", "/records?metadataPrefix=oai_dc", record_list(listed).encode())
        for one in holdings:
            self.note("oai_dc", one.identifier, stamp, one.sets, None if one.deleted else one.fields)

    def write_files(self, files, sets, expected):
        """Writes files by `oaimend put`: texts by their names. `expected` are the fields by the ends of the identifiers."""
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        arguments = [f"--set={spec}" for spec in sets]
        put = [self.oaimend, "put", self.base_url, "--token-file", self.token_file, "--format=json", *arguments, *files]
        written = subprocess.run(put, cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True).stdout
        stamp = re.search(r'"datestamp": ?"([^"]+)"', written)[1]
        for end, fields in expected.items():
            self.note("oai_dc", f"oai:localhost.localdomain:{ID}/{end}", stamp, sets, fields)

    def begin_list(self):
        """Lists the repository when all datestamps are past. Returns the responseDate, which all later writes are newer than.

        Datestamps may be one second ahead of the clock, so a list that follows at once is dated before them.
        """
        newest = max(one.datestamp for records in self.records.values() for one in records.values())
        url = f"{self.base_url}?verb=ListIdentifiers&metadataPrefix=oai_dc"
        deadline = time.monotonic() + CLOCK_SECONDS_MAX
        while True:
            with contextlib.closing(urllib.request.urlopen(url, timeout=REQUEST_SECONDS_MAX)) as response:
                date = re.search(r"<responseDate>([^<]+)<", response.read().decode())[1]
            if date >= newest:
                return date
            if time.monotonic() > deadline:
                raise SystemExit(f"a list is dated {date}, long after a write of {newest}")
            time.sleep(0.05)


def bibliography(numbers):
    """A BibTeX file in the form of the exports of Zotero, and its fields by the keys of the entries."""
    entry = """
@article{{muller_maps_{n},
	title = {{Maps of {{\\"O}}land \\& {{Kiel}} {n}}},
	volume = {{{n}}},
	copyright = {{CC BY 4.0}},
	issn = {{1234-5678}},
	url = {{https://harvest.example/maps/{n}}},
	doi = {{10.1000/maps_{n}}},
	abstract = {{First line of {n}.
Second line, 20\\% longer.}},
	language = {{en}},
	number = {{2}},
	urldate = {{2026-01-02}},
	journal = {{Journal of Maps}},
	author = {{M{{\\"u}}ller, Ada and van der Berg, Jan}},
	month = mar,
	year = {{2003}},
	keywords = {{sea, land {n}}},
	pages = {{1--9}},
	file = {{Full Text:files/{n}/Maps.pdf:application/pdf}},
}}
"""
    fields = {f"muller_maps_{number}": {
        "title": [f"Maps of Öland & Kiel {number}"],
        "creator": ["Müller, Ada", "van der Berg, Jan"],
        "subject": ["sea", f"land {number}"],
        "description": [f"First line of {number}. Second line, 20% longer."],
        "date": ["2003-03"],
        "type": ["article"],
        "identifier": [f"https://harvest.example/maps/{number}", f"https://doi.org/10.1000/maps_{number}"],
        "source": ["ISSN 1234-5678", f"Journal of Maps, {number}(2), pp. 1–9"],
        "language": ["en"],
        "rights": ["CC BY 4.0"],
    } for number in numbers}
    return "".join(entry.format(n=number) for number in numbers), fields


def table(numbers):
    """A table in the form of the exports of Zotero, without most of the empty columns, and its fields by its keys."""
    columns = ["Key", "Item Type", "Publication Year", "Author", "Title", "Publication Title", "ISBN", "ISSN", "DOI",
               "Url", "Abstract Note", "Date", "Date Added", "Pages", "Issue", "Volume", "Publisher", "Language",
               "Rights", "Notes", "Manual Tags", "Editor"]
    quoted = lambda cells: ",".join('"{}"'.format(cell.replace('"', '""')) for cell in cells)
    lines, fields = ["\ufeff" + quoted(columns)], {}
    for number in numbers:
        lines.append(quoted([
            f"AB{number:06}", "book", "2010", "Doe, John; Müller, Ada", f'Letters, "old" & new {number}', "", "978-1-2",
            "", "", f"https://harvest.example/letters/{number}", "Two\nlines", "2010-05-03", "2026-01-02 03:04:05", "", "",
            "", "Press", "de", "", "<p>A note</p>", "sea; <land>", "Roe, Jane",
        ]))
        fields[f"AB{number:06}"] = {
            "title": [f'Letters, "old" & new {number}'],
            "creator": ["Doe, John", "Müller, Ada"],
            "subject": ["sea", "<land>"],
            "description": ["Two lines"],
            "publisher": ["Press"],
            "contributor": ["Roe, Jane"],
            "date": ["2010-05-03"],
            "type": ["book"],
            "identifier": ["ISBN 978-1-2", f"https://harvest.example/letters/{number}"],
            "language": ["de"],
        }
    return "\n".join(lines) + "\n", fields
