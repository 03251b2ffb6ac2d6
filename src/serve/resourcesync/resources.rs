//! The metadata of the records of a format as resources. Their URLs are those of the gateway, with `?raw=PREFIX`.

use crate::serve::pages::records::raw_metadata;
use oaimend_pages::RecordForm;
use oaimend_pages::record::RecordAddress;
use oaimend_resourcesync::{ListUrls, Resources};
use oaimend_store::{MirrorError, StoredRecord};
use url::form_urlencoded;

/// See the module.
#[derive(Debug)]
pub(super) struct MetadataResources(pub(super) ListUrls);

impl Resources for MetadataResources {
    fn url(&self, identifier: &str) -> String {
        let format = &self.0.format;
        let address = RecordAddress { repository: &format.repository, identifier, format: None };
        address.raw_metadata(&self.0.base, &format.prefix)
    }

    fn record_url(&self, identifier: &str) -> String {
        let arguments =
            [("verb", "GetRecord"), ("metadataPrefix", &self.0.format.prefix), ("identifier", identifier)];
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
        format!("{}?{query}", self.0.repository)
    }

    fn metadata(&self, record: &StoredRecord) -> Result<Option<String>, MirrorError> {
        raw_metadata(record).map_err(|_| MirrorError::Damaged)
    }

    fn media_type(&self) -> &'static str {
        RecordForm::RawMetadata.content_type().split(';').next().unwrap_or_default()
    }
}
