//! What can be wrong with a repository, one thing at a time, and the rules of
//! `oaimend check` that fail by it; and docs/conformance.md, which says so.
#![allow(dead_code, reason = "each test binary uses its part")]

use oaimend::check::RULES;

use super::provider::Fault::{
    ContentOf, ContentType, Edit, LaterContentOf, Nothing, PutOff, Redirect, Status,
};
use super::provider::When::{Always, Has, Is};
use super::provider::{Fault, Provider, When};

/// One fault, and the rules that fail by it; those that warn have a `~` before them.
pub(crate) struct Case {
    pub(crate) rules: &'static str,
    pub(crate) when: When,
    pub(crate) fault: Fault,
    pub(crate) provider: Provider,
}

fn case(rules: &'static str, when: When, fault: Fault) -> Case {
    Case { rules, when, fault, provider: Provider::default() }
}

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";
const ITEM: &str = "verb=GetRecord&identifier=oai%3Asource.example%3A0&metadataPrefix=oai_dc";

pub(crate) fn http_cases() -> Vec<Case> {
    vec![
        case("http-status", Is("verb=ListSets"), Status(500)),
        case("permanent-redirect", Always, Redirect(301)),
        case("permanent-redirect", Always, Redirect(308)),
        case("retry-after", Always, PutOff(503, "Retry-After: soon")),
        case("http-status retry-after", Always, PutOff(503, "Retry-After: 3601")),
        case("retry-after", Always, PutOff(503, "")),
        case("retry-after", Always, PutOff(429, "Retry-After: 1")),
        case("content-type", Is(ITEM), ContentType("application/xml")),
        case("content-type", Always, ContentType("text/xml; charset=ISO-8859-1")),
        case("post", Has("POST verb=GetRecord"), ContentOf("")),
        case("post", Is("POST verb=Identify"), ContentOf("verb=None")),
    ]
}

pub(crate) fn envelope_cases() -> Vec<Case> {
    vec![
        case("well-formed", Is("verb=ListSets"), Edit("Set B of A", "Sets A & B")),
        case("well-formed", Is("verb=ListSets"), Edit("Set B", "Set \u{3}")),
        case("xml-declaration", Is(ITEM), Edit("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "")),
        case("xml-declaration", Is(ITEM), Edit("UTF-8", "ISO-8859-1")),
        case(
            "root-element sets",
            Is("verb=ListSets"),
            Edit("=\"http://www.openarchives.org/OAI/2.0/\"", "=\"urn:x\""),
        ),
        case("schema-location", Is(ITEM), Edit("OAI-PMH.xsd", "OAI_PMH.xsd")),
        case("response-date", Is("verb=Identify"), Edit("Z</responseDate>", ".000Z</responseDate>")),
        case("response-date", Is("verb=ListSets"), Edit("T03:04:05Z</responseDate>", "</responseDate>")),
        case("request-url", Is(LIST), Edit("/oai</request>", "/oai?verb=ListRecords</request>")),
        case("request-attributes", Is("verb=ListSets"), Edit("<request verb=\"ListSets\">", "<request>")),
        case("request-attributes", Is(""), Edit("<request>", "<request verb=\"\">")),
        case("request-attributes", Is(LIST), Edit("metadataPrefix=\"oai_dc\"", "metadataPrefix=\"oai_DC\"")),
        case(
            "schema",
            Is("verb=ListMetadataFormats"),
            Edit("<schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>", ""),
        ),
        case("schema", Is("verb=Identify"), Edit("<repositoryName>A repository</repositoryName>", "")),
        case("~error-text", Is("verb=oaimendNoSuchVerb"), Edit(">wrong<", "><")),
    ]
}

pub(crate) fn identify_cases() -> Vec<Case> {
    let identify = |rules, from, to| case(rules, Has("verb=Identify"), Edit(from, to));
    vec![
        identify("admin-email", "oai@source.example", "oai@localhost"),
        identify("schema admin-email", "<adminEmail>oai@source.example</adminEmail>", ""),
        identify("~admin-email", "oai@source.example", "mailto:oai@source.example"),
        identify("base-url", "/oai</baseURL>", "/oai/</baseURL>"),
        identify("protocol-version", ">2.0<", ">1.1<"),
        identify("granularity", "YYYY-MM-DDThh:mm:ssZ", "YYYY-MM-DDTHH:MM:SSZ"),
        identify("earliest-datestamp", "2020-01-01T00:00:00Z", "2020-01-01"),
        identify("earliest-datestamp", "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"),
        identify("deleted-record", "persistent", "yes"),
        identify("deleted-status", "persistent", "no"),
        identify("oai-identifier", "Identifier>source.example<", "Identifier>source<"),
        identify("oai-identifier", "OAI/2.0/oai-identifier", "OAI/oai-identifier"),
    ]
}

pub(crate) fn list_cases() -> Vec<Case> {
    let window = "from=2020-01-01T00%3A00%3A00Z&until=2020-01-01T00%3A00%3A00Z";
    let day = "verb=ListRecords&metadataPrefix=oai_dc&from=2020-01-01&until=2020-01-01";
    let nothing = "verb=ListRecords&metadataPrefix=oai_dc&until=2019-01-01";
    vec![
        case(
            "oai-dc",
            Is("verb=ListMetadataFormats"),
            Edit("oai_dc</metadataPrefix>", "dc</metadataPrefix>"),
        ),
        case("oai-dc", Is("verb=ListMetadataFormats"), Edit("oai_dc/</metadataN", "oai_dc</metadataN")),
        case("formats-of-item", Has("verb=ListMetadataFormats&identifier"), Edit(">oai_dc<", ">dc<")),
        case("sets", Is("verb=ListSets"), Edit("<setName>Set A</setName>", "<setName/>")),
        case("sets", Is("verb=ListSets"), ContentOf("verb=GetRecord&identifier=x&metadataPrefix=oai_dc")),
        case("set-of-records", Has("set=a"), Edit("<setSpec>a</setSpec>", "<setSpec>b</setSpec>")),
        case("set-of-records", Has("set=a"), ContentOf(nothing)),
        case("live-record", Has("verb=ListIdentifiers"), Edit("<header>", "<header status=\"deleted\">")),
        case("well-formed", Has("verb=ListIdentifiers"), Edit("</header>", "</haeder>")),
        case("get-record", Is(ITEM), Edit(":0</identifier>", ":1</identifier>")),
        case("get-record", Is(ITEM), ContentOf("verb=GetRecord&identifier=x&metadataPrefix=oai_dc")),
        case("same-datestamp", Is(ITEM), Edit("00Z</datestamp>", "01Z</datestamp>")),
        case("datestamp-form", Is(LIST), Edit("T00:00:03Z</datestamp>", "</datestamp>")),
        case("datestamp-form", Is(LIST), Edit("03Z</datestamp>", "03</datestamp>")),
        case("selective-harvest", Has(window), ContentOf(nothing)),
        case("day-harvest", Is(day), ContentOf(nothing)),
        case("within-window", Is(day), ContentOf(LIST)),
        case(
            "deleted-status",
            Is(LIST),
            Edit("</header></record>", "</header><metadata><x xmlns=\"urn:x\"/></metadata></record>"),
        ),
        case("dc-payload", Is(ITEM), Edit("OAI/2.0/oai_dc/\"", "OAI/2.0/oai_dc\"")),
        case("~double-encoding", Is(ITEM), Edit("Title 0", "TitlÃ© 0")),
        case("~double-encoding", Is(ITEM), Edit("Title 0", "This &amp;amp; that")),
    ]
}

pub(crate) fn token_cases() -> Vec<Case> {
    let first = |rules, from, to| case(rules, Is(LIST), Edit(from, to));
    let third = "verb=ListIdentifiers&resumptionToken=cursor=200!metadataPrefix=oai_dc!verb=ListIdentifiers";
    let tiny = Provider { page: 10, ..Provider::default() };
    vec![
        first("schema one-token", "<resumptionToken ", "<resumptionToken/><resumptionToken "),
        case(
            "empty-token",
            Has("from=2020-01-01&until"),
            Edit("</ListRecords>", "<resumptionToken/></ListRecords>"),
        ),
        first("first-cursor", "cursor=\"0\"", "cursor=\"1\""),
        case("next-cursor", Has("resumptionToken=cursor%3D100"), Edit("cursor=\"100\"", "cursor=\"1\"")),
        case("~next-cursor", Has("resumptionToken=cursor%3D100"), Edit("cursor=\"100\"", "cursor=\"101\"")),
        case(
            "token-works",
            Has("verb=ListRecords&resumptionToken=cursor%3D100"),
            ContentOf("verb=ListRecords&resumptionToken=x"),
        ),
        case(
            "next-cursor token-works complete-list-size",
            Has("verb=ListRecords&resumptionToken=cursor%3D100"),
            ContentOf(LIST),
        ),
        case("token-again", Has("verb=ListIdentifiers&resumptionToken=cursor%3D100"), LaterContentOf(third)),
        case(
            "last-token",
            Has("resumptionToken=cursor%3D200"),
            Edit("<resumptionToken completeListSize=\"250\" cursor=\"200\"/>", ""),
        ),
        case("complete-list-size", Has("resumptionToken=cursor%3D100"), Edit("Size=\"250\"", "Size=\"199\"")),
        first("complete-list-size", "completeListSize=\"250\"", "completeListSize=\"many\""),
        first("expiration-date", "2026-01-04T00:00:00Z\"", "2026-01-01T00:00:00Z\""),
        first("expiration-date", "2026-01-04T00:00:00Z\"", "2026-01-04T00:00:00+00:00\""),
        first("~expiration-date", "2026-01-04T00:00:00Z\"", "2026-01-02T23:00:00Z\""),
        Case { provider: tiny, ..case("~page-size", Always, Nothing) },
    ]
}

pub(crate) fn error_cases() -> Vec<Case> {
    let wrong = |rules, when, from, to| case(rules, when, Edit(from, to));
    let (verb, argument) = ("\"badVerb\"", "\"badArgument\"");
    let (item, none) = ("idDoesNotExist", "noRecordsMatch");
    let in_days = Provider { in_days: true, ..Provider::default() };
    let fine = Is("verb=ListRecords&metadataPrefix=oai_dc&from=2020-01-01T00%3A00%3A00Z");
    vec![
        wrong("no-verb", Is(""), verb, argument),
        wrong("unknown-verb", Is("verb=oaimendNoSuchVerb"), verb, argument),
        wrong("missing-argument", Is("verb=ListRecords"), argument, verb),
        wrong("missing-argument", Is("verb=GetRecord&metadataPrefix=oai_dc"), argument, verb),
        wrong("unknown-argument", Has("oaimend=1"), argument, verb),
        case("unknown-argument request-attributes", Has("oaimend=1"), ContentOf("verb=Identify")),
        wrong("repeated-argument", Has("oai_dc&metadataPrefix=oai_dc"), argument, verb),
        wrong("quote-in-identifier", Has("invalid%22id"), item, none),
        wrong("well-formed quote-in-identifier", Has("invalid%22id"), "&quot;", "\""),
        wrong("unknown-identifier", Has("no-such-item"), item, none),
        wrong("unknown-format", Has("no_such_format"), "cannotDisseminateFormat", none),
        wrong("bad-date", Has("from=junk"), argument, verb),
        wrong("bad-date", Has("ListIdentifiers&metadataPrefix=oai_dc&until=junk"), argument, verb),
        case("bad-date request-attributes", Has("until=junk"), ContentOf(LIST)),
        wrong("mixed-granularity", Has("from=2020-01-01&until=2020-01-01T"), argument, verb),
        Case { provider: in_days, ..wrong("too-fine", fine, argument, verb) },
        wrong("from-after-until", Has("from=2021-01-01"), argument, verb),
        case("empty-window", Has("until=2019-01-01"), ContentOf(LIST)),
        wrong(
            "bad-token",
            Has("ListRecords&resumptionToken=oaimend-no-such-token"),
            "badResumptionToken",
            none,
        ),
        wrong("exclusive-token", Has("until=1990-01-10"), argument, verb),
    ]
}

impl Case {
    /// The rules that fail, and those that warn, in the order of the table.
    pub(crate) fn expected(&self) -> [Vec<&'static str>; 2] {
        let named = |warns: bool| {
            let words = self.rules.split(' ').filter(|word| word.starts_with('~') == warns);
            let words: Vec<&str> = words.map(|word| word.trim_start_matches('~')).collect();
            let all = RULES.iter().map(|entry| entry.name);
            let found: Vec<&'static str> = all.filter(|name| words.contains(name)).collect();
            assert_eq!(found.len(), words.len(), "a name that no rule has: {}", self.rules);
            found
        };
        [named(false), named(true)]
    }
}

/// All cases, by the test that runs them.
pub(crate) fn groups() -> [(&'static str, Vec<Case>); 6] {
    [
        ("rules_of_http_fail_where_they_are_broken", http_cases()),
        ("rules_of_the_envelope_fail_where_they_are_broken", envelope_cases()),
        ("rules_of_identify_fail_where_they_are_broken", identify_cases()),
        ("rules_of_lists_and_records_fail_where_they_are_broken", list_cases()),
        ("rules_of_tokens_fail_where_they_are_broken", token_cases()),
        ("rules_of_errors_fail_where_they_are_broken", error_cases()),
    ]
}

/// What the proxy itself answers for: it holds through the proxy, or the
/// source counts as failed and the answer is a 503.
pub(crate) const HELD: &[&str] = &[
    "permanent-redirect",
    "retry-after",
    "plain-http",
    "content-type",
    "post",
    "well-formed",
    "xml-declaration",
    "root-element",
    "schema-location",
    "response-date",
    "request-url",
    "request-attributes",
    "schema",
    "admin-email",
    "base-url",
    "protocol-version",
    "granularity",
    "deleted-record",
    "one-token",
    "last-token",
    "no-verb",
    "unknown-verb",
    "missing-argument",
    "unknown-argument",
    "repeated-argument",
    "bad-date",
    "mixed-granularity",
    "datestamp-form",
    "from-after-until",
    "exclusive-token",
];

/// Of these, what holds where a mapping says what Identify lacks.
const TOLD: &[&str] = &["schema", "admin-email", "granularity", "deleted-record"];

/// docs/conformance.md, from the table of rules and the cases.
pub(crate) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for entry in RULES {
        let is_seen = |(_, cases): &&(_, Vec<Case>)| {
            cases.iter().any(|case| case.expected().iter().flatten().any(|name| *name == entry.name))
        };
        let groups = groups();
        let seen = match entry.name {
            "answers" => "a_source_that_is_not_there_is_a_finding",
            "plain-http" => "https_is_warned_of_since_the_specification_knows_http_only",
            name => groups.iter().find(is_seen).unwrap_or_else(|| panic!("no case breaks {name}")).0,
        };
        let proxy = match entry.name {
            name if TOLD.contains(&name) => "held, with `identify.*`",
            name if HELD.contains(&name) => "held",
            _ => "its source's",
        };
        let (name, section, wants) = (entry.name, entry.section, entry.wants);
        page.push_str(&format!("| `{name}` | {section} | {wants} | {proxy} | `{seen}` |\n"));
    }
    page
}

const INTRODUCTION: &str = "\
# Conformance

The rules that `oaimend check` holds a repository to: those of the official validator, those of
BASE's OVAL, and others that the specification says or implies. Made from src/check/rules.rs by
`OAIMEND_BLESS=1 cargo test --test check`. A section is one of OAI-PMH 2.0 unless it says more.

Warnings are: https, which the official validator refuses unless told otherwise; `mailto:` before a
mail address; errors without a text; what OVAL advises on pages, on text and on tokens that live for
less than 23 hours; and a cursor that runs ahead, as it does where records were put aside. All else
that does not hold is a failure, and the exit code is 1. What cannot be judged, because nothing came
that it could be judged by, is said and is no failure.

Looked at are the first three pages of lists, in oai_dc, and what stands in them. What records carry
inside `metadata` is not validated against its own schema.

*Through oaimend*: a rule that is *held* holds in front of every source of the tests, whatever is
wrong with that, or the source counts as failed and the answer is a 503
(`what_the_proxy_answers_for_holds_whatever_its_source_does`); *with `identify.*`* it does where the
mapping says what Identify of the source lacks, since nothing is invented. The others are as good as the source
is: its dates, counts, selections and errors pass. In front of a source without a fault all of them hold
(`the_proxy_in_front_of_a_repository_without_a_fault_passes_wholly`), and none fails in front of
the broken one of `oaimend demo` (`the_proxy_in_front_of_the_broken_demonstration_passes`), whose
small pages are warned of.

| rule | section | what is wanted | through oaimend | seen broken in |
|---|---|---|---|---|
";
