"""A data provider on loopback for the checks of this folder: `/<repository>?verb=...`.

| repository | ListRecords |
|---|---|
| `list` | five pages with a defect on page 2. The tokens have characters that URLs must escape |
| `long-N` | one page of more than N MiB, in chunks |
| `slow` | sends its first records, then waits until the test has received one of them |
| `broken` | many records, then one beyond repair |
"""

import datetime
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

OAI = "http://www.openarchives.org/OAI/2.0/"
PAGES = 5
RECORDS_PER_PAGE = 20
# A proxy that decodes paths, or merges slashes, damages the URL of its page.
ODD_IDENTIFIER = "oai:list.example.org:a//b%2Fc"
WAIT_SECONDS_MAX = 10


def token(number):
    return f"page {number}/+%&=é"


def identifiers():
    """The identifiers of the repository `list`, in order."""
    count = PAGES * RECORDS_PER_PAGE
    return [f"oai:list.example.org:{number}" for number in range(count - 1)] + [ODD_IDENTIFIER]


def record(identifier, title="Tides of the northern ferries"):
    return (
        f"<record><header><identifier>{identifier}</identifier><datestamp>2024-01-02T03:04:05Z</datestamp></header>"
        '<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/'
        ' http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
        f"<dc:title>{title}</dc:title></oai_dc:dc></metadata></record>\n"
    )


def head():
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{OAI}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        f' xsi:schemaLocation="{OAI} {OAI}OAI-PMH.xsd">\n<responseDate>{now}</responseDate>\n'
    )


LIST_TAIL = "</ListRecords>\n</OAI-PMH>\n"


def list_head(base_url):
    return f'{head()}<request verb="ListRecords">{base_url}</request>\n<ListRecords>\n'


def list_page(base_url, number):
    start = number * RECORDS_PER_PAGE
    title = "Fish & chips" if number == 1 else "Harbour songs"
    records = "".join(record(name, title) for name in identifiers()[start:start + RECORDS_PER_PAGE])
    following = token(number + 1).replace("&", "&amp;") if number + 1 < PAGES else ""
    return list_head(base_url) + records + f"<resumptionToken>{following}</resumptionToken>" + LIST_TAIL


def identify(base_url):
    return (
        f'{head()}<request verb="Identify">{base_url}</request>\n<Identify><repositoryName>Reverse proxies</repositoryName>'
        f"<baseURL>{base_url}</baseURL><protocolVersion>2.0</protocolVersion><adminEmail>admin@example.org</adminEmail>"
        "<earliestDatestamp>2024-01-01T00:00:00Z</earliestDatestamp><deletedRecord>no</deletedRecord>"
        "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>\n</OAI-PMH>\n"
    )


def formats(base_url):
    return (
        f'{head()}<request verb="ListMetadataFormats">{base_url}</request>\n<ListMetadataFormats><metadataFormat>'
        "<metadataPrefix>oai_dc</metadataPrefix><schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>"
        "<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>"
        "</metadataFormat></ListMetadataFormats>\n</OAI-PMH>\n"
    )


def error(base_url, code):
    return f'{head()}<request>{base_url}</request>\n<error code="{code}">{code}</error>\n</OAI-PMH>\n'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        repository = url.path.strip("/")
        base_url = f"http://127.0.0.1:{self.server.server_port}{url.path}"
        arguments = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=UTF-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in self.parts(repository, base_url, arguments):
            piece = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def parts(self, repository, base_url, arguments):
        verb = arguments.get("verb")
        if verb == "Identify":
            yield identify(base_url)
        elif verb == "ListMetadataFormats":
            yield formats(base_url)
        elif verb == "ListSets":
            yield error(base_url, "noSetHierarchy")
        elif verb != "ListRecords":
            yield error(base_url, "badVerb")
        elif repository == "list":
            pages = {token(number): number for number in range(1, PAGES)} | {None: 0}
            number = pages.get(arguments.get("resumptionToken"))
            yield error(base_url, "badResumptionToken") if number is None else list_page(base_url, number)
        elif repository.startswith("long-"):
            yield from long_list(base_url, int(repository.removeprefix("long-")))
        elif repository == "slow":
            yield list_head(base_url) + record("oai:slow.example.org:first")
            self.server.was_received.wait(WAIT_SECONDS_MAX)
            yield record("oai:slow.example.org:last") + LIST_TAIL
        else:
            yield list_head(base_url)
            for number in range(2_000):
                yield record(f"oai:broken.example.org:{number}")
            # No header without an identifier can be repaired.
            yield record("").replace("<identifier></identifier>", "") + LIST_TAIL

    def log_message(self, *arguments):
        pass


def long_list(base_url, mib):
    """A list of more than so many MiB. Each record has 64 KiB of text."""
    yield list_head(base_url)
    text = "Harbour songs, 1890 to 1914. " * (64 * 1024 // 29 + 1)
    for number in range(mib * 16):
        yield record(f"oai:long.example.org:{number}", text)
    yield LIST_TAIL


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.was_received = threading.Event()

    def handle_error(self, request, client_address):
        """Ignores connections that oaimend has closed."""


def start():
    """Serves in a thread of its own, at port `server.server_port` of 127.0.0.1."""
    server = Provider()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
