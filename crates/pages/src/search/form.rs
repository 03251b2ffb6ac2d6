//! The forms of results, and their choice by the ending of the path or by `Accept`.

use super::address::{ResultList, SearchAddress, SearchFault};
use crate::record_form::{read_range, weight_of};

/// A form of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchForm {
    /// The page.
    #[default]
    Html,
    /// JSON.
    Json,
    /// An Atom feed.
    Atom,
}

/// A page of results, as a request names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchTarget {
    /// The state of the search.
    pub address: SearchAddress,
    /// The first wrong parameter.
    pub fault: Option<SearchFault>,
    /// The form that the ending of the path selects; `None`: by `Accept`.
    pub form: Option<SearchForm>,
}

impl SearchForm {
    /// All forms, the preferred ones first.
    const ALL: [Self; 3] = [Self::Html, Self::Json, Self::Atom];

    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=UTF-8",
            Self::Json => "application/json",
            Self::Atom => "application/atom+xml; charset=UTF-8",
        }
    }

    /// The ending of the path that selects the form.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Html => "",
            Self::Json => ".json",
            Self::Atom => ".atom",
        }
    }

    /// The media types by which clients request the form.
    const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Html => &["text/html", "application/xhtml+xml"],
            Self::Json => &["application/json"],
            Self::Atom => &["application/atom+xml"],
        }
    }

    /// The form that an `Accept` field prefers (RFC 9110, section 12.5.1): the page if it has no preference, and if it
    /// accepts none of the forms.
    pub fn accepted(accept: &str) -> Self {
        let ranges: Vec<(String, f32)> = accept.split(',').filter_map(read_range).collect();
        let weight = |form: Self| {
            let weights = form.media_types().iter().map(|media_type| weight_of(media_type, &ranges));
            weights.fold(0.0, f32::max)
        };
        let mut best = (0.0, Self::Html);
        for form in Self::ALL {
            if weight(form) > best.0 {
                best = (weight(form), form);
            }
        }
        best.1
    }
}

impl SearchTarget {
    /// Reads the arguments of a list whose path has this ending.
    pub fn read(list: ResultList, form: Option<SearchForm>, arguments: &str) -> Self {
        let (address, fault) = SearchAddress::read(list, arguments);
        Self { address, fault, form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_form_is_served() {
        for (accept, form) in [
            ("", SearchForm::Html),
            ("*/*", SearchForm::Html),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", SearchForm::Html),
            ("image/png", SearchForm::Html),
            ("application/json", SearchForm::Json),
            ("application/json;q=0.3, application/atom+xml;q=0.4", SearchForm::Atom),
            ("text/html;q=0.2, application/*;q=0.1", SearchForm::Html),
            ("text/html;q=0, application/xhtml+xml;q=0, */*;q=0.1", SearchForm::Json),
            ("application/atom+xml, application/rss+xml, text/html;q=0.5", SearchForm::Atom),
        ] {
            assert_eq!(SearchForm::accepted(accept), form, "{accept}");
        }
    }
}
