//! The file of a static repository, in place of a source that answers requests.

use super::file::Table;
use super::mapping::read_base_url;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// A static repository file and how it is looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFile {
    /// Where it lies on this machine; `None`: it is had from the mapping's `base_url`.
    pub path: Option<PathBuf>,
    /// How often it is looked at, at most.
    pub check: Duration,
}

impl StaticFile {
    /// Reads `static_file`, with the URL of the file; `None` where there is none.
    pub(super) fn read(root: &mut Table<'_, '_>, file: &Path) -> Option<(Url, Self)> {
        let given = root.parsed("static_file", |text| match text.contains("://") {
            true => read_base_url(text).map(|url| (url, None)).map_err(|_| {
                "is no URL of a static repository file; one like \"https://source.example/static.xml\" is \
                 right (http or https, without #, user and password)"
                    .to_owned()
            }),
            false => {
                let path = file.parent().unwrap_or(Path::new("")).join(text);
                local(&path).map(|(url, path)| (url, Some(path)))
            }
        });
        if !root.was_given("static_file") {
            root.refuse("static_check_secs", "it is for a static_file, and there is none");
        }
        let check = root.integer("static_check_secs", 0..=86_400).map(Duration::from_secs);
        if root.was_given("static_file") {
            root.refuse("base_url", "a mapping has either base_url or static_file");
            for key in NOT_ASKED {
                root.refuse(key, "a static_file is not asked for pages");
            }
        }
        given.map(|(url, path)| {
            let default = if path.is_some() { LOCAL_CHECK } else { REMOTE_CHECK };
            (url, Self { path, check: check.unwrap_or(default) })
        })
    }
}

/// The URL and the whole path of a file of this machine.
fn local(path: &Path) -> Result<(Url, PathBuf), String> {
    let right = "the path of a static repository file or its http URL is wanted";
    let meta = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}; {right}"))?;
    if !meta.is_file() {
        return Err(format!("is no file; {right}"));
    }
    std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}; {right}"))?;
    let whole = std::path::absolute(path).map_err(|error| format!("cannot be found: {error}; {right}"))?;
    let url = Url::from_file_path(&whole).map_err(|()| format!("is no path; {right}"))?;
    Ok((url, whole))
}

/// Keys that say how a source is asked for pages, which a file is not.
const NOT_ASKED: &[&str] = &[
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
