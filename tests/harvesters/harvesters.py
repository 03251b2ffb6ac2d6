"""The harvesters of the tests: how each one is run, and the result of a harvest."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
VENV_PYTHON = TARGET / "harvesters-venv" / "bin" / "python"
HARVEST_SECONDS_MAX = 180


@dataclass(frozen=True, eq=False)
class Harvester:
    name: str
    # Prints the version; fails if the harvester is not installed.
    version_command: list
    command: list
    package: str
    # Sends all six verbs to one base URL; see `repositories.py`.
    verbs_command: list | None = None
    # Whether it needs a runtime that `scripts/harvesters install` does not install.
    is_optional: bool = False
    # Whether it requests each record by GetRecord.
    gets_each_record: bool = False

    def version(self):
        """The version of the harvester, or None if it is not installed."""
        try:
            ran = subprocess.run(self.version_command, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        return ran.stdout.strip() if ran.returncode == 0 else None

    def harvest(self, base_urls):
        """Returns the result for each base URL. If the harvester crashes, a new process harvests the rest."""
        results = []
        while len(results) < len(base_urls):
            ran = subprocess.run(
                [*self.command, *base_urls[len(results):]],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=HARVEST_SECONDS_MAX,
            )
            results += [Result(**json.loads(line)) for line in ran.stdout.splitlines()]
            if len(results) < len(base_urls):
                results.append(Result([], f"the harvester crashed with exit code {ran.returncode}"))
        return results


def python_version(package, python=VENV_PYTHON):
    return [python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))"]


# The perl of Debian: no other perl finds the modules of Debian packages.
PERL = "/usr/bin/perl"
NODE_FOLDER = TARGET / "harvesters-node"
PYOAI_PYTHON = TARGET / "harvesters-pyoai-venv" / "bin" / "python"
OMETHA_PYTHON = TARGET / "harvesters-ometha-venv" / "bin" / "python"

# The harvesters that send all six verbs.
HARVESTERS = [
    Harvester(
        "Sickle", python_version("Sickle"), [VENV_PYTHON, HERE / "with_sickle.py"], "PyPI",
        verbs_command=[VENV_PYTHON, HERE / "sickle_verbs.py"],
    ),
    Harvester(
        "oaipmh-scythe", python_version("oaipmh-scythe"), [VENV_PYTHON, HERE / "with_scythe.py"], "PyPI",
        verbs_command=[VENV_PYTHON, HERE / "scythe_verbs.py"],
    ),
    Harvester(
        "HTTP::OAI", [PERL, "-MHTTP::OAI", "-e", "print HTTP::OAI->VERSION"], [PERL, HERE / "with_http_oai.pl"],
        "Debian's libhttp-oai-perl", verbs_command=[PERL, HERE / "http_oai_verbs.pl"],
    ),
]
# The client of the package oaipmh, which also contains a provider.
CLIENT = Harvester(
    "oaipmh", python_version("oaipmh"), [VENV_PYTHON, HERE / "with_pyoai.py"], "PyPI",
    verbs_command=[VENV_PYTHON, HERE / "oaipmh_verbs.py"],
)
ALL_HARVESTERS = [
    *HARVESTERS,
    CLIENT,
    Harvester("pyoai", python_version("pyoai", PYOAI_PYTHON), [PYOAI_PYTHON, HERE / "with_pyoai.py"], "PyPI"),
    Harvester(
        "oaiharvest", python_version("oaiharvest", PYOAI_PYTHON), [PYOAI_PYTHON, HERE / "with_oaiharvest.py"], "PyPI",
    ),
    Harvester("kongin", python_version("kongin"), [VENV_PYTHON, HERE / "with_kongin.py"], "PyPI"),
    Harvester("oaipmharvest", python_version("oaipmharvest"), [VENV_PYTHON, HERE / "with_oaipmharvest.py"], "PyPI"),
    Harvester(
        "ometha", python_version("ometha", OMETHA_PYTHON), [OMETHA_PYTHON, HERE / "with_ometha.py"], "PyPI",
        is_optional=True, gets_each_record=True,
    ),
    Harvester(
        "Catmandu::OAI", [PERL, "-MCatmandu::OAI", "-e", "print Catmandu::OAI->VERSION"],
        [PERL, HERE / "with_catmandu.pl"], "Debian's libcatmandu-oai-perl",
    ),
    Harvester(
        "oai-pmh", ["node", "-p", f"require('{NODE_FOLDER}/node_modules/oai-pmh/package.json').version"],
        ["node", HERE / "with_oai_pmh.mjs", NODE_FOLDER], "npm", is_optional=True,
    ),
]


@dataclass(frozen=True)
class Result:
    records: list
    error: str | None

    def count_right(self, expected):
        return sum(1 for record in self.records if record in expected)

    def is_right(self, defect):
        """Whether the harvester got all records, or reported an error for an unrepairable defect."""
        expected = defect.expected()
        if defect.is_unrepairable:
            return self.error is not None and self.count_right(expected) == len(self.records)
        return self.error is None and self.records == expected

    def cell(self, defect):
        """The result as a cell of the table."""
        expected = defect.expected()
        count, wrong = len(self.records), len(self.records) - self.count_right(expected)
        if self.error is None and self.records == expected:
            return f"all {count}"
        cell = f"{count} of {len(expected)}"
        if wrong:
            cell += f", {wrong} damaged"
        return cell + (", error" if self.error else ", **no error**")


def installed(is_required, harvesters=HARVESTERS):
    """Returns the installed harvesters with their versions. Prints the missing ones, or ends the program."""
    versions = {harvester: harvester.version() for harvester in harvesters}
    missing = [harvester for harvester in harvesters if versions[harvester] is None]
    for harvester in missing:
        print(f"skipped: {harvester.name} ({harvester.package}) is not installed; see scripts/harvesters")
    if is_required and not all(harvester.is_optional for harvester in missing):
        raise SystemExit(1)
    return {harvester: version for harvester, version in versions.items() if version is not None}


def command_line(usage):
    """Returns the path of oaimend and whether all harvesters are required, or ends the program."""
    if len(sys.argv) < 2:
        raise SystemExit(usage)
    return str(Path(sys.argv[1]).resolve()), "--required" in sys.argv


def command_line_with_source(usage):
    """Returns the path of oaimend and the installed harvesters, or ends the program if there is no source."""
    oaimend, is_required = command_line(usage)
    harvesters = list(installed(is_required))
    if CLIENT.version() is None:
        print("skipped: the source (oaipmh, PyPI) is not installed; see scripts/harvesters")
        raise SystemExit(1 if is_required else 0)
    return oaimend, harvesters
