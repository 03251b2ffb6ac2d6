//! The capabilities of each source in `data/repositories.redb`.

use super::database::{SharedDatabase, read_json_rows};
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_store::capabilities::{CapabilityStore, DetectedCapabilities, Detection};
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::save_error::SaveError;
use redb::{Database, TableDefinition};
use std::path::Path;
use std::sync::Arc;

/// Repository to [`Detection`] as JSON.
const TABLE: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("repositories");
const CACHE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct RedbCapabilities(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder, and reads it.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_capabilities(data: &Path, databases: &Databases) -> Result<DetectedCapabilities, Error> {
    let database = SharedDatabase::open_among(
        databases,
        StoreName::Capabilities,
        &data.join("repositories.redb"),
        CACHE_BYTES,
    )?;
    let saved = database.load(|database| read_json_rows(database, TABLE))?;
    Ok(DetectedCapabilities::new(Arc::new(RedbCapabilities(database)), saved))
}

#[async_trait]
impl CapabilityStore for RedbCapabilities {
    async fn save(&self, repository: &str, detection: Detection) -> Result<(), SaveError> {
        let repository = repository.to_owned();
        self.0.save(move |database| write(database, &repository, &detection)).await
    }

    fn close(&self) {
        self.0.close();
    }
}

fn write(database: &Database, repository: &str, detection: &Detection) -> Result<(), redb::Error> {
    let json = serde_json::to_vec(detection).map_err(std::io::Error::other)?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?.insert(repository, json.as_slice())?;
    Ok(transaction.commit()?)
}
