//! Reasons: why an item is put aside, and why an input is no response at all.

/// Why an item could not be mended and went to quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum QuarantineReason {
    /// Tags that do not match and of which no reading is plausible.
    MismatchedTags,
    /// A tag that is no tag: illegal name, missing end.
    MalformedTag,
    /// A namespace prefix that is neither declared nor well known.
    UnknownPrefix,
    /// No identifier, or an empty one.
    MissingIdentifier,
    /// No datestamp, or an empty one.
    MissingDatestamp,
    /// A datestamp that names no day, or could name two.
    IllegalDatestamp,
    /// A setSpec outside the alphabet of the schema.
    IllegalSetSpec,
    /// No header.
    MissingHeader,
    /// Payload that is text, or more than one element.
    IllegalPayload,
    /// Any other breach of the OAI-PMH schema.
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
    /// Text that is neither UTF-8 nor windows-1252, in a charset that nothing decides.
    UnknownCharset,
    /// The input ended inside it.
    Truncated,
    /// A repair it needs is turned off.
    RepairOff,
    /// Text outside the items, or a broken item, that holds another item or a resumptionToken which
    /// could not be read.
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

    /// The one kebab-case name.
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

/// Why a whole input is no OAI-PMH response that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NotOai {
    /// Not one byte, or white space only.
    Empty,
    /// An HTML page.
    Html,
    /// A challenge of a bot wall, or a login page.
    BotWall,
    /// JSON.
    Json,
    /// Anything else that holds no OAI-PMH document element in its first bytes.
    Foreign,
    /// An OAI-PMH 1.0 or 1.1 response that cannot be made one of 2.0.
    Version1,
    /// Items of OAI-PMH without the document element around them.
    MissingEnvelope,
    /// A static repository, which belongs into the mappings.
    StaticRepository,
    /// An error whose code is near to no legal one.
    UnknownError,
    /// An OAI-PMH document of which nothing can be kept: no item, no token, no error.
    NothingKept,
    /// An envelope that is beyond repair: a limit was met before the first item.
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

    /// The one kebab-case name.
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

    /// What to tell a person: what came, whose fault it is, what to do.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Empty => "the source answered with an empty body; ask again later",
            Self::Html => {
                "the source answered with an HTML page instead of OAI-PMH; check the base URL in a browser"
            }
            Self::BotWall => {
                "the source answered with a bot challenge or login page; ask its operator to let harvesters pass"
            }
            Self::Json => "the source answered with JSON instead of OAI-PMH; check the base URL",
            Self::Foreign => {
                "the source answered with something that is no OAI-PMH document; check the base URL"
            }
            Self::Version1 => {
                "OAI-PMH 1.x response that cannot become one of 2.0: identifiers without datestamps, or the upgrade is turned off; ask for ListRecords instead"
            }
            Self::MissingEnvelope => {
                "the source answered with OAI-PMH headers or records, but without the OAI-PMH element around them; check the base URL, it may be that of an export or of another interface"
            }
            Self::StaticRepository => {
                "this is a static repository, one file that stands for a whole repository; serve it by static_file in a file of the mappings folder"
            }
            Self::UnknownError => {
                "the source answered with an error code that OAI-PMH does not know; ask again later or tell its operator"
            }
            Self::NothingKept => {
                "nothing of the page could be kept: no item, no token, no error; see the report for the items put aside"
            }
            Self::BrokenEnvelope => {
                "the envelope of the response is broken beyond repair; tell the source's operator"
            }
        }
    }
}
