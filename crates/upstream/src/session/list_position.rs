//! Where a request is in its list, by the ledger, and what follows from that.

use crate::adapt::requester::may_fetch_per_record;
use crate::client::request_context::RequestContext;
use crate::page::resume::{Delivered, KnownItems};
use crate::session::token_origin::{
    ListSizes, origin_after_page, origin_of_list, origin_of_request, origin_of_unknown_token,
};
use oaimend_base::clock::unix_secs;
use oaimend_oai::{Argument, Request, UnixSecs, Verb, Window};
use oaimend_repository::Failure;
use oaimend_repository::lists::{ContinuationToken, hash_of_all};
use oaimend_store::{
    DeliveredPage, LedgerError, ListFacts, ListPage, ListStatus, RecordedPart, ReplayProgress, RepositoryId,
    TokenTarget,
};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

/// How a request begins.
pub(crate) enum ListStart {
    /// The source is sent this request; `delivered` are the items of the page that the harvester has.
    /// `known` are those of the list, if it was restarted.
    Ask {
        source_request: Request,
        delivered: Delivered,
        position: Option<Box<ListPosition>>,
        known: Option<KnownItems>,
    },
    /// The token is ours and cannot be used any more, for this reason.
    Refuse(&'static str),
}

/// A list, and the place of the request in it.
#[derive(Clone, Debug)]
pub(crate) struct ListPosition {
    pub(crate) place: ListPage,
    /// The query that began the list; empty if its beginning was not seen.
    first_query: String,
    /// The window of the harvester, if the source was asked for a wider one.
    pub(crate) within: Option<Window>,
    /// Whether the ledger knows the place from a token that was sent.
    given_out: bool,
    /// The token of the request, unless the ledger knows that it leads here.
    request_token: Option<String>,
    /// The hash of the pages before this one; `None` if the token of the request is ambiguous, or the list was
    /// restarted.
    origin: Option<u64>,
    /// The number of items before this page; `None` if unknown.
    items_before: Option<u64>,
    /// The state that the list shows, in seconds since 1970 by the clock of the source; `None` before the first
    /// response.
    pub(crate) state_secs: Option<UnixSecs>,
    /// How many harvests follow the list, if it is unknown which page each of them has reached.
    mixed_harvests: Option<u32>,
}

/// The end of a page that was delivered whole.
#[derive(Debug, Default)]
pub(crate) struct PageEnd {
    /// The token on the page.
    pub(crate) next: Option<String>,
    /// The datestamp of the last item.
    pub(crate) last_datestamp: Option<String>,
    pub(crate) sizes: ListSizes,
    /// The hashes of the identifiers of its items.
    pub(crate) names: Vec<u64>,
}

/// The part of a page that was not delivered.
pub(crate) struct PageRest<'a> {
    /// The request to the source for the page.
    pub(crate) source_request: &'a Request,
    /// The items that were delivered of it.
    pub(crate) delivered: &'a Delivered,
    /// The page is one of a restarted list.
    pub(crate) is_restarted: bool,
}

/// How long a token of ours may be used.
const OWN_TOKEN_LIFE: Duration = Duration::from_secs(3 * 24 * 3600);

const OF_ANOTHER_VERB: &str = "the token is one of another verb";

/// Finds the place of a request in its list.
pub(crate) async fn find_start(context: &RequestContext, now: SystemTime) -> Result<ListStart, Failure> {
    let request = &context.source_request;
    let ask = |position| ListStart::Ask {
        source_request: request.clone(),
        delivered: Delivered::default(),
        position,
        known: None,
    };
    if !request.verb().is_list() {
        return Ok(ask(None));
    }
    let Some(token) = request.argument(Argument::ResumptionToken) else {
        let place = ListPage { list: fastrand::u64(..), page: 0 };
        let first_query = request.query().to_owned();
        let origin = Some(origin_of_list(&context.store.token_key, request));
        let position =
            ListPosition { origin, items_before: Some(0), ..ListPosition::at(place, first_query, None) };
        return Ok(ask(Some(Box::new(position))));
    };
    if let Some(continuation) = ContinuationToken::read(token, &context.store.token_key) {
        return open_continuation(context, continuation, now).await;
    }
    let known =
        context.store.ledger.token_target(RepositoryId(&context.mapping.id), request.verb(), token).await;
    let known = default_if_closed(known)?;
    // A list that began elsewhere: it is known from here on.
    let elsewhere =
        |within| ListPosition::at(ListPage { list: fastrand::u64(..), page: 1 }, String::new(), within);
    let position = match known {
        Some(TokenTarget { place: Some((place, facts)), origin, items_before, is_of_round, within }) => {
            let (mixed_harvests, state_secs) = (facts.mixed_harvests(), facts.state_secs());
            let position = ListPosition::at(place, facts.first_query, within);
            let request_token = (!is_of_round).then(|| token.to_owned());
            ListPosition {
                given_out: true,
                request_token,
                origin,
                items_before,
                mixed_harvests,
                state_secs,
                ..position
            }
        }
        Some(TokenTarget { place: None, origin, within, .. }) => ListPosition { origin, ..elsewhere(within) },
        None => {
            let origin = Some(origin_of_unknown_token(&context.store.token_key, token));
            ListPosition { request_token: Some(token.to_owned()), origin, ..elsewhere(None) }
        }
    };
    Ok(ask(Some(Box::new(position))))
}

async fn open_continuation(
    context: &RequestContext,
    continuation: ContinuationToken,
    now: SystemTime,
) -> Result<ListStart, Failure> {
    if continuation.repository != context.mapping.id {
        return Ok(ListStart::Refuse("the token is one of another repository"));
    }
    if unix_secs(now) > continuation.expires_secs {
        return Ok(ListStart::Refuse("the token has expired; begin the list again"));
    }
    let Ok(source_request) = Request::parse(continuation.query.as_bytes()) else {
        return Ok(ListStart::Refuse("the token cannot be used any more; begin the list again"));
    };
    // The rest of a list of records may have to be fetched by its headers.
    let is_one_by_one =
        source_request.verb() == Verb::ListIdentifiers && context.request.verb() == Verb::ListRecords;
    if source_request.verb() != context.request.verb() && !is_one_by_one {
        return Ok(ListStart::Refuse(OF_ANOTHER_VERB));
    }
    if is_one_by_one && !may_fetch_per_record(context) {
        return Ok(ListStart::Refuse(
            "the rest of the list is not fetched record by record any more; begin the list again",
        ));
    }
    let place = continuation.place;
    let known = context
        .store
        .ledger
        .recorded_part(
            RepositoryId(&context.mapping.id),
            place,
            continuation.delivered,
            continuation.is_restarted,
        )
        .await;
    let RecordedPart { hashes, names, earlier: before, list: facts, .. } = known.map_err(Failure::from)?;
    let mixed_harvests = facts.as_ref().and_then(ListFacts::mixed_harvests);
    let state_secs = facts.as_ref().and_then(ListFacts::state_secs);
    let (first_query, within) = facts.map(|facts| (facts.first_query, facts.within)).unzip();
    // A token for the rest of a list of headers leads to the same request, and is invalid for records.
    let is_of_verb = |query: &String| {
        Request::parse(query.as_bytes()).is_ok_and(|first| first.verb() == context.request.verb())
    };
    if is_one_by_one && !first_query.as_ref().is_some_and(is_of_verb) {
        return Ok(ListStart::Refuse(OF_ANOTHER_VERB));
    }
    let is_whole = |hashes: &Vec<u64>| {
        hashes.len() as u64 == continuation.count && hash_of_all(hashes) == continuation.delivered
    };
    let Some(hashes) = hashes.filter(is_whole) else {
        return Ok(ListStart::Refuse("the delivered items are not known any more; begin the list again"));
    };
    let (first_query, within) = (first_query.unwrap_or_default(), within.flatten());
    let position = ListPosition::at(place, first_query, within);
    // The headers of a list are no pages of it, and the pages of a restarted list are others.
    let origin = if is_one_by_one || continuation.is_restarted {
        None
    } else {
        origin_of_request(&context.store, &context.mapping.id, &source_request).await
    };
    let position = ListPosition { given_out: true, origin, mixed_harvests, state_secs, ..position };
    let known = continuation.is_restarted.then(|| counted(before.iter().chain(&hashes)));
    let (delivered, position) = (Delivered::from_hashes(&hashes, &names), Some(Box::new(position)));
    Ok(ListStart::Ask { source_request, delivered, position, known })
}

impl ListPosition {
    fn at(place: ListPage, first_query: String, within: Option<Window>) -> Self {
        Self {
            place,
            first_query,
            within,
            given_out: false,
            request_token: None,
            origin: None,
            items_before: None,
            state_secs: None,
            mixed_harvests: None,
        }
    }

    /// Notes the delivered items of a whole page.
    pub(crate) fn note(
        &self,
        context: &RequestContext,
        delivered: &Delivered,
        end: PageEnd,
        now: SystemTime,
    ) {
        let PageEnd { next, last_datestamp, sizes, names } = end;
        if next.is_none() && !self.given_out {
            // Nothing refers to this list any more: the page has no token, and none of ours led to it.
            return;
        }
        let next_origin = if next.is_some() && delivered.is_complete() {
            self.origin
                .map(|origin| origin_after_page(&context.store.token_key, origin, sizes, delivered.hashes()))
        } else {
            None
        };
        let page = self.as_note(context, delivered, next, now);
        let next_items = self.items_before.map(|before| before + page.hashes.len() as u64);
        let page =
            DeliveredPage { last_datestamp, next_origin, next_items, list_size: sizes.0, names, ..page };
        context.store.ledger.record(page);
    }

    /// Whether the page may be another one for other harvests.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.origin.is_none()
    }

    /// Notes that the list was restarted: other pages lead to its next token.
    pub(crate) fn note_restart(&mut self) {
        self.origin = None;
    }

    /// A token of ours for the rest of the page; `None` if there can be none.
    pub(crate) async fn own_token(
        &self,
        context: &RequestContext,
        PageRest { source_request, delivered, is_restarted }: PageRest<'_>,
        now: SystemTime,
    ) -> Option<String> {
        let continuation = ContinuationToken {
            repository: context.mapping.id.clone(),
            query: source_request.query().to_owned(),
            place: self.place,
            count: delivered.hashes().len() as u64,
            delivered: hash_of_all(delivered.hashes()),
            expires_secs: unix_secs(now + OWN_TOKEN_LIFE),
            is_restarted,
        };
        let token = continuation.write(&context.store.token_key)?;
        let note =
            DeliveredPage { status: ListStatus::Continues, ..self.as_note(context, delivered, None, now) };
        context.store.ledger.record_part(note, continuation.delivered).await.then_some(token)
    }

    /// A token of ours for the next page, of which nothing was delivered yet.
    pub(crate) async fn own_token_for_next_page(
        &self,
        context: &RequestContext,
        source_request: &Request,
        delivered: &Delivered,
        now: SystemTime,
    ) -> Option<String> {
        let note =
            DeliveredPage { status: ListStatus::Continues, ..self.as_note(context, delivered, None, now) };
        context.store.ledger.record(note);
        let place = ListPage { page: self.place.page + 1, ..self.place };
        let rest = PageRest { source_request, delivered: &Delivered::default(), is_restarted: false };
        Self { place, ..self.clone() }.own_token(context, rest, now).await
    }

    /// The `from` of the first request of the list, if known.
    pub(crate) fn from(&self) -> Option<String> {
        self.first_request()?.argument(Argument::From).map(str::to_owned)
    }

    /// The first request of the list, if known.
    pub(crate) fn first_request(&self) -> Option<Request> {
        Request::parse(self.first_query.as_bytes()).ok()
    }

    /// The format of the records of the list, if known.
    pub(crate) fn metadata_prefix(&self) -> Option<String> {
        self.first_request()?.argument(Argument::MetadataPrefix).map(str::to_owned)
    }

    fn as_note(
        &self,
        context: &RequestContext,
        delivered: &Delivered,
        next: Option<String>,
        now: SystemTime,
    ) -> DeliveredPage {
        DeliveredPage {
            repository: context.mapping.id.clone(),
            verb: context.request.verb(),
            place: self.place,
            first_query: self.first_query.clone(),
            within: self.within.clone(),
            hashes: delivered.hashes().to_vec(),
            complete: delivered.is_complete(),
            names: delivered.names().to_vec(),
            list_size: None,
            request_token: self.request_token.clone(),
            request_origin: self.origin,
            status: if next.is_none() { ListStatus::Ended } else { ListStatus::Continues },
            next_token: next,
            next_origin: None,
            next_items: None,
            last_datestamp: None,
            state_secs: self.state_secs,
            now_secs: unix_secs(now),
        }
    }

    /// The items that the list delivered before this page, if an earlier page began with the same item:
    /// then the list may go in circles.
    pub(crate) async fn find_circle(
        &self,
        context: &RequestContext,
        first: u64,
    ) -> Result<Option<HashSet<u64>>, Failure> {
        if !self.given_out {
            return Ok(None);
        }
        let ledger = &context.store.ledger;
        let known = ledger
            .suspected_loop(RepositoryId(&context.mapping.id), self.place, first, self.mixed_harvests)
            .await;
        Ok(default_if_closed(known)?.map(|hashes| hashes.into_iter().collect()))
    }

    /// The number of different identifiers that the list has delivered with this page, of which these are `names`. `None`
    /// unless all of them are known, and each page announced `list_size` items.
    pub(crate) async fn count_delivered(
        &self,
        context: &RequestContext,
        names: &[u64],
        list_size: u64,
    ) -> Result<Option<u64>, Failure> {
        let before = match self.place.page {
            // The names are read at the end of the list only.
            _ if self.items_before.is_some_and(|before| before + (names.len() as u64) < list_size) => None,
            0 => Some(Vec::new()),
            _ if self.origin.is_none() || !self.given_out => None,
            _ => {
                let known = context
                    .store
                    .ledger
                    .delivered_names(RepositoryId(&context.mapping.id), self.place, list_size)
                    .await;
                default_if_closed(known)?
            }
        };
        Ok(before.map(|before| {
            let different: HashSet<u64> = before.iter().chain(names).copied().collect();
            different.len() as u64
        }))
    }

    /// Whether a token leads back to this page or an earlier one of the list.
    pub(crate) async fn leads_back(&self, context: &RequestContext, token: &str) -> Result<bool, Failure> {
        let verb = context.request.verb();
        default_if_closed(
            context
                .store
                .ledger
                .points_back(RepositoryId(&context.mapping.id), verb, token, self.place)
                .await,
        )
    }

    /// Notes that the list goes in circles: no harvest continues it.
    pub(crate) fn note_circle(&self, context: &RequestContext, now: SystemTime) {
        let note = self.as_note(context, &Delivered::default(), None, now);
        context.store.ledger.record(DeliveredPage { status: ListStatus::Loops, ..note });
    }

    /// The first request of the list, and the items that were delivered before this page, if the list can
    /// be restarted safely.
    pub(crate) async fn find_first(
        &self,
        context: &RequestContext,
    ) -> Result<Option<(Request, KnownItems)>, Failure> {
        if self.place.page == 0 {
            return Ok(Request::parse(self.first_query.as_bytes()).ok().map(|first| (first, HashMap::new())));
        }
        if !self.given_out || self.mixed_harvests.is_some() {
            return Ok(None);
        }
        let known = context.store.ledger.replay_start(RepositoryId(&context.mapping.id), self.place).await;
        let Some((query, hashes)) = default_if_closed(known)? else { return Ok(None) };
        Ok(Request::parse(query.as_bytes()).ok().map(|request| (request, counted(&hashes))))
    }

    /// The request at which an earlier walk to this page was left, and the datestamp before which
    /// everything was delivered if the list is in their order.
    pub(crate) async fn find_shortcuts(
        &self,
        context: &RequestContext,
    ) -> Result<(Option<Request>, Option<String>), Failure> {
        let shortcuts =
            context.store.ledger.replay_shortcuts(RepositoryId(&context.mapping.id), self.place).await;
        let shortcuts = shortcuts.map_err(Failure::from)?;
        let query = shortcuts.query.and_then(|query| Request::parse(query.as_bytes()).ok());
        Ok((query, shortcuts.last_datestamp))
    }

    /// Notes how far the list was followed to this page. `next` is the request that continues it.
    pub(crate) fn note_walk(&self, context: &RequestContext, next: Option<&Request>) {
        let (repository, place) = (context.mapping.id.clone(), self.place);
        context.store.ledger.record_replay(ReplayProgress {
            repository,
            place,
            query: next.map(|at| at.query().to_owned()),
        });
    }
}

fn counted<'a>(hashes: impl IntoIterator<Item = &'a u64>) -> KnownItems {
    let mut known = KnownItems::new();
    for hash in hashes {
        *known.entry(*hash).or_insert(0) += 1;
    }
    known
}

/// Treats a ledger that another process has taken over as empty. Requests in flight then continue without it.
fn default_if_closed<T: Default>(read: Result<T, LedgerError>) -> Result<T, Failure> {
    match read {
        Err(LedgerError::Closed) => Ok(T::default()),
        other => other.map_err(Failure::from),
    }
}
