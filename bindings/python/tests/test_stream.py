"""The repair of a page that arrives in chunks."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pytest

import oaimend
from pages import BROKEN, DEMO, HTML, PROJECT, REPAIRED, TRUNCATED, WITH_QUARANTINE


def chunks(data: bytes, sizes: Iterator[int]) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = next(sizes)
        yield data[at : at + size]
        at += size


def push_all(pieces: Iterator[bytes]) -> tuple[bytes, oaimend.Repairer]:
    repairer = oaimend.Repairer()
    output = b"".join([repairer.push(piece) for piece in pieces])
    return output + repairer.finish(), repairer


def random_sizes(seed: int, longest: int) -> Iterator[int]:
    numbers = random.Random(seed)
    while True:
        yield numbers.randint(0, longest)


@pytest.mark.parametrize("data", [BROKEN, DEMO, TRUNCATED, WITH_QUARANTINE, HTML], ids=range(5))
@pytest.mark.parametrize("seed", range(20))
def test_chunks_do_not_change_the_result(data: bytes, seed: int) -> None:
    whole = oaimend.repair(data)
    output, repairer = push_all(chunks(data, random_sizes(seed, 1 + 9**(seed % 4))))
    assert output == whole.bytes
    assert repairer.take_report() == whole.report
    assert repairer.take_report() == ()
    summary = repairer.summary
    assert summary is not None
    assert (summary.outcome, summary.why, summary.repairs) == (
        whole.outcome, whole.summary.why, whole.summary.repairs
    )


def test_single_bytes_give_the_same_output_for_pages_of_the_corpus() -> None:
    inputs = sorted((PROJECT / "corpus" / "broken").glob("*/*/input.xml"))[::7]
    assert len(inputs) > 20
    for path in inputs:
        data = path.read_bytes()
        output, _ = push_all(data[at : at + 1] for at in range(len(data)))
        assert output == oaimend.repair(data).bytes, path


def test_first_bytes_leave_before_the_last_ones_arrive() -> None:
    repairer = oaimend.Repairer()
    split = BROKEN.index(b"oai:x:2")
    assert b"Fish &amp; chips" in repairer.push(BROKEN[:split])
    assert repairer.summary is None
    assert [entry.name for entry in repairer.take_report() if isinstance(entry, oaimend.Repair)] == ["bare-ampersand"]


def test_verdict_ends_reading_early() -> None:
    repairer = oaimend.Repairer()
    assert repairer.verdict is None
    for _ in range(100):
        repairer.push(HTML * 100)
        if repairer.verdict is not None:
            break
    assert repairer.verdict == "not-oai"


def test_ended_repairer_is_refused() -> None:
    repairer = oaimend.Repairer()
    repairer.finish()
    with pytest.raises(ValueError, match="create another"):
        repairer.push(b"x")
    with pytest.raises(ValueError, match="create another"):
        repairer.finish()


def test_reader_over_an_iterator() -> None:
    reader = oaimend.RepairReader(chunks(BROKEN, random_sizes(1, 50)))
    start = reader.read(10)
    assert start == REPAIRED[:10] and reader.summary is None
    assert reader.read() == REPAIRED[10:]
    assert reader.read(1) == b""
    assert reader.summary is not None and reader.summary.outcome == "repaired"
    assert reader.take_report() == oaimend.repair(BROKEN).report


def test_reader_over_a_file_for_code_that_reads_lines() -> None:
    with io.BufferedReader(oaimend.RepairReader(io.BytesIO(BROKEN))) as reader:
        assert list(reader) == REPAIRED.splitlines(keepends=True)
    closed = oaimend.RepairReader(io.BytesIO(BROKEN))
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.read(1)


def test_error_of_the_iterator_is_passed_on() -> None:
    def broken() -> Iterator[bytes]:
        yield BROKEN
        raise ConnectionResetError("on purpose")

    reader = oaimend.RepairReader(broken())
    with pytest.raises(ConnectionResetError, match="on purpose"):
        reader.read()
    assert reader.summary is None
