//! Diagnostics: what SRU responses say about failures.

/// A failure that a response reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of the fault.
    pub code: DiagnosticCode,
    /// What it concerns, in the form that the list of diagnostics asks for; empty for nothing.
    pub details: String,
}

impl Diagnostic {
    /// A diagnostic. Details are cut after 200 bytes.
    pub fn new(code: DiagnosticCode, details: impl Into<String>) -> Self {
        let mut details = details.into();
        details.truncate(details.floor_char_boundary(DETAILS_BYTES_MAX));
        Self { code, details }
    }
}

/// Maximum length of the details, in bytes. They repeat what the client sent.
const DETAILS_BYTES_MAX: usize = 200;

macro_rules! diagnostics {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $message:literal;)*) => {
        /// A number of the SRU diagnostics list, whose URI is `info:srw/diagnostic/1/NUMBER`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DiagnosticCode {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl DiagnosticCode {
            /// The number in the list.
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// The text in the list.
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$name => $message,)*
                }
            }
        }
    };
}

diagnostics! {
    /// The request can be repeated later.
    SystemTemporarilyUnavailable = 2, "System temporarily unavailable";
    /// There is no such operation.
    UnsupportedOperation = 4, "Unsupported operation";
    /// The details are the highest supported version.
    UnsupportedVersion = 5, "Unsupported version";
    /// The details are the name of the parameter.
    UnsupportedParameterValue = 6, "Unsupported parameter value";
    /// The details are the name of the parameter.
    MandatoryParameterNotSupplied = 7, "Mandatory parameter not supplied";
    /// The details are the name of the parameter.
    UnsupportedParameter = 8, "Unsupported parameter";
    /// The details say where and why.
    QuerySyntaxError = 10, "Query syntax error";
    /// The details are the query type.
    UnsupportedQueryType = 11, "Unsupported query type";
    /// The details are the maximum.
    TooManyCharactersInQuery = 12, "Too many characters in query";
    /// The details are the place.
    UnsupportedUseOfParentheses = 13, "Invalid or unsupported use of parentheses";
    /// The details are the place.
    UnsupportedUseOfQuotes = 14, "Invalid or unsupported use of quotes";
    /// The details are the URI or the prefix of the set.
    UnsupportedContextSet = 15, "Unsupported context set";
    /// The details are the index.
    UnsupportedIndex = 16, "Unsupported index";
    /// The details are the relation.
    UnsupportedRelation = 19, "Unsupported relation";
    /// The details are the modifier.
    UnsupportedRelationModifier = 20, "Unsupported relation modifier";
    /// The details are the relation and the index.
    UnsupportedCombinationOfRelationAndIndex = 22, "Unsupported combination of relation and index";
    /// The details are the maximum.
    TooManyCharactersInTerm = 23, "Too many characters in term";
    /// The details are the escaped character.
    NonSpecialCharacterEscaped = 26, "Non special character escaped in term";
    /// A term is empty.
    EmptyTermUnsupported = 27, "Empty term unsupported";
    /// The details are the character.
    MaskingCharacterNotSupported = 28, "Masking character not supported";
    /// The details are the minimum number of characters.
    MaskedWordsTooShort = 29, "Masked words too short";
    /// The details are the character.
    AnchoringCharacterNotSupported = 31, "Anchoring character not supported";
    /// A phrase has a masked word.
    AdjacencyWithMasking = 33, "Combination of proximity/adjacency and masking characters not supported";
    /// The details are the form that the term must have.
    InvalidTermForIndexOrRelation = 36, "Term in invalid format for index or relation";
    /// The details are the maximum.
    TooManyBooleanOperators = 38, "Too many boolean operators in query";
    /// The query has `prox`.
    ProximityNotSupported = 39, "Proximity not supported";
    /// The details are the modifier.
    UnsupportedBooleanModifier = 46, "Unsupported boolean modifier";
    /// The details say why.
    CannotProcessQuery = 47, "Cannot process query; reason unknown";
    /// The details are the character.
    MaskingCharacterInUnsupportedPosition = 49, "Masking character in unsupported position";
    /// The query has `cql.resultSetId`.
    ResultSetsNotSupported = 50, "Result sets not supported";
    /// The start is after the last record, or after the last one that the server sends.
    FirstRecordPositionOutOfRange = 61, "First record position out of range";
    /// `maximumRecords` is negative.
    NegativeNumberOfRecordsRequested = 62, "Negative number of records requested";
    /// The record is damaged and will be fetched again.
    RecordTemporarilyUnavailable = 64, "Record temporarily unavailable";
    /// The record was deleted after it was found.
    RecordDoesNotExist = 65, "Record does not exist";
    /// The details are the schema.
    UnknownSchemaForRetrieval = 66, "Unknown schema for retrieval";
    /// The details are the schema.
    RecordNotAvailableInThisSchema = 67, "Record not available in this schema";
    /// The details are the value.
    UnsupportedRecordPacking = 71, "Unsupported XML escaping value";
    /// The details are the sequence.
    UnsupportedSortSequence = 82, "Unsupported sort sequence";
    /// The details are the maximum.
    TooManySortKeys = 84, "Too many sort keys to sort";
    /// The details are the schema.
    UnsupportedSchemaForSort = 87, "Unsupported schema for sort";
    /// The details are the path.
    UnsupportedPathForSort = 88, "Unsupported path for sort";
    /// The details are the value.
    UnsupportedMissingValueAction = 92, "Unsupported missing value action";
    /// The term of a scan cannot be at this place.
    ResponsePositionOutOfRange = 120, "Response position out of range";
}
