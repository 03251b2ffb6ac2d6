//! The secrets of a mapping, and its base URL without them.

use super::source_mapping::SourceMapping;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oaimend_repository::Secrets;
use url::Url;

/// Shorter values of a query and of headers are no secrets: they occur in any text, in bytes.
const SECRET_BYTES_MIN: usize = 6;

impl SourceMapping {
    /// The base URL for people: without the values of its query.
    pub fn shown_base_url(&self) -> String {
        masked(&self.base_url)
    }

    /// The base URL without the secrets in its query, for reports that people compare with the mapping.
    pub fn masked_base_url(&self) -> String {
        self.secrets().mask_text(self.base_url.as_str())
    }

    /// The texts that must not be shown.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Vec::new();
        if let Some(query) = self.base_url.query() {
            let values = query.split('&').filter_map(|argument| argument.split_once('='));
            secrets.extend(values.map(|(_, value)| value.to_owned()));
            secrets.extend(self.base_url.query_pairs().map(|(_, value)| value.into_owned()));
        }
        let values = self.access.headers.map().values();
        secrets.extend(values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()));
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let credentials = self.access.credentials.as_ref();
        let credentials = credentials.map(|pair| (pair.user().to_owned(), pair.password().to_owned()));
        for (user, password) in credentials.into_iter().chain(self.access.proxy.credentials()) {
            secrets.push(STANDARD.encode(format!("{user}:{password}")));
            secrets.push(password);
        }
        if let Some(token) = &self.access.bearer_token {
            secrets.extend(token.secrets());
        }
        Secrets::new(secrets)
    }
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
    use crate::settings::Limits;
    use oaimend_base::credentials::Credentials;
    use std::path::PathBuf;

    #[test]
    fn echoed_secrets_are_masked() {
        let mut mapping = SourceMapping::new(
            "x",
            "http://e.org/oai?apikey=s3cret%21x&a=1".parse().expect("a literal URL"),
            &Limits::default(),
        );
        mapping.access.credentials =
            Some(Credentials::new("user".to_owned(), "passw0rd".to_owned(), PathBuf::new()));
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
    fn escaped_secrets_are_masked() {
        let mut mapping = SourceMapping::new(
            "x",
            "http://e.org/oai?key=s%26%22a%2Fl%20%C3%A9%25%21".parse().expect("a literal URL"),
            &Limits::default(),
        );
        mapping.access.credentials =
            Some(Credentials::new("user".to_owned(), "p<w'\\x%21".to_owned(), PathBuf::new()));
        let secrets = mapping.secrets();
        for written in [
            "s&\"a/l \u{e9}%!",
            "s%26%22a%2Fl%20%C3%A9%25%21",
            "s%26%22a%2fl%20%c3%a9%25!",
            "%73%26%22%61%2F%6C+%C3%A9%25%21",
            "s%2526%2522a%252Fl%2520%25C3%25A9%2525%2521",
            "s&amp;&quot;a/l &#233;%!",
            "s&#38;&#x22;a&#x2F;l&#32;&#xE9;&percnt;&excl;",
            "s&amp;amp;&amp;quot;a/l &amp;#233;%!",
            "s&\\\"a\\/l \\u00e9%!",
            "\\u0073\\u0026\\u0022a\\u002Fl\\u0020\\u00E9\\u0025\\x21",
            "s\\&\\\"a/l \u{e9}\\%!",
            "p<w'\\x%21",
            "p%3Cw%27%5Cx%2521",
            "p&lt;w&apos;\\x%21",
            "p&lt;w&#39;&bsol;x&#37;21",
            "p\\u003cw\\'\\\\x%21",
        ] {
            let text = format!("%2 &a; before {written} after&amp;\\");
            let masked = secrets.mask_text(&text);
            assert_eq!(masked, "%2 &a; before *** after&amp;\\", "{written}");
            let twice = secrets.mask_text(&format!("{written}{written}"));
            assert_eq!(twice, "******", "{written}");
        }
        for text in [
            "s&\"a/l \u{e9}%",
            "%",
            "%2",
            "&",
            "&amp",
            "&#xD800;",
            "\\",
            "\\u12",
            "s%26%22a%2Fl%20%C3%A9%25%2",
        ] {
            assert_eq!(secrets.mask_text(text), text);
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
