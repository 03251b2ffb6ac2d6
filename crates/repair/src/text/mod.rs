//! Characters and references of a text node, and the list of edits.

pub(crate) mod bytes;
pub(crate) mod characters;
pub(crate) mod charset;
pub(crate) mod controls;
pub(crate) mod cut;
pub(crate) mod edits;
pub(crate) mod entity_scope;
pub(crate) mod escape;
pub(crate) mod fixed_positions;
pub(crate) mod leftovers;
pub(crate) mod legal;
pub(crate) mod marks;
pub(crate) mod node_rules;
pub(crate) mod references;
