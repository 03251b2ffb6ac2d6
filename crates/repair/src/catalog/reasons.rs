//! The reasons for the quarantine of an item and for the rejection of an input.

use oaimend_oai::named_enum;
use std::fmt;

named_enum! {
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
        MismatchedTags = "mismatched-tags",
        /// A tag with an illegal name or without an end.
        MalformedTag = "malformed-tag",
        /// A namespace prefix that is neither declared nor well known.
        UnknownPrefix = "unknown-prefix",
        /// No identifier, or an empty one.
        MissingIdentifier = "missing-identifier",
        /// No datestamp, or an empty one.
        MissingDatestamp = "missing-datestamp",
        /// A datestamp that names no day or could name two.
        IllegalDatestamp = "illegal-datestamp",
        /// A set without a setSpec, or with an illegal one.
        IllegalSetSpec = "illegal-set-spec",
        /// No header.
        MissingHeader = "missing-header",
        /// A payload that is missing, text, or more than one element.
        IllegalPayload = "illegal-payload",
        /// Another violation of the OAI-PMH schema.
        IllegalEnvelope = "illegal-envelope",
        /// More repairs than `repairs_per_record_max`.
        TooManyRepairs = "too-many-repairs",
        /// Longer than `record_bytes_max`.
        RecordTooLong = "record-too-long",
        /// Nested deeper than `depth_max`.
        TooDeep = "too-deep",
        /// More attributes on a tag than `attributes_per_tag_max`.
        TooManyAttributes = "too-many-attributes",
        /// A tag longer than `tag_bytes_max`.
        TagTooLong = "tag-too-long",
        /// Text that is neither UTF-8 nor windows-1252, in an unknown charset.
        UnknownCharset = "unknown-charset",
        /// The input ended inside the item.
        Truncated = "truncated",
        /// A necessary repair is turned off.
        RepairOff = "repair-off",
        /// Text outside the items, or a broken item, that contains another item or a resumptionToken and
        /// cannot be read.
        UnreadItem = "unread-item",
    }
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

named_enum! {
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
        Empty = "empty-body",
        /// An HTML page.
        Html = "html-page",
        /// A challenge for browsers or a login page.
        BotWall = "bot-wall",
        /// JSON.
        Json = "json-body",
        /// Another body without an OAI-PMH document element in its first bytes.
        Foreign = "no-oai-pmh",
        /// An OAI-PMH 1.0 or 1.1 response that cannot be converted to 2.0.
        Version1 = "version-1",
        /// OAI-PMH items without the document element around them.
        MissingEnvelope = "missing-envelope",
        /// A static repository, which a mapping can serve.
        StaticRepository = "static-repository",
        /// An error with a code that is not similar to a legal one.
        UnknownError = "unknown-error",
        /// An OAI-PMH document without a usable item, token or error.
        NothingKept = "nothing-kept",
        /// An envelope that cannot be repaired, or that exceeds a limit before the first item.
        BrokenEnvelope = "broken-envelope",
    }
}

impl NotOai {
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
