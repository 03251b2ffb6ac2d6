"""Checks the reverse proxies of packaging/reverse-proxy in front of `oaimend serve`, with TLS.

usage: reverse_proxies.py OAIMEND [--required]

Prints one line for each check. Exits 1 if a check fails. A proxy that is not installed is skipped with a
line; with --required it counts as a failure. `scripts/reverse-proxies install` installs them.
"""

import gzip
import http.client
import json
import socket
import ssl
import sys
import time
import xml.etree.ElementTree as xml
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import provider
from proxies import SETUPS, Stack, caddy_version
from servers import program

SECONDS_MAX = 30
FIRST_PAGE = "verb=ListRecords&metadataPrefix=oai_dc"
NAMESPACE = f"{{{provider.OAI}}}"
# Longer than `cache.entry_bytes_max` and `limits.spool_bytes_max`, which are 64 MiB.
LONG_MIB = 72
# With HTTP/1.0 the cache holds the whole page.
LONG_MIB_OF_HTTP_1_0 = 16
TOKEN_BYTES = 12_000
# Other addresses of the loopback interface: the proxy sees different clients.
CLIENT, OTHER_CLIENT = "127.0.0.2", "127.0.0.3"
CRAWLER = {"User-Agent": "Googlebot"}
# The default burst of a crawler.
BURST = 10
# Older versions end an incomplete response like a complete one: https://github.com/caddyserver/caddy/issues/5951
CADDY_SHOWS_ABORTS = (2, 8)


class Failed(Exception):
    """A check that fails, with the reason."""


def expect(is_right, message):
    if not is_right:
        raise Failed(message)


class Tls(http.client.HTTPSConnection):
    """A connection to the proxy at 127.0.0.1, under its public name."""

    def __init__(self, stack, client):
        context = ssl.create_default_context(cafile=str(stack.certificate))
        super().__init__(stack.setup.host, stack.ports.https, timeout=SECONDS_MAX, context=context)
        self.client = client

    def connect(self):
        plain = socket.create_connection(
            ("127.0.0.1", self.port), timeout=self.timeout, source_address=(self.client, 0)
        )
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


@contextmanager
def response(stack, target, headers=(), client="127.0.0.1", method="GET", body=None):
    """Requests a path below the public URL. The body of the response is not read yet."""
    connection = Tls(stack, client)
    try:
        connection.request(method, stack.setup.path + target, body=body, headers=dict(headers))
        yield connection.getresponse()
    finally:
        connection.close()


def get(stack, target, **options):
    with response(stack, target, **options) as got:
        return got, got.read()


def request_url(page):
    return xml.fromstring(page).findtext(f"{NAMESPACE}request")


def whole_list(stack):
    """Follows the tokens and returns the identifiers."""
    names, query = [], FIRST_PAGE
    for _ in range(provider.PAGES + 1):
        got, page = get(stack, f"/list?{query}")
        expect(got.status == 200, f"status {got.status} for {query}")
        expect(request_url(page) == f"{stack.public_url}/list", f"<request> has {request_url(page)}")
        tree = xml.fromstring(page)
        names += [name.text for name in tree.iter(f"{NAMESPACE}identifier")]
        token = next(tree.iter(f"{NAMESPACE}resumptionToken"), None)
        if token is None or not token.text:
            return names
        query = f"verb=ListRecords&resumptionToken={quote(token.text, safe='')}"
    raise Failed("the list does not end")


def list_is_whole(stack, _):
    names = whole_list(stack)
    expect(names == provider.identifiers(), f"{len(names)} of {len(provider.identifiers())} records")
    return f"{len(names)} records on {provider.PAGES} pages, one of them repaired"


def public_url_is_right(stack, _):
    _, page = get(stack, "/list?verb=Identify")
    url = f"{stack.public_url}/list"
    base_url = next(xml.fromstring(page).iter(f"{NAMESPACE}baseURL")).text
    expect((request_url(page), base_url) == (url, url), f"request {request_url(page)}, baseURL {base_url}")
    _, friends = get(stack, "/friends.xml")
    expect(f">{url}<" in friends.decode(), f"/friends.xml does not contain {url}")
    return url


def cache_hits(stack, _):
    token = quote(provider.token(3), safe="")
    target = f"/list?verb=ListRecords&resumptionToken={token}"
    pages = [get(stack, target) for _ in range(2)]
    status = pages[1][0].getheader("Cache-Status") or "absent"
    expect("; hit" in status, f"Cache-Status of the second response: {status}")
    expect(pages[0][1] == pages[1][1], "the pages differ")
    return status


def long_page(stack, _):
    mib = LONG_MIB_OF_HTTP_1_0 if stack.setup.speaks_http_1_0 else LONG_MIB
    with response(stack, f"/long-{mib}?{FIRST_PAGE}") as got:
        length, end = 0, b""
        while piece := got.read(1 << 20):
            length, end = length + len(piece), (end + piece)[-200:]
    expect(got.status == 200 and length > mib << 20, f"status {got.status}, {length} bytes")
    expect(end.rstrip().endswith(b"</OAI-PMH>"), f"the page ends with {end!r}")
    return f"{length >> 20} MiB"


def streamed(coding):
    """The first record arrives while the source still waits with the last one."""

    def check(stack, source):
        source.was_received.clear()
        start = time.monotonic()
        with response(stack, f"/slow?{FIRST_PAGE}", headers={"Accept-Encoding": coding}) as got:
            expect((got.getheader("Content-Encoding") or "identity") == coding, "the coding is another one")
            body = gzip.GzipFile(fileobj=Unread(got)) if coding == "gzip" else got
            text = b""
            while b":first<" not in text and (piece := body.read1(4096)):
                text += piece
            took = time.monotonic() - start
            source.was_received.set()
            while piece := body.read1(4096):
                text += piece
        expect(b":first<" in text and b":last<" in text, "a record is missing")
        expect(took < provider.WAIT_SECONDS_MAX / 2, f"the first record came after {took:.1f} s, with the last one")
        return f"first record after {took * 1000:.0f} ms"

    return check


class Unread:
    """A response as a file from which gzip takes only what has arrived."""

    def __init__(self, got):
        self.got = got

    def read(self, count):
        return self.got.read1(count)


def compressed(stack, _):
    got, body = get(stack, f"/list?{FIRST_PAGE}", headers={"Accept-Encoding": "gzip"})
    coding = got.getheader("Content-Encoding")
    expect(coding == "gzip", f"Content-Encoding: {coding}")
    _, plain = get(stack, f"/list?{FIRST_PAGE}", headers={"Accept-Encoding": "identity"})
    expect(xml.fromstring(gzip.decompress(body)) is not None, "no XML")
    return f"{len(body)} bytes instead of {len(plain)}"


def abort_is_visible(stack, _):
    with response(stack, f"/broken?{FIRST_PAGE}") as got:
        try:
            body = got.read()
        except (http.client.IncompleteRead, ConnectionError, ssl.SSLError) as error:
            return f"the harvester sees {type(error).__name__}"
    if got.status >= 500:
        return f"status {got.status}"
    hides_it = stack.setup.program == "caddy" and caddy_version() < CADDY_SHOWS_ABORTS
    expect(hides_it, f"a page of {len(body)} bytes without its end looks complete")
    expect(b"</OAI-PMH>" not in body, "the page has an end")
    return "not with this old Caddy: the harvester sees XML without its end"


def quota_per_client(stack, _):
    """A crawler cannot escape its quota by a forged header, and another client is not affected."""
    refused = 0
    for number in range(BURST + 4):
        headers = {**CRAWLER, "X-Forwarded-For": f"203.0.113.{number}"}
        got, _ = get(stack, "/list?verb=Identify", headers=headers, client=CLIENT)
        refused += got.status == 503
    expect(0 < refused <= 4, f"{refused} of {BURST + 4} requests of one crawler were refused")
    got, _ = get(stack, "/list?verb=Identify", headers=CRAWLER, client=OTHER_CLIENT)
    expect(got.status == 200, f"another client got {got.status}")
    return f"{refused} requests over the quota refused, another client served"


def long_token(stack, _):
    token = "x" * TOKEN_BYTES
    got, page = get(stack, f"/list?verb=ListRecords&resumptionToken={token}")
    expect(got.status == 200 and b"badResumptionToken" in page, f"status {got.status}")
    return f"{TOKEN_BYTES} bytes reach oaimend"


def form(stack, _):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    got, page = get(stack, "/list", method="POST", body="verb=Identify", headers=headers)
    expect(got.status == 200 and b"<Identify>" in page, f"status {got.status}")
    return "POST answered"


def record_page(stack, _):
    """Waits for the harvest of the mirror."""
    target = f"/list/record/{quote(provider.ODD_IDENTIFIER, safe='')}.json"
    deadline = time.monotonic() + SECONDS_MAX
    got, body = get(stack, target)
    while got.status != 200 and time.monotonic() < deadline:
        time.sleep(0.1)
        got, body = get(stack, target)
    expect(got.status == 200, f"status {got.status} for {target}")
    fields = json.loads(body)
    expect(fields["identifier"]["value"] == provider.ODD_IDENTIFIER, f"the page is of {fields['identifier']}")
    expect(fields["@id"] == f"{stack.public_url}{target.removesuffix('.json')}", f"@id is {fields['@id']}")
    return fields["identifier"]["value"]


def redirect(stack, _):
    connection = http.client.HTTPConnection("127.0.0.1", stack.ports.http, timeout=SECONDS_MAX)
    connection.request("GET", "/list?verb=Identify", headers={"Host": stack.setup.host})
    got = connection.getresponse()
    got.read()
    connection.close()
    location = urlsplit(got.getheader("Location") or "")
    expect((location.scheme, location.hostname) == ("https", stack.setup.host), f"status {got.status}, {location}")
    expect((location.path, location.query) == ("/list", "verb=Identify"), f"Location has {location}")
    return f"status {got.status}"


CHECKS = {
    "whole list by tokens": list_is_whole,
    "public URL": public_url_is_right,
    "cache hits": cache_hits,
    "long page": long_page,
    "streaming": streamed("identity"),
    "streaming with gzip": streamed("gzip"),
    "gzip": compressed,
    "abort is visible": abort_is_visible,
    "quota for each client": quota_per_client,
    "long token": long_token,
    "form": form,
    "URL of a record": record_page,
    "redirect from http": redirect,
}
# oaimend sends pages to HTTP/1.0 clients whole and without compression.
NOT_WITH_HTTP_1_0 = {"streaming", "streaming with gzip", "gzip"}


def applies(name, setup):
    if name == "redirect from http":
        return not setup.path
    return not (setup.speaks_http_1_0 and name in NOT_WITH_HTTP_1_0)


def mappings(source):
    base = f"http://127.0.0.1:{source.server_port}"
    names = ["list", "slow", "broken", f"long-{LONG_MIB}", f"long-{LONG_MIB_OF_HTTP_1_0}"]
    texts = {name: f'base_url = "{base}/{name}"\n' for name in names}
    texts["list"] += "[mirror]\n"
    # The record beyond repair cannot be stored, so oaimend aborts the page.
    texts["broken"] += "[limits]\nquarantine_bytes_max = 0\n"
    return texts


def check(setup, oaimend, source):
    """Runs all checks of one setup and returns the number of failed ones."""
    failed = 0
    with Stack(setup, oaimend, mappings(source)) as stack:
        for name, run in CHECKS.items():
            if not applies(name, setup):
                continue
            try:
                result, word = run(stack, source), "ok"
            except (Failed, OSError, http.client.HTTPException, xml.ParseError) as error:
                result, word = str(error) or type(error).__name__, "FAILED"
                failed += 1
            print(f"{word:6} {setup.name:16} {name:22} {result}", flush=True)
        if failed:
            print(stack.proxy.log.read_text(errors="replace")[-4000:])
    return failed


def main(arguments):
    is_required = "--required" in arguments
    paths = [argument for argument in arguments if not argument.startswith("--")]
    if len(paths) != 1:
        raise SystemExit(__doc__)
    oaimend = str(Path(paths[0]).resolve())
    source = provider.start()
    failed = 0
    for name in sorted({setup.program for setup in SETUPS}):
        if program(name) is None:
            print(f"skipped: {name} is not installed; see scripts/reverse-proxies")
            failed += is_required
    for setup in SETUPS:
        if program(setup.program) is not None:
            failed += check(setup, oaimend, source)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
