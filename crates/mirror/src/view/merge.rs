//! Reads the records of several repositories in one order: (datestamp, repository, sequence). Those of a query set are
//! read by `selected_list` instead.
//!
//! The datestamp of a record is its stamp, or the last change of the view that concerns its repository, if that is
//! later ([`Part::datestamp_secs`]). So the first records of a repository can share a datestamp. They stay in the order
//! of their sequences, which is that of their stamps.
//!
//! A position in this order needs no state of the single repositories: for each of them it follows which records
//! are after it.

use super::list_token::{Place, RecordList};
use super::options::PageLimits;
use super::part::{Chosen, Part, Parts};
use super::selection::{Membership, list_members};
use oaimend_oai::UnixSecs;
use oaimend_repository::Failure;
use oaimend_rules::member_datestamp;
use oaimend_store::{
    Identifier, ListFilter, ListOrder, ListQuery, MirrorError, MirrorStore, Position, Prefix, RepositoryId,
    StoredRecord,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The records that are read at once from each of several repositories, at first. It doubles with each read.
const FIRST_READ_RECORDS: usize = 4;

/// A guess of the bytes by which a served record is longer than a stored one, at most.
const HEADER_BYTES_MORE: usize = 64;

/// Members of a view that a page of one set examines, unless it has to examine more for its first record. Between two
/// records of the set, the view can have many others.
const EXAMINED_MAX: usize = 4_000;

/// The rest of a list.
pub(super) struct Merge<'v> {
    store: Arc<dyn MirrorStore>,
    chosen: Chosen,
    inputs: Vec<Input<'v>>,
    limits: PageLimits,
    /// The members that may still be examined. Only lists of one set of a view count them.
    examined_left: usize,
}

/// The rest of a list in one repository.
struct Input<'v> {
    part: Part<'v>,
    filter: ListFilter,
    /// The filter of the list from its beginning.
    whole: ListFilter,
    after: Option<Position>,
    read: VecDeque<StoredRecord>,
    is_at_end: bool,
    count_max: usize,
}

impl<'v> Merge<'v> {
    /// The records of a list after its position.
    pub(super) fn new(
        store: Arc<dyn MirrorStore>,
        parts: &Parts<'v>,
        list: &RecordList,
        limits: PageLimits,
    ) -> Self {
        let Parts { parts, chosen } = parts.clone();
        let count_max = if parts.len() > 1 { FIRST_READ_RECORDS } else { limits.records_max };
        let limits = PageLimits { bytes_max: limits.bytes_max / parts.len().max(1), ..limits };
        let input = |part: Part<'v>| {
            let (from_secs, after) = rest_of(list, &part.member.id);
            let filter = self::filter(&part, list, from_secs);
            let is_at_end = filter.is_none();
            let filter = filter.unwrap_or_default();
            let whole = self::filter(&part, list, list.from).unwrap_or_default();
            Input { part, filter, whole, after, read: VecDeque::new(), is_at_end, count_max }
        };
        let inputs = parts.into_iter().map(input).collect();
        Self { store, chosen, inputs, limits, examined_left: EXAMINED_MAX }
    }

    /// The next record; `None` at the end of the list, or where it pauses.
    pub(super) async fn next(&mut self) -> Result<Option<(Part<'v>, StoredRecord)>, Failure> {
        for input in &mut self.inputs {
            if input.read.is_empty() && !input.is_at_end {
                let examined_left = &mut self.examined_left;
                input.fill(&*self.store, self.chosen.members(), self.limits, examined_left).await?;
            }
            if input.is_paused() {
                return Ok(None);
            }
        }
        // The inputs are in the order of the repositories, and the first one of equal datestamps is the minimum.
        let datestamp =
            |input: &Input<'v>| input.read.front().map(|record| input.part.datestamp_secs(record));
        let first = self
            .inputs
            .iter_mut()
            .filter(|input| !input.read.is_empty())
            .min_by_key(|input| datestamp(input));
        Ok(first.and_then(|input| Some((input.part, input.read.pop_front()?))))
    }

    /// A guess of the bytes that a page of the records in memory needs.
    pub(super) fn bytes_read(&self) -> usize {
        let read = self.inputs.iter().flat_map(|input| &input.read);
        read.map(|record| record.bytes.len() + HEADER_BYTES_MORE).sum()
    }

    /// The position where the list pauses, because a page has examined enough members for one set. Such a list has one
    /// input, so none of its records is before this position.
    pub(super) fn paused_at(&self) -> Option<Place> {
        let input = self.inputs.iter().find(|input| input.is_paused())?;
        let Position { secs: stamp, sequence } = input.after?;
        let secs = member_datestamp(stamp, input.part.since_secs);
        Some(Place { secs, id: input.part.member.id.clone(), sequence, stamp })
    }

    /// Continues where it paused.
    pub(super) fn resume(&mut self) {
        self.examined_left = EXAMINED_MAX;
    }

    /// A record of the set of a list that pauses, which the index of the set finds. The list contains it, there or on
    /// another page. `None` if the index has none among its first records.
    pub(super) async fn any_of_set(&self) -> Result<Option<(Part<'v>, StoredRecord)>, Failure> {
        let Chosen::Members(members) = &self.chosen else { return Ok(None) };
        for input in &self.inputs {
            let query = ListQuery {
                filter: input.whole.clone(),
                after: None,
                count_max: EXAMINED_MAX,
                bytes_max: self.limits.bytes_max,
                with_bytes: false,
            };
            let ListFilter { repository, prefix, .. } = &query.filter;
            let key = (RepositoryId(repository), Prefix(prefix));
            let headers = self.store.list(query.clone()).await?.records;
            let identifiers: Vec<String> = headers.into_iter().map(|header| header.identifier).collect();
            let found = members.find(key.0, key.1, &identifiers).await?;
            for member in found.into_iter().flatten().filter(|member| !member.has_left) {
                let record = self.store.record(key.0, key.1, Identifier(&member.identifier)).await?;
                if let Some(record) = record
                    && record.sequence == member.position.sequence
                {
                    return Ok(Some((input.part, input.part.present(record))));
                }
            }
        }
        Ok(None)
    }

    /// Whether there may be records after those that were read.
    pub(super) fn has_more(&self) -> bool {
        self.inputs.iter().any(|input| !input.read.is_empty() || !input.is_at_end)
    }
}

impl Input<'_> {
    /// Whether it stopped before its next record.
    fn is_paused(&self) -> bool {
        self.read.is_empty() && !self.is_at_end
    }

    /// Reads the next records. Fails if one of them is damaged: the list must not look complete without it.
    async fn fill(
        &mut self,
        store: &dyn MirrorStore,
        members: Option<&dyn Membership>,
        limits: PageLimits,
        examined_left: &mut usize,
    ) -> Result<(), Failure> {
        while self.read.is_empty() && !self.is_at_end && *examined_left > 0 {
            let query = ListQuery {
                filter: self.filter.clone(),
                after: self.after,
                count_max: self.count_max,
                bytes_max: limits.bytes_max,
                with_bytes: limits.with_bytes && self.part.is_mirrored(),
            };
            let page = match members {
                Some(members) => {
                    if query.filter.set.is_some() {
                        *examined_left = examined_left.saturating_sub(self.count_max);
                    }
                    list_members(store, members, query).await?
                }
                None => store.list(query).await?,
            };
            if page.damaged > 0 {
                return Err(MirrorError::Damaged.into());
            }
            self.is_at_end = page.next.is_none();
            self.after = page.next;
            self.read = page.records.into_iter().map(|record| self.part.present(record)).collect();
            self.count_max = (self.count_max * 2).min(limits.records_max);
        }
        Ok(())
    }
}

/// The lowest datestamp and the position after which the records of a repository are in the rest of a list.
fn rest_of(list: &RecordList, id: &str) -> (Option<UnixSecs>, Option<Position>) {
    let Some(Place { secs, id: last, sequence, stamp }) = &list.after else { return (list.from, None) };
    let first_secs = if id < last.as_str() { secs.plus(1) } else { *secs };
    let after = (id == last).then_some(Position { secs: *stamp, sequence: *sequence });
    (Some(list.from.map_or(first_secs, |from| from.max(first_secs))), after)
}

/// The records of a repository in a list, from a datestamp on; `None` if all its datestamps are after the list.
pub(super) fn filter(part: &Part<'_>, list: &RecordList, from_secs: Option<UnixSecs>) -> Option<ListFilter> {
    let is_in_list = part.since_secs <= Some(list.until);
    is_in_list.then(|| ListFilter {
        repository: part.member.id.clone(),
        prefix: list.prefix.clone(),
        set: part.set.map(str::to_owned),
        by: ListOrder::Stamp,
        // All records with stamps up to the last change have its datestamp.
        from_secs: from_secs.filter(|from_secs| Some(*from_secs) > part.since_secs),
        until_secs: Some(list.until),
        ..ListFilter::default()
    })
}
