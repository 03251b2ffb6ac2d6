//! The repository index: the served repositories as the records of a repository.
//!
//! A harvester that follows it learns which repositories there are, and when each became harvestable (Jerez, Liu,
//! Hochstenbach and Van de Sompel, "The multi-faceted use of the OAI-PMH in the LANL Repository", section 4). The index
//! is stored as a repository of the mirror, so its stamps, lists, tokens and deleted records are those of the mirror:
//! a repository that is added has a later stamp than the responseDate of each list without it, and one that is removed
//! leaves a deleted record. [`update_index`] stores what has changed, and [`index_repository`] serves it.
//!
//! The creationTime of a repository is the stamp of the last change of its record, as in the paper, whose records never
//! change. A list with `until` lacks a record that has changed since, and its repository is not harvested in this turn.
//! In the next turn the new creationTime makes the harvester request all its records, so that it misses none.

mod records;

use crate::harvest::{tombstone, with_sets};
use crate::view::identify::fallback_email;
use crate::view::{MirrorRepository, MirroredSource, ViewOptions, ViewStores};
use oaimend_oai::{UnixSecs, escape};
use oaimend_store::{
    Catalog, CompleteHarvest, Document, HarvestProgress, IdentifierEntry, ListFilter, ListQuery,
    ListedFormat, ListedSet, MirrorError, MirrorStore, NewRecord, PageCommit, Prefix, RecordStatus,
    RepositoryId, StoredRecord,
};
use records::Format;
pub use records::{IndexedRepository, RepositoryKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the index: in the store, and as the last path segment of its URL.
pub const INDEX_NAME: &str = "_index";
/// The path of the schema of the format INDEX, below that of the index.
pub const SCHEMA_PATH: &str = "schema.xsd";
/// The schema of the format INDEX.
pub const SCHEMA: &str = include_str!("index.xsd");

/// Maximum number of records that are read from the store at once.
const PAGE_RECORDS_MAX: usize = 1_000;
/// Maximum number of bytes of these records.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// What the index contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSettings {
    /// The baseURL of the index.
    pub base_url: String,
    /// The name of the index.
    pub repository_name: String,
    /// The addresses of its operators; empty: one in the domain of the base URL.
    pub admin_emails: Vec<String>,
    /// The repositories.
    pub repositories: Vec<IndexedRepository>,
}

/// A repository over the stored index. [`update_index`] has stored it before.
pub fn index_repository(mut stores: ViewStores, options: ViewOptions) -> MirrorRepository {
    // The index is no part of the search.
    stores.query_sets = None;
    MirrorRepository::new(stores, options, MirroredSource { id: INDEX_NAME.to_owned(), ..Default::default() })
}

/// Whether the stored index lacks records that were damaged on disk. It is checked if a request has met damage.
/// [`update_index`] stores them again.
///
/// # Errors
///
/// The store cannot be read.
pub async fn is_index_damaged(stores: &ViewStores) -> Result<bool, MirrorError> {
    // Harvests do this for other repositories.
    stores.store.verify_suspected(RepositoryId(INDEX_NAME)).await?;
    for format in Format::ALL {
        let version = stores.store.version(RepositoryId(INDEX_NAME), Prefix(format.name())).await?;
        if version.is_some_and(|version| version.damaged > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The creationTime of each repository, by its baseURL.
///
/// # Errors
///
/// The store cannot be read.
pub async fn creation_times(stores: &ViewStores) -> Result<BTreeMap<String, UnixSecs>, MirrorError> {
    let records = stored_records(&*stores.store, Format::Index).await?;
    let live = records.into_iter().filter(|record| record.status == RecordStatus::Live);
    Ok(live.map(|record| (record.identifier, record.stamp_secs)).collect())
}

/// Stores the repositories that have been added, changed or removed since the last call, with one stamp.
///
/// If the returned future is dropped, its change continues, and the next call may meet it.
///
/// # Errors
///
/// The store cannot be read or written. The next call stores what is missing. [`MirrorError::Conflict`] if another call
/// stores the index at this moment.
pub async fn update_index(stores: &ViewStores, settings: &IndexSettings) -> Result<(), MirrorError> {
    let store = &stores.store;
    save_description(&**store, settings).await?;
    let mut updates = Vec::new();
    for format in Format::ALL {
        updates.extend(FormatUpdate::find(&**store, *format, settings).await?);
    }
    if updates.is_empty() {
        return Ok(());
    }
    let store = Arc::clone(store);
    let change = move |stamp_secs: UnixSecs| async move {
        for update in updates {
            store.commit(update.page(stamp_secs)).await?;
        }
        Ok(())
    };
    stores.stamps.commit_change(stores.clock.now_secs(), change).await
}

/// The changes of the records in one format.
struct FormatUpdate {
    format: Format,
    /// The progress as read, without which a commit is refused.
    progress: HarvestProgress,
    /// The repositories whose records are new or changed.
    changed: Vec<IndexedRepository>,
    /// The records of repositories that are not served any more.
    removed: Vec<NewRecord>,
    schema: String,
}

impl FormatUpdate {
    /// `None` if the stored records are those of the settings.
    async fn find(
        store: &dyn MirrorStore,
        format: Format,
        settings: &IndexSettings,
    ) -> Result<Option<Self>, MirrorError> {
        let (index, prefix) = (RepositoryId(INDEX_NAME), Prefix(format.name()));
        let schema = schema_url(settings);
        let progress = store.progress(index, prefix).await?;
        let stored = stored_records(store, format).await?;
        let mut live: BTreeMap<&str, &StoredRecord> = stored
            .iter()
            .filter(|record| record.status == RecordStatus::Live)
            .map(|record| (record.identifier.as_str(), record))
            .collect();
        let mut changed = Vec::new();
        for repository in &settings.repositories {
            let is_stored = live.remove(repository.base_url.as_str()).is_some_and(|stored| {
                let record = records::record(format, repository, stored.stamp_secs, &schema);
                record.bytes == stored.bytes && *record.set_specs == *stored.set_specs
            });
            if !is_stored {
                changed.push(repository.clone());
            }
        }
        // A harvester of a set must learn that a repository is gone from it.
        let mut removed: Vec<NewRecord> = live
            .into_values()
            .map(|record| with_sets(tombstone(entry(record)), record.set_specs.to_vec()))
            .collect();
        // A damaged record is in no list. It is stored again, unless its repository is not served any more.
        for identifier in store.damaged(index, prefix, None, usize::MAX).await? {
            if settings.repositories.iter().all(|repository| repository.base_url != identifier) {
                let datestamp_secs = UnixSecs(0);
                let status = RecordStatus::Live;
                removed.push(tombstone(IdentifierEntry { identifier, datestamp_secs, status }));
            }
        }
        if changed.is_empty() && removed.is_empty() && progress.last_complete.is_some() {
            return Ok(None);
        }
        Ok(Some(Self { format, progress, changed, removed, schema }))
    }

    /// The changes as a complete harvest.
    fn page(self, stamp_secs: UnixSecs) -> PageCommit {
        let mut progress = self.progress;
        progress.last_complete = Some(CompleteHarvest { from_secs: stamp_secs, lead_secs: 0 });
        let record = |repository| records::record(self.format, &repository, stamp_secs, &self.schema);
        PageCommit {
            repository: INDEX_NAME.to_owned(),
            prefix: self.format.name().to_owned(),
            stamp_secs,
            records: self.changed.into_iter().map(record).chain(self.removed).collect(),
            progress,
            ..PageCommit::default()
        }
    }
}

fn entry(record: &StoredRecord) -> IdentifierEntry {
    IdentifierEntry {
        identifier: record.identifier.clone(),
        datestamp_secs: record.datestamp_secs,
        status: record.status,
    }
}

/// All records in a format, deleted ones included.
async fn stored_records(store: &dyn MirrorStore, format: Format) -> Result<Vec<StoredRecord>, MirrorError> {
    let filter = ListFilter {
        repository: INDEX_NAME.to_owned(),
        prefix: format.name().to_owned(),
        ..ListFilter::default()
    };
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let query = ListQuery {
            filter: filter.clone(),
            after,
            count_max: PAGE_RECORDS_MAX,
            bytes_max: PAGE_BYTES_MAX,
            with_bytes: true,
        };
        let page = store.list(query).await?;
        records.extend(page.records);
        after = page.next;
        if after.is_none() {
            return Ok(records);
        }
    }
}

fn schema_url(settings: &IndexSettings) -> String {
    format!("{}/{SCHEMA_PATH}", settings.base_url)
}

/// Stores the formats, the sets and the Identify response, if they have changed.
async fn save_description(store: &dyn MirrorStore, settings: &IndexSettings) -> Result<(), MirrorError> {
    let index = RepositoryId(INDEX_NAME);
    let formats = vec![
        ListedFormat {
            prefix: Format::Index.name().to_owned(),
            schema: schema_url(settings),
            namespace: records::NAMESPACE.to_owned(),
        },
        ListedFormat {
            prefix: Format::DublinCore.name().to_owned(),
            schema: records::DUBLIN_CORE_SCHEMA.to_owned(),
            namespace: records::DUBLIN_CORE_NAMESPACE.to_owned(),
        },
    ];
    let sets = records::SETS
        .map(|(set_spec, name)| ListedSet { set_spec: set_spec.to_owned(), name: name.to_owned() });
    let catalog = Catalog { formats, sets: sets.into(), ..Catalog::default() };
    if store.catalog(index).await? != catalog {
        store.save_catalog(index, catalog).await?;
    }
    let mut identify = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><Identify>".to_owned();
    let mut field = |name: &str, text: &str| {
        identify.push_str(&format!("<{name}>"));
        escape(text, &mut identify);
        identify.push_str(&format!("</{name}>"));
    };
    field("repositoryName", &settings.repository_name);
    match settings.admin_emails.as_slice() {
        [] => field("adminEmail", &fallback_email(&settings.base_url)),
        emails => emails.iter().for_each(|email| field("adminEmail", email)),
    }
    identify.push_str("</Identify></OAI-PMH>");
    if store.document(index, Document::Identify).await?.is_none_or(|stored| stored != identify.as_bytes()) {
        store.save_document(index, Document::Identify, identify.into()).await?;
    }
    Ok(())
}
