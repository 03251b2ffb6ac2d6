"""The conformance check, by the program `oaimend`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

Profile = Literal["oai", "base", "openaire"]
Verdict = Literal["holds", "advice", "warning", "fails", "not judged"]


class CheckError(Exception):
    """The check could not run. The message says why and what to do.

    A repository that is down or breaks the rules is no error: the report says so.
    """


@dataclass(frozen=True)
class CheckedRule:
    """The finding for one rule. The names are those of `oaimend check --format json`."""

    rule: str
    """The name of the rule, as in docs/reference/conformance.md."""
    verdict: Verdict
    """Whether the rule holds."""
    section: str
    """The section of the specification."""
    expected: str
    """The content of the rule."""
    request: str
    """The first request with this verdict. Empty if there is none."""
    received: str
    """The relevant part of its response, or the reason why the rule is not judged."""
    responses: int
    """The number of responses with this verdict."""
    remedy: str
    """What the operator of the repository can do."""


@dataclass(frozen=True)
class CheckReport:
    """The result of a check."""

    base_url: str
    """The base URL that was checked."""
    profile: Optional[Profile]
    """The profile, if the report is limited to one."""
    requests: int
    """The number of requests sent."""
    stopped: Optional[str]
    """Why the check is incomplete; None if it is complete."""
    rules: tuple[CheckedRule, ...]
    """One finding for each rule."""

    def with_verdict(self, verdict: Verdict) -> tuple[CheckedRule, ...]:
        """The findings with this verdict."""
        return tuple(rule for rule in self.rules if rule.verdict == verdict)

    @property
    def fails(self) -> tuple[CheckedRule, ...]:
        """The rules that fail."""
        return self.with_verdict("fails")

    @property
    def warnings(self) -> tuple[CheckedRule, ...]:
        """The rules with a warning."""
        return self.with_verdict("warning")

    @property
    def advice(self) -> tuple[CheckedRule, ...]:
        """The rules with advice."""
        return self.with_verdict("advice")


def check(
    url: str,
    *,
    profile: Optional[Profile] = None,
    time_max_secs: Optional[int] = None,
    program: Union[str, os.PathLike[str], None] = None,
) -> CheckReport:
    """Checks a repository against the rules of OAI-PMH 2.0.

    Runs `oaimend check`, which sends about 60 requests and waits a second between them. The program is `program`, or
    the environment variable OAIMEND, or `oaimend` on the PATH.

    url: the base URL of the repository.
    profile: limits the report to the rules of one registry.
    time_max_secs: ends the check after this time. The default is an hour.

    Raises CheckError if the program is missing or cannot run the check.
    """
    command = [_find_program(program), "check", url, "--format", "json"]
    if profile is not None:
        command += ["--profile", profile]
    if time_max_secs is not None:
        command += ["--time-max-secs", str(time_max_secs)]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
    except OSError as error:
        raise CheckError(f"{command[0]} cannot be run: {error}") from error
    # 1 means that a rule fails.
    if ran.returncode not in (0, 1):
        message = ran.stderr.strip() or f"it ended with status {ran.returncode} and no message"
        raise CheckError(f"{command[0]} could not check {url}: {message}")
    try:
        return _parse_report(json.loads(ran.stdout))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckError(
            f"{command[0]} printed another report than this package reads ({error!r}); "
            "install the same version of the program and of the package"
        ) from error


def _find_program(program: Union[str, os.PathLike[str], None]) -> str:
    named = os.fspath(program) if program is not None else os.environ.get("OAIMEND") or "oaimend"
    found = shutil.which(named)
    if found is None:
        raise CheckError(
            f"the program {named} is missing. This package contains the repair engine, not the program that sends the "
            "requests of a check. Install it from the source of oaimend by `cargo install --locked --path .`, and put it on "
            "the PATH, or name its file by the argument `program` or the environment variable OAIMEND"
        )
    return found


def _parse_report(document: dict[str, Any]) -> CheckReport:
    names = CheckedRule.__dataclass_fields__
    return CheckReport(
        base_url=document["base_url"],
        profile=document["profile"],
        requests=document["requests"],
        stopped=document["stopped"],
        # Later versions may add keys.
        rules=tuple(CheckedRule(**{name: rule[name] for name in names}) for rule in document["rules"]),
    )
