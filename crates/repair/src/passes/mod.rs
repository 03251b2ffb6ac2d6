//! The passes over one item. Each pass is a pure function from text to edits.

pub(crate) mod balanced;
pub(crate) mod end_tag;
pub(crate) mod formats;
pub(crate) mod granularity;
pub(crate) mod header;
pub(crate) mod identify;
pub(crate) mod lenient_tag;
pub(crate) mod markup;
pub(crate) mod name_case;
pub(crate) mod plain_field;
pub(crate) mod prefixes;
pub(crate) mod provenance;
pub(crate) mod rules;
pub(crate) mod schema_instance;
pub(crate) mod strip_prefix;
pub(crate) mod tag_names;
pub(crate) mod tree;
pub(crate) mod tree_parts;
