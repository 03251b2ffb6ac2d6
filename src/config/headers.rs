//! The `headers` table of a mapping: additional headers of requests to its source.
//!
//! Invariant: values may be secret. No message contains one.

use super::keys::{Entry, Kind, Located};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use oaimend_repository::MASK;
use oaimend_upstream::settings::SourceHeaders;
use serde_json::json;
use toml::Value;

/// Maximum size of all names and values of `[headers]` together, in bytes.
const HEADERS_BYTES_MAX: usize = 16 << 10;

/// A table of additional headers.
pub(super) struct Headers {
    /// The key that sets `Authorization`, if there is one.
    pub(super) credentials: Option<&'static str>,
}

impl Kind for Headers {
    type Value = SourceHeaders;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<SourceHeaders> {
        let (mut headers, mut bytes) = (HeaderMap::new(), 0);
        for (Located { value: name, span }, value) in entry.named_strings() {
            bytes += name.len() + value.value.len();
            match read_field(name, value.value, self.credentials) {
                Ok((field, _)) if headers.contains_key(&field) => entry.report(
                    span,
                    format!("headers.{name} is set twice; expected each name once, in any case"),
                ),
                Ok((field, content)) => drop(headers.insert(field, content)),
                Err((Part::Name, problem)) => {
                    entry.report(span, format!("headers.{} {problem}", name.escape_debug()));
                }
                Err((Part::Value, problem)) => {
                    entry.report(value.span.clone(), format!("the value of headers.{name} {problem}"));
                }
            }
            if bytes > HEADERS_BYTES_MAX {
                let text = format!("[headers] is too long; expected at most {HEADERS_BYTES_MAX} bytes");
                entry.report(value.span, text);
                break;
            }
        }
        Some(SourceHeaders::new(headers))
    }

    fn write(&self, headers: &SourceHeaders) -> Option<Value> {
        let masked = headers.names().into_iter().map(|name| (name.to_owned(), MASK.into()));
        Some(Value::Table(masked.collect()))
    }

    fn schema(&self) -> serde_json::Value {
        json!({
            "type": "object",
            "title": "table of strings",
            "additionalProperties": { "type": "string" },
        })
    }
}

/// The part of a field that has the fault.
enum Part {
    Name,
    Value,
}

fn read_field(
    name: &str,
    value: &str,
    credentials: Option<&str>,
) -> Result<(HeaderName, HeaderValue), (Part, String)> {
    let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        (Part::Name, "is not the name of a header; expected one such as \"X-Api-Key\"".to_owned())
    })?;
    if let Some((_, instead)) = OF_OAIMEND.iter().find(|(name, _)| field == *name) {
        return Err((Part::Name, format!("is not allowed: {instead}")));
    }
    if field == AUTHORIZATION
        && let Some(key) = credentials
    {
        return Err((
            Part::Name,
            format!("is not allowed beside {key}, which sets it; expected one of the two"),
        ));
    }
    let is_printable = !value.is_empty() && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_legal = is_printable && value.trim() == value;
    let content = if is_legal { HeaderValue::from_str(value).ok() } else { None };
    let mut content = content.ok_or_else(|| {
        let expected = "expected printable ASCII without spaces at its ends";
        (Part::Value, format!("is not allowed in an HTTP header; {expected}"))
    })?;
    content.set_sensitive(true);
    Ok((field, content))
}

const CONNECTION: &str = "it is about one connection, not about the request; remove it";
const FRAMING: &str = "oaimend sets it for each request; remove it";
const WHOLE: &str = "oaimend needs the complete response; remove it";

/// The headers that a mapping cannot set, and the reason with a remedy.
const OF_OAIMEND: &[(&str, &str)] = &[
    ("connection", CONNECTION),
    ("keep-alive", CONNECTION),
    ("proxy-connection", CONNECTION),
    ("http2-settings", CONNECTION),
    ("proxy-authenticate", CONNECTION),
    ("proxy-authorization", "it is for a proxy; set user and password in the URL of the key proxy"),
    ("te", CONNECTION),
    ("trailer", CONNECTION),
    ("transfer-encoding", CONNECTION),
    ("upgrade", CONNECTION),
    ("expect", CONNECTION),
    ("host", "it is the host of base_url; change base_url"),
    ("content-length", FRAMING),
    ("content-type", FRAMING),
    ("accept-encoding", "oaimend accepts the codings that it can decode; remove it"),
    ("via", "oaimend detects request loops by it; remove it"),
    ("user-agent", "use the key user_agent"),
    ("from", "use the key from"),
    ("range", WHOLE),
    ("if-range", WHOLE),
    ("if-match", WHOLE),
    ("if-none-match", WHOLE),
    ("if-modified-since", WHOLE),
    ("if-unmodified-since", WHOLE),
];
