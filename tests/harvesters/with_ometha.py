"""Harvests each base URL by ometha and prints the records as a line of JSON.

ometha requests each record by GetRecord and writes the responses to files. After errors it waits about 20 minutes in
all. Here its waits are divided by WAITS_DIVISOR.
"""

import sys

import stored

WAITS_DIVISOR = 100
PROGRAM = f"""
import time
wait = time.sleep
time.sleep = lambda seconds: wait(seconds / {WAITS_DIVISOR})
from ometha.main import main
main()
"""
# Without this file, ometha asks for it.
SETTINGS = "User-Agent: ometha\nFrom: test@harvest.example\nasciiart: false\n"


def harvest(base_url, folder):
    (folder / ".ometha").write_text(SETTINGS)
    files = folder / "records"
    code, output = stored.run(
        [sys.executable, "-c", PROGRAM, "default", "-b", base_url, "-m", "oai_dc", "-d", "source", "-o", files], folder
    )
    records = [record for path in sorted(files.rglob("*.xml")) for record in stored.records_of_file(path)]
    log = "".join(path.read_text() for path in files.rglob("*.log"))
    # The program ends with 0 after most errors. Then its log contains the error.
    error = stored.last_line(log, "| CRITICAL", "| ERROR", "| WARNING")
    return records, error or (f"exit code {code}: {stored.last_line(output, 'Error')}" if code else None)


stored.harvest_each(harvest)
