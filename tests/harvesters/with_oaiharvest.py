"""Harvests each base URL by oaiharvest and prints the records as a line of JSON.

oaiharvest writes the metadata of each record to a file, and no datestamps.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import stored

PROGRAM = Path(sys.executable).with_name("oai-harvest")


def harvest(base_url, folder):
    files = folder / "records"
    code, output = stored.run([PROGRAM, "--dir", files, base_url], folder)
    records = [
        [path.name.removesuffix(".oai_dc.xml"), None, *stored.texts_of(ElementTree.parse(path))]
        for path in sorted(files.glob("*.xml"))
    ]
    # The program ends with 0 after an error. Then it prints the error.
    error = stored.last_line(output, "ERROR", "Error")
    return records, error or (f"exit code {code}" if code else None)


stored.harvest_each(harvest)
