"""Judges documents by two strict parsers: libxml2 with the schemas named as arguments, and expat.

libxml2 accepts names of the fifth edition of XML 1.0. expat accepts only those of the fourth edition.
Without lxml, expat judges alone. With --payloads it prints the payloads of one document.
With --names it prints the characters that expat accepts in names.

Standard input contains each document after its length (four bytes, big endian). Standard output
contains each verdict in the same form: one line for each judge that rejects the document, or nothing.
"""

import struct
import sys
from xml.parsers import expat

try:
    from lxml import etree
except ImportError:
    etree = None


def by_libxml2(document, schemas):
    """The fault that libxml2 finds in the document, or an empty string."""
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


def by_expat(document):
    """The fault that expat finds in the document, or an empty string."""
    doctypes = []
    # No namespace can contain this separator, because no document can.
    parser = expat.ParserCreate(namespace_separator="\x01")
    parser.StartDoctypeDeclHandler = lambda *doctype: doctypes.append(doctype)
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        return f"not well-formed: {error}"
    return "a document type declaration" if doctypes else ""


def verdict(document, schemas):
    """The faults that the judges find in the document."""
    faults = {"expat": by_expat(document)}
    if etree:
        faults["libxml2"] = by_libxml2(document, schemas)
    # A fault is one line.
    return "\n".join(f"{judge}: {' '.join(fault.split())}" for judge, fault in faults.items() if fault)


def names():
    """The characters that expat accepts at the start of a name and inside a name, one line each."""
    characters = [chr(code) for code in range(0x21, 0x20000) if code != 0x3A and not 0xD800 <= code < 0xE000]
    starts = [c for c in characters if not by_expat(f"<{c}/>".encode())]
    parts = [c for c in characters if not by_expat(f"<a{c}/>".encode())]
    return "".join(starts) + "\n" + "".join(parts)


def payloads(document):
    """The content of metadata and about, each in exclusive canonical XML with all prefixes in scope."""
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
    if sys.argv[1:] == ["--names"]:
        sys.stdout.buffer.write(names().encode())
        return
    schemas = [(path, etree.XMLSchema(etree.parse(path))) for path in sys.argv[1:]] if etree else []
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    while head := incoming.read(4):
        (length,) = struct.unpack(">I", head)
        answer = verdict(incoming.read(length), schemas).encode()
        outgoing.write(struct.pack(">I", len(answer)) + answer)
        outgoing.flush()


if __name__ == "__main__":
    main()
