"""A small repository with one defect at a time, and its correct records.

It has ten records on two pages. The defect is in record 3 or around the records
of page 1. Page 2 is clean. Every description contains a legal `&amp;`, because
lenient parsers lose it after an error.
"""

import gzip
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Callable, Optional

PAGE_RECORDS = 5
PAGES = 2
BROKEN_RECORD = 3
FIRST_DAY = date(2025, 6, 1)

OAI = "http://www.openarchives.org/OAI/2.0/"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
TOKEN = "page-2"


@dataclass(frozen=True)
class Record:
    """One record: its four fields as bytes of XML, and its tags."""

    identifier: bytes
    datestamp: bytes
    title: bytes
    description: bytes
    title_start: bytes = b"<dc:title>"
    title_end: bytes = b"</dc:title>"
    before_payload: bytes = b""
    payload_namespaces: bytes = f' xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}"'.encode()

    def header_xml(self):
        return b"".join([
            b"<header><identifier>", self.identifier, b"</identifier><datestamp>", self.datestamp,
            b"</datestamp></header>",
        ])

    def xml(self):
        return b"".join([
            b"<record>", self.header_xml(), b"<metadata>", self.before_payload, b"<oai_dc:dc",
            self.payload_namespaces, b">", self.title_start, self.title, self.title_end,
            b"<dc:description>", self.description, b"</dc:description></oai_dc:dc></metadata></record>\n",
        ])


@dataclass(frozen=True)
class Page:
    """One page: its records, and the bytes around them."""

    records: tuple
    token: Optional[str]
    before: bytes = b'<?xml version="1.0" encoding="UTF-8"?>\n'
    root: bytes = (
        f'<OAI-PMH xmlns="{OAI}" xmlns:xsi="{XSI}" xsi:schemaLocation="{OAI} {OAI}OAI-PMH.xsd">\n'
    ).encode()
    after: bytes = b""
    # Changes the bytes of the whole page.
    transport: Callable = field(default=lambda body: body)
    content_type: str = "text/xml; charset=UTF-8"

    def xml(self, base_url, verb="ListRecords"):
        """The bytes of the page; for ListIdentifiers with the headers only, for GetRecord without a token."""
        head = (
            "<responseDate>2026-01-02T03:04:05Z</responseDate>\n"
            f'<request verb="{verb}" metadataPrefix="oai_dc">{base_url}</request>\n<{verb}>\n'
        )
        token = "" if verb == "GetRecord" else f"<resumptionToken>{self.token or ''}</resumptionToken>\n"
        items = b"".join(one.header_xml() if verb == "ListIdentifiers" else one.xml() for one in self.records)
        tail = f"{token}</{verb}>\n</OAI-PMH>\n"
        return self.transport(self.before + self.root + head.encode() + items + tail.encode() + self.after)


def record_texts(number):
    """The correct identifier, datestamp, title and description of record `number`."""
    return [
        f"oai:example.org:{number}",
        f"{FIRST_DAY + timedelta(days=number - 1)}T00:00:00Z",
        f"Größe und Gewicht, Teil {number}",
        f"Research & development, part {number}",
    ]


def record(number):
    fields = (text.replace("&", "&amp;").encode() for text in record_texts(number))
    return Record(*fields)


def page(number):
    """Page 1 or 2, without a defect."""
    first = (number - 1) * PAGE_RECORDS + 1
    records = tuple(record(n) for n in range(first, first + PAGE_RECORDS))
    return Page(records=records, token=TOKEN if number < PAGES else None)


@dataclass(frozen=True)
class Defect:
    """One way to break the first page."""

    name: str
    # The name of the defect in the table.
    title: str
    damage: Callable[[Page], Page]
    # The correct value of the broken field; None if its text is not damaged.
    expected_title: Optional[str] = None
    expected_datestamp: Optional[str] = None
    # Whether no repair is possible, so that an error is the right result.
    is_unrepairable: bool = False

    def first_page(self):
        return self.damage(page(1))

    def expected(self):
        """All ten records, as a harvester should get them."""
        texts = [record_texts(n) for n in range(1, PAGE_RECORDS * PAGES + 1)]
        broken = texts[BROKEN_RECORD - 1]
        broken[1] = self.expected_datestamp or broken[1]
        broken[2] = self.expected_title or broken[2]
        return texts


def in_record(**changes):
    """Returns a function that changes parts of the broken record."""
    def damage(page):
        records = list(page.records)
        records[BROKEN_RECORD - 1] = replace(records[BROKEN_RECORD - 1], **changes)
        return replace(page, records=tuple(records))
    return damage


def around(**changes):
    """Returns a function that changes the bytes around the records."""
    return lambda page: replace(page, **changes)


def in_title(name, title, content, expected):
    return Defect(name, title, in_record(title=content), expected_title=expected)


def cut_in_fourth_record(body):
    return body[: body.index(b"example.org:4") + 60]


NOTICE = b"<br />\n<b>Notice</b>:  Undefined index: set in <b>/var/www/oai.php</b> on line <b>42</b><br />\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>Service unavailable</title></head><body><h1>Sorry</h1></body></html>\n"
NO_DC = f' xmlns:oai_dc="{OAI_DC}"'.encode()

DEFECTS = [
    Defect("none", "nothing", lambda page: page),
    in_title("latin1-field", "Latin-1 bytes in one field", b"caf\xe9 br\xfbl\xe9", "café brûlé"),
    in_title("cut-character", "multi-byte character cut in two", "Größe ".encode() + b"\xe2\x80 m", "Größe \ufffd m"),
    Defect("latin1-page", "whole page in Latin-1, declared UTF-8",
           around(transport=lambda body: body.decode().encode("latin-1"))),
    Defect("wrong-label", "UTF-8 declared as ISO-8859-1",
           around(before=b'<?xml version="1.0" encoding="ISO-8859-1"?>\n', content_type="text/xml")),
    in_title("control-character", "control character U+0003", b"Wei\x03ter", "Weiter"),
    in_title("form-feed", "form feed", b"page\x0cbreak", "page break"),
    in_title("control-reference", "`&#3;`", b"Wei&#3;ter", "Weiter"),
    in_title("surrogate-references", "`&#55349;&#56320;`", b"group &#55349;&#56320;", "group \U0001d400"),
    in_title("noncharacter", "U+FFFE", b"Wei\xef\xbf\xbeter", "Weiter"),
    in_title("bare-ampersand", "bare `&`", b"Smith & Wesson", "Smith & Wesson"),
    in_title("html-entity", "`&ndash;`", b"1990&ndash;1995", "1990–1995"),
    in_title("unclosed-paragraph", "`<p>` never closed", b"<p>First things first", "<p>First things first"),
    in_title("crossed-tags", "`<i>..</b>`", b"the <i>Quercus</b> oak", "the <i>Quercus</b> oak"),
    in_title("less-than", "`p < 0.05`", b"significant (p < 0.05)", "significant (p < 0.05)"),
    in_title("unterminated-cdata", "CDATA section never closed", b"<![CDATA[R & D", "R & D"),
    Defect("inner-declaration", "`<?xml?>` inside metadata",
           in_record(before_payload=b'<?xml version="1.0" encoding="UTF-8"?>')),
    Defect("undeclared-prefix", "prefix `dc:` not declared", in_record(payload_namespaces=NO_DC)),
    Defect("unquoted-attribute", "`xml:lang=de`", in_record(title_start=b"<dc:title xml:lang=de>")),
    Defect("mismatched-end-tag", "`<dc:title>..</title>`", in_record(title_end=b"</title>")),
    Defect("missing-end-tag", "`</dc:title>` missing", in_record(title_end=b"")),
    Defect("datestamp-form", "datestamp without T and Z", in_record(datestamp=b"2015-01-12 13:39:50"),
           expected_datestamp="2015-01-12T13:39:50Z"),
    Defect("missing-namespace", "OAI-PMH namespace missing", around(root=b"<OAI-PMH>\n")),
    Defect("leading-blank-lines", "blank lines before `<?xml`",
           around(before=b'\n\n<?xml version="1.0" encoding="UTF-8"?>\n')),
    Defect("leading-notice", "PHP notice before `<?xml`",
           around(before=NOTICE + b'<?xml version="1.0" encoding="UTF-8"?>\n')),
    Defect("trailing-notice", "PHP notice after the end", around(after=NOTICE)),
    Defect("unannounced-gzip", "gzip, not announced", around(transport=gzip.compress)),
    Defect("html-page", "an HTML page with status 200",
           around(transport=lambda body: HTML, content_type="text/html"), is_unrepairable=True),
    Defect("truncated", "page cut off in record 4", around(transport=cut_in_fourth_record), is_unrepairable=True),
]

BY_NAME = {defect.name: defect for defect in DEFECTS}
