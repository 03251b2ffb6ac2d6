"""Pages for the tests."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
DEMO = (PROJECT / "corpus" / "demo" / "records-1.xml").read_bytes()
HTML = b"<!DOCTYPE html><html><head><title>Sorry</title></head><body>Service unavailable</body></html>"


def record(number: int, title: bytes) -> bytes:
    return (
        b"<record><header><identifier>oai:x:%d</identifier><datestamp>2026-01-01</datestamp></header><metadata>"
        b'<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        b'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>%s</dc:title></oai_dc:dc></metadata></record>\n'
    ) % (number, title)


def page(*records: bytes) -> bytes:
    return (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
        b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation='
        b'"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">\n'
        b"<responseDate>2026-01-02T03:04:05Z</responseDate>\n"
        b'<request verb="ListRecords" metadataPrefix="oai_dc">http://x.example/oai</request>\n<ListRecords>\n'
        + b"".join(records)
        + b"</ListRecords>\n</OAI-PMH>\n"
    )


CLEAN = page(record(1, b"A title"))
BROKEN = page(record(1, b"Fish & chips"), record(2, b"Caf\xe9"))
REPAIRED = page(record(1, b"Fish &amp; chips"), record(2, "Café".encode()))
TRUNCATED = BROKEN[: BROKEN.index(b"oai:x:2") + 40]
# The second record has an illegal payload, which has no safe repair.
QUARANTINED_RECORD = record(2, b"x").replace(b"</oai_dc:dc>", b"</oai_dc:dc><b/>")
WITH_QUARANTINE = page(record(1, b"A title"), QUARANTINED_RECORD)
IDENTIFY_WITHOUT_MAIL = (
    page()
    .replace(
        b"<ListRecords>\n</ListRecords>",
        b"<Identify><repositoryName>A</repositoryName><baseURL>http://x.example/oai</baseURL>"
        b"<protocolVersion>2.0</protocolVersion><earliestDatestamp>2015-01-01</earliestDatestamp>"
        b"<deletedRecord>no</deletedRecord><granularity>YYYY-MM-DD</granularity></Identify>",
    )
    .replace(b' verb="ListRecords" metadataPrefix="oai_dc"', b' verb="Identify"')
)
