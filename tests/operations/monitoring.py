"""Checks the dashboard and the alert rules of packaging/monitoring.

usage: monitoring.py OAIMEND [--required]

Prints one line for each check. Exits 1 if a check fails. Without promtool it skips the checks that need it, with a
line; with --required it fails. `scripts/monitoring install` installs promtool.
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import provider
from servers import PROJECT, Process, free_port, program

MONITORING = PROJECT / "packaging" / "monitoring"
RULES = MONITORING / "alerts.yml"
TESTS = MONITORING / "alerts.test.yml"
DASHBOARD = MONITORING / "grafana-dashboard.json"
REFERENCE = PROJECT / "docs" / "reference" / "metrics.md"
SECONDS_MAX = 20
COMMAND_SECONDS_MAX = 60

# Labels that Prometheus adds, and that of the buckets of a histogram.
ADDED_LABELS = {"job", "instance", "le"}
HISTOGRAM_ENDINGS = ("_bucket", "_sum", "_count")
# What Grafana replaces in a query.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*", "$repository": ".*"}

CONFIGURATION = """
listen = "127.0.0.1:{listen}"
[admin]
listen = "127.0.0.1:{admin}"
[limits]
first_record_timeout_secs = 1
"""


class Failed(Exception):
    """A check that fails, with the reasons."""


def expect_none(reasons):
    if reasons:
        raise Failed("\n    ".join(["", *reasons]))


def documented():
    """The labels of each metric of the reference, by name."""
    rows = re.findall(r"^\| `((?:oaimend|process)_[a-z_*]+)` \| ([^|]*)\|", REFERENCE.read_text(), re.MULTILINE)
    return {name: set(re.findall(r"`([a-z]+)`", labels)) for name, labels in rows}


def without_ending(name):
    return next((name.removesuffix(end) for end in HISTOGRAM_ENDINGS if name.endswith(end)), name)


def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries():
    """Each query of the dashboard and the rules, with its place and the labels that its texts show."""
    found = []
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            found.append((f"panel {panel['title']!r}", expression, set(shown)))
    # An alert ends before the next one. Its expression is one line, or the block after `|`.
    for alert in re.split(r"\n\s*- alert: ", RULES.read_text())[1:]:
        expression = re.search(r"\n( *)expr: (?:\|\n((?:\1 +\S.*\n)+)|(.*)\n)", alert)
        shown = re.findall(r"\$labels\.(\w+)", alert)
        found.append((f"alert {alert.splitlines()[0]}", expression[2] or expression[3], set(shown)))
    return found


def metrics_of(expression):
    """The metrics of a query, with the labels in their selectors."""
    pattern = r"\b((?:oaimend|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?"
    return [(name, set(re.findall(r"(\w+)\s*[=!]~?\s*\"", labels))) for name, labels in re.findall(pattern, expression)]


def names_exist():
    """Each metric of a query is in the reference, with each label of the query."""
    known, wrong, count = documented(), [], 0
    for place, expression, shown in queries():
        used = metrics_of(expression)
        count += len(used)
        available = set(ADDED_LABELS)
        for name, labels in used:
            if name == "up" or (name.startswith("process_") and "process_*" in known):
                has = set()
            elif without_ending(name) in known:
                has = known[without_ending(name)]
            else:
                wrong.append(f"{place}: {name} is not in {REFERENCE.name}")
                continue
            available |= has
            wrong += [f"{place}: {name} has no label {label}" for label in sorted(labels - has - ADDED_LABELS)]
        grouped = set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", expression))))
        wrong += [f"{place}: no metric has the label {label}" for label in sorted((grouped | shown) - available)]
        if not used:
            wrong.append(f"{place}: no metric")
    expect_none(wrong)
    return f"{count} uses of metrics in {len(queries())} queries"


def dashboard_is_importable():
    """Each panel has its own id and place, and uses the selected data source."""
    dashboard = json.loads(DASHBOARD.read_text())
    wrong, cells = [], {}
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        wrong.append("two panels have the same id")
    variables = [variable["name"] for variable in dashboard["templating"]["list"]]
    if variables[0] != "datasource":
        wrong.append("the first variable is not the data source")
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            wrong.append(f"{panel['title']} is too wide")
        for cell in [(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]:
            other = cells.setdefault(cell, panel["title"])
            if other != panel["title"]:
                wrong.append(f"{panel['title']} covers {other}")
                break
    used = re.findall(r"\$\{?([a-z_]+)", DASHBOARD.read_text())
    wrong += [f"${name} is no variable" for name in sorted(set(used) - set(variables) - {"__rate_interval", "__all"})]
    for panel in panels():
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        if any(source["uid"] != "${datasource}" for source in sources):
            wrong.append(f"{panel['title']} has a fixed data source")
    expect_none(wrong)
    return f"{len(panels())} panels"


def alerts_are_tested():
    """Each alert has one test in which it fires, and one in which it does not."""
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    wrong = []
    for name in names:
        tests = re.findall(rf"alertname: {name}\n +exp_alerts:(.*)", TESTS.read_text())
        if sorted(test.strip() for test in tests) != ["", "[]"]:
            wrong.append(f"{name} has {len(tests)} tests")
    expect_none(wrong)
    return f"{len(names)} alerts"


def promtool(*arguments, text=None):
    ran = subprocess.run(
        [program("promtool"), *map(str, arguments)], input=text, text=True, capture_output=True,
        timeout=COMMAND_SECONDS_MAX,
    )
    output = (ran.stdout + ran.stderr).strip()
    # `promtool check metrics` prints advice with exit code 3.
    expect_none([] if ran.returncode == 0 else [output])
    return output


def rules_are_valid():
    return " ".join(promtool("check", "rules", RULES).split()[-4:])


def rules_pass_their_tests():
    promtool("test", "rules", TESTS)
    return f"{TESTS.read_text().count('alertname:')} cases"


def queries_of_the_dashboard_are_valid():
    """promtool checks expressions as recording rules."""
    found = [expression for place, expression, _ in queries() if place.startswith("panel")]
    rules = [f"  - record: panel:{number}\n    expr: {json.dumps(text)}\n" for number, text in enumerate(found)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write("groups:\n- name: dashboard\n  rules:\n" + "".join(rules))
        file.flush()
        promtool("check", "rules", file.name)
    return f"{len(found)} queries"


def get(port, target):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    connection.request("GET", target)
    got = connection.getresponse()
    body = got.read().decode()
    connection.close()
    return got.status, body


def scrape(oaimend):
    """The metrics of a process that has served, failed, refused and harvested."""
    source = provider.start()
    listen, admin = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mappings").mkdir()
        base = f"http://127.0.0.1:{source.server_port}"
        (folder / "mappings" / "list.toml").write_text(f'base_url = "{base}/list"\n[mirror]\n')
        (folder / "mappings" / "broken.toml").write_text(f'base_url = "{base}/broken"\n')
        (folder / "mappings" / "down.toml").write_text(f'base_url = "http://127.0.0.1:{free_port()}/oai"\n')
        (folder / "oaimend.toml").write_text(CONFIGURATION.format(listen=listen, admin=admin))
        with Process([oaimend, "serve"], folder, listen):
            for query in ("list?verb=ListRecords&metadataPrefix=oai_dc", "broken?verb=ListRecords&metadataPrefix=oai_dc",
                          "down?verb=Identify", "list?verb=unknown", "list/record/1"):
                get(listen, f"/{query}")
            deadline = time.monotonic() + SECONDS_MAX
            text = get(admin, "/-/metrics")[1]
            while "oaimend_mirror_lag_seconds{" not in text and time.monotonic() < deadline:
                time.sleep(0.1)
                text = get(admin, "/-/metrics")[1]
    return text


def served_metrics_are_documented(text):
    """Each served metric is in the reference with the same labels, and the used metrics of the process exist."""
    known, wrong = documented(), []
    served = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? ", text, re.MULTILINE):
        served.setdefault(without_ending(name), set()).update(re.findall(r'(?:^|,)(\w+)="', labels))
    for name, labels in served.items():
        if name.startswith("oaimend_") and known.get(name) != labels - {"le"}:
            wrong.append(f"{name} has the labels {sorted(labels)}, the reference has {known.get(name)}")
    used = {name for _, expression, _ in queries() for name, _ in metrics_of(expression)}
    wrong += [f"{name} is not served" for name in sorted(used) if name.startswith("process_") and name not in served]
    if len(served) < 15:
        wrong.append(f"only {len(served)} metrics: {sorted(served)}")
    expect_none(wrong)
    return f"{len(served)} metrics"


def main(arguments):
    is_required = "--required" in arguments
    paths = [argument for argument in arguments if not argument.startswith("--")]
    if len(paths) != 1:
        raise SystemExit(__doc__)
    text = scrape(str(Path(paths[0]).resolve()))
    checks = {
        "names and labels of queries": names_exist,
        "dashboard": dashboard_is_importable,
        "tests of alerts": alerts_are_tested,
        "served metrics": lambda: served_metrics_are_documented(text),
    }
    with_promtool = {
        "promtool check rules": rules_are_valid,
        "promtool test rules": rules_pass_their_tests,
        "queries of the dashboard": queries_of_the_dashboard_are_valid,
        "promtool check metrics": lambda: promtool("check", "metrics", text=text) or "no complaint",
    }
    failed = 0
    if program("promtool") is not None:
        checks |= with_promtool
    else:
        print("skipped: promtool is not installed; see scripts/monitoring")
        failed += is_required
    for name, run in checks.items():
        try:
            print(f"ok     {name:28} {run()}")
        except Failed as error:
            print(f"FAILED {name:28} {error}")
            failed += 1
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
