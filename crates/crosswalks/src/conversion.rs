//! A conversion of records from one format into another.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use async_trait::async_trait;

/// Makes the metadata of a record in another format.
#[async_trait]
pub trait Conversion: std::fmt::Debug + Send + Sync {
    /// The XML of one element: the content of `metadata`. It declares all namespaces that it uses.
    ///
    /// # Errors
    ///
    /// The record has no such metadata. It goes to quarantine.
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, Unconverted>;
}
