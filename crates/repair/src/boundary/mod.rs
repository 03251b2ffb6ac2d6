//! The end of a broken item, and the search for items in removed text.

pub(crate) mod boundary_search;
pub(crate) mod open_elements;
pub(crate) mod record_boundary;
pub(crate) mod removable;
pub(crate) mod removal;
pub(crate) mod swallowed;
pub(crate) mod usual_end;
