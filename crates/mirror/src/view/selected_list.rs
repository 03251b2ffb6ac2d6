//! The pages of a set that a request chooses, such as a query set. The selection knows the order of the records of all
//! repositories, so a page costs as many requests to it for one repository as for thousands.

use super::list_token::{PageEnd, Place, RecordList};
use super::options::PageLimits;
use super::part::Part;
use super::record_writer::{RecordWriter, ShownRecord};
use super::selection::{SelectedList, SelectedRecord, Selection};
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Reason};
use oaimend_rules::member_datestamp;
use oaimend_store::{ChosenRecords, MirrorError, MirrorStore, Position, StoredRecord};

/// Maximum number of records of a request to the selection, which may limit it itself.
const SELECTED_MAX: usize = 500;

/// What a list is for its selection.
pub(super) fn selected_list(parts: &[Part<'_>], list: &RecordList) -> SelectedList {
    // The datestamps of other repositories are after the list.
    let listed = parts.iter().filter(|part| part.since_secs <= Some(list.until));
    SelectedList {
        prefix: list.prefix.clone(),
        repositories: listed.map(|part| (part.member.id.clone(), part.since_secs)).collect(),
        from_secs: list.from,
        until_secs: (list.until != UnixSecs::MAX).then_some(list.until),
        after: list.after.as_ref().map(key),
    }
}

fn key(place: &Place) -> (UnixSecs, String, u64) {
    (place.secs, place.id.clone(), place.sequence)
}

/// Writes records until the page is full.
///
/// # Errors
///
/// The selection does not know its records, the store cannot be read, or a record of the page is damaged.
pub(super) async fn fill(
    store: &dyn MirrorStore,
    (selection, parts): (&dyn Selection, &[Part<'_>]),
    list: &RecordList,
    writer: &mut RecordWriter<'_>,
    limits: PageLimits,
) -> Result<PageEnd, Failure> {
    let mut selected = selected_list(parts, list);
    let mut end = PageEnd { last: list.after.clone(), has_more: true };
    while end.has_more && !writer.is_full(limits) {
        let count_max = limits.records_max.min(SELECTED_MAX);
        let mut chosen = selection.list(&selected, count_max + 1).await?;
        end.has_more = chosen.len() > count_max;
        chosen.truncate(count_max);
        let mut rest = chosen.as_slice();
        while let Some(first) = rest.first()
            && !writer.is_full(limits)
        {
            let part = part_of(parts, first)?;
            let count = rest.iter().take_while(|next| next.repository == first.repository).count();
            let (of_part, _) = rest.split_at(count);
            let bytes_max = limits.bytes_max.saturating_sub(writer.items.bytes());
            let read = PageLimits { bytes_max, ..limits };
            for (next, stored) in
                of_part.iter().zip(stored(store, part, (&list.prefix, of_part), read).await?)
            {
                if writer.is_full(limits) {
                    break;
                }
                rest = rest.get(1..).unwrap_or_default();
                end.last = Some(place(part, next));
                // A record that has changed since is in a later list.
                if let Some(record) = stored.filter(|stored| stored.identifier == next.identifier) {
                    let record = StoredRecord { stamp_secs: next.position.secs, ..record };
                    writer.write(ShownRecord::new(*part, part.present(record)), list.with_metadata).await?;
                }
            }
        }
        end.has_more |= !rest.is_empty();
        selected.after = end.last.as_ref().map(key);
    }
    Ok(end)
}

/// The part of a record. `parts` are in the order of the repositories.
///
/// # Errors
///
/// The list has no such repository.
fn part_of<'p, 'v>(parts: &'p [Part<'v>], record: &SelectedRecord) -> Result<&'p Part<'v>, Failure> {
    let place = parts.binary_search_by(|part| part.member.id.as_str().cmp(&record.repository));
    place.ok().and_then(|place| parts.get(place)).ok_or_else(|| {
        let details =
            format!("the set contains a record of \"{}\", which is no part of it", record.repository);
        Failure::new(Reason::Search, details)
    })
}

fn place(part: &Part<'_>, record: &SelectedRecord) -> Place {
    let Position { secs: stamp, sequence } = record.position;
    let secs = member_datestamp(stamp, part.since_secs);
    Place { secs, id: part.member.id.clone(), sequence, stamp }
}

/// The stored records of a part, in the order of the selected ones; `None` for one that has changed since. The result may
/// end before the last one.
async fn stored(
    store: &dyn MirrorStore,
    part: &Part<'_>,
    (prefix, selected): (&str, &[SelectedRecord]),
    limits: PageLimits,
) -> Result<Vec<Option<StoredRecord>>, MirrorError> {
    let chosen = ChosenRecords {
        repository: part.member.id.clone(),
        prefix: prefix.to_owned(),
        sequences: selected.iter().map(|record| record.position.sequence).collect(),
        bytes_max: limits.bytes_max,
        with_bytes: limits.with_bytes && part.is_mirrored(),
    };
    store.records_at(chosen).await
}
