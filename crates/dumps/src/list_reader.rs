//! Reads a list of a repository to its end.

use crate::dump_error::DumpError;
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_oai::{ErrorCode, Request, UnixSecs};
use oaimend_repository::{
    DeliveredRecord, Event, Failure, HarvesterTraits, Reason, Repository, RepositoryRequest,
};
use std::sync::Arc;
use url::form_urlencoded::Serializer;

/// A list of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpList {
    /// The metadataPrefix.
    pub prefix: String,
    /// The setSpec; `None`: all records.
    pub set: Option<String>,
    /// The first second, since 1970; `None`: all times.
    pub from_secs: Option<UnixSecs>,
}

/// Reads a list, page by page.
pub struct ListReader {
    repository: Box<dyn Repository>,
    list: DumpList,
    /// The query of the next page; `None` at the end.
    next: Option<String>,
    date_secs: UnixSecs,
    left_out: u64,
}

impl ListReader {
    /// Begins a list.
    pub fn new(repository: Box<dyn Repository>, list: DumpList) -> Self {
        let next = Some(list.query());
        Self { repository, list, next, date_secs: UnixSecs::MAX, left_out: 0 }
    }

    /// The responseDate of the list so far, in seconds since 1970: no later commit has a stamp up to it.
    pub const fn date_secs(&self) -> UnixSecs {
        self.date_secs
    }

    /// The number of records of the list so far that are not in its pages, because they are in quarantine: a crosswalk
    /// cannot convert them.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The records of the next page; `None` at the end. A page can be empty.
    ///
    /// # Errors
    ///
    /// The repository has no such list, or cannot be read now.
    pub async fn next_page(&mut self) -> Result<Option<Vec<DeliveredRecord>>, DumpError> {
        let Some(query) = self.next.take() else { return Ok(None) };
        let mut events = self.repository.answer(request(&query)?);
        let mut records = Vec::new();
        let page = loop {
            match events.next().await {
                Some(Event::Records(some)) => records.extend(some),
                Some(Event::End(summary)) => break summary.page,
                Some(Event::Failed(failure, _)) => return Err(failure.into()),
                Some(Event::Quarantined(some)) => self.left_out += some.len() as u64,
                Some(Event::Head(_) | Event::Body(_)) => {}
                None => return Err(broken()),
            }
        };
        let date_secs = page.response_date.as_deref().and_then(to_secs).ok_or_else(broken)?;
        self.date_secs = self.date_secs.min(date_secs);
        match page.error {
            None | Some(ErrorCode::NoRecordsMatch) => {}
            Some(code) => return Err(self.list.refused(code)),
        }
        let query_of = |token: &String| {
            let mut query = Serializer::new(String::new());
            query.append_pair("verb", "ListRecords").append_pair("resumptionToken", token).finish()
        };
        self.next = page.token.as_ref().map(query_of);
        Ok(Some(records))
    }
}

impl DumpList {
    fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("verb", "ListRecords").append_pair("metadataPrefix", &self.prefix);
        query.extend_pairs(self.set.iter().map(|set| ("set", set)));
        query.extend_pairs(self.from_secs.map(|secs| ("from", from_secs(secs, Granularity::Second))));
        query.finish()
    }

    fn refused(&self, code: ErrorCode) -> DumpError {
        let text = match code {
            ErrorCode::CannotDisseminateFormat => {
                let prefix = self.prefix.escape_debug();
                format!("the repository has no format {prefix}; ListMetadataFormats lists its formats")
            }
            ErrorCode::NoSetHierarchy => "the repository has no sets".to_owned(),
            ErrorCode::BadArgument => "the query or the set is not legal".to_owned(),
            // The list was read to its middle, and its view is another one now.
            ErrorCode::BadResumptionToken => return DumpError::TooManyChanges,
            code => format!("the repository answers {}", code.name()),
        };
        DumpError::Refused(text)
    }
}

fn request(query: &str) -> Result<RepositoryRequest, DumpError> {
    let request =
        Request::parse(query.as_bytes()).map_err(|refusal| DumpError::Refused(refusal.text.to_string()))?;
    let echo = Arc::new(request.to_echo(""));
    // `from` is after the position of an earlier list, so nothing needs to be repeated.
    let harvester = HarvesterTraits { continues_from_first_response: true, ..HarvesterTraits::default() };
    let via = String::new();
    Ok(RepositoryRequest { request, echo, via, harvester, in_one_piece: false, reports_records: true })
}

fn broken() -> DumpError {
    Failure::new(Reason::Mirror, "the list of the repository ended without an end").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::Argument;
    use oaimend_repository::{EventStream, ResponseSummary};
    use oaimend_store::QuarantinedRecord;
    use tokio::sync::mpsc;

    /// A repository whose list has two pages, each with a record in quarantine.
    struct Quarantining;

    impl Repository for Quarantining {
        fn answer(&self, request: RepositoryRequest) -> EventStream {
            let (why, raw) = ("unconvertible", b"<record/>".to_vec());
            let record = QuarantinedRecord { identifier: Some("oai:x:1".to_owned()), why, offset: 0, raw };
            let mut summary = ResponseSummary::default();
            summary.page.response_date = Some("2026-01-01T00:00:00Z".to_owned());
            let is_first = request.request.argument(Argument::ResumptionToken).is_none();
            summary.page.token = is_first.then(|| "next".to_owned());
            let (sender, receiver) = mpsc::channel(2);
            sender.try_send(Event::Quarantined(vec![record])).expect("there is room");
            sender.try_send(Event::End(Box::new(summary))).expect("there is room");
            EventStream::new(receiver, Box::pin(std::future::ready(())))
        }
    }

    #[tokio::test]
    async fn records_that_a_crosswalk_cannot_convert_are_counted() {
        let list = DumpList { prefix: "mods".to_owned(), set: None, from_secs: None };
        let mut reader = ListReader::new(Box::new(Quarantining), list);
        while let Some(records) = reader.next_page().await.expect("readable") {
            assert_eq!(records.len(), 0);
        }
        assert_eq!(reader.left_out(), 2);
    }
}
