"""The repair of a page in memory: bytes, report, outcome."""

from __future__ import annotations

import sys
import threading
import time
from array import array
from typing import Any

import pytest

import oaimend
from pages import BROKEN, CLEAN, DEMO, HTML, IDENTIFY_WITHOUT_MAIL, PROJECT, QUARANTINED_RECORD, REPAIRED, TRUNCATED
from pages import WITH_QUARANTINE, page, record


def test_broken_page_is_repaired_with_a_report() -> None:
    repaired = oaimend.repair(BROKEN)
    assert repaired.bytes == REPAIRED
    assert repaired.outcome == "repaired" and repaired.is_complete
    ampersand, letter = repaired.repairs
    assert repaired.report == (ampersand, letter)
    assert (ampersand.name, ampersand.certainty) == ("bare-ampersand", "exact")
    assert (ampersand.original, ampersand.replacement, ampersand.record) == (b"&", b"&amp;", "oai:x:1")
    assert BROKEN[ampersand.offset :].startswith(b"& chips")
    assert (letter.name, letter.certainty) == ("windows-1252-byte", "likely")
    assert (letter.original, letter.replacement, letter.record) == (b"\xe9", "é".encode(), "oai:x:2")
    summary = repaired.summary
    assert (summary.outcome, summary.records, summary.version) == ("repaired", 2, "2.0")
    assert summary.repairs == {"bare-ampersand": 1, "windows-1252-byte": 1}
    assert (summary.why, summary.message, summary.quarantined, summary.lost) == (None, None, 0, 0)


def test_clean_page_is_unchanged() -> None:
    repaired = oaimend.repair(CLEAN)
    assert (repaired.bytes, repaired.report, repaired.outcome) == (CLEAN, (), "clean")
    # Known facts of the request do not change it either.
    request = "http://other.example/oai?verb=ListRecords&metadataPrefix=oai_dc"
    assert oaimend.repair(CLEAN, request=request).bytes == CLEAN


def test_every_page_of_the_corpus_is_undone() -> None:
    inputs = sorted((PROJECT / "corpus" / "broken").glob("*/*/input.xml"))
    assert len(inputs) > 100
    compared = 0
    for path in inputs:
        data = path.read_bytes()
        repaired = oaimend.repair(data)
        if repaired.outcome == "not-oai":
            assert repaired.undo() == data, path
        elif repaired.summary.decoded_as == "UTF-8":
            assert repaired.undo() == data, path
            compared += 1
    assert compared > 100


def test_record_without_a_safe_repair_is_quarantined_with_its_bytes() -> None:
    repaired = oaimend.repair(WITH_QUARANTINE)
    (item,) = repaired.quarantined
    assert (item.identifier, item.why) == ("oai:x:2", "illegal-payload")
    assert item.raw.strip() == QUARANTINED_RECORD.strip()
    assert WITH_QUARANTINE[item.offset :].startswith(item.raw)
    assert b"oai:x:1" in repaired.bytes and b"oai:x:2" not in repaired.bytes
    assert repaired.outcome == "repaired" and not repaired.is_complete
    assert repaired.undo() == WITH_QUARANTINE


def test_html_page_is_a_value() -> None:
    repaired = oaimend.repair(HTML)
    assert (repaired.outcome, repaired.bytes, repaired.summary.why) == ("not-oai", b"", "html-page")
    assert "HTML page" in (repaired.summary.message or "")
    assert repaired.undo() == HTML


def test_truncated_page_says_so() -> None:
    repaired = oaimend.repair(TRUNCATED)
    assert repaired.outcome == "truncated" and not repaired.is_complete
    assert b"oai:x:1" in repaired.bytes and repaired.bytes.rstrip().endswith(b"</OAI-PMH>")


def test_any_bytes_give_an_outcome() -> None:
    for data in [b"", b"\0", b"\x1f\x8b", b"<", b"<OAI-PMH", bytes(range(256)) * 9, b"\xff\xfe" + b"<\0" * 99]:
        assert oaimend.repair(data).outcome in ("truncated", "not-oai")
    assert oaimend.repair(bytearray(BROKEN)).bytes == REPAIRED


def test_undo_returns_every_input_that_is_not_oai() -> None:
    nothing_kept = page(QUARANTINED_RECORD)
    for data in [b"", HTML, b"{}", CLEAN[:20], "é".encode("utf-16"), nothing_kept]:
        repaired = oaimend.repair(data)
        assert (repaired.outcome, repaired.bytes, repaired.undo()) == ("not-oai", b"", data), repaired.summary


def test_every_buffer_of_bytes_is_accepted() -> None:
    backwards = memoryview(BROKEN[::-1])[::-1]
    buffers: list[Any] = [bytearray(BROKEN), memoryview(BROKEN), array("B", BROKEN), backwards]
    for data in [*buffers, memoryview(bytearray(BROKEN))]:
        assert oaimend.repair(data).bytes == REPAIRED
        repairer = oaimend.Repairer()
        assert repairer.push(data) + repairer.finish() == REPAIRED
    view = memoryview(b"--" + HTML)[2:]
    assert oaimend.repair(view).undo() == HTML


def test_text_is_refused_with_advice() -> None:
    advice = r"not str: pass the bytes as they were received, such as response\.content.*text\.encode\(\)"
    with pytest.raises(TypeError, match=advice):
        oaimend.repair("<OAI-PMH/>")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=advice):
        oaimend.Repairer().push("<OAI-PMH/>")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=advice):
        oaimend.RepairReader(["<OAI-PMH/>"]).read()  # type: ignore[list-item]
    for other in [None, 1, ["a"]]:
        with pytest.raises(TypeError, match=f"expected bytes, not {type(other).__name__}"):
            oaimend.repair(other)  # type: ignore[arg-type]


def test_unresolved_and_swallowed_entries() -> None:
    repaired = oaimend.repair(IDENTIFY_WITHOUT_MAIL)
    (field,) = (entry for entry in repaired.report if isinstance(entry, oaimend.UnresolvedField))
    assert (field.element, field.why) == ("adminEmail", "missing")
    case = PROJECT / "corpus" / "broken" / "bare-ampersand" / "beside-a-section-with-records" / "input.xml"
    repaired = oaimend.repair(case.read_bytes())
    (swallowed,) = (entry for entry in repaired.report if isinstance(entry, oaimend.SwallowedItems))
    assert (swallowed.record, swallowed.offset) == ("oai:repository.example.org:102", 1094)
    assert repaired.summary.swallowed == 2
    assert swallowed.identifiers == ["oai:repository.example.org:104", "oai:repository.example.org:109"]


def test_options_change_the_repair() -> None:
    off = oaimend.Options(off=["bare-ampersand"])
    (item,) = oaimend.repair(BROKEN, options=off).quarantined
    assert (item.identifier, item.why) == ("oai:x:1", "repair-off")
    dateless = CLEAN.replace(b"2026-01-01", b"")
    assert oaimend.repair(dateless).quarantined[0].why == "missing-datestamp"
    known = oaimend.Options(lowest_datestamp="2015-01-01")
    assert b"<datestamp>2015-01-01<" in oaimend.repair(dateless, options=known).bytes
    seconds = CLEAN.replace(b"2026-01-01<", b"2026-01-01T00:00:00Z<")
    days = oaimend.Options(granularity="YYYY-MM-DD")
    assert oaimend.repair(seconds, options=days).bytes == CLEAN
    limits = oaimend.Limits(depth_max=2)
    assert (limits.depth_max, limits.tag_bytes_max) == (2, oaimend.Limits().tag_bytes_max)
    quarantined = oaimend.repair(BROKEN, options=oaimend.Options(limits=limits)).quarantined
    assert [item.why for item in quarantined] == ["too-deep", "too-deep"]
    polish = page(record(1, b"\xb1\xea"))
    named = oaimend.Options(text_charset="iso-8859-2")
    assert "ąę".encode() in oaimend.repair(polish, options=named).bytes
    assert "ąę".encode() in oaimend.repair(polish.replace(b' encoding="UTF-8"', b""), charset="iso-8859-2").bytes


def test_wrong_options_are_refused_with_the_right_ones() -> None:
    with pytest.raises(ValueError, match="no-such-repair.*oaimend explain"):
        oaimend.Options(off=["no-such-repair"])
    with pytest.raises(ValueError, match="YYYY-MM-DDThh:mm:ssZ"):
        oaimend.Options(granularity="seconds")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2015-01-31"):
        oaimend.Options(lowest_datestamp="yesterday")


def test_request_decides_about_records_that_were_not_requested() -> None:
    got = page(record(1, b"A"), record(2, b"B")).replace(b"ListRecords", b"GetRecord")
    url = "http://x.example/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai%3Ax%3A"
    for wanted, other in [("1", "2"), ("2", "1")]:
        repaired = oaimend.repair(got, request=url + wanted)
        assert f"oai:x:{wanted}".encode() in repaired.bytes and f"oai:x:{other}".encode() not in repaired.bytes
        assert repaired.summary.lost == 1



def test_other_threads_run_during_a_repair() -> None:
    large = page(*(record(number, b"a & b") for number in range(5_000)))
    count, ends = 0, threading.Event()

    def run() -> None:
        nonlocal count
        while not ends.is_set():
            count += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    # No thread is interrupted: another thread runs only where this one releases the lock of the interpreter.
    sys.setswitchinterval(60)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(50):
            before = count
            oaimend.repair(large)
            advanced = count > before
            if advanced:
                break
    finally:
        ends.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert advanced


def test_objects_describe_themselves() -> None:
    repaired = oaimend.repair(DEMO)
    assert repr(repaired) == f"<Repaired repaired, {len(repaired.bytes)} bytes, 5 entries in the report>"
    assert repr(repaired.repairs[0]) == '<Repair bare-ampersand offset=1403, record="oai:demo.example.org:2">'
    assert repr(repaired.summary) == "<Summary repaired records=4 quarantined=0 lost=0>"
    assert "why=html-page" in repr(oaimend.repair(HTML).summary)
    assert "oai:x:2 why=illegal-payload" in repr(oaimend.repair(WITH_QUARANTINE).quarantined[0])
    assert "record_bytes_max=8388608" in repr(oaimend.Limits())
    assert oaimend.Limits() == oaimend.Limits(depth_max=256)
