//! The keys and values of an OpenURL, decoded.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use percent_encoding::percent_decode;

/// Longest query that is read, in bytes. Link resolvers send 2 KB at most.
pub const PARAMETERS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of keys in a query.
const KEYS_MAX: usize = 256;
/// Longest value that is read, in bytes when decoded. Longer ones are ignored.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// Why an OpenURL is not read. The text says what the client can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is too long.
    #[error(
        "the OpenURL is longer than {PARAMETERS_BYTES_MAX} bytes; leave out keys that do not describe the work"
    )]
    TooLong,
    /// It has too many keys.
    #[error("the OpenURL has more than {KEYS_MAX} keys; leave out keys that do not describe the work")]
    TooManyKeys,
    /// The description is somewhere else, or in XML.
    #[error(
        "the OpenURL refers to a description of the work by url_ctx_ref or url_ctx_val; send the description as keys such as rft_id"
    )]
    NotByKeys,
    /// It describes nothing.
    #[error("the OpenURL describes no work; expected keys such as rft_id, rft.issn or id")]
    Empty,
}

impl Refusal {
    /// The HTTP status of the response.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooLong => 414,
            Self::TooManyKeys | Self::NotByKeys | Self::Empty => 400,
        }
    }
}

/// Keys in lower case with their values, in the order of the query.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query string or a form. Keys without a value are as none.
    pub(crate) fn read(encoded: &[u8]) -> Result<Self, Refusal> {
        if encoded.len() > PARAMETERS_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let pairs = encoded.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        let pairs: Vec<(String, Vec<u8>)> = pairs.filter_map(read_pair).take(KEYS_MAX + 1).collect();
        if pairs.len() > KEYS_MAX {
            return Err(Refusal::TooManyKeys);
        }
        let named = pairs.iter().find(|(key, _)| key == "ctx_enc");
        let encoding = named.and_then(|(_, value)| read_encoding(value)).unwrap_or(UTF_8);
        let decoded = pairs.into_iter().filter_map(|(key, value)| Some((key, decode(&value, encoding)?)));
        Ok(Self(decoded.collect()))
    }

    /// The values of a key, in order.
    pub(crate) fn all<'p>(&'p self, key: &str) -> impl Iterator<Item = &'p str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first value of the first of these keys that has one.
    pub(crate) fn first<'p>(&'p self, keys: &[&str]) -> Option<&'p str> {
        keys.iter().find_map(|key| self.all(key).next())
    }
}

/// A key with its bytes. `None` for a key without a value.
fn read_pair(pair: &[u8]) -> Option<(String, Vec<u8>)> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (pair.get(..equals)?, pair.get(equals + 1..)?);
    let key = String::from_utf8_lossy(&unescape(key)).trim().to_ascii_lowercase();
    // Links that were escaped twice for HTML.
    let key = key.strip_prefix("amp;").map(str::to_owned).unwrap_or(key);
    let value = unescape(value);
    if value.trim_ascii().is_empty() || value.len() > VALUE_BYTES_MAX { None } else { Some((key, value)) }
}

fn unescape(encoded: &[u8]) -> Vec<u8> {
    let spaces: Vec<u8> = encoded.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_decode(&spaces).collect()
}

/// An encoding of the registry of OpenURL, such as `info:ofi/enc:ISO-8859-1`.
fn read_encoding(value: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(value.strip_prefix(b"info:ofi/enc:")?)
}

/// The text of a value on one line. A value that is not in its encoding is read as Windows-1252, which old resolvers send
/// without saying so.
fn decode(value: &[u8], encoding: &'static Encoding) -> Option<String> {
    let (text, is_broken) = encoding.decode_without_bom_handling(value);
    let text = if is_broken { WINDOWS_1252.decode_without_bom_handling(value).0 } else { text };
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim();
    if text.is_empty() { None } else { Some(text.to_owned()) }
}
