//! The profile of each repository in `data/holdings.redb`.

use super::database::SharedDatabase;
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_oai::datestamp::Granularity;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::repository_profile::{
    ProfileDates, ProfileStore, RepositoryProfiles, SavedProfile, SetUsage,
};
use oaimend_store::save_error::SaveError;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Repository to granularity, earliestDatestamp and oldest datestamp; empty where unknown.
const DATES: TableDefinition<'_, &str, (&str, &str, &str)> = TableDefinition::new("dates");
/// Repository and setSpec to its usage, as flags.
const SETS: TableDefinition<'_, (&str, &str), u8> = TableDefinition::new("sets");
const ESCAPED: u8 = 1;
const LEGAL: u8 = 2;
const CACHE_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
struct RedbProfiles(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder, and reads it.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_profiles(data: &Path, databases: &Databases) -> Result<RepositoryProfiles, Error> {
    let (store, saved) = RedbProfiles::open(data, databases)?;
    Ok(RepositoryProfiles::new(Arc::new(store), saved))
}

impl RedbProfiles {
    fn open(data: &Path, databases: &Databases) -> Result<(Self, HashMap<String, SavedProfile>), Error> {
        let database = SharedDatabase::open_among(
            databases,
            StoreName::Profiles,
            &data.join("holdings.redb"),
            CACHE_BYTES,
        )?;
        let saved = database.load(read)?;
        Ok((Self(database), saved))
    }
}

#[async_trait]
impl ProfileStore for RedbProfiles {
    async fn save(&self, repository: &str, profile: SavedProfile) -> Result<(), SaveError> {
        let repository = repository.to_owned();
        self.0.save(move |database| write(database, &repository, &profile)).await
    }

    fn close(&self) {
        self.0.close();
    }
}

fn read(database: &Database) -> Result<HashMap<String, SavedProfile>, redb::Error> {
    let mut all: HashMap<String, SavedProfile> = HashMap::new();
    let transaction = database.begin_read()?;
    match transaction.open_table(DATES) {
        Ok(dates) => {
            for row in dates.iter()? {
                let (repository, value) = row?;
                let (granularity, earliest, oldest) = value.value();
                let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                all.entry(repository.value().to_owned()).or_default().dates = ProfileDates {
                    granularity: Granularity::from_name(granularity),
                    earliest: text(earliest),
                    oldest_seen: text(oldest),
                };
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    match transaction.open_table(SETS) {
        Ok(sets) => {
            for row in sets.iter()? {
                let (key, flags) = row?;
                let ((repository, name), flags) = (key.value(), flags.value());
                let usage = SetUsage { escaped: flags & ESCAPED != 0, legal: flags & LEGAL != 0 };
                all.entry(repository.to_owned()).or_default().sets.push((name.to_owned(), usage));
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(all)
}

fn write(database: &Database, repository: &str, profile: &SavedProfile) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let dates = &profile.dates;
        let earliest = dates.earliest.as_deref().unwrap_or_default();
        let oldest = dates.oldest_seen.as_deref().unwrap_or_default();
        let granularity = dates.granularity.map_or("", Granularity::name);
        transaction.open_table(DATES)?.insert(repository, (granularity, earliest, oldest))?;
        let mut sets = transaction.open_table(SETS)?;
        for (name, usage) in &profile.sets {
            let flags = u8::from(usage.escaped) * ESCAPED + u8::from(usage.legal) * LEGAL;
            sets.insert((repository, name.as_str()), flags)?;
        }
    }
    Ok(transaction.commit()?)
}
