//! Fetches a record by itself before it is quarantined.
//!
//! Some sources break a record only in lists: in a page that is cut at a length, or in a record that was
//! written while the page was. The result of `GetRecord` replaces the broken record if it is whole and the
//! same record. It keeps the key of the broken record's bytes, so that a further attempt at the page leaves
//! both out.

use crate::adapt::requester::Requester;
use crate::page::buffer::PageBuffer;
use crate::page::item::FieldPlaces;
use crate::page::resume::Resumer;
use crate::per_record::refetch::{Refetched, Refetcher};
use crate::xml::text::unescape_text;
use oaimend_oai::{Request, Verb};
use oaimend_repository::rebase_namespaces::NamespaceScope;

/// A record that the source returned by itself.
struct Refetch {
    /// The key of the record in a list.
    hash: u64,
    deleted: bool,
    record: String,
    fields: FieldPlaces,
}

impl Refetcher {
    /// Fetches the records that are about to be quarantined, and replaces those that the source gives.
    pub(crate) async fn replace_broken_records(
        &mut self,
        requester: &mut Requester<'_>,
        buffer: &mut PageBuffer,
        resumer: &Resumer,
    ) {
        let context = requester.context;
        if !context.mapping.quirks.refetch_broken_records || context.request.verb() != Verb::ListRecords {
            return;
        }
        let broken = buffer.replaceable(|hash| resumer.knows(hash));
        if broken.is_empty() {
            return;
        }
        let Some(prefix) = requester.metadata_prefix.clone() else { return };
        let place = resumer.tags_with(buffer).map(|tags| tags.scope().clone()).unwrap_or_default();
        for (index, identifier) in broken {
            let identifier = unescape_text(identifier.as_bytes());
            let record = self.refetch_record(requester, &identifier, &prefix, &place).await;
            if let (Some(Refetch { hash, deleted, record, fields }), Some(broken)) =
                (record, buffer.hash_at(index))
            {
                buffer.replace_quarantined(index, record.as_bytes(), deleted, fields);
                if !self.refetched.contains(&(broken, hash)) {
                    self.refetched.push((broken, hash));
                }
            }
        }
    }

    /// A record, as it has to be written in `place`.
    async fn refetch_record(
        &mut self,
        requester: &mut Requester<'_>,
        identifier: &str,
        prefix: &str,
        place: &NamespaceScope,
    ) -> Option<Refetch> {
        let now = requester.now();
        let request = Request::get_record(identifier, prefix);
        let options = requester.options();
        let mut refetched = self.fetch(requester, &request, options).await;
        if refetched.lacks_datestamp() && requester.learn_lowest_datestamp().await {
            let options = requester.options();
            refetched = self.fetch(requester, &request, options).await;
        }
        let record = match refetched {
            Refetched::NotRequested => return None,
            Refetched::Nothing => None,
            Refetched::Response(response) => {
                let scope = response.scope();
                response.record(identifier).map(|item| {
                    let (record, fields) = item.rebase(&scope, place);
                    Refetch { hash: item.hash, deleted: item.deleted, record, fields }
                })
            }
        };
        requester.context.client.refetch_gate.note(now, record.is_some());
        record
    }
}
