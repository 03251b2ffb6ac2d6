//! The full texts of mirrored items, in `data/full_texts.redb`.

use super::database::SharedDatabase;
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_oai::UnixSecs;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::full_texts::{FollowedFullTexts, FullText, FullTextStore};
use oaimend_store::save_error::SaveError;
use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use std::path::Path;
use std::sync::Arc;

/// Repository to [`FollowedFullTexts`] as JSON.
const FOLLOWED: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("followed");
/// Repository and OAI identifier to [`FullText`] as JSON.
const ITEMS: TableDefinition<'static, (&'static str, &'static str), &'static [u8]> =
    TableDefinition::new("items");
/// Repository, time of the next attempt and OAI identifier of the items that wait.
const WAITING: TableDefinition<'static, (&'static str, i64, &'static str), ()> =
    TableDefinition::new("waiting");
/// Repository to the number of its rows in [`WAITING`].
const COUNTS: TableDefinition<'static, &'static str, u64> = TableDefinition::new("counts");

const CACHE_BYTES: usize = 4 << 20;
/// Maximum number of items that one transaction removes.
const REMOVED_MAX: usize = 5_000;

#[derive(Debug)]
struct RedbFullTexts(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_full_texts(data: &Path, databases: &Databases) -> Result<Arc<dyn FullTextStore>, Error> {
    let path = data.join("full_texts.redb");
    let database = SharedDatabase::open_among(databases, StoreName::FullTexts, &path, CACHE_BYTES)?;
    database.load(|database| {
        let writing = database.begin_write()?;
        writing.open_table(FOLLOWED)?;
        writing.open_table(ITEMS)?;
        writing.open_table(WAITING)?;
        writing.open_table(COUNTS)?;
        Ok(writing.commit()?)
    })?;
    Ok(Arc::new(RedbFullTexts(database)))
}

/// A row. One that another version of the program wrote counts as missing: the full text is fetched again.
fn read_item(json: &[u8]) -> Option<FullText> {
    serde_json::from_slice(json).ok()
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>, redb::Error> {
    Ok(serde_json::to_vec(value).map_err(std::io::Error::other)?)
}

fn put(
    writing: &WriteTransaction,
    (repository, identifier): (&str, &str),
    text: Option<&FullText>,
) -> Result<(), redb::Error> {
    let mut items = writing.open_table(ITEMS)?;
    let mut waiting = writing.open_table(WAITING)?;
    let mut counts = writing.open_table(COUNTS)?;
    let mut count = counts.get(repository)?.map_or(0, |count| count.value());
    let row = items.remove((repository, identifier))?.map(|row| read_item(row.value()));
    if row.as_ref().is_none_or(Option::is_none) && text.is_none() {
        // Its time is not known, if it waits.
        let of_repository = (repository, i64::MIN, "")..;
        let is_other = |(of, _, other): (&str, i64, &str)| (of, other) != (repository, identifier);
        let mut removed = 0;
        waiting.retain_in(of_repository, |key, ()| {
            let is_kept = is_other(key);
            removed += u64::from(!is_kept);
            is_kept
        })?;
        count = count.saturating_sub(removed);
    }
    let former = row.flatten();
    if let Some(secs) = former.and_then(|former| former.not_before_secs())
        && waiting.remove((repository, secs.0, identifier))?.is_some()
    {
        count = count.saturating_sub(1);
    }
    if let Some(secs) = text.and_then(FullText::not_before_secs) {
        waiting.insert((repository, secs.0, identifier), ())?;
        count += 1;
    }
    counts.insert(repository, count)?;
    if let Some(text) = text {
        items.insert((repository, identifier), to_json(text)?.as_slice())?;
    }
    Ok(())
}

/// Removes some items of a repository. Returns whether there are more.
fn forget(writing: &WriteTransaction, repository: &str) -> Result<bool, redb::Error> {
    writing.open_table(FOLLOWED)?.remove(repository)?;
    let mut identifiers = Vec::new();
    for row in writing.open_table(ITEMS)?.range((repository, "")..)?.take(REMOVED_MAX) {
        let (key, _) = row?;
        let (of, identifier) = key.value();
        if of != repository {
            break;
        }
        identifiers.push(identifier.to_owned());
    }
    for identifier in &identifiers {
        put(writing, (repository, identifier), None)?;
    }
    Ok(identifiers.len() == REMOVED_MAX)
}

#[async_trait]
impl FullTextStore for RedbFullTexts {
    async fn followed(&self, repository: &str) -> Result<Option<FollowedFullTexts>, SaveError> {
        let repository = repository.to_owned();
        self.0
            .run(move |database| {
                let row = database.begin_read()?.open_table(FOLLOWED)?.get(repository.as_str())?;
                Ok(row.and_then(|row| serde_json::from_slice(row.value()).ok()))
            })
            .await
    }

    async fn follow(&self, repository: &str, followed: FollowedFullTexts) -> Result<(), SaveError> {
        let repository = repository.to_owned();
        self.0
            .write(move |writing| {
                writing.open_table(FOLLOWED)?.insert(repository.as_str(), to_json(&followed)?.as_slice())?;
                Ok(())
            })
            .await
    }

    async fn find(
        &self,
        repository: &str,
        identifiers: Vec<String>,
    ) -> Result<Vec<Option<FullText>>, SaveError> {
        let repository = repository.to_owned();
        self.0
            .run(move |database| {
                let items = database.begin_read()?.open_table(ITEMS)?;
                let find = |identifier: String| {
                    let row = items.get((repository.as_str(), identifier.as_str()))?;
                    Ok(row.and_then(|row| read_item(row.value())))
                };
                identifiers.into_iter().map(find).collect()
            })
            .await
    }

    async fn put(
        &self,
        repository: &str,
        identifier: &str,
        full_text: Option<FullText>,
    ) -> Result<(), SaveError> {
        let [repository, identifier] = [repository, identifier].map(str::to_owned);
        self.0.write(move |writing| put(writing, (&repository, &identifier), full_text.as_ref())).await
    }

    async fn due(
        &self,
        repository: &str,
        now_secs: UnixSecs,
        count_max: usize,
    ) -> Result<Vec<String>, SaveError> {
        let repository = repository.to_owned();
        self.0
            .run(move |database| {
                let waiting = database.begin_read()?.open_table(WAITING)?;
                let (first, end) =
                    ((repository.as_str(), i64::MIN, ""), (repository.as_str(), now_secs.plus(1).0, ""));
                let rows = waiting.range(first..end)?.take(count_max);
                rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
            })
            .await
    }

    async fn waiting(&self, repository: &str) -> Result<u64, SaveError> {
        let repository = repository.to_owned();
        self.0
            .run(move |database| {
                let count = database.begin_read()?.open_table(COUNTS)?.get(repository.as_str())?;
                Ok(count.map_or(0, |count| count.value()))
            })
            .await
    }

    async fn forget(&self, repository: &str) -> Result<(), SaveError> {
        loop {
            let repository = repository.to_owned();
            if !self.0.write(move |writing| forget(writing, &repository)).await? {
                return Ok(());
            }
        }
    }

    fn close(&self) {
        self.0.close();
    }
}
