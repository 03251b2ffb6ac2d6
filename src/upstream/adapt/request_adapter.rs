//! Adapts requests of OAI-PMH 2.0 to a source that speaks 1.0 or 1.1, or that needs other request formats.
//!
//! Everything before the exchange uses 2.0; the request is adapted just before it is sent. The response
//! is adapted by [`ItemFilter`](crate::upstream::adapt::item_filter::ItemFilter). Pure.
//!
//! In 1.x, `ListIdentifiers` lists identifiers without datestamps, so there are no headers. Such a source
//! is asked for records, and its tokens are those of a list of records. If the mapping says so, it is asked
//! for identifiers, and then for each record.

use crate::config::{HeadersVia, Quirks, Version};
use crate::oai::{Argument, Request, Verb, Window};
use crate::store::SourceCapabilities;
use crate::upstream::adapt::item_filter::FilterRules;

/// How requests are adapted to one source.
#[derive(Clone, Debug)]
pub(crate) struct RequestAdapter {
    quirks: Quirks,
    /// The OAI-PMH version of the source, if it is known.
    version: Option<Version>,
    /// Whether `from` and `until` are sent as days.
    pub(crate) in_days: bool,
}

/// A request as its source takes it, and how the response is filtered.
#[derive(Debug)]
pub(crate) struct UpstreamQuery {
    pub(crate) query: String,
    pub(crate) filter: Option<FilterRules>,
}

impl RequestAdapter {
    /// From the settings of the mapping, and from what was learned of the source.
    pub(crate) fn new(quirks: &Quirks, learned: &SourceCapabilities) -> Self {
        let version = quirks.version.or_else(|| Version::from_name(learned.version.as_deref()?));
        Self { quirks: quirks.clone(), version, in_days: quirks.in_days || learned.refuses_seconds }
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

    /// Whether a request is in seconds although the source is 1.x, for which days are announced.
    pub(crate) fn is_too_fine(&self, request: &Request) -> bool {
        self.is_version_one() && !self.in_days && request.has_seconds()
    }

    /// Adapts a request. If it resumes a list, `first` is the request that began the list, if known, and
    /// `within` is the window of the harvester, if the source was asked for a wider one.
    pub(crate) fn adapt(
        &self,
        asked: &Request,
        first: Option<&Request>,
        within: Option<&Window>,
    ) -> UpstreamQuery {
        let is_harvest = asked.verb().is_harvest();
        let headers = self.is_version_one() && asked.verb() == Verb::ListIdentifiers;
        let mut put = match self.quirks.v1_headers_via {
            _ if !headers => asked.clone(),
            HeadersVia::ListRecords => asked.to_list_records(),
            HeadersVia::GetRecord => asked.without_format(),
        };
        if is_harvest && !asked.is_resumption() {
            if self.in_days {
                put = put.with_day_dates();
            }
            if let Some(set) =
                self.quirks.default_set.as_ref().filter(|_| asked.argument(Argument::Set).is_none())
            {
                put = put.with_set(set);
            }
        }
        let query = if self.quirks.raw_token { put.query_with_raw_token() } else { put.query().to_owned() };
        let began = if asked.is_resumption() { first } else { Some(asked) }.filter(|_| is_harvest);
        let widened = began.filter(|_| self.in_days).and_then(Window::from_request);
        let filter = FilterRules {
            headers,
            window: if asked.is_resumption() { within.cloned() } else { widened },
            set: began
                .filter(|_| self.is_version_one())
                .and_then(|began| began.argument(Argument::Set))
                .map(str::to_owned),
        };
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
                let adapted = of(version, Quirks::default()).adapt(&request(query), None, None);
                assert_eq!(adapted.query, query.replace(':', "%3A"));
                assert!(adapted.filter.is_none(), "{adapted:?}");
            }
        }
    }

    #[test]
    fn lists_of_headers_become_lists_of_records_for_a_1_x_source() {
        let adapter = of(Some(Version::One1), Quirks::default());
        let adapted = |query: &str| adapter.adapt(&request(query), None, None).query;
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
            adapter.is_version_one() && adapter.in_days && adapter.is_news("2.0") && !adapter.is_news("1.1")
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
        let adapted = |query: &str| adapter.adapt(&request(query), None, None).query;
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
}
