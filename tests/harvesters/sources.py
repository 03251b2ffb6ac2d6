"""Harvests clean, broken, poisoned and dead sources by real harvesters, directly and through oaimend.

usage: sources.py OAIMEND [--required]

The program checks that each harvester gets the right records through oaimend, that a list without its end is an error
for the harvester, and that each harvest ends in time. It prints both tables of results. It skips harvesters that are
not installed and prints their names. With --required it fails instead.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harvesters import ALL_HARVESTERS, Harvester, Result, installed
from provider_sources import PAGE_RECORDS, POISONED, Provider, broken_page, expected_records
from proxy import Proxy, wait_until_mirrored

HARVEST_SECONDS_MAX = 90
# Through oaimend each harvest ends. On a busy machine that takes longer.
PROXIED_SECONDS_MAX = 300
# Many harvests of dead and poisoned sources wait most of the time. All of these run at once, and so many others:
WORKING_HARVESTS_AT_ONCE = 3
PAGES_BEFORE_END = 3
SETTINGS = """
base_url = "{base_url}"
{serve}
[limits]
first_record_timeout_secs = {record_seconds_max}
outage_retry_secs = {outage_seconds_max}
"""
# oaimend reports a dead source soon, and has time to find the poisoned records of one that answers.
RECORD_SECONDS_MAX, OUTAGE_SECONDS_MAX = 6, 10
POISONED_RECORD_SECONDS_MAX, POISONED_OUTAGE_SECONDS_MAX = 15, 120
MIRROR = 'serve = "live-then-mirror"\nmirror = {}'


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of source."""

    name: str
    title: str
    # The records that a harvester gets through oaimend.
    expected: list
    # Whether the harvester must report an error: the source ends, and there is no mirror.
    is_dead: bool = False
    # Whether oaimend has a mirror, so that there is no harvest without oaimend.
    has_mirror: bool = False
    is_poisoned: bool = False

    def heading(self):
        return f"{self.title}: {len(self.expected)} records"

    def settings(self, base_url):
        """The mapping of a source."""
        limits = (RECORD_SECONDS_MAX, OUTAGE_SECONDS_MAX)
        if self.is_poisoned:
            limits = (POISONED_RECORD_SECONDS_MAX, POISONED_OUTAGE_SECONDS_MAX)
        return SETTINGS.format(
            base_url=base_url, serve=MIRROR if self.has_mirror else "",
            record_seconds_max=limits[0], outage_seconds_max=limits[1],
        )


KINDS = [
    Kind("clean", "clean", expected_records()),
    Kind("broken", "broken", expected_records(is_broken=True)),
    Kind("poisoned", "poisoned", expected_records(without=POISONED), is_poisoned=True),
    Kind("unreachable", "unreachable", [], is_dead=True),
    Kind("ending", f"ends after page {PAGES_BEFORE_END}", expected_records()[:PAGES_BEFORE_END * PAGE_RECORDS],
         is_dead=True),
    Kind("mirrored", f"ends after page {PAGES_BEFORE_END}, with a mirror", expected_records(), has_mirror=True),
]


def matches(got, expected):
    """Whether a record is right. Some harvesters return no datestamp."""
    return all(field is None and at == 1 or field == right for at, (field, right) in enumerate(zip(got, expected)))


@dataclass(frozen=True)
class Run:
    """One harvest: who, of which kind of source, whether through oaimend, and the result."""

    harvester: Harvester
    kind: Kind
    is_proxied: bool
    # None if the harvest did not end in time.
    result: Result | None
    seconds: float

    def count_right(self):
        """The number of different right records. The mirror has datestamps of its own."""
        by_identifier = {}
        for record in self.result.records:
            by_identifier[record[0]] = [record[0], None, *record[2:]] if self.kind.has_mirror else record
        return sum(
            right[0] in by_identifier and matches(by_identifier[right[0]], right) for right in self.kind.expected
        )

    def cell(self):
        """The result as a cell of the table."""
        if self.result is None:
            return f"no end in {seconds_max(self.is_proxied)} s"
        count, right = len(self.result.records), self.count_right()
        cell = f"{right}"
        if count > right:
            cell += f", {count - right} wrong"
        is_whole = count == right == len(self.kind.expected) and not self.kind.is_dead
        error = ", error" if self.result.error else "" if is_whole else ", **no error**"
        return f"{cell}{error}"

    def faults(self, quarantined):
        """Describes each violation in a harvest through oaimend."""
        if self.result is None:
            return [f"no end in {seconds_max(self.is_proxied)} s"]
        faults = []
        count, right, expected = len(self.result.records), self.count_right(), len(self.kind.expected)
        if count > right or (right < expected and not self.kind.is_dead):
            faults.append(f"{right} of {expected} records are right, and {count} came")
        # An error is right if the source is dead, and if the harvester requested the poisoned records themselves.
        gets_error = self.kind.is_dead or (self.kind.is_poisoned and self.harvester.gets_each_record)
        if gets_error and self.result.error is None:
            faults.append("no error, although records are missing")
        elif not gets_error and self.result.error is not None:
            faults.append(f"an error: {self.result.error.splitlines()[0]}")
        if self.kind.is_poisoned and not self.harvester.gets_each_record and quarantined < len(POISONED):
            faults.append(f"{quarantined} records in quarantine instead of {len(POISONED)}")
        return faults


def seconds_max(is_proxied):
    """The longest time of a harvest."""
    return PROXIED_SECONDS_MAX if is_proxied else HARVEST_SECONDS_MAX


def harvest(harvester, base_url, timeout_seconds):
    """Returns the result of a harvest, or None if it takes too long, and its seconds."""
    start = time.monotonic()
    # The harvester is ended together with the programs that it starts.
    process = subprocess.Popen(
        [*harvester.command, base_url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {"MAY_WAIT": "1"}, start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, time.monotonic() - start
    seconds = time.monotonic() - start
    if process.returncode != 0:
        return Result([], f"the harvester crashed with exit code {process.returncode}"), seconds
    return Result(**json.loads(output)), seconds


def start_source(kind, address):
    """Starts a source at an address. Returns the provider."""
    if kind.name == "broken":
        return Provider(address, broken_page)
    source = Provider(address, poisoned=POISONED if kind.is_poisoned else ())
    if kind.name == "ending":
        source.pages_left = PAGES_BEFORE_END
    elif kind.name == "unreachable":
        source.end()
    return source


@dataclass(frozen=True)
class Job:
    """One harvest that is to be made."""

    name: str
    harvester: Harvester
    kind: Kind
    is_proxied: bool
    source: Provider

    def waits(self):
        """Whether the harvester or oaimend waits most of the time."""
        is_slow = self.is_proxied or self.harvester.gets_each_record
        return is_slow and (self.kind.is_dead or self.kind.is_poisoned)

    def run(self, proxy):
        if self.kind.has_mirror:
            wait_until_mirrored(proxy.base_url(f"_mirror/{self.name}"))
            self.source.pages_left = PAGES_BEFORE_END
        base_url = proxy.base_url(self.name) if self.is_proxied else self.source.base_url
        result, seconds = harvest(self.harvester, base_url, seconds_max(self.is_proxied))
        return Run(self.harvester, self.kind, self.is_proxied, result, seconds)


def start_jobs(harvesters):
    """Starts a source for each harvest: of each kind, by each harvester, without and with oaimend."""
    harvests = [
        (harvester, kind, is_proxied) for kind in KINDS for harvester in harvesters for is_proxied in (False, True)
        if is_proxied or not kind.has_mirror
    ]
    return [
        Job(f"{kind.name}-{at}", harvester, kind, is_proxied, start_source(kind, f"127.0.1.{at}"))
        for at, (harvester, kind, is_proxied) in enumerate(harvests, 1)
    ]


def measure(oaimend, harvesters):
    """Makes all harvests. Returns the runs, each with the number of records that oaimend quarantined in it."""
    jobs = start_jobs(harvesters)
    files = {
        f"mappings/{job.name}.toml": job.kind.settings(job.source.base_url) for job in jobs if job.is_proxied
    }
    with (
        Proxy(oaimend, {}, files) as proxy,
        ThreadPoolExecutor(sum(job.waits() for job in jobs)) as waiting,
        ThreadPoolExecutor(WORKING_HARVESTS_AT_ONCE) as working,
    ):
        futures = [(waiting if job.waits() else working).submit(job.run, proxy) for job in jobs]
        runs = [future.result() for future in futures]
        quarantined = dict.fromkeys((job.name for job in jobs), 0)
        for line in proxy.log_lines():
            if line.get("repo") in quarantined:
                quarantined[line["repo"]] += line.get("quarantined", 0)
    return [(run, quarantined[job.name]) for job, run in zip(jobs, runs)]


def check(results):
    """Prints each violation in a harvest through oaimend, and a line for each kind. Returns the number of violations."""
    failed = 0
    for kind in KINDS:
        of_kind = [(run, count) for run, count in results if run.kind is kind and run.is_proxied]
        for run, quarantined in of_kind:
            for fault in run.faults(quarantined):
                failed += 1
                print(f"{run.harvester.name} through oaimend, source {kind.title}: {fault}")
        print(f"source {kind.title}: {len(of_kind)} harvesters through oaimend, {failed} wrong so far")
    return failed


def table(results, is_proxied):
    """The harvests without or with oaimend: one row for all harvesters with the same cells, and one for the times."""
    kinds = [kind for kind in KINDS if is_proxied or not kind.has_mirror]
    runs = [[run for run, _ in results if run.kind is kind and run.is_proxied == is_proxied] for kind in kinds]
    way = "through oaimend" if is_proxied else "alone"
    lines = [f"| {way} | " + " | ".join(kind.heading() for kind in kinds) + " |", "|---|" + "---|" * len(kinds)]
    harvesters = {}
    for of_harvester in zip(*runs):
        harvesters.setdefault(tuple(run.cell() for run in of_harvester), []).append(of_harvester[0].harvester.name)
    rows = [(", ".join(names), cells) for cells, names in harvesters.items()]
    rows.append(("seconds", [seconds(of_kind) for of_kind in runs]))
    return "\n".join(lines + [f"| {title} | {' | '.join(cells)} |" for title, cells in rows])


def seconds(runs):
    """The shortest and the longest time of the harvests that ended."""
    times = [max(1, round(run.seconds)) for run in runs if run.result is not None]
    return f"{min(times)} to {max(times)}"


def section(results, versions):
    """The section of docs/explanation/harvesters.md about the sources."""
    of_package = {}
    for harvester, version in versions.items():
        of_package.setdefault(harvester.package, []).append(f"{harvester.name} {version}")
    names = "; ".join(f"{', '.join(same)} from {package}" for package, same in of_package.items())
    harvesters = textwrap.fill(f"The harvesters are {names}.", width=118)
    return f"""## Clean, broken, poisoned and dead sources

`scripts/harvesters sources` harvests 200 records on ten pages from six kinds of sources:

- *broken* has all repairable defects of the table above, in records and around them;
- at *poisoned*, record {POISONED[0]} makes its page fail with status 500, and record {POISONED[1]} makes its page
  break off, at every attempt;
- *unreachable* refuses connections;
- one that *ends* refuses them after page {PAGES_BEFORE_END}, for good. With a mirror, oaimend has mirrored it before
  (`serve = "live-then-mirror"`).

A cell contains the number of right records, and whether the harvester reported an error. The heading says how many
records the source can deliver.

{table(results, is_proxied=False)}

Through oaimend, `limits.first_record_timeout_secs` is {RECORD_SECONDS_MAX} and `limits.outage_retry_secs` is
{OUTAGE_SECONDS_MAX}, for poisoned sources {POISONED_RECORD_SECONDS_MAX} and {POISONED_OUTAGE_SECONDS_MAX}. Longer
values make the harvests of poisoned and ending sources longer.

{table(results, is_proxied=True)}

The two poisoned records are in quarantine, and the list continues after them. When the source ends, oaimend first
sends status 503 with `Retry-After: 30`, for which most harvesters wait, and then 502. No harvester takes the list
for complete. With a mirror, the list continues from the copy.

{harvesters}

- ometha requests each record by itself, so it receives an error for the poisoned ones. Alone it does not stop if a
  source ends, because it uses the last page again. Its long waits after errors are divided by 100 here.
- Catmandu::OAI does not deliver the last record of a page if the next page fails.
- The program of oaipmharvest fails when it writes a page, so the test uses its library.
"""


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    harvesters = installed("--required" in sys.argv, ALL_HARVESTERS)
    if not harvesters:
        raise SystemExit(0)
    results = measure(str(Path(sys.argv[1]).resolve()), harvesters)
    print(table(results, is_proxied=False), table(results, is_proxied=True), sep="\n\n", end="\n\n")
    raise SystemExit(1 if check(results) else 0)


if __name__ == "__main__":
    main()
