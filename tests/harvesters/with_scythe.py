"""Harvests each base URL by oaipmh-scythe and prints the records as a line of JSON."""

import json
import sys

from oaipmh_scythe import Scythe

for base_url in sys.argv[1:]:
    records, error = [], None
    try:
        with Scythe(base_url) as scythe:
            for record in scythe.list_records(metadata_prefix="oai_dc"):
                texts = [record.metadata.get(name, [None])[0] for name in ("title", "description")]
                records.append([record.header.identifier, record.header.datestamp, *texts])
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    print(json.dumps({"records": records, "error": error}), flush=True)
