//! The Identify responses of members: requested together, and kept for some minutes.

use crate::member_page::whole_response;
use crate::session::{Federation, PARALLEL_MAX, of_member, request_to_member};
use crate::state::MemberFacts;
use futures::stream::{self, StreamExt as _};
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_oai::Request;
use oaimend_oai::datestamp::to_secs;
use oaimend_repository::{Failure, Reason, RepositoryRequest};
use std::pin::pin;
use std::time::Duration;

/// Longest time for the Identify responses of all members.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum number of bytes of an Identify response.
const IDENTIFY_BYTES_MAX: usize = 1 << 20;

/// The members whose facts a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The granularity, from anywhere.
    Granularity,
    /// All facts, not older than some minutes.
    Fresh,
}

impl Federation {
    /// Requests the facts of members. A fact that stays unknown counts as the weakest value.
    pub(crate) async fn refresh_facts(&self, like: &RepositoryRequest, needed: Needed) {
        let state = &self.services.state;
        let now_secs = self.now_secs();
        let is_unknown = |id: &str| match needed {
            Needed::Granularity => {
                state.facts(id).is_none() && self.services.repositories.granularity(id).is_none()
            }
            Needed::Fresh => !state.has_fresh_facts(id, now_secs),
        };
        let is_asked = |id: &str| is_unknown(id) && !state.was_queried_lately(id, now_secs);
        let ids = self.members().iter().map(|member| &member.id);
        let unknown: Vec<String> = ids.filter(|id| is_asked(id)).cloned().collect();
        if unknown.is_empty() {
            return;
        }
        let mut deadline = self.services.clock.deadline(TIME_MAX);
        let ask = |id: String| async move {
            let _turn = state.turn_at(&id).await;
            // Another request may have asked it meanwhile.
            if is_asked(&id) {
                state.note_queried(&id, now_secs);
                let facts =
                    self.facts_of(&id, like).await.map(|facts| state.note_facts(&id, now_secs, facts));
                return (id, facts);
            }
            (id, Ok(()))
        };
        let responses = stream::iter(unknown).map(ask);
        let mut responses = pin!(responses.buffer_unordered(PARALLEL_MAX));
        loop {
            let next = tokio::select! {
                next = responses.next() => next,
                () = &mut deadline => return,
            };
            match next {
                Some((_, Ok(()))) => {}
                Some((id, Err(failure))) => {
                    let details = failure.details_for_operators();
                    tracing::warn!(
                        repo = id,
                        details,
                        "a repository of a federation does not answer Identify"
                    );
                }
                None => return,
            }
        }
    }

    async fn facts_of(&self, id: &str, like: &RepositoryRequest) -> Result<MemberFacts, Failure> {
        let repository = self.open(id).await?;
        let request = request_to_member(like, Request::identify());
        let body = whole_response(&*repository, request, IDENTIFY_BYTES_MAX).await;
        let body = body.map_err(|failure| of_member(id, failure))?;
        let identify = StoredIdentify::read(&body).ok_or_else(|| {
            of_member(id, Failure::new(Reason::Status, "its Identify response cannot be read"))
        })?;
        Ok(MemberFacts {
            granularity: identify.granularity,
            deleted_record: identify.deleted_record.clone().unwrap_or_default(),
            earliest_secs: identify.earliest_datestamp().as_deref().and_then(to_secs),
            admin_emails: identify.admin_emails(),
        })
    }
}
