//! How a request of OAI-PMH 2.0 is put to a source that speaks 1.0 or 1.1, or that has ways of its own.
//!
//! A harvester asks in 2.0, and so does everything here up to the exchange; only then the
//! request is put in the words of its source. What has to be made of the answer then is
//! [`ItemFilter`](crate::upstream::adapt::item_filter::ItemFilter)'s. Pure.
//!
//! 1.x has no headers: `ListIdentifiers` lists identifiers, without datestamps. So it is asked for
//! records, and its tokens are those of a list of records; or, where the mapping says so, for
//! identifiers, and then for each of them.

use crate::config::{HeadersVia, Quirks, Version};
use crate::oai::{Argument, Request, Verb, Window};
use crate::store::SourceCapabilities;
use crate::upstream::adapt::item_filter::FilterRules;
use crate::upstream::session::list_session::Job;

/// How a source is spoken to.
#[derive(Clone, Debug)]
pub(crate) struct RequestAdapter {
    quirks: Quirks,
    /// Which OAI-PMH it speaks, as far as that is known.
    version: Option<Version>,
    /// Whether it is asked in days only.
    pub(crate) in_days: bool,
}

/// A request in the words of a source, and what is to be made of its answer.
#[derive(Debug)]
pub(crate) struct UpstreamQuery {
    pub(crate) query: String,
    pub(crate) wanted: Option<FilterRules>,
}

impl RequestAdapter {
    /// By what the mapping says, and what was learned.
    pub(crate) fn of(quirks: &Quirks, learned: &SourceCapabilities) -> Self {
        let version = quirks.version.or_else(|| Version::from_name(learned.version.as_deref()?));
        Self { quirks: quirks.clone(), version, in_days: quirks.in_days || learned.refuses_seconds }
    }

    /// That of the source of a job.
    pub(crate) fn of_job(job: &Job) -> Self {
        Self::of(&job.mapping.quirks, &job.client.learned(&job.store))
    }

    /// Whether the source speaks 1.0 or 1.1.
    pub(crate) fn is_one(&self) -> bool {
        self.version.is_some_and(Version::is_one)
    }

    /// Whether nothing is known of the version.
    pub(crate) fn is_unknown(&self) -> bool {
        self.version.is_none()
    }

    /// Whether an answer of that version says something that was not known.
    pub(crate) fn is_news(&self, version: &str) -> bool {
        let is_one = Version::from_name(version).map(Version::is_one);
        self.quirks.version.is_none() && is_one != self.version.map(Version::is_one)
    }

    /// Whether a request of a harvester is finer than what we have announced for a source of 1.x,
    /// which knows days alone.
    pub(crate) fn is_too_fine(&self, request: &Request) -> bool {
        self.is_one() && !self.in_days && request.is_in_seconds()
    }

    /// Puts a request. Of the list that it goes on with, `first` is the one that began it, if that is known, and `within`
    /// what of it was asked for, if the source was asked for more.
    pub(crate) fn put(
        &self,
        asked: &Request,
        first: Option<&Request>,
        within: Option<&Window>,
    ) -> UpstreamQuery {
        let is_harvest = matches!(asked.verb(), Verb::ListRecords | Verb::ListIdentifiers);
        let headers = self.is_one() && asked.verb() == Verb::ListIdentifiers;
        let mut put = match self.quirks.v1_headers_via {
            _ if !headers => asked.clone(),
            HeadersVia::ListRecords => asked.records(),
            HeadersVia::GetRecord => asked.without_format(),
        };
        if is_harvest && !asked.is_resumption() {
            if self.in_days {
                put = put.in_days();
            }
            if let Some(set) =
                self.quirks.default_set.as_ref().filter(|_| asked.argument(Argument::Set).is_none())
            {
                put = put.of_set(set);
            }
        }
        let query = if self.quirks.raw_token { put.query_with_raw_token() } else { put.query().to_owned() };
        let began = if asked.is_resumption() { first } else { Some(asked) }.filter(|_| is_harvest);
        let widened = began.filter(|_| self.in_days).and_then(Window::of);
        let wanted = FilterRules {
            headers,
            window: if asked.is_resumption() { within.cloned() } else { widened },
            set: began
                .filter(|_| self.is_one())
                .and_then(|began| began.argument(Argument::Set))
                .map(str::to_owned),
        };
        UpstreamQuery { query, wanted: wanted.is_anything().then_some(wanted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str) -> Request {
        Request::parse(query.as_bytes()).expect("a legal request")
    }

    fn of(version: Option<Version>, quirks: Quirks) -> RequestAdapter {
        RequestAdapter::of(&Quirks { version, ..quirks }, &SourceCapabilities::default())
    }

    #[test]
    fn a_source_of_2_0_is_asked_what_the_harvester_asks() {
        for version in [None, Some(Version::Two)] {
            for query in [
                "verb=ListIdentifiers&metadataPrefix=a&from=2020-01-01T00:00:00Z&set=s",
                "verb=ListRecords&resumptionToken=a%2Bb%2520c",
                "verb=ListSets",
            ] {
                let put = of(version, Quirks::default()).put(&request(query), None, None);
                assert_eq!(put.query, query.replace(':', "%3A"));
                assert!(put.wanted.is_none(), "{put:?}");
            }
        }
    }

    #[test]
    fn a_source_of_1_x_is_asked_for_records() {
        let dialect = of(Some(Version::One1), Quirks::default());
        let put = |query: &str| dialect.put(&request(query), None, None).query;
        assert_eq!(
            put("verb=ListIdentifiers&metadataPrefix=a&until=2020-01-02&set=s"),
            "verb=ListRecords&metadataPrefix=a&until=2020-01-02&set=s"
        );
        assert_eq!(put("verb=ListIdentifiers&resumptionToken=a%26"), "verb=ListRecords&resumptionToken=a%26");
        let formats = "verb=ListMetadataFormats&identifier=oai%3Ax%3A1";
        assert_eq!(put(formats), formats);
        assert!(dialect.is_too_fine(&request("verb=ListRecords&metadataPrefix=a&from=2020-01-01T00:00:00Z")));
        assert!(!dialect.is_too_fine(&request("verb=ListRecords&metadataPrefix=a&from=2020-01-01")));
    }

    #[test]
    fn what_was_learned_counts_where_the_mapping_says_nothing() {
        let learned = SourceCapabilities {
            version: Some("1.0".into()),
            refuses_seconds: true,
            ..SourceCapabilities::default()
        };
        let dialect = RequestAdapter::of(&Quirks::default(), &learned);
        assert!(dialect.is_one() && dialect.in_days && dialect.is_news("2.0") && !dialect.is_news("1.1"));
        let pinned = Quirks { version: Some(Version::Two), ..Quirks::default() };
        let dialect = RequestAdapter::of(&pinned, &learned);
        assert!(!dialect.is_one() && !dialect.is_news("1.1"));
    }

    #[test]
    fn the_ways_of_a_source_are_kept() {
        let quirks =
            Quirks { default_set: Some("all".into()), raw_token: true, in_days: true, ..Quirks::default() };
        let dialect = of(None, quirks);
        let put = |query: &str| dialect.put(&request(query), None, None).query;
        let list = "verb=ListRecords&metadataPrefix=a";
        assert_eq!(put(list), format!("{list}&set=all"));
        assert_eq!(put(&format!("{list}&set=s")), format!("{list}&set=s"));
        assert_eq!(
            put(&format!("{list}&set=s&from=2020-01-02T03:04:05Z&until=2020-01-02T03:04:06Z")),
            format!("{list}&set=s&from=2020-01-02&until=2020-01-02")
        );
        assert_eq!(put("verb=ListSets"), "verb=ListSets");
        assert_eq!(
            put("verb=ListRecords&resumptionToken=a%252Fb%7C+%26c"),
            "verb=ListRecords&resumptionToken=a%2Fb|%20%26c"
        );
    }
}
