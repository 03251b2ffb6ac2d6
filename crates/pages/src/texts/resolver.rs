//! The texts of the pages of the resolver.

use super::common::and_more;

pub(crate) const TITLE: &str = "Find an identifier";
pub(crate) const BOX_LABEL: &str = "Identifier";
pub(crate) const FIND: &str = "Find";
pub(crate) const INTRODUCTION: &str = "Enter the OAI identifier of a record, or a DOI, Handle, URN, ISBN, URL, or the \
    number of an article in arXiv or PubMed. You see all mirrored records that have it or name it.";
pub(crate) const EXAMPLES: &str = "For example";
pub(crate) const IDENTIFIED: &str = "Records with this identifier";
pub(crate) const NAMED_BY: &str = "Records that name it";
pub(crate) const AT_SERVICES: &str = "Other services";
pub(crate) const UNKNOWN: &str = "No mirrored record has or names this identifier.";
pub(crate) const GO: &str = "Open the best record";
pub(crate) const FORMAT: &str = "Format";
pub(crate) const CHANGED: &str = "Changed";
pub(crate) const STATE: &str = "State";
pub(crate) const LINKS: &str = "Links";
pub(crate) const DELETED: &str = "deleted";
pub(crate) const AVAILABLE: &str = "available";
pub(crate) const MIRROR: &str = "mirror";
pub(crate) const REPOSITORY: &str = "repository";
pub(crate) const HAS_MORE: &str = "More records may name it. Only the first ones were read.";
pub(crate) const BUILDING_TITLE: &str = "Not ready yet";
pub(crate) const UNREADABLE_TITLE: &str = "Not available now";
pub const BUILDING: &str =
    "The identifiers of new records are being read from the mirror. Try again in a few seconds.";
pub const UNREADABLE: &str = "The mirror cannot be read. Try again in a few minutes.";
pub const NOT_TEXT: &str = "the identifier is not text in UTF-8";
pub const NO_RECORD: &str = "no mirrored record has or names this identifier";
pub const ALL_DELETED: &str = "the record was deleted";
pub const BEST_RECORD: &str = "the record is at another URL";
pub const NOT_A_LIST: &str =
    "the body is not a list of identifiers: send a JSON array of strings, or one on each line";
pub const NO_IDENTIFIER: &str = "name an identifier after /_resolve/, or send a list of identifiers by POST";
pub const BUSY: &str = "other lists of identifiers are being resolved; try again in a second";

/// Identifiers that show what the box understands.
pub(crate) const EXAMPLE_IDENTIFIERS: [&str; 4] =
    ["https://doi.org/10.1000/182", "arXiv:0704.0001", "ISBN 978-3-16-148410-0", "oai:arXiv.org:0704.0001"];

/// Too many identifiers in one request.
pub fn too_many(count_max: usize) -> String {
    format!("a request may have at most {count_max} identifiers; send several requests")
}

/// What an identifier is.
pub(crate) fn meaning(kind: &str) -> &str {
    match kind {
        "doi" => "DOI",
        "handle" => "Handle",
        "urn" => "URN",
        "arxiv" => "arXiv",
        "pmid" => "PubMed",
        "isbn" => "ISBN",
        _ => "URL",
    }
}

/// The field of a record that names an identifier.
pub(crate) fn field(name: &str) -> &'static str {
    match name {
        "identifier" => "as its identifier",
        "references" => "in its references",
        "isReferencedBy" => "as a work that cites it",
        "relation" => "as a related work",
        "fullText" => "in the references of its full text, which is a guess",
        "description" => "in its abstract",
        _ => "as its source",
    }
}

/// The repositories that may have further records.
pub fn incomplete(repositories: &[String]) -> String {
    let shown = repositories.iter().take(LISTED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match repositories.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        left_out => format!(" {}", and_more(left_out as u64)),
    };
    format!(
        "Records of these repositories may be missing, because they are not harvested completely: {shown}{more}."
    )
}

/// Maximum number of repositories that a sentence names.
const LISTED_MAX: usize = 20;

/// What a service knows of the record.
pub(crate) fn service(state: &str) -> &'static str {
    match state {
        "found" => "has the record",
        "not-found" => "does not have the record",
        "not-reached" => "was not reached in time",
        "busy" => "was not requested, because oaimend waits for too many services; load this page again",
        _ => "was not requested",
    }
}
