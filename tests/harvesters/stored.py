"""Runs harvesters that are programs, and reads the records in what they store."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

OAI = "{http://www.openarchives.org/OAI/2.0/}"
DC = "{http://purl.org/dc/elements/1.1/}"


def texts_of(element):
    """The first title and the first description in an element."""
    return [element.findtext(f".//{DC}{name}") for name in ("title", "description")]


def records_of(response):
    """The records in a parsed OAI-PMH response."""
    for record in response.iter(f"{OAI}record"):
        header = record.find(f"{OAI}header")
        yield [header.findtext(f"{OAI}identifier"), header.findtext(f"{OAI}datestamp"), *texts_of(record)]


def records_of_file(path):
    """The records in a file with an OAI-PMH response. If it is not XML, this is one record without texts."""
    try:
        return list(records_of(ElementTree.parse(path)))
    except ElementTree.ParseError:
        return [[path.name, None, None, None]]


def run(command, folder):
    """Runs a program. Its home is the folder. Returns its exit code and its output, standard error included."""
    ran = subprocess.run(
        command, cwd=folder, env=os.environ | {"HOME": str(folder)}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    return ran.returncode, ran.stdout


def last_line(text, *words):
    """The last line that contains one of the words."""
    lines = [line for line in text.splitlines() if any(word in line for word in words)]
    return lines[-1] if lines else None


def harvest_each(harvest):
    """Calls `harvest(base_url, folder)` for each argument and prints the result as a line of JSON.

    The function returns the records and the error.
    """
    for base_url in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                records, error = harvest(base_url, Path(folder))
            except Exception as exception:
                records, error = [], f"{type(exception).__name__}: {exception}"
        print(json.dumps({"records": records, "error": error}), flush=True)
