//! The quarantine of records that cannot be converted.

use crate::conversion::Unconverted;
use oaimend_base::clock::{Clock, utc_datetime};
use oaimend_repository::{DeliveredRecord, Failure, Reason};
use oaimend_store::{
    Quarantine, QuarantineBatch, QuarantineError, QuarantinedRecord, RepositoryId, WholeRecords,
};
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
pub(super) fn quarantined(record: DeliveredRecord, why: Unconverted) -> QuarantinedRecord {
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
    /// Stores records before the bytes that follow them are sent.
    ///
    /// # Errors
    ///
    /// They cannot be stored, or the operator wants such pages to fail.
    pub(super) async fn put(
        &self,
        from: QuarantinedFrom<'_>,
        clock: &dyn Clock,
        records: Vec<QuarantinedRecord>,
    ) -> Result<(), Failure> {
        let batch = QuarantineBatch {
            repository: from.repository.to_owned(),
            request: from.query.to_owned(),
            metadata_prefix: Some(from.prefix.to_owned()),
            received_at: utc_datetime(clock.now()),
            bytes_max: self.bytes_max,
            records,
        };
        match self.store.put(batch).await {
            Ok(()) if self.fails_pages => {
                let details = format!(
                    "a record of {} cannot be converted into {}, and on_unrepairable is \"fail\"; see the quarantine",
                    from.repository, from.prefix
                );
                Err(Failure::new(Reason::Unrepairable, details))
            }
            Ok(()) => Ok(()),
            Err(error @ QuarantineError::Closed) => Err(Failure::new(Reason::TakenOver, error.to_string())),
            Err(error) => Err(Failure::new(Reason::Quarantine, error.to_string())),
        }
    }

    /// Marks the open entries of records that were converted as resolved. A failure is only logged: the entries are marked
    /// when the records are converted again.
    pub(super) async fn resolve(
        &self,
        from: QuarantinedFrom<'_>,
        clock: &dyn Clock,
        identifiers: impl Iterator<Item = String>,
    ) {
        let repository = RepositoryId(from.repository);
        if !self.store.has_open(repository).await {
            return;
        }
        let identifiers = self.store.open_among(repository, identifiers.collect()).await;
        if identifiers.is_empty() {
            return;
        }
        let whole = WholeRecords {
            repository: from.repository.to_owned(),
            headers_only: false,
            metadata_prefix: Some(from.prefix.to_owned()),
            identifiers,
            received_at: utc_datetime(clock.now()),
        };
        if let Err(error) = self.store.resolve(whole).await {
            tracing::warn!(repo = from.repository, %error, "quarantined records were converted, but their entries stay open");
        }
    }
}
