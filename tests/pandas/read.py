"""Prints what pandas finds in a dump, as JSON.

usage: read.py jsonl|csv FILE
"""

import json
import sys

import pandas

form, path = sys.argv[1:]
if form == "jsonl":
    table = pandas.read_json(path, lines=True, dtype=False, convert_dates=False)
else:
    table = pandas.read_csv(path, keep_default_na=False, dtype=str)
    table["deleted"] = table["deleted"] == "true"
print(json.dumps({
    "columns": list(table.columns),
    "records": len(table),
    "deleted": int(table["deleted"].sum()),
    "identifiers": sorted(table["identifier"]),
    "titles": sorted(table["dc_title"]) if "dc_title" in table else None,
}))
