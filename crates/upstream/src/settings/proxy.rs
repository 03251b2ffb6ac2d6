//! The HTTP proxy for requests to a source.
//!
//! Invariant: no message, log line or `Debug` output contains its password.

use percent_encoding::percent_decode_str;
use std::fmt;
use url::Url;

/// The HTTP proxy for requests to a source.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum ProxySetting {
    /// Connections lead to the source itself.
    #[default]
    Off,
    /// The proxy that `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` of the environment name.
    Environment,
    /// This proxy, for every address. The URL may contain user and password.
    Url(Url),
}

impl ProxySetting {
    /// User and password of the URL, if it contains them.
    pub(super) fn credentials(&self) -> Option<(String, String)> {
        let Self::Url(url) = self else { return None };
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        url.password().map(|password| (decoded(url.username()), decoded(password)))
    }

    /// The setting as in a mapping, without user and password.
    pub fn shown(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Environment => "environment".to_owned(),
            Self::Url(url) => {
                let mut shown = url.clone();
                // The URL has a host, so that both succeed.
                let _ = (shown.set_username(""), shown.set_password(None));
                shown.as_str().trim_end_matches('/').to_owned()
            }
        }
    }
}

impl fmt::Debug for ProxySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}
