"""The repair engine. Import its items from `oaimend`."""

import builtins
from collections.abc import Sequence
from typing import Literal, final

from _typeshed import ReadableBuffer

__all__ = [
    "Limits",
    "Options",
    "Quarantined",
    "Repair",
    "Repaired",
    "Repairer",
    "Summary",
    "SwallowedItems",
    "UnresolvedField",
    "__version__",
    "repair",
]

__version__: str

@final
class Limits:
    """Limits on the memory of one response.

    An item that exceeds a limit is quarantined, or emitted in parts. The other items are not affected.
    """

    def __new__(
        cls,
        *,
        record_bytes_max: int | None = None,
        repairs_per_record_max: int | None = None,
        entity_bytes_max: int | None = None,
        depth_max: int | None = None,
        attributes_per_tag_max: int | None = None,
        tag_bytes_max: int | None = None,
        junk_bytes_max: int | None = None,
        head_bytes_max: int | None = None,
    ) -> Limits: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    @property
    def record_bytes_max(self) -> int:
        """The longest item that is held, in bytes. The default is 8 MiB."""
    @property
    def repairs_per_record_max(self) -> int:
        """The most repairs in one item. The default is 10,000."""
    @property
    def entity_bytes_max(self) -> int:
        """The longest text of declared entities in one item, in bytes. The default is 64 KiB."""
    @property
    def depth_max(self) -> int:
        """The deepest nesting in one item, in elements. The default is 256."""
    @property
    def attributes_per_tag_max(self) -> int:
        """The most attributes in one tag. The default is 256."""
    @property
    def tag_bytes_max(self) -> int:
        """The longest tag, in bytes. The default is 64 KiB."""
    @property
    def junk_bytes_max(self) -> int:
        """The longest text before the document element, in bytes. The default is 64 KiB."""
    @property
    def head_bytes_max(self) -> int:
        """The most held bytes before the first good item and after the last one. The default is 256 KiB."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Options:
    """The settings of a repository.

    off: names of repairs to turn off. An item that needs one is quarantined.
    enabled: names of repairs to turn on that are off by default: those of certainty `guess`, and `payload-xsi`.
    text_charset: the charset of text that is not UTF-8.
    granularity: the granularity in Identify, `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`.
    lowest_datestamp: a datestamp that no record precedes. It replaces a datestamp that is missing or not a date.
        Without it, such records are quarantined.
    limits: the limits of the engine.

    Raises ValueError for an unknown name or an illegal value.
    """

    def __new__(
        cls,
        *,
        off: list[str] = ...,
        enabled: list[str] = ...,
        text_charset: str | None = None,
        granularity: Literal["YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"] | None = None,
        lowest_datestamp: str | None = None,
        limits: Limits | None = None,
    ) -> Options: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Repair:
    """One repair: `original` at `offset` became `replacement`."""

    def __new__(cls, name: str, offset: int, record: str | None, original: bytes, replacement: bytes) -> Repair: ...
    @property
    def name(self) -> str:
        """The name of the repair, such as `bare-ampersand`."""
    @property
    def certainty(self) -> Literal["exact", "likely", "guess", "rewrite"]:
        """How sure the repair is."""
    @property
    def offset(self) -> int:
        """Where `original` begins in the text, in bytes."""
    @property
    def record(self) -> str | None:
        """The identifier of the item with the change. None outside items."""
    @property
    def original(self) -> bytes:
        """The bytes before the repair. Empty for an insertion."""
    @property
    def replacement(self) -> bytes:
        """The bytes after the repair. Empty for a deletion."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Quarantined:
    """An item without a safe repair. It is not in the output."""

    def __new__(cls, why: str, offset: int, identifier: str | None, raw: bytes) -> Quarantined: ...
    @property
    def identifier(self) -> str | None:
        """The identifier of the item. None if it is not readable."""
    @property
    def why(self) -> str:
        """The reason, such as `mismatched-tags`."""
    @property
    def offset(self) -> int:
        """Where the item begins in the text, in bytes."""
    @property
    def raw(self) -> bytes:
        """The bytes of the item."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class UnresolvedField:
    """An element that violates the schema and stays unchanged, because its right value is unknown."""

    def __new__(cls, element: str, offset: int, why: str) -> UnresolvedField: ...
    @property
    def element(self) -> str:
        """The name of the element."""
    @property
    def offset(self) -> int:
        """Where the parent element begins in the text, in bytes."""
    @property
    def why(self) -> Literal["missing", "illegal", "repeated"]:
        """The problem."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SwallowedItems:
    """A closed CDATA section, comment or processing instruction that contains items of the list.

    The items are content of the item around the section. This entry is a warning, not a change.
    """

    def __new__(cls, record: str | None, offset: int, identifiers: Sequence[str | None]) -> SwallowedItems: ...
    @property
    def record(self) -> str | None:
        """The identifier of the item around the section. None if it is not readable."""
    @property
    def offset(self) -> int:
        """Where the section begins in the text, in bytes."""
    @property
    def identifiers(self) -> list[str | None]:
        """The identifiers of the items in the section. None for an unreadable identifier."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Summary:
    """The outcome and the counts of one response."""

    def __new__(
        cls,
        reasons: tuple[str, str | None, str | None, str | None],
        counts: tuple[int, int, int, int, int, int],
        repairs: Sequence[tuple[str, int]],
        decoding: tuple[str, int],
    ) -> Summary:
        """For pickle, which calls it with the values of another summary."""
    @property
    def outcome(self) -> Literal["clean", "repaired", "truncated", "not-oai"]:
        """The outcome. See `Repaired.outcome`."""
    @property
    def is_complete(self) -> bool:
        """Whether the output contains every item of the input, and the input did not end early."""
    @property
    def why(self) -> str | None:
        """The reason for the outcome `not-oai`, such as `html-page`."""
    @property
    def message(self) -> str | None:
        """The reason for the outcome `not-oai` as a sentence for people, with the next step."""
    @property
    def version(self) -> Literal["1.0", "1.1", "2.0"] | None:
        """The version of the protocol."""
    @property
    def records(self) -> int:
        """The number of items in the output: records, headers, sets or formats."""
    @property
    def quarantined(self) -> int:
        """The number of quarantined items."""
    @property
    def lost(self) -> int:
        """The number of items that are lost in another way, such as an item that is too long."""
    @property
    def unread(self) -> int:
        """The number of quarantined texts with an unreadable item or resumptionToken. They count as lost too."""
    @property
    def swallowed(self) -> int:
        """The number of items inside closed sections."""
    @property
    def unresolved(self) -> int:
        """The number of fields that violate the schema and stay unchanged."""
    @property
    def repairs(self) -> dict[str, int]:
        """The number of repairs by name."""
    @property
    def decoded_as(self) -> str:
        """The charset of the input."""
    @property
    def held_bytes_peak(self) -> int:
        """The most bytes that the engine held at one time."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Repaired:
    """A repaired response."""

    def __new__(
        cls,
        bytes: builtins.bytes,
        report: tuple[Repair | Quarantined | UnresolvedField | SwallowedItems, ...],
        summary: Summary,
        input: builtins.bytes | None,
    ) -> Repaired:
        """For pickle, which calls it with the values of another result."""
    @property
    def bytes(self) -> bytes:
        """The valid response in UTF-8. Empty if the outcome is `not-oai`."""
    @property
    def report(self) -> tuple[Repair | Quarantined | UnresolvedField | SwallowedItems, ...]:
        """Every change and every remark, in the order of the text."""
    @property
    def outcome(self) -> Literal["clean", "repaired", "truncated", "not-oai"]:
        """The outcome.

        - `clean`: the output is equal to the input.
        - `repaired`: the output is complete and valid. `quarantined` has the items that are missing.
        - `truncated`: the output is valid, but the list is incomplete.
        - `not-oai`: the input is not a usable OAI-PMH response, and the output is empty.
        """
    @property
    def summary(self) -> Summary:
        """The outcome and the counts."""
    @property
    def is_complete(self) -> bool:
        """Whether the output contains every item of the input, and the input did not end early."""
    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The repairs of the report."""
    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """The quarantined items of the report, with their bytes."""
    def undo(self) -> builtins.bytes | None:
        """The input, computed from the output and the report. If the outcome is `not-oai`, the input itself.

        If `summary.decoded_as` is not `UTF-8`, it is the input converted to UTF-8, except for `not-oai`. None if the
        report does not belong to the output.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Repairer:
    """Repairs one response that arrives in chunks, with bounded memory.

    The size of the chunks does not change the result. The arguments are those of `repair`.
    """

    def __new__(
        cls, *, request: str | None = None, charset: str | None = None, options: Options | None = None
    ) -> Repairer: ...
    def push(self, chunk: ReadableBuffer) -> bytes:
        """Takes the next chunk and returns the repaired bytes that are ready.

        Raises ValueError after `finish`, and TypeError for a text.
        """
    def finish(self) -> bytes:
        """Ends the response and returns the last repaired bytes. Raises ValueError if it has ended before."""
    @property
    def verdict(self) -> Literal["clean", "repaired", "truncated", "not-oai"] | None:
        """The outcome if no further chunk can change it. Then the caller can stop reading."""
    @property
    def summary(self) -> Summary | None:
        """The outcome and the counts, after `finish`."""
    @property
    def resumption_token(self) -> str | None:
        """The resumptionToken so far, as written in the XML. None if there is none, or if it is empty."""
    @property
    def items_hash(self) -> int | None:
        """A hash of the identifiers of the items so far, in their order. None without an item."""
    def take_report(self) -> tuple[Repair | Quarantined | UnresolvedField | SwallowedItems, ...]:
        """The entries of the report since the last call. Entries that are not taken stay in memory."""

def repair(
    page: ReadableBuffer,
    *,
    request: str | None = None,
    charset: str | None = None,
    options: Options | None = None,
) -> Repaired:
    """Repairs a whole response. No bytes raise an exception: `outcome` says what the input is.

    page: the bytes of the response, without HTTP compression: `bytes`, `bytearray`, `memoryview` or another buffer. A
        text raises TypeError, because its bytes and their charset are lost.
    request: the URL of the request with its arguments, if it is known. The engine uses the verb and the identifier.
    charset: the charset in the HTTP header, if there is one.
    options: the settings of the repository.
    """
