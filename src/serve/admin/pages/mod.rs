//! The pages of the admin listener for browsers.

mod page;
pub(super) mod quarantine;
pub(super) mod repositories;
pub(super) mod status;

pub(super) use self::page::style_sheet;
