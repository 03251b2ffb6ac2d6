//! URLs of sources without secrets.

use url::Url;

/// A URL without the values of its query, and without user, password and fragment: they may be secret.
pub(super) fn masked(url: &Url) -> String {
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
