//! The base URL of a source.

use url::Url;

/// Reads the URL of a source; the error text names the expected value.
pub(super) fn read_base_url(text: &str) -> Result<Url, String> {
    let problem = "is not a base URL; expected one such as \"https://source.example/oai\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{problem} (http or https, with a host)"));
    }
    if url.fragment().is_some() {
        return Err(format!("{problem} (without #)"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{problem} (without user and password: use the keys user and password_file)"));
    }
    if url.query_pairs().any(|(name, _)| name == "verb") {
        return Err(format!("{problem} (without verb=, which each request sets)"));
    }
    Ok(url)
}
