//! Fetches the datestamp of a record that has no readable one.
//!
//! The engine wrote the lowest datestamp that the record can have. `GetRecord` is asked first, within the
//! bounds of a refetch; without success, `ListIdentifiers` with the arguments of the page is asked once. Only
//! the datestamp is used. Without a response the record keeps the lowest datestamp.

use crate::adapt::requester::Requester;
use crate::page::buffer::PageBuffer;
use crate::page::resume::Resumer;
use crate::per_record::refetch::{HeaderDatestamps, Refetched, Refetcher, SourceDatestamp};
use crate::xml::text::unescape_text;
use oaimend_oai::datestamp::{is_legal, is_sentinel};
use oaimend_oai::{Request, Verb};
use oaimend_repair::RepairId;
use oaimend_repository::lists::ItemHash;

impl Refetcher {
    /// Fetches the datestamps of the records that got a lower bound in their place. `source_request` is the request
    /// that the page answers.
    pub(crate) async fn replace_lower_bounds(
        &mut self,
        requester: &mut Requester<'_>,
        source_request: &Request,
        buffer: &mut PageBuffer,
        resumer: &Resumer,
    ) {
        let context = requester.context;
        let is_list = context.request.verb().is_harvest();
        if !context.mapping.quirks.refetch_broken_records || !is_list {
            return;
        }
        for index in buffer.with_lower_bound(|hash| resumer.knows(hash)) {
            let Some(identifier) = buffer.identifier_at(index) else { continue };
            let Some(dated) = self.refetch_datestamp(requester, source_request, &identifier).await else {
                continue;
            };
            let Some(before) = buffer.hash_at(index) else { continue };
            if buffer.replace_datestamp(index, &dated.stamp, &dated.of_source) {
                self.refetched.push((before, dated.hash));
            }
        }
    }

    async fn refetch_datestamp(
        &mut self,
        requester: &mut Requester<'_>,
        source_request: &Request,
        identifier: &str,
    ) -> Option<SourceDatestamp> {
        if let Some(dated) = self.listed.as_ref().and_then(|listed| listed.get(identifier)) {
            return Some(dated.clone());
        }
        if let Some(prefix) = requester.metadata_prefix.clone() {
            let request = Request::get_record(identifier, &prefix);
            let datestamps = self.fetch_datestamps(requester, &request).await;
            if let Some(dated) = datestamps.and_then(|mut datestamps| datestamps.remove(identifier)) {
                return Some(dated);
            }
        }
        // A token may be valid once only, and the page has used it.
        let may_ask =
            requester.context.request.verb() == Verb::ListRecords && !source_request.is_resumption();
        if may_ask && self.listed.is_none() {
            let request = source_request.to_list_identifiers();
            self.listed = Some(self.fetch_datestamps(requester, &request).await.unwrap_or_default());
        }
        self.listed.as_ref()?.get(identifier).cloned()
    }

    /// The datestamps in the response to a request; `None` without a response.
    async fn fetch_datestamps(
        &mut self,
        requester: &mut Requester<'_>,
        request: &Request,
    ) -> Option<HeaderDatestamps> {
        let now = requester.now();
        // A lower bound in place of a datestamp would be no gain.
        let mut options = requester.options();
        options.facts.lowest_datestamp = None;
        let is_off = requester.context.mapping.repairs.off.contains(RepairId::DatestampGranularity);
        let announced = options.facts.granularity.take();
        let granularity = if is_off { None } else { announced };
        let hash = ItemHash::new(&requester.context.store.token_key);
        let items = match self.fetch(requester, request, options).await {
            Refetched::Response(response) => response.items,
            Refetched::Nothing => {
                requester.context.client.refetch_gate.note(now, false);
                return None;
            }
            Refetched::NotRequested => return None,
        };
        let dated = items.into_iter().filter_map(|item| {
            let of_source = String::from_utf8(item.datestamp).ok()?;
            if !is_legal(of_source.as_bytes()) || is_sentinel(of_source.as_bytes()) {
                return None;
            }
            let stamp = granularity.map_or_else(|| of_source.clone(), |fit| fit.fitted(&of_source));
            let hash = hash.key(&item.identifier, stamp.as_bytes());
            Some((unescape_text(&item.identifier), SourceDatestamp { stamp, of_source, hash }))
        });
        let dated: HeaderDatestamps = dated.collect();
        requester.context.client.refetch_gate.note(now, !dated.is_empty());
        Some(dated)
    }
}
