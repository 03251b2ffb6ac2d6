//! User and password for a source.
//!
//! What must stay true: the password stands in no text, no log and no `Debug`
//! output, and leaves only in a request to the source itself.

use super::file::Table;
use std::fmt;
use std::path::Path;

/// User and password for a source that wants them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Reads `user` and `password_file` of a mapping; neither alone makes sense.
    pub(super) fn read(table: &mut Table<'_, '_>, file: &Path) -> Option<Self> {
        let user = table.parsed("user", read_user);
        let folder = file.parent().unwrap_or(Path::new(""));
        let password = table.parsed("password_file", |text| read_password(&folder.join(text)));
        match (table.was_given("user"), table.was_given("password_file")) {
            (true, false) => {
                table.missing("user is set without password_file; the file of its password is wanted".into());
            }
            (false, true) => table.missing("password_file is set without user; whose password is it?".into()),
            _ => {}
        }
        Some(Self { user: user?, password: password? })
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password, for the request it is sent with and nothing else.
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
    Err("is no user name; a text without ':' and control characters is right".to_owned())
}

fn read_password(path: &Path) -> Result<String, String> {
    let right = "a file with the password in its only line is wanted";
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}; {right}"))?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() || password.contains(char::is_control) {
        return Err(format!("holds no password; {right}"));
    }
    Ok(password.to_owned())
}
