//! Writes a page to a harvester: from the cache, from a page in flight, or directly from the source.
//!
//! pingora has read the request and sends the response. Pages do not pass through its cache or its upstreams: see
//! docs/explanation/request-path.md. `cache` finds or starts the page, and this module reads it.
//!
//! Invariants: a page is received at the speed of its source, even if its harvester does not read. A harvester that
//! leaves does not end a page that others read or that is to be cached. A truncated page has no end.

use super::cache::{CacheLookup, CachedPage, FoundPage, InFlightPage, PageError, Reader};
use super::downstream::Downstream;
use super::gzip::{self, Gzip};
use super::response_head;
use super::upstream_handle::UpstreamHandle;
use crate::serve::validators::Validators;
use http::{HeaderValue, StatusCode, header};
use oaimend_files::PageCoding;
use oaimend_repository::{
    DetachedTask, Event, Failure, Reason, Repository, RepositoryRequest, ResponseSummary,
};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use std::sync::Arc;
use std::time::SystemTime;

/// Writes pages of a repository to their receiver.
pub(super) struct PageResponder<'a> {
    pub(super) repository: &'a dyn Repository,
}

/// A page in flight.
struct ArrivingPage<'p> {
    reader: &'p mut Reader,
    /// The session with the source, if this request started it.
    fetching: &'p mut DetachedTask,
    /// An older page, for the case that the source fails.
    old: Option<CachedPage>,
}

impl PageResponder<'_> {
    /// Answers with a cached page, a page in flight, or a page that starts with this request. `upstream` is set to the
    /// session with the source that this request starts.
    ///
    /// # Errors
    ///
    /// The harvester is gone, or the page was truncated after its first bytes were sent.
    pub(super) async fn answer(
        &self,
        downstream: &mut Downstream<'_>,
        lookup: Option<&mut CacheLookup>,
        upstream: &mut Option<UpstreamHandle>,
        request: RepositoryRequest,
    ) -> Result<()> {
        let handle = UpstreamHandle::default();
        let Some(lookup) = lookup else {
            *upstream = Some(handle.clone());
            return self.answer_without_cache(downstream, &handle, request).await;
        };
        lookup.form = downstream.page_form();
        let found = {
            let handle = handle.clone();
            let ended = move |summary, failure| handle.end(summary, failure);
            lookup.find(self.repository, request, ended).await
        };
        let (mut reader, mut fetching, old) = match found {
            FoundPage::Cached(page) => return self.send_cached(downstream, lookup, page).await,
            FoundPage::InFlight(reader, fetching, old) => (reader, fetching, old),
        };
        if lookup.shared.is_none() {
            *upstream = Some(handle);
        }
        let in_flight = Arc::clone(&reader.page);
        let arriving = ArrivingPage { reader: &mut reader, fetching: &mut fetching, old };
        let answered = self.send_in_flight(downstream, lookup, arriving).await;
        if answered.is_err() {
            // The page continues while others read it or if it is to be cached, and at least to its header for a
            // harvester that retries. Meanwhile the request counts as in flight for the quotas.
            drop(reader);
            fetching.until(|| in_flight.ended().is_some()).await;
        }
        answered
    }

    /// Sends the page as it arrives; or the `old` page, if the source fails before the page starts.
    async fn send_in_flight(
        &self,
        downstream: &mut Downstream<'_>,
        lookup: &mut CacheLookup,
        ArrivingPage { reader, fetching, old }: ArrivingPage<'_>,
    ) -> Result<()> {
        let in_flight = Arc::clone(&reader.page);
        let needs_length = downstream.needs_length();
        let head = async {
            fetching.until(|| in_flight.begun().is_some()).await;
            if needs_length {
                fetching.beside(in_flight.ended_or_too_long()).await;
            } else if in_flight.is_written() {
                // The page is complete and is being written to disk: send it in one piece afterwards.
                fetching.until(|| in_flight.ended().is_some()).await;
            }
            in_flight.head().await
        };
        let mut head = Box::new(downstream.while_connected(head).await?.map_err(truncated)?.clone());
        if head.status.is_server_error()
            && let Some(old) = old
        {
            let proxy_status = head.headers.get(response_head::PROXY_STATUS).cloned();
            lookup.use_stale(proxy_status.unwrap_or(HeaderValue::from_static("oaimend")));
            return self.send_cached(downstream, lookup, old).await;
        }
        if needs_length && in_flight.ended() != Some(true) {
            let (head, text) = response_head::failed(&no_whole_page(&in_flight))?;
            downstream.write_head(Box::new(head), false).await?;
            downstream.write_piece(text).await?;
            return downstream.write_end().await;
        }
        if lookup.shared.is_some() {
            head.insert_header(header::AGE, in_flight.age_secs())?;
        }
        if let Some(validators) = in_flight.began_if_kept().map(validators) {
            head.insert_header(header::ETAG, validators.entity_tag())?;
        }
        complete_head(&mut head, lookup, in_flight.whole_bytes())?;
        fetching.beside(downstream.write_head(head, false)).await?;
        loop {
            let piece = async {
                fetching.until(|| reader.has_more()).await;
                // Reads from a file wait.
                fetching.beside(reader.next()).await
            };
            match downstream.while_connected(piece).await?.map_err(truncated)? {
                Some(piece) => fetching.beside(downstream.write_piece(piece)).await?,
                None => return downstream.write_end().await,
            }
        }
    }

    /// Sends a cached page.
    async fn send_cached(
        &self,
        downstream: &mut Downstream<'_>,
        lookup: &CacheLookup,
        mut page: CachedPage,
    ) -> Result<()> {
        let mut head = Box::new(response_head::page()?);
        head.insert_header(header::AGE, page.age_secs())?;
        if let Some(proxy_status) = &lookup.replaced_failure {
            head.insert_header(response_head::PROXY_STATUS, proxy_status.clone())?;
        }
        let validators = validators(page.began());
        head.insert_header(header::ETAG, validators.entity_tag())?;
        let is_known =
            downstream.is_conditional() && validators.are_known(&downstream.session.req_header().headers);
        if is_known {
            head.set_status(StatusCode::NOT_MODIFIED)?;
        }
        complete_head(&mut head, lookup, Some(page.bytes))?;
        if is_known {
            return downstream.write_head(head, true).await;
        }
        if lookup.form.coding == PageCoding::Gzip {
            return send_compressed(downstream, lookup, page, head).await;
        }
        downstream.write_head(head, false).await?;
        loop {
            if let Some(slice) = page.next_in_file() {
                downstream.write_file(slice).await?;
            } else if let Some(piece) = downstream.while_connected(page.next()).await?.map_err(truncated)? {
                downstream.write_piece(piece).await?;
            } else {
                return downstream.write_end().await;
            }
        }
    }

    /// Sends the response of the source to this request alone.
    async fn answer_without_cache(
        &self,
        downstream: &mut Downstream<'_>,
        handle: &UpstreamHandle,
        request: RepositoryRequest,
    ) -> Result<()> {
        let head_only = downstream.is_head_only();
        let mut events = self.repository.answer(request);
        let head = match downstream.while_connected(events.next()).await? {
            Some(Event::Head(answer)) => response_head::whole(&answer, "bypass")?,
            Some(Event::Failed(failure, summary)) => {
                let (head, text) = response_head::failed(&failure)?;
                handle.end(*summary, Some(failure));
                downstream.write_head(Box::new(head), head_only).await?;
                return if head_only {
                    Ok(())
                } else {
                    downstream.write_piece(text).await?;
                    downstream.write_end().await
                };
            }
            _ => return Err(stopped()),
        };
        events.beside(downstream.write_head(Box::new(head), head_only)).await?;
        if head_only {
            handle.end(ResponseSummary::default(), None);
            return Ok(());
        }
        loop {
            match downstream.while_connected(events.next()).await? {
                Some(Event::Body(piece)) => {
                    events.beside(downstream.write_piece(piece)).await?;
                }
                Some(Event::End(summary)) => {
                    handle.end(*summary, None);
                    return downstream.write_end().await;
                }
                Some(Event::Failed(failure, summary)) => {
                    let error = Error::explain(ErrorType::ConnectionClosed, failure.details.clone());
                    handle.end(*summary, Some(failure));
                    return Err(error);
                }
                Some(Event::Records(_) | Event::Quarantined(_)) => {}
                Some(Event::Head(_)) | None => return Err(stopped()),
            }
        }
    }
}

/// Why a client of HTTP/1.0 receives no page.
fn no_whole_page(in_flight: &InFlightPage) -> Failure {
    if in_flight.is_too_long() {
        let details = "the page is too long to be held for HTTP/1.0 (cache.entry_bytes_max), or the disk is full; ask with HTTP/1.1";
        return Failure::new(Reason::SpoolFull, details);
    }
    Failure::new(Reason::Incomplete, "the source sent a page that ends early")
}

/// The validators of a page that is cached, by the time at which it started. Two fetches of a page never start at the
/// same time.
fn validators(began: SystemTime) -> Validators {
    let began = began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Validators { tag: format!("{:x}", began.as_nanos()), modified_secs: None }
}

fn truncated(error: PageError) -> Box<Error> {
    Error::because(ErrorType::ConnectionClosed, "the page ended early", error)
}

fn stopped() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "the session with the source stopped")
}

/// Sends a cached page as gzip. A page that is not compressed yet is compressed once, and then held in memory.
async fn send_compressed(
    downstream: &mut Downstream<'_>,
    lookup: &CacheLookup,
    mut page: CachedPage,
    mut head: Box<ResponseHeader>,
) -> Result<()> {
    head.insert_header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))?;
    if page.coding == PageCoding::Gzip {
        head.insert_header(header::CONTENT_LENGTH, page.bytes)?;
        downstream.write_head(head, false).await?;
        if let Some(body) = page.next().await.map_err(truncated)? {
            downstream.write_piece(body).await?;
        }
        return downstream.write_end().await;
    }
    downstream.write_head(head, false).await?;
    let (mut gzip, mut whole) = (Gzip::new(), Vec::new());
    while let Some(piece) = downstream.while_connected(page.next()).await?.map_err(truncated)? {
        let compressed = gzip.compress(&piece, page.is_at_end())?;
        if whole.len() <= COMPRESSED_BYTES_MAX {
            whole.extend_from_slice(&compressed);
        }
        downstream.write_piece(compressed).await?;
    }
    if whole.len() <= COMPRESSED_BYTES_MAX {
        lookup.keep_compressed(&page, whole.into());
    }
    downstream.write_end().await
}

/// Longest compressed page that is held in memory, in bytes.
const COMPRESSED_BYTES_MAX: usize = 256 << 10;

/// Adds `Cache-Status`, the length where it is known, and the mark of a compressed page to its tag.
fn complete_head(head: &mut ResponseHeader, lookup: &CacheLookup, length: Option<u64>) -> Result<()> {
    let forwarded_as =
        head.headers.get(header::CACHE_STATUS).and_then(|forwarded_as| forwarded_as.to_str().ok());
    let status = lookup.cache_status(forwarded_as.unwrap_or_default());
    head.insert_header(header::CACHE_STATUS, status)?;
    let length = if head.status == StatusCode::OK { length } else { None };
    match (lookup.form.coding, length) {
        // A response without a body has the tag that its body would have.
        (PageCoding::Gzip, _) => gzip::mark_tag(head),
        (PageCoding::Plain, Some(length)) => {
            head.remove_header(&header::TRANSFER_ENCODING);
            head.insert_header(header::CONTENT_LENGTH, length)
        }
        (PageCoding::Plain, None) => Ok(()),
    }
}
