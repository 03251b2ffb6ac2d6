//! A conversion of records from one format into another.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use async_trait::async_trait;
use oaimend_repository::Failure;

/// Why there is no metadata in the other format.
#[derive(Clone, Debug)]
pub enum NotConverted {
    /// The record has none. It goes to quarantine, and other records are not affected.
    Record(Unconverted),
    /// No record can be converted now.
    Now(Failure),
}

impl From<Unconverted> for NotConverted {
    fn from(why: Unconverted) -> Self {
        Self::Record(why)
    }
}

/// Makes the metadata of a record in another format.
#[async_trait]
pub trait Conversion: std::fmt::Debug + Send + Sync {
    /// The XML of one element: the content of `metadata`. It declares all namespaces that it uses.
    ///
    /// # Errors
    ///
    /// The record has no such metadata, or no record can be converted now.
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted>;
}
