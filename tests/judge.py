"""Judges documents by libxml2, strictly, and by the schemas named as arguments. With --payloads it
tells what one document carries.

Each document comes over standard input behind its length (four bytes, big
endian); each verdict goes out the same way: nothing when the document is good,
else what is wrong with it. One process serves a whole test binary.
"""

import struct
import sys

from lxml import etree


def verdict(document, schemas):
    """What is wrong with the document, or an empty string."""
    parser = etree.XMLParser(
        recover=False, huge_tree=False, resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        return f"not well-formed: {error}"
    if root.getroottree().docinfo.doctype:
        return "a document type declaration"
    for path, schema in schemas:
        if not schema.validate(root):
            return f"invalid by {path}: {schema.error_log.last_error}"
    return ""


def payloads(document):
    """What stands in metadata and about, each in exclusive canonical XML with all prefixes in scope."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    oai = "{http://www.openarchives.org/OAI/2.0/}"
    found = []
    for around in etree.fromstring(document, parser).iter(oai + "metadata", oai + "about"):
        for payload in around.iterchildren(tag=etree.Element):
            prefixes = sorted(prefix for prefix in payload.nsmap if prefix)
            found.append(etree.tostring(
                payload, method="c14n", exclusive=True, inclusive_ns_prefixes=prefixes, with_tail=False
            ).decode())
    return "\0".join(found)


def main():
    if sys.argv[1:] == ["--payloads"]:
        sys.stdout.write(payloads(sys.stdin.buffer.read()))
        return
    schemas = [(path, etree.XMLSchema(etree.parse(path))) for path in sys.argv[1:]]
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    while head := incoming.read(4):
        (length,) = struct.unpack(">I", head)
        answer = verdict(incoming.read(length), schemas).encode()
        outgoing.write(struct.pack(">I", len(answer)) + answer)
        outgoing.flush()


if __name__ == "__main__":
    main()
