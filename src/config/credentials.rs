//! User and password for a source or a mail server.
//!
//! Invariant: no message, log line or `Debug` output contains the password. Only requests to the
//! source or the mail server itself contain it.

use super::file::Table;
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
    /// A user and a password.
    #[cfg(test)]
    pub(super) fn new(user: &str, password: &str) -> Self {
        let password_file = PathBuf::new();
        Self { user: user.to_owned(), password: password.to_owned(), password_file }
    }

    /// Reads `user` and `password_file` of a table; one without the other is a fault. A relative path starts at `folder`.
    pub(super) fn read(table: &mut Table<'_, '_>, folder: &Path) -> Option<Self> {
        let user = table.read_parsed("user", read_user);
        let password = table.read_parsed("password_file", |text| {
            let file = folder.join(text);
            Ok((read_password(&file)?, file))
        });
        let [user_key, file_key] = ["user", "password_file"].map(|key| table.full_key(key));
        match (table.has_key("user"), table.has_key("password_file")) {
            (true, false) => table.report_missing(format!(
                "{user_key} is set without password_file; expected a file with the password"
            )),
            (false, true) => {
                table.report_missing(format!("{file_key} is set without user; expected both"));
            }
            _ => {}
        }
        let (password, password_file) = password?;
        Some(Self { user: user?, password, password_file })
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
    pub(super) fn password_file(&self) -> &Path {
        &self.password_file
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

fn read_user(text: &str) -> Result<String, String> {
    if !text.is_empty() && !text.contains(':') && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err("is not a user name; expected a text without ':' and control characters".to_owned())
}

fn read_password(path: &Path) -> Result<String, String> {
    let expected = "expected a file with the password in its only line";
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() || password.contains(char::is_control) {
        return Err(format!("contains no password; {expected}"));
    }
    Ok(password.to_owned())
}
