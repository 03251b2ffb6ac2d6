"""Data providers of 200 records on ten pages: clean, broken, poisoned, and ending after some pages.

Each provider listens at an address of its own on loopback. Thus nothing else listens there after its end.
"""

import socket
import threading
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable, Optional
from urllib.parse import parse_qsl, urlsplit

import defects
from provider import envelope, identify

PAGES = 10
PAGE_RECORDS = 20
RECORDS = PAGES * PAGE_RECORDS
LIST_VERBS = ("ListRecords", "ListIdentifiers")

IN_RECORDS = [one for one in defects.DEFECTS if one.first_page().records != defects.page(1).records]
AROUND_RECORDS = [
    one for one in defects.DEFECTS
    if one.first_page() != defects.page(1) and one not in IN_RECORDS and not one.is_unrepairable
]
# The pages at the end of the list have one defect around the records each. All other pages have defects in records.
FIRST_PAGE_AROUND = PAGES - len(AROUND_RECORDS) + 1
DEFECT_IN_RECORD = {
    1 + at * (FIRST_PAGE_AROUND - 1) * PAGE_RECORDS // len(IN_RECORDS): one for at, one in enumerate(IN_RECORDS)
}

# The page of the first one gets the status 500, the page of the second one breaks off in it, and so does the record.
POISONED_BY_STATUS = 70
POISONED_BY_END = 150
POISONED = (POISONED_BY_STATUS, POISONED_BY_END)


def page_of(record):
    return (record - 1) // PAGE_RECORDS + 1


def clean_page(number, records):
    """A page with these records."""
    token = f"page-{number + 1}" if number < PAGES else None
    return defects.Page(records=tuple(defects.record(n) for n in records), token=token)


def broken_record(number):
    """A record with its defect. The fields that the defect does not change are those of this record."""
    right = defects.record(number)
    defect = DEFECT_IN_RECORD.get(number)
    if defect is None:
        return right
    whole = defects.record(defects.BROKEN_RECORD)
    damaged = defect.first_page().records[defects.BROKEN_RECORD - 1]
    fields = ("identifier", "datestamp", "title", "description")
    return replace(damaged, **{
        name: getattr(right, name) for name in fields if getattr(damaged, name) == getattr(whole, name)
    })


def broken_page(number, records):
    page = replace(clean_page(number, records), records=tuple(broken_record(n) for n in records))
    at = number - FIRST_PAGE_AROUND
    return AROUND_RECORDS[at].damage(page) if at >= 0 else page


def expected_records(is_broken=False, without=()):
    """The correct records of a list, as a harvester should get them."""
    records = {number: defects.record_texts(number) for number in range(1, RECORDS + 1) if number not in without}
    for number, defect in DEFECT_IN_RECORD.items() if is_broken else ():
        _, datestamp, title, _ = records[number]
        records[number][1:3] = [defect.expected_datestamp or datestamp, defect.expected_title or title]
    return list(records.values())


@dataclass
class Response:
    body: bytes
    status: int = 200
    content_type: str = "text/xml; charset=UTF-8"
    # Less than the body if the connection breaks off.
    sent_bytes: Optional[int] = None


def error(base_url, code):
    return Response(envelope(base_url, "", f'<error code="{code}">not here</error>'))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(urlsplit(self.path).query)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def answer(self, query):
        if self.server.has_ended:
            self.close_connection = True
            return
        response = self.server.respond(dict(parse_qsl(query)))
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body[:response.sent_bytes])
        self.close_connection = response.sent_bytes is not None or self.server.has_ended

    def log_message(self, *arguments):
        pass


class Provider(ThreadingHTTPServer):
    """A running provider. `make_page` makes a page of the given number with the given records."""

    daemon_threads = True

    def __init__(self, address, make_page: Callable = clean_page, poisoned=()):
        super().__init__((address, 0), Handler)
        self.make_page = make_page
        self.poisoned = poisoned
        # The list pages until the provider ends; None if it does not end.
        self.pages_left = None
        self.has_ended = False
        self.base_url = f"http://{address}:{self.server_port}/oai"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """Ignores connections that a harvester has closed."""

    def end(self):
        """Refuses connections from now on."""
        if not self.has_ended:
            self.has_ended = True
            self.socket.shutdown(socket.SHUT_RDWR)
            # `shutdown` waits for the thread of the server, which may be the one that waits for this one.
            threading.Thread(target=self.shutdown, daemon=True).start()

    def respond(self, arguments):
        verb = arguments.get("verb")
        if verb == "Identify":
            return Response(identify(self.base_url))
        if verb == "ListMetadataFormats":
            return Response(envelope(self.base_url, ' verb="ListMetadataFormats"', (
                "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>"
                f"<schema>{defects.OAI}oai_dc.xsd</schema><metadataNamespace>{defects.OAI_DC}</metadataNamespace>"
                "</metadataFormat></ListMetadataFormats>"
            )))
        if verb == "GetRecord":
            return self.record(arguments.get("identifier", ""))
        if verb in LIST_VERBS:
            return self.list_page(verb, arguments.get("resumptionToken", "page-1"))
        return error(self.base_url, "noSetHierarchy" if verb == "ListSets" else "badVerb")

    def record(self, identifier):
        number = identifier.rpartition(":")[2]
        if not number.isdigit() or not 1 <= int(number) <= RECORDS:
            return error(self.base_url, "idDoesNotExist")
        return self.page("GetRecord", page_of(int(number)), [int(number)])

    def list_page(self, verb, token):
        number = int(token.removeprefix("page-"))
        if self.pages_left is not None:
            self.pages_left -= 1
            if self.pages_left == 0:
                self.end()
        first = (number - 1) * PAGE_RECORDS + 1
        return self.page(verb, number, range(first, first + PAGE_RECORDS))

    def page(self, verb, number, records):
        page = self.make_page(number, records)
        body = page.xml(self.base_url, verb)
        for poisoned in set(self.poisoned).intersection(records) if verb != "ListIdentifiers" else ():
            if poisoned == POISONED_BY_STATUS:
                return Response(b"java.lang.NullPointerException\n", 500, "text/plain")
            end = body.index(f"example.org:{poisoned}<".encode()) + 60
            return Response(body, sent_bytes=end)
        return Response(body, content_type=page.content_type)
