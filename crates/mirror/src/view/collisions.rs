//! Lists that contain each identifier once, although several repositories have it.
//!
//! An *item* is all records with one identifier. The policy shows one of them. The shown record can change with each
//! commit to any record of the item: a better one appears, or the shown one is deleted. Therefore the datestamp of an
//! item is the latest stamp of its records, and lists contain the item at the position of its latest record. Every
//! commit moves its item to the end of the lists, as it moves a record in the view of one repository. So an
//! incremental harvester misses no change of an item, and the store contains nothing in addition.
//!
//! A commit to a hidden record delivers the shown record again, unchanged.
//!
//! [`Collisions::Newest`] compares the datestamps in the stored records, and [`Collisions::ClosestToOrigin`] their provenance.
//! Both follow from the bytes of a record, which change with a stamp only. The store keeps a datestamp until the content of
//! the record changes. A source that renews only the datestamp does not change the shown record, because such a
//! change has no stamp.

use super::list_token::{PageEnd, Place, RecordList};
use super::merge::Merge;
use super::options::{MirroredSource, PageLimits};
use super::origin_distance::OriginDistance;
use super::part::{Part, Parts};
use super::presentation::View;
use super::record_writer::{RecordWriter, ShownRecord};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Reason, RecordView};
use oaimend_store::{Collisions, Identifier, MirrorError, Prefix, RecordStatus, StoredRecord};
use std::cmp::Reverse;

/// Records that a page examines, unless it has to examine more for its first item. Between two items, a list can have
/// many records whose items are later in it.
const EXAMINED_MAX: usize = 1_000;
/// Attempts to read an item that changes meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// The records of one item.
struct Item<'v> {
    /// The record at whose position the item was found.
    found: (Part<'v>, StoredRecord),
    /// The records of the other repositories, without their bytes.
    others: Vec<(Part<'v>, StoredRecord)>,
}

impl<'v> Item<'v> {
    /// Whether the list contains the item at the position where it was found.
    fn is_latest(&self) -> bool {
        let position =
            |(part, record): &(Part<'v>, StoredRecord)| (part.datestamp_secs(record), part.member.id.clone());
        let rank = position(&self.found);
        self.others.iter().all(|other| position(other) < rank)
    }

    fn datestamp_secs(&self) -> UnixSecs {
        let datestamp = |(part, record): &(Part<'v>, StoredRecord)| part.datestamp_secs(record);
        self.others.iter().map(datestamp).fold(datestamp(&self.found), UnixSecs::max)
    }

    /// The record that the policy shows: the best one that is not deleted, or the best one if all are deleted.
    async fn show(self, view: &'v View, prefix: &str, with_bytes: bool) -> Result<Shown<'v>, Failure> {
        // A view that shows all records of an item shows each with its own datestamp.
        let item_secs = view.merges_records().then(|| self.datestamp_secs());
        let collisions = view.options.collisions;
        let compares_content =
            matches!(collisions, Collisions::Newest | Collisions::ClosestToOrigin) && !self.others.is_empty();
        let mut best: Option<(Rank, Part<'v>, StoredRecord)> = None;
        for (part, mut record) in std::iter::once(self.found).chain(self.others) {
            let member = part.member;
            let (mut committed_secs, mut distance) = (UnixSecs(0), OriginDistance::default());
            if compares_content {
                record = match read_whole(view, member, prefix, record).await? {
                    Version::Whole(record) => record,
                    Version::Replaced => return Ok(Shown::Replaced),
                    Version::Damaged => continue,
                };
                match collisions {
                    Collisions::Newest => committed_secs = datestamp_of(&record),
                    _ => distance = OriginDistance::of(&record.bytes),
                }
            }
            let is_live = record.status == RecordStatus::Live;
            let content = (committed_secs, Reverse(distance));
            let rank = (is_live, part.is_mirrored(), content, member.priority, Reverse(member.id.clone()));
            if best.as_ref().is_none_or(|(best, ..)| rank > *best) {
                best = Some((rank, part, record));
            }
        }
        let Some((_, part, mut record)) = best else { return Ok(Shown::Damaged) };
        let member = part.member;
        // What a view knows of a member does not contain its sets.
        if view.members_of_view().is_some() && record.status == RecordStatus::Deleted {
            let header = StoredRecord { bytes: Bytes::new(), layout: None, ..record.clone() };
            if let Version::Whole(stored) = read_whole(view, member, prefix, header).await? {
                record.set_specs = stored.set_specs;
            }
        }
        if with_bytes || view.members_of_view().is_some() {
            record = match read_whole(view, member, prefix, record).await? {
                Version::Whole(whole) => whole,
                Version::Replaced => return Ok(Shown::Replaced),
                Version::Damaged => return Ok(Shown::Damaged),
            };
        }
        let datestamp_secs = item_secs.unwrap_or_else(|| part.datestamp_secs(&record));
        Ok(Shown::Record(ShownRecord { member, record, datestamp_secs }))
    }
}

/// What an item shows.
enum Shown<'v> {
    Record(ShownRecord<'v>),
    /// Its record changes at this moment. The new version is in a later list.
    Replaced,
    /// Its record is damaged. It is fetched again, and is in a later list then.
    Damaged,
}

/// Whether a record is live, whether it is mirrored, the datestamp of its source or its distance from its origin if they
/// count, the priority and the name of its repository. The greatest one is shown.
type Rank = (bool, bool, (UnixSecs, Reverse<OriginDistance>), u64, Reverse<String>);

/// A version of a record that was found without its bytes.
enum Version {
    /// It has its bytes now.
    Whole(StoredRecord),
    /// The store has a later version.
    Replaced,
    /// It is damaged. It is fetched again, and gets a new stamp then.
    Damaged,
}

/// Reads the bytes of a record, unless it has them.
async fn read_whole(
    view: &View,
    member: &MirroredSource,
    prefix: &str,
    record: StoredRecord,
) -> Result<Version, MirrorError> {
    if !record.bytes.is_empty() {
        return Ok(Version::Whole(record));
    }
    match view.stores.store.record(member.repository(), Prefix(prefix), Identifier(&record.identifier)).await
    {
        Ok(Some(whole)) if whole.sequence == record.sequence => Ok(Version::Whole(whole)),
        Ok(_) => Ok(Version::Replaced),
        Err(MirrorError::Damaged) => Ok(Version::Damaged),
        Err(error) => Err(error),
    }
}

/// The datestamp in a stored record. A record without a legal one is the oldest.
fn datestamp_of(record: &StoredRecord) -> UnixSecs {
    let text = std::str::from_utf8(&record.bytes).unwrap_or_default();
    RecordView::read(text).and_then(|record| record.datestamp_secs()).unwrap_or(UnixSecs::MIN)
}

/// The items of records that were read from a list, in the same order. `parts` are all repositories of the view.
async fn items_of<'v>(
    view: &View,
    parts: &Parts<'v>,
    prefix: &str,
    read: Vec<(Part<'v>, StoredRecord)>,
) -> Result<Vec<Item<'v>>, Failure> {
    let mut items: Vec<Item<'v>> = read.into_iter().map(|found| Item { found, others: Vec::new() }).collect();
    for part in &parts.parts {
        let is_other = |item: &&mut Item<'v>| item.found.0.member.id != part.member.id;
        let others = items.iter_mut().filter(is_other);
        let identifiers: Vec<String> = others.map(|item| item.found.1.identifier.clone()).collect();
        let headers = parts.chosen.headers(&*view.stores.store, (part, prefix), &identifiers).await?;
        for (item, header) in items.iter_mut().filter(is_other).zip(headers) {
            item.others.extend(header.map(|header| (*part, header)));
        }
    }
    Ok(items)
}

/// Writes items until the page is full.
///
/// A page has at least one item, unless it is the last one. If it finds none among [`EXAMINED_MAX`] records, it
/// contains an item that the list contains again later.
pub(super) async fn fill<'v>(
    (view, parts): (&'v View, &Parts<'v>),
    list: &RecordList,
    merge: &mut Merge<'v>,
    writer: &mut RecordWriter<'_>,
    limits: PageLimits,
) -> Result<PageEnd, Failure> {
    let mut end = PageEnd { last: list.after.clone(), has_more: false };
    let (mut examined, mut later) = (0, None);
    'page: loop {
        let mut read = Vec::new();
        while read.len() < limits.records_max
            && let Some(next) = merge.next().await?
        {
            read.push(next);
        }
        if read.is_empty() {
            break;
        }
        for item in items_of(view, parts, &list.prefix, read).await? {
            let is_full = writer.is_full(limits);
            let is_exhausted = examined >= EXAMINED_MAX && (writer.items.count() > 0 || later.is_some());
            if is_exhausted || is_full && item.is_latest() {
                end.has_more = true;
                break 'page;
            }
            examined += 1;
            end.last = Some(Place::of(&item.found.0, &item.found.1));
            if item.is_latest() {
                if let Shown::Record(shown) = item.show(view, &list.prefix, list.with_metadata).await? {
                    writer.write(shown, list.with_metadata).await?;
                }
            } else if item.datestamp_secs() <= list.until {
                later = Some(item);
            }
        }
    }
    if writer.items.count() == 0
        && (end.has_more || list.after.is_some())
        && let Some(item) = later
        && let Shown::Record(shown) = item.show(view, &list.prefix, list.with_metadata).await?
    {
        writer.write(shown, list.with_metadata).await?;
    }
    Ok(end)
}

/// The record that lists contain for an identifier; `None` if no repository has it undamaged. Of several that lists
/// contain, it is the one that [`Collisions::Prefer`] shows.
///
/// # Errors
///
/// The store cannot be read, the record is damaged, or it changes with each attempt to read it, or a view has not judged
/// its last change.
pub(super) async fn find<'v>(
    view: &'v View,
    parts: &Parts<'v>,
    prefix: &str,
    identifier: &str,
) -> Result<Option<ShownRecord<'v>>, Failure> {
    let identifiers = [identifier.to_owned()];
    for _ in 0..ATTEMPTS_MAX {
        let mut records = Vec::new();
        for part in &parts.parts {
            let headers = parts.chosen.headers(&*view.stores.store, (part, prefix), &identifiers).await?;
            records.extend(headers.into_iter().flatten().map(|header| (*part, header)));
        }
        records.sort_by_key(|(part, record)| part.datestamp_secs(record));
        let Some(found) = records.pop() else { return Ok(None) };
        match (Item { found, others: records }).show(view, prefix, true).await? {
            Shown::Record(shown) => return Ok(Some(shown)),
            Shown::Damaged => return Err(MirrorError::Damaged.into()),
            Shown::Replaced => {}
        }
    }
    if view.members_of_view().is_some() {
        return Err(view.behind(identifier));
    }
    let details = format!("the record {identifier} changes while it is read; retry later");
    Err(Failure::new(Reason::Mirror, details))
}
