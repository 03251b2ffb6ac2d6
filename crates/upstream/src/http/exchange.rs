//! The response of an exchange: its header, and its body piece by piece.

use crate::http::decoding::Coding;
use bytes::Bytes;
use http::{Response, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use oaimend_oai::UnixSecs;
use oaimend_repository::Failure;
use std::time::SystemTime;
use tokio::sync::mpsc;
use url::Url;

/// The header of a response, and its body to come.
pub(crate) struct Exchange {
    pub(crate) status: u16,
    /// The codings in `Content-Encoding`, in order.
    pub(crate) announced: Vec<Coding>,
    /// The charset that `Content-Type` names.
    pub(crate) charset: Option<String>,
    /// The value of `Retry-After`, in seconds.
    pub(crate) retry_after_secs: Option<u64>,
    /// The value of `Date`, in seconds since 1970.
    pub(crate) date_secs: Option<UnixSecs>,
    /// The URL of the response.
    pub(crate) url: Url,
    body: BodySource,
}

/// Why a body cannot be read to its end.
pub(crate) enum ReadError {
    /// The connection failed.
    Http(hyper::Error),
    /// The file of a static repository cannot be read.
    File(Failure),
}

/// Where a body comes from.
enum BodySource {
    Response(Response<Incoming>),
    File(mpsc::Receiver<Result<Bytes, Failure>>),
}

impl Exchange {
    pub(crate) fn new(url: Url, response: Response<Incoming>, now: SystemTime) -> Self {
        let text = |name: header::HeaderName| {
            let values = response.headers().get_all(name);
            values.iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
        };
        Self {
            status: response.status().as_u16(),
            announced: Coding::announced(&text(header::CONTENT_ENCODING)),
            charset: charset_of(&text(header::CONTENT_TYPE)),
            retry_after_secs: retry_after_secs(&text(header::RETRY_AFTER), now),
            date_secs: date_secs(&text(header::DATE)),
            url,
            body: BodySource::Response(response),
        }
    }

    /// Whether all of the announced body was received. Always false for HTTP/2, where leaving a stream
    /// before its end resets it.
    pub(crate) fn has_ended(&self) -> bool {
        let BodySource::Response(response) = &self.body else { return false };
        response.version() < Version::HTTP_2 && response.body().is_end_stream()
    }

    /// A page that was created from a file.
    pub(crate) fn from_file(url: Url, body: mpsc::Receiver<Result<Bytes, Failure>>) -> Self {
        let (announced, charset) = (Vec::new(), None);
        Self {
            status: 200,
            announced,
            charset,
            retry_after_secs: None,
            date_secs: None,
            url,
            body: BodySource::File(body),
        }
    }

    /// A header of the response.
    pub(crate) fn header(&self, name: &header::HeaderName) -> Option<String> {
        let BodySource::Response(response) = &self.body else { return None };
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }

    /// Reads the next piece of the body, as received.
    pub(crate) async fn read_chunk(&mut self) -> Result<Option<Bytes>, ReadError> {
        match &mut self.body {
            BodySource::Response(response) => loop {
                let Some(frame) = response.body_mut().frame().await else { return Ok(None) };
                let frame = frame.map_err(ReadError::Http)?;
                // Other frames are trailers, which say nothing about a page.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            },
            BodySource::File(pieces) => pieces.recv().await.transpose().map_err(ReadError::File),
        }
    }
}

fn charset_of(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(|quote| matches!(quote, '"' | '\''));
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_owned())
    })
}

/// `Retry-After` as seconds, from either of its forms.
pub(crate) fn retry_after_secs(value: &str, now: SystemTime) -> Option<u64> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(seconds);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default().as_secs())
}

/// The time of a `Date` header, in seconds since 1970.
fn date_secs(value: &str) -> Option<UnixSecs> {
    let date = httpdate::parse_http_date(value.trim()).ok()?;
    i64::try_from(date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs()).ok().map(UnixSecs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after_secs("120", now), Some(120));
        assert_eq!(retry_after_secs("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(60));
        assert_eq!(retry_after_secs("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(0));
        assert_eq!(retry_after_secs("soon", now), None);
        assert_eq!(retry_after_secs("", now), None);
    }

    #[test]
    fn the_charset_is_found_among_the_parameters() {
        assert_eq!(charset_of("text/xml; Charset=\"ISO-8859-1\" "), Some("ISO-8859-1".into()));
        assert_eq!(charset_of("text/xml;version=1;charset=utf8"), Some("utf8".into()));
        assert_eq!(charset_of("text/xml"), None);
        assert_eq!(charset_of("text/xml; charset="), None);
    }
}
