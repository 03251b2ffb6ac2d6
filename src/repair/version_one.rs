//! Responses of OAI-PMH 1.0 and 1.1: how they are known, and how their outside becomes that of 2.0.
//!
//! There is no pass in front of the others. The stages read such a response
//! where it stands; here is what they ask when it differs. In 1.x the root is
//! the verb, `requestURL` is the request, the items follow behind it, and the
//! root's end tag ends the list. The items themselves are
//! [`upgrade`](super::upgrade)'s.

use memchr::{memchr, memmem};

use super::catalogue::{NotOai, RepairId};
use super::context::{OAI, XSI};
use super::edits::Edits;
use super::engine::{Engine, List, Stage, Step};
use super::gate::Role;
use super::head::{Landmark, escape_attribute, escape_url, head_end, is_request_argument};
use super::lexeme::{Lexeme, Lexemes};
use super::list::{Next, loses_item};
use super::loose::{LooseAttribute, LooseTag, read_loose};
use super::mend::{Mended, mend};
use super::name::{is_legal_char, name_span, split_name, trim};
use super::schema::{Content, Verb};
use super::sink::Sink;
use super::skeleton::Prefixes;
use super::text::{escape, resolve};
use super::upgrade::{Roots, facts_behind, is_old_xsi};

/// What is known of a response of OAI-PMH 1.x.
#[derive(Debug)]
pub(super) struct VersionOne {
    /// `"1.0"` or `"1.1"`.
    pub(super) version: &'static str,
    verb: Verb,
    /// Whether its request asked for the format that every record has.
    asks_for_dc: bool,
    roots: Roots,
}

/// What the root's schemaLocation says in 2.0.
pub(super) const LOCATION: &[u8] =
    b"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

/// The version that a root's namespace names.
fn version_of(uri: &[u8]) -> Option<&'static str> {
    let lower = uri.to_ascii_lowercase();
    let rest = lower.strip_prefix(b"http://www.openarchives.org/oai/1.")?;
    let (version, verb) = match rest {
        [b'0', verb @ ..] => ("1.0", verb),
        [b'1', verb @ ..] => ("1.1", verb),
        _ => return None,
    };
    let verb = verb.strip_prefix(b"/oai_")?;
    let is_verb = Verb::ALL.iter().any(|known| known.name().eq_ignore_ascii_case(verb));
    is_verb.then_some(version)
}

/// Whether a response in this namespace is of 1.x.
pub(super) fn is_version_one(uri: &[u8]) -> bool {
    version_of(uri).is_some()
}

/// What a namespace on the root becomes.
pub(super) fn root_namespace(uri: &[u8]) -> Option<&'static [u8]> {
    if is_version_one(uri) {
        return Some(OAI);
    }
    is_old_xsi(uri).then_some(XSI)
}

/// The root's schemaLocation is that of 2.0.
pub(super) fn root_location(attribute: &LooseAttribute, edits: &mut Edits) {
    if attribute.value != LOCATION {
        attribute.set(RepairId::V1Root, LOCATION, edits);
    }
}

impl VersionOne {
    /// What the tag says, if it is the root of a response of 1.x.
    fn of_root(text: &[u8], at: usize, tag: &LooseTag) -> Option<Self> {
        let (prefix, local) = split_name(text.get(at + 1..tag.name_end)?);
        let verb = Verb::from_name(local)?;
        let own: &[u8] = if prefix.is_empty() { b"xmlns" } else { b"xmlns:" };
        let declaration = [own, prefix].concat();
        let is_own = |attribute: &&LooseAttribute| {
            text.get(attribute.name.0..attribute.name.1) == Some(declaration.as_slice())
        };
        let version = version_of(trim(&tag.attributes.iter().find(is_own)?.value))?;
        Some(Self { version, verb, asks_for_dc: false, roots: Roots::default() })
    }

    /// What a tag at the top level begins.
    pub(super) fn landmark(&self, is_open: bool, local: &[u8]) -> Option<Landmark> {
        let item = self.verb.item_of_version_one();
        let begins = match (&item.content, self.verb) {
            (Content::Children(children), Verb::Identify) => children.iter().any(|child| child.name == local),
            (_, Verb::ListIdentifiers) if local == b"identifier" => true,
            _ => local == item.name || local == b"resumptionToken" && self.verb.has_token(),
        };
        match is_open {
            true if begins => Some(Landmark::Verb(self.verb)),
            false if local == self.verb.name() => Some(Landmark::Verb(self.verb)),
            false if local == b"OAI-PMH" => Some(Landmark::RootEnd),
            _ => None,
        }
    }
}

impl Engine {
    /// Where the root of a response of 1.x begins, if that comes before `before`
    /// ends, and its tag; `Err` when more text is needed to say.
    pub(super) fn version_one_root(
        &mut self,
        rest: &[u8],
        before: usize,
        last: bool,
    ) -> Result<Option<(usize, LooseTag)>, Step> {
        let mut at = 0;
        let before = before.min(self.limits().junk_bytes_max + 1);
        while let Some(next) = memchr(b'<', rest.get(at..before).unwrap_or_default()) {
            at += next;
            let tag = rest.get(at..).unwrap_or_default();
            if tag.starts_with(b"<!--") {
                let Some(end) = memmem::find(tag, b"-->") else { return Ok(None) };
                at += end;
                continue;
            }
            let name = tag.get(1..).unwrap_or_default();
            let local = split_name(name.get(..name_span(name)).unwrap_or_default()).1;
            if Verb::from_name(local).is_some()
                && let Some(end) = self.tag_end(tag, last)?
                && let Some(read) = read_loose(rest, at, at + end, &self.config.limits)
                && let Some(found) = VersionOne::of_root(rest, at, &read)
            {
                self.version_one = Some(found);
                return Ok(Some((at, read)));
            }
            at += 1;
        }
        Ok(None)
    }

    /// A list of 1.x has no start tag. It begins with its first item; where anything
    /// but white space and comments stands before that, it begins behind the head,
    /// so that a broken first item is one of the list. `found` is the first landmark.
    pub(super) fn old_list_begins(
        &self,
        text: &[u8],
        found: Result<Option<(usize, Landmark)>, ()>,
    ) -> Result<Option<(usize, Landmark)>, ()> {
        let Some(one) = self.version_one.as_ref().filter(|one| one.verb != Verb::Identify) else {
            return found;
        };
        let at = match found {
            Ok(Some((at, _))) => at,
            _ => text.len(),
        };
        let head = text.get(..at).unwrap_or_default();
        let Some(end) = head_end(head, &self.prefix) else { return found };
        let begins = self.misc_len(head.get(end..).unwrap_or_default()) + end == at && at < text.len();
        if begins { found } else { Ok(Some((end, Landmark::Verb(one.verb)))) }
    }

    /// `requestURL` as the request element, and what of it is needed later.
    pub(super) fn upgrade_request(&mut self, text: &[u8], content: (usize, usize)) -> (RepairId, Vec<u8>) {
        let resolved = resolve(text.get(content.0..content.1).unwrap_or_default());
        let url = trim(&resolved);
        let query_at = memchr(b'?', url).unwrap_or(url.len());
        let query = url.get(query_at + 1..).unwrap_or_default();
        let mut arguments: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for pair in query.split(|&byte| matches!(byte, b'&' | b';')) {
            let equals = memchr(b'=', pair).unwrap_or(pair.len());
            let name = pair.get(..equals).unwrap_or_default();
            let Some(value) = decoded(pair.get(equals + 1..).unwrap_or_default()) else { continue };
            let value = escape_attribute(&value);
            let is_new = name != b"verb" && arguments.iter().all(|(known, _)| known != name);
            if is_new && is_request_argument(name, &value) {
                arguments.push((name.to_vec(), value));
            }
        }
        let asked = |name: &[u8], value: &[u8]| name == b"metadataPrefix" && value == b"oai_dc";
        let own = self.config.request.as_ref().map(|request| {
            request.arguments.iter().any(|(name, value)| asked(name.as_bytes(), value.as_bytes()))
        });
        let theirs = arguments.iter().any(|(name, value)| asked(name, value));
        let prefix = self.written_prefix().to_vec();
        let mut element = [b"<", prefix.as_slice(), b"request"].concat();
        if let Some(one) = &mut self.version_one {
            one.asks_for_dc = own.unwrap_or(theirs);
            element.extend_from_slice(&[b" verb=\"", one.verb.name(), b"\""].concat());
        }
        for (name, value) in &arguments {
            element.extend_from_slice(&[b" ", name.as_slice(), b"=\"", value, b"\""].concat());
        }
        let base = escape(&escape_url(url.get(..query_at).unwrap_or_default()));
        element.extend_from_slice(&[b">", base.as_slice(), b"</", &prefix, b"request>"].concat());
        (RepairId::V1Request, element)
    }

    /// The first item of a list of 1.x, or its end: here the verb element of 2.0 begins.
    pub(super) fn open_version_one(
        &mut self,
        list: &mut List,
        rest: &[u8],
        last: bool,
        sink: &mut impl Sink,
    ) -> Next {
        if list.verb == Verb::Identify {
            return Next::Leave(self.version_one_identify(list, rest, last, sink));
        }
        let close = [b"</", self.prefix.as_slice(), &list.skeleton.verb].concat();
        if rest.starts_with(&close) {
            return self.empty_version_one(list, rest, last, sink);
        }
        let bare = [b"<", self.prefix.as_slice(), b"identifier"].concat();
        if list.verb == Verb::ListIdentifiers && rest.starts_with(&bare) {
            // Without datestamps there are no headers.
            return Next::Leave(self.refuse(NotOai::Version1));
        }
        self.tags.settle_envelope();
        list.opened = true;
        let open = [b"<", self.written_prefix(), list.written_name(), b">"].concat();
        self.gate.change(Role::List, RepairId::V1Root, self.base, b"", &open, sink);
        Next::Stay(Step::Settled(0))
    }

    /// A list of 1.x without an item says that there is none.
    fn empty_version_one(&mut self, list: &List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let end =
            self.end_tag_end(rest.get(..rest.len().min(self.limits().tag_bytes_max)).unwrap_or_default());
        if !rest.get(..end).is_some_and(|tag| tag.ends_with(b">")) {
            let more = !last && end == rest.len();
            return if more {
                Next::Stay(self.need_more(rest))
            } else {
                Next::Leave(self.refuse(NotOai::NothingKept))
            };
        }
        let dc = self.version_one.as_ref().is_some_and(|one| one.asks_for_dc);
        let (id, code, words) = match list.empty_code() {
            Some(code) => (RepairId::EmptyList, code, super::ends::EMPTY),
            None if dc => (RepairId::V1Empty, "idDoesNotExist", "There is no such record."),
            None => (RepairId::V1Empty, "cannotDisseminateFormat", "There is no such record in this format."),
        };
        if self.is_off(id) {
            return Next::Leave(self.refuse(NotOai::NothingKept));
        }
        let bytes_max = self.limits().head_bytes_max;
        if !last && rest.len() <= bytes_max {
            return Next::Stay(self.need_more(rest));
        }
        self.verb = Some(list.verb);
        if self.holds_items(rest.get(end..rest.len().min(bytes_max)).unwrap_or_default()) {
            return Next::Leave(self.refuse(NotOai::NothingKept));
        }
        let error = self.error_element(code, words);
        let step = self.change(id, rest, end, &error, sink);
        self.end_version_one(end, sink);
        Next::Leave(step)
    }

    /// The root ends where the list does, so many bytes ahead.
    pub(super) fn end_version_one(&mut self, ahead: usize, sink: &mut impl Sink) {
        let close = self.end_tag_of(b"OAI-PMH");
        if self.answer_errors(sink).is_some() {
            return;
        }
        if self.must_break_off() {
            self.break_off();
            return;
        }
        let at = self.base + ahead as u64;
        self.note_incomplete(at, sink);
        self.gate.change(Role::Plain, RepairId::V1Root, at, b"", &close, sink);
        self.stage = Stage::Epilog;
    }

    /// Identify of 1.x has no element of its own: it is put around what stands in the root.
    fn version_one_identify(&mut self, list: &List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let bytes_max = self.limits().record_bytes_max;
        if !last && rest.len() < bytes_max {
            let step = self.need_more(rest);
            self.stage = Stage::List(Box::new(self.list_of(list.verb)));
            return step;
        }
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let Some(end) = end_of(within, &self.read_end_tag_of(list.verb.name())) else {
            return self.refuse(NotOai::NothingKept);
        };
        let raw = within.get(..end).unwrap_or_default();
        let open = [b"<", self.prefix.as_slice(), list.verb.name(), b">"].concat();
        let mut added = Edits::default();
        added.push(RepairId::V1Root, 0, 0, &open);
        let text = added.apply(raw);
        let rules = Self::rules(&self.config, &self.entities);
        match mend(&text, &list.skeleton, list.contexts(), &mut self.tags, &rules) {
            Ok(mended) if loses_item(&text, &mended, &list.skeleton) => {
                self.gate.put_aside_unread(None, self.base, raw, sink);
                self.refuse(NotOai::NothingKept)
            }
            Ok(mended) => {
                let edits = added.then(&text, mended.edits.clone());
                self.emit(list, raw, 0, &Mended { edits, ..mended }, sink);
                self.verb = Some(list.verb);
                self.end_version_one(end, sink);
                Step::Settled(end)
            }
            Err(why) => {
                self.gate.quarantine(None, self.base, raw, why, sink);
                self.refuse(NotOai::NothingKept)
            }
        }
    }

    /// An item of 1.x that its reader found in order.
    pub(super) fn upgrade_clean(&mut self, list: &List, raw: &[u8], at: usize, sink: &mut impl Sink) {
        let rules = Self::rules(&self.config, &self.entities);
        let (places, limits) = (&list.scanner.places, rules.limits);
        let known = self.version_one.as_ref().filter(|_| {
            let is_plain = matches!(list.skeleton.element.name, b"record" | b"header" | b"set");
            // What is turned off or guessed, mending minds.
            is_plain
                && rules.off.is_empty()
                && rules.enabled.is_empty()
                && self.fit.holds(raw, &list.scanner.facts)
                && list.skeleton.prefixes == Prefixes::None
        });
        let edits = known.and_then(|one| one.roots.recall(raw, places, list.context, limits));
        let upgraded = edits.map(|edits| {
            let facts = facts_behind(list.scanner.facts, &edits);
            Mended { bytes: edits.apply(raw).into_owned(), edits, facts, markup: false, lacks: Vec::new() }
        });
        // Where it meets a limit, the strict reader says so.
        let upgraded = upgraded.filter(|item| {
            item.edits.len() <= limits.repairs_per_record_max && item.bytes.len() <= limits.record_bytes_max
        });
        let mended = match upgraded {
            Some(upgraded) => Ok(upgraded),
            None => {
                let mended = mend(raw, &list.skeleton, list.contexts(), &mut self.tags, &rules);
                if let (Ok(_), Some(one)) = (&mended, &mut self.version_one) {
                    // The strict reader has seen what these tags become.
                    one.roots.remember(raw, places, list.context, &self.tags.contexts, limits);
                }
                mended
            }
        };
        match mended {
            Ok(mended) => self.emit(list, raw, at, &mended, sink),
            Err(why) => self.put_aside(list, raw, at, why, sink),
        }
    }
}

/// Where the first such end tag ends that is no comment or section.
fn end_of(text: &[u8], tag: &[u8]) -> Option<usize> {
    let open_tag = tag.get(..tag.len().checked_sub(1)?)?;
    let mut lexemes = Lexemes::of(text);
    let mut at = 0;
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let found = text.get(at..end)?;
        let behind = found.strip_prefix(open_tag).map(trim);
        if lexeme == Lexeme::EndTag && behind == Some(b">") {
            return Some(end);
        }
        at = end;
    }
    None
}

/// A value of a query string; `None` when XML cannot hold it.
fn decoded(value: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        let hex = value.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(escaped)) => {
                bytes.push(escaped);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8(bytes).ok().filter(|text| text.chars().all(|c| is_legal_char(c as u32)))
}
