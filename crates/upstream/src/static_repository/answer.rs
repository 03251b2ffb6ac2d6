//! Answers requests from the file of a static repository.
//!
//! The response passes through the engine like the page of any source. Records are sent as written in the
//! file, without prefixes. Broken ones are on the page of the next good one, where the engine repairs or
//! quarantines them.

use super::file::Failed;
use super::index::{Entry, day_of, id_of, range_of};
use super::page::{self, NOBODY};
use super::rewrite::conventional;
use super::token::Token;
use super::version::{FileVersion, List};
use memchr::memmem;
use oaimend_oai::{Argument, ErrorCode, Request, Verb, error_response};
use oaimend_repository::rebase_namespaces::{NamespaceScope, declare};

/// Maximum number of good records on one page.
const PAGE_RECORDS: usize = 100;
/// Bytes of records on a page before its last one.
const PAGE_BYTES: u64 = 4 << 20;

/// A page that is not read from the file yet.
pub(super) struct Answer<'a> {
    version: &'a FileVersion,
    head: Vec<u8>,
    /// The indexes of its records among the entries.
    records: Vec<usize>,
    scope: Option<&'a NamespaceScope>,
    headers_only: bool,
    tail: Vec<u8>,
    /// Why there is no page.
    nothing: Option<String>,
}

/// An OAI-PMH error.
struct Refusal {
    code: ErrorCode,
    text: &'static str,
}

const fn refusal(code: ErrorCode, text: &'static str) -> Refusal {
    Refusal { code, text }
}

const NO_SETS: Refusal = refusal(ErrorCode::NoSetHierarchy, "a static repository has no sets");
const NO_FORMAT: Refusal =
    refusal(ErrorCode::CannotDisseminateFormat, "the repository does not have this metadataPrefix");
const NOT_IN_FORMAT: Refusal =
    refusal(ErrorCode::CannotDisseminateFormat, "the item does not exist in this format");
const NO_ITEM: Refusal = refusal(ErrorCode::IdDoesNotExist, "no item has this identifier");
const NO_FORMATS: Refusal = refusal(ErrorCode::NoMetadataFormats, "the item is in none of the formats");
const NO_MATCH: Refusal =
    refusal(ErrorCode::NoRecordsMatch, "no record has a datestamp between from and until");
const IN_DAYS: Refusal =
    refusal(ErrorCode::BadArgument, "the granularity is YYYY-MM-DD, so from and until are days");
const FOREIGN_TOKEN: Refusal =
    refusal(ErrorCode::BadResumptionToken, "the resumptionToken does not belong to this list");
const OLD_TOKEN: Refusal = refusal(
    ErrorCode::BadResumptionToken,
    "the file has changed since the resumptionToken was sent; start the list again",
);

/// The parts of a page around its records.
struct PageFrame<'f> {
    verb: &'f str,
    /// The resumptionToken, as XML; empty at the end of the list.
    closing: &'f str,
    /// The time of the request, for `responseDate`.
    requested_at: &'f str,
}

impl<'a> Answer<'a> {
    /// The response of a version to a request.
    pub(super) fn build(version: &'a FileVersion, request: &Request, requested_at: &str) -> Self {
        let answer = match request.verb() {
            Verb::Identify => Ok(Self::element(
                version,
                "Identify",
                &version.identify_scope,
                &version.identify,
                requested_at,
            )),
            Verb::ListSets if request.is_resumption() => Err(FOREIGN_TOKEN),
            Verb::ListSets => Err(NO_SETS),
            Verb::ListMetadataFormats => Self::formats(version, request, requested_at),
            Verb::GetRecord => Self::record(version, request, requested_at),
            Verb::ListRecords | Verb::ListIdentifiers => Self::list(version, request, requested_at),
        };
        answer.unwrap_or_else(|Refusal { code, text }| {
            let head = error_response(&request.to_echo(NOBODY), requested_at, code, text).into_bytes();
            Self::whole(version, head, Vec::new())
        })
    }

    fn element(
        version: &'a FileVersion,
        verb: &str,
        scope: &NamespaceScope,
        content: &[u8],
        requested_at: &str,
    ) -> Self {
        let mut head = page::head(&version.doctype, verb, scope, requested_at);
        head.extend_from_slice(content);
        Self::whole(version, head, format!("\n</{verb}>\n</OAI-PMH>\n").into_bytes())
    }

    fn formats(version: &'a FileVersion, request: &Request, requested_at: &str) -> Result<Self, Refusal> {
        let identifier = request.argument(Argument::Identifier);
        let records: Option<Vec<usize>> =
            identifier.map(|identifier| version.of_id(id_of(identifier)).collect());
        if records.as_ref().is_some_and(Vec::is_empty) {
            return Err(NO_ITEM);
        }
        let holds_item = |prefix: &str| match &records {
            None => true,
            Some(records) => records
                .iter()
                .any(|at| version.list_of(*at).is_some_and(|list| list.metadata_prefix == prefix)),
        };
        let fitting = version.formats.iter().filter(|format| holds_item(&format.prefix));
        let content: Vec<&[u8]> = fitting.map(|format| format.bytes.as_slice()).collect();
        if content.is_empty() {
            return Err(NO_FORMATS);
        }
        Ok(Self::element(
            version,
            "ListMetadataFormats",
            &version.formats_scope,
            &content.concat(),
            requested_at,
        ))
    }

    fn record(version: &'a FileVersion, request: &Request, requested_at: &str) -> Result<Self, Refusal> {
        let argument = |name| request.argument(name).unwrap_or_default();
        let metadata_prefix = argument(Argument::MetadataPrefix);
        if !version.knows(metadata_prefix) {
            return Err(NO_FORMAT);
        }
        let mut known = version.of_id(id_of(argument(Argument::Identifier))).peekable();
        if known.peek().is_none() {
            return Err(NO_ITEM);
        }
        let mut listed = known.filter_map(|at| Some((at, version.list_of(at)?)));
        let found = listed.find(|(_, list)| list.metadata_prefix == metadata_prefix);
        let (at, list) = found.ok_or(NOT_IN_FORMAT)?;
        Ok(Self::page(version, list, vec![at], PageFrame { verb: "GetRecord", closing: "", requested_at }))
    }

    fn list(version: &'a FileVersion, request: &Request, requested_at: &str) -> Result<Self, Refusal> {
        let token = match request.argument(Argument::ResumptionToken) {
            Some(token) => {
                let token = Token::read(token).ok_or(FOREIGN_TOKEN)?;
                if token.version != version.id {
                    return Err(OLD_TOKEN);
                }
                token
            }
            None => first_page(version, request)?,
        };
        let lists = || version.lists.iter().filter(|list| list.metadata_prefix == token.metadata_prefix);
        let rest_of = |list: &List| list.entries.start.max(token.next)..list.entries.end;
        let entries_of = |list: &List| version.entries.get(rest_of(list)).unwrap_or_default();
        let fits = |list: &&List| token.matching(entries_of(list)).next().is_some();
        // If no record is good, all are quarantined, and the list fails.
        let is_only_choice = |list: &&List| {
            let is_bad = |list: &List| !entries_of(list).iter().any(Entry::is_good);
            !entries_of(list).is_empty() && is_bad(list) && (request.is_resumption() || lists().all(is_bad))
        };
        let Some(list) = lists().find(fits).or_else(|| lists().find(is_only_choice)) else {
            return Err(if request.is_resumption() { FOREIGN_TOKEN } else { NO_MATCH });
        };
        let (records, next) = with_broken_lists(version, lists(), list, &token);
        let good = records.iter().filter(|at| version.entries.get(**at).is_some_and(Entry::is_good)).count();
        let is_headers = request.verb() == Verb::ListIdentifiers;
        if is_headers && good == 0 && !request.is_resumption() {
            return Ok(Self::nothing(version, &token.metadata_prefix));
        }
        let delivered = token.delivered.saturating_add(good);
        // Counted from here on: records that were good when the token was sent may be beyond repair now.
        let after = |list: &List| list.entries.start.max(next)..list.entries.end;
        let after = lists().filter_map(|list| version.entries.get(after(list)));
        let left: usize = after.map(|entries| token.matching(entries).count()).sum();
        let total = delivered.saturating_add(left);
        let attributes = format!(" completeListSize=\"{total}\" cursor=\"{}\"", token.delivered);
        let closing = if left > 0 {
            let token = Token { next, delivered, ..token }.write();
            format!("<resumptionToken{attributes}>{token}</resumptionToken>\n")
        } else if request.is_resumption() {
            format!("<resumptionToken{attributes}/>\n")
        } else {
            String::new()
        };
        // A header alone would promise a record that cannot be delivered.
        let is_listed = |at: &usize| !is_headers || version.entries.get(*at).is_some_and(Entry::is_good);
        let records = records.into_iter().filter(is_listed).collect();
        let frame = PageFrame { verb: request.verb().name(), closing: &closing, requested_at };
        Ok(Self::page(version, list, records, frame))
    }

    /// No record of the format is good: the file may be another one than expected.
    fn nothing(version: &'a FileVersion, metadata_prefix: &str) -> Self {
        let nothing = Some(format!("none of its records in {metadata_prefix} can be repaired"));
        Self { nothing, ..Self::whole(version, Vec::new(), Vec::new()) }
    }

    /// A page without records.
    fn whole(version: &'a FileVersion, head: Vec<u8>, tail: Vec<u8>) -> Self {
        Self { version, head, records: Vec::new(), scope: None, headers_only: false, tail, nothing: None }
    }

    fn page(version: &'a FileVersion, list: &'a List, records: Vec<usize>, frame: PageFrame<'_>) -> Self {
        let PageFrame { verb, closing, requested_at } = frame;
        let head = page::head(&version.doctype, verb, &list.scope, requested_at);
        let tail = format!("{closing}</{verb}>\n</OAI-PMH>\n").into_bytes();
        let headers_only = verb == Verb::ListIdentifiers.name();
        Self { records, scope: Some(&list.scope), headers_only, ..Self::whole(version, head, tail) }
    }

    /// Reads the page, piece by piece; `take` returns whether more is wanted. Blocks on the disk.
    pub(super) fn read(self, mut take: impl FnMut(Vec<u8>) -> bool) -> Result<(), Failed> {
        if let Some(why) = self.nothing {
            return Err(Failed::Wrong(why));
        }
        let mut piece = self.head;
        for at in &self.records {
            let Some((entry, scope)) = self.version.entries.get(*at).zip(self.scope) else { continue };
            let Some(List { scope: list_scope, .. }) = self.version.list_of(*at) else { continue };
            let record = conventional(&self.version.text.bytes(range_of(entry))?, list_scope);
            let record = moved(record, list_scope, scope);
            let item = if self.headers_only { header_of(&record) } else { &record };
            piece.extend_from_slice(item.trim_ascii_end());
            piece.push(b'\n');
            if piece.len() >= PIECE_BYTES && !take(std::mem::take(&mut piece)) {
                return Ok(());
            }
        }
        piece.extend_from_slice(&self.tail);
        take(piece);
        Ok(())
    }
}

/// Bytes of a page that are read before they are sent.
const PIECE_BYTES: usize = 64 << 10;

/// The start of a list that is requested by its arguments.
fn first_page(version: &FileVersion, request: &Request) -> Result<Token, Refusal> {
    let metadata_prefix = request.argument(Argument::MetadataPrefix).unwrap_or_default();
    if !version.knows(metadata_prefix) {
        return Err(NO_FORMAT);
    }
    if request.argument(Argument::Set).is_some() {
        return Err(NO_SETS);
    }
    let day = |argument| match request.argument(argument) {
        None => Ok(None),
        Some(text) if text.len() == 10 => Ok(Some(day_of(text.as_bytes()))),
        Some(_) => Err(IN_DAYS),
    };
    Ok(Token {
        version: version.id.clone(),
        metadata_prefix: metadata_prefix.to_owned(),
        next: 0,
        delivered: 0,
        from: day(Argument::From)?,
        until: day(Argument::Until)?,
    })
}

/// The same as [`select`], together with adjacent lists of the format without a good record: these are
/// quarantined with the next good one, or the last.
fn with_broken_lists<'v>(
    version: &'v FileVersion,
    lists: impl Iterator<Item = &'v List>,
    list: &List,
    token: &Token,
) -> (Vec<usize>, usize) {
    let entries_of = |list: &List| version.entries.get(list.entries.clone()).unwrap_or_default();
    let is_bad = |list: &List| !entries_of(list).iter().any(Entry::is_good);
    let (selected, mut next) = select(version, list, token);
    let (mut records, mut after) = (Vec::new(), Vec::new());
    let mut goes_on = next == list.entries.end
        && entries_of(list).iter().rfind(|entry| entry.is_good()).is_some_and(|last| token.matches(last));
    for other in lists.filter(|other| other.entries != list.entries) {
        if other.entries.start < list.entries.start {
            // Lists before a finished good list were on its pages.
            if is_bad(other) {
                records.extend(other.entries.start.max(token.next)..other.entries.end);
            } else {
                records.clear();
            }
            continue;
        }
        goes_on &= is_bad(other);
        if goes_on {
            after.extend(other.entries.clone());
            next = other.entries.end;
        }
    }
    records.extend(selected);
    records.append(&mut after);
    (records, next)
}

/// The records of a list on the page of the token, and where the next page begins.
fn select(version: &FileVersion, list: &List, token: &Token) -> (Vec<usize>, usize) {
    let (mut records, mut broken) = (Vec::new(), Vec::new());
    let (mut good, mut bytes, mut leads) = (0, 0, true);
    for at in list.entries.start.max(token.next)..list.entries.end {
        let Some(entry) = version.entries.get(at) else { continue };
        if !entry.is_good() {
            broken.push(at);
            continue;
        }
        leads = token.matches(entry);
        if !leads {
            broken.clear();
            continue;
        }
        if good == PAGE_RECORDS || good > 0 && bytes >= PAGE_BYTES {
            return (records, broken.first().copied().unwrap_or(at));
        }
        records.append(&mut broken);
        records.push(at);
        good += 1;
        bytes += u64::from(entry.len);
    }
    // Broken records after the last good one are on its page.
    if leads {
        records.append(&mut broken);
    }
    (records, list.entries.end)
}

/// A record of one list with the declarations that it needs among those of another.
fn moved(mut record: Vec<u8>, from: &NamespaceScope, place: &NamespaceScope) -> Vec<u8> {
    let mut declarations = String::new();
    for (prefix, uri) in from.prefixes().filter(|(prefix, uri)| place.uri(prefix) != Some(uri)) {
        declare(prefix, uri, &mut declarations);
    }
    if !declarations.is_empty()
        && let Some(at) = memmem::find(&record, b"<record")
    {
        let end = at + b"<record".len();
        record.splice(end..end, declarations.into_bytes());
    }
    record
}

/// The header of a record; the whole record if none is found.
fn header_of(record: &[u8]) -> &[u8] {
    let Some(start) = memmem::find(record, b"<header") else { return record };
    let rest = record.get(start..).unwrap_or_default();
    let end =
        memmem::find(rest, b"</header").and_then(|at| Some(at + memchr::memchr(b'>', rest.get(at..)?)? + 1));
    let end = end.or_else(|| memmem::find(rest, b"<metadata")).unwrap_or(rest.len());
    rest.get(..end).unwrap_or(record)
}
