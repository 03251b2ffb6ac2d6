//! ListSets: each member is a set, and its sets are below it.
//!
//! A page is a page of one member, after the sets of the members that have no sets of their own.

use crate::header_editor::PageEdits;
use crate::list_state::{FederatedList, Place};
use crate::member_page::{MemberPage, Opened};
use crate::session::{Answered, Session, of_member, out_of_time, token_element};
use crate::settings::{Member, OnFailure};
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Argument, ErrorCode, Request, escape};
use oaimend_repository::{Failure, Reason};
use std::sync::Arc;
use std::time::Duration;

/// Longest time until a page begins.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum number of sets of our own on a page.
const OWN_SETS_MAX: u64 = 500;

/// The sets of members that are not sent yet.
#[derive(Default)]
struct OwnSets {
    xml: String,
    count: u64,
}

impl OwnSets {
    fn add(&mut self, member: &Member) {
        self.xml.push_str(&format!("<set><setSpec>{}</setSpec><setName>", member.set()));
        escape(&member.id, &mut self.xml);
        self.xml.push_str("</setName></set>\n");
        self.count += 1;
    }
}

impl Session {
    pub(crate) async fn sets(&mut self) -> Answered {
        let federation = Arc::clone(&self.federation);
        let verb = self.request.request.verb();
        let (name, key) = (&federation.settings.name, &federation.services.token_key);
        let now_secs = federation.now_secs();
        let mut list = match self.request.request.argument(Argument::ResumptionToken) {
            None => FederatedList::new(name, verb, now_secs, Granularity::Second),
            Some(token) => match FederatedList::read(token, key, name, verb) {
                Some(list) => list,
                None => {
                    let text = "this resumptionToken is not one of this federation and verb";
                    return self.send_error(now_secs, ErrorCode::BadResumptionToken, text).await;
                }
            },
        };
        let members = federation.members();
        list.forget_those_that_left(members);
        let mut deadline = federation.services.clock.deadline(TIME_MAX);
        let (mut pending, mut refused) = (OwnSets::default(), 0);
        while let Some(place) = list.next_place(members) {
            let Some(member) = federation.member(&place.id) else { break };
            let mut with_member = OwnSets { xml: pending.xml.clone(), count: pending.count };
            if place.token.is_none() {
                with_member.add(member);
            }
            let opened = tokio::select! {
                opened = self.open_sets(&list, &place, &with_member) => opened,
                () = &mut deadline => Opened::Failed(out_of_time()),
            };
            match opened {
                Opened::Items(page) => return self.send_sets(list, (place, *page), with_member).await,
                Opened::Nothing(nothing) => match (nothing.error, nothing.token) {
                    (_, Some(token)) if place.token.as_ref() != Some(&token) => {
                        pending = with_member;
                        list.continue_with(members, token);
                        continue;
                    }
                    (None | Some((ErrorCode::NoSetHierarchy, _)), None) => {
                        pending = with_member;
                        list.pass(members);
                    }
                    (Some((code @ ErrorCode::BadResumptionToken, text)), _) if place.token.is_some() => {
                        return self.send_error(list.date_secs, code, &text).await;
                    }
                    _ => {
                        let failure = Failure::new(Reason::Status, "it answers ListSets with another error");
                        return Err(of_member(&place.id, failure).into());
                    }
                },
                Opened::Failed(failure) if pending.count == 0 => {
                    let is_last = federation.settings.on_failure == OnFailure::Last;
                    let waits = is_last && list.postpone(members);
                    refused += usize::from(!waits);
                    let others = waits || list.is_at_failed(members) && refused < list.rotate_failed();
                    if !others {
                        return Err(failure.into());
                    }
                }
                // The failure is that of the next page.
                Opened::Failed(_) => return self.send_own_sets(list, pending).await,
            }
            if pending.count >= OWN_SETS_MAX {
                break;
            }
        }
        if pending.count > 0 {
            return self.send_own_sets(list, pending).await;
        }
        let text = "this federation has no repositories";
        self.send_error(list.date_secs, ErrorCode::NoSetHierarchy, text).await
    }

    async fn open_sets(&self, list: &FederatedList, place: &Place, pending: &OwnSets) -> Opened {
        let Some(member) = self.federation.member(&place.id) else { return Opened::Nothing(Box::default()) };
        let request = Request::list_sets();
        let request = match &place.token {
            Some(token) => request.with_token(token.clone()),
            None => request,
        };
        let edits =
            PageEdits { before_items: pending.xml.clone(), ..self.edits(Some(member), list.date_secs) };
        self.federation.ask(&place.id, &self.request, request, edits).await
    }

    /// Sends a page of the sets of a member.
    async fn send_sets(
        &mut self,
        mut list: FederatedList,
        (place, mut page): (Place, MemberPage),
        pending: OwnSets,
    ) -> Answered {
        let federation = Arc::clone(&self.federation);
        let members = federation.members();
        let mut summary = self.send_items(&place.id, &mut page).await?;
        match summary.page.token.take() {
            Some(token) => list.continue_with(members, token),
            None => list.pass(members),
        }
        let cursor = list.count;
        list.count += pending.count + page.editor.items();
        let token = self.token_of_sets(&list, &place.id)?;
        let is_first = !self.request.request.is_resumption();
        let next = token.as_deref().map(|token| (token, None));
        let mut end = token_element(page.editor.prefix(), next, cursor, is_first).into_bytes();
        let answered_by = page.answered_by.clone();
        end.extend(page.editor.into_tail());
        self.send_end(end, answered_by).await?;
        summary.page.token = token;
        Ok(summary)
    }

    /// Sends a page of sets of our own alone.
    async fn send_own_sets(&mut self, mut list: FederatedList, pending: OwnSets) -> Answered {
        let cursor = list.count;
        list.count += pending.count;
        let token = self.token_of_sets(&list, &self.federation.settings.name)?;
        let is_first = !self.request.request.is_resumption();
        let next = token.as_deref().map(|token| (token, None));
        let content = format!("{}{}", pending.xml, token_element("", next, cursor, is_first));
        let mut summary = self.send_own(list.date_secs, &content, pending.count).await?;
        summary.page.token = token;
        Ok(summary)
    }

    /// The token of the next page; `None` at the end. Each member has a set, so each place has one.
    fn token_of_sets(&self, list: &FederatedList, id: &str) -> Result<Option<String>, Failure> {
        if list.next_place(self.federation.members()).is_none() {
            return Ok(None);
        }
        let token = list.to_token(&self.federation.services.token_key);
        let too_long =
            || of_member(id, Failure::new(Reason::NotResumable, "its resumptionToken is too long"));
        Ok(Some(token.ok_or_else(too_long)?))
    }
}
