"""A strict data provider of OAI-PMH 1.0 or 1.1 with the records of `holdings.py`.

The verb is the document element, in a namespace of its own. There are no error elements: a response is
empty, or has status 400. Datestamps are days. ListIdentifiers has neither metadataPrefix nor datestamps.

usage: provider_one.py 1.0|1.1      serves on loopback until its standard input ends; prints its port
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

import holdings

DC = "http://purl.org/dc/elements/1.1/"
# The arguments of each verb: required, and optional.
ARGUMENTS = {
    "Identify": (set(), set()),
    "ListMetadataFormats": (set(), {"identifier"}),
    "ListSets": (set(), {"resumptionToken"}),
    "GetRecord": ({"identifier", "metadataPrefix"}, set()),
    "ListIdentifiers": (set(), {"from", "until", "set", "resumptionToken"}),
    "ListRecords": ({"metadataPrefix"}, {"from", "until", "set", "resumptionToken"}),
}


class Refused(Exception):
    """An invalid request, answered with status 400."""


def arguments_of(query):
    pairs = parse_qsl(query, keep_blank_values=True)
    arguments = dict(pairs)
    required, possible = ARGUMENTS.get(arguments.pop("verb", None), (None, None))
    if required is None or len(pairs) != len(arguments) + 1:
        raise Refused("no verb, or a repeated argument")
    if "resumptionToken" in arguments and "resumptionToken" in possible:
        required, possible = {"resumptionToken"}, set()
    if not required <= set(arguments) <= required | possible:
        raise Refused(f"wrong arguments: {sorted(arguments)}")
    for date in (arguments.get("from"), arguments.get("until")):
        if date is not None and (len(date) != 10 or not date.replace("-", "").isdigit()):
            raise Refused(f"{date} is not a day")
    return arguments


def page(arguments):
    """The requested records, and the token for the next page."""
    start = 0
    if "resumptionToken" in arguments:
        try:
            start, *selection = arguments["resumptionToken"].split("!")
            start, (collection, first, last) = int(start), (part or None for part in selection)
        except ValueError:
            raise Refused("an unknown token") from None
    else:
        collection, first, last = (arguments.get(name) for name in ("set", "from", "until"))
    found = holdings.selected(collection, first, last)
    rest = start + holdings.PAGE_RECORDS
    token = "!".join([str(rest), collection or "", first or "", last or ""]) if rest < len(found) else None
    return found[start:rest], token


def element(name, text):
    return f"<{name}>{escape(text)}</{name}>"


def record(one):
    header = f"<header>{element('identifier', one.identifier)}{element('datestamp', one.day)}</header>"
    if one.deleted:
        return f'<record status="deleted">{header}</record>'
    fields = "".join(element(name, text) for name, texts in one.fields.items() for text in texts)
    return f'<record>{header}<metadata><dc xmlns="{DC}">{fields}</dc></metadata></record>'


def identifier(one):
    status = ' status="deleted"' if one.deleted else ""
    return f"<identifier{status}>{escape(one.identifier)}</identifier>"


class Repository:
    def __init__(self, version, base_url):
        self.version, self.base_url = version, base_url

    def Identify(self, _):
        return (
            element("repositoryName", "Holdings") + element("baseURL", self.base_url)
            + element("protocolVersion", self.version) + element("adminEmail", "mailto:admin@harvest.example")
        )

    def ListMetadataFormats(self, arguments):
        if "identifier" in arguments and holdings.by_identifier(arguments["identifier"]) is None:
            return ""
        schema = "http://www.openarchives.org/OAI/" + ("1.1/dc.xsd" if self.version == "1.1" else "dc.xsd")
        described = element("metadataPrefix", "oai_dc") + element("schema", schema) + element("metadataNamespace", DC)
        return f"<metadataFormat>{described}</metadataFormat>"

    def ListSets(self, arguments):
        if "resumptionToken" in arguments:
            raise Refused("the list of sets has no tokens")
        return "".join(
            f"<set>{element('setSpec', spec)}{element('setName', name)}</set>" for spec, name in holdings.SETS.items()
        )

    def GetRecord(self, arguments):
        one = holdings.by_identifier(arguments["identifier"])
        return record(one) if one and arguments["metadataPrefix"] == "oai_dc" else ""

    def ListIdentifiers(self, arguments):
        return self.list(arguments, identifier)

    def ListRecords(self, arguments):
        if arguments.get("metadataPrefix", "oai_dc") != "oai_dc":
            return ""
        return self.list(arguments, record)

    def list(self, arguments, item):
        found, token = page(arguments)
        return "\n".join(map(item, found)) + (element("resumptionToken", token) if token else "")

    def answer(self, query):
        arguments = arguments_of(query)
        verb = dict(parse_qsl(query))["verb"]
        namespace = f"http://www.openarchives.org/OAI/{self.version}/OAI_{verb}"
        instance = "http://www.w3.org/" + ("2001" if self.version == "1.1" else "2000/10") + "/XMLSchema-instance"
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<{verb} xmlns="{namespace}" xmlns:xsi="{instance}" xsi:schemaLocation="{namespace} {namespace}.xsd">\n'
            "<responseDate>2001-06-10T14:09:57-07:00</responseDate>\n"
            f"{element('requestURL', self.base_url + '?' + query)}\n{getattr(self, verb)(arguments)}\n</{verb}>\n"
        ).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            status, kind, body = 200, "text/xml", self.server.repository.answer(urlsplit(self.path).query)
        except Refused as refused:
            status, kind, body = 400, "text/plain", f"{refused}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("1.0", "1.1"):
        raise SystemExit(__doc__)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.repository = Repository(sys.argv[1], f"http://127.0.0.1:{server.server_port}/oai")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
