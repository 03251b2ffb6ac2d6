//! The texts of the pages that only operators see.

use super::numbers::counted;
use maud::{Markup, html};

/// The heading of the state of the server, and the name of links to it.
pub(crate) const STATUS: &str = "State of the server";
pub(crate) const REQUESTS: &str = "Requests in flight";
pub(crate) const NO_REQUESTS: &str = "No request is in flight.";
pub(crate) const REQUEST: &str = "Request";
pub(crate) const CLIENT: &str = "Client";
pub(crate) const SECONDS: &str = "Seconds";
pub(crate) const THIS_MACHINE: &str = "this machine";

pub(crate) const SOURCES: &str = "Requests to sources";
pub(crate) const NO_SOURCES: &str = "No source has been requested since the start.";
pub(crate) const LISTS: &str = "Lists";
pub(crate) const WAITING: &str = "Waiting";
pub(crate) const GAP: &str = "Gap";
pub(crate) const NEXT_REQUEST: &str = "Next request";
pub(crate) const CIRCUIT: &str = "Circuit";
pub(crate) const SHARED_HOSTS: &str =
    "Lists in flight and waiting requests are those of the host, which repositories share.";
pub(crate) const AT_ONCE: &str = "at once";
pub(crate) const CLOSED: &str = "closed";

pub(crate) const HARVESTS: &str = "Harvests";
pub(crate) const NO_HARVESTS: &str = "No repository is mirrored.";
pub(crate) const STATE: &str = "State";
pub(crate) const PLAN_CHART: &str = "The harvests per day for each freshness, by this schedule and with equal intervals. \
    The command oaimend mirror plan prints the figures.";
pub(crate) const REQUESTED: &str = "requested, begins soon";
pub(crate) const NOT_PLANNED: &str = "not planned yet";

pub(crate) const QUARANTINE: &str = "Quarantine";
pub(crate) const EMPTY_QUARANTINE: &str = "No record of this repository is in quarantine.";
pub(crate) const QUARANTINE_INTRODUCTION: &str = "The source sent these records without a safe repair, so harvesters did not \
    get them. A record is resolved when the source has sent it whole.";
pub(crate) const QUARANTINE_IS_CUT: &str =
    "There may be more records. Only the first ones are shown, in the order of their keys.";
pub(crate) const REASON: &str = "Reason";
pub(crate) const OFFSET: &str = "Offset";
pub(crate) const LENGTH: &str = "Length";
pub(crate) const COUNT: &str = "Count";
pub(crate) const FIRST_TIME: &str = "First time";
pub(crate) const LAST_TIME: &str = "Last time";
pub(crate) const WITHOUT_IDENTIFIER: &str = "without an identifier";
pub(crate) const RECORD_WITHOUT_IDENTIFIER: &str = "Record without an identifier";
pub(crate) const QUARANTINED_RECORD: &str = "Quarantined record";
pub(crate) const FROM_PAGE_START: &str = " from the start of the page";
pub(crate) const AS_TEXT: &str = "As text";
pub(crate) const RECORD_AS_TEXT: &str = "The record as text";
pub(crate) const AS_BYTES: &str = "As bytes";
pub(crate) const RECORD_AS_BYTES: &str = "The record as hexadecimal digits";
pub(crate) const TRY_AGAIN: &str = "Try again";
pub(crate) const LONG_IDENTIFIER: &str = "The identifier is too long for a command.";
pub(crate) const NO_IDENTIFIER: &str =
    "The record has no identifier, so it cannot be requested alone. Harvest its list again.";

pub const UNKNOWN_REPOSITORY_TITLE: &str = "No such repository";
pub const UNKNOWN_REPOSITORY: &str =
    "No mapping has this id. The overview lists the repositories of this server.";
pub const UNKNOWN_KEY_TITLE: &str = "No such record";
pub const UNKNOWN_KEY: &str = "The quarantine of this repository has no record with this key.";
pub const UNREADABLE_QUARANTINE_TITLE: &str = "The quarantine cannot be read";

/// How many of the allowed lists are in flight.
pub(crate) fn lists_in_flight(in_flight: usize, max: usize) -> String {
    format!("{in_flight} of {max}")
}

/// When the next request may be sent.
pub(crate) fn after(time: &str) -> String {
    format!("in {time}")
}

pub(crate) fn open_for(secs: u64) -> String {
    format!("open for {secs} s")
}

/// A running harvest. `records` and `total` are numbers as people read them.
pub(crate) fn running(began_at: &Markup, prefix: &str, records: &str, total: Option<&str>) -> Markup {
    html! {
        "runs since " (began_at)
        @if !prefix.is_empty() {
            ": " bdi { (prefix) } ", " (records)
            @if let Some(total) = total { " of " (total) }
            " records"
        }
    }
}

pub(crate) fn next_at(time: &Markup) -> Markup {
    html! { "next at " (time) }
}

pub(crate) fn bytes(count: u64) -> String {
    counted(count, "byte", "bytes")
}

/// The command that explains a reason.
pub(crate) fn explained_by(reason: &str) -> Markup {
    html! { code { "oaimend explain " (reason) } " explains it." }
}

/// Before a command of curl for the same request as this one of oaimend.
pub(crate) fn try_again_with(repository: &str, key: &str) -> Markup {
    html! {
        "This command requests the record again. It fails as long as the source sends the same bytes. "
        code { "oaimend quarantine retry " (repository) " " (key) } " does the same."
    }
}
