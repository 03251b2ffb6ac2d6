"""Harvests each base URL by oaipmharvest and prints the records as a line of JSON.

oaipmharvest harvests pages. Its program fails when it writes the first one (KeyError in version 0.0.7). Therefore this
uses its library and takes the pages.
"""

import json
import sys
import tempfile
from pathlib import Path

import stored
from oaipmharvest.oaistuff import Endpoint
from oaipmharvest.settings import DEFAULT_SETTINGS

for base_url in sys.argv[1:]:
    records, error = [], None
    with tempfile.TemporaryDirectory() as folder:
        settings = DEFAULT_SETTINGS | {"out_dir": Path(folder), "harvest_delay": 0}
        try:
            endpoint = Endpoint(base_url, settings=settings, timeout=20)
            endpoint.harvest(dispatch=lambda page, meta: records.extend(stored.records_of(page.xml)))
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
    print(json.dumps({"records": records, "error": error}), flush=True)
