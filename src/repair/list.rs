//! The items of a list: clean ones pass, broken ones are mended or put aside, and what stands between them is put right.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::border::{Border, BorderSearch};
use super::catalogue::{NotOai, QuarantineReason, RepairId};
use super::convention::take_default_off;
use super::edits::Edits;
use super::engine::{Engine, List, Stage, Step};
use super::facts::Facts;
use super::gate::{Answer, Role};
use super::loose::read_loose;
use super::mend::{Mended, mend};
use super::name::{blanks, is_blank};
use super::one_record::Leaves;
use super::removable::{is_fatal_message, is_punctuation};
use super::removal::{holds_item_or_token, removes_item, swallows_content};
use super::repair_set::RepairSet;
use super::scan::{Scan, Scanner};
use super::schema::Verb;
use super::sink::{FieldIssue, RecordFacts, Repair, Sink, SwallowedItems, UnresolvedField};
use super::skeleton::{Prefixes, Skeleton};
use super::swallowed::{items_in, sections_with_borders};
use super::tag::same;
use super::text::{Guesses, guess_characters};

/// Where the list goes on.
pub(super) enum Next {
    Stay(Step),
    /// The stage was set.
    Leave(Step),
}

impl Engine {
    /// The list whose verb element begins.
    pub(super) fn list_of(&self, verb: Verb) -> List {
        let name = if verb == Verb::Identify { b"OAI-PMH" } else { verb.name() };
        let is_version_one = self.version_one.is_some();
        let element = match is_version_one {
            true => verb.item_of_version_one(),
            false if self.headers_only => Verb::ListRecords.item(),
            false => verb.item(),
        };
        let skeleton = Skeleton {
            element,
            upgraded: is_version_one.then(|| verb.item()),
            verb: self.verb_name.clone().unwrap_or_else(|| name.to_vec()),
            prefix: self.prefix.clone(),
            other_prefix: None,
            prefixes: self.prefixes(),
            headers_only: self.headers_only,
            tears: self.config.enabled.contains(RepairId::TornSection) && !self.is_off(RepairId::TornSection),
        };
        let guesses = self.config.enabled != RepairSet::EMPTY;
        let careful =
            verb == Verb::Identify || skeleton.is_rewritten() || guesses || self.may_rewrite_clean();
        List {
            verb,
            careful,
            scanner: Scanner::new(skeleton.clone(), self.root_context),
            skeleton,
            context: self.root_context,
            written_context: self.written_context,
            // Identify is an item by itself, in the root.
            opened: verb == Verb::Identify && !is_version_one,
            item_offset: 0,
            in_item: false,
            border: None,
            token: None,
            token_written: false,
            token_seen: false,
            dropped: false,
            dropped_text: false,
            broke_off: false,
            passed_over: 0,
            asked_left: false,
        }
    }

    pub(super) fn list(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let Stage::List(mut list) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return Step::Settled(rest.len());
        };
        let next = if !list.opened && self.version_one.is_some() {
            self.open_version_one(&mut list, rest, last, sink)
        } else if !list.opened {
            self.open_list(&mut list, rest, last, sink)
        } else if list.border.is_some() {
            self.broken_item(&mut list, rest, last, sink)
        } else if list.in_item {
            self.items(&mut list, rest, last, sink)
        } else {
            self.between_items(&mut list, rest, last, sink)
        };
        match next {
            Next::Stay(step) => {
                self.stage = Stage::List(list);
                step
            }
            Next::Leave(step) => {
                if matches!(self.stage, Stage::Lost) {
                    self.verb = Some(list.verb);
                }
                if let Stage::Oversized(slot) = &mut self.stage {
                    **slot = *list;
                }
                step
            }
        }
    }

    /// The start tag of the verb element.
    fn open_list(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let end = match self.tag_end(rest, last) {
            Err(step) => return Next::Stay(step),
            Ok(None) => return Next::Leave(self.refuse(NotOai::BrokenEnvelope)),
            Ok(Some(end)) => end,
        };
        let Some(tag) = read_loose(rest, 0, end, &self.config.limits) else {
            return Next::Leave(self.refuse(NotOai::BrokenEnvelope));
        };
        let mut edits = Edits::default();
        for edit in tag.edits.iter() {
            edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
        }
        for attribute in &tag.attributes {
            let name = rest.get(attribute.name.0..attribute.name.1).unwrap_or_default();
            if !self.is_free(rest, &tag.attributes, name) {
                attribute.remove(RepairId::EnvelopeAttribute, &mut edits);
            }
        }
        edits.sort();
        if let Some(next) = self.empty_list(list, rest, end, tag.empty, last, sink) {
            return next;
        }
        let text = rest.get(..end).unwrap_or_default();
        let limits = &self.config.limits;
        match self.tags.open(&edits.apply(text), self.root_context, limits) {
            Ok(tag) if tag.oai => list.context = tag.context,
            _ => return Next::Leave(self.refuse(NotOai::BrokenEnvelope)),
        }
        self.rename(1, (&list.skeleton.verb, list.written_name()), &mut edits);
        if self.prefixes() == Prefixes::Off {
            take_default_off(rest, 0, end, &self.config.limits, &mut edits);
        }
        edits.sort();
        match self.tags.open(&edits.apply(text), self.written_context, &self.config.limits) {
            Ok(tag) if tag.oai => list.written_context = tag.context,
            _ => return Next::Leave(self.refuse(NotOai::BrokenEnvelope)),
        }
        if edits.iter().any(|edit| self.is_off(edit.id)) {
            return Next::Leave(self.refuse(NotOai::BrokenEnvelope));
        }
        self.tags.settle_envelope();
        list.scanner.stand_in(list.context);
        list.opened = true;
        let step = self.keep_edited(Role::List, rest, end, &edits, sink);
        if tag.empty {
            return Next::Leave(self.refuse(NotOai::NothingKept));
        }
        Next::Stay(step)
    }

    /// One thing between items.
    fn between_items(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let gap = blanks(rest);
        if gap > 0 {
            return Next::Stay(self.keep(Role::Plain, rest, gap, sink));
        }
        if self.gate.held_bytes > self.limits().head_bytes_max {
            return Next::Leave(self.refuse(NotOai::BrokenEnvelope));
        }
        if rest.first() != Some(&b'<') {
            let step = self.stray_text(rest, last, sink);
            list.dropped |= step != Step::NeedMore;
            if let Step::Settled(len) = step {
                list.dropped_text |= !is_punctuation(rest.get(..len).unwrap_or_default());
                list.broke_off |= is_fatal_message(rest.get(..len).unwrap_or_default());
            }
            return Next::Stay(step);
        }
        // Longest name that decides: `</`, prefix, `resumptionToken`.
        if rest.len() < 32 + self.prefix.len() && !last && memchr(b'>', rest).is_none() {
            return Next::Stay(Step::NeedMore);
        }
        match rest.get(1) {
            Some(b'!' | b'?') => self.comment_between(list, rest, last, sink),
            Some(b'/') => self.end_tag_between(list, rest, last, sink),
            _ => self.start_tag_between(list, rest, last, sink),
        }
    }

    /// Items one after the other, as long as they are clean.
    pub(super) fn items(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        list.scanner.new_window(0);
        let mut at = 0;
        // What was read but not written yet: everything up to `at`.
        let mut written = 0;
        loop {
            match list.scanner.scan(rest, at, last, &mut self.tags, &self.config.limits) {
                Scan::Clean(len) => {
                    let raw = rest.get(at..at + len).unwrap_or_default();
                    if self.needs_care(list) || !self.fit.holds(raw, &list.scanner.facts) {
                        self.flush(rest, &mut written, at, sink);
                        let identifier = Facts::slice(raw, list.scanner.facts.identifier);
                        match self.leaves(list, identifier, (rest, at, at + len), last, sink) {
                            Leaves::Yes => {
                                self.tell_swallowed(list, raw, at, sink);
                                self.clean_with_care(list, raw, at, sink);
                            }
                            Leaves::No => {}
                            Leaves::NeedMore => {
                                list.scanner.next_item(0);
                                return Next::Stay(if at > 0 {
                                    Step::Settled(at)
                                } else {
                                    self.need_more(rest)
                                });
                            }
                        }
                        written = at + len;
                    } else {
                        self.tell_swallowed(list, raw, at, sink);
                        self.commit_clean(raw, at, &list.scanner.facts, sink);
                    }
                    at += len;
                    list.in_item = false;
                    let next = at + blanks(rest.get(at..).unwrap_or_default());
                    let is_list = list.verb != Verb::Identify && list.verb != Verb::GetRecord;
                    let goes_on = is_list && self.gate.is_open();
                    if goes_on && self.is_item(list, rest.get(next..).unwrap_or_default()) {
                        at = next;
                        list.in_item = true;
                        self.tags.tidy();
                        list.scanner.next_item(at);
                        continue;
                    }
                    self.flush(rest, &mut written, at, sink);
                    return self.after_items(list, at);
                }
                other => {
                    self.flush(rest, &mut written, at, sink);
                    let step = if at > 0 { Step::Settled(at) } else { Step::NeedMore };
                    return match other {
                        Scan::NeedMore => Next::Stay(step),
                        Scan::TooLong if at == 0 && list.verb == Verb::Identify => {
                            Next::Leave(self.refuse(NotOai::BrokenEnvelope))
                        }
                        Scan::TooLong if at == 0 && self.may_hold_border(list, rest) => {
                            self.search_border(list, 0);
                            self.broken_item(list, rest, last, sink)
                        }
                        Scan::TooLong if at == 0 => self.begin_oversized(list, rest, sink),
                        Scan::Defect(_) => {
                            self.search_border(list, at);
                            if at == 0 { self.broken_item(list, rest, last, sink) } else { Next::Stay(step) }
                        }
                        _ => Next::Stay(step),
                    };
                }
            }
        }
    }

    /// The item `at` so many bytes is broken: its end has to be searched.
    fn search_border(&mut self, list: &mut List, at: usize) {
        list.border = Some(BorderSearch::new(self.base + at as u64, std::mem::take(&mut self.lookahead)));
    }

    /// Whether an item that is too long is so because a section in it never ended.
    /// Or because its header does not end: then it cannot be closed and is not begun.
    fn may_hold_border(&self, list: &List, rest: &[u8]) -> bool {
        // What is changed at its end cannot leave before that is seen.
        if !list.scanner.in_payload() || list.skeleton.is_rewritten() {
            return true;
        }
        let held = rest.get(..rest.len().min(self.limits().record_bytes_max)).unwrap_or_default();
        list.scanner.section_may_hold_border(held)
    }

    fn after_items(&mut self, list: &mut List, at: usize) -> Next {
        if list.verb == Verb::Identify {
            self.verb = Some(list.verb);
            if !self.gate.is_open() {
                // It is the answer itself, and was put aside.
                return Next::Leave(self.refuse(NotOai::NothingKept));
            }
            self.stage = Stage::Tail;
            return Next::Leave(Step::Settled(at));
        }
        Next::Stay(Step::Settled(at))
    }

    #[inline]
    pub(super) fn is_item(&self, list: &List, rest: &[u8]) -> bool {
        let (prefix, name) = (self.prefix.len(), list.skeleton.element.name);
        let Some((b'<', rest)) = rest.split_first() else { return false };
        let Some((tag, behind)) = rest.split_at_checked(prefix + name.len()) else { return false };
        let (found, local) = tag.split_at(prefix);
        same(found, &self.prefix)
            && same(local, name)
            && behind.first().is_some_and(|&byte| byte == b'>' || is_blank(byte))
    }

    /// Writes `rest` from what was written up to `at`.
    #[inline]
    fn flush(&mut self, rest: &[u8], written: &mut usize, at: usize, sink: &mut impl Sink) {
        if *written < at {
            sink.write(rest.get(*written..at).unwrap_or_default());
            *written = at;
        }
    }

    /// Whether an item that is in order is looked at all the same: the first one, one that may be
    /// there twice, and all of a list whose items are written otherwise than they were read.
    #[inline]
    fn needs_care(&self, list: &List) -> bool {
        !self.gate.is_open() || self.in_second_document || list.token_written || list.careful
    }

    #[inline]
    fn commit_clean(&mut self, raw: &[u8], at: usize, facts: &Facts, sink: &mut impl Sink) {
        let facts = RecordFacts {
            identifier: Facts::slice(raw, facts.identifier),
            datestamp: Facts::slice(raw, facts.datestamp),
            deleted: facts.deleted,
            offset: self.base + at as u64,
            repairs: 0,
            tilde_in_set: facts.tilde_in_set,
        };
        self.gate.seen.insert(facts.identifier, facts.datestamp);
        self.gate.committed(&facts, raw, sink);
    }

    /// The first item, Identify, one of 1.x, one that may be there twice, or one that does not fit
    /// its repository.
    fn clean_with_care(&mut self, list: &List, raw: &[u8], at: usize, sink: &mut impl Sink) {
        if list.skeleton.upgraded.is_some() {
            return self.upgrade_clean(list, raw, at, sink);
        }
        if list.skeleton.is_rewritten() {
            let rules = Self::rules(&self.config, &self.entities);
            match mend(raw, &list.skeleton, list.contexts(), &mut self.tags, &rules) {
                Ok(mended) => self.emit(list, raw, at, &mended, sink),
                Err(why) => self.put_aside(list, raw, at, why, sink),
            }
            return;
        }
        let facts = list.scanner.facts;
        if list.verb == Verb::Identify || !self.fit.holds(raw, &facts) {
            let rules = Self::rules(&self.config, &self.entities);
            let mended = mend(raw, &list.skeleton, list.contexts(), &mut self.tags, &rules);
            // It is valid as it came: where a limit is in the way it stays so.
            let item = mended.unwrap_or_else(|_| Mended::unchanged(raw, facts));
            return self.emit(list, raw, at, &item, sink);
        }
        let guesses = Guesses::of(self.config.enabled);
        if guesses.any() && !guess_characters(raw, guesses, &self.config.limits).is_empty() {
            let rules = Self::rules(&self.config, &self.entities);
            let mended = mend(raw, &list.skeleton, list.contexts(), &mut self.tags, &rules);
            let item = mended.unwrap_or_else(|_| Mended::unchanged(raw, facts));
            return self.emit(list, raw, at, &item, sink);
        }
        self.emit(list, raw, at, &Mended::unchanged(raw, facts), sink);
    }

    /// An item leaves, with the changes that were made to it.
    pub(super) fn emit(&mut self, list: &List, raw: &[u8], at: usize, item: &Mended, sink: &mut impl Sink) {
        let Mended { bytes, edits, facts, lacks, .. } = item;
        let identifier = Facts::slice(bytes, facts.identifier);
        let datestamp = Facts::slice(bytes, facts.datestamp);
        let offset = self.base + at as u64;
        if self.in_second_document && self.gate.seen.contains(identifier, datestamp) {
            self.gate.change_known(Role::Plain, RepairId::ConcatenatedDocuments, offset, raw, b"", sink);
            return;
        }
        if list.token_written {
            // Nothing may stand behind the token, and that one is out.
            let identifier = (!identifier.is_empty()).then_some(identifier);
            return self.gate.quarantine(identifier, offset, raw, QuarantineReason::IllegalEnvelope, sink);
        }
        self.gate.release(Answer::List, None, sink);
        let rewritten = self.rewritten(list, item);
        let is_rewritten = !rewritten.is_empty();
        let (output, edits) = if rewritten.is_empty() {
            (Cow::Borrowed(bytes.as_slice()), Cow::Borrowed(edits))
        } else {
            (rewritten.apply(bytes), Cow::Owned(edits.clone().then(bytes, rewritten)))
        };
        let (mut from, mut repairs) = (0, 0);
        for edit in edits.iter() {
            let original = raw.get(edit.start..edit.end).unwrap_or_default();
            if original == edit.replacement {
                // What one pass changed, a later one changed back.
                continue;
            }
            repairs += 1;
            sink.write(raw.get(from..edit.start).unwrap_or_default());
            let (offset, replacement) = (offset + edit.start as u64, edit.replacement.as_slice());
            self.gate.report(
                &Repair {
                    id: edit.id,
                    offset,
                    record: (!identifier.is_empty()).then_some(identifier),
                    original,
                    replacement,
                },
                sink,
            );
            from = edit.end;
        }
        sink.write(raw.get(from..).unwrap_or_default());
        // Our own base URL stands in the place of an illegal one.
        let is_ours = |lack: &(&str, FieldIssue)| is_rewritten && *lack == ("baseURL", FieldIssue::Illegal);
        for &(element, lack) in lacks.iter().filter(|lack| !is_ours(lack)) {
            self.gate.unresolved += 1;
            sink.unresolved(&UnresolvedField { offset, element, lack });
        }
        self.gate.seen.insert(identifier, datestamp);
        if list.verb == Verb::Identify {
            // The answer itself, and no item of a list.
            return;
        }
        let (deleted, tilde_in_set) = (facts.deleted, facts.tilde_in_set);
        let facts = RecordFacts { identifier, datestamp, deleted, offset, repairs, tilde_in_set };
        self.gate.committed(&facts, &output, sink);
    }

    /// An item whose strict reading failed: find its end, mend it or put it aside.
    fn broken_item(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let bytes_max = self.limits().record_bytes_max;
        let Some(search) = &mut list.border else { return Next::Stay(Step::Settled(0)) };
        let (skeleton, context) = (&list.skeleton, list.context);
        let (tags, limits) = (&mut self.tags, &self.config.limits);
        let mut probe = |text: &[u8]| {
            tags.tidy();
            let mut scanner = Scanner::new(skeleton.clone(), context);
            scanner.new_window(0);
            scanner.scan(text, 0, false, tags, limits)
        };
        let border = search.find(rest, last, skeleton, bytes_max, &mut probe);
        let may_tear = search.may_tear();
        if border == Border::NeedMore {
            return Next::Stay(Step::NeedMore);
        }
        self.tags.tidy();
        let mut mended = self.mend_item(list, rest, border);
        if may_tear && !mended.as_ref().is_some_and(|mended| mended.as_ref().is_ok_and(|m| !m.markup)) {
            // A section with a border in it was taken for content, and that made no
            // sense: it was never closed.
            list.border = list.border.take().map(BorderSearch::tearing);
            return self.broken_item(list, rest, last, sink);
        }
        if list.border.as_ref().is_some_and(BorderSearch::has_torn)
            && let Some(Ok(mended)) = &mut mended
        {
            mended.edits.tear();
        }
        self.lookahead = list.border.take().map(BorderSearch::into_lookahead).unwrap_or_default();
        let (Border::At(end), Some(mended)) = (border, mended) else {
            if border == Border::InputEnd {
                return Next::Leave(self.input_ends_in_item(list, rest, sink));
            }
            self.gate.lost += 1;
            self.leave_broken_list(list);
            return Next::Leave(Step::Settled(0));
        };
        let raw = rest.get(..end).unwrap_or_default();
        match mended {
            Ok(mended) if loses_item(raw, &mended, &list.skeleton) => {
                let identifier = peek_identifier(raw, &list.skeleton);
                self.gate.put_aside_unread(identifier, self.base, raw, sink);
            }
            Ok(mended) => {
                let identifier = Facts::slice(&mended.bytes, mended.facts.identifier);
                match self.leaves(list, identifier, (rest, 0, end), last, sink) {
                    Leaves::Yes => {
                        list.scanner.facts.swallows = mended.facts.swallows;
                        self.tell_swallowed(list, raw, 0, sink);
                        self.emit(list, raw, 0, &mended, sink);
                    }
                    Leaves::No => {}
                    Leaves::NeedMore => {
                        self.search_border(list, 0);
                        return Next::Stay(self.need_more(rest));
                    }
                }
            }
            Err(why) => {
                list.broke_off = why == QuarantineReason::Truncated;
                list.scanner.facts.swallows = true;
                self.tell_swallowed(list, raw, 0, sink);
                self.put_aside(list, raw, 0, why, sink);
            }
        }
        list.in_item = false;
        self.after_items(list, end)
    }

    /// The item before the border, mended; `None` where there is no border.
    fn mend_item(
        &mut self,
        list: &List,
        rest: &[u8],
        border: Border,
    ) -> Option<Result<Mended, QuarantineReason>> {
        let Border::At(end) = border else { return None };
        let behind = rest.get(end..).unwrap_or_default();
        if list.skeleton.tag(behind, b"<", b"OAI-PMH") == super::skeleton::Answer::Yes {
            // The page begins again: nobody knows what is missing of this item.
            return Some(Err(QuarantineReason::Truncated));
        }
        let rules = Self::rules(&self.config, &self.entities);
        let raw = rest.get(..end)?;
        Some(mend(raw, &list.skeleton, list.contexts(), &mut self.tags, &rules))
    }

    /// Says which items lie in sections of the item `at` so many bytes.
    pub(super) fn tell_swallowed(&mut self, list: &List, raw: &[u8], at: usize, sink: &mut impl Sink) {
        if !list.scanner.facts.swallows {
            return;
        }
        for section in sections_with_borders(raw, &list.skeleton) {
            let items = items_in(raw, section, &list.skeleton);
            if items.is_empty() {
                continue;
            }
            self.gate.swallowed += items.len() as u64;
            let offset = self.base + (at + section.0) as u64;
            let identifier = peek_identifier(raw, &list.skeleton);
            sink.items_swallowed(&SwallowedItems { identifier, offset, items });
        }
    }

    /// The item `at` so many bytes goes to quarantine.
    pub(super) fn put_aside(
        &mut self,
        list: &List,
        raw: &[u8],
        at: usize,
        why: QuarantineReason,
        sink: &mut impl Sink,
    ) {
        let identifier = peek_identifier(raw, &list.skeleton);
        self.gate.quarantine(identifier, self.base + at as u64, raw, why, sink);
    }

    /// The list cannot go on: what went out breaks off, or nothing went out.
    pub(super) fn leave_broken_list(&mut self, list: &List) {
        self.verb = Some(list.verb);
        self.refuse(NotOai::BrokenEnvelope);
        self.truncated = self.gate.is_open();
    }

    fn input_ends_in_item(&mut self, list: &mut List, rest: &[u8], sink: &mut impl Sink) -> Step {
        self.verb = Some(list.verb);
        if self.config.ending == super::Ending::Close {
            self.put_aside(list, rest, 0, QuarantineReason::Truncated, sink);
            self.list_cut(list);
            return Step::Settled(rest.len());
        }
        let step = self.change(RepairId::TruncatedInput, rest, rest.len(), b"", sink);
        self.truncated = true;
        if !self.gate.is_open() {
            self.refuse(NotOai::NothingKept);
        }
        step
    }
}

/// Whether what mended an item has cost another one, or a token. An Identify that breaks the schema
/// and contains an item is the beginning of one response and the rest of another.
pub(super) fn loses_item(raw: &[u8], mended: &Mended, skeleton: &Skeleton) -> bool {
    let is_mixed = !mended.lacks.is_empty() && holds_item_or_token(raw);
    is_mixed
        || match mended.markup {
            true => swallows_content(raw, &mended.edits, skeleton),
            false => removes_item(raw, &mended.edits, skeleton),
        }
}

/// The identifier of an item that could not be read as a whole.
pub(super) fn peek_identifier<'t>(raw: &'t [u8], skeleton: &Skeleton) -> Option<&'t [u8]> {
    let name: &[u8] = match skeleton.element.name {
        b"set" => b"setSpec",
        b"metadataFormat" => b"metadataPrefix",
        _ => b"identifier",
    };
    let ends_name = |at: &usize| raw.get(*at).is_some_and(|&byte| byte == b'>' || byte.is_ascii_whitespace());
    let behind = skeleton.item_prefixes().find_map(|prefix| {
        let open = [b"<", prefix, name].concat();
        memmem::find_iter(raw, &open).map(|at| at + open.len()).find(ends_name)
    })?;
    let rest = raw.get(behind..)?;
    let rest = rest.get(memchr(b'>', rest)? + 1..)?;
    let text = super::name::trim(rest.get(..memchr(b'<', rest)?)?);
    (!text.is_empty()).then_some(text)
}
