//! A repository whose requests are added to its activity.

use crate::activity_update::activity_update;
use crate::event::Event;
use crate::event_stream::EventStream;
use crate::request::{Repository, RepositoryRequest};
use oaimend_base::clock::Clock;
use oaimend_store::ActivityLog;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A repository whose requests are added to its activity: for harvests of the mirror, which no harvester requests.
pub struct ObservedRepository<R> {
    /// The id of the repository.
    pub id: String,
    /// The repository.
    pub repository: R,
    /// The activity.
    pub activity: ActivityLog,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Events that wait for their receiver.
const EVENTS_HELD: usize = 4;

impl<R: Repository> Repository for ObservedRepository<R> {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let (id, activity, clock) = (self.id.clone(), self.activity.clone(), Arc::clone(&self.clock));
        let requested = request.request.clone();
        let mut events = self.repository.answer(request);
        let (sender, observed) = mpsc::channel(EVENTS_HELD);
        let session = async move {
            while let Some(event) = events.next().await {
                let update = match &event {
                    Event::End(summary) => {
                        let failure = summary.end.continued.as_ref().or(summary.end.failed_over.as_ref());
                        Some(activity_update(&requested, Some(summary), failure))
                    }
                    Event::Failed(failure, summary) => {
                        Some(activity_update(&requested, Some(summary), Some(failure)))
                    }
                    Event::Head(_) | Event::Records(_) | Event::Quarantined(_) | Event::Body(_) => None,
                };
                if let Some(update) = update {
                    let at_secs = clock.now_secs();
                    activity.note(&id, at_secs, update);
                }
                if sender.send(event).await.is_err() {
                    // The receiver is gone. The session of `events` ends by itself.
                    return;
                }
            }
        };
        EventStream::new(observed, Box::pin(session))
    }
}
