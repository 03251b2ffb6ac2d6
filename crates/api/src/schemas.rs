//! The schemas of parameters: each pattern and limit once.

use crate::fields::RecordField;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Maximum number of items that a page can be asked to have.
pub const LIMIT_MAX: usize = 1_000;
/// The number of items of a page if the request does not say it.
pub const LIMIT_DEFAULT: usize = 100;
/// Maximum number of found records that a page can be asked to have.
pub(crate) const SEARCH_LIMIT_MAX: usize = 100;
/// The number of found records of a page if the request does not say it.
pub const SEARCH_LIMIT_DEFAULT: usize = 20;
/// Longest cursor, in characters.
const CURSOR_CHARS_MAX: usize = 9_000;
/// Longest identifier of a record, in characters.
const IDENTIFIER_CHARS_MAX: usize = 1_000;
/// Longest setSpec, in characters.
const SET_CHARS_MAX: usize = 1_000;
/// Longest metadataPrefix, in characters.
const PREFIX_CHARS_MAX: usize = 100;
/// Longest id of a repository, in characters.
const REPOSITORY_CHARS_MAX: usize = 200;
/// Longest query of a search, in characters.
const QUERY_CHARS_MAX: usize = 500;
/// Longest value that narrows a search, in characters.
const VALUE_CHARS_MAX: usize = 100;

/// A day of the calendar from 1000 on, with or without a time in UTC (OAI-PMH 2.0, section 3.3).
const DATESTAMP: &str = "^(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
    |02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29)\
    (?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$";

/// Declares the schemas of values. The types have no values: they name the schemas in the derived parameters.
macro_rules! schemas {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) enum $name {}

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    RefOr::T(Schema::from($schema.build()))
                }
            }

            impl ToSchema for $name {}
        )*
    };
}

schemas! {
    /// A repository: an id of a mapping, `_all`, `_mirror/ID`, `_view/NAME`, `_federation` or `_federation/NAME`.
    RepositoryId = text("^[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)?$", REPOSITORY_CHARS_MAX);
    /// A metadataPrefix (OAI-PMH 2.0, section 3.4).
    MetadataPrefix = text("^[A-Za-z0-9_.!~*'()-]+$", PREFIX_CHARS_MAX);
    /// A setSpec (OAI-PMH 2.0, section 2.6).
    SetSpec = text("^[A-Za-z0-9_.!~*'()-]+(?::[A-Za-z0-9_.!~*'()-]+)*$", SET_CHARS_MAX);
    /// An identifier: any text of XML on one line that does not begin with a blank.
    Identifier = text(
        r"^[^\x00-\x20\x7F\uFFFE\uFFFF][^\x00-\x1F\x7F\uFFFE\uFFFF]*$", IDENTIFIER_CHARS_MAX
    );
    /// A day, or a second in UTC.
    Datestamp = text(DATESTAMP, "YYYY-MM-DDThh:mm:ssZ".len());
    /// A cursor of this server. Others that match are refused, because their signature is wrong.
    Cursor = text("^oaiapi1_[A-Za-z0-9_-]+$", CURSOR_CHARS_MAX);
    /// The number of items of a page.
    Limit = number_up_to(LIMIT_MAX, LIMIT_DEFAULT);
    /// The number of found records of a page.
    SearchLimit = number_up_to(SEARCH_LIMIT_MAX, SEARCH_LIMIT_DEFAULT);
    /// Different names of fields.
    Fields = ArrayBuilder::new()
        .items(RefOr::T(Schema::from(one_of(RecordField::ALL.iter().map(|field| field.name())).build())))
        .min_items(Some(1))
        .unique_items(true);
    /// A query of the search: a text on one line with a character that is no blank of Unicode (`White_Space`).
    SearchQuery = text(
        r"^[^\x00-\x1F\x7F]*[^\x00-\x20\x7F\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000][^\x00-\x1F\x7F]*$",
        QUERY_CHARS_MAX
    );
    /// A value that narrows a search: one that no record has finds nothing.
    SearchValue = text(r"^[!-~](?:[ -~]*[!-~])?$", VALUE_CHARS_MAX);
    /// A year.
    Year = text("^[1-9][0-9]{3}$", 4);
    /// Whether everyone can read the full text.
    Access = one_of(["open", "other"].into_iter());
    /// The order of found records.
    Sort = one_of(["relevance", "newest", "oldest"].into_iter());
}

fn text(pattern: &str, chars_max: usize) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1));
    text.max_length(Some(chars_max)).pattern(Some(pattern))
}

fn number_up_to(max: usize, default: usize) -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(max as u64));
    number.default(Some(default.into()))
}

fn one_of(names: impl Iterator<Item = &'static str>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names))
}
