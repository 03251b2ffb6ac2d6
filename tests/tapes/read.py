"""Reads a tape with Python's gzip and ElementTree, and with XML::Tape, and prints what each finds.

    read.py TAPE FOLDER

FOLDER is that of the Perl modules. scripts/tapes calls this.
"""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

TAPE = "{http://library.lanl.gov/2005-08/aDORe/XMLtape/}"


def by_element_tree(tape):
    """The records as identifier, date and canonical XML of the payload."""
    records, depth = [], 0
    with gzip.open(tape) as file:
        for event, element in ET.iterparse(file, ["start", "end"]):
            depth += 1 if event == "start" else -1
            # A payload may contain elements with the names of a tape.
            if event == "start" or depth != 1 or element.tag != TAPE + "tapeRecord":
                continue
            admin = element.find(TAPE + "tapeRecordAdmin")
            payload = ET.tostring(element.find(TAPE + "record")[0], encoding="unicode")
            records.append(
                [admin.findtext(TAPE + "identifier"), admin.findtext(TAPE + "date"), canonical(payload)]
            )
            element.clear()
    return records


def canonical(xml):
    """Without comments and instructions, which ElementTree does not keep."""
    return ET.canonicalize(ET.tostring(ET.fromstring(xml), encoding="unicode"))


def by_xml_tape(tape, modules):
    """The same with the payloads as they are, as XML::Tape cuts the payloads out of the tape: each must be a document of its own."""
    script = pathlib.Path(__file__).with_name("tape.pl")
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder, "tape.xml")
        with gzip.open(tape) as file:
            plain.write_bytes(file.read())
        command = ["perl", "-I", modules, str(script), "read", str(plain)]
        lines = subprocess.run(command, check=True, capture_output=True).stdout.decode().splitlines()
    records = [json.loads(line) for line in lines]
    return records


tape, modules = sys.argv[1:]
python, perl = by_element_tree(tape), by_xml_tape(tape, modules)
comparable = [[identifier, date, canonical(xml)] for identifier, date, xml in perl]
print(json.dumps({"records": perl, "agree": python == comparable}))
