"""A data provider on loopback with one base URL for each defect: `/<defect>?verb=...`.

As a program it prints the URLs.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from defects import BY_NAME, OAI, TOKEN, XSI, page


def envelope(base_url, request, content):
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{OAI}" xmlns:xsi="{XSI}" xsi:schemaLocation="{OAI} {OAI}OAI-PMH.xsd">\n'
        "<responseDate>2026-01-02T03:04:05Z</responseDate>\n"
        f"<request{request}>{base_url}</request>\n{content}\n</OAI-PMH>\n"
    ).encode()


def identify(base_url):
    return envelope(base_url, ' verb="Identify"', (
        f"<Identify><repositoryName>One defect at a time</repositoryName><baseURL>{base_url}</baseURL>"
        "<protocolVersion>2.0</protocolVersion><adminEmail>admin@example.org</adminEmail>"
        "<earliestDatestamp>2015-01-01T00:00:00Z</earliestDatestamp><deletedRecord>no</deletedRecord>"
        "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
    ))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        defect = BY_NAME.get(url.path.strip("/"))
        if defect is None:
            return self.answer(404, b"no such repository\n", "text/plain")
        base_url = f"http://127.0.0.1:{self.server.server_port}{url.path}"
        arguments = {name: values[0] for name, values in parse_qs(url.query).items()}
        content_type = "text/xml; charset=UTF-8"
        if arguments.get("verb") == "Identify":
            body = identify(base_url)
        elif arguments.get("verb") != "ListRecords":
            body = envelope(base_url, "", '<error code="badVerb">only Identify and ListRecords here</error>')
        elif arguments.get("resumptionToken") == TOKEN:
            body = page(2).xml(base_url)
        else:
            first = defect.first_page()
            body, content_type = first.xml(base_url), first.content_type
        self.answer(200, body, content_type)

    def answer(self, status, body, content_type):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignores connections that a harvester has closed."""


def start():
    """Serves in a thread of its own, at port `server.server_port` of 127.0.0.1."""
    server = Provider(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    running = start()
    for name in BY_NAME:
        print(f"http://127.0.0.1:{running.server_port}/{name}?verb=ListRecords&metadataPrefix=oai_dc", flush=True)
    threading.Event().wait()
