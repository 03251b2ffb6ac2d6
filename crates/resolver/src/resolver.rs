//! Answers queries for identifiers.

use crate::content_identifier::ContentIdentifier;
use crate::follower::{Caught, CurrentCollection, Followed, Follower, failed};
use crate::record_identifiers::{NamedIn, ReadRecord, RecordNames, Role, key_in_role, oai_key};
use crate::resolved::{Resolved, ResolvedFormat, ResolvedItem};
use crate::sources::ResolvedSources;
use oaimend_repository::{Failure, Reason};
use oaimend_store::{
    ChosenRecords, FullTextStore, IDENTIFIER_BYTES_MAX, IdentifierKey, IdentifierPlace, IdentifierStore,
    MirrorError, MirrorStore, RecordStatus, StoredRecord,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Maximum number of records whose identifiers a query stores. If more are unknown, it fails.
const FOLLOWED_MAX: usize = 1_000;
/// Maximum number of records whose identifiers a step in the background stores.
const STEP_MAX: usize = 100_000;
/// Bytes of found records that are read at once. A single record may exceed it.
const FOUND_BYTES_MAX: usize = 4 << 20;
/// Maximum number of records that are read at once with the works that their full texts name: up to 64 KiB for each.
const GUESSED_RECORDS_MAX: usize = 64;
/// Queries whose records change while they are read, until one fails.
pub(crate) const ATTEMPTS_MAX: usize = 5;
/// How long a query waits while a step in the background stores identifiers.
const TURN_WAIT_MAX: Duration = Duration::from_secs(2);
/// Seconds after which a query is repeated if the table is being built.
const BUILDING_RETRY_SECS: u64 = 5;
/// Maximum length of records that are read on the thread of a query, in bytes.
const SHORT_BYTES_MAX: usize = 32 << 10;

/// Maximum number of records that are read for each key of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacesMax(pub usize);

impl PlacesMax {
    /// For the query of a person or of a link.
    pub const ONE: Self = Self(100);
    /// For each of many queries of a program.
    pub const OF_MANY: Self = Self(20);
}

/// Finds mirrored records by identifiers. Clones share everything.
#[derive(Clone, Debug)]
pub struct Resolver(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) follower: Follower,
    /// Held while the table follows the mirror.
    pub(crate) turn: tokio::sync::Mutex<Option<Followed>>,
    /// The last state in which it knew all commits.
    caught: RwLock<Option<Arc<Caught>>>,
    /// Whether a task continues what queries have left.
    is_continuing: AtomicBool,
}

/// The records of a collection that may have or name the requested identifier.
#[derive(Debug, Default)]
struct Candidates {
    sequences: BTreeSet<u64>,
    /// Whether the metadata of one may name it, so that their bytes are needed.
    may_be_named: bool,
}

/// A text that is looked up.
struct Lookup<'a> {
    text: &'a str,
    identifiers: Vec<ContentIdentifier>,
    places_max: PlacesMax,
    /// Whether hidden repositories are left out.
    is_for_people: bool,
}

impl Resolver {
    /// A resolver over a mirror. `table` contains what it knows, and `full_texts` what the full texts of items name.
    pub fn new(
        mirror: Arc<dyn MirrorStore>,
        table: Arc<dyn IdentifierStore>,
        full_texts: Arc<dyn FullTextStore>,
    ) -> Self {
        Self(Arc::new(Shared {
            follower: Follower { mirror, table, full_texts },
            turn: tokio::sync::Mutex::default(),
            caught: RwLock::default(),
            is_continuing: AtomicBool::new(false),
        }))
    }

    /// The records whose OAI identifier this is, in all repositories and formats, deleted ones included. The first one is of
    /// the repository with the highest priority.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, or it has many new records whose identifiers are not known yet. The query can be
    /// repeated.
    pub async fn locate(
        &self,
        sources: &Arc<ResolvedSources>,
        identifier: &str,
    ) -> Result<Vec<ResolvedItem>, Failure> {
        let lookup = Lookup {
            text: identifier,
            identifiers: Vec::new(),
            places_max: PlacesMax(usize::MAX),
            is_for_people: false,
        };
        Ok(self.find(sources, &lookup).await?.identified)
    }

    /// The result for an identifier in any spelling: the records whose OAI identifier it is, and those that name it in
    /// their metadata, in the repositories that are not hidden.
    ///
    /// # Errors
    ///
    /// As for [`Resolver::locate`].
    pub async fn resolve(
        &self,
        sources: &Arc<ResolvedSources>,
        text: &str,
        places_max: PlacesMax,
    ) -> Result<Resolved, Failure> {
        let identifiers = ContentIdentifier::read_request(text);
        self.find(sources, &Lookup { text, identifiers, places_max, is_for_people: true }).await
    }

    /// The repositories that may have further records, in order, without the hidden ones.
    ///
    /// # Errors
    ///
    /// As for [`Resolver::locate`].
    pub async fn incomplete(&self, sources: &Arc<ResolvedSources>) -> Result<Vec<String>, Failure> {
        Ok(self.caught_up(sources).await?.incomplete(true))
    }

    /// Lets the table follow the mirror, if it was used before. Returns whether there is more to do.
    ///
    /// # Errors
    ///
    /// As for [`Resolver::locate`].
    pub async fn follow_if_used(&self, sources: &Arc<ResolvedSources>) -> Result<bool, Failure> {
        let mut turn = self.0.turn.lock().await;
        let is_used =
            turn.is_some() || !self.0.follower.table.collections().await.map_err(failed)?.is_empty();
        if is_used { self.0.step(sources, &mut turn).await } else { Ok(false) }
    }

    async fn find(&self, sources: &Arc<ResolvedSources>, lookup: &Lookup<'_>) -> Result<Resolved, Failure> {
        if lookup.text.len() > IDENTIFIER_BYTES_MAX {
            return Ok(Resolved::default());
        }
        for _ in 0..ATTEMPTS_MAX {
            let caught = self.caught_up(sources).await?;
            let found = Found { shared: &self.0, caught: &caught, lookup };
            if let Some(resolved) = found.resolve().await? {
                return Ok(resolved);
            }
        }
        Err(changing())
    }

    /// The state in which the table knows all commits before the call.
    pub(crate) async fn caught_up(&self, sources: &Arc<ResolvedSources>) -> Result<Arc<Caught>, Failure> {
        let known = self.0.caught.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && Arc::ptr_eq(&known.sources, sources)
            && known.changes == self.0.follower.mirror.changes().await?
        {
            return Ok(known);
        }
        let Ok(mut turn) = tokio::time::timeout(TURN_WAIT_MAX, self.0.turn.lock()).await else {
            return Err(being_read());
        };
        let is_complete = self.0.follower.follow(sources, &mut turn, FOLLOWED_MAX).await?;
        match turn.as_ref().and_then(Followed::caught) {
            Some(caught) if is_complete => {
                let caught = Arc::new(caught);
                *self.0.caught.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&caught));
                Ok(caught)
            }
            _ => {
                drop(turn);
                self.continue_in_background(Arc::clone(sources));
                Err(being_read())
            }
        }
    }

    /// Continues until the table knows all commits. One task works at a time.
    fn continue_in_background(&self, sources: Arc<ResolvedSources>) {
        if self.0.is_continuing.swap(true, Ordering::SeqCst) {
            return;
        }
        let continuing = Continuing(Arc::clone(&self.0));
        tokio::spawn(async move {
            loop {
                // The lock is free between two steps, so that the table can be closed.
                let mut turn = continuing.0.turn.lock().await;
                match continuing.0.step(&sources, &mut turn).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) => {
                        tracing::warn!(%failure.details, "the identifiers do not follow the mirror");
                        break;
                    }
                }
            }
        });
    }
}

/// The failure of a query whose records change with each attempt.
pub(crate) fn changing() -> Failure {
    let details = "the records change while they are read; send the request again";
    Failure { retry_after_secs: 1, ..Failure::new(Reason::MirrorIncomplete, details) }
}

/// The failure of a query while the table does not know many commits.
fn being_read() -> Failure {
    let details = "the identifiers of new records are being read from the mirror; wait";
    let failure = Failure::new(Reason::MirrorIncomplete, details);
    Failure { retry_after_secs: BUILDING_RETRY_SECS, ..failure }
}

impl Shared {
    /// Reads the first of these records of a collection, about [`FOUND_BYTES_MAX`] of them, and removes their sequences.
    /// `None` if one has changed.
    pub(crate) async fn read_some(
        &self,
        caught: &Caught,
        collection: &CurrentCollection,
        sequences: &mut Vec<u64>,
        with_bytes: bool,
    ) -> Result<Option<Vec<ReadRecord>>, Failure> {
        let has_guesses = caught.sources.has_full_texts(&collection.repository);
        let count = if has_guesses { GUESSED_RECORDS_MAX.min(sequences.len()) } else { sequences.len() };
        let request = ChosenRecords {
            repository: collection.repository.clone(),
            prefix: collection.prefix.clone(),
            sequences: sequences[..count].to_vec(),
            bytes_max: FOUND_BYTES_MAX,
            with_bytes,
        };
        let records = self.follower.mirror.records_at(request).await?;
        if records.iter().any(Option::is_none) && self.follower.mirror.changes().await? != caught.changes {
            return Ok(None);
        }
        match records.len() {
            0 => sequences.clear(),
            read => drop(sequences.drain(..read)),
        }
        // A former version that the table still has is no record of the mirror.
        let records = records.into_iter().flatten().collect();
        Ok(Some(self.read_records(caught, &collection.repository, records).await?))
    }

    /// Stores the identifiers of some records, or removes some. Returns whether there is more to do.
    async fn step(
        &self,
        sources: &Arc<ResolvedSources>,
        turn: &mut Option<Followed>,
    ) -> Result<bool, Failure> {
        if !self.follower.follow(sources, turn, STEP_MAX).await? {
            return Ok(true);
        }
        match turn {
            Some(followed) => self.follower.remove_former(followed).await,
            None => Ok(false),
        }
    }
}

/// A task that continues. Its end, also by a panic, lets the next one begin.
struct Continuing(Arc<Shared>);

impl Drop for Continuing {
    fn drop(&mut self) {
        self.0.is_continuing.store(false, Ordering::SeqCst);
    }
}

/// A query in a state in which the table knows all commits.
struct Found<'a> {
    shared: &'a Shared,
    caught: &'a Caught,
    lookup: &'a Lookup<'a>,
}

/// A record that has or names the identifier.
struct FoundRecord<'a> {
    collection: &'a CurrentCollection,
    record: StoredRecord,
    /// `None` if it has the identifier itself.
    named_in: Option<NamedIn>,
}

impl Found<'_> {
    /// The result; `None` if a record has changed meanwhile.
    async fn resolve(&self) -> Result<Option<Resolved>, Failure> {
        let (candidates, has_more) = self.candidates().await?;
        let mut found = Vec::new();
        for (number, chosen) in &candidates {
            let Some(collection) = self.caught.collections.get(number) else { continue };
            if !self.read(collection, chosen, &mut found).await? {
                return Ok(None);
            }
        }
        let (identified, named_by) = items(found, &self.caught.sources);
        let identifiers = self.lookup.identifiers.clone();
        let incomplete = self.caught.incomplete(self.lookup.is_for_people);
        Ok(Some(Resolved { identifiers, identified, named_by, has_more, incomplete }))
    }

    /// The records that may have the identifier, by collection, and whether there may be more.
    async fn candidates(&self) -> Result<(BTreeMap<u64, Candidates>, bool), Failure> {
        let mut keys: Vec<IdentifierKey> = vec![oai_key(self.lookup.text)];
        for role in [Role::Own, Role::Cited, Role::Citing] {
            keys.extend(self.lookup.identifiers.iter().map(|identifier| key_in_role(identifier, role)));
        }
        let places_max = self.lookup.places_max.0;
        // Places that are not shown must not use up the limit.
        let of_caught = if self.lookup.is_for_people { &self.caught.shown } else { &self.caught.served };
        let table = &self.shared.follower.table;
        let found = table.find(keys, Arc::clone(of_caught), None, places_max.saturating_add(1)).await;
        let (mut candidates, mut has_more) = (BTreeMap::<u64, Candidates>::new(), false);
        for (at, places) in found.map_err(failed)?.into_iter().enumerate() {
            has_more |= places.len() > places_max;
            for IdentifierPlace { collection, sequence } in places.into_iter().take(places_max) {
                let candidates = candidates.entry(collection).or_default();
                candidates.sequences.insert(sequence);
                candidates.may_be_named |= at > 0;
            }
        }
        Ok((candidates, has_more))
    }

    /// Reads the records of a collection, and keeps those that have or name the identifier. `false` if one has changed.
    async fn read<'c>(
        &self,
        collection: &'c CurrentCollection,
        chosen: &Candidates,
        found: &mut Vec<FoundRecord<'c>>,
    ) -> Result<bool, Failure> {
        let mut sequences: Vec<u64> = chosen.sequences.iter().copied().collect();
        while !sequences.is_empty() {
            let with_bytes = chosen.may_be_named;
            let read = self.shared.read_some(self.caught, collection, &mut sequences, with_bytes).await?;
            let Some(records) = read else { return Ok(false) };
            let judged = judge(records, self.lookup.text, &self.lookup.identifiers).await?;
            let kept =
                judged.into_iter().map(|(record, named_in)| FoundRecord { collection, record, named_in });
            found.extend(kept);
        }
        Ok(true)
    }
}

/// The records that have or name an identifier, each with the field that names it.
async fn judge(
    records: Vec<ReadRecord>,
    text: &str,
    identifiers: &[ContentIdentifier],
) -> Result<Vec<(StoredRecord, Option<NamedIn>)>, Failure> {
    let bytes: usize = records.iter().map(|read| read.record.bytes.len()).sum();
    let (text, identifiers) = (text.to_owned(), identifiers.to_vec());
    let judge = move || {
        let judged = records.into_iter().filter_map(|read| {
            if read.record.identifier == text {
                return Some((read.record, None));
            }
            let named = RecordNames::of(&read).identifiers.into_iter();
            let field = named.filter(|(named, _)| identifiers.contains(named)).map(|(_, field)| field).min();
            field.map(|field| (read.record, Some(field)))
        });
        judged.collect()
    };
    if bytes <= SHORT_BYTES_MAX {
        return Ok(judge());
    }
    let judged = tokio::task::spawn_blocking(judge).await;
    judged.map_err(|error| MirrorError::Stopped(error.to_string()).into())
}

/// The items of found records in the order of results: those that have the identifier, and those that name it.
fn items(found: Vec<FoundRecord<'_>>, sources: &ResolvedSources) -> (Vec<ResolvedItem>, Vec<ResolvedItem>) {
    let mut items: BTreeMap<(String, String), ResolvedItem> = BTreeMap::new();
    for FoundRecord { collection, record, named_in } in found {
        let StoredRecord { identifier, datestamp_secs, stamp_secs, status, .. } = record;
        let new = || ResolvedItem {
            repository: collection.repository.clone(),
            identifier: identifier.clone(),
            named_in,
            formats: Vec::new(),
        };
        let item = items.entry((collection.repository.clone(), identifier.clone())).or_insert_with(new);
        item.named_in = item.named_in.min(named_in);
        let is_deleted = status == RecordStatus::Deleted;
        let prefix = collection.prefix.clone();
        item.formats.push(ResolvedFormat { prefix, datestamp_secs, stamp_secs, is_deleted });
    }
    let places: BTreeMap<&str, usize> =
        sources.iter().enumerate().map(|(place, source)| (source.id.as_str(), place)).collect();
    let mut items: Vec<ResolvedItem> = items.into_values().collect();
    for item in &mut items {
        item.formats.sort_by(|one, other| one.prefix.cmp(&other.prefix));
    }
    let place = |item: &ResolvedItem| places.get(item.repository.as_str()).copied().unwrap_or(usize::MAX);
    items.sort_by_key(|item| (item.named_in, !item.is_live(), place(item)));
    items.into_iter().partition(|item| item.named_in.is_none())
}
