"""The objects of the package are values: comparable, hashable, and the same after pickle and copy."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import oaimend
from pages import BROKEN, CLEAN, DEMO, HTML, IDENTIFY_WITHOUT_MAIL, PROJECT, TRUNCATED, WITH_QUARANTINE

SWALLOWING = (PROJECT / "corpus/broken/bare-ampersand/beside-a-section-with-records/input.xml").read_bytes()
PAGES = [BROKEN, CLEAN, DEMO, HTML, IDENTIFY_WITHOUT_MAIL, SWALLOWING, TRUNCATED, WITH_QUARANTINE]
OPTIONS: list[Callable[[], oaimend.Options]] = [
    oaimend.Options,
    lambda: oaimend.Options(off=["bare-ampersand", "doctype"]),
    lambda: oaimend.Options(enabled=["double-encoded"]),
    lambda: oaimend.Options(text_charset="iso-8859-2"),
    lambda: oaimend.Options(granularity="YYYY-MM-DD"),
    lambda: oaimend.Options(lowest_datestamp="2015-01-31"),
    lambda: oaimend.Options(limits=oaimend.Limits(depth_max=2)),
]


def assert_is_same_after_pickle(value: object) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(value, protocol))
        assert type(other) is type(value) and other is not value
        assert other == value and not other != value and hash(other) == hash(value)
        assert type(value).__repr__ is object.__repr__ or repr(other) == repr(value)
    assert copy.copy(value) == value == copy.deepcopy(value)


def fields(value: Any) -> dict[str, Any]:
    """All properties of an object of the engine."""
    names = [name for name in dir(type(value)) if not name.startswith("_") and not callable(getattr(value, name))]
    return {name: getattr(value, name) for name in names}


def test_results_are_the_same_after_pickle() -> None:
    kinds = set()
    for data in PAGES:
        repaired = oaimend.repair(data)
        other = pickle.loads(pickle.dumps(repaired))
        assert fields(other) == fields(repaired)
        assert fields(other.summary) == fields(repaired.summary)
        assert other.undo() == repaired.undo() == data
        for value in [repaired, repaired.summary, *repaired.report]:
            assert_is_same_after_pickle(value)
            kinds.add(type(value))
    entries = {oaimend.Repair, oaimend.Quarantined, oaimend.UnresolvedField, oaimend.SwallowedItems}
    assert kinds == {oaimend.Repaired, oaimend.Summary, *entries}


def test_different_results_are_not_equal() -> None:
    results = [oaimend.repair(data) for data in PAGES]
    again = [oaimend.repair(bytearray(data)) for data in PAGES]
    assert results == again and len(set(results)) == len(PAGES) == len(set(results + again))
    assert [result.summary for result in results] == [result.summary for result in again]
    first, second = oaimend.repair(BROKEN), oaimend.repair(BROKEN.replace(b"chips", b"chops"))
    assert first != second and first.summary == second.summary and first.report == second.report
    other = oaimend.repair(BROKEN.replace(b"Fish", b"A fish"))
    assert first.repairs[0] != other.repairs[0]
    # Two inputs without an output are not the same.
    assert oaimend.repair(HTML) != oaimend.repair(HTML + b" ")
    for value in [first, first.summary, first.repairs[0], oaimend.Options(), oaimend.Limits()]:
        assert value != "text" and value != None and (value == object()) is False  # noqa: E711


def test_options_are_the_same_after_pickle() -> None:
    made = [make() for make in OPTIONS]
    for value in [*made, oaimend.Limits(), oaimend.Limits(junk_bytes_max=7)]:
        assert_is_same_after_pickle(value)
    assert made == [make() for make in OPTIONS] and len(set(made)) == len(made)
    assert oaimend.Options(off=["doctype", "bare-ampersand"]) == made[1]
    assert oaimend.Limits(depth_max=2) != oaimend.Limits(depth_max=3)
    seconds = CLEAN.replace(b"2026-01-01<", b"2026-01-01T00:00:00Z<")
    days = pickle.loads(pickle.dumps(oaimend.Options(granularity="YYYY-MM-DD")))
    assert oaimend.repair(seconds, options=days).bytes == CLEAN


def test_results_and_errors_come_from_another_process() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(oaimend.repair, PAGES) == [oaimend.repair(data) for data in PAGES]


def test_page_and_its_error_are_the_same_after_pickle() -> None:
    repaired = oaimend.repair(WITH_QUARANTINE)
    page = oaimend.Page("http://x.example/oai", repaired.summary, repaired.report)
    assert_is_same_after_pickle(page)
    summary = oaimend.repair(TRUNCATED).summary
    for kind in [oaimend.PageError, oaimend.requests.RepairError, oaimend.httpx.RepairError]:
        error = kind("http://x.example/oai", summary, "the page is incomplete")
        other = pickle.loads(pickle.dumps(error))
        assert type(other) is kind and str(other) == str(error) == "http://x.example/oai: the page is incomplete"
        assert (other.url, other.summary) == (error.url, summary)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no-such-repair"):
        oaimend.Repair("no-such-repair", 0, None, b"", b"")
    with pytest.raises(ValueError, match="no-such-reason"):
        oaimend.Quarantined("no-such-reason", 0, None, b"")
