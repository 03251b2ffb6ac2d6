//! The texts of responses to OpenURLs.

/// The record of the work.
pub const RECORD: &str = "the record is at another URL";
/// All places of its identifier.
pub const PLACES: &str = "the places of the identifier are at another URL";
/// A full text.
pub const FULL_TEXT: &str = "the full text is at its source";
/// Several records.
pub const SEVERAL: &str = "several records fit the description; the search shows them";
/// The format is not available.
pub const NO_DIDL: &str =
    "the repository of the record has no format didl; its operator can turn the crosswalk on";
/// The record names none.
pub const NO_FULL_TEXT: &str = "the record names no full text";

/// No record fits. `searched` is the search, if there was one.
pub fn nothing(searched: Option<&str>) -> String {
    match searched {
        Some(searched) => format!("no mirrored record fits the description; searched for {searched}"),
        None => "no mirrored record has an identifier of the description, which is not enough for a search"
            .to_owned(),
    }
}

/// The OpenURL wants only services that do not exist here.
pub fn unknown_service(name: &str) -> String {
    format!("there is no service {name:?}; docs/how-to/openurl.md lists the services")
}
