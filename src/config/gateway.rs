//! The keys of the gateway: the `[gateway]` table of `oaimend.toml`, and `records` of a mapping.

use super::file::Table;
use super::identify::{read_email, read_name};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The pages for people and crawlers: the `[gateway]` table of `oaimend.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayPolicy {
    /// Whether mirrored repositories have pages.
    pub enabled: bool,
    /// The name of the site, on every page.
    pub title: String,
    /// The mail address of the operator, on every page.
    pub contact: Option<String>,
    /// What `/robots.txt` allows to crawlers.
    pub robots: Robots,
    /// The style sheet of the operator. Pages link to it after their own one.
    pub theme: Option<Theme>,
    /// The sites whose scripts may read responses.
    pub cors_origins: CorsOrigins,
}

/// The sites whose scripts may read responses (CORS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    /// All.
    Any,
    /// These origins, such as `https://search.example.org`.
    Listed(Vec<String>),
}

impl Default for CorsOrigins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// What `/robots.txt` allows to crawlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Robots {
    /// Everything.
    #[default]
    Allow,
    /// OAI-PMH requests only.
    Deny,
}

/// A style sheet in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The file.
    pub path: PathBuf,
    /// Its content, at most 64 KiB.
    pub css: String,
}

/// What the URLs of records show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordPages {
    /// A page of our own.
    #[default]
    Own,
    /// The page at the source to which the record links; our own page if there is no link.
    Link,
    /// Nothing.
    Off,
}

impl Default for GatewayPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            title: "oaimend".to_owned(),
            contact: None,
            robots: Robots::Allow,
            theme: None,
            cors_origins: CorsOrigins::default(),
        }
    }
}

impl GatewayPolicy {
    /// Reads the `[gateway]` table of `oaimend.toml`, which is in `folder`.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>, folder: &Path) {
        self.enabled = table.read_bool("enabled").unwrap_or(self.enabled);
        if let Some(title) = table.read_parsed("title", read_name) {
            self.title = title;
        }
        self.contact = table.read_parsed("contact", read_email);
        self.robots = table.read_parsed("robots", read_robots).unwrap_or_default();
        self.theme = table.read_parsed("theme_css", |text| read_theme(folder.join(text)));
        self.cors_origins = read_cors_origins(&mut table);
        table.finish();
    }
}

fn read_cors_origins(table: &mut Table<'_, '_>) -> CorsOrigins {
    let mut origins = Vec::new();
    let mut allows_all = false;
    for origin in table.read_strings("cors_origins") {
        match origin.value.as_str() {
            "*" => allows_all = true,
            text if is_origin(text) => origins.push(origin.value),
            text => table.report_fault(
                origin.span,
                format!("gateway.cors_origins: \"{}\" is not an origin; expected \"*\", or one such as \"https://search.example.org\"", text.escape_debug()),
            ),
        }
    }
    if allows_all { CorsOrigins::Any } else { CorsOrigins::Listed(origins) }
}

/// Whether a text is an origin as browsers send it: a scheme, a host, and a port that is not the default one.
fn is_origin(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| url.origin().is_tuple() && url.origin().ascii_serialization() == text)
}

/// Longest style sheet of an operator, in bytes.
const THEME_BYTES_MAX: usize = 64 << 10;

fn read_theme(path: PathBuf) -> Result<Theme, String> {
    let expected = format!("expected a CSS file in UTF-8 of at most {THEME_BYTES_MAX} bytes");
    let mut css = String::new();
    let limit = THEME_BYTES_MAX as u64 + 1;
    let read = File::open(&path).and_then(|file| file.take(limit).read_to_string(&mut css));
    match read {
        Ok(bytes) if bytes <= THEME_BYTES_MAX => Ok(Theme { path, css }),
        Ok(_) => Err(format!("is too long; {expected}")),
        Err(error) => Err(format!("cannot be read: {error}; {expected}")),
    }
}

fn read_robots(text: &str) -> Result<Robots, String> {
    match text {
        "allow" => Ok(Robots::Allow),
        "deny" => Ok(Robots::Deny),
        _ => Err("is not known; expected \"allow\" or \"deny\"".to_owned()),
    }
}

/// Parses the value of `records`.
pub(super) fn read_records(text: &str) -> Result<RecordPages, String> {
    match text {
        "self" => Ok(RecordPages::Own),
        "link" => Ok(RecordPages::Link),
        "off" => Ok(RecordPages::Off),
        _ => Err("is not known; expected \"self\", \"link\" or \"off\"".to_owned()),
    }
}
