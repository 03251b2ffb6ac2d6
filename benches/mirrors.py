"""Mirrors, their sources and their harvesters, for `benches/mirror-load` and `benches/gateway-load`."""

import html
import http.client
import json
import re
import resource
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from urllib.parse import quote

from servers import EXAMPLES, OAIMEND, BenchError, free_port

PAGE_RECORDS = 100
# Small records come in longer pages.
LARGE_PAGE_RECORDS = 1000

# Requests the paths of a file in turn, and prints the result as JSON.
SCRIPT = """
local paths, number = {}, 0
function init(arguments)
    for line in io.lines(arguments[1]) do paths[#paths + 1] = wrk.format(nil, line) end
end
function request()
    number = number % #paths + 1
    return paths[number]
end
function done(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format('{"requests": %d, "bytes": %d, "errors": %d, "p99_micros": %d}\\n',
        summary.requests, summary.bytes, failed, latency:percentile(99)))
end
"""

# The source: the file of a verb and a token.
SOURCE = """
{user}
daemon off; pid nginx.pid; error_log stderr; worker_processes auto;
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=20000;
    types {{ }} default_type "text/xml; charset=UTF-8";
    server {{ listen 127.0.0.1:{port}; location / {{ root pages; try_files /$arg_verb$arg_resumptionToken.xml =404; }} }}
}}
"""

# The settings of Debian, with an access log.
STATIC = """
{user}
daemon off; pid nginx.pid; error_log stderr; worker_processes auto;
events {{ worker_connections 4096; }}
http {{
    access_log access.log; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=20000;
    types {{ }} default_type "text/xml; charset=UTF-8";
    server {{ listen 127.0.0.1:{port}; location / {{ root pages; }} }}
}}
"""

SETTINGS = """
listen = "127.0.0.1:{port}"
data = "data"
mappings = "mappings"
[admin]
listen = "off"
[cache]
enabled = {cache}
# The index would grow beside what is measured.
[search]
enabled = false
"""
# Quotas apply to requests with an X-Forwarded-For header.
TRUSTED = """
[clients]
trusted_proxies = ["127.0.0.1"]
"""
# The interval keeps `serve` from a harvest during the measurement.
MAPPING = """
base_url = "http://127.0.0.1:{source}/oai"
[mirror]
interval_secs = 604800
"""

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">
\t<responseDate>2026-11-01T00:00:00Z</responseDate>
\t<request verb="{verb}">http://127.0.0.1/oai</request>
{content}</OAI-PMH>
"""
IDENTIFY = """\t<Identify>
\t\t<repositoryName>Source</repositoryName><baseURL>http://127.0.0.1/oai</baseURL>
\t\t<protocolVersion>2.0</protocolVersion><adminEmail>admin@example.org</adminEmail>
\t\t<earliestDatestamp>1990-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent</deletedRecord>
\t\t<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>
\t</Identify>
"""
FORMATS = """\t<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>
\t\t<schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>
\t\t<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>
\t</metadataFormat></ListMetadataFormats>
"""
SMALL_RECORD = """\t\t<record><header><identifier>oai:small:{number}</identifier>\
<datestamp>2020-01-01T00:00:00Z</datestamp></header><metadata>\
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">\
<dc:title>{number}</dc:title></oai_dc:dc></metadata></record>
"""


def write_source(folder, pages):
    """Writes the files of a source. `pages` are the records of each page of its list."""
    folder.mkdir(parents=True)
    def write(name, verb, content):
        (folder / f"{name}.xml").write_text(HEAD.format(verb=verb, content=content))
    write("Identify", "Identify", IDENTIFY)
    write("ListMetadataFormats", "ListMetadataFormats", FORMATS)
    write("ListSets", "ListSets", '\t<error code="noSetHierarchy">no sets</error>\n')
    token, records = "", next(pages, None)
    number = 0
    while records is not None:
        number += 1
        following = next(pages, None)
        end = "" if following is None else number
        content = f"\t<ListRecords>\n{records}\t\t<resumptionToken>{end}</resumptionToken>\n\t</ListRecords>\n"
        write(f"ListRecords{token}", "ListRecords", content)
        token, records = end, following


def real_pages(count):
    """The records of `count` pages, as they come from real repositories."""
    command = [EXAMPLES / "write_page", "oai_dc", str(count * PAGE_RECORDS), "0"]
    page = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    records = re.findall(r"[^\n]*<record>.*?</record>\n", page, re.DOTALL)
    return ("".join(records[start : start + PAGE_RECORDS]) for start in range(0, len(records), PAGE_RECORDS))


def small_pages(count):
    """The records of pages with `count` small records in all."""
    for first in range(0, count, LARGE_PAGE_RECORDS):
        numbers = range(first, min(first + LARGE_PAGE_RECORDS, count))
        yield "".join(SMALL_RECORD.format(number=number) for number in numbers)


class Oaimend:
    """A folder with a configuration and data."""

    def __init__(self, folder, source, cache=True, trusted_proxies=False):
        self.folder, self.port, self.source = folder, free_port(), source
        (self.folder / "mappings").mkdir(parents=True)
        settings = SETTINGS.format(port=self.port, cache="true" if cache else "false")
        if trusted_proxies:
            settings += TRUSTED
        (self.folder / "oaimend.toml").write_text(settings)
        (self.folder / "mappings" / "load.toml").write_text(MAPPING.format(source=source.port))

    def empty_mirror(self):
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    def sync(self):
        """Harvests the source. Returns the CPU-seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([OAIMEND, "mirror", "sync", "load"], cwd=self.folder, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode:
            raise BenchError(f"mirror sync failed:\n{run.stdout}{run.stderr}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def serve(self, servers):
        return servers.start("oaimend", self.folder, self.port, [OAIMEND, "serve"])


class Harvester:
    """Harvests lists on one connection."""

    def __init__(self, port, path):
        self.connection, self.path = http.client.HTTPConnection("127.0.0.1", port), path

    def page(self, token=None):
        """A page of the list of all records, and the path of the next page."""
        rest = "metadataPrefix=oai_dc" if token is None else f"resumptionToken={token}"
        self.connection.request("GET", f"{self.path}?verb=ListRecords&{rest}")
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200 or not body.endswith(b"</OAI-PMH>\n"):
            raise BenchError(f"{self.path}: {response.status} {body[:500]}")
        found = re.search(rb"<resumptionToken[^>]*>([^<\s]+)<", body)
        return body, html.unescape(found[1].decode()) if found else None

    def pages(self):
        """All pages of the list, each with the token of the next one."""
        token = None
        while True:
            body, token = self.page(token)
            yield body, token
            if token is None:
                return


class DocumentReader:
    """Reads lists of records of the JSON API on one connection."""

    def __init__(self, port, repository):
        self.connection, self.repository = http.client.HTTPConnection("127.0.0.1", port), repository

    def pages(self):
        """All pages of the list of all records."""
        cursor = ""
        while cursor is not None:
            path = f"/_api/v1/records?repository={quote(self.repository, safe='')}&limit={PAGE_RECORDS}{cursor}"
            self.connection.request("GET", path)
            response = self.connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise BenchError(f"{path}: {response.status} {body[:500]}")
            page = json.loads(body)
            yield page
            cursor = page["next"] and f"&cursor={page['next']}"


@dataclass(frozen=True)
class Figure:
    """A row of the table."""

    title: str
    ratio: str
    target: str
    details: str
    failed: bool

    def row(self):
        return f"| {self.title} | {self.ratio} | {self.target} | {self.details} |"


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def load(server, paths, seconds, bytes_min, connections):
    """Puts load on a server: the paths in a file, in turn. Returns the requests per CPU-second."""
    script = paths.with_name("load.lua")
    script.write_text(SCRIPT)
    before = server.cpu_seconds()
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script]
    command += [f"http://127.0.0.1:{server.port}", "--", paths]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    counts = json.loads(ran.stdout.splitlines()[-1])
    if counts["errors"] or counts["bytes"] < counts["requests"] * bytes_min:
        raise BenchError(f"{server.name}: {counts}")
    return counts["requests"] / (server.cpu_seconds() - before)
