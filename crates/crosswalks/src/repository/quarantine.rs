//! The quarantine of records that cannot be converted.

use crate::unconverted::Unconverted;
use oaimend_base::clock::{Clock, utc_datetime};
use oaimend_repository::{DeliveredRecord, Failure, Reason};
use oaimend_store::{
    Quarantine, QuarantineBatch, QuarantineError, QuarantinedRecord, RepositoryId, WholeRecords,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where records go that cannot be converted.
#[derive(Clone, Debug)]
pub struct QuarantineSettings {
    /// The quarantine.
    pub store: Arc<dyn Quarantine>,
    /// Maximum size of the quarantine of the repository, in bytes.
    pub bytes_max: u64,
    /// Whether a page with such a record fails instead of leaving it out.
    pub fails_pages: bool,
    /// Whether the first setSpec of a record begins with the name of its repository, as in the view of all repositories.
    /// The record then goes to the quarantine of that repository.
    pub is_by_set: bool,
}

/// A record that cannot be converted, and the repository in whose quarantine it goes.
#[derive(Clone, Debug)]
pub(super) struct QuarantinedOf {
    pub(super) repository: String,
    pub(super) record: QuarantinedRecord,
}

/// The list that records are quarantined from.
#[derive(Clone, Copy)]
pub(super) struct QuarantinedFrom<'l> {
    pub(super) repository: &'l str,
    /// The format that was requested.
    pub(super) prefix: &'l str,
    /// The query of the request.
    pub(super) query: &'l str,
}

/// A record that cannot be converted, as the quarantine keeps it. The offset in a body that was never written is 0.
fn quarantined(record: DeliveredRecord, why: Unconverted) -> QuarantinedRecord {
    let mut identifier = String::new();
    oaimend_oai::escape(&record.identifier, &mut identifier);
    QuarantinedRecord {
        identifier: Some(identifier),
        why: why.name(),
        offset: 0,
        raw: record.xml.into_bytes(),
    }
}

impl QuarantineSettings {
    /// A record that cannot be converted, with its repository. `repository` is the name of the one that was asked.
    pub(super) fn record(
        &self,
        record: DeliveredRecord,
        why: Unconverted,
        repository: &str,
    ) -> QuarantinedOf {
        QuarantinedOf {
            repository: self.owner(&record, repository).to_owned(),
            record: quarantined(record, why),
        }
    }

    /// The repository in whose quarantine a record goes.
    fn owner<'o>(&self, record: &'o DeliveredRecord, repository: &'o str) -> &'o str {
        let set = if self.is_by_set { record.set_specs.first() } else { None };
        set.and_then(|set| set.split(':').next()).unwrap_or(repository)
    }

    /// Stores records before the bytes that follow them are sent.
    ///
    /// # Errors
    ///
    /// They cannot be stored, or the operator wants such pages to fail.
    pub(super) async fn put(
        &self,
        from: QuarantinedFrom<'_>,
        clock: &dyn Clock,
        records: Vec<QuarantinedOf>,
    ) -> Result<(), Failure> {
        let mut by_repository: BTreeMap<String, Vec<QuarantinedRecord>> = BTreeMap::new();
        for QuarantinedOf { repository, record } in records {
            by_repository.entry(repository).or_default().push(record);
        }
        for (repository, records) in by_repository {
            let batch = QuarantineBatch {
                repository,
                request: from.query.to_owned(),
                metadata_prefix: Some(from.prefix.to_owned()),
                received_at: utc_datetime(clock.now()),
                bytes_max: self.bytes_max,
                records,
            };
            self.store.put(batch).await.map_err(|error| match error {
                QuarantineError::Closed => Failure::new(Reason::TakenOver, error.to_string()),
                _ => Failure::new(Reason::Quarantine, error.to_string()),
            })?;
        }
        if !self.fails_pages {
            return Ok(());
        }
        let details = format!(
            "a record of {} cannot be converted into {}, and on_unrepairable is \"fail\"; see the quarantine",
            from.repository, from.prefix
        );
        Err(Failure::new(Reason::Unrepairable, details))
    }

    /// Marks the open entries of records that were converted as resolved. A failure is only logged: the entries are marked
    /// when the records are converted again.
    pub(super) async fn resolve(
        &self,
        from: QuarantinedFrom<'_>,
        clock: &dyn Clock,
        converted: &[DeliveredRecord],
    ) {
        let mut by_repository: BTreeMap<&str, Vec<&DeliveredRecord>> = BTreeMap::new();
        for record in converted {
            let owner = self.owner(record, from.repository);
            by_repository.entry(owner).or_default().push(record);
        }
        for (repository, records) in by_repository {
            let id = RepositoryId(repository);
            if self.store.has_open(id).await {
                let identifiers = records.into_iter().map(|record| record.identifier.clone()).collect();
                let identifiers = self.store.open_among(id, identifiers).await;
                self.resolve_in(repository, from, clock, identifiers).await;
            }
        }
    }

    async fn resolve_in(
        &self,
        repository: &str,
        from: QuarantinedFrom<'_>,
        clock: &dyn Clock,
        identifiers: Vec<String>,
    ) {
        if identifiers.is_empty() {
            return;
        }
        let whole = WholeRecords {
            repository: repository.to_owned(),
            headers_only: false,
            metadata_prefix: Some(from.prefix.to_owned()),
            identifiers,
            received_at: utc_datetime(clock.now()),
        };
        if let Err(error) = self.store.resolve(whole).await {
            tracing::warn!(repo = repository, %error, "quarantined records were converted, but their entries stay open");
        }
    }
}
