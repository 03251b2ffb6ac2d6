//! Fetches the full texts of mirrored records, and reads their references.
//!
//! | file | content |
//! |---|---|
//! | `hosts` | when a host may be requested: its pace, and its robots.txt |
//! | `fetcher` | one full text: requests, redirects, limits, and its references |
//! | `follower` | the records of a repository: which full texts are due |
//! | `service` | all repositories |

mod fetcher;
mod follower;
mod hosts;
mod service;

pub(crate) use service::FullTextService;
