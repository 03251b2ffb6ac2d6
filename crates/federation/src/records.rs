//! GetRecord, and ListMetadataFormats of an identifier: from the first member in the order of the index that has the item.

use crate::facts::Needed;
use crate::header_editor::PageEdits;
use crate::member_page::{MemberPage, Opened};
use crate::session::{Answered, PARALLEL_MAX, Session, out_of_time};
use futures::stream::{self, StreamExt as _};
use oaimend_oai::ErrorCode;
use oaimend_repository::Failure;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Longest time until the response begins.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What members have said of an item.
enum Found {
    /// The member has it.
    Page(String, Box<MemberPage>),
    /// A member has the item, but not what is requested of it.
    Error(ErrorCode, String),
    /// No member has it.
    Nothing,
}

impl Session {
    /// Answers a request for an item.
    pub(crate) async fn record(&mut self, identifier: &str) -> Answered {
        let federation = Arc::clone(&self.federation);
        federation.refresh_facts(&self.request, Needed::Granularity).await;
        let ids = federation.members().iter().map(|member| &member.id);
        // Members that may have the item stay in their order, because the first one that has it counts.
        let (first, others): (Vec<_>, Vec<_>) = match &federation.services.locator {
            Some(locator) => {
                let named = locator.locate(identifier).await;
                ids.partition(|id| named.contains(id) || !locator.covers(id))
            }
            None => (ids.collect(), Vec::new()),
        };
        let mut refused = None;
        for ids in [first, others] {
            match self.find(&ids).await? {
                Found::Page(id, page) => return self.send_record(&id, *page).await,
                Found::Error(code, text) => refused = refused.or(Some((code, text))),
                Found::Nothing => {}
            }
        }
        let unknown = || {
            let text = "no repository of this federation has this identifier".to_owned();
            (ErrorCode::IdDoesNotExist, text)
        };
        let (code, text) = refused.unwrap_or_else(unknown);
        self.send_error(federation.now_secs(), code, &text).await
    }

    /// Asks members for the item. The first in their order that has it counts.
    ///
    /// # Errors
    ///
    /// A member fails, and no one before it has the item; or they do not answer in time.
    async fn find(&self, ids: &[&String]) -> Result<Found, Failure> {
        let federation = &self.federation;
        let now_secs = federation.now_secs();
        let ask = |id: String| async move {
            let member = federation.member(&id);
            let edits = PageEdits { granularity: federation.granularity(), ..self.edits(member, now_secs) };
            let opened = federation.ask(&id, &self.request, self.request.request.clone(), edits).await;
            (id, opened)
        };
        let ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
        let mut opened = pin!(stream::iter(ids).map(ask).buffered(PARALLEL_MAX));
        let mut deadline = federation.services.clock.deadline(TIME_MAX);
        let mut refused = None;
        loop {
            let next = tokio::select! {
                next = opened.next() => next,
                () = &mut deadline => return Err(out_of_time()),
            };
            match next {
                Some((id, Opened::Items(page))) => return Ok(Found::Page(id, page)),
                Some((_, Opened::Failed(failure))) => return Err(failure),
                Some((_, Opened::Nothing(nothing))) => match nothing.error {
                    // A source may refuse the identifiers of others.
                    None | Some((ErrorCode::IdDoesNotExist | ErrorCode::BadArgument, _)) => {}
                    Some(error) => refused = refused.or(Some(error)),
                },
                None => break,
            }
        }
        Ok(refused.map_or(Found::Nothing, |(code, text)| Found::Error(code, text)))
    }

    async fn send_record(&mut self, id: &str, mut page: MemberPage) -> Answered {
        let summary = self.send_items(id, &mut page).await?;
        let answered_by = page.answered_by.clone();
        self.send_end(page.editor.into_tail(), answered_by).await?;
        Ok(summary)
    }
}
