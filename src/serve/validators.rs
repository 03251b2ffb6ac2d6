//! The validators of a page: `ETag` and `Last-Modified` (RFC 9110, section 13).

use crate::serve::response::Response;
use http::{HeaderMap, header};
use oaimend_oai::UnixSecs;
use std::time::{Duration, SystemTime};

/// The validators of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators {
    /// The entity tag without quotation marks. A compressed response has `-gzip` after it.
    pub(crate) tag: String,
    /// The time of the last change, in seconds since 1970; `None` if it is not known.
    pub(crate) modified_secs: Option<UnixSecs>,
}

impl Validators {
    /// Whether the client has this version of the page.
    pub(crate) fn are_known(&self, headers: &HeaderMap) -> bool {
        let mut tags = headers.get_all(header::IF_NONE_MATCH).iter().peekable();
        if tags.peek().is_some() {
            return tags.filter_map(|tags| tags.to_str().ok()).flat_map(|tags| tags.split(',')).any(|tag| {
                let tag = tag.trim();
                tag == "*" || opaque(tag) == Some(&self.tag)
            });
        }
        let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|since| since.to_str().ok());
        let since = since.and_then(|since| httpdate::parse_http_date(since).ok());
        since.is_some_and(|since| self.modified().is_some_and(|modified| modified <= since))
    }

    /// The `ETag` field.
    pub(crate) fn entity_tag(&self) -> String {
        format!("\"{}\"", self.tag)
    }

    /// The page with the validators.
    pub(crate) fn add_to(&self, page: Response) -> Response {
        let page = page.with("ETag", self.entity_tag());
        match self.modified() {
            Some(modified) => page.with("Last-Modified", httpdate::fmt_http_date(modified)),
            None => page,
        }
    }

    fn modified(&self) -> Option<SystemTime> {
        let secs = u64::try_from(self.modified_secs?.0).unwrap_or(0);
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(secs))
    }
}

/// The tag of the uncompressed page, from an entity tag of any strength. `None` if it is not an entity tag.
fn opaque(entity_tag: &str) -> Option<&str> {
    let quoted = entity_tag.strip_prefix("W/").unwrap_or(entity_tag);
    let tag = quoted.strip_prefix('"')?.strip_suffix('"')?;
    Some(tag.strip_suffix("-gzip").unwrap_or(tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn are_known(name: header::HeaderName, value: &'static str) -> bool {
        let validators = Validators { tag: "a1".to_owned(), modified_secs: Some(UnixSecs(1_577_836_800)) };
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
        validators.are_known(&headers)
    }

    #[test]
    fn entity_tags_are_compared_without_their_coding() {
        for known in ["\"a1\"", "W/\"a1\"", "\"a1-gzip\"", "\"b\", \"a1\"", "*"] {
            assert!(are_known(header::IF_NONE_MATCH, known), "{known}");
        }
        for other in ["\"a2\"", "a1", "\"a1", "", "\"\"", "\"a1-br\""] {
            assert!(!are_known(header::IF_NONE_MATCH, other), "{other}");
        }
    }

    #[test]
    fn times_are_compared_in_seconds() {
        for known in ["Wed, 01 Jan 2020 00:00:00 GMT", "Thu, 02 Jan 2020 00:00:00 GMT"] {
            assert!(are_known(header::IF_MODIFIED_SINCE, known), "{known}");
        }
        for other in ["Tue, 31 Dec 2019 23:59:59 GMT", "2020-01-01", ""] {
            assert!(!are_known(header::IF_MODIFIED_SINCE, other), "{other}");
        }
    }

    #[test]
    fn pages_without_a_time_have_a_tag_only() {
        let validators = Validators { tag: "a1".to_owned(), modified_secs: None };
        let since = HeaderValue::from_static("Thu, 02 Jan 2020 00:00:00 GMT");
        assert!(!validators.are_known(&HeaderMap::from_iter([(header::IF_MODIFIED_SINCE, since)])));
        let page = validators.add_to(Response::text(200, ""));
        assert!(page.headers.iter().all(|(name, _)| *name != "Last-Modified"), "{:?}", page.headers);
    }

    #[test]
    fn entity_tags_go_before_times() {
        let validators = Validators { tag: "a1".to_owned(), modified_secs: Some(UnixSecs(0)) };
        let headers = HeaderMap::from_iter([
            (header::IF_NONE_MATCH, HeaderValue::from_static("\"b\"")),
            (header::IF_MODIFIED_SINCE, HeaderValue::from_static("Thu, 02 Jan 2020 00:00:00 GMT")),
        ]);
        assert!(!validators.are_known(&headers));
    }
}
