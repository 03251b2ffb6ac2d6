//! Answers a request to a view: the response to its verb.

use super::presentation::View;
use super::response::{Answer, stream};
use super::{catalog, component_lists, identify, lists, sets};
use oaimend_oai::Verb;
use oaimend_repository::{EventStream, Failure, RepositoryRequest};
use std::sync::Arc;

/// Answers a request with events.
pub(super) fn answer(view: &Arc<View>, request: RepositoryRequest) -> EventStream {
    let view = Arc::clone(view);
    let answered = request.clone();
    let spool_bytes_max = view.options.spool_bytes_max;
    stream(request, spool_bytes_max, async move { respond(&view, &answered).await })
}

async fn respond(view: &View, request: &RepositoryRequest) -> Result<Answer, Failure> {
    if let Some(component) = view.component.as_deref() {
        match request.request.verb() {
            Verb::ListSets => return component_lists::list_sets(view, component, &request.request).await,
            Verb::ListIdentifiers | Verb::ListRecords => {
                return component_lists::list(view, component, request).await;
            }
            Verb::Identify | Verb::ListMetadataFormats | Verb::GetRecord => {}
        }
    }
    match request.request.verb() {
        Verb::Identify => identify::identify(view, &request.echo.base_url).await,
        Verb::ListMetadataFormats => catalog::list_metadata_formats(view, &request.request).await,
        Verb::ListSets => sets::list_sets(view, &request.request).await,
        Verb::GetRecord => lists::get_record(view, request).await,
        Verb::ListIdentifiers | Verb::ListRecords => lists::list(view, request).await,
    }
}
