//! A harvester's request: parsed from a query or a form, checked, and written as a query.
//!
//! Errors found here never reach the source: wrong verbs; missing, repeated, unknown, exclusive and empty
//! arguments; dates that no repository accepts. Other values only have to be text that XML allows:
//! the source decides about sets, tokens and its granularity. The query to the source is always
//! written from the parsed request, never copied from the received bytes.

use super::envelope::is_xml_char;
use super::errors::ErrorCode;
use super::{datestamp, set_spec};
use crate::named_enum;
use crate::request_echo::RequestEcho;
use std::sync::Arc;

mod forms;
pub(crate) mod window;

named_enum! {
    /// One of the six verbs, in the order of the specification.
    ///
    /// ```
    /// use oaimend_oai::Verb;
    ///
    /// assert_eq!(Verb::ListRecords.name(), "ListRecords");
    /// assert!(Verb::ListSets.is_list() && !Verb::ListSets.is_harvest());
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// Returns one record.
        GetRecord = "GetRecord",
        /// Describes the repository.
        Identify = "Identify",
        /// Lists headers.
        ListIdentifiers = "ListIdentifiers",
        /// Lists the formats of the repository or of one item.
        ListMetadataFormats = "ListMetadataFormats",
        /// Lists records.
        ListRecords = "ListRecords",
        /// Lists the sets.
        ListSets = "ListSets",
    }
}

impl Verb {
    /// The name of the verb and of its element, in bytes.
    pub const fn as_bytes(self) -> &'static [u8] {
        self.name().as_bytes()
    }

    /// The verb with this name, in bytes.
    pub fn from_bytes(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.as_bytes() == name)
    }

    /// Whether its responses are lists, which resumptionTokens can continue.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::ListIdentifiers | Self::ListRecords | Self::ListSets)
    }

    /// Whether its responses are lists of records or of their headers, which can be selected by datestamp.
    pub const fn is_harvest(self) -> bool {
        matches!(self, Self::ListIdentifiers | Self::ListRecords)
    }

    /// The required arguments, unless there is a resumptionToken.
    const fn required(self) -> &'static [Argument] {
        match self {
            Self::Identify | Self::ListMetadataFormats | Self::ListSets => &[],
            Self::ListIdentifiers | Self::ListRecords => &[Argument::MetadataPrefix],
            Self::GetRecord => &[Argument::Identifier, Argument::MetadataPrefix],
        }
    }

    /// The allowed arguments.
    const fn allowed(self) -> &'static [Argument] {
        match self {
            Self::Identify => &[],
            Self::ListMetadataFormats => &[Argument::Identifier],
            Self::ListSets => &[Argument::ResumptionToken],
            Self::ListIdentifiers | Self::ListRecords => &[
                Argument::From,
                Argument::Until,
                Argument::MetadataPrefix,
                Argument::Set,
                Argument::ResumptionToken,
            ],
            Self::GetRecord => &[Argument::Identifier, Argument::MetadataPrefix],
        }
    }
}

named_enum! {
    /// An argument other than the verb.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Argument {
        /// An item.
        Identifier = "identifier",
        /// A format.
        MetadataPrefix = "metadataPrefix",
        /// The lowest datestamp.
        From = "from",
        /// The highest datestamp.
        Until = "until",
        /// A set.
        Set = "set",
        /// The position in a list; excludes all others.
        ResumptionToken = "resumptionToken",
    }
}

impl Argument {
    /// Whether it is `from` or `until`, and this value of it selects nothing from `earliest` on.
    fn is_date_before(self, date: &str, earliest: &str) -> bool {
        let to_second = |date: &str, time: &str| match date.len() {
            DAY_CHARS => format!("{date}{time}"),
            _ => date.to_owned(),
        };
        let earliest = to_second(earliest, "T00:00:00Z");
        match self {
            Self::From => to_second(date, "T00:00:00Z") < earliest,
            Self::Until => to_second(date, "T23:59:59Z") < earliest,
            _ => false,
        }
    }
}

/// A request that is valid in OAI-PMH 2.0. Cheap to clone.
///
/// ```
/// use oaimend_oai::{Argument, Request, Verb};
///
/// let request = Request::parse(b"verb=ListRecords&metadataPrefix=oai_dc&set=maps").expect("a legal request");
/// assert_eq!(request.verb(), Verb::ListRecords);
/// assert_eq!(request.argument(Argument::Set), Some("maps"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    verb: Verb,
    arguments: Arc<[(Argument, String)]>,
    query: Arc<str>,
}

/// The error response to an invalid request.
///
/// ```
/// use oaimend_oai::{ErrorCode, Request};
///
/// let error = Request::parse(b"verb=GetRecord").expect_err("the arguments are missing");
/// assert_eq!(error.code, ErrorCode::BadArgument);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestError {
    /// `badVerb`, `badArgument` or `badResumptionToken`.
    pub code: ErrorCode,
    /// The problem and the expected value.
    pub text: String,
}

impl Request {
    /// Parses a query string or a form body (`application/x-www-form-urlencoded`).
    ///
    /// `+` is a blank, `%XX` a byte; a `%` without two hexadecimal digits is a percent sign. Empty
    /// pairs are skipped.
    pub fn parse(query: &[u8]) -> Result<Self, RequestError> {
        let request = Self::parse_pairs(query_pairs(query))?;
        request.check_combination(request.verb.required())?;
        Ok(request)
    }

    /// Parses a request to a component of an Open Digital Library (Suleman and Fox, XOAI-PMH): the name of the
    /// argument `verb` may be in any case, and no format is required. [`Self::or_format`] adds it.
    ///
    /// ```
    /// use oaimend_oai::{Argument, Request};
    ///
    /// let request = Request::parse_odl(b"Verb=ListRecords&set=odlsearch1/maps/1/10").expect("a legal request");
    /// assert_eq!(request.argument(Argument::MetadataPrefix), None);
    /// assert_eq!(request.or_format("oai_dc").argument(Argument::MetadataPrefix), Some("oai_dc"));
    /// ```
    pub fn parse_odl(query: &[u8]) -> Result<Self, RequestError> {
        let mut pairs = query_pairs(query);
        for (name, _) in pairs.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case(b"verb")) {
            name.make_ascii_lowercase();
        }
        let request = Self::parse_pairs(pairs)?;
        let mut required = request.verb.required().to_vec();
        required.retain(|argument| *argument != Argument::MetadataPrefix);
        request.check_combination(&required)?;
        Ok(request)
    }

    /// Whether a query has an argument `verb`, its name in any case.
    pub fn has_verb(query: &[u8]) -> bool {
        query_pairs(query).iter().any(|(name, _)| name.eq_ignore_ascii_case(b"verb"))
    }

    /// The same request, in this format if it names none and its verb takes one.
    #[must_use]
    pub fn or_format(self, metadata_prefix: &str) -> Self {
        let takes_one = self.verb.required().contains(&Argument::MetadataPrefix) && !self.is_resumption();
        if takes_one && self.argument(Argument::MetadataPrefix).is_none() {
            self.with_format_of_list(metadata_prefix)
        } else {
            self
        }
    }

    fn parse_pairs(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Self, RequestError> {
        let verb = parse_verb(&pairs)?;
        let mut arguments: Vec<(Argument, String)> = Vec::new();
        for (name, value) in pairs.into_iter().filter(|(name, _)| name != b"verb") {
            let argument = parse_argument(&name, verb)?;
            if arguments.iter().any(|(other, _)| *other == argument) {
                return Err(bad_argument(format!("the argument {} is repeated", argument.name())));
            }
            arguments.push((argument, parse_value(argument, value)?));
        }
        Ok(Self::new(verb, arguments))
    }

    fn new(verb: Verb, arguments: Vec<(Argument, String)>) -> Self {
        let query = write_query(verb, &arguments, |_, value, query| encode(value, query)).into();
        Self { verb, arguments: arguments.into(), query }
    }

    /// The verb.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The value of an argument, decoded.
    pub fn argument(&self, argument: Argument) -> Option<&str> {
        self.arguments.iter().find(|(other, _)| *other == argument).map(|(_, value)| value.as_str())
    }

    /// Whether it continues a list.
    pub fn is_resumption(&self) -> bool {
        self.argument(Argument::ResumptionToken).is_some()
    }

    /// The token of the page that it requests; empty for the beginning of a list.
    pub fn request_token(&self) -> &str {
        self.argument(Argument::ResumptionToken).unwrap_or_default()
    }

    /// The request for the next page of this list.
    #[must_use]
    pub fn with_token(&self, token: String) -> Self {
        Self::new(self.verb, vec![(Argument::ResumptionToken, token)])
    }

    /// The same request for headers; `ListRecords` and `ListIdentifiers` have the same arguments.
    #[must_use]
    pub fn to_list_identifiers(&self) -> Self {
        Self::new(Verb::ListIdentifiers, self.arguments.to_vec())
    }

    /// The same request for records instead of headers.
    #[must_use]
    pub fn to_list_records(&self) -> Self {
        Self::new(Verb::ListRecords, self.arguments.to_vec())
    }

    /// The request for a list of records. `from` and `until` have the same granularity.
    pub fn list_records(
        metadata_prefix: &str,
        set: Option<&str>,
        from: Option<&str>,
        until: Option<&str>,
    ) -> Self {
        let optional = [(Argument::From, from), (Argument::Until, until), (Argument::Set, set)];
        let arguments =
            optional.into_iter().filter_map(|(argument, value)| Some((argument, value?.to_owned())));
        let format = (Argument::MetadataPrefix, metadata_prefix.to_owned());
        Self::new(Verb::ListRecords, std::iter::once(format).chain(arguments).collect())
    }

    /// The request for one record.
    pub fn get_record(identifier: &str, metadata_prefix: &str) -> Self {
        let arguments = vec![
            (Argument::Identifier, identifier.to_owned()),
            (Argument::MetadataPrefix, metadata_prefix.to_owned()),
        ];
        Self::new(Verb::GetRecord, arguments)
    }

    /// The request for the description of the repository.
    pub fn identify() -> Self {
        Self::new(Verb::Identify, Vec::new())
    }

    /// The request for the formats of the repository, or of one item.
    pub fn list_metadata_formats(identifier: Option<&str>) -> Self {
        let arguments = identifier.map(|identifier| (Argument::Identifier, identifier.to_owned()));
        Self::new(Verb::ListMetadataFormats, arguments.into_iter().collect())
    }

    /// The request for the sets.
    pub fn list_sets() -> Self {
        Self::new(Verb::ListSets, Vec::new())
    }

    /// The query for the source: the verb first, then the arguments in their original order, each
    /// value percent-encoded exactly once.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The same query with an unencoded token, for a source that percent-encodes its tokens itself.
    /// Characters that are illegal in a URL or would end the value are percent-encoded.
    pub fn query_with_raw_token(&self) -> String {
        if self.is_resumption() {
            write_query(self.verb, &self.arguments, |_, value, query| encode_minimally(value, query))
        } else {
            self.query.to_string()
        }
    }

    /// The same query with literal colons and slashes in the identifier, for a source that does not decode
    /// them. RFC 3986 allows both in a query.
    pub fn query_with_literal_identifier(&self) -> String {
        write_query(self.verb, &self.arguments, |argument, value, query| match argument {
            Argument::Identifier => {
                encode_except(value, |byte| is_unreserved(byte) || b":/".contains(&byte), query)
            }
            _ => encode(value, query),
        })
    }

    /// The request as the `request` element repeats it.
    pub fn to_echo(&self, base_url: &str) -> RequestEcho {
        let mut arguments = vec![("verb".to_owned(), self.verb.name().to_owned())];
        for (argument, value) in &*self.arguments {
            let value = match argument {
                // The schema allows no other characters here.
                Argument::Set => String::from_utf8_lossy(&set_spec::escape(value.as_bytes())).into_owned(),
                _ => value.clone(),
            };
            arguments.push((argument.name().to_owned(), value));
        }
        RequestEcho { base_url: base_url.to_owned(), arguments }
    }

    fn check_combination(&self, required: &[Argument]) -> Result<(), RequestError> {
        let verb = self.verb.name();
        if self.argument(Argument::ResumptionToken).is_some() {
            let others: Vec<&str> = self
                .arguments
                .iter()
                .filter(|(argument, _)| *argument != Argument::ResumptionToken)
                .map(|(argument, _)| argument.name())
                .collect();
            if others.is_empty() {
                return Ok(());
            }
            return Err(bad_argument(format!(
                "resumptionToken is exclusive: it excludes {}; the token represents the first request of its list",
                others.join(", ")
            )));
        }
        for required in required {
            if self.argument(*required).is_none() {
                let resumption = if self.verb.allowed().contains(&Argument::ResumptionToken) {
                    ", or a resumptionToken alone"
                } else {
                    ""
                };
                return Err(bad_argument(format!(
                    "{verb} requires the argument {}{resumption}",
                    required.name()
                )));
            }
        }
        self.check_window()
    }

    /// Checks that the dates are legal, of one granularity, and in order (OAI-PMH 2.0, sections
    /// 2.7.1 and 3.3.1).
    fn check_window(&self) -> Result<(), RequestError> {
        let dates = [Argument::From, Argument::Until].map(|argument| (argument, self.argument(argument)));
        for (argument, date) in dates {
            if let Some(date) = date.filter(|date| !datestamp::is_legal(date.as_bytes())) {
                return Err(bad_argument(format!(
                    "{} is \"{}\", which is not a date; expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ",
                    argument.name(),
                    shorten(date)
                )));
            }
        }
        match dates {
            [(_, Some(from)), (_, Some(until))] if from.len() != until.len() => {
                Err(bad_argument(format!("from {from} and until {until} are of different granularity")))
            }
            // Texts of one length have the same order as their dates.
            [(_, Some(from)), (_, Some(until))] if from > until => {
                Err(bad_argument(format!("from {from} is later than until {until}")))
            }
            _ => Ok(()),
        }
    }
}

/// The decoded pairs of a query or of a form, as [`Request::parse`] reads them. They need not be UTF-8.
pub fn query_pairs(query: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        (decode(halves.next().unwrap_or_default()), decode(halves.next().unwrap_or_default()))
    });
    decoded.collect()
}

fn write_query(
    verb: Verb,
    arguments: &[(Argument, String)],
    encode: impl Fn(Argument, &str, &mut String),
) -> String {
    let mut query = format!("verb={}", verb.name());
    for (argument, value) in arguments {
        query.push('&');
        query.push_str(argument.name());
        query.push('=');
        encode(*argument, value, &mut query);
    }
    query
}

fn parse_verb(pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<Verb, RequestError> {
    let names = || Verb::ALL.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ");
    let mut values = pairs.iter().filter(|(name, _)| name == b"verb").map(|(_, value)| value);
    let Some(value) = values.next() else {
        return Err(bad_verb(format!("the argument verb is missing; expected one of {}", names())));
    };
    if values.next().is_some() {
        return Err(bad_verb("the argument verb is repeated".to_owned()));
    }
    let value = String::from_utf8_lossy(value);
    if let Some(verb) = Verb::from_name(&value) {
        return Ok(verb);
    }
    let near = Verb::ALL.iter().find(|verb| verb.name().eq_ignore_ascii_case(value.trim()));
    Err(bad_verb(match near {
        Some(verb) => format!("\"{}\" is not a verb; did you mean {}?", shorten(&value), verb.name()),
        None => format!("\"{}\" is not a verb; expected one of {}", shorten(&value), names()),
    }))
}

fn parse_argument(name: &[u8], verb: Verb) -> Result<Argument, RequestError> {
    let name = String::from_utf8_lossy(name);
    let allowed = verb.allowed();
    match Argument::from_name(&name) {
        Some(argument) if allowed.contains(&argument) => Ok(argument),
        Some(argument) => {
            Err(bad_argument(format!("{} does not take the argument {}", verb.name(), argument.name())))
        }
        None => {
            let near = allowed.iter().find(|argument| argument.name().eq_ignore_ascii_case(name.trim()));
            Err(bad_argument(match near {
                Some(argument) => {
                    format!("\"{}\" is not an argument; did you mean {}?", shorten(&name), argument.name())
                }
                None => format!("\"{}\" is not an argument of {}", shorten(&name), verb.name()),
            }))
        }
    }
}

fn parse_value(argument: Argument, value: Vec<u8>) -> Result<String, RequestError> {
    let name = argument.name();
    if value.is_empty() {
        // Sources read an empty value as any value: as no set, as the beginning of a list, as all records.
        let code = match argument {
            Argument::ResumptionToken => ErrorCode::BadResumptionToken,
            _ => ErrorCode::BadArgument,
        };
        return Err(RequestError { code, text: format!("the value of {name} is empty") });
    }
    let text = String::from_utf8(value).map_err(|_| {
        bad_argument(format!("the value of {name} is not UTF-8; percent-encode its UTF-8 bytes"))
    })?;
    match text.chars().find(|character| !is_xml_char(*character)) {
        Some(character) => Err(bad_argument(format!(
            "the value of {name} contains U+{:04X}, which XML does not allow",
            u32::from(character)
        ))),
        None => Ok(text),
    }
}

fn bad_verb(text: String) -> RequestError {
    RequestError { code: ErrorCode::BadVerb, text }
}

fn bad_argument(text: String) -> RequestError {
    RequestError { code: ErrorCode::BadArgument, text }
}

/// The beginning of a client's text, for an error text.
fn shorten(text: &str) -> String {
    if text.chars().nth(CUT_CHARS).is_none() {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(CUT_CHARS).collect();
    cut.push('…');
    cut
}

fn decode(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match hex_pair(after) {
                Some((value, after)) => {
                    decoded.push(value);
                    rest = after;
                }
                None => decoded.push(b'%'),
            },
            _ => decoded.push(byte),
        }
    }
    decoded
}

fn hex_pair(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = bytes.split_at_checked(2)?;
    let mut value = 0;
    for digit in digits {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    Some((u8::try_from(value).ok()?, after))
}

fn encode(value: &str, query: &mut String) {
    encode_except(value, is_unreserved, query);
}

/// Whether a byte is unreserved in URLs (RFC 3986, section 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn encode_minimally(value: &str, query: &mut String) {
    encode_except(value, |byte| byte.is_ascii_graphic() && !b"&#\"<>".contains(&byte), query);
}

fn encode_except(value: &str, stays: impl Fn(u8) -> bool, query: &mut String) {
    for &byte in value.as_bytes() {
        if stays(byte) {
            query.push(char::from(byte));
            continue;
        }
        query.push('%');
        for nibble in [byte >> 4, byte & 15] {
            let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            query.push(digit.to_ascii_uppercase());
        }
    }
}

/// The length of `YYYY-MM-DD`.
const DAY_CHARS: usize = 10;
/// The longest part of a client's text in an error text, in characters.
const CUT_CHARS: usize = 60;

#[cfg(test)]
mod tests;
