//! The rules by which the characters of a node are read.

use crate::catalog::{RepairId, RepairSet};
use crate::lex::doctype::Entities;
use crate::limits::Limits;
use encoding_rs::Encoding;

/// The markup that counts in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// References count, `]]>` is illegal.
    Text,
    /// References count, `<` is illegal.
    Attribute,
    /// Characters only.
    Verbatim,
}

/// The enabled guesses about characters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guesses {
    /// Text that was encoded twice.
    pub(super) double: bool,
    /// C1 controls that were windows-1252.
    pub(super) c1: bool,
}

impl Guesses {
    /// The enabled guesses of a set of repairs.
    pub(crate) fn enabled_by(enabled: RepairSet) -> Self {
        Self { double: enabled.contains(RepairId::DoubleEncoded), c1: enabled.contains(RepairId::C1Control) }
    }

    /// Whether any guess is enabled.
    pub(crate) fn any(self) -> bool {
        self.double || self.c1
    }
}

/// The rules by which the characters of a text are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CharacterRules<'c> {
    pub(crate) entities: &'c Entities,
    pub(crate) guesses: Guesses,
    /// The charset of nodes that are neither UTF-8 nor windows-1252.
    pub(crate) charset: Option<&'static Encoding>,
    pub(crate) limits: &'c Limits,
}

impl<'c> CharacterRules<'c> {
    /// The rules for text outside items: only the entities of XML, no guess and no charset.
    pub(crate) fn plain(limits: &'c Limits) -> Self {
        Self { entities: &[], guesses: Guesses::default(), charset: None, limits }
    }
}
