"""Harvests whole repositories with all six verbs by real harvesters, directly and through oaimend.

usage: repositories.py OAIMEND [--required]

One is served in OAI-PMH 2.0 by software that others wrote: each harvester must bring the same
through oaimend as directly, and that must be what the repository holds (`holdings.py`). Others are
served in 1.0 and 1.1 (`provider_one.py`), which most harvesters do not understand: through oaimend
each must bring what they hold, as far as 1.x can say it. What is not installed is skipped and named;
with --required that is a failure.
"""

import json
import subprocess
import sys
from pathlib import Path

import holdings
from run import HARVEST_SECONDS_MAX, HERE, VENV_PYTHON, Proxy, installed, python_version

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
    """A provider in a process of its own, which prints its port and ends with its standard input."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self):
        port = self.process.stdout.readline().strip()
        if not port:
            raise SystemExit(f"{self.process.args} did not start")
        return f"http://127.0.0.1:{port}/oai"

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def asked(harvester, base_url):
    """What the harvester made of the plan at that base URL; what it said itself where it failed."""
    command = [*harvester.verbs_command, base_url, json.dumps(PLAN)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HARVEST_SECONDS_MAX)
    if ran.returncode != 0:
        return {"failed": (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]}
    return json.loads(ran.stdout)


def header(one):
    return [one.identifier, one.datestamp, list(one.sets), one.deleted]


def record(one):
    return [*header(one), one.fields]


def held():
    """What the repository holds, in the words of `verbs.py`."""
    namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/"
    some_days = holdings.selected(from_=PLAN["from"], until=PLAN["until"])
    return {
        "identify": ["Holdings", "2.0", holdings.EARLIEST, "persistent", "YYYY-MM-DDThh:mm:ssZ",
                     "admin@harvest.example"],
        "formats": [["oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", namespace]],
        "sets": [[spec, name] for spec, name in holdings.SETS.items()],
        "identifiers": [header(one) for one in holdings.HOLDINGS],
        "records": [record(one) for one in holdings.HOLDINGS],
        "of_a_set": [record(one) for one in holdings.selected(set=PLAN["set"])],
        "of_some_days": [header(one) for one in some_days],
        "one": record(holdings.by_identifier(PLAN["identifier"])),
        "deleted": record(holdings.by_identifier(PLAN["deleted"])),
        "unknown": "idDoesNotExist",
        "none": "noRecordsMatch",
    }


def held_in_version_one():
    """The same as 1.x can say it: by days, of sets the one that was asked for, and no promise about deletions."""
    def in_days(one, sets=()):
        identifier, datestamp, _, *rest = one
        return [identifier, datestamp[:10], list(sets), *rest]

    held_in_two = held()
    lists = ("identifiers", "records", "of_some_days")
    return held_in_two | {name: [in_days(one) for one in held_in_two[name]] for name in lists} | {
        "of_a_set": [in_days(one, [PLAN["set"]]) for one in held_in_two["of_a_set"]],
        "identify": ["Holdings", "2.0", "1970-01-01", "transient", "YYYY-MM-DD", "admin@harvest.example"],
        "one": in_days(held_in_two["one"]),
        "deleted": in_days(held_in_two["deleted"]),
    }


def differences(got, meant):
    """Where two results differ, a line for each part."""
    if "failed" in got:
        yield got["failed"]
        return
    for part in sorted(set(got) | set(meant)):
        ours, theirs = got.get(part), meant.get(part)
        if ours == theirs:
            continue
        if isinstance(ours, list) and isinstance(theirs, list):
            pairs = [(one, other) for one, other in zip(ours, theirs) if one != other]
            told = f"{len(ours)} for {len(theirs)}, {len(pairs)} differ"
            yield f"{part}: {told}" + (f": {pairs[0][0]!r} for {pairs[0][1]!r}" if pairs else "")
        else:
            yield f"{part}: {ours!r} for {theirs!r}"


def compared(way, harvester, got, meant):
    """Prints what differs; gives whether anything does."""
    lines = list(differences(got, meant))
    for line in lines:
        print(f"{harvester.name} {way}, {line}"[:LINE_CHARS_MAX])
    return bool(lines)


def check_version_two(oaimend, harvesters):
    """A repository of 2.0, served by the package oaipmh; gives the number of harvesters that failed."""
    failed = 0
    with Source(VENV_PYTHON, HERE / "provider_oaipmh.py") as base_url:
        with Proxy(oaimend, {"holdings": base_url}) as proxy:
            for harvester in harvesters:
                direct = asked(harvester, base_url)
                proxied = asked(harvester, proxy.base_url("holdings"))
                wrong = compared("directly", harvester, direct, held())
                wrong |= compared("through oaimend against directly", harvester, proxied, direct)
                failed += wrong
                print(f"{harvester.name}: {len(proxied.get('records', []))} records of 2.0 through oaimend")
    return failed


def check_version_one(oaimend, harvesters, version):
    """A repository of 1.x; gives the number of harvesters that failed."""
    failed = 0
    for harvester in harvesters:
        # One that nothing is known of yet, for each.
        with Source(sys.executable, HERE / "provider_one.py", version) as base_url:
            with Proxy(oaimend, {"holdings": base_url}) as proxy:
                proxied = asked(harvester, proxy.base_url("holdings"))
        failed += compared(f"of {version} through oaimend", harvester, proxied, held_in_version_one())
        print(f"{harvester.name}: {len(proxied.get('records', []))} records of {version} through oaimend")
    return failed


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    oaimend, is_required = str(Path(sys.argv[1]).resolve()), "--required" in sys.argv
    harvesters = installed(is_required)
    failed = 0
    if VENV_PYTHON.exists() and subprocess.run(python_version("oaipmh"), capture_output=True).returncode == 0:
        failed += check_version_two(oaimend, harvesters)
    else:
        print("skipped: the provider of 2.0 (oaipmh, PyPI) is not installed; see scripts/harvesters")
        failed += is_required
    for version in ("1.0", "1.1"):
        failed += check_version_one(oaimend, harvesters, version)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
