//! The overview and the pages of repositories.

mod activity;
mod aggregate_page;
mod federation_page;
mod overview_page;
mod repository_page;
mod sections;
pub(super) mod state;
mod unknown_page;
mod view_page;

pub use aggregate_page::AggregatePage;
pub use federation_page::FederationPage;
pub use overview_page::OverviewPage;
pub use repository_page::RepositoryPage;
pub use unknown_page::{RemovedRepositoryPage, UnknownPath, UnknownPathPage};
pub use view_page::ViewPage;

use oaimend_record::shorten;

/// Longest name of a repository that is shown, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Longest other text of a source that is shown, in bytes.
const TEXT_BYTES_MAX: usize = 500;

/// The start of a text, with a mark if it is longer.
pub(super) fn start_of(text: &str, bytes_max: usize) -> String {
    match shorten(text, bytes_max) {
        (whole, 0) => whole.to_owned(),
        (start, _) => format!("{start}…"),
    }
}
