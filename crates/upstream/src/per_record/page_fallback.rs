//! Finds and fetches the records of a page that fails every time while the source answers everything else.
//!
//! `ListIdentifiers` gives the headers of the page, `GetRecord` gives each record. The session makes a
//! substitute page of them, which passes through the engine like any other. Only if the mapping allows it
//! (`page_fallback`).
//!
//! Invariants: no record of the list is skipped. The headers are proven to be in the place of the page: they
//! are those of the beginning of the list, or begin with the items that the page delivered before it broke. The
//! list continues with whole pages only if both verbs are seen to continue with the same records. No
//! record is quarantined before another record of the page was fetched after it, or the source is seen to
//! answer at all.

use crate::adapt::requester::Requester;
use crate::adapt::subrequest::{Item, SubResponse, SubrequestError};
use crate::http::retry::may_depend_on_request;
use crate::page::resume::KnownItems;
use crate::xml::text::unescape_text;
use oaimend_oai::{Argument, ErrorCode, Request, Window};
use oaimend_repository::rebase_namespaces::{NamespaceScope, wrap_header};
use oaimend_repository::{Failure, Reason};
use oaimend_store::QuarantinedRecord;

/// The headers of records that the harvester does not have, next in the list.
pub(crate) struct HeaderList {
    /// The `ListIdentifiers` request that gave them.
    pub(crate) source_request: Request,
    pub(crate) items: Vec<Item>,
    scope: NamespaceScope,
    /// The token for the next headers.
    pub(crate) token: Option<String>,
}

/// The result of a request for one record.
pub(crate) enum FetchedRecord {
    /// The record as it has to be written in the page.
    Record(String),
    /// The source does not know the record any more.
    Withdrawn,
    /// The record cannot be fetched.
    Lost(QuarantinedRecord),
    /// The source must not be asked any more.
    Stopped(Failure),
}

/// How the list continues after a substitute page.
pub(crate) enum Continuation {
    /// With a token of the source.
    SourceToken(String),
    /// With the headers of this request, of which some are done.
    SamePage(Request),
    /// With the headers of this request.
    NextPage(Request),
    /// This is the end of the list.
    End,
}

/// Maximum number of records that are fetched one by one for one substitute page.
pub(crate) const RECORDS_MAX: usize = 200;
/// Attempts at one record.
const ATTEMPTS_AT_A_RECORD: u32 = 2;
/// Attempts at headers.
const ATTEMPTS_AT_HEADERS: u32 = 3;
/// Pages of headers that are searched for the place of the page.
const HEADER_PAGES_MAX: usize = 10_000;
/// So many items in the same order prove a place.
const PROOF_ITEMS: usize = 10;

impl HeaderList {
    /// The request for the headers after these.
    pub(crate) fn next(&self) -> Option<Request> {
        self.token.as_ref().map(|token| self.source_request.with_token(token.clone()))
    }

    /// The headers of a response that are not known; `None` if the response is not whole.
    fn read(
        source_request: Request,
        response: SubResponse,
        within: Option<&Window>,
        known: &mut KnownItems,
    ) -> Option<Self> {
        if response.items.is_empty() || !response.quarantined.is_empty() || response.is_too_long {
            return None;
        }
        let (scope, token) = (response.scope(), response.token());
        let mut items = response.items;
        items.retain(|item| is_within(item, within));
        items.retain(|item| match known.get_mut(&item.hash).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => true,
        });
        Some(Self { source_request, items, scope, token })
    }
}

/// The headers from a request on that are not known: the first page with one.
pub(crate) async fn find_headers(
    requester: &mut Requester<'_>,
    mut source_request: Request,
    within: Option<&Window>,
    mut known: KnownItems,
) -> Option<HeaderList> {
    for _ in 0..HEADER_PAGES_MAX {
        let response = requester.ask(&source_request, usize::MAX, ATTEMPTS_AT_HEADERS).await.ok()?;
        let next = response.token().map(|token| source_request.with_token(token));
        let headers = HeaderList::read(source_request.clone(), response, within, &mut known)?;
        match next {
            Some(next) if headers.items.is_empty() && next != source_request => source_request = next,
            _ => return Some(headers),
        }
    }
    None
}

/// The headers of the same page as a request for records, if they begin with the items that were delivered.
/// `Err` if they do not.
pub(crate) async fn find_headers_of_page(
    requester: &mut Requester<'_>,
    source_request: &Request,
    within: Option<&Window>,
    (delivered, known): (&[u64], &mut KnownItems),
) -> Result<Option<HeaderList>, NotSamePage> {
    let response =
        requester.ask(source_request, usize::MAX, ATTEMPTS_AT_HEADERS).await.map_err(|_| NotSamePage)?;
    let items = response.items.iter().filter(|item| is_within(item, within));
    let hashes: Vec<u64> = items.map(|item| item.hash).collect();
    if !hashes.starts_with(delivered) {
        return Err(NotSamePage);
    }
    Ok(HeaderList::read(source_request.clone(), response, within, known))
}

/// Headers that are not proven to be those of the page.
pub(crate) struct NotSamePage;

/// Whether the harvester asked for an item, if the source was asked for a wider window.
fn is_within(item: &Item, within: Option<&Window>) -> bool {
    within.is_none_or(|within| within.contains(&unescape_text(&item.datestamp)))
}

/// How the list continues after headers that are done: with whole pages, if both verbs continue with the
/// same records.
pub(crate) async fn find_continuation(requester: &mut Requester<'_>, next: Request) -> Continuation {
    let Some(token) = next.argument(Argument::ResumptionToken) else { return Continuation::NextPage(next) };
    let records = requester.context.request.with_token(token.to_owned());
    let headers = requester.ask(&next, PROOF_ITEMS, 1).await;
    let records = requester.ask(&records, PROOF_ITEMS, 1).await;
    match (headers, records) {
        (Ok(headers), Ok(records)) if are_same_items(&headers, &records) => {
            Continuation::SourceToken(token.to_owned())
        }
        _ => Continuation::NextPage(next),
    }
}

/// Fetches one record of a header list, as it has to be written in `place`.
pub(crate) async fn fetch_listed_record(
    requester: &mut Requester<'_>,
    headers: &HeaderList,
    item: &Item,
    place: &NamespaceScope,
) -> FetchedRecord {
    if item.deleted {
        let record = wrap_header(&String::from_utf8_lossy(&item.bytes));
        return FetchedRecord::Record(headers.scope.rebase(&record, place));
    }
    let identifier = unescape_text(&item.identifier);
    let prefix = requester.metadata_prefix.clone().unwrap_or_default();
    let request = Request::get_record(&identifier, &prefix);
    let lost = |why, raw| {
        let identifier = Some(String::from_utf8_lossy(&item.identifier).into_owned());
        FetchedRecord::Lost(QuarantinedRecord { identifier, why, offset: 0, raw })
    };
    let mut response = match requester.ask(&request, usize::MAX, ATTEMPTS_AT_A_RECORD).await {
        Ok(response) => response,
        Err(SubrequestError { failure, raw })
            if may_depend_on_request(&failure) && !requester.deadline.left().is_zero() =>
        {
            return lost(failure.reason.name(), raw);
        }
        Err(SubrequestError { failure, .. }) => return FetchedRecord::Stopped(failure),
    };
    if let Some(record) = response.record(&identifier) {
        return FetchedRecord::Record(record.rebase(&response.scope(), place).0);
    }
    match (response.error_code(), response.quarantined.pop()) {
        (Some(ErrorCode::IdDoesNotExist), _) => FetchedRecord::Withdrawn,
        (None, Some(QuarantinedRecord { why, raw, .. })) => lost(why, raw),
        (Some(_), _) => lost("error-instead", Vec::new()),
        (None, None) => lost("another-record", Vec::new()),
    }
}

/// The failure of a page of which a part cannot be fetched per record either.
pub(crate) fn per_record_failure(requester: &Requester<'_>, what: &str) -> Failure {
    let name = requester.name();
    Failure::new(Reason::Incomplete, format!("{name} fails at a page, and {what} cannot be fetched either"))
}

/// Whether two responses begin with the same items.
fn are_same_items(one: &SubResponse, other: &SubResponse) -> bool {
    let hashes = |response: &SubResponse| {
        response.items.iter().take(PROOF_ITEMS).map(|item| item.hash).collect::<Vec<_>>()
    };
    let (one, other) = (hashes(one), hashes(other));
    let both = one.len().min(other.len());
    both > 0 && one.get(..both) == other.get(..both)
}
