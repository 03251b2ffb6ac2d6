//! What the overview and the pages of repositories contain.
//!
//! The caller gathers it from the stores. [`html`](super::html) renders it: for everyone, or for operators with more.
//! Times are texts such as `2024-05-06T07:08:09Z`. Texts of a source are untrusted, and of any length.
//!
//! Pure: no I/O, no clock.

mod check_result;
mod details;
mod summary;
mod timeline;

pub use check_result::{CheckResult, FailedRule};
pub use details::{
    FormatDetails, Identification, MirrorDetails, OperatorDetails, RepositoryDetails, SetDetails,
};
pub use summary::{RepositoryState, RepositorySummary};
pub use timeline::TimelineWindow;
pub use timeline::{Timeline, TimelineRow};
