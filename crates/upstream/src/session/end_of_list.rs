//! Ends a list of which all items were delivered, and whose last token fails.
//!
//! Some sources write a token on their last page too, and answer it with `badResumptionToken`. A harvester then takes
//! the whole list for failed.

use crate::adapt::subrequest::SubrequestOptions;
use crate::page::attempt::Page;
use crate::session::list_position::ListPosition;
use crate::session::list_session::ListSession;
use oaimend_oai::ErrorCode;
use oaimend_repair::RepairId;
use oaimend_repository::Failure;
use std::time::Duration;

/// Longest wait for the response to the last token. The end of the page waits for it.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(10);

/// Whether the list ends with this page, although `next` follows: all its pages announced the same size, exactly so
/// many different items were delivered, and the source answers our own request of the token with
/// `badResumptionToken`. There is at most one such request for each page.
pub(super) async fn has_all_items(
    session: &mut ListSession<'_>,
    page: &Page,
    next: &str,
) -> Result<bool, Failure> {
    let buffer = &page.buffer;
    let is_of_source = session.filter.is_none()
        && !session.progress.is_restarted()
        && !session.requester.adapter.is_version_one()
        && session.requester.summary.items.quarantined() == 0;
    let size =
        buffer.token.progress().1.filter(|size| *size > 0 && is_of_source && buffer.head.error().is_none());
    let (Some(size), Some(position)) = (size, &session.position) else { return Ok(false) };
    if position.count_delivered(session.requester.context, buffer.observed.names(), size).await? != Some(size)
    {
        return Ok(false);
    }
    let request = session.source_request.with_token(next.to_owned());
    let options = SubrequestOptions {
        items_max: 1,
        is_beside_page: true,
        first: session.position.as_ref().and_then(ListPosition::first_request),
        ..session.requester.options()
    };
    let response = session.requester.ask_within(RESPONSE_TIME_MAX, &request, options).await;
    let fails = response.is_ok_and(|response| {
        let has_items = !response.items.is_empty() || !response.quarantined.is_empty();
        // The repair of a code makes badResumptionToken of a badArgument, which may have other causes.
        let is_as_sent = !response.buffer.defects.has_repair(RepairId::ErrorCode);
        !has_items && is_as_sent && response.error_code() == Some(ErrorCode::BadResumptionToken)
    });
    if fails {
        tracing::info!(
            repo = session.requester.context.mapping.id,
            request = session.requester.context.request.query(),
            items = size,
            "the last token of a list fails after all its items; it is removed"
        );
    }
    Ok(fails)
}
