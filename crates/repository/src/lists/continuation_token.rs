//! Tokens of ours: they let a harvester request the rest of a page that could not be delivered whole.
//!
//! The token contains all data, under a MAC; only the hashes of the delivered items are in the ledger, and
//! the token contains the hash of these.

use blake2::{Blake2s256, Digest as _};
use oaimend_oai::UnixSecs;
use oaimend_store::{ListPage, TokenKey, TokenUse};

/// The content of a token of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuationToken {
    /// The repository whose page it continues.
    pub repository: String,
    /// The request to the source for the page.
    pub query: String,
    /// The page in the ledger.
    pub place: ListPage,
    /// Items of the page that were delivered.
    pub count: u64,
    /// The hash of their hashes.
    pub delivered: u64,
    /// Seconds since 1970.
    pub expires_secs: UnixSecs,
    /// Whether the list was restarted: any of its items may have been delivered.
    pub is_restarted: bool,
}

impl ContinuationToken {
    /// `None` when it would be too long.
    pub fn write(&self, key: &TokenKey) -> Option<String> {
        let ListPage { list, page } = self.place;
        let Self { repository, query, count, delivered, expires_secs, is_restarted, .. } = self;
        let fields = (repository, query, list, page, count, delivered, expires_secs, is_restarted);
        key.seal(TokenUse::Continuation, &fields)
    }

    /// `None` when it is not ours.
    pub fn read(token: &str, key: &TokenKey) -> Option<Self> {
        let (repository, query, list, page, count, delivered, expires_secs, is_restarted) =
            key.unseal(TokenUse::Continuation, token)?;
        Some(Self {
            repository,
            query,
            place: ListPage { list, page },
            count,
            delivered,
            expires_secs,
            is_restarted,
        })
    }
}

/// The hash of a list of hashes.
pub fn hash_of_all(hashes: &[u64]) -> u64 {
    let mut all = Blake2s256::new();
    for hash in hashes {
        all.update(hash.to_le_bytes());
    }
    let bytes = all.finalize();
    bytes.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ContinuationToken {
        ContinuationToken {
            repository: "x".into(),
            query: "verb=ListRecords&resumptionToken=a%26b".into(),
            place: ListPage { list: u64::MAX, page: 3 },
            count: 7,
            delivered: hash_of_all(&[1, 2]),
            expires_secs: UnixSecs(1_800_000_000),
            is_restarted: true,
        }
    }

    #[test]
    fn a_token_is_read_as_written_and_forged_ones_are_refused() {
        let (key, other) = (TokenKey::new([1; 32]), TokenKey::new([2; 32]));
        let written = token().write(&key).expect("short enough");
        assert!(written.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{written}");
        assert_eq!(ContinuationToken::read(&written, &key), Some(token()));
        assert_eq!(ContinuationToken::read(&written, &other), None);
        for at in 0..written.len() {
            let mut forged = written.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(ContinuationToken::read(&String::from_utf8_lossy(&forged), &key), None, "{at}");
            assert_eq!(ContinuationToken::read(&written[..at], &key), None, "{at}");
        }
        assert_eq!(ContinuationToken::read("oaimend1_ééééééééééééééééééé", &key), None);
    }

    #[test]
    fn a_token_beyond_the_length_limit_is_not_written() {
        let long = ContinuationToken { query: "q".repeat(1_500), ..token() };
        assert_eq!(long.write(&TokenKey::new([1; 32])), None);
    }
}
