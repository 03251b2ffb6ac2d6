"""A third-party data provider of OAI-PMH 2.0: the server of the package oaipmh, with the records of `holdings.py`.

It serves on loopback, at any path, until its standard input ends. It prints its port. A line with a number on its
standard input is the number of list pages that it still serves. At the next request for one, it ends without an answer.
A line with a list in JSON has the number of a record and its new fields, or null if it is deleted. Once it is changed, the
provider prints an empty line.
"""

import json
import os
import sys
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from oaipmh import common, error, metadata
from oaipmh.server import NS_OAIDC, BatchingServer, oai_dc_writer

import holdings


def moment(datestamp):
    return datetime.strptime(datestamp, "%Y-%m-%dT%H:%M:%SZ")


def written(moment):
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def header_of(one):
    return common.Header(None, one.identifier, moment(one.datestamp), list(one.sets), one.deleted)


def record_of(one):
    return header_of(one), None if one.deleted else common.Metadata(None, one.fields), None


class Repository:
    """The records in the form that the package requires."""

    def __init__(self, base_url):
        self.base_url = base_url

    def identify(self):
        return common.Identify(
            "Holdings", self.base_url, "2.0", ["admin@harvest.example"], moment(holdings.EARLIEST),
            "persistent", "YYYY-MM-DDThh:mm:ssZ", ["identity"],
        )

    def listMetadataFormats(self, identifier=None):
        if identifier is not None:
            self.one(identifier)
        return [("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", NS_OAIDC)]

    def listSets(self, cursor=0, batch_size=10):
        return [(spec, name, None) for spec, name in holdings.SETS.items()][cursor:cursor + batch_size]

    def getRecord(self, metadataPrefix, identifier):
        self.check(metadataPrefix)
        return record_of(self.one(identifier))

    def listRecords(self, **arguments):
        return [record_of(one) for one in self.selected(**arguments)]

    def listIdentifiers(self, **arguments):
        return [header_of(one) for one in self.selected(**arguments)]

    def selected(self, metadataPrefix, set=None, from_=None, until=None, cursor=0, batch_size=10):
        self.check(metadataPrefix)
        return holdings.selected(set, written(from_), written(until))[cursor:cursor + batch_size]

    def check(self, metadata_prefix):
        if metadata_prefix != "oai_dc":
            raise error.CannotDisseminateFormatError(metadata_prefix)

    def one(self, identifier):
        found = holdings.by_identifier(identifier)
        if found is None:
            raise error.IdDoesNotExistError(identifier)
        return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        arguments = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if arguments.get("verb", [""])[0] in ("ListRecords", "ListIdentifiers"):
            if self.server.list_pages_left == 0:
                os._exit(1)
            self.server.list_pages_left -= 1
        body = self.server.oai.handleRequest({name: values[0] for name, values in arguments.items()})
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # Negative: all that are requested.
    server.list_pages_left = -1
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", oai_dc_writer)
    repository = Repository(f"http://127.0.0.1:{server.server_port}/oai")
    server.oai = BatchingServer(repository, registry, resumption_batch_size=holdings.PAGE_RECORDS)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    for line in sys.stdin:
        if line.startswith("["):
            holdings.change(*json.loads(line))
            print(flush=True)
        else:
            server.list_pages_left = int(line)


if __name__ == "__main__":
    main()
