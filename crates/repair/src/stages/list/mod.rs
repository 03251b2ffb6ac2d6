//! The stages of a list: items, the text between them, tokens, and the end.

pub(crate) mod emit;
pub(crate) mod incomplete;
pub(crate) mod inter_item;
pub(crate) mod item_kind;
pub(crate) mod items;
pub(crate) mod list_end;
pub(crate) mod list_parts;
pub(crate) mod list_stage;
pub(crate) mod one_record;
pub(crate) mod oversized;
pub(crate) mod rewrite;
pub(crate) mod state;
pub(crate) mod token;
pub(crate) mod token_element;
pub(crate) mod v1_list;
