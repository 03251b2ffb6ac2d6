//! Asks a source for the members of its sets.
//!
//! A list of a set needs the members of the set, and not all headers name them: OAI-PMH 1.x has no setSpec in headers,
//! and many 2.0 sources omit it. [`check_headers`] finds the sets that headers do not name, once a day, by the first
//! page of each set. If the mapping wants it, [`list_members`] lists each set as a whole instead, and the stored
//! records then name the sets that the source has listed them in. [`SetMembers`] keeps the results, and
//! [`SetFacts`](oaimend_rules::SetFacts) decides by them.
//!
//! Invariants: before the first record changes its sets, these sets are unknown in the store. A set that fails keeps
//! its older state.

use crate::harvest::collection_writer::{CollectionWriter, with_sets};
use crate::harvest::identifier_list::IdentifierList;
use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::settings::HarvestSettings;
use crate::harvest::sweep::SWEEP_INTERVAL_SECS;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_oai::set_spec::{is_within, parents};
use oaimend_repository::{Failure, Reason, RecordView};
use oaimend_store::{
    Catalog, Committed, CompleteHarvest, Identifier, ListFilter, ListOrder, ListQuery, ListedSet,
    MirrorError, NewRecord, Prefix, RecordStatus, RepositoryId, SetMembers, StoredRecord,
};
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Maximum number of members of one set, at 16 bytes each. The members of a larger set stay unknown.
const MEMBERS_MAX: usize = 4 << 20;
/// Maximum number of sets of which the first page is requested in one harvest. The others wait for the next one, or are
/// read from headers.
const SETS_CHECKED_MAX: usize = 1_000;
/// Maximum number of sets that are listed in one harvest. The members of others stay unknown.
const SETS_LISTED_MAX: usize = 10_000;
/// Maximum length of all setSpecs of a record to which a set is added, in bytes. The members of a set that would exceed
/// it stay unknown.
const SET_SPECS_BYTES_MAX: usize = 32 << 10;
/// Failures in a row after which the next harvest continues.
const FAILURES_MAX: u32 = 3;
/// Pages without records after which the members of a set count as unknown.
const EMPTY_PAGES_MAX: usize = 3;
/// Records after which no more are searched that have left a set. The next harvest removes the others.
const REMOVALS_MAX: usize = 10_000;
/// The next sequence of a collection without records.
const NOT_LISTED: u64 = 0;
/// Headers that are read from the store at a time.
const BATCH: usize = 1_000;

/// The sets that a source is asked for.
struct Sets {
    /// Those that it lists.
    listed: BTreeSet<String>,
    /// Those that stored records name, with their parents.
    named: BTreeSet<String>,
}

impl Sets {
    /// The sets of a repository, of those that the mapping mirrors.
    async fn read(harvest: &Harvester, settings: &HarvestSettings) -> Result<Self, MirrorError> {
        let is_mirrored = |set: &String| {
            settings.sets.is_empty() || settings.sets.iter().any(|mirrored| is_within(set, mirrored))
        };
        let listed =
            harvest.store.catalog(harvest.repository()).await?.sets.into_iter().map(|set| set.set_spec);
        let listed = listed.chain(settings.sets.iter().cloned());
        let named = harvest.store.sets_in_use(harvest.repository()).await?;
        Ok(Self {
            listed: listed.filter(is_mirrored).filter(|set| !set.is_empty()).collect(),
            named: named.into_iter().filter(is_mirrored).collect(),
        })
    }

    /// All of them with their parents: a record of `a:b` is in `a` too.
    fn with_parents(&self) -> BTreeSet<String> {
        let all = self.listed.iter().chain(&self.named);
        all.flat_map(|set| std::iter::once(set.as_str()).chain(parents(set))).map(str::to_owned).collect()
    }
}

/// Lists the members of all sets in one format, unless no record has changed since the last time, and a day has not
/// passed. The records of the store name these sets then.
///
/// # Errors
///
/// The source does not list a set. The sets that it has listed are stored, and the others keep their older state.
pub(crate) async fn list_members(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<Committed, Interruption> {
    let progress = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?;
    if progress.last_complete.is_none() {
        return Ok(Committed::default());
    }
    // Only stored records become members. A known gap that is stored later can be one too, so the members are known up
    // to the state before it; after a gap of the first harvest, before all records.
    let reached = progress.state().map(CompleteHarvest::from).unwrap_or_default();
    let sets = Sets::read(harvest, settings).await?;
    let wanted = sets.with_parents();
    let stored = stored_members(harvest, prefix).await?;
    let has_records_without_sets = stored.has_records_without_sets;
    let new = SetMembers { is_harvested: true, has_records_without_sets, ..SetMembers::default() };
    let mut members = if stored.is_harvested { stored } else { new };
    members.unrequested.clear();
    members.known.retain(|set, _| wanted.contains(set));
    members.unknown = wanted.iter().filter(|set| !members.known.contains_key(*set)).cloned().collect();
    save(harvest, &[prefix.to_owned()], &members).await?;
    let is_same = members.next_sequence == next_sequence(harvest, prefix).await?;
    let is_current = is_same && is_recent(harvest, members.requested_at_secs);
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    let (mut failure, mut failures) = (None, 0);
    for set in wanted.iter().take(SETS_LISTED_MAX) {
        if is_current && members.known.contains_key(set) {
            members.known.insert(set.clone(), reached);
            continue;
        }
        match list_set(settings, &mut writer, set).await {
            Ok(is_known) => {
                failures = 0;
                members.known.remove(set);
                members.known.extend(is_known.then(|| (set.clone(), reached)));
            }
            // The source may refuse a set that it does not list.
            Err(Interruption::Source(_)) if !sets.listed.contains(set) => drop(members.known.remove(set)),
            Err(Interruption::Source(of_set)) => {
                failure = Some(of_set);
                failures += 1;
                if failures >= FAILURES_MAX {
                    break;
                }
            }
            Err(store) => return Err(store),
        }
    }
    writer.flush().await?;
    members.unknown = wanted.into_iter().filter(|set| !members.known.contains_key(set)).collect();
    members.next_sequence = match failure {
        // A set that failed is listed again, although no record changes until then.
        Some(_) => NOT_LISTED,
        None => next_sequence(harvest, prefix).await?,
    };
    if !is_current && failure.is_none() {
        members.requested_at_secs = harvest.now_secs();
    }
    save(harvest, &[prefix.to_owned()], &members).await?;
    match failure {
        Some(failure) => Err(Interruption::Source(failure)),
        None => Ok(writer.counts),
    }
}

/// Forgets which members are known, before records are stored again without the sets that the source listed them in.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn forget_members(harvest: &Harvester, prefix: &str) -> Result<(), MirrorError> {
    let mut members = stored_members(harvest, prefix).await?;
    if !members.is_harvested {
        return Ok(());
    }
    members.unknown.extend(std::mem::take(&mut members.known).into_keys());
    save(harvest, &[prefix.to_owned()], &members).await
}

/// Lists one set, and changes the sets of the records that are in it or have left it. Returns whether all members name
/// it now.
async fn list_set(
    settings: &HarvestSettings,
    writer: &mut CollectionWriter<'_>,
    set: &str,
) -> Result<bool, Interruption> {
    let Some(listed) = add_members(settings, writer, set).await? else { return Ok(false) };
    let others = find_others(writer, set, &listed).await?;
    if others.is_empty() {
        return Ok(true);
    }
    // Pages of a list move while records change, so a member can be missing in a list by accident.
    let Some(listed_again) = add_members(settings, writer, set).await? else { return Ok(false) };
    for (identifier, set_specs) in others {
        if !listed_again.contains(&identifier) {
            change_sets(writer, &identifier, set_specs).await?;
        }
    }
    writer.flush().await?;
    Ok(true)
}

/// The identifiers in a list, by their hashes.
#[derive(Default)]
struct ListedMembers {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl ListedMembers {
    fn contains(&self, identifier: &str) -> bool {
        self.hashes.contains(&self.hasher.hash_one(identifier))
    }
}

/// Lists one set, and adds it to the sets of its members. Returns them, or `None` if there may be other ones.
async fn add_members(
    settings: &HarvestSettings,
    writer: &mut CollectionWriter<'_>,
    set: &str,
) -> Result<Option<ListedMembers>, Interruption> {
    let (harvest, prefix) = (writer.harvest, writer.prefix);
    let (mut listed, mut is_whole) = (ListedMembers::default(), true);
    let mut list = IdentifierList::new(harvest, settings, prefix, Some(set));
    while let Some(headers) = list.next_page().await? {
        if listed.hashes.len() + headers.len() > MEMBERS_MAX {
            let details = format!("{} lists more than {MEMBERS_MAX} members of the set {set}", harvest.id);
            return Err(Interruption::Source(Failure::new(Reason::TooLarge, details)));
        }
        let identifiers: Vec<String> = headers.into_iter().map(|header| header.identifier).collect();
        let hashes = identifiers.iter().map(|identifier| listed.hasher.hash_one(identifier.as_str()));
        listed.hashes.extend(hashes);
        let stored = harvest.store.headers(harvest.repository(), Prefix(prefix), &identifiers).await?;
        for record in stored.into_iter().flatten().filter(|record| !names(&record.set_specs, set)) {
            let mut set_specs = record.set_specs.to_vec();
            let bytes: usize = set_specs.iter().map(String::len).sum();
            if bytes + set.len() > SET_SPECS_BYTES_MAX {
                is_whole = false;
                continue;
            }
            set_specs.push(set.to_owned());
            change_sets(writer, &record.identifier, set_specs).await?;
        }
    }
    writer.flush().await?;
    // A member may be missing in a list whose end the source did not send.
    is_whole &= list.is_conclusive();
    Ok(is_whole.then_some(listed))
}

/// The stored live records that name a set, are not its members, and do not name it in their header, with their other
/// sets. A deleted record stays in its sets: their harvesters must learn of the deletion.
async fn find_others(
    writer: &CollectionWriter<'_>,
    set: &str,
    listed: &ListedMembers,
) -> Result<Vec<(String, Vec<String>)>, MirrorError> {
    let filter = ListFilter {
        repository: writer.harvest.id.clone(),
        prefix: writer.prefix.to_owned(),
        set: Some(set.to_owned()),
        by: ListOrder::Stamp,
        live_only: true,
        ..ListFilter::default()
    };
    let mut query =
        ListQuery { filter, after: None, count_max: BATCH, bytes_max: usize::MAX, with_bytes: false };
    let mut others = Vec::new();
    while others.len() < REMOVALS_MAX {
        let page = writer.harvest.store.list(query.clone()).await?;
        for record in page.records.into_iter().filter(|record| !listed.contains(&record.identifier)) {
            let StoredRecord { identifier, set_specs: all, .. } = record;
            let set_specs: Vec<String> = all.iter().filter(|set_spec| *set_spec != set).cloned().collect();
            if set_specs.len() < all.len() && !names(&header_set_specs(writer, &identifier).await?, set) {
                others.push((identifier, set_specs));
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    Ok(others)
}

/// The setSpecs in the header of a record, as the source sent it.
async fn header_set_specs(
    writer: &CollectionWriter<'_>,
    identifier: &str,
) -> Result<Vec<String>, MirrorError> {
    let bytes = match writer
        .harvest
        .store
        .record(writer.harvest.repository(), Prefix(writer.prefix), Identifier(identifier))
        .await
    {
        Ok(record) => record.map(|record| record.bytes).unwrap_or_default(),
        Err(MirrorError::Damaged) => Bytes::new(),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    let record = RecordView::read(&text);
    Ok(record.map(|record| record.set_specs().map(str::to_owned).collect()).unwrap_or_default())
}

/// Stores a record again with these sets, and with a new stamp.
async fn change_sets(
    writer: &mut CollectionWriter<'_>,
    identifier: &str,
    set_specs: Vec<String>,
) -> Result<(), Interruption> {
    let (store, id, prefix) = (&writer.harvest.store, &writer.harvest.id, writer.prefix);
    let record = match store.record(RepositoryId(id), Prefix(prefix), Identifier(identifier)).await {
        Ok(Some(record)) => record,
        // A damaged record is fetched again, and its sets are listed after that.
        Ok(None) | Err(MirrorError::Damaged) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let repairs = store.repairs(RepositoryId(id), Prefix(prefix), Identifier(identifier)).await?;
    let StoredRecord { identifier, datestamp_secs, status, bytes, .. } = record;
    let (set_list, content_hash) = (Vec::new(), 0);
    let record =
        NewRecord { identifier, datestamp_secs, set_specs: set_list, status, content_hash, bytes, repairs };
    writer.push(with_sets(record, set_specs));
    writer.commit_if_due().await
}

/// Finds the sets that the headers of a source do not name, by the first page of each set, once a day. A set without
/// members counts as known.
///
/// # Errors
///
/// The store fails, or the source at some sets. These keep the results of earlier checks.
pub(crate) async fn check_headers(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefixes: &[String],
) -> Result<(), Interruption> {
    let Some(prefix) = prefixes.first() else { return Ok(()) };
    let Some(reached) = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?.last_complete
    else {
        return Ok(());
    };
    let sets = Sets::read(harvest, settings).await?;
    let before = harvest.store.catalog(harvest.repository()).await?.set_members;
    let mut members = before.get(prefix).cloned().unwrap_or_default();
    if members.is_harvested {
        // The stored records name sets that nobody updates any more.
        let outdated = std::mem::take(&mut members.known).into_keys().chain(members.unknown);
        let has_records_without_sets = members.has_records_without_sets;
        members =
            SetMembers { outdated: outdated.collect(), has_records_without_sets, ..SetMembers::default() };
    }
    let is_recent = is_recent(harvest, members.requested_at_secs);
    // Headers that all name sets are believed. If the mapping mirrors several sets, the headers of 1.x name one of them.
    let checks_named = !is_recent && (members.has_records_without_sets || settings.sets.len() > 1);
    let is_due = |set: &&String| {
        let has_answer = members.known.contains_key(*set) || members.unknown.contains(*set);
        let is_answered = is_recent && has_answer;
        !is_answered && !members.outdated.contains(*set) && (checks_named || !sets.named.contains(*set))
    };
    let (named, unnamed): (Vec<_>, Vec<_>) =
        sets.listed.iter().filter(is_due).partition(|set| sets.named.contains(*set));
    let due: Vec<&String> = unnamed.into_iter().chain(named).take(SETS_CHECKED_MAX).collect();
    let FirstPages { answered, empty, unknown, failure } =
        ask_first_pages(harvest, settings, prefix, &sets.named, due).await?;
    // Headers are believed for the other sets that they name by now. A set that failed keeps its older result.
    let is_settled = |set: &String| answered.contains(set) || sets.named.contains(set);
    members.unrequested.retain(|set| !is_settled(set));
    members.known.retain(|set, _| !is_settled(set));
    members.known.extend(empty.into_iter().map(|set| (set, reached)));
    members.unknown.retain(|set| sets.listed.contains(set) && !answered.contains(set));
    members.unknown.extend(unknown);
    if !is_recent && failure.is_none() {
        members.requested_at_secs = harvest.now_secs();
    }
    let refused = members.unknown.len() + members.outdated.len();
    if refused > 0 && before.get(prefix).is_none_or(|before| before.unknown != members.unknown) {
        tracing::warn!(
            repo = harvest.id,
            sets = refused,
            "the headers do not name the members of some sets, whose lists are refused; set_membership = \"harvest\" lists them"
        );
    }
    save(harvest, prefixes, &members).await?;
    failure.map_or(Ok(()), |failure| Err(Interruption::Source(failure)))
}

/// The facts about sets on their first pages.
#[derive(Default)]
struct FirstPages {
    /// The sets whose first page was received.
    answered: BTreeSet<String>,
    /// Those without members that no header names.
    empty: BTreeSet<String>,
    /// Those with members that headers do not name, and the sets above them.
    unknown: BTreeSet<String>,
    /// The last failure.
    failure: Option<Failure>,
}

/// Requests the first page of each of these sets. `named`: the sets that headers name.
async fn ask_first_pages(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    named: &BTreeSet<String>,
    sets: Vec<&String>,
) -> Result<FirstPages, Interruption> {
    let (mut pages, mut failures) = (FirstPages::default(), 0);
    for set in sets {
        let page = match first_page(harvest, settings, prefix, set).await {
            Ok(page) => page,
            Err(Interruption::Source(of_set)) => {
                pages.failure = Some(of_set);
                failures += 1;
                if failures >= FAILURES_MAX {
                    break;
                }
                continue;
            }
            Err(store) => return Err(store),
        };
        failures = 0;
        pages.answered.insert(set.clone());
        let is_named = named.contains(set);
        match page {
            FirstPage::Empty if is_named => {}
            FirstPage::Empty => drop(pages.empty.insert(set.clone())),
            FirstPage::Records { are_all_in_sets: true } if is_named => {}
            FirstPage::Records { .. } => {
                let above = parents(set).map(str::to_owned).filter(|set| named.contains(set));
                pages.unknown.extend(above.chain([set.clone()]));
            }
        }
    }
    Ok(pages)
}

/// The facts about a set on the first page of its list.
enum FirstPage {
    /// The set has no members.
    Empty,
    /// It may have members.
    Records {
        /// Whether all of them that are stored name a set; this set, if the mapping mirrors several.
        are_all_in_sets: bool,
    },
}

async fn first_page(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    set: &str,
) -> Result<FirstPage, Interruption> {
    let mut list = IdentifierList::new(harvest, settings, prefix, Some(set));
    let mut headers = Vec::new();
    for _ in 0..EMPTY_PAGES_MAX {
        match list.next_page().await? {
            Some(page) if page.is_empty() => {}
            Some(page) => {
                headers = page;
                break;
            }
            None if list.is_conclusive() => return Ok(FirstPage::Empty),
            None => break,
        }
    }
    let has_members = !headers.is_empty();
    headers.retain(|header| header.status == RecordStatus::Live);
    let identifiers: Vec<String> = headers.iter().map(|header| header.identifier.clone()).collect();
    let stored = harvest.store.headers(harvest.repository(), Prefix(prefix), &identifiers).await?;
    let is_in_set = |(header, stored): (NewRecord, Option<StoredRecord>)| {
        // A record that has changed since the harvest is not compared.
        stored.is_none_or(|stored| {
            stored.datestamp_secs != header.datestamp_secs
                || match settings.sets.len() {
                    0 | 1 => !stored.set_specs.is_empty(),
                    // In lists of a set, headers of 1.x get this set alone. The last list of a record wins.
                    _ => names(&stored.set_specs, set),
                }
        })
    };
    let are_all_in_sets = has_members && headers.into_iter().zip(stored).all(is_in_set);
    Ok(FirstPage::Records { are_all_in_sets })
}

/// A catalog in which all sets are unrequested that no stored record names and that the source was not asked for.
///
/// # Errors
///
/// The store cannot be read.
pub(crate) async fn note_unrequested_sets(
    harvest: &Harvester,
    prefixes: &[String],
    mut catalog: Catalog,
) -> Result<Catalog, MirrorError> {
    let named: BTreeSet<String> =
        harvest.store.sets_in_use(harvest.repository()).await?.into_iter().collect();
    let unnamed: Vec<&ListedSet> = catalog.sets.iter().filter(|set| !named.contains(&set.set_spec)).collect();
    if unnamed.is_empty() {
        return Ok(catalog);
    }
    for prefix in prefixes {
        let members = catalog.set_members.entry(prefix.clone()).or_default();
        let new = unnamed.iter().map(|set| &set.set_spec);
        let new = new.filter(|set| !members.known.contains_key(*set) && !members.unknown.contains(*set));
        members.unrequested.extend(new.cloned());
    }
    Ok(catalog)
}

/// Notes that a header of this format names no set.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn note_records_without_sets(harvest: &Harvester, prefix: &str) -> Result<(), MirrorError> {
    let mut members = stored_members(harvest, prefix).await?;
    members.has_records_without_sets = true;
    save(harvest, &[prefix.to_owned()], &members).await
}

/// The known members of the sets in a format.
async fn stored_members(harvest: &Harvester, prefix: &str) -> Result<SetMembers, MirrorError> {
    Ok(harvest.store.catalog(harvest.repository()).await?.set_members.remove(prefix).unwrap_or_default())
}

/// Stores what is known of the members of the sets in these formats.
async fn save(harvest: &Harvester, prefixes: &[String], members: &SetMembers) -> Result<(), MirrorError> {
    let mut catalog = harvest.store.catalog(harvest.repository()).await?;
    let before = catalog.set_members.clone();
    catalog.set_members.extend(prefixes.iter().map(|prefix| (prefix.clone(), members.clone())));
    if catalog.set_members == before {
        Ok(())
    } else {
        harvest.store.save_catalog(harvest.repository(), catalog).await
    }
}

/// Whether one of these setSpecs is the set or one of its subsets.
fn names(set_specs: &[String], set: &str) -> bool {
    set_specs.iter().any(|set_spec| is_within(set_spec, set))
}

/// Whether a time is less than a day ago. A time in the future was before a step of our clock.
fn is_recent(harvest: &Harvester, at_secs: UnixSecs) -> bool {
    (0..SWEEP_INTERVAL_SECS).contains(&harvest.now_secs().since(at_secs))
}

async fn next_sequence(harvest: &Harvester, prefix: &str) -> Result<u64, MirrorError> {
    let version = harvest.store.version(harvest.repository(), Prefix(prefix)).await?;
    Ok(version.map_or(0, |version| version.next_sequence))
}
