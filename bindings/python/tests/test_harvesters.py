"""Real harvesters and a repository with one defect at a time, alone and with the line that adds repair.

The repositories and their correct records are those of tests/harvesters of the project. The environment variable
HARVESTERS names the harvesters: the default is those that can be installed together.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Optional

import pytest

import oaimend
from conftest import Server
from defects import BY_NAME, DEFECTS
from harvesting import Harvester, Records
from pages import QUARANTINED_RECORD, WITH_QUARANTINE

NAMES = os.environ.get("HARVESTERS", "sickle scythe").split()
HARVESTERS: list[Harvester] = [importlib.import_module(f"harvester_{name}").HARVESTER for name in NAMES]
each_harvester = pytest.mark.parametrize("harvester", HARVESTERS, ids=[one.name for one in HARVESTERS])
each_defect = pytest.mark.parametrize("name", [defect.name for defect in DEFECTS])


def harvest(harvester: Harvester, client: Any) -> tuple[Records, Optional[Exception]]:
    records: Records = []
    try:
        harvester.harvest(client, records)
    except Exception as error:
        return records, error
    return records, None


@each_harvester
@each_defect
def test_harvester_gets_all_records_with_repair(harvester: Harvester, name: str, provider: str) -> None:
    defect = BY_NAME[name]
    records, error = harvest(harvester, harvester.repaired(provider + name))
    if defect.is_unrepairable:
        assert isinstance(error, oaimend.PageError)
        assert all(record in defect.expected() for record in records)
    else:
        assert (records, error) == (defect.expected(), None)


@each_harvester
@each_defect
def test_harvester_alone_loses_or_damages_records(harvester: Harvester, name: str, provider: str) -> None:
    defect = BY_NAME[name]
    records, error = harvest(harvester, harvester.alone(provider + name))
    is_right = error is None and records == defect.expected()
    assert is_right == (name in harvester.harmless)


@each_harvester
def test_quarantined_record_is_reported(harvester: Harvester, server: Server) -> None:
    server.body = WITH_QUARANTINE
    pages: list[oaimend.Page] = []
    # The datestamps of this page are days.
    records, error = harvest(harvester, harvester.repaired(server.url, on_page=pages.append))
    assert error is None and [record[0] for record in records] == ["oai:x:1"]
    (page,) = pages
    assert page.url == f"{server.url}?metadataPrefix=oai_dc&verb=ListRecords" or page.url.endswith(
        "?verb=ListRecords&metadataPrefix=oai_dc"
    )
    assert [item.raw.strip() for item in page.quarantined] == [QUARANTINED_RECORD.strip()]


@each_harvester
def test_truncated_page_is_kept_on_demand(harvester: Harvester, provider: str) -> None:
    client = harvester.repaired(provider + "truncated", allow_truncated=True)
    records, error = harvest(harvester, client)
    assert (records, error) == (BY_NAME["truncated"].expected()[:3], None)


@each_harvester
def test_options_reach_the_engine(harvester: Harvester, provider: str) -> None:
    options = oaimend.Options(off=["bare-ampersand"])
    records, error = harvest(harvester, harvester.repaired(provider + "bare-ampersand", options=options))
    assert error is None and len(records) == 9


@each_harvester
def test_error_of_the_repair_is_one_of_the_harvester(harvester: Harvester, provider: str) -> None:
    _, error = harvest(harvester, harvester.repaired(provider + "html-page"))
    assert isinstance(error, harvester.request_error) and "HTML page" in str(error)


@each_harvester
def test_error_of_the_repository_is_passed_on(harvester: Harvester, provider: str) -> None:
    with pytest.raises(harvester.bad_verb):
        harvester.list_sets(harvester.repaired(provider + "none"))
