//! The token file of a client, which only its owner may read.

use oaimend_base::error::Error;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Longest file with a token, in bytes.
pub const TOKEN_FILE_BYTES_MAX: u64 = 4_096;

/// Why the token of a client cannot be read from its file. The user of the client must act.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}; {EXPECTED}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error("{}: {}", path.display(), describe_access(path, *mode))]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions, such as `0o644`.
        mode: u32,
    },
    /// The file does not contain one token.
    #[error("{}: {NO_TOKEN}; {EXPECTED}", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// The problem of a file without a token.
const NO_TOKEN: &str = "contains no token";
/// Remedy for a file without a token.
const EXPECTED: &str = "name a file with the token that oaimend token create printed";

/// Reads the token of a client, without the blanks and line ends around it. Blocks on the disk.
///
/// The permissions are those of the opened file, so it cannot be exchanged between the check and the read. A link is
/// judged by the file that it leads to. The text of an error does not contain the token.
///
/// # Errors
///
/// The file cannot be read, the group or others have any permission for it, or it contains no token: printable ASCII
/// without blanks, at most [`TOKEN_FILE_BYTES_MAX`] bytes.
pub fn read_token_file(path: &Path) -> Result<String, TokenFileError> {
    let unreadable = |source| TokenFileError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(TokenFileError::OpenToOthers { path: path.to_owned(), mode });
    }
    let mut content = Vec::new();
    file.take(TOKEN_FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unreadable)?;
    let is_too_long = content.len() as u64 > TOKEN_FILE_BYTES_MAX;
    let token = content.trim_ascii();
    match str::from_utf8(token) {
        Ok(text) if !is_too_long && !text.is_empty() && token.iter().all(u8::is_ascii_graphic) => {
            Ok(text.to_owned())
        }
        _ => Err(TokenFileError::NoToken { path: path.to_owned() }),
    }
}

impl From<TokenFileError> for Error {
    fn from(error: TokenFileError) -> Self {
        match error {
            TokenFileError::Unreadable { path, source } => Self::reading(&path, source, EXPECTED),
            TokenFileError::OpenToOthers { path, mode } => {
                Self::State { message: describe_access(&path, mode), path }
            }
            TokenFileError::NoToken { path } => {
                Self::State { path, message: format!("{NO_TOKEN}; {EXPECTED}") }
            }
        }
    }
}

fn describe_access(path: &Path, mode: u32) -> String {
    format!(
        "has mode {mode:04o}, by which other users can read or change the token; run: chmod 600 {}",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn write(path: &Path, content: &[u8], mode: u32) {
        fs::write(path, content).expect("writable");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its owner may");
    }

    #[test]
    fn token_files_that_others_can_read_are_refused_with_path_and_mode() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        for mode in [0o600, 0o400, 0o700] {
            write(&path, b" oaimend_secret \r\n", mode);
            assert_eq!(read_token_file(&path).expect("a private file"), "oaimend_secret");
        }
        let link = folder.path().join("link");
        symlink(&path, &link).expect("writable");
        assert_eq!(read_token_file(&link).expect("a link to a private file"), "oaimend_secret");
        for mode in [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o601, 0o666] {
            write(&path, b"oaimend_secret\n", mode);
            for path in [&path, &link] {
                let error = read_token_file(path).expect_err("others have access").to_string();
                let path = path.display();
                assert!(error.starts_with(&format!("{path}: has mode {mode:04o}, ")), "{error}");
                assert!(error.ends_with(&format!("; run: chmod 600 {path}")), "{error}");
                assert!(!error.contains("secret"), "{error}");
            }
        }
    }

    #[test]
    fn a_token_file_contains_one_token() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        let longest = vec![b'x'; usize::try_from(TOKEN_FILE_BYTES_MAX).expect("a small number")];
        write(&path, &longest, 0o600);
        assert_eq!(read_token_file(&path).expect("the longest token").as_bytes(), longest);
        let with_blanks = [b"secret", vec![b' '; longest.len()].as_slice()].concat();
        for content in [
            &b""[..],
            b"\n",
            b"Bearer secret",
            b"secret\nsecret",
            b"secr\xe9t",
            "sécret".as_bytes(),
            &with_blanks,
        ] {
            write(&path, content, 0o600);
            let error = read_token_file(&path).expect_err("no token").to_string();
            assert!(error.contains("token: contains no token; name a file with the token"), "{error}");
        }
        for path in [folder.path().join("missing"), folder.path().to_owned()] {
            let shown = path.display().to_string();
            let private = Permissions::from_mode(0o700);
            fs::set_permissions(folder.path(), private).expect("its owner may");
            let error = read_token_file(&path).expect_err("no file").to_string();
            assert!(error.starts_with(&format!("{shown}: cannot be read: ")), "{error}");
        }
    }
}
