//! Where a request stands in its list: what the ledger knows of it, and what follows from that.
//!
//! Reads and writes of the ledger block on the disk and run beside the task.

use crate::clock::secs;
use crate::oai::{Argument, Request, Verb, Window};
use crate::store::{
    DeliveredPage, Ledger, LedgerError, ListFacts, ListPage, ListStatus, ReplayProgress, TokenTarget,
};
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::page::resume::Delivered;
use crate::upstream::per_record::page_fallback::may_go_one_by_one;
use crate::upstream::session::continuation_token::{ContinuationToken, hash_of_all};
use crate::upstream::session::list_session::Job;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

/// How a list request begins.
pub(crate) enum ListStart {
    /// The source is asked for this; `delivered` is what the harvester has of the page.
    /// `anew` is what was delivered besides, if the page is one of the list begun anew.
    Ask { asked: Request, delivered: Delivered, chain: Option<Box<ListPosition>>, anew: Option<Known> },
    /// The token is ours and of no use any more: why.
    Refuse(&'static str),
}

/// A list, and where in it the request stands.
#[derive(Clone, Debug)]
pub(crate) struct ListPosition {
    pub(crate) place: ListPage,
    /// The query that began the list; of no use where its beginning was not seen.
    first_query: String,
    /// What of the list was asked for, where the source was asked for more.
    pub(crate) within: Option<Window>,
    /// Whether the ledger knows the place from a token that was given out.
    given_out: bool,
    /// The token of the request, where the ledger knows nothing of its list.
    asked_by: Option<String>,
    /// Whether the source gave the token of the request out for several pages, or for several lists.
    is_reused: bool,
    /// How many harvests follow the list, where nobody knows which page each of them has reached.
    mixed_harvests: Option<u32>,
}

/// What a list has delivered: how often each item.
pub(crate) type Known = HashMap<u64, u32>;

/// How long a token of ours may be used.
const OWN_TOKEN_LIFE: Duration = Duration::from_secs(3 * 24 * 3600);

const OF_ANOTHER_VERB: &str = "the token is one of another verb";

/// Finds out where the request stands.
pub(crate) async fn find_start(job: &Job, now: SystemTime) -> Result<ListStart, Failure> {
    let request = &job.asked;
    let ask =
        |chain| ListStart::Ask { asked: request.clone(), delivered: Delivered::default(), chain, anew: None };
    if !request.verb().is_list() {
        return Ok(ask(None));
    }
    let Some(token) = request.argument(Argument::ResumptionToken) else {
        let place = ListPage { list: fastrand::u64(..), page: 0 };
        let first_query = request.query().to_owned();
        return Ok(ask(Some(Box::new(ListPosition::at(place, first_query, None)))));
    };
    if let Some(own) = ContinuationToken::read(token, &job.store.token_key) {
        return open_own(job, own, now).await;
    }
    let (repository, verb, asked_by) = (job.mapping.id.clone(), request.verb().name(), token.to_owned());
    let known = read_if_open(job, move |ledger| ledger.find(&repository, verb, &asked_by)).await?;
    // A list that began elsewhere: from here on it is known.
    let elsewhere =
        |within| ListPosition::at(ListPage { list: fastrand::u64(..), page: 1 }, String::new(), within);
    let chain = match known {
        Some(TokenTarget { place: Some((place, facts)), is_reused, within }) => {
            let mixed_harvests = facts.mixed_harvests();
            let chain = ListPosition::at(place, facts.first_query, within);
            ListPosition { given_out: true, is_reused, mixed_harvests, ..chain }
        }
        Some(TokenTarget { place: None, is_reused, within }) => {
            ListPosition { is_reused, ..elsewhere(within) }
        }
        None => ListPosition { asked_by: Some(token.to_owned()), ..elsewhere(None) },
    };
    Ok(ask(Some(Box::new(chain))))
}

async fn open_own(job: &Job, own: ContinuationToken, now: SystemTime) -> Result<ListStart, Failure> {
    if own.repository != job.mapping.id {
        return Ok(ListStart::Refuse("the token is one of another repository"));
    }
    if secs(now) > own.expires_secs {
        return Ok(ListStart::Refuse("the token has expired; begin the list again"));
    }
    let Ok(asked) = Request::parse(own.query.as_bytes()) else {
        return Ok(ListStart::Refuse("the token cannot be used any more; begin the list again"));
    };
    // The rest of a list of records may have to be had by its headers, one by one.
    let is_one_by_one = asked.verb() == Verb::ListIdentifiers && job.request.verb() == Verb::ListRecords;
    if asked.verb() != job.request.verb() && !is_one_by_one {
        return Ok(ListStart::Refuse(OF_ANOTHER_VERB));
    }
    if is_one_by_one && !may_go_one_by_one(job) {
        return Ok(ListStart::Refuse("the rest of the list is not had one by one any more; begin it again"));
    }
    let (repository, place) = (job.mapping.id.clone(), own.place);
    let known = read(job, move |ledger| {
        let facts = ledger.list(&repository, place.list)?;
        let is_mixed = facts.as_ref().is_some_and(|facts| facts.mixed_harvests().is_some());
        let before = match own.anew && !is_mixed {
            true => ledger.delivered_before(&repository, place)?,
            false => Vec::new(),
        };
        Ok((ledger.part(&repository, place, own.delivered)?, before, facts))
    });
    let (hashes, before, facts) = known.await?;
    let mixed_harvests = facts.as_ref().and_then(ListFacts::mixed_harvests);
    let (first_query, within) = facts.map(|facts| (facts.first_query, facts.within)).unzip();
    // A token for the rest of a list of headers asks the source for the same, and is none for records.
    let is_of_verb = |query: &String| {
        Request::parse(query.as_bytes()).is_ok_and(|first| first.verb() == job.request.verb())
    };
    if is_one_by_one && !first_query.as_ref().is_some_and(is_of_verb) {
        return Ok(ListStart::Refuse(OF_ANOTHER_VERB));
    }
    let is_whole =
        |hashes: &Vec<u64>| hashes.len() as u64 == own.count && hash_of_all(hashes) == own.delivered;
    let Some(hashes) = hashes.filter(is_whole) else {
        return Ok(ListStart::Refuse(
            "what was delivered before is not known any more; begin the list again",
        ));
    };
    let (first_query, within) = (first_query.unwrap_or_default(), within.flatten());
    let chain =
        ListPosition { given_out: true, mixed_harvests, ..ListPosition::at(place, first_query, within) };
    let anew = own.anew.then(|| counted(before.iter().chain(&hashes)));
    Ok(ListStart::Ask { asked, delivered: Delivered::of(hashes), chain: Some(Box::new(chain)), anew })
}

impl ListPosition {
    fn at(place: ListPage, first_query: String, within: Option<Window>) -> Self {
        Self {
            place,
            first_query,
            within,
            given_out: false,
            asked_by: None,
            is_reused: false,
            mixed_harvests: None,
        }
    }

    /// Writes down what was delivered of the page that is whole.
    pub(crate) fn note(
        &self,
        job: &Job,
        delivered: &Delivered,
        next: Option<String>,
        last_datestamp: Option<String>,
        now: SystemTime,
    ) {
        if next.is_none() && !self.given_out {
            // No token leads from it and none of ours led to it: nobody comes back to this list.
            return;
        }
        job.store.ledger.note(DeliveredPage { last_datestamp, ..self.as_note(job, delivered, next, now) });
    }

    /// A token of ours for the rest of the page; `None` where none can be given.
    pub(crate) async fn own_token(
        &self,
        job: &Job,
        asked: &Request,
        delivered: &Delivered,
        anew: bool,
        now: SystemTime,
    ) -> Option<String> {
        let own = ContinuationToken {
            repository: job.mapping.id.clone(),
            query: asked.query().to_owned(),
            place: self.place,
            count: delivered.hashes().len() as u64,
            delivered: hash_of_all(delivered.hashes()),
            expires_secs: secs(now + OWN_TOKEN_LIFE),
            anew,
        };
        let token = own.write(&job.store.token_key)?;
        let note = DeliveredPage { ending: ListStatus::GoesOn, ..self.as_note(job, delivered, None, now) };
        let (ledger, part) = (job.store.ledger.clone(), own.delivered);
        let noted = tokio::task::spawn_blocking(move || ledger.note_durably(note, part)).await;
        noted.unwrap_or(false).then_some(token)
    }

    /// A token of ours for the page behind this one, of which nothing was delivered yet.
    pub(crate) async fn own_token_for_the_next_page(
        &self,
        job: &Job,
        asked: &Request,
        delivered: &Delivered,
        now: SystemTime,
    ) -> Option<String> {
        let note = DeliveredPage { ending: ListStatus::GoesOn, ..self.as_note(job, delivered, None, now) };
        job.store.ledger.note(note);
        let place = ListPage { page: self.place.page + 1, ..self.place };
        Self { place, ..self.clone() }.own_token(job, asked, &Delivered::default(), false, now).await
    }

    /// The lowest datestamp that was asked for, where the list's beginning is known.
    pub(crate) fn from(&self) -> Option<String> {
        self.first()?.argument(Argument::From).map(str::to_owned)
    }

    /// The request that began the list, where that is known.
    pub(crate) fn first(&self) -> Option<Request> {
        Request::parse(self.first_query.as_bytes()).ok()
    }

    /// The format of the list's records, where its beginning is known.
    pub(crate) fn metadata_prefix(&self) -> Option<String> {
        self.first()?.argument(Argument::MetadataPrefix).map(str::to_owned)
    }

    fn as_note(
        &self,
        job: &Job,
        delivered: &Delivered,
        next: Option<String>,
        now: SystemTime,
    ) -> DeliveredPage {
        DeliveredPage {
            repository: job.mapping.id.clone(),
            verb: job.request.verb().name(),
            place: self.place,
            first_query: self.first_query.clone(),
            within: self.within.clone(),
            hashes: delivered.hashes().to_vec(),
            complete: delivered.is_complete(),
            asked_by: self.asked_by.clone(),
            ending: if next.is_none() { ListStatus::Ended } else { ListStatus::GoesOn },
            next,
            last_datestamp: None,
            now_secs: secs(now),
        }
    }

    /// What the list had delivered before this page, if an earlier page of it
    /// began with the same item: then it may go in circles.
    pub(crate) async fn suspicion(&self, job: &Job, first: u64) -> Result<Option<HashSet<u64>>, Failure> {
        if !self.given_out {
            return Ok(None);
        }
        let (repository, place, mixed) = (job.mapping.id.clone(), self.place, self.mixed_harvests);
        let known = read_if_open(job, move |ledger| {
            // Each of several harvests may come to a page that another one had, and may ask for it again.
            let is_circling = match (ledger.earlier_page(&repository, place, first)?, mixed) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(_), Some(harvests)) => {
                    ledger.visits(&repository, place.list, first)? > harvests.saturating_add(1)
                }
            };
            is_circling.then(|| ledger.delivered_before(&repository, place)).transpose()
        });
        Ok(known.await?.map(|hashes| hashes.into_iter().collect()))
    }

    /// Whether a token leads back to this page or an earlier one of the list.
    pub(crate) async fn leads_back(&self, job: &Job, token: &str) -> Result<bool, Failure> {
        let (repository, verb) = (job.mapping.id.clone(), job.request.verb().name());
        let (token, place) = (token.to_owned(), self.place);
        read_if_open(job, move |ledger| ledger.leads_back(&repository, verb, &token, place)).await
    }

    /// Whether the token of the request may lead to another page the next time.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Whether a token of a later page can lead back: an earlier page of the list is known.
    pub(crate) fn may_lead_back(&self) -> bool {
        self.given_out || self.asked_by.is_some()
    }

    /// Writes down that the list goes in circles: no harvest continues it.
    pub(crate) fn note_circle(&self, job: &Job, now: SystemTime) {
        let note = self.as_note(job, &Delivered::default(), None, now);
        job.store.ledger.note(DeliveredPage { ending: ListStatus::Circle, ..note });
    }

    /// The list begun anew, where it cannot be gone on with: its first request, and
    /// what was delivered of it before this page. `None` where it is not safe.
    pub(crate) async fn anew(&self, job: &Job) -> Result<Option<(Request, Known)>, Failure> {
        if self.place.page == 0 {
            return Ok(Request::parse(self.first_query.as_bytes()).ok().map(|first| (first, HashMap::new())));
        }
        if !self.given_out || self.mixed_harvests.is_some() {
            return Ok(None);
        }
        let (repository, place) = (job.mapping.id.clone(), self.place);
        let known = read_if_open(job, move |ledger| {
            let facts = ledger.list(&repository, place.list)?.filter(|facts| facts.complete);
            let Some(facts) = facts else { return Ok(None) };
            Ok(Some((facts.first_query, ledger.delivered_before(&repository, place)?)))
        });
        let Some((query, hashes)) = known.await? else { return Ok(None) };
        Ok(Request::parse(query.as_bytes()).ok().map(|request| (request, counted(&hashes))))
    }

    /// Where an earlier walk through the list to this page was left, and the datestamp
    /// before which everything was delivered if the list is in their order.
    pub(crate) async fn shortcuts(&self, job: &Job) -> Result<(Option<Request>, Option<String>), Failure> {
        let (repository, place) = (job.mapping.id.clone(), self.place);
        let known = read(job, move |ledger| {
            Ok((ledger.walk(&repository, place)?, ledger.last_datestamp(&repository, place)?))
        });
        let (walk, datestamp) = known.await?;
        Ok((walk.and_then(|query| Request::parse(query.as_bytes()).ok()), datestamp))
    }

    /// Writes down how far the list has been walked through to this page.
    pub(crate) fn note_walk(&self, job: &Job, stands_at: Option<&Request>) {
        let (repository, place) = (job.mapping.id.clone(), self.place);
        job.store.ledger.note_walk(ReplayProgress {
            repository,
            place,
            query: stands_at.map(|at| at.query().to_owned()),
        });
    }
}

fn counted<'a>(hashes: impl IntoIterator<Item = &'a u64>) -> Known {
    let mut known = Known::new();
    for hash in hashes {
        *known.entry(*hash).or_insert(0) += 1;
    }
    known
}

/// The same where nothing is known once another process has the ledger: what
/// is in flight then goes on as if there had never been one.
async fn read_if_open<T: Default + Send + 'static>(
    job: &Job,
    reading: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    let reading = move |ledger: &Ledger| match reading(ledger) {
        Err(LedgerError::Closed) => Ok(T::default()),
        other => other,
    };
    read(job, reading).await
}

async fn read<T: Send + 'static>(
    job: &Job,
    reading: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    let ledger = job.store.ledger.clone();
    let read = tokio::task::spawn_blocking(move || reading(&ledger)).await;
    match read {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error @ LedgerError::Closed)) => Err(Failure::new(Reason::TakenOver, error.to_string())),
        Ok(Err(error)) => Err(Failure::new(Reason::Ledger, error.to_string())),
        Err(error) => Err(Failure::new(Reason::Ledger, format!("the ledger stopped: {error}"))),
    }
}
