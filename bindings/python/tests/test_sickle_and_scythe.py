"""The interfaces of the repaired Sickle and Scythe."""

from __future__ import annotations

from typing import Any

import harvester_scythe
import oaimend
from conftest import Server
from defects import BY_NAME
from harvesting import Records
from oaimend.scythe import Scythe
from oaimend.sickle import Sickle
from oaipmh_scythe import HTTPConfig
from pages import BROKEN


def test_scythe_repairs_after_it_was_closed(provider: str) -> None:
    scythe = Scythe(provider + "bare-ampersand")
    for _ in range(2):
        records: Records = []
        harvester_scythe.harvest(scythe, records)
        assert records == BY_NAME["bare-ampersand"].expected()


def test_sickle_has_the_page_before_and_after(server: Server) -> None:
    server.body = BROKEN
    pages: list[oaimend.Page] = []
    sickle = Sickle(server.url, on_page=pages.append)
    response = sickle.harvest(verb="ListRecords", metadataPrefix="oai_dc", resumptionToken=None)
    assert response.http_response.url == pages[0].url
    assert "Fish &amp; chips" in response.raw
    assert response.xml.tag == "{http://www.openarchives.org/OAI/2.0/}OAI-PMH"
    assert response.http_response.content == BROKEN


def test_arguments_of_the_harvesters_are_passed_on(server: Server) -> None:
    server.body = BROKEN
    sickle = Sickle(server.url, "POST", max_retries=2, timeout=20)
    assert (sickle.http_method, sickle.max_retries, sickle.request_args) == ("POST", 2, {"timeout": 20})
    assert "Fish &amp; chips" in sickle.harvest(verb="ListRecords", metadataPrefix="oai_dc").raw
    with Scythe(server.url, http_config=HTTPConfig(http_method="POST", timeout=20)) as scythe:
        records: list[Any] = list(scythe.list_records())
    assert [record.metadata["title"] for record in records] == [["Fish & chips"], ["Café"]]
