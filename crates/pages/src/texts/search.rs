//! The texts of the pages and feeds of a search.

use super::common::{OPEN_ACCESS, number_of_records};
use crate::search::{FacetKind, PAGES_MAX, ResultList, SearchAddress, SearchFault, SortOrder};

/// The name of the search box and of its page.
pub const SEARCH: &str = "Search";
/// The name of the page of the last changed records.
pub const RECENT: &str = "Recently changed records";
pub(crate) const BOX_LABEL: &str = "Search the records of all repositories";
pub(crate) const EXAMPLES: &str = "For example";
pub(crate) const SYNTAX: &str = "A search finds all records with at least one of the words, and shows the best first. Put + \
    before a word that must occur, and - before a word that must not occur. Put words into quotation marks if they must \
    stand side by side. To search in one field, write its name and a colon before the word: title, creator, subject, \
    description, publisher, contributor, date, type, format, identifier, source, language, relation, coverage or rights.";
pub(crate) const FILTERS: &str = "Narrow the results";
pub(crate) const TO_FILTERS: &str = "Narrow these results";
pub(crate) const CHOSEN: &str = "Only";
pub(crate) const REMOVE: &str = "remove";
pub(crate) const MORE_VALUES: &str = "More";
pub(crate) const ESTIMATED: &str = "The numbers are estimated.";
pub(crate) const ORDER: &str = "Order";
pub(crate) const FEED: &str = "These results as a feed";
pub(crate) const JSON: &str = "as JSON";
pub(crate) const OFF_TITLE: &str = "No search";
pub(crate) const OFF: &str =
    "This server has no search: search.enabled is false in oaimend.toml, or no repository is mirrored.";
pub(crate) const BUILDING_TITLE: &str = "Search is not ready yet";
pub(crate) const BUILDING: &str = "The index of all records is being built. Try again in a minute.";
pub(crate) const BUSY_TITLE: &str = "Too many searches";
pub(crate) const BUSY: &str = "The server is busy with other searches. Try again in a few seconds.";
pub(crate) const UNREADABLE_TITLE: &str = "Search is not available now";
pub(crate) const UNREADABLE: &str = "The index of the records cannot be read. Try again in a few minutes.";
pub(crate) const NO_RESULTS: &str = "No record matches.";
pub(crate) const WHAT_TO_TRY: &str = "What to try";
pub(crate) const TRY_WORDS: &str = "Check the spelling, and use fewer or more common words.";
pub(crate) const TRY_PLUS: &str =
    "Remove + and quotation marks, so that records with some of the words are found.";
pub(crate) const TRY_ALL_VALUES: &str = "Search without the chosen values";
pub(crate) const NO_MORE: &str = "There are no results on this page.";
pub(crate) const FIRST_PAGE: &str = "The first page of the results";
pub(crate) const CHANGED: &str = "changed";
pub(crate) const MORE_CREATORS: &str = "and others";

/// Queries that show what the box understands.
pub(crate) const EXAMPLE_QUERIES: [&str; 4] =
    ["climate change", "\"climate change\"", "+climate -policy", "title:climate creator:smith"];

/// The title of a page or of a feed of results.
pub fn title(address: &SearchAddress) -> String {
    match (address.list, address.query.as_str()) {
        (ResultList::Recent, _) => RECENT.to_owned(),
        (ResultList::Search, "") => SEARCH.to_owned(),
        (ResultList::Search, query) => {
            format!("{SEARCH}: {}", query.chars().take(TITLE_CHARS_MAX).collect::<String>())
        }
    }
}

/// Longest query in a title, in characters.
const TITLE_CHARS_MAX: usize = 100;

/// What the search box of a browser says of the site.
pub fn description(site_name: &str) -> String {
    format!("Search the records of all repositories of {site_name}")
}

/// The message at the box for a wrong parameter.
pub fn fault(fault: SearchFault) -> String {
    match fault {
        SearchFault::Sort => "sort is relevance, newest or oldest.".to_owned(),
        SearchFault::Page => format!("page is a number from 1 to {PAGES_MAX}."),
        SearchFault::Year => "year is a year such as 2001, or a range such as 1990-1999.".to_owned(),
        SearchFault::Access => "access is open or other.".to_owned(),
    }
}

/// The message for a repository whose records no search finds.
pub fn not_searched(repository: &str) -> String {
    let repository = repository.chars().take(TITLE_CHARS_MAX).collect::<String>();
    format!(
        "The repository {repository} is not searched. Search all repositories, or one that is mirrored here and whose \
         records have pages."
    )
}

/// How many records can be searched.
pub(crate) fn searchable(records: u64) -> String {
    format!("{} can be searched.", number_of_records(records))
}

/// How many records match.
pub(crate) fn found(records: u64, is_estimate: bool) -> String {
    if is_estimate { format!("About {}", number_of_records(records)) } else { number_of_records(records) }
}

/// The results of a page that is not the first one.
pub(crate) fn page_number(address: &SearchAddress) -> String {
    format!(", page {}", address.pages_before + 1)
}

pub(crate) const fn facet(kind: FacetKind) -> &'static str {
    match kind {
        FacetKind::Repository => "Repository",
        FacetKind::Type => "Type",
        FacetKind::Year => "Year",
        FacetKind::Language => "Language",
        FacetKind::Access => "Access",
    }
}

pub(crate) const fn sort_order(sort: SortOrder) -> &'static str {
    match sort {
        SortOrder::Relevance => "Relevance",
        SortOrder::Newest => "Newest first",
        SortOrder::Oldest => "Oldest first",
    }
}

/// The name of a value of a facet.
pub(crate) fn facet_value(kind: FacetKind, value: &str) -> &str {
    match (kind, value) {
        (FacetKind::Access, "open") => OPEN_ACCESS,
        (FacetKind::Access, "other") => "Not known to be open",
        // The label of a work without a known type.
        (FacetKind::Type, "Record") => "Other",
        (FacetKind::Language, tag) => {
            LANGUAGES.iter().find(|(known, _)| *known == tag).map_or(value, |(_, name)| name)
        }
        _ => value,
    }
}

/// The names of frequent languages. Others are shown as their tag.
const LANGUAGES: &[(&str, &str)] = &[
    ("ar", "Arabic"),
    ("bg", "Bulgarian"),
    ("ca", "Catalan"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("fa", "Persian"),
    ("fi", "Finnish"),
    ("fr", "French"),
    ("he", "Hebrew"),
    ("hr", "Croatian"),
    ("hu", "Hungarian"),
    ("id", "Indonesian"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("ko", "Korean"),
    ("la", "Latin"),
    ("nl", "Dutch"),
    ("no", "Norwegian"),
    ("pl", "Polish"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("sl", "Slovenian"),
    ("sr", "Serbian"),
    ("sv", "Swedish"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("zh", "Chinese"),
];
