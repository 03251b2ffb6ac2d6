//! User and password for a source.
//!
//! Invariant: no message, log line or `Debug` output contains the password. Only requests to the
//! source itself contain it.

use super::file::Table;
use std::fmt;
use std::path::Path;

/// User and password for a source that requires them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// A user and a password.
    #[cfg(test)]
    pub(super) fn new(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned() }
    }

    /// Reads `user` and `password_file` of a mapping; one without the other is a fault.
    pub(super) fn read(table: &mut Table<'_, '_>, file: &Path) -> Option<Self> {
        let user = table.read_parsed("user", read_user);
        let folder = file.parent().unwrap_or(Path::new(""));
        let password = table.read_parsed("password_file", |text| read_password(&folder.join(text)));
        match (table.has_key("user"), table.has_key("password_file")) {
            (true, false) => {
                table.report_missing(
                    "user is set without password_file; expected a file with the password".into(),
                );
            }
            (false, true) => table.report_missing("password_file is set without user; expected both".into()),
            _ => {}
        }
        Some(Self { user: user?, password: password? })
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password; use it only for the request to the source.
    pub fn password(&self) -> &str {
        &self.password
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
