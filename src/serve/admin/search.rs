//! The search index, for operators.

use super::lines::respond_with_lines;
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use crate::serve::search::{RebuildLine, SearchService, SearchState, settled_secs};
use crate::serve::served::ServedRepositories;
use futures::StreamExt as _;
use futures::stream;
use oaimend_search::IndexError;
use oaimend_store::MirrorStore;
use serde_json::{Value, json};
use std::sync::Arc;

/// The state of the index: `GET /-/search`.
///
/// # Errors
///
/// The index or the mirror cannot be read.
pub(super) async fn state(served: &ServedRepositories) -> Result<Option<Value>, IndexError> {
    let state = match &served.search_service {
        Some(search) => state_of(search, &*served.store.mirror).await?,
        None => SearchState::default(),
    };
    Ok(Some(json!(state)))
}

async fn state_of(search: &SearchService, mirror: &dyn MirrorStore) -> Result<SearchState, IndexError> {
    Ok(SearchState::new(search.status(mirror).await?, search.last_error()))
}

/// Builds the index again: `POST /-/search/rebuild`. The response has a line for the result.
pub(super) async fn rebuild(served: &ServedRepositories, lifecycle: &Lifecycle) -> Response {
    let Some(search) = served.search_service.clone() else {
        return Response::json(409, &json!({"error": "the search is turned off; set search.enabled"}));
    };
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    let mirror = Arc::clone(&served.store.mirror);
    // A command without a server indexes the same formats as one.
    search.set_formats(&served.repositories);
    let settled_secs = settled_secs(served).await;
    let work = {
        let (search, mirror) = (Arc::clone(&search), Arc::clone(&mirror));
        // The build continues if the operator is gone.
        tokio::spawn(async move {
            search.rebuild(&mirror, settled_secs).await?;
            state_of(&search, &*mirror).await
        })
    };
    let result = async move {
        match work.await {
            Ok(Ok(state)) => RebuildLine::Rebuilt(state),
            Ok(Err(error)) => RebuildLine::Failed { error: error.to_string() },
            Err(error) => RebuildLine::Failed { error: error.to_string() },
        }
    };
    let running = move |secs| {
        let (search, mirror) = (Arc::clone(&search), Arc::clone(&mirror));
        async move {
            let records = search.status(&*mirror).await.map_or(0, |status| status.records);
            RebuildLine::Running { secs, records }
        }
    };
    respond_with_lines(stream::once(result).boxed(), Arc::clone(&served.clock), running)
}
