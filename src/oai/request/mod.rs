//! A request of a harvester: read from a query or a form, judged, written again.
//!
//! Sits first in the flow. What is judged here never reaches the source: verb,
//! and missing, repeated, unknown and exclusive arguments, and dates that no
//! repository could harvest by. Other values are judged only by whether they
//! are text that XML can hold; sets and tokens, and which granularity it has,
//! are the source's business. The query to the source is always made new from the
//! parsed request, never from the bytes that came.

use super::error::{ErrorCode, is_xml_char};
use super::{datestamp, set_spec};
use crate::oai::request_echo::RequestEcho;
use std::sync::Arc;

/// One of the six verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// About the repository.
    Identify,
    /// The formats of the repository or of one item.
    ListMetadataFormats,
    /// The sets.
    ListSets,
    /// Headers only.
    ListIdentifiers,
    /// Whole records.
    ListRecords,
    /// One record.
    GetRecord,
}

impl Verb {
    /// All verbs, in the order of the specification.
    pub const ALL: &'static [Self] = &[
        Self::GetRecord,
        Self::Identify,
        Self::ListIdentifiers,
        Self::ListMetadataFormats,
        Self::ListRecords,
        Self::ListSets,
    ];

    /// The verb as it stands in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identify => "Identify",
            Self::ListMetadataFormats => "ListMetadataFormats",
            Self::ListSets => "ListSets",
            Self::ListIdentifiers => "ListIdentifiers",
            Self::ListRecords => "ListRecords",
            Self::GetRecord => "GetRecord",
        }
    }

    /// Whether its answers are lists, which tokens may go on with.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::ListIdentifiers | Self::ListRecords | Self::ListSets)
    }

    /// The arguments that must stand beside it, if it is not a resumption.
    const fn required(self) -> &'static [Argument] {
        match self {
            Self::Identify | Self::ListMetadataFormats | Self::ListSets => &[],
            Self::ListIdentifiers | Self::ListRecords => &[Argument::MetadataPrefix],
            Self::GetRecord => &[Argument::Identifier, Argument::MetadataPrefix],
        }
    }

    /// All arguments that may stand beside it.
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

/// One of the six arguments beside the verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// An item.
    Identifier,
    /// A format.
    MetadataPrefix,
    /// Lowest datestamp.
    From,
    /// Highest datestamp.
    Until,
    /// A set.
    Set,
    /// Where a list goes on; excludes all others.
    ResumptionToken,
}

impl Argument {
    /// All arguments.
    pub const ALL: &'static [Self] =
        &[Self::Identifier, Self::MetadataPrefix, Self::From, Self::Until, Self::Set, Self::ResumptionToken];

    /// The argument as it stands in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::MetadataPrefix => "metadataPrefix",
            Self::From => "from",
            Self::Until => "until",
            Self::Set => "set",
            Self::ResumptionToken => "resumptionToken",
        }
    }
}

/// A request that keeps the rules of OAI-PMH 2.0. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    verb: Verb,
    arguments: Arc<[(Argument, String)]>,
    query: Arc<str>,
}

/// A request that does not: what to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `badVerb` or `badArgument`.
    pub code: ErrorCode,
    /// What is wrong and what would be right.
    pub text: String,
}

impl Request {
    /// Reads a query string or a form body (`application/x-www-form-urlencoded`).
    ///
    /// `+` is a blank, `%XX` a byte; a `%` that starts no such triple stands
    /// for itself, as harvesters mean it. Empty pairs are skipped.
    pub fn parse(query: &[u8]) -> Result<Self, Refusal> {
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = query
            .split(|&byte| byte == b'&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let mut halves = pair.splitn(2, |&byte| byte == b'=');
                (decode(halves.next().unwrap_or_default()), decode(halves.next().unwrap_or_default()))
            })
            .collect();
        let verb = verb_of(&pairs)?;
        let mut arguments: Vec<(Argument, String)> = Vec::new();
        for (name, value) in pairs.into_iter().filter(|(name, _)| name != b"verb") {
            let argument = argument_of(&name, verb)?;
            if arguments.iter().any(|(other, _)| *other == argument) {
                return Err(bad_argument(format!("the argument {} is repeated", argument.name())));
            }
            arguments.push((argument, text_of(argument.name(), value)?));
        }
        let request = Self::of(verb, arguments);
        request.check_company()?;
        Ok(request)
    }

    fn of(verb: Verb, arguments: Vec<(Argument, String)>) -> Self {
        let query = written(verb, &arguments, encode).into();
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

    /// Whether it goes on with a list.
    pub fn is_resumption(&self) -> bool {
        self.argument(Argument::ResumptionToken).is_some()
    }

    /// The request that goes on with this list.
    #[must_use]
    pub fn resumed(&self, token: String) -> Self {
        Self::of(self.verb, vec![(Argument::ResumptionToken, token)])
    }

    /// The request for the headers of what this one lists; `ListRecords` and
    /// `ListIdentifiers` take the same arguments.
    #[must_use]
    pub fn headers_only(&self) -> Self {
        Self::of(Verb::ListIdentifiers, self.arguments.to_vec())
    }

    /// The request for whole records, where this one asks for their headers.
    #[must_use]
    pub fn records(&self) -> Self {
        Self::of(Verb::ListRecords, self.arguments.to_vec())
    }

    /// The same without a format: OAI-PMH 1.x lists identifiers in none.
    #[must_use]
    pub fn without_format(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::MetadataPrefix);
        Self::of(self.verb, arguments)
    }

    /// Whether one of its dates says a second.
    pub fn is_in_seconds(&self) -> bool {
        let dates = [Argument::From, Argument::Until].map(|date| self.argument(date));
        dates.into_iter().flatten().any(|date| date.len() > DAY_CHARS)
    }

    /// The same with the days of its dates: the narrowest window of whole days that holds the one asked for.
    #[must_use]
    pub fn in_days(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (argument, value) in &mut arguments {
            if matches!(argument, Argument::From | Argument::Until) {
                value.truncate(DAY_CHARS);
            }
        }
        Self::of(self.verb, arguments)
    }

    /// The same with each of its seconds at the beginning of its day: what [`Self::in_days`] gives, but in seconds.
    #[must_use]
    pub fn at_midnight(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (argument, value) in &mut arguments {
            if matches!(argument, Argument::From | Argument::Until) && value.len() > DAY_CHARS {
                value.truncate(DAY_CHARS);
                value.push_str("T00:00:00Z");
            }
        }
        Self::of(self.verb, arguments)
    }

    /// The same of one set.
    #[must_use]
    pub fn of_set(&self, set: &str) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::Set);
        arguments.push((Argument::Set, set.to_owned()));
        Self::of(self.verb, arguments)
    }

    /// The same list from a datestamp on, in the granularity of its `until`; `None` for one
    /// that is gone on with by a token.
    pub fn from_on(&self, datestamp: &str) -> Option<Self> {
        if self.is_resumption() {
            return None;
        }
        let day = datestamp.get(..DAY_CHARS)?;
        let from = match self.argument(Argument::Until).map(str::len) {
            Some(DAY_CHARS) => day.to_owned(),
            Some(_) if datestamp.len() == DAY_CHARS => format!("{day}T00:00:00Z"),
            _ => datestamp.to_owned(),
        };
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::From);
        arguments.push((Argument::From, from));
        Some(Self::of(self.verb, arguments))
    }

    /// The request for one record.
    pub fn get_record(identifier: &str, metadata_prefix: &str) -> Self {
        let arguments = vec![
            (Argument::Identifier, identifier.to_owned()),
            (Argument::MetadataPrefix, metadata_prefix.to_owned()),
        ];
        Self::of(Verb::GetRecord, arguments)
    }

    /// The request for what the repository says of itself.
    pub fn identify() -> Self {
        Self::of(Verb::Identify, Vec::new())
    }

    /// The request for the formats of the repository, or of one item.
    pub fn formats(identifier: Option<&str>) -> Self {
        let arguments = identifier.map(|identifier| (Argument::Identifier, identifier.to_owned()));
        Self::of(Verb::ListMetadataFormats, arguments.into_iter().collect())
    }

    /// The request for the sets.
    pub fn sets() -> Self {
        Self::of(Verb::ListSets, Vec::new())
    }

    /// The query for the source: verb first, then the arguments in the order
    /// in which they came, each value percent-encoded exactly once.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The same with the token as it is, for a source that encodes its tokens itself. Only what
    /// would end it, or cannot stand in a URL, is percent-encoded.
    pub fn query_with_raw_token(&self) -> String {
        match self.is_resumption() {
            true => written(self.verb, &self.arguments, encode_little),
            false => self.query.to_string(),
        }
    }

    /// The request as the `request` element is to say it.
    pub fn own(&self, base_url: &str) -> RequestEcho {
        let mut arguments = vec![("verb".to_owned(), self.verb.name().to_owned())];
        for (argument, value) in &*self.arguments {
            let value = match argument {
                // The schema allows no other here, and no empty one.
                Argument::Set if value.is_empty() => continue,
                Argument::Set => String::from_utf8_lossy(&set_spec::escape(value.as_bytes())).into_owned(),
                _ => value.clone(),
            };
            arguments.push((argument.name().to_owned(), value));
        }
        RequestEcho { base_url: base_url.to_owned(), arguments }
    }

    fn check_company(&self) -> Result<(), Refusal> {
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
                "resumptionToken is exclusive: it excludes {}; the token stands for the first request of the list",
                others.join(", ")
            )));
        }
        for required in self.verb.required() {
            if self.argument(*required).is_none() {
                let resumption = if self.verb.allowed().contains(&Argument::ResumptionToken) {
                    ", or a resumptionToken alone"
                } else {
                    ""
                };
                return Err(bad_argument(format!(
                    "{verb} needs the argument {}{resumption}",
                    required.name()
                )));
            }
        }
        self.check_window()
    }

    /// Dates that are dates, of one granularity, and in their order (OAI-PMH 2.0, sections 2.7.1 and 3.3.1).
    fn check_window(&self) -> Result<(), Refusal> {
        let dates = [Argument::From, Argument::Until].map(|argument| (argument, self.argument(argument)));
        for (argument, date) in dates {
            if let Some(date) = date.filter(|date| !datestamp::is_legal(date.as_bytes())) {
                return Err(bad_argument(format!(
                    "{} is \"{}\", which is no date; YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ is right",
                    argument.name(),
                    cut(date)
                )));
            }
        }
        match dates {
            [(_, Some(from)), (_, Some(until))] if from.len() != until.len() => {
                Err(bad_argument(format!("from {from} and until {until} are of different granularity")))
            }
            // Of one length, their order as text is their order in time.
            [(_, Some(from)), (_, Some(until))] if from > until => {
                Err(bad_argument(format!("from {from} is later than until {until}")))
            }
            _ => Ok(()),
        }
    }
}

fn written(verb: Verb, arguments: &[(Argument, String)], encode: impl Fn(&str, &mut String)) -> String {
    let mut query = format!("verb={}", verb.name());
    for (argument, value) in arguments {
        query.push('&');
        query.push_str(argument.name());
        query.push('=');
        encode(value, &mut query);
    }
    query
}

fn verb_of(pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<Verb, Refusal> {
    let names = || Verb::ALL.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ");
    let mut values = pairs.iter().filter(|(name, _)| name == b"verb").map(|(_, value)| value);
    let Some(value) = values.next() else {
        return Err(bad_verb(format!("the argument verb is missing; it is one of {}", names())));
    };
    if values.next().is_some() {
        return Err(bad_verb("the argument verb is repeated".to_owned()));
    }
    let value = String::from_utf8_lossy(value);
    if let Some(verb) = Verb::ALL.iter().find(|verb| verb.name() == value) {
        return Ok(*verb);
    }
    let near = Verb::ALL.iter().find(|verb| verb.name().eq_ignore_ascii_case(value.trim()));
    Err(bad_verb(match near {
        Some(verb) => format!("\"{}\" is not a verb; did you mean {}?", cut(&value), verb.name()),
        None => format!("\"{}\" is not a verb; the verbs are {}", cut(&value), names()),
    }))
}

fn argument_of(name: &[u8], verb: Verb) -> Result<Argument, Refusal> {
    let name = String::from_utf8_lossy(name);
    let allowed = verb.allowed();
    match Argument::ALL.iter().find(|argument| argument.name() == name) {
        Some(argument) if allowed.contains(argument) => Ok(*argument),
        Some(argument) => {
            Err(bad_argument(format!("{} does not take the argument {}", verb.name(), argument.name())))
        }
        None => {
            let near = allowed.iter().find(|argument| argument.name().eq_ignore_ascii_case(name.trim()));
            Err(bad_argument(match near {
                Some(argument) => {
                    format!("\"{}\" is not an argument; did you mean {}?", cut(&name), argument.name())
                }
                None => format!("\"{}\" is not an argument of {}", cut(&name), verb.name()),
            }))
        }
    }
}

fn text_of(name: &str, value: Vec<u8>) -> Result<String, Refusal> {
    let text = String::from_utf8(value).map_err(|_| {
        bad_argument(format!("the value of {name} is not UTF-8; percent-encode its UTF-8 bytes"))
    })?;
    match text.chars().find(|character| !is_xml_char(*character)) {
        Some(character) => Err(bad_argument(format!(
            "the value of {name} holds U+{:04X}, which XML cannot hold",
            u32::from(character)
        ))),
        None => Ok(text),
    }
}

fn bad_verb(text: String) -> Refusal {
    Refusal { code: ErrorCode::BadVerb, text }
}

fn bad_argument(text: String) -> Refusal {
    Refusal { code: ErrorCode::BadArgument, text }
}

/// The first characters of what a client wrote, for an error text.
fn cut(text: &str) -> String {
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
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match hex_pair(behind) {
                Some((value, behind)) => {
                    decoded.push(value);
                    rest = behind;
                }
                None => decoded.push(b'%'),
            },
            _ => decoded.push(byte),
        }
    }
    decoded
}

fn hex_pair(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = bytes.split_at_checked(2)?;
    let mut value = 0;
    for digit in digits {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    Some((u8::try_from(value).ok()?, behind))
}

fn encode(value: &str, query: &mut String) {
    encode_but(value, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), query);
}

fn encode_little(value: &str, query: &mut String) {
    encode_but(value, |byte| byte.is_ascii_graphic() && !b"&#\"<>".contains(&byte), query);
}

fn encode_but(value: &str, stays: impl Fn(u8) -> bool, query: &mut String) {
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

/// Length of `YYYY-MM-DD`.
const DAY_CHARS: usize = 10;
/// Longest piece of a client's own text in an error text, in characters.
const CUT_CHARS: usize = 60;

#[cfg(test)]
mod tests;
