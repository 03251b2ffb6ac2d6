"""The examples of docs/how-to/python.md."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pages import DEMO, PROJECT

GUIDE = (PROJECT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(
    example: str,
    provider: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "oaimend.check" in example and not os.path.exists(os.environ.get("OAIMEND", "")):
        pytest.skip("the program is not built: name its file by OAIMEND")
    monkeypatch.chdir(tmp_path)
    Path("page.xml").write_bytes(DEMO)
    exec(example.replace("https://repository.example/oai", provider + "bare-ampersand"), {"__name__": "example"})
    printed = capsys.readouterr().out
    expected = {
        "for record in Sickle": "oai:example.org:3",
        "requests.Session": "Smith &amp; Wesson",
        "entry.certainty": "oai:example.org:3 bare-ampersand exact b'&' -> b'&amp;'",
        "repaired.undo": "repaired 3061 {'bare-ampersand': 1",
        "RepairReader": "repaired\n4\n",
        "oaimend.check": "well-formed",
    }
    for part, text in expected.items():
        if part in example:
            assert text in printed
    assert any(part in example for part in expected), "an example without a check"


def test_guide_has_examples() -> None:
    assert len(EXAMPLES) == 6
