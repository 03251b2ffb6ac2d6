//! The members of views, in `data/views.redb`.

use super::database::SharedDatabase;
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_oai::UnixSecs;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::mirror::Position;
use oaimend_store::save_error::SaveError;
use oaimend_store::views::{
    FollowedChanges, FollowedCollection, Generation, MemberQuery, ViewMember, ViewState, ViewStore,
    WITHOUT_RECORD,
};
use oaimend_store::{Prefix, RepositoryId};
use redb::{Database, ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// View to [`ViewState`] as JSON.
const STATES: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("states");
/// Generation, repository and prefix to the row of the collection.
const COLLECTIONS: TableDefinition<'static, (u64, &'static str, &'static str), CollectionRow> =
    TableDefinition::new("collections");
/// Number of the row and identifier to stamp, sequence, and whether the member has left.
const MEMBERS: TableDefinition<'static, (u64, &'static str), (i64, u64, bool)> =
    TableDefinition::new("members");
/// Number of the row, stamp and sequence to the identifier, and whether the member has left.
const POSITIONS: TableDefinition<'static, (u64, i64, u64), (&'static str, bool)> =
    TableDefinition::new("positions");
/// Number of the row in the generation in use to the place in it up to which the begun one has taken members over: stamp
/// and sequence, and the next sequence of a member without a record.
const TAKEOVERS: TableDefinition<'static, u64, (i64, u64, u64)> = TableDefinition::new("takeovers");
/// One row: the next generation, and the next number of a collection.
const NEXT_NUMBERS: TableDefinition<'static, (), (u64, u64)> = TableDefinition::new("next_numbers");

/// Its number, the number of the collection in the mirror, the next sequence, and the number of members.
type CollectionRow = (u64, Option<u64>, u64, u64);

const CACHE_BYTES: usize = 16 << 20;

#[derive(Debug)]
struct RedbViews(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_views(data: &Path, databases: &Databases) -> Result<Arc<dyn ViewStore>, Error> {
    let path = data.join("views.redb");
    let database = SharedDatabase::open_among(databases, StoreName::Views, &path, CACHE_BYTES)?;
    database.load(create_tables)?;
    Ok(Arc::new(RedbViews(database)))
}

fn create_tables(database: &Database) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    writing.open_table(STATES)?;
    writing.open_table(COLLECTIONS)?;
    writing.open_table(MEMBERS)?;
    writing.open_table(POSITIONS)?;
    writing.open_table(TAKEOVERS)?;
    writing.open_table(NEXT_NUMBERS)?;
    Ok(writing.commit()?)
}

fn read_state(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    view: &str,
) -> Result<ViewState, redb::Error> {
    let json = table.get(view)?;
    // A state that another version wrote is built again.
    Ok(json.and_then(|json| serde_json::from_slice(json.value()).ok()).unwrap_or_default())
}

fn save_state(writing: &WriteTransaction, view: &str, state: &ViewState) -> Result<(), redb::Error> {
    let json = serde_json::to_vec(state).map_err(std::io::Error::other)?;
    writing.open_table(STATES)?.insert(view, json.as_slice())?;
    Ok(())
}

/// The tables of the members.
struct Members<'t> {
    collections: Table<'t, (u64, &'static str, &'static str), CollectionRow>,
    members: Table<'t, (u64, &'static str), (i64, u64, bool)>,
    positions: Table<'t, (u64, i64, u64), (&'static str, bool)>,
    takeovers: Table<'t, u64, (i64, u64, u64)>,
    next_numbers: Table<'t, (), (u64, u64)>,
}

impl<'t> Members<'t> {
    fn open(writing: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            collections: writing.open_table(COLLECTIONS)?,
            members: writing.open_table(MEMBERS)?,
            positions: writing.open_table(POSITIONS)?,
            takeovers: writing.open_table(TAKEOVERS)?,
            next_numbers: writing.open_table(NEXT_NUMBERS)?,
        })
    }

    fn numbers(&self) -> Result<(u64, u64), redb::Error> {
        Ok(self.next_numbers.get(())?.map_or((0, 0), |numbers| numbers.value()))
    }

    /// The row of a collection, or a new one.
    fn row(&mut self, key: (u64, &str, &str)) -> Result<CollectionRow, redb::Error> {
        if let Some(row) = self.collections.get(key)? {
            return Ok(row.value());
        }
        let (generation, number) = self.numbers()?;
        self.next_numbers.insert((), (generation, number + 1))?;
        Ok((number, None, 0, 0))
    }

    fn find(&self, number: u64, identifier: &str) -> Result<Option<(i64, u64, bool)>, redb::Error> {
        Ok(self.members.get((number, identifier))?.map(|member| member.value()))
    }

    /// Stores a member in place of its older version. Returns whether it is new.
    fn put(&mut self, number: u64, member: &ViewMember) -> Result<bool, redb::Error> {
        let ViewMember { identifier, position: Position { secs, sequence }, has_left } = member;
        let replaced = self.members.insert((number, identifier.as_str()), (secs.0, *sequence, *has_left))?;
        let replaced = replaced.map(|replaced| replaced.value());
        if let Some((secs, sequence, _)) = replaced {
            self.positions.remove((number, secs, sequence))?;
        }
        self.positions.insert((number, secs.0, *sequence), (identifier.as_str(), *has_left))?;
        Ok(replaced.is_none())
    }

    /// The collections of a generation.
    fn of_generation(&self, generation: u64) -> Result<Vec<(String, String, CollectionRow)>, redb::Error> {
        let mut found = Vec::new();
        for row in self.collections.range((generation, "", "")..(generation + 1, "", ""))? {
            let (key, row) = row?;
            let (_, repository, prefix) = key.value();
            found.push((repository.to_owned(), prefix.to_owned(), row.value()));
        }
        Ok(found)
    }

    /// Removes members of a generation, at most `left` of all. Returns whether it has none any more.
    fn remove_generation(&mut self, generation: u64, left: &mut usize) -> Result<bool, redb::Error> {
        for (repository, prefix, (number, ..)) in self.of_generation(generation)? {
            let mut removed = Vec::new();
            for row in self.members.range((number, "")..(number + 1, ""))?.take(*left) {
                let (key, member) = row?;
                removed.push((key.value().1.to_owned(), member.value()));
            }
            *left -= removed.len();
            for (identifier, (secs, sequence, _)) in removed {
                self.members.remove((number, identifier.as_str()))?;
                self.positions.remove((number, secs, sequence))?;
            }
            if *left == 0 {
                return Ok(false);
            }
            self.takeovers.remove(number)?;
            self.collections.remove((generation, repository.as_str(), prefix.as_str()))?;
        }
        Ok(true)
    }

    /// Takes members of the generation before over, unless the next one has them. It examines them in the order of their
    /// positions, at most `left` of all; [`follow`] lets it examine one again that changes afterwards. `left_secs` gives
    /// the stamp of one for the stamp that it had. Returns whether it has examined all of them.
    fn take_over(
        &mut self,
        (before, next): (u64, u64),
        left_secs: impl Fn(UnixSecs) -> UnixSecs,
        left: &mut usize,
    ) -> Result<bool, redb::Error> {
        for (repository, prefix, (from, ..)) in self.of_generation(before)? {
            let key = (next, repository.as_str(), prefix.as_str());
            let (number, collection, next_sequence, mut count) = self.row(key)?;
            let start = (i64::MIN, 0, WITHOUT_RECORD);
            let (mut secs, mut sequence, mut free) =
                self.takeovers.get(from)?.map_or(start, |row| row.value());
            let mut absent = Vec::new();
            for row in self.positions.range((from, secs, sequence)..=(from, i64::MAX, u64::MAX))? {
                if *left == 0 {
                    break;
                }
                let (position, member) = row?;
                *left -= 1;
                (_, secs, sequence) = position.value();
                sequence += 1;
                let (identifier, _) = member.value();
                if self.find(number, identifier)?.is_none() {
                    absent.push(view_member(identifier, (secs, sequence, false)));
                }
            }
            for member in absent {
                let left_secs = left_secs(member.position.secs);
                count += u64::from(self.put(number, &member.taken_over(left_secs, free))?);
                free += 1;
            }
            self.takeovers.insert(from, (secs, sequence, free))?;
            self.collections.insert(key, (number, collection, next_sequence, count))?;
            if *left == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets the next generation examine all members of this one.
    fn forget_examined(&mut self, before: u64) -> Result<(), redb::Error> {
        for (.., (number, ..)) in self.of_generation(before)? {
            self.takeovers.remove(number)?;
        }
        Ok(())
    }

    /// Lets the members that were taken over with later stamps leave at this time. There are some only if the clock was set
    /// back after the switch was prepared.
    fn date_back(&mut self, generation: u64, since_secs: UnixSecs) -> Result<(), redb::Error> {
        for (.., (number, ..)) in self.of_generation(generation)? {
            let mut later = Vec::new();
            for row in self
                .positions
                .range((number, since_secs.0.saturating_add(1), 0)..=(number, i64::MAX, u64::MAX))?
            {
                let (key, member) = row?;
                let ((_, secs, sequence), (identifier, has_left)) = (key.value(), member.value());
                if sequence >= WITHOUT_RECORD {
                    later.push(view_member(identifier, (secs, sequence, has_left)));
                }
            }
            for member in later {
                let sequence = member.position.sequence;
                self.put(number, &member.taken_over(since_secs, sequence))?;
            }
        }
        Ok(())
    }

    /// Lets a member be examined again if it was, because it changes.
    fn examine_again(&mut self, number: u64, position: Position) -> Result<(), redb::Error> {
        let examined = self.takeovers.get(number)?.map(|row| row.value());
        if let Some((secs, sequence, free)) = examined
            && (position.secs.0, position.sequence) < (secs, sequence)
        {
            self.takeovers.insert(number, (position.secs.0, position.sequence, free))?;
        }
        Ok(())
    }
}

fn begin_generation(writing: &WriteTransaction, view: &str, definition: &str) -> Result<u64, redb::Error> {
    let mut state = read_state(&writing.open_table(STATES)?, view)?;
    let mut members = Members::open(writing)?;
    state.replaced.extend(state.next.take().map(|abandoned| abandoned.number));
    if let Some(current) = &state.current {
        members.forget_examined(current.number)?;
    }
    let (number, next_collection) = members.numbers()?;
    members.next_numbers.insert((), (number + 1, next_collection))?;
    state.next = Some(Generation { number, definition: definition.to_owned() });
    save_state(writing, view, &state)?;
    Ok(number)
}

fn follow(writing: &WriteTransaction, changes: &FollowedChanges) -> Result<(), redb::Error> {
    let FollowedChanges { generation, followed, changes } = changes;
    let mut members = Members::open(writing)?;
    let key = (*generation, followed.repository.as_str(), followed.prefix.as_str());
    let (number, _, _, mut count) = members.row(key)?;
    for change in changes {
        if change.is_stored(members.find(number, &change.identifier)?.is_some()) {
            count += u64::from(members.put(number, change)?);
            members.examine_again(number, change.position)?;
        }
    }
    members.collections.insert(key, (number, followed.collection, followed.next_sequence, count))?;
    Ok(())
}

fn prepare_switch(
    writing: &WriteTransaction,
    view: &str,
    now_secs: UnixSecs,
    count_max: usize,
) -> Result<bool, redb::Error> {
    let state = read_state(&writing.open_table(STATES)?, view)?;
    let (Some(before), Some(next)) = (state.current, state.next) else { return Ok(false) };
    let (generations, mut left) = ((before.number, next.number), count_max);
    Ok(!Members::open(writing)?.take_over(generations, |secs| secs.min(now_secs), &mut left)?)
}

fn switch(writing: &WriteTransaction, view: &str, since_secs: Option<UnixSecs>) -> Result<(), redb::Error> {
    let mut state = read_state(&writing.open_table(STATES)?, view)?;
    let Some(next) = state.next.take() else { return Ok(()) };
    if let Some(before) = &state.current {
        let mut members = Members::open(writing)?;
        let left_secs = |secs| since_secs.unwrap_or(secs);
        members.take_over((before.number, next.number), left_secs, &mut { usize::MAX })?;
        members.forget_examined(before.number)?;
        if let Some(since_secs) = since_secs {
            members.date_back(next.number, since_secs)?;
        }
        state.replaced.push(before.number);
    }
    save_state(writing, view, &ViewState { current: Some(next), since_secs, ..state })
}

fn remove_replaced(writing: &WriteTransaction, view: &str, count_max: usize) -> Result<bool, redb::Error> {
    let mut state = read_state(&writing.open_table(STATES)?, view)?;
    let (mut members, mut left) = (Members::open(writing)?, count_max);
    while let Some(&generation) = state.replaced.first() {
        if !members.remove_generation(generation, &mut left)? {
            return Ok(true);
        }
        state.replaced.remove(0);
        save_state(writing, view, &state)?;
    }
    Ok(false)
}

fn view_member(identifier: &str, (secs, sequence, has_left): (i64, u64, bool)) -> ViewMember {
    let position = Position { secs: UnixSecs(secs), sequence };
    ViewMember { identifier: identifier.to_owned(), position, has_left }
}

/// The row of a collection.
fn collection_row(
    reading: &ReadTransaction,
    key: (u64, &str, &str),
) -> Result<Option<CollectionRow>, redb::Error> {
    Ok(reading.open_table(COLLECTIONS)?.get(key)?.map(|row| row.value()))
}

/// The positions of a query; `None` if there are none.
fn positions(number: u64, query: &MemberQuery) -> Option<Range<(u64, i64, u64)>> {
    let mut first = query.from_secs.map_or((i64::MIN, 0), |from| (from.0, 0));
    let mut end = query.until_secs.map_or((i64::MAX, u64::MAX), |until| (until.plus(1).0, 0));
    match query.after {
        Some(Position { secs, sequence }) if query.newest_first => end = end.min((secs.0, sequence)),
        Some(Position { secs, sequence }) => first = first.max((secs.0, sequence + 1)),
        None => {}
    }
    (first < end).then_some((number, first.0, first.1)..(number, end.0, end.1))
}

fn members(reading: &ReadTransaction, query: &MemberQuery) -> Result<Vec<ViewMember>, redb::Error> {
    let row = collection_row(reading, (query.generation, &query.repository, &query.prefix))?;
    let Some(range) = row.and_then(|(number, ..)| positions(number, query)) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let table = reading.open_table(POSITIONS)?;
    let mut rows = table.range(range)?;
    while found.len() < query.count_max {
        let Some(row) = (if query.newest_first { rows.next_back() } else { rows.next() }) else { break };
        let (key, member) = row?;
        let ((_, secs, sequence), (identifier, has_left)) = (key.value(), member.value());
        found.push(view_member(identifier, (secs, sequence, has_left)));
    }
    Ok(found)
}

/// Counts what the query leaves out, if it begins with the first member: it leaves out little.
fn count(reading: &ReadTransaction, query: &MemberQuery) -> Result<u64, redb::Error> {
    let row = collection_row(reading, (query.generation, &query.repository, &query.prefix))?;
    let Some((number, _, _, all)) = row else { return Ok(0) };
    let table = reading.open_table(POSITIONS)?;
    let count_in = |query: &MemberQuery| match positions(number, query) {
        Some(range) => Ok::<_, redb::Error>(table.range(range)?.count() as u64),
        None => Ok(0),
    };
    match (query.from_secs, query.after, query.until_secs) {
        (None, None, None) => Ok(all),
        (None, None, Some(until)) => {
            let later = MemberQuery { from_secs: Some(until.plus(1)), until_secs: None, ..query.clone() };
            Ok(all.saturating_sub(count_in(&later)?))
        }
        _ => count_in(query),
    }
}

#[async_trait]
impl ViewStore for RedbViews {
    async fn state(&self, view: &str) -> Result<ViewState, SaveError> {
        let view = view.to_owned();
        self.0.read(move |reading| read_state(&reading.open_table(STATES)?, &view)).await
    }

    async fn begin_generation(&self, view: &str, definition: &str) -> Result<u64, SaveError> {
        let [view, definition] = [view, definition].map(str::to_owned);
        self.0.write(move |writing| begin_generation(writing, &view, &definition)).await
    }

    async fn follow(&self, changes: FollowedChanges) -> Result<(), SaveError> {
        self.0.write(move |writing| follow(writing, &changes)).await
    }

    async fn followed(&self, generation: u64) -> Result<Vec<FollowedCollection>, SaveError> {
        self.0
            .read(move |reading| {
                let table = reading.open_table(COLLECTIONS)?;
                let mut found = Vec::new();
                for row in table.range((generation, "", "")..(generation + 1, "", ""))? {
                    let (key, row) = row?;
                    let ((_, repository, prefix), (_, collection, next_sequence, _)) =
                        (key.value(), row.value());
                    let (repository, prefix) = (repository.to_owned(), prefix.to_owned());
                    found.push(FollowedCollection { repository, prefix, collection, next_sequence });
                }
                Ok(found)
            })
            .await
    }

    async fn prepare_switch(
        &self,
        view: &str,
        now_secs: UnixSecs,
        count_max: usize,
    ) -> Result<bool, SaveError> {
        let view = view.to_owned();
        self.0.write(move |writing| prepare_switch(writing, &view, now_secs, count_max)).await
    }

    async fn remove_replaced(&self, view: &str, count_max: usize) -> Result<bool, SaveError> {
        let view = view.to_owned();
        self.0.write(move |writing| remove_replaced(writing, &view, count_max)).await
    }

    async fn switch(&self, view: &str, since_secs: Option<UnixSecs>) -> Result<(), SaveError> {
        let view = view.to_owned();
        self.0.write(move |writing| switch(writing, &view, since_secs)).await
    }

    async fn members(&self, query: MemberQuery) -> Result<Vec<ViewMember>, SaveError> {
        self.0.read(move |reading| members(reading, &query)).await
    }

    async fn count(&self, query: MemberQuery) -> Result<u64, SaveError> {
        self.0.read(move |reading| count(reading, &query)).await
    }

    async fn find(
        &self,
        generation: u64,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<ViewMember>>, SaveError> {
        let ([repository, prefix], identifiers) =
            ([repository.0, prefix.0].map(str::to_owned), identifiers.to_vec());
        self.0
            .read(move |reading| {
                let Some((number, ..)) = collection_row(reading, (generation, &repository, &prefix))? else {
                    return Ok(vec![None; identifiers.len()]);
                };
                let table = reading.open_table(MEMBERS)?;
                let mut found = Vec::with_capacity(identifiers.len());
                for identifier in identifiers {
                    let member = table.get((number, identifier.as_str()))?.map(|member| member.value());
                    found.push(member.map(|member| view_member(&identifier, member)));
                }
                Ok(found)
            })
            .await
    }

    fn close(&self) {
        self.0.close();
    }
}
