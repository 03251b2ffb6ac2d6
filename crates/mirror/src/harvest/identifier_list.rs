//! A list of all identifiers of a source, for comparisons.

use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::repeated_pages::RepeatedPages;
use crate::harvest::settings::HarvestSettings;
use oaimend_oai::{ErrorCode, Request};
use oaimend_repository::{Failure, Reason};
use oaimend_store::NewRecord;

/// Pages after which other harvests may have their turns.
const PAGES_IN_ONE_TURN: u64 = 1_000;

/// A list of the identifiers of one format, page by page.
pub(crate) struct IdentifierList<'a> {
    harvest: &'a Harvester,
    settings: &'a HarvestSettings,
    /// The request for the next page; `None` at the end of the list.
    next: Option<Request>,
    repeated: RepeatedPages,
    pages: u64,
    /// Whether the source itself has ended the list so far: else it may know more identifiers.
    is_conclusive: bool,
}

impl<'a> IdentifierList<'a> {
    /// The list of a set; of the whole repository without one.
    pub(crate) fn new(
        harvest: &'a Harvester,
        settings: &'a HarvestSettings,
        prefix: &str,
        set: Option<&str>,
    ) -> Self {
        let first = Request::list_records(prefix, set, None, None).to_list_identifiers();
        Self {
            harvest,
            settings,
            next: Some(first),
            repeated: RepeatedPages::default(),
            pages: 0,
            is_conclusive: true,
        }
    }

    /// Whether an identifier that the list does not have is proven to be unknown to the source.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.is_conclusive
    }

    /// The headers of the next page as records without bytes of metadata; `None` at the end.
    pub(crate) async fn next_page(&mut self) -> Result<Option<Vec<NewRecord>>, Interruption> {
        let Some(request) = self.next.take() else { return Ok(None) };
        self.pages += 1;
        if self.pages > PAGES_IN_ONE_TURN {
            self.harvest.pause(self.settings.request_gap).await;
        } else {
            self.harvest.clock.pause(self.settings.request_gap).await;
        }
        let (headers, page) = self.harvest.receive_headers(request.clone()).await?;
        let id = &self.harvest.id;
        if page.identifiers_hash().is_some_and(|page| self.repeated.note(page)) {
            return Err(incomplete(format!("the list of the identifiers of {id} goes in circles")));
        }
        // A header in quarantine belongs to a record that has not vanished.
        self.is_conclusive &= !page.summary.end.has_concluded_end && page.missing.count() == 0;
        match (page.summary.page.error, page.summary.page.token) {
            (None, Some(token)) if request != request.with_token(token.clone()) => {
                self.next = Some(request.with_token(token));
            }
            (None | Some(ErrorCode::NoRecordsMatch), None) => {}
            _ => return Err(incomplete(format!("{id} does not list its identifiers to the end"))),
        }
        Ok(Some(headers))
    }
}

fn incomplete(details: String) -> Interruption {
    Interruption::Source(Failure::new(Reason::Incomplete, details))
}
