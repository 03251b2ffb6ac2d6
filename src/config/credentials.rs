//! The keys `user` and `password_file` of a source and of a mail server.

use super::file::Table;
use oaimend_base::credentials::Credentials;
use std::path::Path;

/// Reads `user` and `password_file` of a table; one without the other is a fault. A relative path starts at `folder`.
pub(super) fn read_credentials(table: &mut Table<'_, '_>, folder: &Path) -> Option<Credentials> {
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
    Some(Credentials::new(user?, password, password_file))
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
