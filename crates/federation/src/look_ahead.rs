//! Finds the next member of a list that has a record.
//!
//! A resumptionToken must lead to a page with records, and many members of a large federation have none in an
//! incremental harvest. So members receive a request for their first page until one has an item: the next one alone, and
//! then some at the same time. Its response is dropped there: the page is requested again when the harvester comes back.

use crate::ages::{Window, from_of_member};
use crate::header_editor::{PageEdits, PageItems};
use crate::list_state::{FederatedList, Place};
use crate::member_page::{Nothing, Opened};
use crate::session::{Federation, PARALLEL_MAX, Session, of_member};
use crate::settings::OnFailure;
use futures::stream::{self, StreamExt as _};
use oaimend_oai::datestamp::from_secs;
use oaimend_oai::{ErrorCode, Request, Verb};
use oaimend_repository::{Failure, Reason, RepositoryRequest};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// What follows in a list. The list is at this place then.
pub(crate) enum Ahead {
    /// A member with records.
    Records,
    /// All members have said that they have no more records.
    End,
    /// A member that has failed.
    Failed(Failure),
    /// Members that did not answer in time.
    OutOfTime,
}

impl Federation {
    /// The request for a page of a list to a member.
    ///
    /// # Errors
    ///
    /// The store of the spans cannot be read.
    pub(crate) async fn list_request(&self, list: &FederatedList, place: &Place) -> Result<Request, Failure> {
        let Some(member) = self.member(&place.id) else {
            return Err(Failure::new(Reason::Configuration, "the repository has left the federation"));
        };
        let granularity = self.granularity_of(member);
        let mut from_member = list.from_secs;
        if let Some(from_secs) = list.from_secs
            && !list.is_exact
        {
            let window = Window { from_secs, until_secs: list.until_secs };
            from_member = from_of_member(&self.services, &self.settings.name, member, window).await?;
        }
        let from = from_member.map(|from| from_secs(from, granularity));
        let until = from_secs(list.until_secs, granularity);
        let set = list.set.as_deref();
        let mut request = Request::list_records(&list.prefix, set, from.as_deref(), Some(&until));
        if list.verb() == Some(Verb::ListIdentifiers) {
            request = request.to_list_identifiers();
        }
        Ok(match &place.token {
            Some(token) => request.with_token(token.clone()),
            None => request,
        })
    }

    /// Asks a member for a page of a list, up to its first item. Pages with a token alone are passed.
    pub(crate) async fn open_list(
        &self,
        like: &RepositoryRequest,
        list: &FederatedList,
        place: &Place,
        items: PageItems,
    ) -> Opened {
        let Some(member) = self.member(&place.id) else { return Opened::Nothing(Box::default()) };
        let mut place = place.clone();
        loop {
            let request = match self.list_request(list, &place).await {
                Ok(request) => request,
                Err(failure) => return Opened::Failed(failure),
            };
            let opened = self.ask(&place.id, like, request, PageEdits { items, ..list.edits(member) }).await;
            let Opened::Nothing(nothing) = opened else { return opened };
            match &nothing.token {
                Some(token) if place.token.as_ref() == Some(token) => {
                    return Opened::Failed(endless(&place.id));
                }
                Some(token) => place.token = Some(token.clone()),
                None => return self.judge(list, &place, nothing),
            }
        }
    }

    /// The member at the next place has not answered in time. With [`OnFailure::Last`] the others need not wait for it.
    pub(crate) fn postpone_late(&self, list: &mut FederatedList) {
        if self.settings.on_failure == OnFailure::Last {
            list.postpone(self.members());
        }
    }

    /// Whether a response without items says that the member has no more records.
    fn judge(&self, list: &FederatedList, place: &Place, nothing: Box<Nothing>) -> Opened {
        use ErrorCode::{
            BadArgument, BadResumptionToken, BadVerb, CannotDisseminateFormat, IdDoesNotExist,
            NoMetadataFormats, NoRecordsMatch, NoSetHierarchy,
        };
        let is_end = match nothing.code() {
            None | Some(NoRecordsMatch) => true,
            // A member that loses a format in the middle of a list has more records.
            Some(CannotDisseminateFormat) => place.token.is_none(),
            Some(BadResumptionToken) => place.token.is_some(),
            Some(NoSetHierarchy | BadArgument) => list.set.is_some(),
            Some(BadVerb | IdDoesNotExist | NoMetadataFormats) => false,
        };
        if is_end {
            return Opened::Nothing(nothing);
        }
        let (code, text) = nothing.error.unwrap_or((BadArgument, String::new()));
        let failure =
            Failure::new(Reason::Status, format!("it answers a list with the error {}", code.name()));
        Opened::Failed(of_member(&place.id, failure.with_evidence(text)))
    }
}

/// The failure of a member whose token leads to itself.
pub(crate) fn endless(id: &str) -> Failure {
    of_member(id, Failure::new(Reason::NotResumable, "its resumptionToken leads back to the same page"))
}

impl Session {
    /// Moves a list on to the next member with records.
    pub(crate) async fn look_ahead(&mut self, list: &mut FederatedList, time: Duration) -> Ahead {
        let federation = Arc::clone(&self.federation);
        let members = federation.members();
        let mut deadline = federation.services.clock.deadline(time);
        let current = list.clone();
        let (request, federation) = (&self.request, &*federation);
        let ask = |place: Place| {
            let current = &current;
            async move {
                let opened = federation.open_list(request, current, &place, PageItems::All).await;
                (place, opened)
            }
        };
        // Most lists go on with the next member, so it receives the first request alone.
        let mut places = list.places(members).collect::<Vec<_>>().into_iter();
        let first = stream::iter(places.next()).then(ask);
        let mut opened = pin!(first.chain(stream::iter(places).map(ask).buffered(PARALLEL_MAX)));
        loop {
            let next = tokio::select! {
                next = opened.next() => next,
                () = &mut deadline => {
                    federation.postpone_late(list);
                    return Ahead::OutOfTime;
                }
            };
            let Some((place, opened)) = next else { break };
            list.move_to(Some(place.clone()));
            match opened {
                Opened::Nothing(nothing) if nothing.code() != Some(ErrorCode::BadResumptionToken) => {
                    list.lacks_format &= nothing.code() == Some(ErrorCode::CannotDisseminateFormat);
                    self.shown.note(&place.id, nothing.state_secs);
                    list.pass(members);
                    self.unanswered.moved(list);
                }
                // The error of a token is for the harvester.
                Opened::Items(_) | Opened::Nothing(_) => return Ahead::Records,
                Opened::Failed(failure) => {
                    let waits = federation.settings.on_failure == OnFailure::Last && list.postpone(members);
                    if !waits {
                        return Ahead::Failed(failure);
                    }
                    self.unanswered.moved(list);
                }
            }
        }
        list.move_to(None);
        let mut failed = None;
        for place in list.failed_places(members) {
            let opened = tokio::select! {
                opened = federation.open_list(request, &current, &place, PageItems::All) => opened,
                () = &mut deadline => return Ahead::OutOfTime,
            };
            match opened {
                Opened::Nothing(nothing) if nothing.code() != Some(ErrorCode::BadResumptionToken) => {
                    self.shown.note(&place.id, nothing.state_secs);
                    list.pass(members);
                }
                Opened::Items(_) | Opened::Nothing(_) => return Ahead::Records,
                Opened::Failed(failure) => {
                    failed = failed.or(Some(failure));
                    list.rotate_failed();
                }
            }
        }
        failed.map_or(Ahead::End, Ahead::Failed)
    }
}
