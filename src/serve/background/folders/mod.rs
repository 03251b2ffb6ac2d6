//! Publishes the files of folders in local repositories (Kepler: Maly, Zubair and Liu, 2001).
//!
//! The decisions are in `oaimend_deposit`. Here are the looks at the folders, and the file with what was published.

mod file_access;
mod follower;
mod retries;
mod service;
mod state_file;
mod status;

pub(crate) use service::FolderService;
pub(crate) use status::FolderStatuses;
