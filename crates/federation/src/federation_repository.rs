//! The federation as a repository.

use crate::ages::ShownStates;
use crate::session::{Answered, Federation, Session, UnansweredList};
use crate::settings::{FederationServices, FederationSettings};
use oaimend_oai::{Argument, Verb};
use oaimend_repository::{Event, EventStream, Repository, RepositoryRequest, ResponseWriter, Stop};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Events that wait for their receiver.
const EVENTS_HELD: usize = 4;

/// Several repositories as one. Cheap to clone.
#[derive(Clone)]
pub struct FederationRepository(Arc<Federation>);

impl FederationRepository {
    /// A federation of these members.
    pub fn new(settings: FederationSettings, services: FederationServices) -> Self {
        Self(Arc::new(Federation { settings, services }))
    }
}

impl Repository for FederationRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let (sender, events) = mpsc::channel(EVENTS_HELD);
        let federation = Arc::clone(&self.0);
        let session = async move {
            let in_one_piece = request.in_one_piece.then_some(federation.settings.spool_bytes_max);
            let writer = ResponseWriter::new(sender.clone(), in_one_piece);
            let unanswered = UnansweredList::new(&federation, &request.request);
            let shown = ShownStates::default();
            let mut session = Session { federation, request, writer, shown, unanswered };
            // The receiver may be dropped; ignore.
            let _ = match session.answer().await {
                Ok(summary) => sender.send(Event::End(summary)).await,
                Err(Stop::Failed(failure)) => sender.send(Event::Failed(failure, Box::default())).await,
                Err(Stop::Gone) => Ok(()),
            };
        };
        EventStream::new(events, Box::pin(session))
    }
}

impl Session {
    async fn answer(&mut self) -> Answered {
        let request = self.request.request.clone();
        match (request.verb(), request.argument(Argument::Identifier)) {
            (Verb::Identify, _) => self.identify().await,
            (Verb::ListMetadataFormats, None) => self.formats().await,
            (Verb::ListSets, _) => self.sets().await,
            (Verb::GetRecord | Verb::ListMetadataFormats, identifier) => {
                self.record(identifier.unwrap_or_default()).await
            }
            (Verb::ListRecords | Verb::ListIdentifiers, _) => self.list().await,
        }
    }
}
