//! The facets beside the results, and the chosen values above them.

use crate::search::{Facet, FacetKind, FacetValue, SearchAddress, SearchResults};
use crate::texts::numbers::grouped;
use crate::texts::search as texts;
use maud::{Markup, html};

/// The number of values of a facet that are shown without opening the others.
const VALUES_SHOWN: usize = 8;

/// The chosen values, each with a link to the results without it.
pub(super) fn chosen(address: &SearchAddress, results: &SearchResults, base: &str) -> Markup {
    html! {
        @if !address.chosen.is_empty() {
            ul.chosen aria-label=(texts::CHOSEN) {
                @for (kind, value) in &address.chosen {
                    li {
                        (texts::facet(*kind)) ": " bdi { (name_of(*kind, value, results)) } " "
                        a href=(address.without(*kind).url(base, "")) {
                            (texts::REMOVE) span.hidden { " " (texts::facet(*kind)) }
                        }
                    }
                }
            }
        }
    }
}

/// The facets of properties of which no value is chosen.
pub(super) fn facets(address: &SearchAddress, results: &SearchResults, base: &str) -> Markup {
    html! {
        nav.side.facets id="filters" aria-label=(texts::FILTERS) {
            @for facet in open(address, results) {
                section aria-labelledby={ "facet-" (facet.kind.name()) } {
                    h2 id={ "facet-" (facet.kind.name()) } { (texts::facet(facet.kind)) }
                    (values(facet, address, base))
                }
            }
            @if results.facets_are_estimates { p.note { (texts::ESTIMATED) } }
        }
    }
}

/// The facets that divide the results. A value that all results have would lead to the same page.
pub(super) fn open<'r>(
    address: &'r SearchAddress,
    results: &'r SearchResults,
) -> impl Iterator<Item = &'r Facet> {
    let divides = |facet: &Facet| {
        let whole = facet.values.iter().any(|value| value.records == results.total);
        results.facets_are_estimates || facet.values.len() > 1 || !whole
    };
    results.facets.iter().filter(move |facet| !address.chosen.contains_key(&facet.kind) && divides(facet))
}

fn values(facet: &Facet, address: &SearchAddress, base: &str) -> Markup {
    let mut values: Vec<&FacetValue> = facet.values.iter().collect();
    if facet.kind == FacetKind::Year {
        values.sort_by(|one, other| other.value.cmp(&one.value));
    }
    let (shown, others) = values.split_at(values.len().min(VALUES_SHOWN));
    let list = |values: &[&FacetValue]| {
        html! {
            ul {
                @for value in values {
                    li {
                        a rel="nofollow" href=(address.with(facet.kind, &value.value).url(base, "")) { bdi { (shown_name(facet.kind, value)) } }
                        " " span.count { (grouped(value.records)) }
                    }
                }
            }
        }
    };
    html! {
        (list(shown))
        @if !others.is_empty() {
            details { summary { (texts::MORE_VALUES) } (list(others)) }
        }
    }
}

fn shown_name(kind: FacetKind, value: &FacetValue) -> &str {
    value.name.as_deref().unwrap_or_else(|| texts::facet_value(kind, &value.value))
}

/// The name of a chosen value. A repository without results is named by its id.
fn name_of<'a>(kind: FacetKind, value: &'a str, results: &'a SearchResults) -> &'a str {
    let facet = results.facets.iter().find(|facet| facet.kind == kind);
    let found = facet.and_then(|facet| facet.values.iter().find(|found| found.value == value));
    found.map_or_else(|| texts::facet_value(kind, value), |found| shown_name(kind, found))
}
