//! A conversion of records from one format into another.

use crate::source_record::SourceRecord;
use async_trait::async_trait;
use oaimend_oai::named_enum;

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

named_enum! {
    /// Why a record cannot be converted: the reason of its quarantine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unconverted {
        /// The record is no record element with metadata, or its metadata cannot be read.
        Unreadable = "crosswalk-unreadable",
        /// The metadata has more elements or longer texts than a conversion keeps.
        TooLong = "crosswalk-limit",
        /// The metadata contains nothing that the crosswalk reads.
        NothingRead = "crosswalk-nothing-read",
    }
}
