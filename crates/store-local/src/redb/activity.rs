//! The activity of each repository in `data/activity.redb`.

use super::database::{SharedDatabase, read_json_rows};
use oaimend_base::error::Error;
use oaimend_store::activity::{ActivityLog, ActivityStore, RepositoryActivity};
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::save_error::SaveError;
use redb::{Database, TableDefinition};
use std::path::Path;
use std::sync::Arc;

/// Repository to [`RepositoryActivity`] as JSON.
const TABLE: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("activity");
const CACHE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct RedbActivity(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder, and reads it.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_activity(data: &Path, databases: &Databases) -> Result<ActivityLog, Error> {
    let database =
        SharedDatabase::open_among(databases, StoreName::Activity, &data.join("activity.redb"), CACHE_BYTES)?;
    let saved = database.load(|database| read_json_rows(database, TABLE))?;
    Ok(ActivityLog::new(Arc::new(RedbActivity(database)), saved))
}

impl ActivityStore for RedbActivity {
    fn save(&self, changed: &[(String, RepositoryActivity)]) -> Result<(), SaveError> {
        self.0
            .with(|database| write(database, changed))?
            .map_err(|error| SaveError::Database(Box::new(error)))
    }

    fn close(&self) {
        self.0.close();
    }
}

fn write(database: &Database, changed: &[(String, RepositoryActivity)]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (repository, activity) in changed {
            let json = serde_json::to_vec(activity).map_err(std::io::Error::other)?;
            table.insert(repository.as_str(), json.as_slice())?;
        }
    }
    Ok(transaction.commit()?)
}
