//! User and password for a source or a mail server.
//!
//! Invariant: no message, log line or `Debug` output contains the password. Only requests to the
//! source or the mail server itself contain it.

use std::fmt;
use std::path::{Path, PathBuf};

/// User and password for a source or a mail server that requires them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
    password_file: PathBuf,
}

impl Credentials {
    /// A user, the password, and the file from which it was read.
    pub fn new(user: String, password: String, password_file: PathBuf) -> Self {
        Self { user, password, password_file }
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password; use it only for the request to the source or the mail server.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The file of the password. A change of it is a change of the settings.
    pub fn password_file(&self) -> &Path {
        &self.password_file
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
