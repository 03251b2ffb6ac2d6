//! `oaimend put` and `oaimend publish`: write the records of files to a local repository, on this machine or elsewhere.
//!
//! `collected` reads the files, `client` sends their records, and `published` remembers what a folder has published.

mod client;
mod collected;
mod publish;
mod published;
mod put;

pub(super) use publish::{PublishArguments, run as run_publish};
pub(super) use put::{PutArguments, run as run_put};
