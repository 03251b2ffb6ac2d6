"""Harvests each base URL by kongin and prints the records as a line of JSON."""

import json
import sys

from kongin import OAIClient

for base_url in sys.argv[1:]:
    records, error = [], None
    try:
        for record in OAIClient(base_url, timeout=20).list_records(metadata_prefix="oai_dc"):
            records.append([record.identifier, record.datestamp, record.title, record.description])
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    print(json.dumps({"records": records, "error": error}), flush=True)
