//! The keys of a static repository, whose file is used instead of a server.

use super::base_url::read_base_url;
use super::file::Table;
use oaimend_upstream::settings::StaticFile;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Reads `static_file`, with the URL of the file; `None` if the key is absent.
pub(super) fn read_static_file(root: &mut Table<'_, '_>, file: &Path) -> Option<(Url, StaticFile)> {
    let given = root.read_parsed("static_file", |text| match text.contains("://") {
            true => read_base_url(text).map(|url| (url, None)).map_err(|_| {
                "is not a URL of a static repository file; expected one such as \"https://source.example/static.xml\" \
                 (http or https, without #, user and password)"
                    .to_owned()
            }),
            false => {
                let path = file.parent().unwrap_or(Path::new("")).join(text);
                resolve_local_file(&path).map(|(url, path)| (url, Some(path)))
            }
        });
    if !root.has_key("static_file") {
        root.reject_key("static_check_secs", "it requires static_file");
    }
    let check = root.read_integer("static_check_secs", 0..=86_400).map(Duration::from_secs);
    if root.has_key("static_file") {
        root.reject_key("base_url", "a mapping has either base_url or static_file");
        for key in NOT_REQUESTED {
            root.reject_key(key, "a static_file is not requested page by page");
        }
    }
    given.map(|(url, path)| {
        let default = if path.is_some() { LOCAL_CHECK } else { REMOTE_CHECK };
        (url, StaticFile { path, check: check.unwrap_or(default) })
    })
}

/// Returns the URL and the absolute path of a file on this machine.
fn resolve_local_file(path: &Path) -> Result<(Url, PathBuf), String> {
    let expected = "expected the path of a static repository file or its http URL";
    let meta = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    if !meta.is_file() {
        return Err(format!("is not a file; {expected}"));
    }
    std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
    let whole = std::path::absolute(path).map_err(|error| format!("cannot be found: {error}; {expected}"))?;
    let url = Url::from_file_path(&whole).map_err(|()| format!("is not a path; {expected}"))?;
    Ok((url, whole))
}

/// Keys about requests for pages, which a static repository file does not get.
const NOT_REQUESTED: &[&str] = &[
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

const LOCAL_CHECK: Duration = Duration::from_secs(2);
const REMOTE_CHECK: Duration = Duration::from_secs(300);
