//! Answers requests from a tape.
//!
//! Lists are in the order of the datestamps. The session writes the base URL and the request into the page.

use super::token::Token;
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};
use oaimend_oai::{
    Argument, ErrorCode, Request, RequestEcho, UnixSecs, Verb, error_response, escape, response_head,
};
use oaimend_tape::{Catalog, CatalogFormat, CatalogSet, ReadError, Tape, TapeRecord};

/// Maximum number of records on a page.
const PAGE_RECORDS: usize = 100;
/// Bytes of records on a page before its last one.
const PAGE_BYTES: usize = 4 << 20;
/// Maximum number of sets on a page.
const PAGE_SETS: usize = 1_000;
/// A placeholder for the base URL of a page, until the session writes ours.
const NOBODY: &str = "http://tape.invalid/";
/// The datestamp of the earliest record of an empty tape.
const NO_DATE: UnixSecs = UnixSecs(0);

/// The data provider of a tape, for one request.
pub(super) struct Answer<'a> {
    pub(super) tape: &'a Tape,
    /// The id of the repository, its name if the tape has none.
    pub(super) id: &'a str,
    /// The time of the request, for `responseDate`.
    pub(super) requested_at: &'a str,
}

/// Why a request has no result.
enum Refusal {
    /// An OAI-PMH error.
    Error(ErrorCode, &'static str),
    /// The tape cannot be read.
    Unreadable(ReadError),
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

const NO_SETS: Refusal = Refusal::Error(ErrorCode::NoSetHierarchy, "the records of the tape are in no sets");
const NO_FORMAT: Refusal =
    Refusal::Error(ErrorCode::CannotDisseminateFormat, "the tape does not have this metadataPrefix");
const NOT_IN_FORMAT: Refusal =
    Refusal::Error(ErrorCode::CannotDisseminateFormat, "the item does not exist in this format");
const NO_ITEM: Refusal = Refusal::Error(ErrorCode::IdDoesNotExist, "no item has this identifier");
const ITEM_DELETED: Refusal =
    Refusal::Error(ErrorCode::NoMetadataFormats, "the item is deleted in all formats");
const NO_MATCH: Refusal = Refusal::Error(ErrorCode::NoRecordsMatch, "no record matches from, until and set");
const IN_DAYS: Refusal =
    Refusal::Error(ErrorCode::BadArgument, "the granularity is YYYY-MM-DD, so from and until are days");
const FOREIGN_TOKEN: Refusal =
    Refusal::Error(ErrorCode::BadResumptionToken, "the resumptionToken does not belong to this list");
const OLD_TOKEN: Refusal = Refusal::Error(
    ErrorCode::BadResumptionToken,
    "the tape was replaced since the resumptionToken was sent; start the list again",
);

impl Answer<'_> {
    /// The page for a request.
    ///
    /// # Errors
    ///
    /// The tape cannot be read, or was changed.
    pub(super) fn page(&self, request: &Request) -> Result<Vec<u8>, ReadError> {
        let verb = request.verb();
        let content = match verb {
            Verb::Identify => Ok(self.identify()),
            Verb::ListSets => self.sets(request),
            Verb::ListMetadataFormats => self.formats(request),
            Verb::GetRecord => self.record(request),
            Verb::ListRecords | Verb::ListIdentifiers => self.list(request),
        };
        let echo = RequestEcho { base_url: NOBODY.to_owned(), arguments: Vec::new() };
        match content {
            Ok(content) => {
                let mut page = response_head(&echo, self.requested_at, false);
                let name = verb.name();
                page.push_str(&format!("<{name}>\n{content}</{name}>\n</OAI-PMH>\n"));
                Ok(page.into_bytes())
            }
            Err(Refusal::Error(code, text)) => {
                Ok(error_response(&request.to_echo(NOBODY), self.requested_at, code, text).into_bytes())
            }
            Err(Refusal::Unreadable(error)) => Err(error),
        }
    }

    fn catalog(&self) -> &Catalog {
        self.tape.catalog()
    }

    fn granularity(&self) -> Granularity {
        if self.catalog().has_seconds { Granularity::Second } else { Granularity::Day }
    }

    fn identify(&self) -> String {
        let catalog = self.catalog();
        let mut xml = String::new();
        field("repositoryName", catalog.description.repository_name.as_deref().unwrap_or(self.id), &mut xml);
        field("baseURL", NOBODY, &mut xml);
        field("protocolVersion", "2.0", &mut xml);
        for email in &catalog.description.admin_emails {
            field("adminEmail", email, &mut xml);
        }
        let earliest = catalog.earliest_secs.map_or(NO_DATE, UnixSecs);
        field("earliestDatestamp", &from_secs(earliest, self.granularity()), &mut xml);
        // The records of a tape never change, so its deletions are known for ever.
        field("deletedRecord", if catalog.deleted() > 0 { "persistent" } else { "no" }, &mut xml);
        field("granularity", self.granularity().name(), &mut xml);
        xml
    }

    fn sets(&self, request: &Request) -> Result<String, Refusal> {
        let sets = &self.catalog().sets;
        let token = match request.argument(Argument::ResumptionToken) {
            Some(token) => self.token(token)?,
            None if sets.is_empty() => return Err(NO_SETS),
            None => self.first_token(),
        };
        let skipped = usize::try_from(token.skipped).unwrap_or(usize::MAX);
        if !token.prefix.is_empty() || skipped >= sets.len() {
            return Err(FOREIGN_TOKEN);
        }
        let mut xml = String::new();
        let page = sets.iter().skip(skipped).take(PAGE_SETS);
        for CatalogSet { set_spec, name, .. } in page.clone() {
            xml.push_str("<set>");
            field("setSpec", set_spec, &mut xml);
            field("setName", name, &mut xml);
            xml.push_str("</set>\n");
        }
        self.end_page(&token, page.len() as u64, sets.len() as u64, &mut xml);
        Ok(xml)
    }

    fn formats(&self, request: &Request) -> Result<String, Refusal> {
        let all = &self.catalog().formats;
        let mut listed: Vec<&CatalogFormat> = all.iter().collect();
        if let Some(identifier) = request.argument(Argument::Identifier) {
            let found = self.tape.formats_of(identifier)?;
            if found.is_empty() {
                return Err(NO_ITEM);
            }
            let live = found.iter().filter(|(_, is_deleted)| !is_deleted);
            let mut numbers: Vec<usize> = live.map(|(format, _)| *format).collect();
            numbers.sort_unstable();
            listed = numbers.into_iter().filter_map(|number| all.get(number)).collect();
            if listed.is_empty() {
                return Err(ITEM_DELETED);
            }
        }
        let mut xml = String::new();
        for CatalogFormat { prefix, schema, namespace, .. } in listed {
            xml.push_str("<metadataFormat>");
            for (name, value) in
                [("metadataPrefix", prefix), ("schema", schema), ("metadataNamespace", namespace)]
            {
                field(name, value, &mut xml);
            }
            xml.push_str("</metadataFormat>\n");
        }
        Ok(xml)
    }

    fn record(&self, request: &Request) -> Result<String, Refusal> {
        let argument = |name| request.argument(name).unwrap_or_default();
        let identifier = argument(Argument::Identifier);
        let format = self.format(argument(Argument::MetadataPrefix))?;
        let mut xml = String::new();
        match self.tape.record(identifier, format)? {
            Some(record) => record.write_oai(self.granularity(), &mut xml),
            None if self.tape.formats_of(identifier)?.is_empty() => return Err(NO_ITEM),
            None => return Err(NOT_IN_FORMAT),
        }
        Ok(xml)
    }

    fn list(&self, request: &Request) -> Result<String, Refusal> {
        let token = match request.argument(Argument::ResumptionToken) {
            Some(token) => self.token(token)?,
            None => self.list_of_arguments(request)?,
        };
        let is_resumption = request.is_resumption();
        let format = self
            .format(&token.prefix)
            .map_err(|refusal| if is_resumption { FOREIGN_TOKEN } else { refusal })?;
        if token.set.is_some_and(|set| set >= self.catalog().sets.len()) {
            return Err(if is_resumption { FOREIGN_TOKEN } else { NO_MATCH });
        }
        let selection = self.tape.select(format, token.set, (token.from_secs, token.until_secs))?;
        if token.skipped >= selection.count() {
            return Err(if is_resumption { FOREIGN_TOKEN } else { NO_MATCH });
        }
        let records = self.tape.page(&selection, token.skipped, (PAGE_RECORDS, PAGE_BYTES))?;
        let mut xml = String::new();
        let write: fn(&TapeRecord, Granularity, &mut String) = match request.verb() {
            Verb::ListIdentifiers => TapeRecord::write_oai_header,
            _ => TapeRecord::write_oai,
        };
        for record in &records {
            write(record, self.granularity(), &mut xml);
        }
        self.end_page(&token, records.len() as u64, selection.count(), &mut xml);
        Ok(xml)
    }

    /// The start of a list that is requested by its arguments. A set that the tape does not have has a number beyond all.
    fn list_of_arguments(&self, request: &Request) -> Result<Token, Refusal> {
        let prefix = request.argument(Argument::MetadataPrefix).unwrap_or_default();
        self.format(prefix)?;
        let sets = &self.catalog().sets;
        let set = match request.argument(Argument::Set) {
            None => None,
            Some(_) if sets.is_empty() => return Err(NO_SETS),
            Some(wanted) => {
                let found = sets.binary_search_by(|set| set.set_spec.as_str().cmp(wanted));
                Some(found.unwrap_or(sets.len()))
            }
        };
        let secs = |argument: Argument, read: fn(&str) -> Option<UnixSecs>| match request.argument(argument) {
            None => Ok(None),
            Some(text) if text.len() > 10 && self.granularity() == Granularity::Day => Err(IN_DAYS),
            Some(text) => Ok(read(text).map(|secs| secs.0)),
        };
        Ok(Token {
            from_secs: secs(Argument::From, to_secs)?,
            until_secs: secs(Argument::Until, to_last_second)?,
            set,
            prefix: prefix.to_owned(),
            ..self.first_token()
        })
    }

    fn first_token(&self) -> Token {
        Token { version: self.tape.version().to_owned(), ..Token::default() }
    }

    fn token(&self, text: &str) -> Result<Token, Refusal> {
        let token = Token::read(text).ok_or(FOREIGN_TOKEN)?;
        if token.version == self.tape.version() { Ok(token) } else { Err(OLD_TOKEN) }
    }

    /// The number of a format.
    fn format(&self, prefix: &str) -> Result<usize, Refusal> {
        self.catalog().formats.iter().position(|format| format.prefix == prefix).ok_or(NO_FORMAT)
    }

    /// Writes the resumptionToken after `count` items of a list of `all`; none after a list of one page.
    fn end_page(&self, token: &Token, count: u64, all: u64, xml: &mut String) {
        let sent = token.skipped + count;
        if sent >= all && token.skipped == 0 {
            return;
        }
        let attributes = format!("completeListSize=\"{all}\" cursor=\"{}\"", token.skipped);
        if sent < all {
            let mut next = String::new();
            escape(&Token { skipped: sent, ..token.clone() }.write(), &mut next);
            xml.push_str(&format!("<resumptionToken {attributes}>{next}</resumptionToken>\n"));
        } else {
            xml.push_str(&format!("<resumptionToken {attributes}/>\n"));
        }
    }
}

/// Writes an element with a text.
fn field(name: &str, text: &str, xml: &mut String) {
    xml.push_str(&format!("<{name}>"));
    escape(text, xml);
    xml.push_str(&format!("</{name}>"));
}
