//! Texts about a source without its secrets.
//!
//! A source can echo a request with its `Authorization` header, or the query of a base URL such as `?apikey=`. Logs,
//! responses, pages, the admin listener and kept broken pages contain them in masked form only.

use super::mapping::Mapping;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use std::borrow::Cow;
use url::Url;

/// What replaces a secret.
pub(super) const MASK: &str = "***";
/// Shorter values of a query and of headers are no secrets: they occur in any text.
const SECRET_BYTES_MIN: usize = 6;

/// The texts of a mapping that must not be shown, the longest first: its passwords, as headers contain them too, its
/// tokens, the values of its headers, and the values in the query of its base URL.
pub(crate) struct Secrets(Vec<String>);

impl Mapping {
    /// The base URL for people: without the values of its query.
    pub fn shown_base_url(&self) -> String {
        masked(&self.base_url)
    }

    /// The texts that must not be shown.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Vec::new();
        if let Some(query) = self.base_url.query() {
            let values = query.split('&').filter_map(|argument| argument.split_once('='));
            secrets.extend(values.map(|(_, value)| value.to_owned()));
            secrets.extend(self.base_url.query_pairs().map(|(_, value)| value.into_owned()));
        }
        let values = self.headers.map().values();
        secrets.extend(values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()));
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let own = self.credentials.as_ref();
        let own = own.map(|own| (own.user().to_owned(), own.password().to_owned()));
        for (user, password) in own.into_iter().chain(self.proxy.credentials()) {
            secrets.push(STANDARD.encode(format!("{user}:{password}")));
            secrets.push(password);
        }
        if let Some(token) = &self.bearer_token {
            secrets.extend(token.secrets());
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(secrets)
    }
}

impl Secrets {
    /// Replaces the secrets in what the source sent.
    pub(crate) fn mask<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if memmem::find(&text, secret.as_bytes()).is_some() {
                text = Cow::Owned(replaced(&text, secret.as_bytes()));
            }
        }
        text
    }
}

fn replaced(text: &[u8], secret: &[u8]) -> Vec<u8> {
    let (mut masked, mut from) = (Vec::with_capacity(text.len()), 0);
    for at in memmem::find_iter(text, secret) {
        masked.extend_from_slice(text.get(from..at).unwrap_or_default());
        masked.extend_from_slice(MASK.as_bytes());
        from = at + secret.len();
    }
    masked.extend_from_slice(text.get(from..).unwrap_or_default());
    masked
}

/// A URL without the values of its query, and without user, password and fragment: they may be secret.
fn masked(url: &Url) -> String {
    let mut masked = url.clone();
    // URLs of sources have a host, so that both succeed.
    let _ = masked.set_username("");
    let _ = masked.set_password(None);
    masked.set_fragment(None);
    if let Some(query) = url.query() {
        let argument = |argument: &str| match argument.split_once('=') {
            Some((name, value)) if !value.is_empty() => format!("{name}=***"),
            _ => argument.to_owned(),
        };
        let arguments: Vec<String> = query.split('&').map(argument).collect();
        masked.set_query(Some(&arguments.join("&")));
    }
    masked.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Credentials, Limits};

    #[test]
    fn echoed_secrets_are_masked() {
        let mut mapping = Mapping::new("x", "http://e.org/oai?apikey=s3cret%21x&a=1", &Limits::default())
            .expect("a legal mapping");
        mapping.credentials = Some(Credentials::new("user", "passw0rd"));
        for (sent, masked) in [
            ("Authorization: Basic dXNlcjpwYXNzdzByZA==", "Authorization: Basic ***"),
            ("user user with passw0rd and a=1", "user user with *** and a=1"),
            ("GET /oai?apikey=s3cret%21x&verb=Identify, s3cret!x", "GET /oai?apikey=***&verb=Identify, ***"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(mapping.secrets().mask(sent.as_bytes()).as_ref(), masked.as_bytes());
        }
    }

    #[test]
    fn secrets_are_left_out() {
        for (url, expected) in [
            ("http://e.org/oai", "http://e.org/oai"),
            ("http://e.org/oai?apikey=s3cret&x", "http://e.org/oai?apikey=***&x"),
            ("http://e.org/oai?a=&b=1=2", "http://e.org/oai?a=&b=***"),
            ("https://user:s3cret@e.org:8443/oai#s3cret", "https://e.org:8443/oai"),
        ] {
            let masked = masked(&Url::parse(url).expect("a literal URL"));
            assert_eq!(masked, expected);
            assert!(!masked.contains("s3cret"), "{masked}");
        }
    }
}
