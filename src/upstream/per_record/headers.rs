//! The headers of a source of 1.x by its lists of identifiers, and one `GetRecord` each.
//!
//! Where a mapping says so (`v1_headers_via = "getrecord"`), since such lists say no datestamps. What comes is
//! made into a list of records without metadata, which goes on as if the source had sent it.
//!
//! Invariants: no header is made of anything but its own record; an identifier whose record the source
//! does not have, or not in this format, is left out. One that cannot be had in two attempts at the page is put
//! aside once another one was had behind it or, at the end, the source still answers `Identify`. Any other failure
//! is one of the page, and so is a source that knows none of what it lists.

use crate::clock;
use crate::config::HeadersVia;
use crate::oai::{Request, Verb};
use crate::store::QuarantinedRecord;
use crate::upstream::adapt::error_diagnosis::EVERYWHERE;
use crate::upstream::adapt::item_filter::header_of;
use crate::upstream::adapt::subrequest::SubrequestError;
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::body::{Body, BodyError};
use crate::upstream::http::rate_limit::HostPermit;
use crate::upstream::http::retry::may_lie_in_what_was_asked;
use crate::upstream::page::attempt::Page;
use crate::upstream::page::resume::{Resumer, Unproven};
use crate::upstream::per_record::page_fallback::LOST_IN_A_ROW_MAX;
use crate::upstream::session::list_session::{ListSession, Stop};
use crate::upstream::xml::envelope_tags::EnvelopeTags;
use crate::upstream::xml::rebase_namespaces::{NamespaceScope, record_of};
use bytes::Bytes;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::HashMap;

/// What was had of a page over all attempts at it, by identifier.
pub(crate) type FetchedHeaders = HashMap<String, FetchedHeader>;

/// What was had of a record.
#[derive(Clone, Debug)]
pub(crate) enum FetchedHeader {
    /// The record with nothing but its header.
    Header(String),
    /// The source does not know it, though it lists it.
    Unknown,
    /// There is none in this format.
    Nothing,
    /// So much was put aside instead.
    Aside(u64),
    /// It could not be had, once.
    Failed,
    /// Nor in a later attempt at the page: what came instead.
    Lost(Box<SubrequestError>),
}

/// A page of a list of identifiers.
#[derive(Debug, Default, PartialEq, Eq)]
struct IdentifierList {
    identifiers: Vec<String>,
    /// As it stands in the XML.
    token: Option<String>,
}

/// Most identifiers of one page that are asked for.
const IDENTIFIERS_MAX: usize = 500;
/// Longest list of identifiers, in decoded bytes: it is held.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Attempts at one record within one at the page.
const ATTEMPTS_AT_A_RECORD: u32 = 4;

impl ListSession<'_> {
    /// Whether the page that comes lists identifiers, each to be asked for.
    pub(crate) fn asks_for_each(&self) -> bool {
        self.dialect.is_one()
            && self.job.mapping.quirks.v1_headers_via == HeadersVia::GetRecord
            && self.asked.verb() == Verb::ListIdentifiers
    }

    /// Feeds the page with a record for each identifier of the body; what ended it other than its end.
    pub(crate) async fn feed_headers(
        &mut self,
        page: &mut Page,
        splice: &mut Resumer,
        body: Body<'_>,
        turn: HostPermit,
    ) -> Result<Result<Option<BodyError>, Unproven>, Stop> {
        let list = match self.whole(body).await {
            Ok(list) => list,
            Err(broken) => return Ok(Ok(Some(broken))),
        };
        // Each record is asked for in a turn of its own: meanwhile it is that of another list.
        drop(turn);
        let Some(listed) = IdentifierList::of(&list) else {
            // Whatever it is, the engine says so.
            page.push(list.into());
            return Ok(Ok(None));
        };
        if listed.identifiers.len() > IDENTIFIERS_MAX {
            return Ok(Ok(Some(self.too_many())));
        }
        let skeleton = EnvelopeTags::of_ours(Verb::ListRecords);
        let head = skeleton.open(&clock::utc_datetime(self.budget.now()), &self.job.own.base_url);
        let place = NamespaceScope::of(&head);
        page.push(head.into());
        self.gathered.retain(|identifier, _| listed.identifiers.contains(identifier));
        let mut lost = Vec::new();
        for identifier in &listed.identifiers {
            let had = match self.had_of(identifier, &place, &mut lost).await? {
                Ok(had) => had,
                Err(failure) => return Ok(Ok(Some(BodyError { failure, forgivable: false }))),
            };
            // Each one is progress.
            self.renew_time();
            let FetchedHeader::Header(record) = had else { continue };
            page.push(record.into());
            if let Err(unproven) = self.pass_on(page, splice, false).await? {
                return Ok(Err(unproven));
            }
        }
        if let Some(failure) = self.why_not_all(&mut lost).await? {
            return Ok(Ok(Some(BodyError { failure, forgivable: false })));
        }
        page.push(Bytes::from(skeleton.close_with(listed.token.as_deref())));
        Ok(Ok(None))
    }

    /// All of a body, which is held.
    async fn whole(&mut self, mut body: Body<'_>) -> Result<Vec<u8>, BodyError> {
        let mut list = Vec::new();
        while let Some(piece) = body.next(&mut self.budget).await? {
            list.extend_from_slice(&piece);
            if list.len() > LIST_BYTES_MAX {
                return Err(self.too_many());
            }
        }
        Ok(list)
    }

    /// What was had of a record, in this attempt at the page or an earlier one. What cannot be had comes to the `lost`.
    async fn had_of(
        &mut self,
        identifier: &str,
        place: &NamespaceScope,
        lost: &mut Vec<String>,
    ) -> Result<Result<FetchedHeader, Failure>, Stop> {
        let before = self.gathered.get(identifier).cloned();
        let had = match before {
            Some(had @ (FetchedHeader::Header(_) | FetchedHeader::Unknown | FetchedHeader::Nothing)) => {
                return Ok(Ok(had));
            }
            Some(FetchedHeader::Aside(count)) => {
                // What an earlier attempt has put aside is missing from this one too, and was counted there
                // if something has left since.
                if !self.outlet.has_begun() {
                    self.account.quarantined += count;
                }
                return Ok(Ok(FetchedHeader::Aside(count)));
            }
            Some(had @ FetchedHeader::Lost(_)) => had,
            None | Some(FetchedHeader::Failed) => match self.record_of_header(identifier, place).await? {
                Ok(had) => had,
                Err(unanswered) => {
                    let may_be_lost =
                        may_lie_in_what_was_asked(&unanswered.failure) && !self.budget.left().is_zero();
                    if !may_be_lost || before.is_none() {
                        self.gathered.insert(identifier.to_owned(), FetchedHeader::Failed);
                        return Ok(Err(unanswered.failure));
                    }
                    FetchedHeader::Lost(Box::new(unanswered))
                }
            },
        };
        self.gathered.insert(identifier.to_owned(), had.clone());
        match &had {
            FetchedHeader::Header(_) => self.give_up(lost).await?,
            FetchedHeader::Lost(unanswered) => {
                lost.push(identifier.to_owned());
                if lost.len() >= LOST_IN_A_ROW_MAX {
                    return Ok(Err(unanswered.failure.clone()));
                }
            }
            _ => {}
        }
        Ok(Ok(had))
    }

    /// Puts aside what cannot be had: the source gives the others.
    async fn give_up(&mut self, lost: &mut Vec<String>) -> Result<(), Failure> {
        for identifier in std::mem::take(lost) {
            let Some(FetchedHeader::Lost(unanswered)) = self.gathered.remove(&identifier) else { continue };
            let (why, raw) = (unanswered.failure.reason.name(), unanswered.raw);
            self.gathered.insert(identifier.clone(), FetchedHeader::Aside(1));
            self.account.quarantined += 1;
            self.put_aside(vec![QuarantinedRecord { identifier: Some(identifier), why, offset: 0, raw }])
                .await?;
        }
        Ok(())
    }

    /// Why the page cannot end yet, if it cannot.
    async fn why_not_all(&mut self, lost: &mut Vec<String>) -> Result<Option<Failure>, Stop> {
        let had =
            |is_one: fn(&FetchedHeader) -> bool| self.gathered.values().filter(|had| is_one(had)).count();
        if had(|had| matches!(had, FetchedHeader::Unknown)) == self.gathered.len() {
            let details = format!(
                "{} knows none of the {} records that it lists on a page; see whether its GetRecord works, or set \
                 v1_headers_via = \"listrecords\"",
                self.job.client.name(),
                self.gathered.len()
            );
            return Ok(Some(Failure::new(Reason::Incomplete, details)));
        }
        let Some(FetchedHeader::Lost(last)) =
            lost.last().and_then(|identifier| self.gathered.get(identifier))
        else {
            return Ok(None);
        };
        // Those at the end have nobody behind them who speaks for the source.
        let (failure, was_any_had) =
            (last.failure.clone(), had(|had| matches!(had, FetchedHeader::Header(_))) > 0);
        if !was_any_had || self.ask(&Request::identify(), 1, 1).await.is_err() {
            return Ok(Some(failure));
        }
        self.give_up(lost).await?;
        Ok(None)
    }

    /// What is to be had of a record.
    async fn record_of_header(
        &mut self,
        identifier: &str,
        place: &NamespaceScope,
    ) -> Result<Result<FetchedHeader, SubrequestError>, Stop> {
        let prefix = self.metadata_prefix().unwrap_or_else(|| EVERYWHERE.to_owned());
        let request = Request::get_record(identifier, &prefix);
        let mut told = match self.ask(&request, usize::MAX, ATTEMPTS_AT_A_RECORD).await {
            Ok(told) => told,
            Err(unanswered) => return Ok(Err(unanswered)),
        };
        if let Some(item) = told.record(identifier) {
            let record = told.scope().transplanted(&String::from_utf8_lossy(&item.bytes), place);
            return Ok(Ok(header_of(&record)
                .map_or(FetchedHeader::Nothing, |header| FetchedHeader::Header(record_of(&header)))));
        }
        match told.error().as_deref() {
            Some("idDoesNotExist") => return Ok(Ok(FetchedHeader::Unknown)),
            Some("cannotDisseminateFormat") => return Ok(Ok(FetchedHeader::Nothing)),
            _ => {}
        }
        let aside = std::mem::take(&mut told.aside);
        if aside.is_empty() {
            let details = format!("{} does not give the record {identifier}", self.job.client.name());
            let failure = Failure::new(Reason::Incomplete, details);
            return Ok(Err(SubrequestError { failure, raw: Vec::new() }));
        }
        let count = aside.len() as u64;
        self.account.quarantined += count;
        self.put_aside(aside).await?;
        Ok(Ok(FetchedHeader::Aside(count)))
    }

    fn too_many(&self) -> BodyError {
        let details = format!(
            "{} lists more than {IDENTIFIERS_MAX} identifiers on a page, too many to ask for each; \
             set v1_headers_via = \"listrecords\"",
            self.job.client.name()
        );
        BodyError { failure: Failure::new(Reason::TooLarge, details), forgivable: false }
    }
}

impl IdentifierList {
    /// `None` for what is no whole list of identifiers of 1.x with one in it.
    fn of(page: &[u8]) -> Option<Self> {
        let mut reader = Reader::from_str(std::str::from_utf8(page).ok()?);
        let (mut depth, mut text) = (0_usize, String::new());
        let mut listed = Self::default();
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) if depth == 0 && tag.local_name().as_ref() != "ListIdentifiers" => {
                    return None;
                }
                Event::Start(_) => {
                    depth += 1;
                    text.clear();
                }
                Event::Text(part) => text.push_str(part.as_ref()),
                Event::GeneralRef(name) => text.push_str(&format!("&{};", name.as_ref() as &str)),
                Event::End(tag) => {
                    depth = depth.checked_sub(1)?;
                    match (depth, tag.local_name().as_ref()) {
                        (1, "identifier") => {
                            let identifier = quick_xml::escape::unescape(text.trim()).ok()?;
                            listed.identifiers.push(identifier.into_owned());
                        }
                        (1, "resumptionToken") => {
                            listed.token = Some(text.trim().to_owned()).filter(|token| !token.is_empty());
                        }
                        (0, _) => return Some(listed).filter(|listed| !listed.identifiers.is_empty()),
                        _ => {}
                    }
                }
                Event::Eof => return None,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_identifiers_is_read_and_nothing_else_is() {
        let list = "<?xml version=\"1.0\"?>\n<ListIdentifiers xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListIdentifiers\">\
            <responseDate>x</responseDate><requestURL>x?a&amp;b</requestURL>\
            <identifier>oai:x:a&amp;b</identifier><identifier status=\"deleted\"> oai:x:2 </identifier>\
            <resumptionToken>t&amp;u</resumptionToken></ListIdentifiers>";
        let listed = IdentifierList {
            identifiers: vec!["oai:x:a&b".into(), "oai:x:2".into()],
            token: Some("t&amp;u".into()),
        };
        assert_eq!(IdentifierList::of(list.as_bytes()), Some(listed));
        for cut in 0..list.len() {
            assert_eq!(IdentifierList::of(&list.as_bytes()[..cut]), None, "{cut}");
        }
        let empty = list.replace("<identifier", "<other").replace("</identifier", "</other");
        assert_eq!(IdentifierList::of(empty.as_bytes()), None);
        assert_eq!(IdentifierList::of(list.replace("ListIdentifiers", "html").as_bytes()), None);
    }
}
