//! A record without a readable datestamp left the engine with the lowest one that it can have: here
//! the source is asked for the right one.
//!
//! `GetRecord` first, as for a record that is about to be put aside, and within the same bounds; where
//! that brings nothing, once a request, `ListIdentifiers` with the arguments of the page. Only the
//! datestamp is taken. What is not had keeps its bound.

use crate::oai::datestamp::{is_legal, is_sentinel};
use crate::oai::{Request, Verb};
use crate::repair::RepairId;
use crate::upstream::adapt::subrequest::inquire;
use crate::upstream::page::buffer::{PageBuffer, PageItem};
use crate::upstream::page::resume::Resumer;
use crate::upstream::session::list_session::{ListSession, resolved};
use std::borrow::Cow;
use std::collections::HashMap;

/// What a list of headers said: datestamps by identifier, and what the list knows the item by.
pub(crate) type HeaderDatestamps = HashMap<String, SourceDatestamp>;

/// The datestamp that the source gave elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct SourceDatestamp {
    stamp: String,
    /// What an item of that datestamp is known by.
    hash: u64,
}

impl ListSession<'_> {
    /// Asks for the datestamps of the records that got a bound in their place.
    pub(crate) async fn redate(&mut self, pieces: &mut PageBuffer, splice: &Resumer) {
        let is_list = matches!(self.job.request.verb(), Verb::ListRecords | Verb::ListIdentifiers);
        if !self.job.mapping.quirks.refetch_broken_records || !is_list {
            return;
        }
        for index in pieces.bounded(|hash| splice.knows(hash)) {
            let Some(identifier) = pieces.identifier_at(index) else { continue };
            let Some(dated) = self.dated(&identifier).await else { continue };
            let Some(before) = pieces.found.get(index).map(PageItem::hash) else { continue };
            if pieces.redate(index, &dated.stamp) {
                self.account.recalled += 1;
                self.recalled.push((before, dated.hash));
            }
        }
    }

    async fn dated(&mut self, identifier: &str) -> Option<SourceDatestamp> {
        if let Some(dated) = self.headers_told.as_ref().and_then(|told| told.get(identifier)) {
            return Some(dated.clone());
        }
        if let Some(prefix) = self.metadata_prefix() {
            let request = Request::get_record(identifier, &prefix);
            let told = self.datestamps(&request).await;
            if let Some(dated) = told.and_then(|mut told| told.remove(identifier)) {
                return Some(dated);
            }
        }
        // A token may be good for one question only, and that was the page.
        let may_ask = self.job.request.verb() == Verb::ListRecords && !self.asked.is_resumption();
        if may_ask && self.headers_told.is_none() {
            let request = self.asked.headers_only();
            self.headers_told = Some(self.datestamps(&request).await.unwrap_or_default());
        }
        self.headers_told.as_ref()?.get(identifier).cloned()
    }

    /// The datestamps in the answer to a question; `None` where there is none to be had.
    async fn datestamps(&mut self, request: &Request) -> Option<HeaderDatestamps> {
        let (client, now) = (&self.job.client, self.budget.now());
        let mut budget = self.budget_of_a_recall()?;
        // What stands in for a datestamp there is no news.
        let mut manner = self.manner();
        manner.repository.lowest_datestamp = None;
        let told = Box::pin(inquire(self.job, request, manner, usize::MAX, true, &mut budget)).await;
        self.budget.spend(&budget);
        let told = match told {
            Ok(told) => told.items,
            Err(unanswered) => {
                if !unanswered.says_nothing() {
                    client.recalls.note(now, false);
                }
                return None;
            }
        };
        let dated = told.into_iter().filter_map(|item| {
            let stamp = String::from_utf8(item.datestamp).ok()?;
            let is_one = is_legal(stamp.as_bytes()) && !is_sentinel(stamp.as_bytes());
            is_one.then(|| (resolved(&item.identifier), SourceDatestamp { stamp, hash: item.hash }))
        });
        let dated: HeaderDatestamps = dated.collect();
        client.recalls.note(now, !dated.is_empty());
        Some(dated)
    }
}

impl PageBuffer {
    /// The items whose datestamp is a bound, and that are not known.
    fn bounded(&self, is_known: impl Fn(u64) -> bool) -> Vec<usize> {
        let is_bounded = |found: &PageItem| match found {
            PageItem::Item { hash, repairs, len, .. } => {
                *len > 0
                    && repairs.iter().any(|(id, _)| *id == RepairId::DatestampLowerBound)
                    && !is_known(*hash)
            }
            PageItem::Aside { .. } => false,
        };
        (0..self.found.len()).filter(|&index| self.found.get(index).is_some_and(is_bounded)).collect()
    }

    /// An item as it will leave.
    pub(crate) fn item(&self, index: usize) -> Option<Cow<'_, str>> {
        let found = self.found.get(index)?;
        let start = found.start()?;
        match self.made.slice(start..start + found.len()) {
            Cow::Borrowed(item) => std::str::from_utf8(item).ok().map(Cow::Borrowed),
            Cow::Owned(item) => String::from_utf8(item).ok().map(Cow::Owned),
        }
    }

    fn identifier_at(&self, index: usize) -> Option<String> {
        let item = self.item(index)?;
        Some(resolved(item.get(field(&item, "identifier")?)?.as_bytes()))
    }

    /// Gives an item another datestamp; whether it has it now. It stays known by the first one.
    fn redate(&mut self, index: usize, stamp: &str) -> bool {
        let bound = self.item(index).and_then(|item| {
            let within = field(&item, "datestamp")?;
            Some((within.clone(), item.get(within)?.to_owned()))
        });
        let Some((within, bound)) = bound else { return false };
        let delta = stamp.len() as i64 - bound.len() as i64;
        let Some(PageItem::Item { start, len, repairs, .. }) = self.found.get_mut(index) else {
            return false;
        };
        let at = *start + within.start;
        *len = len.saturating_add_signed(delta as isize);
        for made in repairs.iter_mut().filter(|(id, _)| *id == RepairId::DatestampLowerBound) {
            if let Some(made) = &mut made.1 {
                made.replacement = made.replacement.replace(&bound, stamp);
            }
        }
        let is_told = repairs.iter().any(|(id, _)| *id == RepairId::RewriteProvenance);
        self.made.change(|bytes| drop(bytes.splice(at..at + bound.len(), stamp.bytes())));
        self.grown_behind(index, delta);
        if is_told {
            self.redate_provenance(index, &bound, stamp);
        }
        true
    }

    /// Gives the provenance that was added to an item the datestamp that its header has now.
    fn redate_provenance(&mut self, index: usize, bound: &str, stamp: &str) {
        let within = self.item(index).and_then(|item| described(&item, bound));
        let Some(within) = within else { return };
        let delta = stamp.len() as i64 - bound.len() as i64;
        let Some(PageItem::Item { start, len, .. }) = self.found.get_mut(index) else { return };
        let at = *start + within;
        *len = len.saturating_add_signed(delta as isize);
        self.made.change(|bytes| drop(bytes.splice(at..at + bound.len(), stamp.bytes())));
        self.grown_behind(index, delta);
    }
}

/// Where a datestamp stands in the first description of the item's origin that says its identifier and this one.
fn described(item: &str, bound: &str) -> Option<usize> {
    let identifier = item.get(field(item, "identifier")?)?;
    let value = format!("datestamp>{bound}</");
    item.match_indices(&value).find_map(|(at, _)| {
        let before = item.get(..item.get(..at)?.rfind('<')?)?;
        let prefix = item.get(before.len() + 1..at)?;
        let is_described =
            before.ends_with(&format!("<{prefix}identifier>{identifier}</{prefix}identifier>"));
        is_described.then_some(at + "datestamp>".len())
    })
}

/// Where the text of the first element of that name stands.
fn field(item: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let mut reader = quick_xml::Reader::from_str(item);
    loop {
        match reader.read_event().ok()? {
            quick_xml::events::Event::Start(tag) if tag.local_name().as_ref() == name => {
                let start = usize::try_from(reader.buffer_position()).ok()?;
                let len = item.get(start..)?.find('<')?;
                return Some(start..start + len);
            }
            quick_xml::events::Event::Eof => return None,
            _ => {}
        }
    }
}
