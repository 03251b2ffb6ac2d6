"""Harvests whole repositories with all six verbs by real harvesters, directly and through oaimend.

usage: repositories.py OAIMEND [--required]

Third-party software serves one repository in OAI-PMH 2.0. Each harvester must get the same records
directly and through oaimend, and these must be the records in `holdings.py`. `provider_one.py` serves
the same records in 1.0 and 1.1, which most harvesters do not support. Through oaimend each harvester
must get them, as far as 1.x can express them. The program skips harvesters that are not installed and
prints their names. With --required it fails instead.
"""

import json
import subprocess
import sys

import holdings
from harvesters import CLIENT, HARVEST_SECONDS_MAX, HERE, VENV_PYTHON, command_line, installed
from proxy import Proxy

PLAN = {
    "set": "col",
    "from": "2025-03-02",
    "until": "2025-05-01",
    "identifier": holdings.HOLDINGS[7].identifier,
    "deleted": next(one.identifier for one in holdings.HOLDINGS if one.deleted),
    "unknown": "oai:harvest.example:unknown",
    "never": "2031-01-01",
}
LINE_CHARS_MAX = 600


class Source:
    """A provider in a process of its own. It prints its port and ends when its standard input closes."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self):
        port = self.process.stdout.readline().strip()
        if not port:
            raise SystemExit(f"{self.process.args} did not start")
        return f"http://127.0.0.1:{port}/oai"

    def write_line(self, line):
        """Writes a line to the standard input of the provider."""
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def change(self, number, fields):
        """Changes a record of `provider_oaipmh.py`, and waits until it is changed."""
        self.write_line(json.dumps([number, fields]))
        self.process.stdout.readline()

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def run_plan(harvester, base_url, plan=PLAN):
    """Runs a plan with a harvester. Returns its results, or its last error line if it fails."""
    command = [*harvester.verbs_command, base_url, json.dumps(plan)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HARVEST_SECONDS_MAX)
    if ran.returncode != 0:
        return {"failed": (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]}
    return json.loads(ran.stdout)


def header(one):
    return [one.identifier, one.datestamp, list(one.sets), one.deleted]


def record(one):
    return [*header(one), one.fields]


def expected_results(plan=PLAN):
    """The correct results of a plan, in the form of `verbs.py`."""
    namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/"
    in_window = holdings.selected(from_=plan["from"], until=plan["until"])
    return {
        "identify": ["Holdings", "2.0", holdings.EARLIEST, "persistent", "YYYY-MM-DDThh:mm:ssZ",
                     "admin@harvest.example"],
        "formats": [["oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", namespace]],
        "sets": [[spec, name] for spec, name in holdings.SETS.items()],
        "identifiers": [header(one) for one in holdings.HOLDINGS],
        "records": [record(one) for one in holdings.HOLDINGS],
        "set_records": [record(one) for one in holdings.selected(set=plan["set"])],
        "window_headers": [header(one) for one in in_window],
        "record": record(holdings.by_identifier(plan["identifier"])),
        "deleted": record(holdings.by_identifier(plan["deleted"])),
        "unknown": "idDoesNotExist",
        "none": "noRecordsMatch",
    }


def expected_results_of_version_one():
    """The correct results for 1.x: datestamps are days, only the requested set is known, deletions are transient."""
    def in_days(one, sets=()):
        identifier, datestamp, _, *rest = one
        return [identifier, datestamp[:10], list(sets), *rest]

    results_of_two = expected_results()
    lists = ("identifiers", "records", "window_headers")
    return results_of_two | {name: [in_days(one) for one in results_of_two[name]] for name in lists} | {
        "set_records": [in_days(one, [PLAN["set"]]) for one in results_of_two["set_records"]],
        "identify": ["Holdings", "2.0", "1970-01-01", "transient", "YYYY-MM-DD", "admin@harvest.example"],
        "record": in_days(results_of_two["record"]),
        "deleted": in_days(results_of_two["deleted"]),
    }


def differences(got, expected):
    """Describes the differences of two results, one line for each part."""
    if "failed" in got:
        yield got["failed"]
        return
    for part in sorted(set(got) | set(expected)):
        actual, wanted = got.get(part), expected.get(part)
        if actual == wanted:
            continue
        if isinstance(actual, list) and isinstance(wanted, list):
            pairs = [(one, other) for one, other in zip(actual, wanted) if one != other]
            counts = f"{len(actual)} items instead of {len(wanted)}, {len(pairs)} differ"
            yield f"{part}: {counts}" + (f": {pairs[0][0]!r} instead of {pairs[0][1]!r}" if pairs else "")
        else:
            yield f"{part}: {actual!r} instead of {wanted!r}"


def report_differences(way, harvester, got, expected):
    """Prints the differences; returns whether there are any."""
    lines = list(differences(got, expected))
    for line in lines:
        print(f"{harvester.name} {way}, {line}"[:LINE_CHARS_MAX])
    return bool(lines)


def check_version_two(oaimend, harvesters):
    """Checks a repository of 2.0, served by the package oaipmh. Returns the number of failed harvesters."""
    failed = 0
    with Source(VENV_PYTHON, HERE / "provider_oaipmh.py") as base_url:
        with Proxy(oaimend, {"holdings": base_url}) as proxy:
            for harvester in harvesters:
                direct = run_plan(harvester, base_url)
                proxied = run_plan(harvester, proxy.base_url("holdings"))
                wrong = report_differences("directly", harvester, direct, expected_results())
                wrong |= report_differences("through oaimend, compared with directly", harvester, proxied, direct)
                failed += wrong
                print(f"{harvester.name}: {len(proxied.get('records', []))} records of 2.0 through oaimend")
    return failed


def check_version_one(oaimend, harvesters, version):
    """Checks a repository of 1.x. Returns the number of failed harvesters."""
    failed = 0
    for harvester in harvesters:
        # Each harvester gets a new source and a new proxy, so that nothing is known of the source.
        with Source(sys.executable, HERE / "provider_one.py", version) as base_url:
            with Proxy(oaimend, {"holdings": base_url}) as proxy:
                proxied = run_plan(harvester, proxy.base_url("holdings"))
        failed += report_differences(f"of {version} through oaimend", harvester, proxied, expected_results_of_version_one())
        print(f"{harvester.name}: {len(proxied.get('records', []))} records of {version} through oaimend")
    return failed


def main():
    oaimend, is_required = command_line(__doc__)
    harvesters = installed(is_required)
    failed = 0
    if CLIENT.version() is not None:
        failed += check_version_two(oaimend, harvesters)
    else:
        print("skipped: the provider of 2.0 (oaipmh, PyPI) is not installed; see scripts/harvesters")
        failed += is_required
    for version in ("1.0", "1.1"):
        failed += check_version_one(oaimend, harvesters, version)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
