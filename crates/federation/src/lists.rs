//! ListRecords and ListIdentifiers: the lists of the members, one after the other.
//!
//! A page is a page of one member. After the last page of a member the next one with records is found
//! (`look_ahead`), because a token must lead to a page with records. If this is not known in time, or a member fails,
//! the token leads to this member nevertheless, so that the failure becomes a clean 503 in place of a broken page. If no
//! record follows after all, the last one is delivered again on the last page: a list may not end with a page without
//! records. So is it if members without records take too long, with a token that leads on. A request that comes no
//! further is 503, because pages without news would be an endless list.

use crate::ages::ListTimes;
use crate::facts::Needed;
use crate::header_editor::PageItems;
use crate::list_state::{FederatedList, Place};
use crate::look_ahead::{Ahead, endless};
use crate::member_page::{MemberPage, Opened};
use crate::session::{Answered, Session, of_member, out_of_time, token_element};
use crate::settings::OnFailure;
use oaimend_oai::datestamp::{Granularity, to_last_second, to_secs};
use oaimend_oai::{Argument, ErrorCode, set_spec};
use oaimend_repository::{Failure, Reason, ResponseSummary, Stop};
use std::sync::Arc;
use std::time::Duration;

/// Longest time until the first record of a page. Retries at one source may take 30 seconds of it.
const FIRST_RECORD_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest time for the next member with records, after the last record of a page.
const LOOK_AHEAD_TIME_MAX: Duration = Duration::from_secs(15);

const TOKEN_TOO_LONG: &str =
    "the resumptionToken of the repository is too long for a token of the federation";

/// Why a list cannot begin.
type Refusal = (ErrorCode, String);

impl Session {
    /// Answers a request for records or headers.
    pub(crate) async fn list(&mut self) -> Answered {
        let federation = Arc::clone(&self.federation);
        let (name, key) = (&federation.settings.name, &federation.services.token_key);
        let verb = self.request.request.verb();
        let now_secs = federation.now_secs();
        let kept = self.unanswered.kept();
        if let Some(list) = kept.and_then(|token| FederatedList::read(&token, key, name, verb)) {
            return self.page(list).await;
        }
        if let Some(token) = self.request.request.argument(Argument::ResumptionToken) {
            let Some(list) = FederatedList::read(token, key, name, verb) else {
                let text = "this resumptionToken is not one of this federation and verb";
                return self.send_error(now_secs, ErrorCode::BadResumptionToken, text).await;
            };
            return self.page(list).await;
        }
        federation.refresh_facts(&self.request, Needed::Granularity).await;
        match self.begin() {
            Ok(list) => self.page(list).await,
            Err((code, text)) => self.send_error(now_secs, code, &text).await,
        }
    }

    /// The list of a request without a token.
    fn begin(&self) -> Result<FederatedList, Refusal> {
        let federation = &self.federation;
        let request = &self.request.request;
        let granularity = federation.granularity();
        let now_secs = federation.now_secs();
        let mut list = FederatedList::new(&federation.settings.name, request.verb(), now_secs, granularity);
        request.argument(Argument::MetadataPrefix).unwrap_or_default().clone_into(&mut list.prefix);
        let [from, until] = [Argument::From, Argument::Until].map(|name| request.argument(name));
        let has_seconds = |date: &str| date.len() == Granularity::Second.len_bytes();
        if granularity == Granularity::Day && [from, until].into_iter().flatten().any(has_seconds) {
            let text = "the granularity of this federation is YYYY-MM-DD, because not all of its repositories have seconds";
            return Err((ErrorCode::BadArgument, text.to_owned()));
        }
        list.from_secs = from.and_then(to_secs);
        if let Some(until_secs) = until.and_then(to_last_second) {
            list.until_secs = until_secs.min(now_secs);
        }
        // A validator requests one datestamp so. A whole day is a step of a harvest.
        list.is_exact = list.from_secs.is_some() && list.from_secs == until.and_then(to_last_second);
        let nothing = |text: &str| Err((ErrorCode::NoRecordsMatch, text.to_owned()));
        if list.from_secs.is_some_and(|from_secs| from_secs > list.until_secs) {
            return nothing("no record has a datestamp after the present");
        }
        if let Some(set) = request.argument(Argument::Set) {
            let (repository, below) = match set.split_once(':') {
                Some((repository, below)) => (repository, Some(below)),
                None => (set, None),
            };
            let set = set_spec::escape_part(repository);
            let Some(member) = federation.members().iter().find(|member| member.set() == set) else {
                return nothing("no repository of this federation has this set");
            };
            (list.member, list.set) = (Some(member.id.clone()), below.map(str::to_owned));
        }
        Ok(list)
    }

    /// Answers with the next page of a list.
    async fn page(&mut self, mut list: FederatedList) -> Answered {
        let federation = Arc::clone(&self.federation);
        let members = federation.members();
        list.forget_those_that_left(members);
        let begin = list.clone();
        let mut deadline = federation.services.clock.deadline(FIRST_RECORD_TIME_MAX);
        let mut refused = 0;
        while let Some(place) = list.next_place(members) {
            let opened = tokio::select! {
                opened = federation.open_list(&self.request, &list, &place, PageItems::All) => opened,
                () = &mut deadline => {
                    self.federation.postpone_late(&mut list);
                    return self.out_of_time(list, &begin).await;
                }
            };
            match opened {
                Opened::Items(page) => return self.send_page(list, place, *page).await,
                Opened::Nothing(nothing) => match nothing.error {
                    Some((code @ (ErrorCode::BadResumptionToken | ErrorCode::BadArgument), text)) => {
                        return self.send_error(list.date_secs, code, &text).await;
                    }
                    error => {
                        let is_lacking =
                            error.is_some_and(|(code, _)| code == ErrorCode::CannotDisseminateFormat);
                        list.lacks_format &= is_lacking;
                        self.shown.note(&place.id, nothing.state_secs);
                        list.pass(members);
                        self.unanswered.moved(&list);
                    }
                },
                Opened::Failed(failure) => {
                    let is_last = federation.settings.on_failure == OnFailure::Last;
                    let waits = is_last && list.postpone(members);
                    if !waits {
                        // Other members that have failed may be back.
                        refused += 1;
                        let others = list.is_at_failed(members) && refused < list.rotate_failed();
                        if !others {
                            return Err(failure.into());
                        }
                        continue;
                    }
                    self.unanswered.moved(&list);
                }
            }
            match self.look_ahead(&mut list, FIRST_RECORD_TIME_MAX).await {
                Ahead::Records => {}
                Ahead::End => break,
                Ahead::Failed(failure) => return Err(failure.into()),
                Ahead::OutOfTime => return self.out_of_time(list, &begin).await,
            }
        }
        self.nothing_left(list).await
    }

    /// Sends a page of a member, and the token of what follows.
    async fn send_page(&mut self, mut list: FederatedList, place: Place, mut page: MemberPage) -> Answered {
        let federation = Arc::clone(&self.federation);
        let members = federation.members();
        let is_first = !self.request.request.is_resumption();
        let mut summary = self.send_items(&place.id, &mut page).await?;
        self.unanswered.answered();
        self.shown.note(&place.id, page.state_secs(&summary));
        let cursor = list.count;
        list.count += page.editor.items();
        list.lacks_format = false;
        list.last = Some(place.clone());
        let mut expires = None;
        let continues = match summary.page.token.take() {
            Some(next) if place.token.as_ref() == Some(&next) => return Err(endless(&place.id).into()),
            Some(next) => {
                list.continue_with(members, next);
                // A source whose clock is wrong may write a time in the past.
                let is_ahead = |date: &String| to_secs(date).is_some_and(|secs| secs > federation.now_secs());
                expires = summary.page.token_expires.take().filter(is_ahead);
                true
            }
            None => {
                list.pass(members);
                match self.look_ahead(&mut list, LOOK_AHEAD_TIME_MAX).await {
                    Ahead::Records => true,
                    Ahead::End => false,
                    Ahead::Failed(failure) => {
                        summary.end.continued = Some(failure);
                        true
                    }
                    Ahead::OutOfTime => true,
                }
            }
        };
        let token = if continues { Some(self.token_of(&list, &place.id)?) } else { None };
        let times = ListTimes {
            date_secs: list.date_secs,
            latest_secs: summary.page.latest_datestamp.as_deref().and_then(to_secs),
            has_days: list.has_days(),
        };
        let recorded = self.shown.record(&federation.services, &list.federation, times).await;
        recorded.map_err(Failure::from)?;
        let next = token.as_deref().map(|token| (token, expires.as_deref()));
        let mut end = token_element(page.editor.prefix(), next, cursor, is_first).into_bytes();
        let answered_by = page.answered_by.clone();
        end.extend(page.editor.into_tail());
        self.send_end(end, answered_by).await?;
        summary.page.token = token;
        summary.page.progress = (Some(cursor), None);
        Ok(summary)
    }

    fn token_of(&self, list: &FederatedList, id: &str) -> Result<String, Failure> {
        let token = list.to_token(&self.federation.services.token_key);
        token.ok_or_else(|| of_member(id, Failure::new(Reason::NotResumable, TOKEN_TOO_LONG)))
    }

    /// Answers if no member was found in time. The next request goes on where this one has come to from its begin.
    async fn out_of_time(&mut self, mut list: FederatedList, begin: &FederatedList) -> Answered {
        self.record_shown(&list).await?;
        let has_moved = list != *begin;
        if !has_moved && list.is_at_failed(self.federation.members()) {
            // Others that have failed may be back.
            list.rotate_failed();
        }
        self.unanswered.moved(&list);
        if has_moved && self.request.request.is_resumption() {
            let id = list.last.as_ref().map(|last| last.id.clone()).unwrap_or_default();
            let token = self.token_of(&list, &id)?;
            match self.repeat_last(&list, Some(token)).await {
                Ok(Some(summary)) => {
                    self.unanswered.answered();
                    return Ok(summary);
                }
                Err(Stop::Gone) => return Err(Stop::Gone),
                Ok(None) | Err(Stop::Failed(_)) => {}
            }
        }
        Err(out_of_time().into())
    }

    /// Answers if no member has records any more.
    async fn nothing_left(&mut self, list: FederatedList) -> Answered {
        self.record_shown(&list).await?;
        if !self.request.request.is_resumption() {
            let has_members = !self.federation.members().is_empty();
            let (code, text) = if list.lacks_format && has_members {
                let text = "no repository of this federation has this format";
                (ErrorCode::CannotDisseminateFormat, text)
            } else {
                (ErrorCode::NoRecordsMatch, "no repository of this federation has such records")
            };
            self.unanswered.answered();
            return self.send_error(list.date_secs, code, text).await;
        }
        self.unanswered.moved(&list);
        let repeated = self.repeat_last(&list, None).await?;
        self.unanswered.answered();
        match repeated {
            Some(summary) => Ok(summary),
            None => {
                let text = "no more records; those that were to follow have changed or are gone";
                self.send_error(list.date_secs, ErrorCode::NoRecordsMatch, text).await
            }
        }
    }

    /// Stores the states that the members have shown: the harvester derives the `from` of its next list from this one.
    async fn record_shown(&mut self, list: &FederatedList) -> Result<(), Failure> {
        let times = ListTimes { date_secs: list.date_secs, latest_secs: None, has_days: list.has_days() };
        Ok(self.shown.record(&self.federation.services, &list.federation, times).await?)
    }

    /// Answers with the last record of the list again: its page is requested again, and the record delivered alone.
    /// `None` if it is not there any more.
    async fn repeat_last(
        &mut self,
        list: &FederatedList,
        token: Option<String>,
    ) -> Result<Option<Box<ResponseSummary>>, Stop> {
        let Some(last) = &list.last else { return Ok(None) };
        let federation = Arc::clone(&self.federation);
        let mut page = match federation.open_list(&self.request, list, last, PageItems::Last).await {
            Opened::Items(page) => page,
            Opened::Nothing(_) => return Ok(None),
            Opened::Failed(failure) => return Err(failure.into()),
        };
        let mut summary = self.send_items(&last.id, &mut page).await?;
        self.record_shown(list).await?;
        let next = token.as_deref().map(|token| (token, None));
        let mut end = token_element(page.editor.prefix(), next, list.count, false).into_bytes();
        let answered_by = page.answered_by.clone();
        end.extend(page.editor.into_tail());
        self.send_end(end, answered_by).await?;
        summary.items.set_sent(1);
        summary.page.token = token;
        summary.page.token_expires = None;
        summary.page.progress = (Some(list.count), None);
        Ok(Some(summary))
    }
}
