//! Finds the links of an item.
//!
//! The table of identifiers tells what a record is from what it cites, so each direction is one search. A work that many
//! records cite is listed in parts: the table continues after the last place of a part.

use crate::content_identifier::{ContentIdentifier, IdentifierKind};
use crate::follower::{Caught, CurrentCollection, failed};
use crate::links::{Citation, Duplicate, ItemLinks, LinkCursor, LinkedItem, LinksRequest, SameBy};
use crate::record_identifiers::{NamedIn, ReadRecord, RecordNames, Role, key_in_role, oai_key, work_key};
use crate::resolver::{ATTEMPTS_MAX, Resolver, Shared, changing};
use crate::sources::ResolvedSources;
use oaimend_repository::Failure;
use oaimend_store::{
    IDENTIFIER_BYTES_MAX, Identifier, IdentifierKey, IdentifierPlace, MirrorError, Prefix, RepositoryId,
    StoredRecord,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of records that are read for each identifier of a work, which several repositories may have.
const RECORDS_OF_WORK_MAX: usize = 20;
/// Maximum number of records that are read for the links of an item.
const RECORDS_MAX: usize = 2_000;

/// The kinds of identifiers that only one work has. The chapters of a book share its ISBN, and a URL may be a home page.
const OF_ONE_WORK: [IdentifierKind; 5] = [
    IdentifierKind::Doi,
    IdentifierKind::Handle,
    IdentifierKind::Urn,
    IdentifierKind::Arxiv,
    IdentifierKind::Pmid,
];

impl Resolver {
    /// The links of an item, with records of the repositories that are not hidden; `None` if the mirror has no record of it
    /// that is not deleted.
    ///
    /// # Errors
    ///
    /// As for [`Resolver::locate`].
    pub async fn links(
        &self,
        sources: &Arc<ResolvedSources>,
        request: &LinksRequest<'_>,
    ) -> Result<Option<ItemLinks>, Failure> {
        if request.identifier.len() > IDENTIFIER_BYTES_MAX {
            return Ok(None);
        }
        for _ in 0..ATTEMPTS_MAX {
            let caught = self.caught_up(sources).await?;
            match (Query { shared: &self.0, caught: &caught, request }).answer().await? {
                Answer::Links(links) => return Ok(Some(*links)),
                Answer::NoItem => return Ok(None),
                Answer::Changed => {}
            }
        }
        Err(changing())
    }
}

/// A query in a state in which the table knows all commits.
struct Query<'a> {
    shared: &'a Shared,
    caught: &'a Caught,
    request: &'a LinksRequest<'a>,
}

enum Answer {
    Links(Box<ItemLinks>),
    NoItem,
    /// A record has changed while it was read.
    Changed,
}

/// What a record must name to be a link.
#[derive(Clone, Debug, Default)]
struct Wanted {
    identifiers: HashSet<ContentIdentifier>,
    /// The titles, years and first creators.
    works: BTreeSet<String>,
}

/// A record that names something wanted. The rest of its names is dropped, so that long lists need no memory.
#[derive(Debug)]
struct LinkedRecord {
    item: LinkedItem,
    named: Vec<(ContentIdentifier, NamedIn)>,
    is_same_work: bool,
}

/// The records at the places of a query.
type LinkedRecords = BTreeMap<IdentifierPlace, LinkedRecord>;

/// The places that the table has for a query.
struct Places {
    all: BTreeSet<IdentifierPlace>,
    /// Those of the records that may cite the item.
    citing: Vec<IdentifierPlace>,
    next: Option<LinkCursor>,
    has_more: bool,
}

impl LinkedRecord {
    /// What it names in a role.
    fn in_role(&self, role: Role) -> impl Iterator<Item = &(ContentIdentifier, NamedIn)> {
        self.named.iter().filter(move |(_, field)| field.role() == role)
    }

    /// The most important field that names one of these identifiers in a role.
    fn field(&self, identifiers: &HashSet<ContentIdentifier>, role: Role) -> Option<NamedIn> {
        let fields = self.in_role(role).filter(|(named, _)| identifiers.contains(named));
        fields.map(|(_, field)| *field).min()
    }
}

impl Query<'_> {
    async fn answer(&self) -> Result<Answer, Failure> {
        let Some(records) = self.records_of_item().await? else { return Ok(Answer::Changed) };
        if records.is_empty() {
            return Ok(Answer::NoItem);
        }
        let of_item = merged(&records);
        let identifiers: Vec<ContentIdentifier> =
            of_item.in_role(Role::Own).map(|(identifier, _)| identifier.clone()).collect();
        let named = self.request.names.map(|names| names.with_full_text_of(&of_item));
        let named = named.as_ref().unwrap_or(&of_item);
        let is_first = self.request.after.is_none();
        let named_max = if is_first { self.request.named_max } else { 0 };
        let limited = |role| named.in_role(role).take(named_max);
        let (cited, citing): (Vec<_>, Vec<_>) =
            (limited(Role::Cited).collect(), limited(Role::Citing).collect());
        let works: BTreeSet<String> = records.iter().filter_map(|names| names.work.clone()).collect();
        let count_max = self.request.count_max;
        let others: Vec<&ContentIdentifier> = [&cited, &citing]
            .into_iter()
            .flat_map(|named| named.iter().take(count_max))
            .map(|(identifier, _)| identifier)
            .collect();
        let places = self.places(&identifiers, &others, &works).await?;
        let wanted = Wanted { identifiers: identifiers.iter().chain(others).cloned().collect(), works };
        let Some(linked) = self.linked(&places.all, wanted).await? else { return Ok(Answer::Changed) };
        let is_beyond = |role| named.in_role(role).nth(count_max).is_some();
        let mut links = ItemLinks {
            next: places.next,
            has_more: places.has_more
                || is_first
                    && (is_beyond(Role::Cited)
                        || is_beyond(Role::Citing)
                        || named.is_cut
                        || records.iter().any(|names| names.is_cut)),
            incomplete: self.caught.incomplete(true),
            ..ItemLinks::default()
        };
        let mut of_work: HashMap<&ContentIdentifier, Vec<&LinkedRecord>> = HashMap::new();
        for record in linked.values() {
            record.in_role(Role::Own).for_each(|(named, _)| of_work.entry(named).or_default().push(record));
        }
        let records_of = |(identifier, field): &(ContentIdentifier, NamedIn)| Citation {
            field: *field,
            identifier: Some(identifier.clone()),
            records: self.in_order(items(of_work.get(identifier).into_iter().flatten().copied())),
        };
        links.cites.extend(cited.into_iter().map(records_of));
        links.cited_by.extend(citing.into_iter().map(records_of));
        let identifying: HashSet<ContentIdentifier> = identifiers.iter().cloned().collect();
        if is_first {
            let stating = linked.values().filter(|record| record.field(&identifying, Role::Citing).is_some());
            links.cites.extend(items(stating).into_iter().map(|item| Citation {
                field: NamedIn::ReferencedBy,
                identifier: None,
                records: vec![item],
            }));
            links.same_as = self.duplicates(&identifying, &linked);
        }
        links.cited_by.extend(self.citing(&identifying, &places.citing, &linked).await?);
        links.identifiers = identifiers;
        Ok(Answer::Links(Box::new(links)))
    }

    /// What the records of the item name that are not deleted, in all its formats. `None` if one has changed.
    async fn records_of_item(&self) -> Result<Option<Vec<RecordNames>>, Failure> {
        let table = &self.shared.follower.table;
        let is_of_repository = |number: &&u64| {
            self.collection(**number).is_some_and(|of| of.repository == self.request.repository)
        };
        let collections: BTreeSet<u64> =
            self.caught.served.iter().filter(is_of_repository).copied().collect();
        let keys = vec![oai_key(self.request.identifier)];
        let formats_max = collections.len();
        let found = table.find(keys, Arc::new(collections), None, formats_max).await.map_err(failed)?;
        let mut names = Vec::new();
        for place in found.into_iter().flatten() {
            let Some(collection) = self.collection(place.collection) else { continue };
            let read =
                self.shared.read_some(self.caught, collection, &mut vec![place.sequence], true).await?;
            let Some(records) = read else { return Ok(None) };
            let identifier = self.request.identifier.to_owned();
            names.extend(
                on_thread(records, move |read| {
                    let record = &read.record;
                    let is_of_item =
                        record.identifier == identifier && !record.bytes.is_empty() && is_live(record);
                    is_of_item.then(|| RecordNames::of(read))
                })
                .await?,
            );
        }
        Ok(Some(names))
    }

    fn collection(&self, number: u64) -> Option<&CurrentCollection> {
        self.caught.collections.get(&number)
    }

    /// The places of all records that may be links.
    async fn places(
        &self,
        identifying: &[ContentIdentifier],
        others: &[&ContentIdentifier],
        works: &BTreeSet<String>,
    ) -> Result<Places, Failure> {
        let count_max = self.request.count_max;
        let citing_keys = identifying.iter().map(|identifier| key_in_role(identifier, Role::Cited)).collect();
        let citing = self.find(citing_keys, self.request.after, count_max.saturating_add(1)).await?;
        // Each list is in order and has at least the next places of its key, so the first ones of all lists are the next ones.
        let mut citing: Vec<IdentifierPlace> =
            citing.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect();
        let is_cut = citing.len() > count_max;
        citing.truncate(count_max);
        let next = if is_cut { citing.last().copied().map(LinkCursor) } else { None };
        let mut places = Places { all: citing.iter().copied().collect(), citing, next, has_more: false };
        if self.request.after.is_none() {
            let mut keys: Vec<IdentifierKey> = identifying
                .iter()
                .chain(others.iter().copied())
                .map(|identifier| key_in_role(identifier, Role::Own))
                .collect();
            keys.extend(identifying.iter().map(|identifier| key_in_role(identifier, Role::Citing)));
            keys.extend(works.iter().map(|work| work_key(work)));
            for mut found in self.find(keys, None, RECORDS_OF_WORK_MAX + 1).await? {
                let room = RECORDS_OF_WORK_MAX.min(RECORDS_MAX.saturating_sub(places.all.len()));
                places.has_more |= found.len() > room;
                found.truncate(room);
                places.all.extend(found);
            }
        }
        Ok(places)
    }

    async fn find(
        &self,
        keys: Vec<IdentifierKey>,
        after: Option<LinkCursor>,
        count_max: usize,
    ) -> Result<Vec<Vec<IdentifierPlace>>, Failure> {
        let (table, shown) = (&self.shared.follower.table, Arc::clone(&self.caught.shown));
        table.find(keys, shown, after.map(|LinkCursor(place)| place), count_max).await.map_err(failed)
    }

    /// The records at these places that name something wanted, without those of the item. `None` if one has changed.
    async fn linked(
        &self,
        places: &BTreeSet<IdentifierPlace>,
        wanted: Wanted,
    ) -> Result<Option<LinkedRecords>, Failure> {
        let (mut linked, wanted) = (LinkedRecords::new(), Arc::new(wanted));
        let mut by_collection: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for place in places {
            by_collection.entry(place.collection).or_default().push(place.sequence);
        }
        for (number, mut sequences) in by_collection {
            let Some(collection) = self.collection(number) else { continue };
            while !sequences.is_empty() {
                let read = self.shared.read_some(self.caught, collection, &mut sequences, true).await?;
                let Some(records) = read else { return Ok(None) };
                let (repository, wanted) = (collection.repository.clone(), Arc::clone(&wanted));
                let found = on_thread(records, move |read| {
                    let record_of = linked_record(read, &repository, &wanted)?;
                    Some((IdentifierPlace { collection: number, sequence: read.record.sequence }, record_of))
                });
                let is_other = |(_, record): &(_, LinkedRecord)| !self.is_item(&record.item);
                linked.extend(found.await?.into_iter().filter(is_other));
            }
        }
        Ok(Some(linked))
    }

    /// Items in the order of results: those of the repository with the highest priority first.
    fn in_order(&self, mut items: Vec<LinkedItem>) -> Vec<LinkedItem> {
        let place =
            |item: &LinkedItem| self.caught.sources.iter().position(|source| source.id == item.repository);
        items.sort_by_cached_key(|item| (place(item), item.identifier.clone()));
        items
    }

    fn is_item(&self, item: &LinkedItem) -> bool {
        (item.repository.as_str(), item.identifier.as_str())
            == (self.request.repository, self.request.identifier)
    }

    /// The records of other repositories that describe the same work, each with the best reason.
    fn duplicates(&self, identifying: &HashSet<ContentIdentifier>, linked: &LinkedRecords) -> Vec<Duplicate> {
        let mut duplicates: BTreeMap<LinkedItem, SameBy> = BTreeMap::new();
        for record in linked.values().filter(|record| record.item.repository != self.request.repository) {
            let is_shared = |identifier: &ContentIdentifier| {
                OF_ONE_WORK.contains(&identifier.kind) && identifying.contains(identifier)
            };
            let shared = record.in_role(Role::Own).find(|(identifier, _)| is_shared(identifier));
            let same_by = match shared {
                Some((identifier, _)) => SameBy::Identifier(identifier.clone()),
                None if record.is_same_work => SameBy::Description,
                None => continue,
            };
            let known = duplicates.entry(record.item.clone()).or_insert_with(|| same_by.clone());
            if *known == SameBy::Description {
                *known = same_by;
            }
        }
        duplicates.into_iter().map(|(item, same_by)| Duplicate { item, same_by }).collect()
    }

    /// The records at these places that cite the item. An item with records in several formats is in the list once, at the
    /// record in the first of its collections.
    async fn citing(
        &self,
        identifying: &HashSet<ContentIdentifier>,
        places: &[IdentifierPlace],
        linked: &LinkedRecords,
    ) -> Result<Vec<Citation>, Failure> {
        let mut citations = Vec::new();
        for place in places {
            let Some(record) = linked.get(place) else { continue };
            let Some(field) = record.field(identifying, Role::Cited) else { continue };
            if !self.is_listed_before(identifying, place.collection, &record.item).await? {
                let records = vec![record.item.clone()];
                citations.push(Citation { field, identifier: None, records });
            }
        }
        Ok(citations)
    }

    /// Whether a record of the same item in an earlier collection cites the item, too.
    async fn is_listed_before(
        &self,
        identifying: &HashSet<ContentIdentifier>,
        number: u64,
        citing: &LinkedItem,
    ) -> Result<bool, Failure> {
        for earlier in self.caught.shown.range(..number) {
            let Some(collection) = self.collection(*earlier) else { continue };
            if collection.repository != citing.repository {
                continue;
            }
            let (repository, prefix) = (RepositoryId(&collection.repository), Prefix(&collection.prefix));
            let mirror = &self.shared.follower.mirror;
            let record = match mirror.record(repository, prefix, Identifier(&citing.identifier)).await {
                // Its repository is named as incomplete.
                Err(MirrorError::Damaged) => continue,
                record => record?,
            };
            let identifying = identifying.clone();
            let record = record.into_iter().collect();
            let read = self.shared.read_records(self.caught, &collection.repository, record).await?;
            let cites = on_thread(read, move |read| {
                let names = RecordNames::of(read);
                names
                    .in_role(Role::Cited)
                    .any(|(identifier, _)| identifying.contains(identifier))
                    .then_some(())
            });
            if !cites.await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_live(record: &StoredRecord) -> bool {
    record.status == oaimend_store::RecordStatus::Live
}

/// What a record names of what is wanted; `None` if it names nothing of it.
fn linked_record(read: &ReadRecord, repository: &str, wanted: &Wanted) -> Option<LinkedRecord> {
    let RecordNames { mut identifiers, work, title, .. } = RecordNames::of(read);
    identifiers.retain(|(identifier, _)| wanted.identifiers.contains(identifier));
    let is_same_work = work.is_some_and(|work| wanted.works.contains(&work));
    let item =
        LinkedItem { repository: repository.to_owned(), identifier: read.record.identifier.clone(), title };
    (is_same_work || !identifiers.is_empty()).then_some(LinkedRecord {
        item,
        named: identifiers,
        is_same_work,
    })
}

/// The names of several records of an item, without repetition. An identifier that one of them has is no reference of
/// another.
fn merged(records: &[RecordNames]) -> RecordNames {
    let mut named: Vec<(ContentIdentifier, NamedIn)> =
        records.iter().flat_map(|names| names.identifiers.iter().cloned()).collect();
    named.sort_by_key(|(_, field)| *field);
    let mut known = HashSet::new();
    named.retain(|(identifier, _)| known.insert(identifier.clone()));
    RecordNames { identifiers: named, ..RecordNames::default() }
}

/// The items of records in order, each once.
fn items<'r>(records: impl Iterator<Item = &'r LinkedRecord>) -> Vec<LinkedItem> {
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    let mut items = Vec::new();
    for LinkedRecord { item, .. } in records {
        if known.insert((&item.repository, &item.identifier)) {
            items.push(item.clone());
        }
    }
    items
}

/// What a function finds in records, on a thread for blocking work.
async fn on_thread<T: Send + 'static>(
    records: Vec<ReadRecord>,
    find: impl Fn(&ReadRecord) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, Failure> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let found = tokio::task::spawn_blocking(move || records.iter().filter_map(find).collect()).await;
    found.map_err(|error| MirrorError::Stopped(error.to_string()).into())
}
