//! A ledger in memory.

use super::Handle;
use async_trait::async_trait;
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::RepositoryId;
use oaimend_store::ledger::{
    DeliveredPage, HarvestStates, KeptStates, KnownPage, KnownToken, LedgerError, ListEviction, ListFacts,
    ListLedger, ListPage, PageItems, RecordedPart, ReplayProgress, ReplayShortcuts, TokenOrigin, TokenRecord,
    TokenTarget, recorded_place, window_counts,
};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// A repository, a verb and a token.
type TokenName = (String, &'static str, String);

#[derive(Debug, Default)]
pub(super) struct LedgerRows {
    /// By repository and number.
    lists: BTreeMap<(String, u64), ListRows>,
    tokens: BTreeMap<TokenName, TokenRecord>,
    states: BTreeMap<TokenName, HarvestStates>,
    /// By repository, in seconds since 1970.
    windows: BTreeMap<String, UnixSecs>,
    epoch: u64,
}

/// The rows of a list.
#[derive(Debug, Default)]
struct ListRows {
    facts: Option<ListFacts>,
    pages: BTreeMap<u32, PageItems>,
    dates: BTreeMap<u32, String>,
    replays: BTreeMap<u32, String>,
    /// By page and part: the hashes of its items and of their identifiers.
    parts: BTreeMap<(u32, u64), (Vec<u64>, Vec<u64>)>,
    first_items: BTreeMap<u64, u32>,
    visits: BTreeMap<u64, u32>,
}

fn name(repository: RepositoryId<'_>, verb: Verb, token: &str) -> TokenName {
    (repository.0.to_owned(), verb.name(), token.to_owned())
}

impl ListRows {
    /// The hashes of the items before a page, and of their identifiers as far as they are known.
    fn before(&self, page: u32) -> (Vec<u64>, Vec<u64>) {
        let pages = || self.pages.range(..page).map(|(_, items)| items);
        let hashes = pages().flat_map(|items| &items.hashes).copied().collect();
        (hashes, pages().filter_map(|items| items.names.as_ref()).flatten().copied().collect())
    }
}

impl LedgerRows {
    fn token(&self, repository: RepositoryId<'_>, verb: Verb, token: &str) -> Option<KnownToken> {
        let record = self.tokens.get(&name(repository, verb, token))?.clone();
        let list = self.list(repository, record.place.list).and_then(|rows| rows.facts.clone());
        Some(KnownToken { record, list })
    }

    fn list(&self, repository: RepositoryId<'_>, list: u64) -> Option<&ListRows> {
        self.lists.get(&(repository.0.to_owned(), list))
    }

    fn record(&mut self, page: &DeliveredPage, part: Option<u64>) {
        let repository = page.repository.as_str();
        let named = |token: &str| name(RepositoryId(repository), page.verb, token);
        let next_token =
            page.next_token.as_ref().and_then(|token| self.token(RepositoryId(repository), page.verb, token));
        let place = recorded_place(page, next_token.as_ref());
        let first_state = page.next_token.as_ref().and_then(|token| self.states.get(&named(token)));
        let request_token = page.request_token.as_ref().and_then(|token| self.tokens.get(&named(token)));
        let is_new = self.list(RepositoryId(repository), place.list).is_none();
        let rows = self.lists.entry((repository.to_owned(), place.list)).or_default();
        let first = page.hashes.first();
        let known = KnownPage {
            list: rows.facts.clone(),
            states: first_state.copied(),
            items: rows.pages.get(&place.page).cloned(),
            last_datestamp: rows.dates.get(&place.page).cloned(),
            first_item_page: first.and_then(|first| rows.first_items.get(first)).copied(),
            visits: first.and_then(|first| rows.visits.get(first)).copied().unwrap_or(0),
            request_token: request_token.cloned(),
            next_token,
        };
        let changes = known.after(page, place, part.is_some());
        rows.facts = Some(changes.list);
        rows.pages.extend(changes.items.map(|items| (place.page, items)));
        rows.dates.extend(changes.last_datestamp.map(|date| (place.page, date)));
        if changes.forgets_replays {
            rows.replays.clear();
        }
        if changes.forgets_visits {
            rows.visits.clear();
        }
        rows.first_items.extend(first.copied().zip(changes.first_item_page));
        rows.visits.extend(first.copied().zip(changes.visits));
        let part = part.map(|part| ((place.page, part), (page.hashes.clone(), page.names.clone())));
        rows.parts.extend(part);
        let tokens = [(&page.request_token, changes.request_token), (&page.next_token, changes.next_token)];
        for (token, record) in tokens {
            self.tokens.extend(token.as_deref().map(named).zip(record));
        }
        self.states.extend(page.next_token.as_deref().map(named).zip(changes.states));
        if page.within.is_some() {
            self.windows.insert(repository.to_owned(), page.now_secs);
        }
        if is_new {
            self.evict(RepositoryId(repository), place.list, page.now_secs);
        }
    }

    /// Evicts lists and states of a repository after a list has started.
    fn evict(&mut self, repository: RepositoryId<'_>, started: u64, now_secs: UnixSecs) {
        let of_repository = self.lists.iter().filter(|((of, _), _)| of == repository.0);
        let all: Vec<(UnixSecs, u64)> = of_repository
            .map(|((_, list), rows)| {
                (rows.facts.as_ref().map_or(UnixSecs(0), |facts| facts.touched_secs), *list)
            })
            .collect();
        let known = all.len() as u64 - 1;
        let touched = all.into_iter().filter(|(_, list)| *list != started).collect();
        for list in ListEviction::choose(touched, known, 1, now_secs).lists {
            self.lists.remove(&(repository.0.to_owned(), list));
            self.tokens.retain(|(of, ..), token| of != repository.0 || token.place.list != list);
        }
        let of_repository = self.states.iter().filter(|((of, ..), _)| of == repository.0);
        let kept = KeptStates::choose(of_repository.map(|(_, states)| *states), 0, now_secs);
        self.states.retain(|(of, ..), states| of != repository.0 || kept.contains(states));
    }
}

impl Handle {
    fn ledger<T>(&self, task: impl FnOnce(&mut LedgerRows) -> T) -> Result<T, LedgerError> {
        self.with(|shared| task(&mut shared.ledger)).ok_or(LedgerError::Closed)
    }

    /// Reads the rows of a list; those of an unknown list are empty.
    fn list_rows<T>(
        &self,
        repository: RepositoryId<'_>,
        list: u64,
        read: impl FnOnce(&ListRows) -> T,
    ) -> Result<T, LedgerError> {
        self.ledger(|ledger| match ledger.list(repository, list) {
            Some(rows) => read(rows),
            None => read(&ListRows::default()),
        })
    }
}

#[async_trait]
impl ListLedger for Handle {
    fn record(&self, page: DeliveredPage) {
        if self.ledger(|ledger| ledger.record(&page, None)).is_err() {
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).ledger.epoch += 1;
        }
    }

    async fn record_part(&self, page: DeliveredPage, part: u64) -> bool {
        self.ledger(|ledger| ledger.record(&page, Some(part))).is_ok()
    }

    fn record_replay(&self, progress: ReplayProgress) {
        let ReplayProgress { repository, place, query } = progress;
        // A closed ledger drops it.
        let _ = self.ledger(|ledger| {
            let replays = &mut ledger.lists.entry((repository, place.list)).or_default().replays;
            match query {
                Some(query) => drop(replays.insert(place.page, query)),
                None => drop(replays.remove(&place.page)),
            }
        });
    }

    async fn has_windows(&self, repository: RepositoryId<'_>, now_secs: UnixSecs) -> bool {
        let recorded = self.ledger(|ledger| ledger.windows.get(repository.0).copied());
        recorded.map_or(true, |recorded| recorded.is_some_and(|recorded| window_counts(recorded, now_secs)))
    }

    async fn epoch(&self) -> u64 {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).ledger.epoch
    }

    async fn token_origin(&self, repository: RepositoryId<'_>, verb: Verb, token: &str) -> TokenOrigin {
        let origin = |ledger: &mut LedgerRows| {
            let record = ledger.tokens.get(&name(repository, verb, token));
            record.map_or(TokenOrigin::Unknown, TokenRecord::token_origin)
        };
        self.ledger(origin).unwrap_or(TokenOrigin::Ambiguous)
    }

    async fn token_target(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError> {
        self.ledger(|ledger| ledger.token(repository, verb, token).map(TokenTarget::from))
    }

    async fn points_back(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.ledger(|ledger| {
            let record = ledger.tokens.get(&name(repository, verb, token));
            record.is_some_and(|record| record.points_back(place))
        })
    }

    async fn recorded_part(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        part: u64,
        with_earlier: bool,
    ) -> Result<RecordedPart, LedgerError> {
        self.list_rows(repository, place.list, |rows| {
            let list = rows.facts.clone();
            let is_mixed = list.as_ref().is_some_and(|list| list.mixed_harvests().is_some());
            let is_wanted = with_earlier && !is_mixed;
            let (earlier, earlier_names) =
                if is_wanted { rows.before(place.page) } else { Default::default() };
            let (hashes, names) = rows.parts.get(&(place.page, part)).cloned().unzip();
            RecordedPart { hashes, names: names.unwrap_or_default(), earlier, earlier_names, list }
        })
    }

    async fn suspected_loop(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        first_item: u64,
        mixed_harvests: Option<u32>,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        self.list_rows(repository, place.list, |rows| {
            let known = rows.first_items.get(&first_item).copied();
            let visits = rows.visits.get(&first_item).copied().unwrap_or(0);
            place.may_loop(known, visits, mixed_harvests).then(|| rows.before(place.page).0)
        })
    }

    async fn delivered_names(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        list_size: u64,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        self.list_rows(repository, place.list, |rows| {
            let pages = rows.pages.range(..place.page).filter(|(_, items)| items.names.is_some());
            let is_known = rows.facts.as_ref().is_some_and(|list| list.has_size(list_size));
            (is_known && pages.count() == place.page as usize).then(|| rows.before(place.page).1)
        })
    }

    async fn replay_start(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<(String, Vec<u64>)>, LedgerError> {
        self.list_rows(repository, place.list, |rows| {
            let list = rows.facts.clone().filter(|list| list.complete)?;
            Some((list.first_query, rows.before(place.page).0))
        })
    }

    async fn replay_shortcuts(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<ReplayShortcuts, LedgerError> {
        self.list_rows(repository, place.list, |rows| ReplayShortcuts {
            query: rows.replays.get(&place.page).cloned(),
            last_datestamp: rows.dates.range(..place.page).next_back().map(|(_, date)| date.clone()),
        })
    }

    fn close(&self) {
        self.end();
    }
}
