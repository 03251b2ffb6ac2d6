//! Where a list is begun again that cannot be continued.

use crate::client::request_context::RequestContext;
use crate::page::resume::KnownItems;
use crate::session::list_position::ListPosition;
use crate::session::progress::RestartPoint;
use oaimend_oai::Request;
use oaimend_repository::Failure;

/// A list that can be begun again.
pub(crate) struct RestartPlan {
    pub(crate) source_request: Request,
    pub(crate) point: RestartPoint,
    /// The items of the earlier pages of the list.
    pub(crate) known: KnownItems,
}

/// Finds out where a list can be begun again safely, each point once: where an earlier walk was left, at the
/// last datestamp if the mapping says that the list is in their order, or at the beginning. `last` is where it
/// was begun before.
pub(crate) async fn plan_restart(
    context: &RequestContext,
    position: &ListPosition,
    last: Option<RestartPoint>,
) -> Result<Option<RestartPlan>, Failure> {
    if last >= Some(RestartPoint::Whole) {
        return Ok(None);
    }
    let Some((first, known)) = position.find_first(context).await? else { return Ok(None) };
    let (walk, datestamp) = position.find_shortcuts(context).await?;
    let is_ordered = context.mapping.quirks.is_ordered_by_datestamp;
    let by_date = match datestamp {
        Some(datestamp) if is_ordered => first.starting_from(&datestamp),
        _ => None,
    };
    let (source_request, point) = match (walk, by_date) {
        (Some(walk), _) if last.is_none() => (walk, RestartPoint::Remembered),
        (_, Some(by_date)) if last < Some(RestartPoint::ByDate) => (by_date, RestartPoint::ByDate),
        _ => (first, RestartPoint::Whole),
    };
    Ok(Some(RestartPlan { source_request, point, known }))
}
