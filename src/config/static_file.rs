//! The keys of the address of a source: a server, a static repository file, or a tape.

use super::base_url::read_base_url;
use super::keys::{Keys, declare, seconds, secret};
use oaimend_upstream::settings::{SourceMapping, StaticFile};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// The keys of the address of a source: `base_url`, or `static_file` with its check, or `tape_file`. They are never
/// written, because a URL can contain secrets. A local repository has none.
pub(super) fn declare_address(
    source: &mut SourceMapping,
    keys: &mut Keys<'_, '_>,
    folder: &Path,
    is_local: bool,
) {
    let (mut given_file, mut given_tape, mut base_url) = (None, None, None);
    let mut check = source.static_file.as_ref().map(|file| file.check);
    declare! { keys:
        /// A static repository file, instead of `base_url`.
        static_file: secret("URL or path", |text| read_static_file(text, folder)) => given_file,
    }
    if let Some(table) = keys.reading() {
        if table.has_key("static_file") {
            table.reject_key("tape_file", "a mapping has either static_file or tape_file");
        } else {
            table.reject_key("static_check_secs", "it requires static_file");
        }
    }
    declare! { keys:
        /// A tape (`oaimend tape`) with its index beside it, instead of `base_url`.
        tape_file: secret("path", |text| resolve_local_file(&folder.join(text), "the path of a tape")) => given_tape,
    }
    if let Some(table) = keys.reading() {
        let file = ["static_file", "tape_file"].into_iter().find(|key| table.has_key(key));
        if let Some(file) = file {
            table.reject_key("base_url", &format!("a mapping has either base_url or {file}"));
            for key in NOT_REQUESTED {
                table.reject_key(key, &format!("a {file} is not requested page by page"));
            }
        }
    }
    declare! { keys:
        /// The base URL of the source: http or https, without `verb=`, user and password. A query in it is sent
        /// with every request.
        base_url: secret("URL", read_base_url) => base_url,
        /// The shortest time between two checks for a new version of the static file. Without it: 300
        /// for a URL, 2 for a path.
        static_check_secs: seconds(0..=86_400) => check,
    }
    if let Some(table) = keys.reading()
        && !is_local
        && ["static_file", "tape_file", "base_url"].iter().all(|key| !table.has_key(key))
    {
        table.report_missing(
            "base_url is missing; expected base_url = \"https://source.example/oai\", static_file or \
                 tape_file"
                .to_owned(),
        );
    }
    if let Some((url, path)) = given_file {
        let default = if path.is_some() { LOCAL_CHECK } else { REMOTE_CHECK };
        source.static_file = Some(StaticFile { path, check: check.unwrap_or(default) });
        source.base_url = url;
    } else if let Some((url, path)) = given_tape {
        source.tape_file = Some(path);
        source.base_url = url;
    } else if let Some(url) = base_url {
        source.base_url = url;
    }
}

/// The URL of a static repository file, and its path if it is on this machine.
fn read_static_file(text: &str, folder: &Path) -> Result<(Url, Option<PathBuf>), String> {
    if !text.contains("://") {
        let expected = "the path of a static repository file or its http URL";
        return resolve_local_file(&folder.join(text), expected).map(|(url, path)| (url, Some(path)));
    }
    read_base_url(text).map(|url| (url, None)).map_err(|_| {
        "is not a URL of a static repository file; expected one such as \"https://source.example/static.xml\" \
         (http or https, without #, user and password)"
            .to_owned()
    })
}

/// Returns the URL and the absolute path of a file on this machine.
pub(super) fn resolve_local_file(path: &Path, expected: &str) -> Result<(Url, PathBuf), String> {
    let expected = format!("expected {expected}");
    let meta = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    if !meta.is_file() {
        return Err(format!("is not a file; {expected}"));
    }
    std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    let whole = std::path::absolute(path).map_err(|error| format!("cannot be found: {error}; {expected}"))?;
    let url = Url::from_file_path(&whole).map_err(|()| format!("is not a path; {expected}"))?;
    Ok((url, whole))
}

/// Keys about requests for pages, which a file does not get.
pub(super) const NOT_REQUESTED: &[&str] = &[
    "method",
    "page_fallback",
    "refetch_broken_records",
    "list_order",
    "version",
    "v1_headers_via",
    "request_granularity",
    "default_set",
    "raw_token",
    "verb_first",
    "politeness",
];

/// How often a file on this machine is checked.
pub(super) const LOCAL_CHECK: Duration = Duration::from_secs(2);
const REMOTE_CHECK: Duration = Duration::from_secs(300);
