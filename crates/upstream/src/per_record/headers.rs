//! Makes headers for a 1.x source from its list of identifiers and one `GetRecord` for each.
//!
//! Used if the mapping says so (`v1_headers_via = "getrecord"`), since such lists contain no datestamps. The
//! result is fed to the engine as a list of records without metadata, as if the source had sent it.
//!
//! Invariants: a header is made from its own record only; an identifier is left out if the source does not
//! have its record, or not in this format. A record that fails in two attempts at the page is quarantined
//! once another one was fetched after it or, at the end, the source still answers `Identify`. Any other failure
//! fails the page, and so does a source that knows none of the records that it lists.

use crate::adapt::error_diagnosis::COMMON_PREFIX;
use crate::adapt::item_filter::extract_header;
use crate::adapt::quarantine::{quarantine, quarantine_and_count};
use crate::adapt::requester::Requester;
use crate::adapt::subrequest::SubrequestError;
use crate::http::body::{BodyError, SourceBody};
use crate::http::retry::may_depend_on_request;
use crate::settings::HeadersVia;
use crate::xml::envelope_tags::EnvelopeTags;
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_oai::{ErrorCode, Request, Verb};
use oaimend_repository::rebase_namespaces::{NamespaceScope, wrap_header};
use oaimend_repository::{Failure, Reason};
use oaimend_store::QuarantinedRecord;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::HashMap;

/// Fetches the records of a page, and keeps the results over all attempts at it.
#[derive(Debug, Default)]
pub(crate) struct HeaderFetcher {
    fetched: HashMap<String, FetchedHeader>,
}

/// The page that one attempt makes.
#[derive(Debug)]
pub(crate) struct HeaderPage {
    identifiers: std::vec::IntoIter<String>,
    /// Records that cannot be fetched, until another one was fetched after them.
    lost: Vec<String>,
    tags: EnvelopeTags,
    scope: NamespaceScope,
    token: Option<String>,
}

/// The next input of the engine.
pub(crate) enum Feed {
    /// The record of a header.
    Record(Bytes),
    /// Nothing: this identifier is left out.
    Skipped,
    /// The end of the page.
    End(Bytes),
}

/// Why a page of headers ended early.
pub(crate) enum HeaderError {
    /// The source failed.
    Source(SubrequestError),
    /// The quarantine failed: the request fails at once.
    Fatal(Failure),
}

/// The result for one record.
#[derive(Clone, Debug)]
enum FetchedHeader {
    /// The record with nothing but its header.
    Header(String),
    /// The source lists the record and does not know it.
    Unknown,
    /// There is no record in this format.
    OtherFormat,
    /// The number of records that were quarantined instead.
    Quarantined(u64),
    /// The record failed in one attempt at the page.
    Failed,
    /// The record failed in a later attempt too.
    Lost(Box<SubrequestError>),
}

/// A page of a list of identifiers.
#[derive(Debug, Default, PartialEq, Eq)]
struct IdentifierList {
    identifiers: Vec<String>,
    /// As written in the XML.
    token: Option<String>,
}

/// Maximum number of identifiers of one page that are asked for.
const IDENTIFIERS_MAX: usize = 500;
/// Longest list of identifiers, in decoded bytes: it is held in memory.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Attempts at one record within one at the page.
const ATTEMPTS_AT_A_RECORD: u32 = 4;
/// Records in a row that cannot be fetched before the source is left alone.
pub(crate) const LOST_IN_A_ROW_MAX: usize = 10;

/// Whether the response to a request lists identifiers, each of which has to be fetched.
pub(crate) fn fetches_headers(requester: &Requester<'_>, source_request: &Request) -> bool {
    requester.adapter.is_version_one()
        && requester.context.mapping.quirks.v1_headers_via == HeadersVia::GetRecord
        && source_request.verb() == Verb::ListIdentifiers
}

impl HeaderFetcher {
    /// Reads the list of identifiers, and begins a page of headers. Returns the beginning of the page; or all of
    /// it, if it is no list of identifiers.
    pub(crate) async fn start(
        &mut self,
        requester: &mut Requester<'_>,
        body: SourceBody<'_>,
    ) -> Result<(Bytes, Option<HeaderPage>), BodyError> {
        let list = read_list(requester, body).await?;
        let Some(identifiers) = IdentifierList::parse(&list) else {
            // The engine says what it is.
            return Ok((list.into(), None));
        };
        let list = identifiers;
        if list.identifiers.len() > IDENTIFIERS_MAX {
            return Err(too_many(requester));
        }
        let tags = EnvelopeTags::for_own_list(Verb::ListRecords);
        let head = tags.open(&clock::utc_datetime(requester.now()), &requester.context.echo.base_url);
        self.fetched.retain(|identifier, _| list.identifiers.contains(identifier));
        let page = HeaderPage {
            identifiers: list.identifiers.into_iter(),
            lost: Vec::new(),
            scope: tags.scope().clone(),
            tags,
            token: list.token,
        };
        Ok((head.into(), Some(page)))
    }

    /// Fetches the next record. `has_begun`: a part of the response was sent to the harvester.
    pub(crate) async fn next(
        &mut self,
        requester: &mut Requester<'_>,
        page: &mut HeaderPage,
        has_begun: bool,
    ) -> Result<Feed, HeaderError> {
        let Some(identifier) = page.identifiers.next() else {
            self.check_end(requester, &mut page.lost).await?;
            return Ok(Feed::End(Bytes::from(page.tags.close_with(page.token.as_deref()))));
        };
        match self.fetch(requester, &identifier, page, has_begun).await? {
            FetchedHeader::Header(record) => Ok(Feed::Record(record.into())),
            _ => Ok(Feed::Skipped),
        }
    }

    /// The result for a record, from this attempt at the page or an earlier one.
    async fn fetch(
        &mut self,
        requester: &mut Requester<'_>,
        identifier: &str,
        page: &mut HeaderPage,
        has_begun: bool,
    ) -> Result<FetchedHeader, HeaderError> {
        let before = self.fetched.get(identifier).cloned();
        let fetched = match before {
            Some(
                known @ (FetchedHeader::Header(_) | FetchedHeader::Unknown | FetchedHeader::OtherFormat),
            ) => return Ok(known),
            Some(FetchedHeader::Quarantined(count)) => {
                // The summary of an earlier attempt is kept only if a part of the response was sent.
                if !has_begun {
                    requester.summary.items.add_quarantined(count);
                }
                return Ok(FetchedHeader::Quarantined(count));
            }
            Some(lost @ FetchedHeader::Lost(_)) => lost,
            None | Some(FetchedHeader::Failed) => {
                match fetch_header(requester, identifier, &page.scope).await {
                    Ok(fetched) => fetched,
                    Err(HeaderError::Source(error)) => {
                        let may_be_lost =
                            may_depend_on_request(&error.failure) && !requester.deadline.left().is_zero();
                        if !may_be_lost || before.is_none() {
                            self.fetched.insert(identifier.to_owned(), FetchedHeader::Failed);
                            return Err(HeaderError::Source(error));
                        }
                        FetchedHeader::Lost(Box::new(error))
                    }
                    Err(fatal) => return Err(fatal),
                }
            }
        };
        self.fetched.insert(identifier.to_owned(), fetched.clone());
        match &fetched {
            FetchedHeader::Header(_) => self.give_up(requester, &mut page.lost).await?,
            FetchedHeader::Lost(error) => {
                page.lost.push(identifier.to_owned());
                if page.lost.len() >= LOST_IN_A_ROW_MAX {
                    return Err(HeaderError::Source(SubrequestError::clone(error)));
                }
            }
            _ => {}
        }
        Ok(fetched)
    }

    /// Quarantines the lost records: the source gives the others.
    async fn give_up(
        &mut self,
        requester: &mut Requester<'_>,
        lost: &mut Vec<String>,
    ) -> Result<(), HeaderError> {
        for identifier in std::mem::take(lost) {
            let Some(FetchedHeader::Lost(error)) = self.fetched.remove(&identifier) else { continue };
            let (why, raw) = (error.failure.reason.name(), error.raw);
            self.fetched.insert(identifier.clone(), FetchedHeader::Quarantined(1));
            let record = QuarantinedRecord { identifier: Some(identifier), why, offset: 0, raw };
            quarantine_and_count(requester, vec![record]).await.map_err(HeaderError::Fatal)?;
        }
        Ok(())
    }

    /// Checks that the page may end, and quarantines the lost records at its end.
    async fn check_end(
        &mut self,
        requester: &mut Requester<'_>,
        lost: &mut Vec<String>,
    ) -> Result<(), HeaderError> {
        let count = |is_one: fn(&FetchedHeader) -> bool| {
            self.fetched.values().filter(|fetched| is_one(fetched)).count()
        };
        if count(|fetched| matches!(fetched, FetchedHeader::Unknown)) == self.fetched.len() {
            let details = format!(
                "{} knows none of the {} records that it lists on a page; see whether its GetRecord works, or set \
                 v1_headers_via = \"listrecords\"",
                requester.name(),
                self.fetched.len()
            );
            return Err(source_error(Failure::new(Reason::Incomplete, details)));
        }
        let last = lost.last().and_then(|identifier| self.fetched.get(identifier));
        let Some(FetchedHeader::Lost(last)) = last else { return Ok(()) };
        // No record after the last ones proves that the source works.
        let failure = last.failure.clone();
        let was_any_fetched = count(|fetched| matches!(fetched, FetchedHeader::Header(_))) > 0;
        if !was_any_fetched || requester.ask(&Request::identify(), 1, 1).await.is_err() {
            return Err(source_error(failure));
        }
        self.give_up(requester, lost).await
    }
}

/// Fetches one record, and reduces it to its header.
async fn fetch_header(
    requester: &mut Requester<'_>,
    identifier: &str,
    place: &NamespaceScope,
) -> Result<FetchedHeader, HeaderError> {
    let prefix = requester.metadata_prefix.clone().unwrap_or_else(|| COMMON_PREFIX.to_owned());
    let request = Request::get_record(identifier, &prefix);
    let response = requester.ask(&request, usize::MAX, ATTEMPTS_AT_A_RECORD).await;
    let mut response = response.map_err(HeaderError::Source)?;
    if let Some(item) = response.record(identifier) {
        let (record, fields) = item.rebase(&response.scope(), place);
        return Ok(extract_header(&record, &fields)
            .map_or(FetchedHeader::OtherFormat, |header| FetchedHeader::Header(wrap_header(&header.0))));
    }
    match response.error_code() {
        Some(ErrorCode::IdDoesNotExist) => return Ok(FetchedHeader::Unknown),
        Some(ErrorCode::CannotDisseminateFormat) => return Ok(FetchedHeader::OtherFormat),
        _ => {}
    }
    let quarantined = std::mem::take(&mut response.quarantined);
    if quarantined.is_empty() {
        let details = format!("{} does not give the record {identifier}", requester.name());
        return Err(source_error(Failure::new(Reason::Incomplete, details)));
    }
    let count = quarantined.len() as u64;
    requester.summary.items.add_quarantined(count);
    quarantine(requester, quarantined).await.map_err(HeaderError::Fatal)?;
    Ok(FetchedHeader::Quarantined(count))
}

/// Reads all of a body into memory.
async fn read_list(requester: &mut Requester<'_>, mut body: SourceBody<'_>) -> Result<Vec<u8>, BodyError> {
    let mut list = Vec::new();
    while let Some(piece) = body.next(&mut requester.deadline).await? {
        list.extend_from_slice(&piece);
        if list.len() > LIST_BYTES_MAX {
            return Err(too_many(requester));
        }
    }
    Ok(list)
}

fn source_error(failure: Failure) -> HeaderError {
    HeaderError::Source(SubrequestError { failure, raw: Vec::new() })
}

fn too_many(requester: &Requester<'_>) -> BodyError {
    let details = format!(
        "{} lists more than {IDENTIFIERS_MAX} identifiers on a page, too many to ask for each; \
         set v1_headers_via = \"listrecords\"",
        requester.name()
    );
    BodyError { failure: Failure::new(Reason::TooLarge, details), forgivable: false }
}

impl IdentifierList {
    /// Parses a page. `None`: it is not a whole 1.x list of identifiers with at least one in it.
    fn parse(page: &[u8]) -> Option<Self> {
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
    fn only_a_list_of_identifiers_is_read() {
        let list = "<?xml version=\"1.0\"?>\n<ListIdentifiers xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListIdentifiers\">\
            <responseDate>x</responseDate><requestURL>x?a&amp;b</requestURL>\
            <identifier>oai:x:a&amp;b</identifier><identifier status=\"deleted\"> oai:x:2 </identifier>\
            <resumptionToken>t&amp;u</resumptionToken></ListIdentifiers>";
        let listed = IdentifierList {
            identifiers: vec!["oai:x:a&b".into(), "oai:x:2".into()],
            token: Some("t&amp;u".into()),
        };
        assert_eq!(IdentifierList::parse(list.as_bytes()), Some(listed));
        for cut in 0..list.len() {
            assert_eq!(IdentifierList::parse(&list.as_bytes()[..cut]), None, "{cut}");
        }
        let empty = list.replace("<identifier", "<other").replace("</identifier", "</other");
        assert_eq!(IdentifierList::parse(empty.as_bytes()), None);
        assert_eq!(IdentifierList::parse(list.replace("ListIdentifiers", "html").as_bytes()), None);
    }
}
