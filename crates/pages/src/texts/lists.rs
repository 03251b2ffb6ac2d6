//! The texts of the lists of records, and of the pages with the values of a field.

use super::common::{CREATORS, RECORDS, number_of_records};
use crate::list::BrowsedField;
use maud::{Markup, html};

pub(crate) const NONE: &str =
    "This list has no records now. A record that changes moves to the list of the month of its change.";
pub(crate) const BY_MONTH: &str = "by the month of their last change";
pub(crate) const IN_ORDER: &str = "in the order of their last changes";
pub(crate) const IN_MIRROR: &str = "in this mirror";
pub(crate) const AT_SOURCE: &str = "at the source";
pub(crate) const NOT_COMPLETE: &str =
    "It is not complete: the source has more records, or did not send its list to the end.";
pub(crate) const BY_SET: &str = "Records by set";
pub(crate) const NEIGHBOURS: &str = "Neighbouring lists";

pub(crate) const FIELDS: &str = "Fields";
pub(crate) const TOO_MANY_VALUES: &str =
    "There are too many values to list. Enter the first letters of the values that you look for.";
pub(crate) const NO_VALUES: &str = "No record has such a value.";
pub(crate) const SHOW: &str = "Show";

/// The months of a year.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The heading of a list. `parts` are the month and the range of the list.
pub(crate) fn heading(set_name: Option<&str>, parts: &[String]) -> String {
    let list = set_name.map_or_else(|| RECORDS.to_owned(), |name| format!("{RECORDS} of the set {name}"));
    [&[list], parts].concat().join(", ")
}

/// How many records a list has, and how they are arranged.
pub(crate) fn introduction(count: u64, order: &str, place: &str) -> String {
    format!("{}, {order} {place}.", number_of_records(count))
}

pub(crate) fn requested_at(time: &str) -> Markup {
    html! { "The list was requested from the source on " time datetime=(time) { (time) } ". " }
}

/// The mark after the first creators of a record.
pub(crate) fn and_more_creators(left_out: usize) -> String {
    format!(" and {left_out} more")
}

pub(crate) const fn field(field: BrowsedField) -> &'static str {
    match field {
        BrowsedField::Creators => CREATORS,
        BrowsedField::Titles => "Titles",
        BrowsedField::Years => "Years of publication",
    }
}

/// The label of the box for the start of a value.
pub(crate) const fn beginning_with(field: BrowsedField) -> &'static str {
    match field {
        BrowsedField::Creators => "Names that begin with",
        BrowsedField::Titles => "Titles that begin with",
        BrowsedField::Years => "Years that begin with",
    }
}

/// What a page without values says.
pub(crate) const fn without_values(field: BrowsedField) -> &'static str {
    match field {
        BrowsedField::Creators => "No record here has a creator.",
        BrowsedField::Titles => "No record here has a title.",
        BrowsedField::Years => "No record here has a year of publication.",
    }
}
