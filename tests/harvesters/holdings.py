"""The records of a test repository, as plain values.

The providers of this folder serve them, and the results of the harvesters are compared with them.
"""

import dataclasses
import datetime
from dataclasses import dataclass, field

RECORDS = 300
PAGE_RECORDS = 40
SETS = {f"col:{number}": f"Collection {number} – Bücher & Karten" for number in range(5)}
SETS = {"col": "All collections"} | SETS
EARLIEST = "2025-01-01T00:00:00Z"


@dataclass(frozen=True)
class Holding:
    """One record of oai_dc."""

    identifier: str
    # YYYY-MM-DDThh:mm:ssZ
    datestamp: str
    sets: tuple = ()
    deleted: bool = False
    fields: dict = field(default_factory=dict)

    @property
    def day(self):
        return self.datestamp[:10]


def holding(number):
    identifier = f"oai:harvest.example:{number:04}/a+b&c"
    datestamp = f"2025-{1 + number // 28:02}-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:07Z"
    collection = number % len(SETS)
    sets = (f"col:{collection}",) if collection < len(SETS) - 1 else ()
    if number % 17 == 5:
        return Holding(identifier, datestamp, sets, deleted=True)
    return Holding(identifier, datestamp, sets, fields={
        "title": [f"Größe & Gewicht, Teil {number}: a < b"],
        "creator": [f"Müller, Jürgen {number}", "O'Neil \"Shaq\""],
        "subject": ["\U0001d400 mathematics", "日本語"],
        "description": [f"First line of {number}\n  and a second one, ]]> included.\tTab. {'long ' * (number % 50)}"],
        "date": [datestamp[:10]],
        "identifier": [f"http://harvest.example/{number}?a=1&b=2"],
    })


HOLDINGS = [holding(number) for number in range(RECORDS)]


def change(number, fields):
    """Gives a record new fields now, or deletes it if they are None."""
    datestamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    HOLDINGS[number] = dataclasses.replace(
        HOLDINGS[number], datestamp=datestamp, deleted=fields is None, fields=fields or {}
    )


def selected(set=None, from_=None, until=None):
    """The records that a request selects. Dates are days or seconds. Days include their last second."""
    first = from_ or ""
    last = until + "T23:59:59Z" if until and len(until) == 10 else until or "9"
    return [
        one for one in HOLDINGS
        if (set is None or any(spec == set or spec.startswith(set + ":") for spec in one.sets))
        and first <= one.datestamp <= last
    ]


def by_identifier(identifier):
    """The record with this identifier, or None."""
    return next((one for one in HOLDINGS if one.identifier == identifier), None)
