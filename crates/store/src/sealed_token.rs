//! Tokens that contain all their data, under a MAC.
//!
//! A token is a mark, the MAC and the data as JSON in base64. It consists of `[A-Za-z0-9_-]`, so that no harvester
//! can encode it wrongly.

use crate::token_key::TokenKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The use of a token. A token of one use is never valid for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// The rest of a page that could not be delivered whole.
    Continuation,
    /// The rest of a list of the mirror.
    MirrorList,
    /// The rest of a list that the mirror continues in place of the source.
    Failover,
    /// The rest of a list in a format that a crosswalk makes. It contains the token of another repository.
    Crosswalk,
    /// The rest of a list of a federation.
    Federation,
    /// The rest of a list of the JSON API. It contains the token of any repository.
    Api,
}

/// Longest token, in bytes: every harvester and server accepts it in a URL.
const TOKEN_BYTES_MAX: usize = 2_000;
/// Longest token that contains the token of a source, in bytes. Harvesters of such a source can send long tokens.
const WRAPPING_TOKEN_BYTES_MAX: usize = 4_000;
/// Longest token of a federation, in bytes. It can contain one of a crosswalk.
const FEDERATION_TOKEN_BYTES_MAX: usize = 6_000;
/// Longest cursor of the JSON API, in bytes. It can contain the token of a federation.
const API_CURSOR_BYTES_MAX: usize = 9_000;
const MAC_CHARS: usize = 22;

impl TokenUse {
    /// The start of the token. It includes the version of what follows.
    const fn mark(self) -> &'static str {
        match self {
            Self::Continuation => "oaimend1_",
            Self::MirrorList => "oaimirror1_",
            Self::Failover => "oaifailover1_",
            Self::Crosswalk => "oaicrosswalk1_",
            Self::Federation => "oaifederation1_",
            Self::Api => "oaiapi1_",
        }
    }

    fn key(self, key: &TokenKey) -> &[u8; 32] {
        match self {
            Self::Continuation => &key.tokens,
            Self::MirrorList => &key.mirror_lists,
            Self::Failover => &key.failover_lists,
            Self::Crosswalk => &key.crosswalk_lists,
            Self::Federation => &key.federated_lists,
            Self::Api => &key.api_lists,
        }
    }

    /// The longest token of this use, in bytes.
    const fn bytes_max(self) -> usize {
        match self {
            Self::Continuation | Self::MirrorList | Self::Failover => TOKEN_BYTES_MAX,
            Self::Crosswalk => WRAPPING_TOKEN_BYTES_MAX,
            Self::Federation => FEDERATION_TOKEN_BYTES_MAX,
            Self::Api => API_CURSOR_BYTES_MAX,
        }
    }

    fn mac(self, body: &str, key: &TokenKey) -> [u8; 16] {
        let mut mac = Blake2sMac::<U16>::new(self.key(key).into());
        mac.update(body.as_bytes());
        mac.finalize_fixed().into()
    }
}

impl TokenKey {
    /// Writes a token; `None` if it would be too long.
    pub fn seal(&self, token_use: TokenUse, content: &impl Serialize) -> Option<String> {
        let body = BASE64.encode(serde_json::to_vec(content).ok()?);
        let mac = BASE64.encode(token_use.mac(&body, self));
        let token = format!("{}{mac}{body}", token_use.mark());
        (token.len() <= token_use.bytes_max()).then_some(token)
    }

    /// Reads a token; `None` if it is not one of ours for this use.
    pub fn unseal<T: DeserializeOwned>(&self, token_use: TokenUse, token: &str) -> Option<T> {
        let (mac_text, body) = token.strip_prefix(token_use.mark())?.split_at_checked(MAC_CHARS)?;
        let claimed = BASE64.decode(mac_text).ok()?;
        // Compared in constant time: otherwise the time would tell how much of a guess is right.
        let wrong = claimed.iter().zip(token_use.mac(body, self)).fold(0, |wrong, (a, b)| wrong | (a ^ b));
        if claimed.len() != 16 || wrong != 0 {
            return None;
        }
        serde_json::from_slice(&BASE64.decode(body).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_its_key_and_its_use_only() {
        let (key, other) = (TokenKey::new([1; 32]), TokenKey::new([2; 32]));
        let content = ("x".to_owned(), 7_u64);
        for (token_use, wrong_use) in [
            (TokenUse::Continuation, TokenUse::MirrorList),
            (TokenUse::MirrorList, TokenUse::Failover),
            (TokenUse::Failover, TokenUse::MirrorList),
            (TokenUse::Crosswalk, TokenUse::MirrorList),
            (TokenUse::Federation, TokenUse::Failover),
            (TokenUse::Api, TokenUse::MirrorList),
        ] {
            let token = key.seal(token_use, &content).expect("short enough");
            assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{token}");
            assert_eq!(key.unseal(token_use, &token), Some(content.clone()));
            assert_eq!(other.unseal::<(String, u64)>(token_use, &token), None);
            let relabeled = token.replacen(token_use.mark(), wrong_use.mark(), 1);
            assert_eq!(key.unseal::<(String, u64)>(wrong_use, &relabeled), None);
        }
    }

    #[test]
    fn a_token_that_was_changed_or_cut_is_refused() {
        let key = TokenKey::new([1; 32]);
        let token = key.seal(TokenUse::MirrorList, &"content").expect("short enough");
        for at in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8_lossy(&forged).into_owned();
            assert_eq!(key.unseal::<String>(TokenUse::MirrorList, &forged), None, "{at}");
            assert_eq!(key.unseal::<String>(TokenUse::MirrorList, &token[..at]), None, "{at}");
        }
        let wide = "oaimirror1_ééééééééééééééééééé";
        assert_eq!(key.unseal::<String>(TokenUse::MirrorList, wide), None);
    }

    #[test]
    fn a_token_that_would_be_too_long_is_none() {
        let key = TokenKey::new([1; 32]);
        for (token_use, fits, too_long) in
            [(TokenUse::MirrorList, 1_400, 1_500), (TokenUse::Crosswalk, 2_900, 3_000)]
        {
            assert!(key.seal(token_use, &"q".repeat(fits)).is_some(), "{token_use:?}");
            assert_eq!(key.seal(token_use, &"q".repeat(too_long)), None, "{token_use:?}");
        }
    }
}
