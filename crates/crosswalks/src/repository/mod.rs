//! A repository with the formats that crosswalks add to another one.
//!
//! A request that concerns no such format is passed on unchanged. For the others the wrapped repository is asked in the
//! format that a crosswalk reads, and its response is written again: the header, the sets, the datestamp and the `about`
//! of each record, deleted records, errors and the size of the list stay; the metadata and the resumptionToken are ours.
//! The format that is read is chosen at the beginning of a list and kept in its tokens.

mod collections;
mod converted_page;
mod converted_records;
mod formats;
mod list_token;
mod quarantine;
mod response_date;
mod session;
mod settings;
mod shared;

pub use collections::DerivedCollections;
pub use converted_records::ConvertedRecords;
pub use formats::FormatsCache;
pub use quarantine::QuarantineSettings;
pub use settings::CrosswalkSettings;

use crate::table::legal_prefix;
use oaimend_oai::{Argument, RequestEcho};
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use session::Session;
use shared::Shared;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A repository with the formats that crosswalks add to another one. Cheap to clone.
#[derive(Clone)]
pub struct CrosswalkRepository(Arc<Shared>);

/// Events that wait for their receiver.
const EVENTS_HELD: usize = 4;

impl CrosswalkRepository {
    /// Wraps a repository.
    pub fn new(inner: Box<dyn Repository>, settings: CrosswalkSettings) -> Self {
        Self(Arc::new(Shared { inner, settings }))
    }
}

impl Repository for CrosswalkRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let request = with_legal_prefix(request, &self.0.settings);
        let Some(task) = self.0.task_of(&request.request) else { return self.0.inner.answer(request) };
        let shared = Arc::clone(&self.0);
        let (sender, events) = mpsc::channel(EVENTS_HELD);
        let session = async move {
            Session::new(&shared, &request, sender).run(task).await;
        };
        EventStream::new(events, Box::pin(session))
    }
}

/// The request with the legal name of its format, if this repository has a crosswalk of that name.
fn with_legal_prefix(mut request: RepositoryRequest, settings: &CrosswalkSettings) -> RepositoryRequest {
    let Some(prefix) = request.request.argument(Argument::MetadataPrefix) else { return request };
    let legal = legal_prefix(prefix);
    if legal == prefix || settings.crosswalks.iter().all(|crosswalk| crosswalk.prefix != legal) {
        return request;
    }
    let mut echo = RequestEcho::clone(&request.echo);
    for (name, value) in &mut echo.arguments {
        if name == Argument::MetadataPrefix.name() {
            legal.clone_into(value);
        }
    }
    request.request = request.request.in_format(legal);
    request.echo = Arc::new(echo);
    request
}

#[cfg(test)]
mod tests;
