//! Deletes records that a harvest of whole lists did not list any more, and the suffixes that a repository no longer has.
//!
//! Unlike a comparison of identifiers ([`sweep`](crate::harvest::sweep)), this knows how many records the source lists
//! with one identifier. No request can confirm that one of several has vanished, so it is deleted if two harvests in a
//! row did not list it.

use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::duplicates::{to_store_again, with_identifier};
use crate::harvest::listed_identifiers::place_of;
use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::settings::HarvestSettings;
use crate::harvest::sweep::{REFETCH_FAILURES_MAX, SweepResult, is_unknown, is_within, tombstone};
use oaimend_oai::Request;
use oaimend_store::{
    DuplicateProgress, Duplicates, Identifier, IdentifierEntry, ListedContent, MirrorError, Occurrences,
    Prefix, RecordStatus, Sweep, split_suffix, with_suffix,
};

/// Identifiers that are read from the store at a time.
const BATCH: usize = 1_000;

/// A stored live record that the harvest did not list.
struct Unlisted {
    entry: IdentifierEntry,
    /// Its identifier without a suffix.
    base: String,
    /// Its place among the records with this identifier.
    place: usize,
    next: NextStep,
}

/// What follows for a record that was not listed.
enum NextStep {
    /// Another record with its identifier is listed: it is deleted.
    Delete,
    /// The record without a suffix is gone: the record with this number takes its place.
    Replace(usize),
    /// No record with its identifier is listed: the source is asked.
    Ask,
}

/// Deletes the records of a format that its last, complete harvest did not list. `loses_deletions`: deleted records may
/// vanish from the lists; otherwise only records with a suffix can.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn delete_unlisted(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    loses_deletions: bool,
) -> Result<SweepResult, Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    let Some(progress) = writer.progress.duplicates else { return Ok(SweepResult::default()) };
    let (mut found, mut after) = (0_u64, None);
    while let Some((unlisted, last)) = next_unlisted(&writer, progress, loses_deletions, after).await? {
        found += unlisted.len() as u64;
        after = Some(last);
    }
    let sizes = harvest.store.collections(harvest.repository()).await?;
    let live = sizes.iter().find(|size| size.prefix == prefix).map_or(0, |size| size.records);
    let mut result = SweepResult::default();
    if found > 0 && !progress.is_conclusive {
        tracing::warn!(
            repo = harvest.id,
            prefix,
            records = found,
            "records are missing in lists that are not whole; none of them is deleted"
        );
    } else if !settings.accepts_deletions && !is_within(found, live, settings.deletions) {
        tracing::warn!(
            repo = harvest.id,
            prefix,
            records = found,
            of = live,
            "many records have vanished from the source; oaimend mirror sync --accept-deletions deletes them"
        );
        result.held = found;
    } else if found > 0 {
        let mut after = None;
        while let Some((unlisted, last)) = next_unlisted(&writer, progress, loses_deletions, after).await? {
            for record in unlisted {
                delete(&mut writer, settings, record, &mut result).await?;
            }
            writer.flush().await?;
            after = Some(last);
        }
    }
    let SweepResult { held, unconfirmed, .. } = result;
    writer.progress.sweep = Some(Sweep { at_secs: harvest.now_secs(), held, unconfirmed });
    writer.commit().await?;
    result.counts.add(writer.counts);
    Ok(result)
}

/// The unlisted ones of the next stored records, and the last identifier that was read; `None` at the end.
async fn next_unlisted(
    writer: &CollectionWriter<'_>,
    progress: DuplicateProgress,
    loses_deletions: bool,
    after: Option<String>,
) -> Result<Option<(Vec<Unlisted>, String)>, MirrorError> {
    let gives_suffixes = progress.policy == Duplicates::Suffix;
    let Some((records, last)) = next_records(writer, gives_suffixes, after).await? else { return Ok(None) };
    let mut unlisted = Vec::new();
    for StoredOccurrence { entry, base, place, occurrences } in records {
        let is_listed = occurrences.is_listed(place, progress.harvest);
        let missed = occurrences.items.get(place).map_or(0, |item| item.reading) < progress.harvest_before;
        let listed = (0..occurrences.items.len()).find(|at| occurrences.is_listed(*at, progress.harvest));
        let first = occurrences.items.first().map(|item| item.content);
        let next = match (place, listed) {
            // The record without a suffix is deleted, and this one is not.
            (1.., Some(other)) if place == other && first == Some(ListedContent::Deleted) => {
                NextStep::Replace(other + 1)
            }
            _ if is_listed => continue,
            (0, None) if !loses_deletions => continue,
            (_, None) => NextStep::Ask,
            (_, Some(_)) if !missed => continue,
            (0, Some(other)) => NextStep::Replace(other + 1),
            (_, Some(_)) => NextStep::Delete,
        };
        unlisted.push(Unlisted { entry, base, place, next });
    }
    Ok(Some((unlisted, last)))
}

/// A stored record that is not deleted, and what the source lists with its identifier.
struct StoredOccurrence {
    entry: IdentifierEntry,
    base: String,
    place: usize,
    occurrences: Occurrences,
}

/// The live ones of the next stored records, and the last identifier that was read; `None` at the end. Without
/// `gives_suffixes`, all identifiers are those of the source.
async fn next_records(
    writer: &CollectionWriter<'_>,
    gives_suffixes: bool,
    after: Option<String>,
) -> Result<Option<(Vec<StoredOccurrence>, String)>, MirrorError> {
    let harvest = writer.harvest;
    let after = after.as_deref().map(Identifier);
    let stored = harvest.store.identifiers(harvest.repository(), Prefix(writer.prefix), after, BATCH).await?;
    let Some(last) = stored.last().map(|last| last.identifier.clone()) else { return Ok(None) };
    let live: Vec<IdentifierEntry> =
        stored.into_iter().filter(|entry| entry.status == RecordStatus::Live).collect();
    let names = live.iter().flat_map(|entry| {
        let base = split_suffix(&entry.identifier).map(|(base, _)| base);
        std::iter::once(entry.identifier.as_str()).chain(base)
    });
    let known = writer.occurrences(names.map(str::to_owned).collect()).await?;
    let records = live.into_iter().map(|entry| {
        let (base, place) =
            if gives_suffixes { place_of(&entry.identifier, &known) } else { (entry.identifier.as_str(), 0) };
        let occurrences = known.get(base).cloned().unwrap_or_default();
        StoredOccurrence { base: base.to_owned(), place, occurrences, entry }
    });
    Ok(Some((records.collect(), last)))
}

async fn delete(
    writer: &mut CollectionWriter<'_>,
    settings: &HarvestSettings,
    unlisted: Unlisted,
    result: &mut SweepResult,
) -> Result<(), Interruption> {
    let Unlisted { entry, base, place, next } = unlisted;
    let mut occurrences = writer.occurrences(vec![base.clone()]).await?.remove(&base).unwrap_or_default();
    match next {
        NextStep::Delete => {}
        NextStep::Replace(number) => return replace(writer, (base, occurrences), number).await,
        NextStep::Ask if settings.accepts_deletions => {}
        NextStep::Ask => {
            let is_asked = result.unconfirmed < u64::from(REFETCH_FAILURES_MAX);
            match if is_asked { is_gone(writer, settings, &base).await? } else { None } {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    result.unconfirmed += 1;
                    return Ok(());
                }
            }
        }
    }
    writer.push_tombstone(tombstone(entry)).await?;
    if place < occurrences.items.len() {
        occurrences.set(place, ListedContent::Deleted, 0);
        writer.listed.change(base, occurrences);
    }
    Ok(())
}

/// Whether the source says that it has no record with this identifier; `None` if it fails.
async fn is_gone(
    writer: &CollectionWriter<'_>,
    settings: &HarvestSettings,
    identifier: &str,
) -> Result<Option<bool>, Interruption> {
    let harvest = writer.harvest;
    harvest.pause(settings.request_gap).await;
    match harvest.receive_headers(Request::get_record(identifier, writer.prefix)).await {
        Ok((_, page)) if is_unknown(&page) => Ok(Some(true)),
        Ok((records, _)) => Ok(Some(records.iter().any(|record| record.status == RecordStatus::Deleted))),
        Err(Interruption::Source(failure)) => {
            tracing::info!(
                repo = harvest.id,
                record = identifier,
                details = failure.details_for_operators(),
                "a record has vanished from the lists, and the request for it fails"
            );
            Ok(None)
        }
        Err(store) => Err(store),
    }
}

/// Stores the record with a number without a suffix: the source still has the identifier.
async fn replace(
    writer: &mut CollectionWriter<'_>,
    (base, mut occurrences): (String, Occurrences),
    number: usize,
) -> Result<(), Interruption> {
    let harvest = writer.harvest;
    let (repository, prefix, suffixed) =
        (harvest.repository(), Prefix(writer.prefix), with_suffix(&base, number));
    let stored = match harvest.store.record(repository, prefix, Identifier(&suffixed)).await {
        // The next harvest stores a damaged record again.
        Ok(None) | Err(MirrorError::Damaged) => return Ok(()),
        stored => stored?,
    };
    let Some(stored) = stored else { return Ok(()) };
    let repairs = harvest.store.repairs(repository, prefix, Identifier(&suffixed)).await?;
    let (datestamp_secs, status) = (stored.datestamp_secs, RecordStatus::Live);
    let Some(mut record) = with_identifier(&to_store_again(stored), base.clone()) else { return Ok(()) };
    record.repairs = repairs;
    writer.push(record);
    writer
        .push_tombstone(tombstone(IdentifierEntry { identifier: suffixed, datestamp_secs, status }))
        .await?;
    if let Some(item) = occurrences.items.get(number - 1).copied() {
        occurrences.set(0, item.content, item.reading);
    }
    occurrences.set(number - 1, ListedContent::Deleted, 0);
    writer.listed.change(base, occurrences);
    Ok(())
}

/// Deletes the records with a suffix if the last harvest has given suffixes and the next one gives none. The next
/// harvest lists all records.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn delete_suffixes(
    harvest: &Harvester,
    prefix: &str,
    policy: Duplicates,
) -> Result<(), Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    let had_suffixes = writer.progress.duplicates.is_some_and(|before| before.policy == Duplicates::Suffix);
    if !had_suffixes || policy == Duplicates::Suffix {
        return Ok(());
    }
    let mut after = None;
    while let Some((records, last)) = next_records(&writer, true, after).await? {
        for StoredOccurrence { entry, base, place, .. } in records {
            if place == 0 {
                continue;
            }
            writer.push_tombstone(tombstone(entry)).await?;
            let mut occurrences =
                writer.occurrences(vec![base.clone()]).await?.remove(&base).unwrap_or_default();
            occurrences.set(place, ListedContent::Deleted, 0);
            writer.listed.change(base, occurrences);
        }
        writer.flush().await?;
        after = Some(last);
    }
    Ok(())
}
