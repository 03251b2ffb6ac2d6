//! The texts of pages, by page. A second language is another version of this folder.
//!
//! The pages whose texts are not here yet have them in their templates.

pub(crate) mod list_notices;
pub(crate) mod record_notices;
pub(crate) mod sets;
