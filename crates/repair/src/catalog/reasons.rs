//! The reasons for the quarantine of an item and for the rejection of an input.

use std::fmt;

/// The reason why an item could not be repaired and was quarantined.
///
/// ```
/// use oaimend_repair::QuarantineReason;
///
/// assert_eq!(QuarantineReason::MismatchedTags.name(), "mismatched-tags");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum QuarantineReason {
    /// Tags that do not match, without a plausible reading.
    MismatchedTags,
    /// A tag with an illegal name or without an end.
    MalformedTag,
    /// A namespace prefix that is neither declared nor well known.
    UnknownPrefix,
    /// No identifier, or an empty one.
    MissingIdentifier,
    /// No datestamp, or an empty one.
    MissingDatestamp,
    /// A datestamp that names no day or could name two.
    IllegalDatestamp,
    /// A set without a setSpec, or with an illegal one.
    IllegalSetSpec,
    /// No header.
    MissingHeader,
    /// A payload that is missing, text, or more than one element.
    IllegalPayload,
    /// Another violation of the OAI-PMH schema.
    IllegalEnvelope,
    /// More repairs than `repairs_per_record_max`.
    TooManyRepairs,
    /// Longer than `record_bytes_max`.
    RecordTooLong,
    /// Nested deeper than `depth_max`.
    TooDeep,
    /// More attributes on a tag than `attributes_per_tag_max`.
    TooManyAttributes,
    /// A tag longer than `tag_bytes_max`.
    TagTooLong,
    /// Text that is neither UTF-8 nor windows-1252, in an unknown charset.
    UnknownCharset,
    /// The input ended inside the item.
    Truncated,
    /// A necessary repair is turned off.
    RepairOff,
    /// Text outside the items, or a broken item, that contains another item or a resumptionToken and
    /// cannot be read.
    UnreadItem,
}

impl QuarantineReason {
    /// All reasons.
    pub const ALL: &'static [Self] = &[
        Self::MismatchedTags,
        Self::MalformedTag,
        Self::UnknownPrefix,
        Self::MissingIdentifier,
        Self::MissingDatestamp,
        Self::IllegalDatestamp,
        Self::IllegalSetSpec,
        Self::MissingHeader,
        Self::IllegalPayload,
        Self::IllegalEnvelope,
        Self::TooManyRepairs,
        Self::RecordTooLong,
        Self::TooDeep,
        Self::TooManyAttributes,
        Self::TagTooLong,
        Self::UnknownCharset,
        Self::Truncated,
        Self::RepairOff,
        Self::UnreadItem,
    ];

    /// The name in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MismatchedTags => "mismatched-tags",
            Self::MalformedTag => "malformed-tag",
            Self::UnknownPrefix => "unknown-prefix",
            Self::MissingIdentifier => "missing-identifier",
            Self::MissingDatestamp => "missing-datestamp",
            Self::IllegalDatestamp => "illegal-datestamp",
            Self::IllegalSetSpec => "illegal-set-spec",
            Self::MissingHeader => "missing-header",
            Self::IllegalPayload => "illegal-payload",
            Self::IllegalEnvelope => "illegal-envelope",
            Self::TooManyRepairs => "too-many-repairs",
            Self::RecordTooLong => "record-too-long",
            Self::TooDeep => "too-deep",
            Self::TooManyAttributes => "too-many-attributes",
            Self::TagTooLong => "tag-too-long",
            Self::UnknownCharset => "unknown-charset",
            Self::Truncated => "truncated",
            Self::RepairOff => "repair-off",
            Self::UnreadItem => "unread-item",
        }
    }
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why an input is not a usable OAI-PMH response.
///
/// ```
/// use oaimend_repair::{NotOai, Outcome};
///
/// let summary = oaimend_repair::repair(b"<html><body>Sorry</body></html>").summary;
/// assert_eq!(summary.outcome, Outcome::NotOai(NotOai::Html));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NotOai {
    /// An empty body, or whitespace only.
    Empty,
    /// An HTML page.
    Html,
    /// A challenge for browsers or a login page.
    BotWall,
    /// JSON.
    Json,
    /// Another body without an OAI-PMH document element in its first bytes.
    Foreign,
    /// An OAI-PMH 1.0 or 1.1 response that cannot be converted to 2.0.
    Version1,
    /// OAI-PMH items without the document element around them.
    MissingEnvelope,
    /// A static repository, which a mapping can serve.
    StaticRepository,
    /// An error with a code that is not similar to a legal one.
    UnknownError,
    /// An OAI-PMH document without a usable item, token or error.
    NothingKept,
    /// An envelope that cannot be repaired, or that exceeds a limit before the first item.
    BrokenEnvelope,
}

impl NotOai {
    /// All reasons.
    pub const ALL: &'static [Self] = &[
        Self::Empty,
        Self::Html,
        Self::BotWall,
        Self::Json,
        Self::Foreign,
        Self::Version1,
        Self::MissingEnvelope,
        Self::StaticRepository,
        Self::UnknownError,
        Self::NothingKept,
        Self::BrokenEnvelope,
    ];

    /// The name in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty-body",
            Self::Html => "html-page",
            Self::BotWall => "bot-wall",
            Self::Json => "json-body",
            Self::Foreign => "no-oai-pmh",
            Self::Version1 => "version-1",
            Self::MissingEnvelope => "missing-envelope",
            Self::StaticRepository => "static-repository",
            Self::UnknownError => "unknown-error",
            Self::NothingKept => "nothing-kept",
            Self::BrokenEnvelope => "broken-envelope",
        }
    }

    /// A message for people: what the source sent and what to do.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Empty => "the source sent an empty body; try again later",
            Self::Html => "the source sent an HTML page instead of OAI-PMH; check the base URL in a browser",
            Self::BotWall => {
                "the source sent a bot challenge or a login page; ask its operator to admit harvesters"
            }
            Self::Json => "the source sent JSON instead of OAI-PMH; check the base URL",
            Self::Foreign => "the source sent a document that is not OAI-PMH; check the base URL",
            Self::Version1 => {
                "the source sent an OAI-PMH 1.x response that cannot be converted to 2.0: it has identifiers without datestamps, or v1-root is turned off; request ListRecords instead"
            }
            Self::MissingEnvelope => {
                "the source sent OAI-PMH headers or records without the OAI-PMH element around them; check the base URL, it may belong to an export or another interface"
            }
            Self::StaticRepository => {
                "this is a static repository: one file with a whole repository; serve it with static_file in a mapping"
            }
            Self::UnknownError => {
                "the source sent an error code that OAI-PMH does not define; try again later or tell its operator"
            }
            Self::NothingKept => {
                "nothing of the page could be kept: no item, no token, no error; see the report for quarantined items"
            }
            Self::BrokenEnvelope => {
                "the envelope of the response cannot be repaired; tell the operator of the source"
            }
        }
    }
}

impl fmt::Display for NotOai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for NotOai {}
