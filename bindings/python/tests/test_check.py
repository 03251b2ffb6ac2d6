"""`oaimend.check`, with stand-ins for the program and with the program itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import oaimend

RULE = {
    "rule": "answers", "verdict": "fails", "section": "3.1", "expected": "a", "received": "b", "remedy": "c",
    "request": "verb=Identify", "responses": 2,
}
REPORT = {
    "base_url": "http://x.example/oai", "profile": None, "requests": 3, "stopped": None,
    "holds": 0, "fails": 1, "warnings": 1, "advice": 1, "not_judged": 0,
    "rules": [RULE, {**RULE, "verdict": "warning", "a-later-key": 1}, {**RULE, "verdict": "advice"}],
}


def program(folder: Path, output: str, status: int, message: str = "") -> str:
    """A stand-in that prints `output` and writes its arguments to a file."""
    path = folder / "program"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(folder / 'arguments')!r}, 'w').write('\\n'.join(sys.argv[1:]))\n"
        f"sys.stdout.write({output!r})\nsys.stderr.write({message!r})\nsys.exit({status})\n"
    )
    path.chmod(0o755)
    return str(path)


def test_report_has_types(tmp_path: Path) -> None:
    report = oaimend.check(
        "http://x.example/oai", profile="base", time_max_secs=9, program=program(tmp_path, json.dumps(REPORT), 1)
    )
    assert (report.base_url, report.profile, report.requests, report.stopped) == ("http://x.example/oai", None, 3, None)
    assert [len(report.fails), len(report.warnings), len(report.advice), len(report.rules)] == [1, 1, 1, 3]
    assert report.fails[0] == oaimend.CheckedRule(**RULE)  # type: ignore[arg-type]
    assert (tmp_path / "arguments").read_text().split("\n") == [
        "check", "http://x.example/oai", "--format", "json", "--profile", "base", "--time-max-secs", "9"
    ]


def test_program_is_found_by_the_variable_and_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, json.dumps(REPORT), 0)
    monkeypatch.setenv("OAIMEND", path)
    assert oaimend.check("http://x.example/oai").requests == 3
    monkeypatch.delenv("OAIMEND")
    os.rename(path, tmp_path / "oaimend")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert oaimend.check("http://x.example/oai").requests == 3


def test_missing_program_is_an_error_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OAIMEND", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(oaimend.CheckError, match="oaimend is missing.*cargo install.*OAIMEND"):
        oaimend.check("http://x.example/oai")


def test_failure_of_the_program_is_an_error_with_its_message(tmp_path: Path) -> None:
    failing = program(tmp_path, "", 64, 'oaimend: "x" is not a base URL\n')
    with pytest.raises(oaimend.CheckError, match='could not check x: oaimend: "x" is not a base URL'):
        oaimend.check("x", program=failing)
    with pytest.raises(oaimend.CheckError, match="ended with status 3"):
        oaimend.check("x", program=program(tmp_path, "", 3))
    for output in ["", "[]", "{}", "null", "{"]:
        with pytest.raises(oaimend.CheckError, match="same version"):
            oaimend.check("x", program=program(tmp_path, output, 0))


def test_the_program_itself_checks_a_repository(provider: str) -> None:
    path = os.environ.get("OAIMEND", "")
    if not os.path.exists(path):
        pytest.skip("the program is not built: name its file by OAIMEND")
    report = oaimend.check(provider + "bare-ampersand", program=path)
    assert report.base_url == provider + "bare-ampersand"
    assert report.requests > 5 and report.stopped is None
    assert any(rule.verdict == "holds" for rule in report.rules)
    assert "well-formed" in [rule.rule for rule in report.fails]
    with pytest.raises(oaimend.CheckError, match="not a base URL"):
        oaimend.check("ftp://x.example/", program=path)
