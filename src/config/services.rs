//! The keys of other services that may have a record: the `[[services]]` tables of `oaimend.toml`.

use super::base_url::read_base_url;
use super::keys::{Keys, declare, string, text};
use oaimend_upstream::settings::{Limits, SourceMapping, Timeouts};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A service that may have a record, such as a search engine of articles. It has an OAI-PMH interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name on pages.
    pub name: String,
    /// Where it is asked, and how.
    pub source: Arc<SourceMapping>,
    /// The URL of the page of a record there. `{identifier}` stands for the identifier.
    pub link: String,
}

/// The place of the identifier in a link.
const IDENTIFIER: &str = "{identifier}";
/// How long one exchange with a service may take. No page waits that long: see `serve::resolver::broker`.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);
/// Longest response of a service, in bytes: it contains one record.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;

impl Service {
    /// A service with this name, base URL and link; the error text names the expected value.
    pub fn new(name: &str, base_url: &str, link: &str) -> Result<Self, String> {
        let (name, link) = (read_name(name)?, read_link(link)?);
        Ok(Self { name, link, ..Self::without_address() }.at(Some(read_base_url(base_url)?)))
    }

    /// The same service with this base URL.
    fn at(mut self, base_url: Option<Url>) -> Self {
        let source = Arc::make_mut(&mut self.source);
        // No repository has such an id.
        source.id = format!("service:{}", self.name);
        if let Some(base_url) = base_url {
            source.base_url = base_url;
        }
        self
    }

    /// A service with the values that keys do not set.
    fn without_address() -> Self {
        let url = Url::parse("http://service.invalid/").expect("a literal URL");
        let limits = Limits {
            response_bytes_max: RESPONSE_BYTES_MAX,
            first_record_timeout: EXCHANGE_MAX,
            // Its records are no records of a repository here, so none is quarantined.
            quarantine_bytes_max: 0,
            ..Limits::default()
        };
        let mut source = SourceMapping::new("", url, &limits);
        source.timeouts = Timeouts { connect: EXCHANGE_MAX, read: EXCHANGE_MAX };
        source.quirks.refetch_broken_records = false;
        Self { name: String::new(), source: Arc::new(source), link: String::new() }
    }

    /// The keys of a table.
    pub(super) fn declare(keys: &mut Keys<'_, '_>) -> Self {
        let mut service = Self::without_address();
        let mut base_url = None;
        let url = text("URL", read_base_url, |url: &Url| Some(url.to_string()));
        declare! { keys:
            /// The name of the service on pages.
            name: string("string", read_name) => service.name,
            /// The base URL of its OAI-PMH interface. oaimend asks there by GetRecord whether it has a record.
            base_url: url => base_url,
            /// The URL of the page of a record there, with `{identifier}` in place of the identifier.
            link: string("URL", read_link) => service.link,
        }
        for key in ["name", "base_url", "link"] {
            keys.require(key, &format!("a service has no {key}; expected name, base_url and link"));
        }
        service.at(base_url)
    }
}

fn read_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err("is not a name; expected one such as \"CORE\"".to_owned());
    }
    Ok(text.to_owned())
}

fn read_link(text: &str) -> Result<String, String> {
    let problem = "is not a link; expected one such as \"https://search.example.org/record?id={identifier}\"";
    if !text.contains(IDENTIFIER) {
        return Err(format!("{problem} (with {IDENTIFIER})"));
    }
    // An identifier in the host or the scheme would lead anywhere.
    let with = |identifier| Url::parse(&text.replace(IDENTIFIER, identifier));
    match (with("a"), with("b")) {
        (Ok(one), Ok(other))
            if one.origin() == other.origin() && matches!(one.scheme(), "http" | "https") =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!("{problem} (http or https, with the identifier after the host)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_its_identifier_after_the_host() {
        for link in ["https://s.example/r?id={identifier}", "http://s.example:8080/{identifier}/x#a"] {
            assert_eq!(read_link(link).as_deref(), Ok(link));
        }
        for link in [
            "https://s.example/r",
            "https://{identifier}/",
            "https://{identifier}.s.example/",
            "{identifier}://s.example/",
            "javascript:{identifier}",
            "https://s.example:{identifier}/",
            "//s.example/{identifier}",
            "",
        ] {
            assert!(read_link(link).is_err(), "{link}");
        }
    }
}
