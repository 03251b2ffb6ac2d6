//! The keys of the gateway: the `[gateway]` table of `oaimend.toml`, and `records` and `live_pages` of a mapping.

use super::identify::{mail_address, read_name};
use super::keys::{Flag, Keys, declare, list, named, string, text};
use oaimend_oai::named_enum;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use url::Url;

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
    /// The page of a record that search engines should show.
    pub canonical: CanonicalPage,
    /// The style sheet of the operator. Pages link to it after their own one.
    pub theme: Option<Theme>,
    /// The sites whose scripts may read responses.
    pub cors_origins: CorsOrigins,
    /// The WebSub hub that pushes the feeds of last changed records.
    pub hub: Option<Url>,
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

named_enum! {
    /// What `/robots.txt` allows to crawlers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Robots {
        /// Everything.
        #[default]
        Allow = "allow",
        /// OAI-PMH requests only.
        Deny = "deny",
    }
}

named_enum! {
    /// The page of a record that search engines should show.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum CanonicalPage {
        /// The page at the source, if the record has a DOI, a Handle or a URL that only it has; else ours.
        #[default]
        Source = "source",
        /// Our own page.
        Own = "self",
    }
}

/// A style sheet in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The file.
    pub path: PathBuf,
    /// Its content, at most 64 KiB.
    pub css: String,
}

named_enum! {
    /// What the URLs of records show.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RecordPages {
        /// A page of our own.
        #[default]
        Own = "self",
        /// The page at the source to which the record links; our own page if there is no link.
        Link = "link",
        /// Nothing.
        Off = "off",
    }
}

named_enum! {
    /// Who receives pages of records that are not mirrored. Such a page needs a response of the source.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LivePages {
        /// All clients but crawlers.
        #[default]
        People = "people",
        /// All clients.
        All = "all",
        /// All clients. The records are listed for crawlers, from a walk through the list of the source.
        Listed = "listed",
        /// Nobody.
        Off = "off",
    }
}

impl LivePages {
    /// Whether crawlers receive the pages.
    pub(crate) fn admit_crawlers(self) -> bool {
        matches!(self, Self::All | Self::Listed)
    }
}

impl Default for GatewayPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            title: "oaimend".to_owned(),
            contact: None,
            robots: Robots::Allow,
            canonical: CanonicalPage::Source,
            theme: None,
            cors_origins: CorsOrigins::default(),
            hub: None,
        }
    }
}

impl GatewayPolicy {
    /// The keys of the table. Relative paths start at `folder`.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>, folder: &Path) {
        declare! { keys:
            /// Whether repositories and records have pages, and browsers receive OAI-PMH responses as pages.
            /// Without them `/` is a plain list of base URLs.
            enabled: Flag => self.enabled,
            /// The name of the site, on every page.
            title: string("string", read_name) => self.title,
            /// The address of the operator, on every page. Without it pages show `admin_email`.
            contact: mail_address() => self.contact,
            /// What `/robots.txt` allows: everything but results of searches, the resolver, the JSON API, dumps, the
            /// feed of changes, SRU and OpenURL, with the sitemap index, or OAI-PMH requests only.
            robots: named() => self.robots,
            /// The canonical URL of a record page, which search engines show: the DOI, Handle or page at the source, or
            /// the page of this server. Sitemaps contain only pages that are canonical.
            canonical: named() => self.canonical,
        }
        let theme = text(
            "file",
            |text| read_theme(folder.join(text)),
            |theme: &Theme| Some(theme.path.display().to_string()),
        );
        declare! { keys:
            /// CSS file in UTF-8 of at most 65,536 bytes. Pages link to it after their own style sheet.
            theme_css: theme => self.theme,
        }
        let hub = text("URL", read_hub, |hub: &Url| Some(hub.to_string()));
        declare! { keys:
            /// The WebSub hub, such as `"https://hub.example.org/"`, that pushes `/_recent.atom` and the feeds of
            /// repositories to subscribers. oaimend tells it of changes. Without it no feed names a hub.
            hub: hub => self.hub,
        }
        let mut origins = match &self.cors_origins {
            CorsOrigins::Any => vec!["*".to_owned()],
            CorsOrigins::Listed(origins) => origins.clone(),
        };
        declare! { keys:
            /// The sites whose scripts may read responses in a browser (CORS), such as
            /// `"https://search.example.org"`. `"*"` allows all.
            cors_origins: list("origins", string("origin", read_origin)) => origins,
        }
        self.cors_origins = if origins.iter().any(|origin| origin == "*") {
            CorsOrigins::Any
        } else {
            CorsOrigins::Listed(origins)
        };
    }
}

fn read_hub(text: &str) -> Result<Url, String> {
    let problem = "is not the URL of a hub; expected one such as \"https://hub.example.org/\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{problem} (http or https, with a host)"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(format!(
            "{problem} (without user, password and fragment; everybody can read it in the feeds)"
        ));
    }
    Ok(url)
}

fn read_origin(text: &str) -> Result<String, String> {
    if text == "*" || is_origin(text) {
        return Ok(text.to_owned());
    }
    Err("is not an origin; expected \"*\", or one such as \"https://search.example.org\"".to_owned())
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
