//! Opens the stores of a data folder.

use super::RecordLog;
use crate::backup::{refuse_interrupted, remove_snapshots};
use crate::redb;
use oaimend_base::error::Error;
use oaimend_files::data_dir::{DataDirLock, WRITABLE, in_use};
use oaimend_files::{BrokenPages, CheckReports, StaticFiles};
use oaimend_store::{Databases, Store, TokenKey};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Locks and opens a data folder, and creates it if it does not exist.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub fn open(data: &Path) -> Result<Store, Error> {
    open_locked(DataDirLock::take(data)?.ok_or_else(|| in_use(data))?)
}

/// Opens a data folder that is locked already.
///
/// # Errors
///
/// The folder cannot be written to.
pub fn open_locked(lock: DataDirLock) -> Result<Store, Error> {
    let data = lock.path();
    refuse_interrupted(data)
        .map_err(|error| Error::State { path: data.to_owned(), message: error.to_string() })?;
    remove_snapshots(data).map_err(|error| Error::writing(data, error, WRITABLE))?;
    let databases = Databases::default();
    let quarantine = Arc::new(redb::RedbQuarantine::open(data, &databases)?);
    let ledger = Arc::new(redb::RedbLedger::open(data, &databases)?);
    let token_key = TokenKey::open(data)?;
    let profiles = redb::open_profiles(data, &databases)?;
    let capabilities = redb::open_capabilities(data, &databases)?;
    let (activity, check_reports) = (redb::open_activity(data, &databases)?, CheckReports::new(data));
    let notices = redb::open_notices(data, &databases)?;
    let views = redb::open_views(data, &databases)?;
    let identifiers = redb::open_identifiers(data, &databases)?;
    let full_texts = redb::open_full_texts(data, &databases)?;
    let (broken_pages, static_files) = (BrokenPages::new(data), StaticFiles::new(data));
    let mirror = Arc::new(RecordLog::open_among(data, &databases)?);
    let lock = Arc::new(Mutex::new(Some(lock)));
    Ok(Store {
        quarantine,
        ledger,
        profiles,
        capabilities,
        activity,
        notices,
        views,
        identifiers,
        full_texts,
        check_reports,
        token_key,
        broken_pages,
        static_files,
        mirror,
        databases,
        lock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::Verb;
    use oaimend_store::{LedgerError, QuarantineError, QuarantineQuery, RepositoryId};

    #[tokio::test]
    async fn a_data_folder_belongs_to_one_process_until_it_is_closed() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let store = open(data.path()).expect("it can be written to");
        let error = open(data.path()).expect_err("it is open");
        assert!(error.to_string().contains("give each its own with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
        let clone = store.clone();
        store.close();
        let next = open(data.path()).expect("it is closed, although clones exist");
        assert!(matches!(
            clone.quarantine.list(RepositoryId("x"), QuarantineQuery::default()).await,
            Err(QuarantineError::Closed)
        ));
        assert!(matches!(
            clone.ledger.token_target(RepositoryId("x"), Verb::ListRecords, "a").await,
            Err(LedgerError::Closed)
        ));
        assert!(
            next.quarantine
                .list(RepositoryId("x"), QuarantineQuery::default())
                .await
                .expect("readable")
                .is_empty()
        );
    }

    #[test]
    fn unfinished_files_of_a_killed_process_are_replaced() {
        let data = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(data.path().join("quarantine")).expect("writable");
        for file in [
            "quarantine/index.redb.part",
            "ledger.redb.part",
            "holdings.redb.part",
            "repositories.redb.part",
            "activity.redb.part",
            "notices.redb.part",
            "views.redb.part",
            "identifiers.redb.part",
            "full_texts.redb.part",
            "token.key.part",
        ] {
            std::fs::write(data.path().join(file), [0; 5000]).expect("writable");
        }
        open(data.path()).expect("unfinished files are ignored");
        let left: Vec<_> = std::fs::read_dir(data.path()).expect("readable").flatten().collect();
        assert!(left.iter().all(|file| file.path().extension().is_none_or(|e| e != "part")), "{left:?}");
    }
}
