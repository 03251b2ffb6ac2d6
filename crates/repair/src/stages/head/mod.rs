//! The stages before the first item: decoding, prolog, head, errors.

pub(crate) mod decode;
pub(crate) mod error_element;
pub(crate) mod error_text;
pub(crate) mod errors;
pub(crate) mod foreign;
pub(crate) mod head_fields;
pub(crate) mod head_stage;
pub(crate) mod prolog;
pub(crate) mod repair_head;
pub(crate) mod request_facts;
pub(crate) mod response_date;
pub(crate) mod root_tag;
pub(crate) mod top_level_tag;
pub(crate) mod unopened_list;
pub(crate) mod v1_head;
pub(crate) mod verb_element;
