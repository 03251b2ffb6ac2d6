//! What operators and providers were told, in `data/notices.redb`.

use super::database::{SharedDatabase, read_json_rows};
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_store::databases::Databases;
use oaimend_store::notices::{NoticeStore, WatchedRepository};
use oaimend_store::save_error::SaveError;
use redb::{Database, ReadableDatabase, TableDefinition, TableError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Repository to [`WatchedRepository`] as JSON.
const WATCHED: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("watched");
/// Repository to the time of the last report to its provider, in seconds since 1970.
const REPORTS: TableDefinition<'static, &'static str, i64> = TableDefinition::new("reports");
const CACHE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct RedbNotices(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_notices(data: &Path, databases: &Databases) -> Result<Arc<dyn NoticeStore>, Error> {
    Ok(Arc::new(RedbNotices(SharedDatabase::open_among(
        databases,
        "notices",
        &data.join("notices.redb"),
        CACHE_BYTES,
    )?)))
}

impl RedbNotices {
    /// Runs `task` on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, SaveError> {
        let database = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || database.with(task)).await {
            Ok(result) => result?.map_err(|error| SaveError::Database(Box::new(error))),
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

    async fn report_sent_secs(&self, repository: &str) -> Result<Option<i64>, SaveError> {
        let repository = repository.to_owned();
        self.run(move |database| {
            let reading = database.begin_read()?;
            match reading.open_table(REPORTS) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                table => Ok(table?.get(repository.as_str())?.map(|secs| secs.value())),
            }
        })
        .await
    }

    async fn save_report_sent(&self, repository: &str, sent_secs: Option<i64>) -> Result<(), SaveError> {
        let repository = repository.to_owned();
        self.run(move |database| {
            let transaction = database.begin_write()?;
            {
                let mut table = transaction.open_table(REPORTS)?;
                match sent_secs {
                    Some(sent_secs) => table.insert(repository.as_str(), sent_secs)?,
                    None => table.remove(repository.as_str())?,
                };
            }
            Ok(transaction.commit()?)
        })
        .await
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
        let store = open_notices(data.path(), &Databases::default()).expect("it can be written to");
        assert!(store.watched().await.expect("readable").is_empty());
        let down = WatchedRepository { down_since_secs: Some(5), lost: 2, ..WatchedRepository::default() };
        for ids in [["x", "y"], ["y", "z"]] {
            let watched = ids.into_iter().map(|id| (id.to_owned(), down.clone())).collect();
            store.save_watched(watched).await.expect("writable");
        }
        store.close();
        assert!(matches!(store.watched().await, Err(SaveError::Closed)));
        let again = open_notices(data.path(), &Databases::default()).expect("it is closed");
        let watched = again.watched().await.expect("readable");
        let expected = ["y", "z"].map(|id| (id.to_owned(), down.clone()));
        assert_eq!(watched, BTreeMap::from(expected));
    }

    #[tokio::test]
    async fn times_of_reports_survive_a_restart() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let store = open_notices(data.path(), &Databases::default()).expect("it can be written to");
        assert_eq!(store.report_sent_secs("x").await.expect("readable"), None);
        for (repository, secs) in [("x", Some(5)), ("x", Some(7)), ("y", Some(6)), ("y", None)] {
            store.save_report_sent(repository, secs).await.expect("writable");
        }
        store.close();
        let again = open_notices(data.path(), &Databases::default()).expect("it is closed");
        let sent = [again.report_sent_secs("x").await, again.report_sent_secs("y").await];
        assert_eq!(sent.map(|sent| sent.expect("readable")), [Some(7), None]);
    }
}
