//! The components of an Open Digital Library as repositories: search, browse and recent (Suleman and Fox, "Beyond
//! Harvesting").

mod browse;
mod dialects;
mod recent;
mod search;

pub use browse::{BrowseCategory, OdlBrowse};
pub use recent::OdlRecent;
pub use search::OdlSearch;
