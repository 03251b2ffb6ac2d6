"""Prints what feedparser finds in a feed, as JSON.

usage: read.py FILE
"""

import json
import pathlib
import sys

import feedparser


def links(found):
    return {link.rel: link.href for link in found.links}


feed = feedparser.parse(pathlib.Path(sys.argv[1]).read_bytes())
print(json.dumps({
    "fault": str(feed.bozo_exception) if feed.bozo else None,
    "version": feed.version,
    "title": feed.feed.title,
    "id": feed.feed.id,
    "updated": feed.feed.updated,
    "links": links(feed.feed),
    "total": feed.feed.get("opensearch_totalresults"),
    "entries": [
        {
            "title": entry.title,
            "id": entry.id,
            "updated": list(entry.updated_parsed),
            "authors": [author.get("name") for author in entry.get("authors", [])],
            "subjects": [tag.term for tag in entry.get("tags", [])],
            "summary": entry.get("summary"),
            "links": links(entry),
        }
        for entry in feed.entries
    ],
}))
