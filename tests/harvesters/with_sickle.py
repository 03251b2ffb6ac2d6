"""Harvests each base URL by Sickle and prints the records as a line of JSON."""

import json
import sys

from sickle import Sickle

for base_url in sys.argv[1:]:
    records, error = [], None
    try:
        for record in Sickle(base_url, timeout=20).ListRecords(metadataPrefix="oai_dc"):
            texts = [record.metadata.get(name, [None])[0] for name in ("title", "description")]
            records.append([record.header.identifier, record.header.datestamp, *texts])
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    print(json.dumps({"records": records, "error": error}), flush=True)
