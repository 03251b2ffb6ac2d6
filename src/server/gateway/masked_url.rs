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

/// A text about a source without the secrets in the URL of the source.
pub(super) fn without_secrets(text: &str, url: &Url) -> String {
    let shown = masked(url);
    let text = text.replace(url.as_str(), &shown);
    let shown_query = shown.split_once('?').map_or("", |(_, query)| query);
    match url.query().filter(|query| query.contains('=')) {
        // A request can have the query at another place.
        Some(query) => text.replace(query, shown_query),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_of_texts() {
        let url = Url::parse("http://e.org/oai?apikey=s3cret&x").expect("a literal URL");
        let text = "http://e.org/oai?apikey=s3cret&x (http://e.org/oai?verb=Identify&apikey=s3cret&x) fails";
        let expected = "http://e.org/oai?apikey=***&x (http://e.org/oai?verb=Identify&apikey=***&x) fails";
        assert_eq!(without_secrets(text, &url), expected);
        let url = Url::parse("http://e.org/oai").expect("a literal URL");
        assert_eq!(without_secrets("http://e.org/oai?verb=Identify", &url), "http://e.org/oai?verb=Identify");
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
