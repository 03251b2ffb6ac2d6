//! Fetches single records of a page again, within bounds: broken ones, and those without a datestamp.

use crate::adapt::requester::Requester;
use crate::adapt::subrequest::{SubResponse, SubrequestOptions};
use oaimend_oai::Request;
use std::collections::HashMap;
use std::time::Duration;

/// Single records that were fetched for one request of a harvester.
#[derive(Debug, Default)]
pub(crate) struct Refetcher {
    requests: u32,
    /// The refetched items: the key of the item on the page, and its key in a list of headers.
    pub(super) refetched: Vec<(u64, u64)>,
    /// Datestamps from a list of headers, once that was fetched.
    pub(super) listed: Option<HeaderDatestamps>,
}

/// The datestamps of items by identifier.
pub(crate) type HeaderDatestamps = HashMap<String, SourceDatestamp>;

/// A datestamp that the source gave elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct SourceDatestamp {
    /// In the granularity of the repository, if that is known.
    pub(super) stamp: String,
    /// As the source gave it.
    pub(super) of_source: String,
    /// The key of the item with that datestamp.
    pub(super) hash: u64,
}

/// The result of a refetch.
pub(super) enum Refetched {
    Response(Box<SubResponse>),
    /// The source gave no response.
    Nothing,
    /// The source was not asked, or the failure says nothing about it.
    NotRequested,
}

impl Refetched {
    /// Whether the record has no readable datestamp, and no lower bound for one is known.
    pub(super) fn lacks_datestamp(&self) -> bool {
        matches!(self, Self::Response(response) if response.buffer.defects.lacks_datestamp())
    }
}

/// Refetches for one request of a harvester.
const REQUESTS_MAX: u32 = 20;
/// Longest wait for one record: the rest of the page waits meanwhile.
const TIME_MAX: Duration = Duration::from_secs(5);

impl Refetcher {
    /// The keys in a list of headers of those refetched items that were delivered.
    pub(crate) fn listed_as(&self, delivered: &[u64]) -> Vec<u64> {
        let refetched = self.refetched.iter().filter(|(key, _)| delivered.contains(key));
        refetched.map(|(_, listed)| *listed).collect()
    }

    /// Sends a subrequest, if the bounds allow one more.
    pub(super) async fn fetch(
        &mut self,
        requester: &mut Requester<'_>,
        request: &Request,
        options: SubrequestOptions,
    ) -> Refetched {
        if self.requests >= REQUESTS_MAX || !is_allowed(requester) {
            return Refetched::NotRequested;
        }
        self.requests += 1;
        fetch_record(requester, request, options).await
    }
}

/// Whether the source may be asked for a single record now.
pub(super) fn is_allowed(requester: &Requester<'_>) -> bool {
    requester.context.client.refetch_gate.is_open(requester.now())
}

/// Sends a subrequest beside the page. At most half of the time that is left is spent: the rest of the page
/// comes first.
pub(super) async fn fetch_record(
    requester: &mut Requester<'_>,
    request: &Request,
    options: SubrequestOptions,
) -> Refetched {
    let limit = TIME_MAX.min(requester.deadline.left() / 2);
    let options = SubrequestOptions { is_beside_page: true, ..options };
    match requester.ask_within(limit, request, options).await {
        Ok(response) => Refetched::Response(Box::new(response)),
        Err(error) if error.is_unrelated_to_source() => Refetched::NotRequested,
        Err(_) => Refetched::Nothing,
    }
}
