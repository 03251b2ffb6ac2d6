//! The activity of each repository in `data/activity.redb`.

use super::database::{SharedDatabase, read_json_rows};
use oaimend_base::error::Error;
use oaimend_store::activity::{ActivityLog, ActivityStore, RepositoryActivity};
use oaimend_store::databases::Databases;
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
        SharedDatabase::open_among(databases, "activity", &data.join("activity.redb"), CACHE_BYTES)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::activity::{ActivityUpdate, DayCounts, RepairExample, SourceResult};

    fn update(original: &str) -> ActivityUpdate {
        let record = Some("oai:x:1".to_owned());
        let example = RepairExample { record, original: original.to_owned(), replacement: String::new() };
        ActivityUpdate {
            counts: DayCounts { requests: 1, passed: 2, repaired: 3, quarantined: 4, failures: 5 },
            repairs: vec![("bare-ampersand", 3)],
            examples: vec![("bare-ampersand", example)],
            source: SourceResult::Failed {
                request: "verb=Identify".to_owned(),
                reason: "dns",
                details: "no".to_owned(),
                is_repetition: false,
            },
            oai_error: None,
        }
    }

    #[test]
    fn saved_activity_survives_a_restart() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let log = open_activity(data.path(), &Databases::default()).expect("it can be written to");
        log.note("x", 1_700_000_000, update("a & b"));
        log.note("y", 1_700_000_000, update("c"));
        log.save_changed();
        log.note("y", 1_700_000_001, update("d"));
        let (x, y) = (log.read("x", Clone::clone), log.read("y", Clone::clone));
        assert_eq!(y.last_days(1_700_000_001, 1)[0].requests, 2);
        log.close();
        log.note("x", 1_700_000_002, update("known to this process alone"));
        log.save_changed();
        let again = open_activity(data.path(), &Databases::default()).expect("it is closed");
        assert_eq!((again.read("x", Clone::clone), again.read("y", Clone::clone)), (x, y));
        assert_eq!(again.read("z", Clone::clone), RepositoryActivity::default());
    }
}
