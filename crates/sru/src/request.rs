//! Requests: their version, their operation, and the limits of what they ask for.

use crate::parameters::Parameters;
use crate::query::{Scan, Search};
use crate::{Diagnostic, DiagnosticCode, RecordSchema};

/// Number of records in a response unless a request says otherwise.
pub(crate) const RECORDS_DEFAULT: usize = 10;
/// Maximum number of records in a response.
pub(crate) const RECORDS_MAX: usize = 100;
/// The last position of a result whose record is sent: the last one that the index ranks.
pub(crate) const POSITION_MAX: usize = oaimend_search::RANK_MAX;
/// Number of terms in a response unless a request says otherwise.
const TERMS_DEFAULT: usize = 20;
/// Maximum number of terms in a response.
const TERMS_MAX: usize = 200;
/// Maximum length of a parameter that a response repeats, in bytes.
const ECHO_BYTES_MAX: usize = 8_192;

/// A version of SRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// SRU 1.1.
    V1_1,
    /// SRU 1.2.
    V1_2,
    /// SRU 2.0, searchRetrieve of OASIS.
    V2_0,
}

impl Version {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
            Self::V2_0 => "2.0",
        }
    }

    pub(crate) fn is_first(self) -> bool {
        self < Self::V2_0
    }
}

/// What the response to a request needs besides its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub(crate) version: Version,
    /// Whether the request is a scan.
    pub(crate) is_scan: bool,
    /// Whether metadata is written as an escaped text instead of as XML.
    pub(crate) is_string: bool,
    pub(crate) content_type: &'static str,
    /// The parameters that the response repeats, in the order of the schema.
    pub(crate) echo: Vec<(&'static str, String)>,
}

/// A legal request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What its response needs.
    pub envelope: Envelope,
    /// What it asks for.
    pub operation: Operation,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The description of the server.
    Explain,
    /// Records.
    SearchRetrieve {
        /// The query with its order.
        search: Search,
        /// The number of records before the first one.
        offset: usize,
        /// Maximum number of records; 0 for their number only.
        count_max: usize,
        /// The schema of the records.
        schema: RecordSchema,
    },
    /// The values of an index.
    Scan {
        /// The index and the term.
        scan: Scan,
        /// Whether a value that equals the term is the first one of the response.
        includes_term: bool,
        /// Maximum number of values.
        count_max: usize,
    },
}

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What its response needs.
    pub envelope: Envelope,
    /// Why.
    pub diagnostic: Diagnostic,
}

impl Request {
    /// Reads the query string of a URL, or a form.
    ///
    /// # Errors
    ///
    /// Something in the request is wrong or not supported.
    pub fn parse(encoded: &[u8]) -> Result<Self, Box<Refused>> {
        let mut parameters = Parameters::read(encoded);
        let (version, version_fault) = version(&parameters);
        let is_string = is_string(&parameters);
        let is_scan = is_scan(&parameters);
        let envelope = Envelope {
            version,
            is_scan,
            is_string: is_string.as_ref().is_ok_and(|is_string| *is_string),
            content_type: content_type(version, parameters.value("httpAccept")),
            echo: echo(&parameters, version, is_scan),
        };
        let fault = version_fault.or_else(|| parameters.fault.take()).or_else(|| is_string.err());
        match fault.map_or_else(|| operation(&parameters), Err) {
            Ok(operation) => Ok(Self { envelope, operation }),
            Err(diagnostic) => Err(Box::new(Refused { envelope, diagnostic })),
        }
    }
}

/// The version of the response, and what is wrong with that of the request. Only SRU 1 has an operation.
fn version(parameters: &Parameters) -> (Version, Option<Diagnostic>) {
    let unsupported = || Some(Diagnostic::new(DiagnosticCode::UnsupportedVersion, Version::V2_0.name()));
    match parameters.value("version") {
        Some("1.1") => (Version::V1_1, None),
        Some("1.2") => (Version::V1_2, None),
        Some("2.0") => (Version::V2_0, None),
        Some(other) if other.starts_with("1.") => (Version::V1_2, unsupported()),
        Some(_) => (Version::V2_0, unsupported()),
        None if parameters.value("operation").is_some() => (Version::V1_2, None),
        None => (Version::V2_0, None),
    }
}

/// Whether metadata is escaped: `recordXMLEscaping` of SRU 2.0, which is `recordPacking` of SRU 1. In SRU 2.0
/// `recordPacking` has other values, which make no difference here.
fn is_string(parameters: &Parameters) -> Result<bool, Diagnostic> {
    let escaping = parameters.value("recordXMLEscaping").or_else(|| parameters.value("recordPacking"));
    match escaping {
        None | Some("xml" | "packed" | "unpacked") => Ok(false),
        Some("string") => Ok(true),
        Some(other) => Err(Diagnostic::new(DiagnosticCode::UnsupportedRecordPacking, other)),
    }
}

fn is_scan(parameters: &Parameters) -> bool {
    match parameters.value("operation") {
        Some(operation) => operation.eq_ignore_ascii_case("scan"),
        None => parameters.value("scanClause").is_some() && parameters.value("query").is_none(),
    }
}

/// The media type of the response. SRU 2.0 has its own, unless `httpAccept` prefers another name of XML.
fn content_type(version: Version, http_accept: Option<&str>) -> &'static str {
    if version.is_first() {
        return "text/xml; charset=utf-8";
    }
    let accepted =
        http_accept.unwrap_or_default().split(',').map(|range| range.split(';').next().unwrap_or_default());
    for media_type in accepted {
        match media_type.trim() {
            "application/sru+xml" => break,
            "text/xml" => return "text/xml; charset=utf-8",
            "application/xml" => return "application/xml; charset=utf-8",
            _ => {}
        }
    }
    "application/sru+xml; charset=utf-8"
}

fn echo(parameters: &Parameters, version: Version, is_scan: bool) -> Vec<(&'static str, String)> {
    let names: &[&str] = match (is_scan, version.is_first()) {
        (true, _) => &["scanClause", "responsePosition", "maximumTerms"],
        (false, true) => {
            &["query", "startRecord", "maximumRecords", "recordPacking", "recordSchema", "sortKeys"]
        }
        (false, false) => &[
            "queryType",
            "query",
            "startRecord",
            "maximumRecords",
            "recordXMLEscaping",
            "recordPacking",
            "recordSchema",
            "sortKeys",
        ],
    };
    let mut echo = Vec::new();
    if version.is_first() {
        echo.push(("version", version.name().to_owned()));
    }
    for name in names.iter().copied() {
        let is_legal = |value: &&str| match name {
            "startRecord" | "maximumTerms" => value.parse::<u64>().is_ok_and(|number| number > 0),
            "maximumRecords" | "responsePosition" => value.parse::<u64>().is_ok(),
            "recordXMLEscaping" => matches!(*value, "xml" | "string"),
            _ => value.len() <= ECHO_BYTES_MAX,
        };
        let value = parameters.value(name).filter(is_legal);
        echo.extend(value.map(|value| (name, value.to_owned())));
    }
    echo
}

fn operation(parameters: &Parameters) -> Result<Operation, Diagnostic> {
    let operation = parameters.value("operation").map(str::to_ascii_lowercase);
    match operation.as_deref() {
        Some("explain") => Ok(Operation::Explain),
        Some("searchretrieve") => search_retrieve(parameters),
        None if parameters.value("query").is_some() => search_retrieve(parameters),
        _ if is_scan(parameters) => scan(parameters),
        None if parameters.concerns_no_query() => Ok(Operation::Explain),
        None => Err(missing("query")),
        Some(other) => Err(Diagnostic::new(DiagnosticCode::UnsupportedOperation, other)),
    }
}

fn search_retrieve(parameters: &Parameters) -> Result<Operation, Diagnostic> {
    let query = parameters.value("query").ok_or_else(|| missing("query"))?;
    if let Some(query_type) = parameters.value("queryType").filter(|query_type| *query_type != "cql") {
        return Err(Diagnostic::new(DiagnosticCode::UnsupportedQueryType, query_type));
    }
    let schema = match parameters.value("recordSchema") {
        None => RecordSchema::DublinCore,
        Some(name) => RecordSchema::find(name)
            .ok_or_else(|| Diagnostic::new(DiagnosticCode::UnknownSchemaForRetrieval, name))?,
    };
    let start = parameters.number("startRecord")?.unwrap_or(1);
    let start = usize::try_from(start).ok().filter(|start| (1..=POSITION_MAX).contains(start));
    let offset = start.ok_or_else(|| {
        let details = format!("1 to {POSITION_MAX}");
        Diagnostic::new(DiagnosticCode::FirstRecordPositionOutOfRange, details)
    })? - 1;
    let count_max = count(parameters, "maximumRecords", RECORDS_MAX)?.unwrap_or(RECORDS_DEFAULT);
    Ok(Operation::SearchRetrieve {
        search: Search::parse(query, parameters.value("sortKeys"))?,
        offset,
        count_max: count_max.min(POSITION_MAX - offset),
        schema,
    })
}

fn scan(parameters: &Parameters) -> Result<Operation, Diagnostic> {
    let clause = parameters.value("scanClause").ok_or_else(|| missing("scanClause"))?;
    let includes_term = match parameters.number("responsePosition")? {
        None | Some(1) => true,
        Some(0) => false,
        Some(_) => return Err(Diagnostic::new(DiagnosticCode::ResponsePositionOutOfRange, "0 or 1")),
    };
    let count_max = count(parameters, "maximumTerms", TERMS_MAX)?.unwrap_or(TERMS_DEFAULT);
    if count_max == 0 {
        return Err(Diagnostic::new(DiagnosticCode::UnsupportedParameterValue, "maximumTerms"));
    }
    Ok(Operation::Scan { scan: Scan::parse(clause)?, includes_term, count_max })
}

/// A number of records or terms, up to a maximum: a server may return fewer than a client asks for.
fn count(parameters: &Parameters, name: &'static str, max: usize) -> Result<Option<usize>, Diagnostic> {
    let count = parameters.number(name)?;
    Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX).min(max)))
}

fn missing(name: &str) -> Diagnostic {
    Diagnostic::new(DiagnosticCode::MandatoryParameterNotSupplied, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repository::xml::XmlReader;
    use oaimend_search::{Query, Ranking};

    fn parse(query: &str) -> Result<Request, Box<Refused>> {
        Request::parse(query.as_bytes())
    }

    /// The version, the offset and the number of records of a search.
    fn range(query: &str) -> (Version, usize, usize) {
        let request = parse(query).unwrap_or_else(|refused| panic!("{query}: {refused:?}"));
        let Operation::SearchRetrieve { offset, count_max, .. } = request.operation else {
            panic!("{query}")
        };
        (request.envelope.version, offset, count_max)
    }

    #[test]
    fn the_version_follows_from_the_parameters() {
        use Version::{V1_1, V1_2, V2_0};
        for (query, version) in [
            ("operation=searchRetrieve&version=1.1&query=a", V1_1),
            ("operation=searchRetrieve&version=1.2&query=a", V1_2),
            ("operation=searchRetrieve&query=a", V1_2),
            ("version=1.1&query=a", V1_1),
            ("query=a", V2_0),
            ("operation=searchRetrieve&version=2.0&query=a", V2_0),
        ] {
            assert_eq!(range(query).0, version, "{query}");
        }
        let explained =
            ["", "version=2.0", "operation=explain", "operation=explain&version=1.1", "httpAccept=x"];
        for (query, version) in explained.into_iter().zip([V2_0, V2_0, V1_2, V1_1, V2_0]) {
            let request = parse(query).expect(query);
            assert_eq!(
                (request.envelope.version, request.operation),
                (version, Operation::Explain),
                "{query}"
            );
        }
    }

    #[test]
    fn records_are_requested_in_ranges() {
        for (query, offset, count_max) in [
            ("query=a", 0, 10),
            ("query=a&startRecord=11&maximumRecords=5", 10, 5),
            ("query=a&maximumRecords=0", 0, 0),
            ("query=a&maximumRecords=1000000000", 0, 100),
            ("query=a&maximumRecords=99999999999999999999999", 0, 100),
            ("query=a&startRecord=9999&maximumRecords=10", 9_998, 2),
            ("query=a&startRecord=&maximumRecords=", 0, 10),
        ] {
            let (_, found_offset, found_count) = range(query);
            assert_eq!((found_offset, found_count), (offset, count_max), "{query}");
        }
    }

    #[test]
    fn a_search_has_a_query_an_order_and_a_schema() {
        let query = "query=caf%C3%A9+dc.x&queryType=cql&sortKeys=date,,0&recordSchema=marcxml&x-user=1";
        let refused = parse(query).expect_err("a query of two terms");
        assert_eq!(refused.diagnostic.code, DiagnosticCode::QuerySyntaxError);
        let request = parse(&query.replace("+dc.x", "")).expect("a legal request");
        let query = Query::Word { field: None, word: "caf\u{e9}".to_owned() };
        assert_eq!(
            request.operation,
            Operation::SearchRetrieve {
                search: Search { query, ranking: Ranking::Newest },
                offset: 0,
                count_max: 10,
                schema: RecordSchema::MarcXml,
            }
        );
    }

    #[test]
    fn a_scan_begins_with_its_term_or_after_it() {
        for (query, expected) in [
            ("operation=scan&version=1.1&scanClause=dc.title=a", (true, 20)),
            ("scanClause=dc.title=a&responsePosition=0&maximumTerms=5", (false, 5)),
            ("scanClause=dc.title=a&responsePosition=1&maximumTerms=5000", (true, 200)),
        ] {
            let request = parse(query).unwrap_or_else(|refused| panic!("{query}: {refused:?}"));
            let Operation::Scan { includes_term, count_max, .. } = request.operation else {
                panic!("{query}")
            };
            assert_eq!((includes_term, count_max), expected, "{query}");
        }
    }

    #[test]
    fn illegal_requests_have_their_diagnostics() {
        for (query, number, details) in [
            ("operation=update&version=1.2", 4, "update"),
            ("operation=searchRetrieve&version=3.0&query=a", 5, "2.0"),
            ("operation=searchRetrieve&version=1.0&query=a", 5, "2.0"),
            ("version=x", 5, "2.0"),
            ("query=a&startRecord=one", 6, "startRecord"),
            ("query=a&maximumRecords=1.5", 6, "maximumRecords"),
            ("query=a&query=b", 6, "query"),
            ("query=a&recordSchema=%FF", 6, "recordSchema"),
            ("scanClause=dc.title=a&maximumTerms=0", 6, "maximumTerms"),
            ("scanClause=dc.title=a&responsePosition=-1", 6, "responsePosition"),
            ("operation=searchRetrieve&version=1.2", 7, "query"),
            ("operation=scan&version=1.2", 7, "scanClause"),
            ("maximumRecords=1", 7, "query"),
            ("query=a&facetLimit=10", 8, "facetLimit"),
            ("query=a&%FF=1", 8, "\u{fffd}"),
            ("query=%FF", 10, "it is not UTF-8"),
            ("query=a+b", 10, "a term is missing, at byte 3"),
            ("query=a&queryType=searchTerms", 11, "searchTerms"),
            ("query=a&startRecord=0", 61, "1 to 10000"),
            ("query=a&startRecord=-4", 61, "-4"),
            ("query=a&startRecord=10001", 61, "1 to 10000"),
            ("query=a&startRecord=99999999999999999999999", 61, "1 to 10000"),
            ("query=a&maximumRecords=-1", 62, "-1"),
            ("query=a&recordSchema=mods", 66, "mods"),
            ("query=a&recordXMLEscaping=json", 71, "json"),
            ("operation=searchRetrieve&query=a&recordPacking=json", 71, "json"),
            ("scanClause=dc.title=a&responsePosition=2", 120, "0 or 1"),
        ] {
            let refused = parse(query).expect_err(query).diagnostic;
            assert_eq!((refused.code.number(), refused.details.as_str()), (number, details), "{query}");
        }
    }

    #[test]
    fn what_a_client_sends_is_bounded() {
        let query = format!("query={}", "a+or+".repeat(100_000));
        let refused = parse(&query).expect_err("a long query");
        assert_eq!(refused.diagnostic.code, DiagnosticCode::TooManyCharactersInQuery);
        assert_eq!(refused.envelope.echo, [], "a long query is not repeated");
        let refused = parse(&format!("query=a&{}=1", "n".repeat(1_000))).expect_err("a long name");
        assert_eq!(refused.diagnostic.details.len(), 200);
        let pairs = "query=a&".repeat(100_000);
        assert_eq!(parse(&pairs).expect_err("many values").diagnostic.details, "query");
    }

    #[test]
    fn random_requests_have_well_formed_responses() {
        let seed = std::env::var("OAIMEND_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(39);
        println!("OAIMEND_SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let parts = [
            "&",
            "=",
            "query=",
            "operation=",
            "scan",
            "version=",
            "1.1",
            "2.0",
            "scanClause=",
            "dc.title",
            "%22",
            "%00",
            "%",
            "%FF",
            "%3C",
            "%26",
            "(",
            ")",
            "+and+",
            "+sortBy+",
            "*",
            "\\",
            "maximumRecords=",
            "-",
            "9",
            "recordPacking=string",
        ];
        for _ in 0..20_000 {
            let query: String = (0..random.usize(..12)).filter_map(|_| random.choice(parts)).collect();
            let Err(refused) = parse(&query) else { continue };
            let xml = refused.envelope.failure(&refused.diagnostic);
            let mut reader = XmlReader::new(&xml);
            while reader.read().unwrap_or_else(|error| panic!("{query}: {error}: {xml}")).is_some() {}
        }
    }

    #[test]
    fn the_media_type_is_that_of_the_version() {
        let content_type = |query: &str| parse(query).expect(query).envelope.content_type();
        assert_eq!(content_type("operation=searchRetrieve&query=a"), "text/xml; charset=utf-8");
        for (accept, expected) in [
            ("", "application/sru+xml; charset=utf-8"),
            ("text/html,application/xml;q=0.9", "application/xml; charset=utf-8"),
            ("application/sru%2Bxml,text/xml", "application/sru+xml; charset=utf-8"),
            ("text/xml", "text/xml; charset=utf-8"),
        ] {
            assert_eq!(content_type(&format!("query=a&httpAccept={accept}")), expected, "{accept}");
        }
    }
}
