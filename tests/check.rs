//! `oaimend check`: every rule fails where it is broken and nowhere else, a
//! repository without a fault passes, and so does the proxy in front of one
//! that is broken.

#[path = "support/provider.rs"]
mod provider;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/source.rs"]
mod source;
mod support;
#[path = "support/time.rs"]
mod time;

use oaimend::check::{self, Finding, RULES, Report, Verdict};
use oaimend::clock::Clock;
use oaimend::config::{Limits, Mapping};
use provider::Fault::{ContentOf, ContentType, Edit, LaterContentOf, Nothing, PutOff, Redirect, Status};
use provider::When::{Always, Has, Is};
use provider::{Fault, Provider, When};
use proxy::Proxy;
use source::{Reply, Source};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use time::Skipping;

fn mapping(base_url: &str) -> Mapping {
    Mapping::new("x", base_url, &Limits::default()).expect("a legal base URL")
}

fn run(mapping: &Mapping, clock: &Arc<Skipping>) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    runtime.block_on(check::run(mapping, clock, &mut |_| {})).expect("a client can be made")
}

fn of(base_url: &str) -> Report {
    run(&mapping(base_url), &Skipping::new())
}

/// The names of the rules that came out so, in the order of the table.
fn rules(report: &Report, verdict: Verdict) -> Vec<&'static str> {
    let found = report.findings.iter().filter(|finding| finding.verdict == verdict);
    found.map(|finding| finding.rule.entry().name).collect()
}

fn finding<'a>(report: &'a Report, rule: &str) -> &'a Finding {
    let found = report.findings.iter().find(|finding| finding.rule.entry().name == rule);
    found.unwrap_or_else(|| panic!("no rule {rule}"))
}

/// What does not hold, for a message.
fn trouble(report: &Report) -> String {
    let found = report.findings.iter().filter(|finding| finding.verdict >= Verdict::Warning);
    let line = |finding: &Finding| {
        let Finding { verdict, asked, came, .. } = finding;
        format!("  {} {}: {asked}: {came}", verdict.name(), finding.rule.entry().name)
    };
    found.map(line).collect::<Vec<_>>().join("\n")
}

/// One fault, and the rules that fail by it; those that warn have a `~` before them.
struct Case {
    rules: &'static str,
    when: When,
    fault: Fault,
    provider: Provider,
}

fn case(rules: &'static str, when: When, fault: Fault) -> Case {
    Case { rules, when, fault, provider: Provider::default() }
}

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";
const ITEM: &str = "verb=GetRecord&identifier=oai%3Asource.example%3A0&metadataPrefix=oai_dc";

fn http_cases() -> Vec<Case> {
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

fn envelope_cases() -> Vec<Case> {
    vec![
        case("well-formed sets", Is("verb=ListSets"), Edit("Set B of A", "Sets A & B")),
        case("well-formed sets", Is("verb=ListSets"), Edit("Set B", "Set \u{3}")),
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

fn identify_cases() -> Vec<Case> {
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

fn list_cases() -> Vec<Case> {
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

fn token_cases() -> Vec<Case> {
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

fn error_cases() -> Vec<Case> {
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

/// The rules of a case that fail, and those that warn, in the order of the table.
fn expected(case: &Case) -> [Vec<&'static str>; 2] {
    let named = |warns: bool| {
        let words = case.rules.split(' ').filter(|word| word.starts_with('~') == warns);
        let words: Vec<&str> = words.map(|word| word.trim_start_matches('~')).collect();
        let all = RULES.iter().map(|entry| entry.name);
        let found: Vec<&'static str> = all.filter(|name| words.contains(name)).collect();
        assert_eq!(found.len(), words.len(), "a name that no rule has: {}", case.rules);
        found
    };
    [named(false), named(true)]
}

#[track_caller]
fn check(what: &str, cases: &[Case]) {
    let failures = support::each(cases, |case| {
        let (source, shown) = case.provider.start(case.when, case.fault.clone());
        let report = of(&source.base_url());
        let found = [rules(&report, Verdict::Fails), rules(&report, Verdict::Warning)];
        let name = format!("{}, {:?}, {:?}", case.rules, case.when, case.fault);
        if shown.load(Ordering::Relaxed) == 0 {
            return Some(format!("{name}: the fault never showed"));
        }
        let expected = expected(case);
        (found != expected).then(|| format!("{name}:\n{}", trouble(&report)))
    });
    support::report(what, cases.len(), &failures);
}

#[test]
fn rules_of_http_fail_where_they_are_broken() {
    check("HTTP", &http_cases());
}

#[test]
fn rules_of_the_envelope_fail_where_they_are_broken() {
    check("envelope", &envelope_cases());
}

#[test]
fn rules_of_identify_fail_where_they_are_broken() {
    check("Identify", &identify_cases());
}

#[test]
fn rules_of_lists_and_records_fail_where_they_are_broken() {
    check("lists", &list_cases());
}

#[test]
fn rules_of_tokens_fail_where_they_are_broken() {
    check("tokens", &token_cases());
}

#[test]
fn rules_of_errors_fail_where_they_are_broken() {
    check("errors", &error_cases());
}

#[test]
fn https_is_warned_of_since_the_specification_knows_http_only() {
    let provider = Provider { scheme: "https", ..Provider::default() };
    let source = Source::start_tls(provider.script(Always, Nothing).0);
    let mut mapping = mapping(&source.base_url());
    mapping.ca_file = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls/ca.pem"));
    let report = run(&mapping, &Skipping::new());
    assert_eq!(rules(&report, Verdict::Warning), ["plain-http"], "{}", trouble(&report));
    assert_eq!(report.count(Verdict::Fails), 0, "{}", trouble(&report));
}

#[test]
fn every_rule_is_seen_broken() {
    let groups =
        [http_cases(), envelope_cases(), identify_cases(), list_cases(), token_cases(), error_cases()];
    let cases: Vec<Case> = groups.into_iter().flatten().collect();
    let seen: Vec<&str> =
        cases.iter().flat_map(expected).flatten().chain(["plain-http", "answers"]).collect();
    let unseen: Vec<&str> =
        RULES.iter().map(|entry| entry.name).filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "no case breaks {}", unseen.join(", "));
}

#[test]
fn a_repository_without_a_fault_passes_wholly() {
    for (in_days, unjudged) in [(false, ["retry-after", "too-fine"]), (true, ["retry-after", "day-harvest"])]
    {
        let (source, _) = Provider { in_days, ..Provider::default() }.start(Always, Nothing);
        let report = of(&source.base_url());
        assert_eq!(trouble(&report), "");
        assert_eq!(rules(&report, Verdict::Unjudged), unjudged);
        assert_eq!(report.count(Verdict::Holds), RULES.len() - 2);
        assert_eq!(report.requests, source.asked().len());
        assert!((35..45).contains(&report.requests), "{}", report.requests);
    }
}

#[test]
fn the_proxy_in_front_of_a_repository_without_a_fault_passes_wholly() {
    for in_days in [false, true] {
        let (source, _) = Provider { in_days, ..Provider::default() }.start(Always, Nothing);
        let proxy = Proxy::of(&source);
        let report = of(&format!("http://{}/x", proxy.address()));
        assert_eq!(trouble(&report), "");
        assert_eq!(report.count(Verdict::Unjudged), 2);
    }
}

#[test]
fn the_proxy_in_front_of_the_broken_demonstration_passes() {
    let provider = oaimend::demo::Provider::start(0).expect("loopback has free ports");
    let broken = of(&provider.base_url());
    for rule in ["well-formed", "datestamp-form", "bad-date"] {
        assert_eq!(finding(&broken, rule).verdict, Verdict::Fails, "{rule}: {}", trouble(&broken));
    }
    let proxy = Proxy::with(|config| config.map("demo", &provider.base_url()).expect("a legal mapping"));
    let report = of(&format!("http://{}/demo", proxy.address()));
    assert_eq!(report.count(Verdict::Fails), 0, "{}", trouble(&report));
    // Its pages are of four records, and that is for its source to say.
    assert_eq!(rules(&report, Verdict::Warning), ["page-size"], "{}", trouble(&report));
    let unjudged = ["retry-after", "oai-identifier", "expiration-date", "too-fine"];
    assert_eq!(rules(&report, Verdict::Unjudged), unjudged);
}

#[test]
fn a_source_that_is_not_there_is_a_finding() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let report = of(&format!("http://{address}/oai"));
    assert_eq!(rules(&report, Verdict::Fails), ["answers"]);
    assert!(finding(&report, "answers").came.contains("refuses the connection"), "{}", trouble(&report));
    assert_eq!(report.count(Verdict::Unjudged), RULES.len() - 1);
    assert_eq!(
        (report.requests, finding(&report, "sets").came.as_str()),
        (1, "Identify was not answered in OAI-PMH")
    );
}

#[test]
fn a_source_that_goes_away_is_not_asked_for_ever() {
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, asked| match number {
        0 => script(number, asked),
        _ => Reply::raw("gone").reset(),
    });
    let report = of(&source.base_url());
    assert_eq!(report.requests, 4, "{}", trouble(&report));
    assert_eq!(rules(&report, Verdict::Fails), ["answers", "oai-dc", "sets", "live-record"]);
}

#[test]
fn an_answer_without_an_end_is_broken_off() {
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, asked| match asked.target.ends_with("verb=ListSets") {
        false => script(number, asked),
        true => Reply::new(200, "Content-Type: text/xml").send(vec![b' '; 17 << 20]),
    });
    let report = of(&source.base_url());
    assert_eq!(rules(&report, Verdict::Fails), ["answers", "sets"], "{}", trouble(&report));
}

#[test]
fn a_source_is_left_alone_as_long_as_it_asks_for_and_not_for_ever() {
    let (source, _) = Provider::default().start(Always, PutOff(503, "Retry-After: 7"));
    let clock = Skipping::new();
    let report = run(&mapping(&source.base_url()), &clock);
    assert_eq!((trouble(&report).as_str(), clock.pauses()), ("", vec![Duration::from_secs(7)]));
    assert_eq!(finding(&report, "retry-after").verdict, Verdict::Holds);

    let source = Source::start(|_, _| Reply::whole(503, "Retry-After: 7", "later"));
    let clock = Skipping::new();
    let report = run(&mapping(&source.base_url()), &clock);
    assert_eq!((report.requests, clock.pauses()), (6, vec![Duration::from_secs(7); 5]));
    assert_eq!(rules(&report, Verdict::Fails), ["http-status"]);

    let source = Source::start(|_, _| Reply::whole(503, "Retry-After: 601", "later"));
    let clock = Skipping::new();
    assert_eq!((run(&mapping(&source.base_url()), &clock).requests, clock.pauses()), (1, vec![]));
}

#[test]
fn between_two_requests_is_the_gap_of_the_mapping() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let mut mapping = mapping(&source.base_url());
    mapping.politeness.gap = Duration::from_secs(2);
    let clock = Skipping::new();
    let report = run(&mapping, &clock);
    assert_eq!(clock.pauses(), vec![Duration::from_secs(2); report.requests - 1]);
}

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.arg("check").args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

#[test]
fn the_program_prints_a_table_and_exits_with_1_when_something_fails() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let output = program(&[&source.base_url()]);
    let table = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{table}");
    assert!(!table.contains('\x1b'), "no colours into a pipe");
    let rows: Vec<&str> = table.lines().skip(1).take(RULES.len()).collect();
    for (row, entry) in rows.iter().zip(RULES) {
        assert!(row.contains(&format!("  {}  ", entry.name)) || row.contains(&format!(" {} ", entry.name)));
        assert!(row.ends_with(&format!("  {}", entry.section)), "{row}");
    }
    let verdicts = rows.iter().filter(|row| row.starts_with("holds     ")).count();
    assert_eq!(verdicts, RULES.len() - 2, "{table}");
    let (source, _) = Provider::default().start(Is("verb=ListSets"), ContentType("application/xml"));
    let output = program(&[&source.base_url()]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}");
    for line in [
        "            asked:   verb=ListSets",
        "            came:    application/xml",
        "            wanted:  The content type is text/xml, its charset none or UTF-8.",
        "            to do:   Send Content-Type: text/xml; charset=UTF-8.",
    ] {
        assert!(table.lines().any(|other| other == line), "{line}\n{table}");
    }
    assert!(table.contains(" 1 fail, 0 warnings, 2 not judged; "), "{table}");
}

#[test]
fn the_program_writes_json() {
    let (source, _) = Provider::default().start(Is("verb=ListSets"), ContentType("application/xml"));
    let output = program(&["--json", &source.base_url()]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let told = ["base_url", "fails", "warnings", "not_judged", "holds"].map(|key| report[key].clone());
    let expected = serde_json::json!([source.base_url(), 1, 0, 2, RULES.len() - 3]);
    assert_eq!(serde_json::Value::from(told.to_vec()), expected);
    let found =
        report["rules"].as_array().expect("a list").iter().find(|rule| rule["rule"] == "content-type");
    assert_eq!(
        *found.expect("it is listed"),
        serde_json::json!({
            "rule": "content-type",
            "verdict": "fails",
            "section": "3.1.2",
            "wants": "The content type is text/xml, its charset none or UTF-8.",
            "asked": "verb=ListSets",
            "came": "application/xml",
            "answers": 1,
            "remedy": "Send Content-Type: text/xml; charset=UTF-8.",
        })
    );
}

#[test]
fn an_id_is_looked_up_in_the_mappings() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mine.toml");
    std::fs::write(file, format!("base_url = \"{}\"\n", source.base_url())).expect("it can be written to");
    let mappings = folder.path().to_str().expect("a path in UTF-8");
    let output = program(&["mine", "--mappings", mappings]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&source.base_url()));
    let output = program(&["yours", "--mappings", mappings]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(
        text(&output.stderr),
        "oaimend: \"yours\" is no id of a repository; known are mine; a base URL is right too\n"
    );
    let output = program(&["ftp://x.example/oai"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("is no base URL"), "{}", text(&output.stderr));
}
