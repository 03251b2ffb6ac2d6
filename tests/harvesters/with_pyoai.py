"""Harvests each base URL by the module oaipmh and prints the records as a line of JSON.

Two packages have this module: pyoai, and its successor oaipmh. Both send their requests by POST.
"""

import json
import sys

from oaipmh.client import Client
from oaipmh.metadata import MetadataRegistry, oai_dc_reader

for base_url in sys.argv[1:]:
    records, error = [], None
    try:
        registry = MetadataRegistry()
        registry.registerReader("oai_dc", oai_dc_reader)
        for header, metadata, _ in Client(base_url, registry).listRecords(metadataPrefix="oai_dc"):
            texts = [(metadata.getField(name) or [None])[0] for name in ("title", "description")]
            records.append([header.identifier(), header.datestamp().strftime("%Y-%m-%dT%H:%M:%SZ"), *texts])
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    print(json.dumps({"records": records, "error": error}), flush=True)
