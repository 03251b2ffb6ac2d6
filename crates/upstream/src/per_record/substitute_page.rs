//! A page that is made of single records, in place of one that fails.

use crate::adapt::requester::Requester;
use crate::page::attempt::{Page, ResponseStart};
use crate::page::buffer::PageBuffer;
use crate::page::resume::Resumer;
use crate::xml::envelope_tags::EnvelopeTags;
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_repository::Failure;
use oaimend_repository::lists::ItemHash;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_store::QuarantinedRecord;

/// A page of our own making, on its way through the engine.
pub(crate) struct SubstitutePage {
    pub(crate) page: Page,
    pub(crate) resumer: Resumer,
    tags: EnvelopeTags,
    /// The namespaces around the records.
    pub(crate) place: NamespaceScope,
    pub(crate) is_empty: bool,
    /// Records that cannot be fetched, until the source is seen to give others.
    pub(crate) lost: Vec<(u64, QuarantinedRecord)>,
}

impl SubstitutePage {
    /// An empty page. `begun` are the tags of the response, if a part of it was sent; `failure` is why the
    /// page is needed.
    pub(crate) fn new(requester: &Requester<'_>, begun: Option<EnvelopeTags>, failure: &Failure) -> Self {
        let context = requester.context;
        let requested_at = clock::utc_datetime(requester.now());
        let tags = begun.clone().unwrap_or_else(|| EnvelopeTags::for_own_list(context.request.verb()));
        let head = tags.open(&requested_at, &context.echo.base_url);
        let start = ResponseStart {
            name: context.client.name(),
            status: failure.received_status.unwrap_or(200),
            retry_after_secs: None,
            charset: None,
            requested_at,
            http_date_secs: None,
            request_token: None,
            repository: requester.facts.clone(),
        };
        let buffer = PageBuffer::new(ItemHash::new(&context.store.token_key), context.mapping.secrets());
        let mut page = Page::new(&context.mapping, &context.echo, start, buffer);
        page.push(Bytes::copy_from_slice(head.as_bytes()));
        Self {
            page,
            resumer: Resumer::for_substitute(begun).reporting_records(context.reports_records),
            place: tags.scope().clone(),
            tags,
            is_empty: true,
            lost: Vec::new(),
        }
    }

    /// Feeds the engine with a record.
    pub(crate) fn push(&mut self, record: &str) {
        self.page.push(Bytes::copy_from_slice(record.as_bytes()));
        self.is_empty = false;
    }

    /// Feeds the engine with the end of the page.
    pub(crate) fn close(&mut self, token: Option<&str>) {
        self.page.push(self.tags.close_with(token).into());
    }
}
