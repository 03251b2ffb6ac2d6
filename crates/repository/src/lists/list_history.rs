//! The earlier pages of the list that a request continues, for a repository that continues it in place of the source.

use super::continuation_token::ContinuationToken;
use super::item_hash::ItemHash;
use crate::Failure;
use oaimend_base::clock::unix_secs;
use oaimend_oai::{Request, UnixSecs, Verb};
use oaimend_store::{ListLedger, ListPage, RecordedPart, RepositoryId, TokenKey};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

/// Finds the earlier pages of lists of one repository.
#[derive(Clone, Debug)]
pub struct ListHistories {
    /// The name of the repository in the ledger.
    pub repository: String,
    /// The ledger.
    pub ledger: Arc<dyn ListLedger>,
    /// The key of the tokens and of the hashes in the ledger.
    pub token_key: TokenKey,
}

/// The list that a token continues.
#[derive(Clone, Debug)]
pub struct ListHistory {
    /// The request that began the list.
    pub first: Request,
    /// The state that the pages before show, in seconds since 1970 by the clock of the source, if known.
    pub state_secs: Option<UnixSecs>,
    /// The pages that were delivered; `None` if the ledger cannot tell which.
    pub delivered: Option<DeliveredPages>,
}

/// The pages of a list that were delivered: those before `place`, and a part of the page at `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredPages {
    place: ListPage,
    /// The name of the part in the ledger.
    part: Option<u64>,
}

/// The items that a harvester has of a list.
#[derive(Debug, Default)]
pub struct DeliveredItems {
    hash: ItemHash,
    /// The hashes of identifiers with datestamps, and of identifiers alone.
    hashes: HashSet<u64>,
}

impl DeliveredItems {
    /// Whether nothing is known to be delivered.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether the harvester has an item, in whatever version. `identifier` and `datestamp` are as written in the XML;
    /// a set has no datestamp.
    ///
    /// The identifiers of some pages are unknown: those of earlier versions, and those whose records were fetched one
    /// by one. On them an item with another datestamp is another item.
    pub fn contains(&self, identifier: &str, datestamp: &str) -> bool {
        self.contains_version(identifier, "") || self.contains_version(identifier, datestamp)
    }

    /// Whether the harvester has this version of an item.
    pub fn contains_version(&self, identifier: &str, datestamp: &str) -> bool {
        !self.is_empty() && self.hashes.contains(&self.hash.key(identifier.as_bytes(), datestamp.as_bytes()))
    }
}

impl ListHistories {
    /// The list that a token of the source, or a continuation token of ours, continues. `None` if the ledger does not
    /// know the list, or several lists have the token.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub async fn find(
        &self,
        verb: Verb,
        token: &str,
        now: SystemTime,
    ) -> Result<Option<ListHistory>, Failure> {
        let (facts, delivered) = match ContinuationToken::read(token, &self.token_key) {
            Some(continuation)
                if continuation.repository != self.repository
                    || unix_secs(now) > continuation.expires_secs =>
            {
                return Ok(None);
            }
            Some(continuation) => {
                let pages = DeliveredPages { place: continuation.place, part: Some(continuation.delivered) };
                let Some(facts) = self.recorded(pages, false).await?.list else { return Ok(None) };
                (facts, pages)
            }
            None => {
                let target = self.ledger.token_target(RepositoryId(&self.repository), verb, token).await;
                let place = target.map_err(Failure::from)?.and_then(|target| target.place);
                let Some((place, facts)) = place else { return Ok(None) };
                (facts, DeliveredPages { place, part: None })
            }
        };
        let delivered = facts.mixed_harvests().is_none().then_some(delivered);
        let state_secs = facts.state_secs();
        let first = Request::parse(facts.first_query.as_bytes()).ok();
        let first = first.filter(|first| first.verb() == verb);
        Ok(first.map(|first| ListHistory { first, state_secs, delivered }))
    }

    /// The items of delivered pages. The harvester receives those again that the ledger has forgotten.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub async fn items(&self, pages: DeliveredPages) -> Result<DeliveredItems, Failure> {
        let part = self.recorded(pages, true).await?;
        let RecordedPart { hashes, names, earlier, earlier_names, .. } = part;
        let hashes =
            [earlier, earlier_names, hashes.unwrap_or_default(), names].into_iter().flatten().collect();
        Ok(DeliveredItems { hash: ItemHash::new(&self.token_key), hashes })
    }

    async fn recorded(&self, pages: DeliveredPages, with_earlier: bool) -> Result<RecordedPart, Failure> {
        let DeliveredPages { place, part } = pages;
        let part = part.unwrap_or_default();
        let recorded =
            self.ledger.recorded_part(RepositoryId(&self.repository), place, part, with_earlier).await;
        recorded.map_err(Failure::from)
    }
}
