//! The keys `user` and `password_file` of a source and of a mail server.

use super::keys::{Keys, declare, file, string};
use oaimend_base::credentials::Credentials;
use std::path::{Path, PathBuf};

/// Declares both keys. One without the other is a fault.
pub(super) fn declare(
    credentials: &mut Option<Credentials>,
    keys: &mut Keys<'_, '_>,
    folder: &Path,
    meaning_of_user: &'static str,
) {
    let (mut user, mut password) = credentials.take().map(split).unzip();
    keys.key("user", string("user name", read_user), &mut user, meaning_of_user);
    declare! { keys:
        /// File with the password in its only line.
        password_file: file(folder, |path| Ok((read_password(&path)?, path))) => password,
    }
    keys.pair(["user", "password_file"], "a file with the password");
    let join = |(user, (password, file))| Credentials::new(user, password, file);
    *credentials = user.zip(password).map(join);
}

/// The user, and the password with its file.
fn split(credentials: Credentials) -> (String, (String, PathBuf)) {
    let password = (credentials.password().to_owned(), credentials.password_file().to_owned());
    (credentials.user().to_owned(), password)
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
