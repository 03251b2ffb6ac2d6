//! The texts about the links of a record with other records.

pub(crate) const TITLE: &str = "Citations and duplicates";
pub(crate) const CITES: &str = "Cites";
pub(crate) const CITED_BY: &str = "Cited by";
pub(crate) const SAME_WORK: &str = "The same work elsewhere";
pub(crate) const NOT_HERE: &str = ", not in this mirror";
pub(crate) const SAME_DESCRIPTION: &str = ", probably: title, year and first creator are the same";
pub(crate) const HAS_MORE: &str = "There are more. Only the first ones are shown.";
pub(crate) const NOT_READY: &str = "The records that cite it are not known yet, because the mirror is being read. Try again in a few minutes.";
pub(crate) const ALL_AS_JSON: &str = "All of them as JSON";
pub const NOT_A_PLACE: &str = "the argument after is no place in this list; begin the list again without it";

/// How a record names another one, if its field does not state a citation.
pub(crate) fn field(name: &str) -> &'static str {
    match name {
        "relation" => ", mentioned as a related work",
        "source" => ", mentioned as a source",
        "description" => ", mentioned in the abstract",
        "fullText" => ", a guess: read by a program from the references of the full text",
        _ => "",
    }
}

pub(crate) fn same_identifier(kind: &str) -> String {
    format!(", with the same {kind}")
}
