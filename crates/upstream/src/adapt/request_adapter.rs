//! Adapts requests of OAI-PMH 2.0 to a source that speaks 1.0 or 1.1, or that needs other request formats.
//!
//! Everything before the exchange uses 2.0; the request is adapted just before it is sent. The response
//! is adapted by [`ItemFilter`](crate::adapt::item_filter::ItemFilter). Pure.
//!
//! In 1.x, `ListIdentifiers` lists identifiers without datestamps, so there are no headers. Such a source
//! is asked for records, and its tokens are those of a list of records. If the mapping says so, it is asked
//! for identifiers, and then for each record.

use crate::adapt::item_filter::FilterRules;
use crate::settings::{HeadersVia, Quirks, Version};
use oaimend_oai::{Argument, Request, Verb, Window};
use oaimend_store::SourceCapabilities;

/// How requests are adapted to one source.
#[derive(Clone, Debug)]
pub(crate) struct RequestAdapter {
    quirks: Quirks,
    /// The OAI-PMH version of the source, if it is known.
    version: Option<Version>,
    /// The form that the source needs, or that is being tried.
    pub(crate) form: RequestForm,
}

/// The form of requests that a source needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestForm {
    /// `from` and `until` are sent as days, and items outside the window are omitted.
    pub(crate) in_days: bool,
    /// `from` and `until` are sent as days, and all items of these days are delivered.
    pub(crate) in_whole_days: bool,
    /// Dates before this one are omitted, and so are the items before them.
    pub(crate) no_dates_before: Option<String>,
    /// Requests with a resumptionToken contain the metadataPrefix of their list.
    pub(crate) prefix_with_token: bool,
    /// Colons and slashes of identifiers are not percent-encoded.
    pub(crate) literal_identifiers: bool,
}

/// A part of a form that is tried without further requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormPart {
    PrefixWithToken,
    LiteralIdentifiers,
}

impl FormPart {
    pub(crate) fn add_to(self, form: &mut RequestForm) {
        match self {
            Self::PrefixWithToken => form.prefix_with_token = true,
            Self::LiteralIdentifiers => form.literal_identifiers = true,
        }
    }
}

/// The list that a request begins or resumes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListContext<'a> {
    /// The request that began the list, if it is known and the request resumes it.
    pub(crate) first: Option<&'a Request>,
    /// The window of the harvester, if the request resumes a list for which the source was asked for a wider one.
    pub(crate) within: Option<&'a Window>,
    /// The format of the list, if it is known.
    pub(crate) metadata_prefix: Option<&'a str>,
}

/// A request as its source takes it, and how the response is filtered.
#[derive(Debug)]
pub(crate) struct UpstreamQuery {
    pub(crate) query: String,
    pub(crate) filter: Option<FilterRules>,
}

impl RequestForm {
    /// The form that was learned of a source.
    fn new(quirks: &Quirks, learned: &SourceCapabilities) -> Self {
        Self {
            in_days: quirks.in_days || learned.refuses_seconds,
            in_whole_days: learned.misses_seconds,
            no_dates_before: learned.refuses_dates_before.clone(),
            prefix_with_token: learned.needs_prefix_with_token,
            literal_identifiers: learned.identifiers.needs_literals,
        }
    }

    /// This form, and the parts of another one that it lacks.
    #[must_use]
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            in_days: self.in_days || other.in_days,
            in_whole_days: self.in_whole_days || other.in_whole_days,
            no_dates_before: other.no_dates_before.clone().or(self.no_dates_before),
            prefix_with_token: self.prefix_with_token || other.prefix_with_token,
            literal_identifiers: self.literal_identifiers || other.literal_identifiers,
        }
    }

    /// The window of a request that begins a list, if the source is asked for a wider one.
    fn widened(&self, began: &Request) -> Option<Window> {
        let is_early = |earliest: &String| began.has_date_before(earliest);
        if self.no_dates_before.as_ref().is_some_and(is_early) {
            Some(if self.in_whole_days {
                Window::of_dates(&began.with_day_dates())
            } else {
                Window::of_dates(began)
            })
        } else if self.in_days {
            Window::from_request(began)
        } else {
            None
        }
    }
}

impl RequestAdapter {
    /// From the settings of the mapping, and from what was learned of the source.
    pub(crate) fn new(quirks: &Quirks, learned: &SourceCapabilities) -> Self {
        let version = quirks.version.or_else(|| Version::from_name(learned.version.as_deref()?));
        Self { quirks: quirks.clone(), version, form: RequestForm::new(quirks, learned) }
    }

    /// Whether the source speaks 1.0 or 1.1.
    pub(crate) fn is_version_one(&self) -> bool {
        self.version.is_some_and(Version::is_one)
    }

    /// Whether the version is unknown.
    pub(crate) fn has_unknown_version(&self) -> bool {
        self.version.is_none()
    }

    /// Whether a response of that version contradicts what is known.
    pub(crate) fn is_news(&self, version: &str) -> bool {
        let is_one = Version::from_name(version).map(Version::is_one);
        self.quirks.version.is_none() && is_one != self.version.map(Version::is_one)
    }

    /// Whether dates are sent as days.
    pub(crate) fn sends_days(&self) -> bool {
        self.form.in_days || self.form.in_whole_days
    }

    /// Whether a request is in seconds although the source is 1.x, for which days are announced.
    pub(crate) fn is_too_fine(&self, request: &Request) -> bool {
        self.is_version_one() && !self.sends_days() && request.has_seconds()
    }

    /// Adapts a request.
    pub(crate) fn adapt(&self, source_request: &Request, list: ListContext<'_>) -> UpstreamQuery {
        let is_harvest = source_request.verb().is_harvest();
        let headers = self.is_version_one() && source_request.verb() == Verb::ListIdentifiers;
        let mut put = match self.quirks.v1_headers_via {
            _ if !headers => source_request.clone(),
            HeadersVia::ListRecords => source_request.to_list_records(),
            HeadersVia::GetRecord => source_request.without_format(),
        };
        if is_harvest && source_request.is_resumption() {
            if self.form.prefix_with_token
                && let Some(prefix) = list.metadata_prefix
            {
                put = put.with_format_of_list(prefix);
            }
        } else if is_harvest {
            if let Some(earliest) = &self.form.no_dates_before {
                put = put.without_dates_before(earliest);
            }
            if self.sends_days() {
                put = put.with_day_dates();
            }
            if source_request.argument(Argument::Set).is_none()
                && let Some(set) = &self.quirks.default_set
            {
                put = put.with_set(set);
            }
        }
        let query = if put.is_resumption() && self.quirks.raw_token {
            put.query_with_raw_token()
        } else if !put.is_resumption() && self.form.literal_identifiers {
            put.query_with_literal_identifier()
        } else {
            put.query().to_owned()
        };
        let began = match (is_harvest, source_request.is_resumption()) {
            (false, _) => None,
            (true, true) => list.first,
            (true, false) => Some(source_request),
        };
        let window = if source_request.is_resumption() {
            list.within.cloned()
        } else {
            began.and_then(|began| self.form.widened(began))
        };
        let set = if self.is_version_one() {
            began.and_then(|began| began.argument(Argument::Set)).map(str::to_owned)
        } else {
            None
        };
        let filter = FilterRules { headers, window, set };
        UpstreamQuery { query, filter: filter.is_anything().then_some(filter) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str) -> Request {
        Request::parse(query.as_bytes()).expect("a legal request")
    }

    fn of(version: Option<Version>, quirks: Quirks) -> RequestAdapter {
        RequestAdapter::new(&Quirks { version, ..quirks }, &SourceCapabilities::default())
    }

    #[test]
    fn requests_to_a_2_0_source_are_unchanged() {
        for version in [None, Some(Version::Two)] {
            for query in [
                "verb=ListIdentifiers&metadataPrefix=a&from=2020-01-01T00:00:00Z&set=s",
                "verb=ListRecords&resumptionToken=a%2Bb%2520c",
                "verb=ListSets",
            ] {
                let adapted = of(version, Quirks::default()).adapt(&request(query), ListContext::default());
                assert_eq!(adapted.query, query.replace(':', "%3A"));
                assert!(adapted.filter.is_none(), "{adapted:?}");
            }
        }
    }

    #[test]
    fn lists_of_headers_become_lists_of_records_for_a_1_x_source() {
        let adapter = of(Some(Version::One1), Quirks::default());
        let adapted = |query: &str| adapter.adapt(&request(query), ListContext::default()).query;
        assert_eq!(
            adapted("verb=ListIdentifiers&metadataPrefix=a&until=2020-01-02&set=s"),
            "verb=ListRecords&metadataPrefix=a&until=2020-01-02&set=s"
        );
        assert_eq!(
            adapted("verb=ListIdentifiers&resumptionToken=a%26"),
            "verb=ListRecords&resumptionToken=a%26"
        );
        let formats = "verb=ListMetadataFormats&identifier=oai%3Ax%3A1";
        assert_eq!(adapted(formats), formats);
        assert!(adapter.is_too_fine(&request("verb=ListRecords&metadataPrefix=a&from=2020-01-01T00:00:00Z")));
        assert!(!adapter.is_too_fine(&request("verb=ListRecords&metadataPrefix=a&from=2020-01-01")));
    }

    #[test]
    fn detected_capabilities_apply_unless_the_mapping_sets_them() {
        let detected = SourceCapabilities {
            version: Some("1.0".into()),
            refuses_seconds: true,
            ..SourceCapabilities::default()
        };
        let adapter = RequestAdapter::new(&Quirks::default(), &detected);
        assert!(
            adapter.is_version_one()
                && adapter.form.in_days
                && adapter.is_news("2.0")
                && !adapter.is_news("1.1")
        );
        let pinned = Quirks { version: Some(Version::Two), ..Quirks::default() };
        let adapter = RequestAdapter::new(&pinned, &detected);
        assert!(!adapter.is_version_one() && !adapter.is_news("1.1"));
    }

    #[test]
    fn requests_follow_the_quirks_of_the_source() {
        let quirks =
            Quirks { default_set: Some("all".into()), raw_token: true, in_days: true, ..Quirks::default() };
        let adapter = of(None, quirks);
        let adapted = |query: &str| adapter.adapt(&request(query), ListContext::default()).query;
        let list = "verb=ListRecords&metadataPrefix=a";
        assert_eq!(adapted(list), format!("{list}&set=all"));
        assert_eq!(adapted(&format!("{list}&set=s")), format!("{list}&set=s"));
        assert_eq!(
            adapted(&format!("{list}&set=s&from=2020-01-02T03:04:05Z&until=2020-01-02T03:04:06Z")),
            format!("{list}&set=s&from=2020-01-02&until=2020-01-02")
        );
        assert_eq!(adapted("verb=ListSets"), "verb=ListSets");
        assert_eq!(
            adapted("verb=ListRecords&resumptionToken=a%252Fb%7C+%26c"),
            "verb=ListRecords&resumptionToken=a%2Fb|%20%26c"
        );
    }

    fn learned(learned: SourceCapabilities) -> RequestAdapter {
        RequestAdapter::new(&Quirks::default(), &learned)
    }

    #[test]
    fn tokens_are_sent_with_the_format_of_their_list_if_the_source_needs_it() {
        let adapter = learned(SourceCapabilities { needs_prefix_with_token: true, ..Default::default() });
        let list = ListContext { metadata_prefix: Some("oai_dc"), ..ListContext::default() };
        let query = |query: &str, list| adapter.adapt(&request(query), list).query;
        let resumption = "verb=ListIdentifiers&resumptionToken=a%26b";
        assert_eq!(query(resumption, list), format!("{resumption}&metadataPrefix=oai_dc"));
        assert_eq!(query(resumption, ListContext::default()), resumption, "nothing is guessed");
        assert_eq!(query("verb=ListSets&resumptionToken=t", list), "verb=ListSets&resumptionToken=t");
        let first = "verb=ListRecords&metadataPrefix=marc";
        assert_eq!(query(first, list), first);
        let healthy = RequestAdapter::new(&Quirks::default(), &SourceCapabilities::default());
        assert_eq!(healthy.adapt(&request(resumption), list).query, resumption);
    }

    #[test]
    fn early_dates_and_seconds_are_omitted_together() {
        let list = "verb=ListRecords&metadataPrefix=a";
        let source_request = request(&format!("{list}&from=2020-01-01T05:00:00Z&until=2024-06-01T05:00:00Z"));
        let early = SourceCapabilities {
            refuses_dates_before: Some("2024-05-30T10:00:00Z".into()),
            ..SourceCapabilities::default()
        };
        let window = |day: fn(&Request) -> Request| Some(Window::of_dates(&day(&source_request)));
        for (seconds, refuses, misses, expected) in [
            ("T05%3A00%3A00Z", false, false, window(Request::clone)),
            ("", true, false, window(Request::clone)),
            ("", false, true, window(Request::with_day_dates)),
        ] {
            let adapter = learned(SourceCapabilities {
                refuses_seconds: refuses,
                misses_seconds: misses,
                ..early.clone()
            });
            let adapted = adapter.adapt(&source_request, ListContext::default());
            assert_eq!(adapted.query, format!("{list}&until=2024-06-01{seconds}"));
            assert_eq!(adapted.filter.and_then(|filter| filter.window), expected);
        }
        // A harvest of changes is not before the earliestDatestamp, and stays as it is.
        let later = request(&format!("{list}&from=2024-05-30T10:00:00Z"));
        let adapted = learned(early).adapt(&later, ListContext::default());
        assert_eq!((adapted.query.as_str(), adapted.filter.is_none()), (later.query(), true));
    }
}
