//! The schemas of local repositories, by which metadata is checked.

use crate::config::Mapping;
use async_trait::async_trait;
use oaimend_check::{PayloadSchemas, Validation};
use oaimend_deposit::{MetadataCheck, Violation};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The schemas of all local repositories, by their ids.
#[derive(Debug, Default)]
pub(super) struct DepositSchemas(Mutex<BTreeMap<String, Arc<SchemaCheck>>>);

impl DepositSchemas {
    /// The check of this mapping; `None` if it has no schemas. A mapping that was read again reads its schemas again.
    pub(super) fn of(&self, mapping: &Arc<Mapping>) -> Option<Arc<SchemaCheck>> {
        let folder = mapping.local.as_ref()?.schema_dir.clone()?;
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let check = checks.get(mapping.id()).filter(|check| Arc::ptr_eq(&check.mapping, mapping));
        let check = check.cloned().unwrap_or_else(|| {
            Arc::new(SchemaCheck {
                mapping: Arc::clone(mapping),
                folder,
                schemas: tokio::sync::Mutex::default(),
            })
        });
        checks.insert(mapping.id().to_owned(), Arc::clone(&check));
        Some(check)
    }
}

/// The schemas of one mapping.
#[derive(Debug)]
pub(super) struct SchemaCheck {
    mapping: Arc<Mapping>,
    folder: PathBuf,
    /// `None` before the first record. Held while a document is judged.
    schemas: tokio::sync::Mutex<Option<PayloadSchemas>>,
}

#[async_trait]
impl MetadataCheck for SchemaCheck {
    async fn first_violation(&self, document: Vec<u8>) -> Result<Option<Violation>, String> {
        let mut opened = self.schemas.lock().await;
        let schemas = match opened.as_ref() {
            Some(schemas) => schemas,
            None => {
                let schemas = PayloadSchemas::open(&self.folder).await.map_err(|error| error.to_string())?;
                opened.insert(schemas)
            }
        };
        match schemas.validate(&document).await {
            Validation::Valid => Ok(None),
            Validation::Invalid(line, text) => Ok(Some(Violation { line, text })),
            Validation::Unknown(why) => Err(why),
        }
    }
}
