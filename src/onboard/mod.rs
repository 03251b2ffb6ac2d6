//! The first contact with many repositories: reads a list of base URLs, requests a few pages of each through the repairs,
//! and writes a mapping file for each one that works.
//!
//! `list` reads the formats in which registries publish base URLs, `names` finds a free repository id, `probe` sends the
//! requests, and `mapping_file` writes what the responses have shown. `oaimend onboard` runs them and prints the table.

mod list;
mod mapping_file;
mod names;
mod probe;

pub use list::{ListedSource, normalize_url, read_list};
pub use mapping_file::write_mapping;
pub use names::RepositoryIds;
pub use probe::{Findings, Prober};
