//! The arguments of a repair of one item, besides the item.
//!
//! The stages create them for each item, and [`repair_item`](crate::repair_item::repair_item)
//! passes them on.

use crate::catalog::RepairSet;
use crate::config::{RepairConfig, RepositoryFacts};
use crate::lex::doctype::Entities;
use crate::lex::namespaces::Context;
use crate::limits::Limits;
use crate::passes::identify::KnownValues;
use crate::validate::envelope_names::EnvelopeNames;

/// The configuration and the facts that a repair of one item needs.
#[derive(Debug)]
pub(crate) struct Rules<'c> {
    pub(crate) limits: &'c Limits,
    pub(crate) off: RepairSet,
    pub(crate) enabled: RepairSet,
    pub(crate) text_charset: Option<&'c str>,
    pub(crate) entities: &'c Entities,
    pub(crate) known_values: KnownValues<'c>,
    pub(crate) repository: &'c RepositoryFacts,
}

impl<'c> Rules<'c> {
    /// The rules by the configuration of a response, with the entities that it declares.
    pub(crate) fn new(config: &'c RepairConfig, entities: &'c Entities) -> Self {
        let base_url = config.request.as_ref().map(|request| request.base_url.as_str());
        Self {
            limits: &config.limits,
            off: config.off,
            enabled: config.enabled,
            text_charset: config.text_charset.as_deref(),
            entities,
            known_values: KnownValues { values: &config.identify, base_url },
            repository: &config.repository,
        }
    }
}

/// The envelope around an item: its tags, and the namespaces that it declares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemEnvelope<'l> {
    pub(crate) names: &'l EnvelopeNames,
    pub(crate) contexts: OuterContexts,
}

/// The namespaces declared around an item, as received and as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OuterContexts {
    pub(crate) read: Context,
    pub(crate) written: Context,
}
