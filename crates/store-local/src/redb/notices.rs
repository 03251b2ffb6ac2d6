//! The notifications that operators and providers received, in `data/notices.redb`.

use super::database::{SharedDatabase, read_json_rows};
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_oai::UnixSecs;
use oaimend_store::RepositoryId;
use oaimend_store::databases::{Databases, StoreName};
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
        StoreName::Notices,
        &data.join("notices.redb"),
        CACHE_BYTES,
    )?)))
}

#[async_trait]
impl NoticeStore for RedbNotices {
    async fn watched(&self) -> Result<BTreeMap<String, WatchedRepository>, SaveError> {
        let rows = self.0.run(|database| read_json_rows(database, WATCHED)).await?;
        Ok(rows.into_iter().collect())
    }

    async fn save_watched(&self, watched: BTreeMap<String, WatchedRepository>) -> Result<(), SaveError> {
        self.0.run(move |database| write(database, &watched)).await
    }

    async fn report_sent_secs(&self, repository: RepositoryId<'_>) -> Result<Option<UnixSecs>, SaveError> {
        let repository = repository.0.to_owned();
        self.0
            .run(move |database| {
                let reading = database.begin_read()?;
                match reading.open_table(REPORTS) {
                    Err(TableError::TableDoesNotExist(_)) => Ok(None),
                    table => Ok(table?.get(repository.as_str())?.map(|secs| UnixSecs(secs.value()))),
                }
            })
            .await
    }

    async fn save_report_sent(
        &self,
        repository: RepositoryId<'_>,
        sent_secs: Option<UnixSecs>,
    ) -> Result<(), SaveError> {
        let repository = repository.0.to_owned();
        self.0
            .run(move |database| {
                let transaction = database.begin_write()?;
                {
                    let mut table = transaction.open_table(REPORTS)?;
                    match sent_secs {
                        Some(sent_secs) => table.insert(repository.as_str(), sent_secs.0)?,
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
