"""Validates TOML files by a JSON Schema: json_schema.py SCHEMA FILE...

Prints a line for each file: "FILE: valid", or "FILE: " and its first fault.
"""

import json
import sys
import tomllib

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

schema_file, *files = sys.argv[1:]
with open(schema_file, encoding="utf-8") as schema:
    schema = json.load(schema)
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
for name in files:
    with open(name, "rb") as file:
        fault = best_match(validator.iter_errors(tomllib.load(file)))
    print(f"{name}: {'valid' if fault is None else fault.message}")
