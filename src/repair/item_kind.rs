//! Which items begin in a list: those that its first item announces, and those that are written otherwise.
//!
//! An item may be under another prefix than the list, and a list of headers may hold records beside plain
//! headers. Each such item is read as what it is, and written as the list demands.

use super::catalogue::RepairId;
use super::engine::{Engine, List, Step};
use super::name::{name_span, split_name};
use super::scan::Scanner;
use super::schema::Verb;
use super::skeleton::{Answer, Prefixes, Skeleton};

impl Engine {
    /// Whether an item begins with the start tag that `rest` begins with. The list is then ready to read it.
    /// `Err` when more text is needed to say.
    pub(super) fn begins_item_of(&mut self, list: &mut List, rest: &[u8], last: bool) -> Result<bool, Step> {
        let body = rest.get(1..).unwrap_or_default();
        let name = body.get(..name_span(body)).unwrap_or_default();
        let single = matches!(list.verb, Verb::GetRecord | Verb::Identify);
        if single && self.gate.is_open() {
            return Ok(false);
        }
        let (prefix, local) = split_name(name);
        if self.is_of_other_kind(list, rest, local, last)? {
            let headers_only = !list.skeleton.headers_only;
            list.skeleton.element =
                if headers_only { Verb::ListRecords.item() } else { Verb::ListIdentifiers.item() };
            list.skeleton.headers_only = headers_only;
            list.careful = true;
            list.scanner = Scanner::new(list.skeleton.clone(), list.context);
        }
        if local != list.skeleton.element.name {
            return Ok(false);
        }
        if name.strip_prefix(self.prefix.as_slice()) == Some(local) {
            return Ok(true);
        }
        if list.skeleton.prefixes == Prefixes::Stay || list.verb == Verb::Identify {
            return Ok(false);
        }
        let Some(tag_end) = self.tag_end(rest, last)? else { return Ok(false) };
        self.tags.tidy();
        let tag = rest.get(..tag_end).unwrap_or_default();
        let is_oai = self.tags.open(tag, list.context, &self.config.limits).is_ok_and(|tag| tag.oai);
        if is_oai {
            let colon: &[u8] = if prefix.is_empty() { b"" } else { b":" };
            list.skeleton.other_prefix = Some([prefix, colon].concat());
        }
        Ok(is_oai)
    }

    /// Whether a list of headers that are in records goes on with a plain one, or the other way round.
    fn is_of_other_kind(&mut self, list: &List, rest: &[u8], local: &[u8], last: bool) -> Result<bool, Step> {
        let is_list = list.verb == Verb::ListIdentifiers && self.version_one.is_none();
        if !is_list || self.is_off(RepairId::WrappedHeader) {
            return Ok(false);
        }
        match (local, list.skeleton.headers_only) {
            (b"header", true) => Ok(true),
            (b"record", false) => {
                let record = Skeleton { element: Verb::ListRecords.item(), ..list.skeleton.clone() };
                let bytes_max = self.limits().tag_bytes_max;
                let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
                match record.starts_item(within) {
                    Answer::Cut if !last && rest.len() < bytes_max => Err(self.need_more(rest)),
                    answer => Ok(answer == Answer::Yes),
                }
            }
            _ => Ok(false),
        }
    }
}
