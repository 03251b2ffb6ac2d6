//! The texts of the overview, and of the pages of repositories and of views.

use super::numbers::counted;
use crate::repository::RepositoryState;
use maud::{Markup, html};

pub(crate) const INTRODUCTION: &str =
    "Point a harvester at a base URL. It gets the records of the source by OAI-PMH, whole and valid.";
pub(crate) const EMPTY_PAGE: &str = "This page has no repositories. ";
pub(crate) const SHOW_ALL: &str = "Show all";
pub(crate) const FILTER_LABEL: &str = "Filter by name or id";
pub(crate) const FILTER: &str = "Filter";
pub(crate) const SHARES: &str = ". Percentages are shares of the items that the source sent in 30 days.";
pub(crate) const LAST_SUCCESS: &str = "Last success";
pub(crate) const REPAIRED: &str = "Repaired";
pub(crate) const QUARANTINED: &str = "Quarantined";
pub(crate) const LAST_DAYS: &str = "Last 30 days";
/// Before the base URL of a source.
pub(crate) const SOURCE_IS: &str = "Source: ";
/// After the link to the state of the server.
pub(crate) const STATUS_CONTENT: &str = ": requests in flight, limits of sources, harvests";

pub(crate) const HARVEST_THIS: &str = "Harvest this repository";
pub(crate) const MIRROR_URL: &str = "Base URL of the mirror, without requests to the source";
pub(crate) const ALL_RECORDS: &str = "All records";
pub(crate) const CHANGES: &str = "Changes since a date";
pub(crate) const RESPONSES: &str = "Responses: ";
pub(crate) const FORMATS_RESPONSE: &str = "formats";
pub(crate) const SETS_RESPONSE: &str = "sets";
pub(crate) const BROWSE: &str = "Browse the records";
pub(crate) const FEED: &str = "Feed of its last changed records";

pub(crate) const MIRROR: &str = "Mirror";
pub(crate) const SOURCE: &str = "Source";
pub(crate) const NOT_STORED: &str = "Items that could not be stored";
pub(crate) const LAST_COMPLETE_HARVEST: &str = "Last complete harvest";
pub(crate) const LAST_HARVEST: &str = "Last harvest";
pub(crate) const NEXT_HARVEST: &str = "Next harvest";
pub(crate) const LAST_RESPONSE: &str = "Last response";

pub(crate) const IDENTIFICATION: &str = "What the source says";
pub(crate) const PRECISION: &str = "Precision of datestamps";
pub(crate) const VERSION: &str = "Version of OAI-PMH";
pub(crate) const NOT_IDENTIFIED: &str = "Not known yet. It appears after the first request of a harvester.";
pub(crate) const DELETIONS_VANISH: &str = "no: deleted records vanish";
pub(crate) const DELETIONS_ARE_FORGOTTEN: &str = "transient: deletions may be forgotten";
pub(crate) const DELETIONS_STAY: &str = "persistent: deletions stay visible";
pub(crate) const DAYS: &str = "days";
pub(crate) const SECONDS: &str = "seconds";

pub(crate) const FOR_OPERATORS: &str = "For operators";
pub(crate) const SOURCE_URL: &str = "Base URL of the source";
pub(crate) const CIRCUIT: &str = "Circuit";
pub(crate) const QUARANTINED_RECORDS: &str = "Quarantined records";
pub(crate) const CONFIGURATION: &str = "Effective configuration";

pub(crate) const TIMELINE: &str = "Harvested datestamps";
pub(crate) const NOTHING_COMPLETE: &str = "nothing is complete yet";
pub(crate) const NOT_KNOWN: &str = "Not known yet.";
pub(crate) const PREFIX: &str = "Prefix";
pub(crate) const DELETED: &str = "Deleted";
pub(crate) const NAMESPACE: &str = "Namespace";
pub(crate) const NO_SETS: &str = "The source has no sets.";
pub(crate) const STATE: &str = "State";
pub(crate) const SET_SPEC: &str = "setSpec";
pub(crate) const ALL_SETS: &str = "all sets";

pub(crate) const REPAIRS: &str = "Most frequent repairs";
/// Before the identifier of an example.
pub(crate) const EXAMPLE_RECORD: &str = "Record ";
pub(crate) const FAILURES: &str = "Failures of the source";
pub(crate) const NO_FAILURES: &str = "No failure is known.";
pub(crate) const TIME: &str = "Time";
pub(crate) const FAILURE: &str = "Failure";

pub(crate) const CONFORMANCE: &str = "Conformance of the source";
pub(crate) const FINDINGS: &str = "Rules that fail or deserve a warning";
pub(crate) const RULE: &str = "Rule";
pub(crate) const REQUIREMENT: &str = "Requirement and remedy";
pub(crate) const FAILS: &str = "fails";
pub(crate) const WARNING: &str = "warning";
pub(crate) const NOT_CHECKED: &str = "Not checked yet.";

pub(crate) const NO_ACTIVITY: &str = "No request was sent to this repository.";
pub(crate) const REQUESTS: &str = "Requests";
pub(crate) const VALID_ITEMS: &str = "Valid items";
pub(crate) const REPAIRED_ITEMS: &str = "Repaired items";
pub(crate) const QUARANTINED_ITEMS: &str = "Quarantined items";
pub(crate) const ACTIVITY_NOTE: &str = "Requests are those of harvesters, and of harvests of the mirror. Items are records, \
    headers, sets and formats as the source sent them. A quarantined item has no safe repair and is left out.";

pub(crate) const UNKNOWN_TITLE: &str = "No such repository";
pub(crate) const UNKNOWN_PAGE_TITLE: &str = "No such page";
pub(crate) const NO_LISTS: &str =
    "This server has no copy of the repository, so it has no lists of its records. ";
pub(crate) const NONE_SERVED: &str = "This server has no repository yet.";

pub(crate) const HARVEST_IT: &str = "Harvest it";
pub(crate) const SETS_OF_FEDERATION: &str = "Lists go through them in this order. Each repository is a set of all its \
    records, and its own sets come below this set.";
pub(crate) const FORMATS_OF_FEDERATION: &str =
    "A list contains the repositories that have its format. Each has oai_dc, if need be by a crosswalk.";
pub(crate) const NEWEST: &str = "Newest records";
pub(crate) const UNREADABLE_VIEW: &str =
    "The records of the view cannot be read now. Open this page again in a few minutes.";
pub(crate) const EMPTY_VIEW: &str = "There is no record to show.";
pub(crate) const VIEW_FEED: &str = "Feed of these records";

/// In place of the overview of a server without repositories.
pub(crate) fn none_yet() -> Markup {
    html! {
        "There is no repository yet. Put a file into the mappings folder, or start with " code { "--map ID=URL" } "."
    }
}

pub(crate) fn none_contains(filter: &str) -> Markup {
    html! { "No repository contains " q { (filter) } ". " }
}

/// The link to the list of repositories for programs.
pub(crate) fn for_programs(url: &str) -> Markup {
    html! { "For programs: " a href=(url) { "friends.xml" } " lists all base URLs." }
}

pub(crate) fn page_of(page: usize, count: usize) -> String {
    format!("Page {page} of {count}")
}

pub(crate) fn number_of(repositories: u64) -> String {
    counted(repositories, "repository", "repositories")
}

/// How many of all repositories match the filter.
pub(crate) fn matching(matching: &str, all: u64) -> String {
    format!("{matching} of {}", number_of(all))
}

/// The name of the link to the records of a repository, for screen readers.
pub(crate) fn records_of(id: &str) -> String {
    format!("Records of {id}")
}

/// Above the name of a repository.
pub(crate) fn kind(id: &str) -> Markup {
    html! { "Repository " bdi { (id) } }
}

/// A state in a sentence, if it is not the usual one.
pub(crate) const fn sentence(state: RepositoryState) -> Option<&'static str> {
    match state {
        RepositoryState::Live | RepositoryState::Complete => None,
        RepositoryState::Harvesting => {
            Some("The mirror is being harvested. New and changed records appear when the harvest ends.")
        }
        RepositoryState::Incomplete => Some(
            "The last harvest of the mirror was not complete. The next one continues it; records may be missing until then.",
        ),
        RepositoryState::NeverHarvested => {
            Some("The mirror of this repository is being built. Its records appear after the first harvest.")
        }
        RepositoryState::Unreadable => Some("The mirror cannot be read now. Open this page again later."),
    }
}

pub(crate) const fn state(state: RepositoryState) -> &'static str {
    match state {
        RepositoryState::Live => "live",
        RepositoryState::Complete => "complete",
        RepositoryState::Harvesting => "harvesting",
        RepositoryState::Incomplete => "incomplete",
        RepositoryState::NeverHarvested => "never harvested",
        RepositoryState::Unreadable => "not readable",
    }
}

pub(crate) fn fails_since(time: &Markup) -> Markup {
    html! { "source fails since " (time) }
}

pub(crate) fn circuit_open_for(secs: u64) -> String {
    format!("circuit open for {secs} s")
}

/// What the last harvest changed. The numbers are as people read them.
pub(crate) fn changes(stored: &str, deleted: &str) -> String {
    format!("{stored} stored, {deleted} deleted")
}

/// The harvested windows of datestamps, if some are not shown.
pub(crate) fn and_more_windows(windows: &str, left_out: usize) -> String {
    format!("{windows}, and {left_out} more windows")
}

pub(crate) fn number_of_formats(count: u64) -> String {
    counted(count, "format", "formats")
}

pub(crate) fn number_of_sets(count: u64) -> String {
    counted(count, "set", "sets")
}

pub(crate) fn no_repairs_in(days: usize) -> String {
    format!("Nothing was repaired in the last {days} days.")
}

pub(crate) fn repairs_in(days: usize) -> String {
    format!("In the last {days} days, each with its newest example.")
}

/// How often a repair was made.
pub(crate) fn times(count: u64) -> String {
    counted(count, "time", "times")
}

pub(crate) fn last_failures(count: u64) -> String {
    format!("The last {}, the newest first", counted(count, "failure", "failures"))
}

/// The result of a check: the rules that hold, those that fail, and the warnings.
pub(crate) fn checked(at: &Markup, (holds, fails, warnings): (u64, u64, u64)) -> Markup {
    html! {
        "Checked at " (at) ": "
        (counted(holds, "rule holds", "rules hold")) ", "
        (counted(fails, "fails", "fail")) ", "
        (counted(warnings, "warning", "warnings")) "."
    }
}

/// How a check is made.
pub(crate) fn how_to_check(id: &str) -> Markup {
    html! { code { "oaimend check " (id) } " saves its result for this page." }
}

pub(crate) fn last_days(days: usize) -> String {
    format!("Last {days} days")
}

/// The sparkline of some days in words.
pub(crate) fn activity(days: usize, requests: u64, failed_days: u64) -> String {
    let requests = counted(requests, "request", "requests");
    let failures = match failed_days {
        0 => "the source did not fail".to_owned(),
        days => format!("the source failed on {}", counted(days, "day", "days")),
    };
    format!("{}: {requests}, {failures}", last_days(days))
}

pub(crate) fn open_repository(url: &str, id: &str) -> Markup {
    html! { "Open the repository " a href=(url) { (id) } "." }
}

pub(crate) fn compare(overview_url: &str) -> Markup {
    html! { "Compare the URL with these repositories, or open the " a href=(overview_url) { "overview" } "." }
}

pub(crate) fn removed(id: &str) -> Markup {
    html! { "The repository " bdi.identifier { (id) } " is no longer on this server." }
}

/// The repositories and records of the view of all of them. `records` is a number as people read it.
pub(crate) fn aggregate(repositories: u64, records: &str, overview_url: &str) -> Markup {
    html! {
        "This is one repository with the records of " (number_of(repositories)) ", " (records) " in all. "
        a href=(overview_url) { "See each repository" } "."
    }
}

/// The repositories of a federation.
pub(crate) fn federation(repositories: u64) -> Markup {
    html! {
        "This is one repository with the records of " (number_of(repositories)) ". This server has no copy of them for it: "
        "each request becomes requests to these repositories."
    }
}

pub(crate) fn base_url(url: &str) -> Markup {
    html! { "Base URL: " code { (url) } }
}

/// The records of a view.
pub(crate) fn view(query: Option<&str>) -> Markup {
    html! {
        "This repository contains chosen records of the repositories on this server"
        @if let Some(query) = query { ": those that match " code { (query) } }
        ". If a record leaves it, harvesters receive it as deleted."
    }
}
