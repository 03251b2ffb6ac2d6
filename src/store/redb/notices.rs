//! What operators were told, in `data/notices.redb`.

use super::database::{ClosableDatabase, read_json_rows};
use crate::error::Error;
use crate::store::notices::{NoticeStore, WatchedRepository};
use crate::store::save_error::SaveError;
use async_trait::async_trait;
use redb::{Database, TableDefinition};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Repository to [`WatchedRepository`] as JSON.
const WATCHED: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("watched");
const CACHE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct RedbNotices(Arc<ClosableDatabase>);

/// Opens or creates the file in the data folder.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(in crate::store) fn open_notices(data: &Path) -> Result<Arc<dyn NoticeStore>, Error> {
    let database = ClosableDatabase::open(&data.join("notices.redb"), CACHE_BYTES)?;
    Ok(Arc::new(RedbNotices(Arc::new(database))))
}

impl RedbNotices {
    /// Runs `task` on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, SaveError> {
        let database = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || database.with(task)).await {
            Ok(Some(result)) => result.map_err(|error| SaveError::Database(Box::new(error))),
            Ok(None) => Err(SaveError::Closed),
            Err(error) => Err(SaveError::Stopped(error.to_string())),
        }
    }
}

#[async_trait]
impl NoticeStore for RedbNotices {
    async fn watched(&self) -> Result<BTreeMap<String, WatchedRepository>, SaveError> {
        let rows = self.run(|database| read_json_rows(database, WATCHED)).await?;
        Ok(rows.into_iter().collect())
    }

    async fn save_watched(&self, watched: BTreeMap<String, WatchedRepository>) -> Result<(), SaveError> {
        self.run(move |database| write(database, &watched)).await
    }

    fn close(&self) {
        self.0.close();
    }
}

fn write(database: &Database, watched: &BTreeMap<String, WatchedRepository>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(WATCHED)?;
        table.retain(|repository, _| watched.contains_key(repository))?;
        for (repository, state) in watched {
            let json = serde_json::to_vec(state).map_err(std::io::Error::other)?;
            table.insert(repository.as_str(), json.as_slice())?;
        }
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn saved_state_replaces_the_older_one_and_survives_a_restart() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let store = open_notices(data.path()).expect("it can be written to");
        assert!(store.watched().await.expect("readable").is_empty());
        let down = WatchedRepository { down_since_secs: Some(5), lost: 2, ..WatchedRepository::default() };
        for ids in [["x", "y"], ["y", "z"]] {
            let watched = ids.into_iter().map(|id| (id.to_owned(), down.clone())).collect();
            store.save_watched(watched).await.expect("writable");
        }
        store.close();
        assert!(matches!(store.watched().await, Err(SaveError::Closed)));
        let again = open_notices(data.path()).expect("it is closed");
        let watched = again.watched().await.expect("readable");
        let expected = ["y", "z"].map(|id| (id.to_owned(), down.clone()));
        assert_eq!(watched, BTreeMap::from(expected));
    }
}
