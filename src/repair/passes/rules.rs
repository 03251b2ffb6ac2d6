//! The arguments of a repair of one item, besides the item.

use crate::repair::catalog::RepairSet;
use crate::repair::config::RepositoryFacts;
use crate::repair::lex::namespaces::Context;
use crate::repair::limits::Limits;
use crate::repair::passes::identify::KnownValues;
use crate::repair::text::references::Entities;

/// What mending is told besides the item.
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

/// What is declared around an item, as it came and as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OuterContexts {
    pub(crate) read: Context,
    pub(crate) written: Context,
}
