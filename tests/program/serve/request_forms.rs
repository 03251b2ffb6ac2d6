//! Sources that refuse legal requests, or answer them with nothing: the proxy asks again in another form, and
//! learns which one the source needs. A source that needs none receives no further request.

use crate::fixtures::harvest::Mirror;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, ReceivedRequest, Reply, Source};
use oaimend::config::Config;
use oaimend_test_support::{envelope::Strictness, judge::judge};
use oaimend_upstream::settings::{Method, PageFallback::GetRecord};
use std::time::Duration;

const EARLIEST: &str = "2024-05-30T10:00:00Z";
const SECONDS: &str = "YYYY-MM-DDThh:mm:ssZ";
const DAYS: &str = "YYYY-MM-DD";

fn response(request: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\
         <responseDate>2026-01-02T03:04:05Z</responseDate><request{request}>http://source.example/oai</request>\
         {body}</OAI-PMH>"
    )
}

fn error(code: &str) -> String {
    response("", &format!("<error code=\"{code}\">no</error>"))
}

fn identify(granularity: &str, earliest: &str) -> String {
    response(
        " verb=\"Identify\"",
        &format!(
            "<Identify><repositoryName>x</repositoryName><baseURL>http://source.example/oai</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>\
             <earliestDatestamp>{earliest}</earliestDatestamp><deletedRecord>transient</deletedRecord>\
             <granularity>{granularity}</granularity></Identify>"
        ),
    )
}

/// An item of a list: a record, or its header for `ListIdentifiers`.
fn item(verb: &str, identifier: &str, datestamp: &str) -> String {
    let datestamp =
        if datestamp.is_empty() { String::new() } else { format!("<datestamp>{datestamp}</datestamp>") };
    let header = format!("<header><identifier>{identifier}</identifier>{datestamp}</header>");
    if verb == "ListIdentifiers" {
        return header;
    }
    format!(
        "<record>{header}<metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{identifier}</dc:title></oai_dc:dc></metadata></record>"
    )
}

/// A page with these items and this token.
fn list(verb: &str, items: &[(&str, &str)], token: Option<&str>) -> String {
    let items: String = items.iter().map(|(identifier, stamp)| item(verb, identifier, stamp)).collect();
    let token = token.map(|token| format!("<resumptionToken>{token}</resumptionToken>")).unwrap_or_default();
    response(&format!(" verb=\"{verb}\""), &format!("<{verb}>{items}{token}</{verb}>"))
}

fn formats() -> String {
    response(
        " verb=\"ListMetadataFormats\"",
        "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
         <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
         <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>\
         </metadataFormat></ListMetadataFormats>",
    )
}

fn get_record(identifier: &str) -> String {
    let record = item("GetRecord", identifier, "2024-06-01");
    response(" verb=\"GetRecord\"", &format!("<GetRecord>{record}</GetRecord>"))
}

fn query(request: &ReceivedRequest) -> &str {
    match request.method.as_str() {
        "POST" => &request.form,
        _ => request.target.split_once('?').map_or("", |(_, query)| query),
    }
}

fn argument<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn verb_of(request: &ReceivedRequest) -> &str {
    argument(query(request), "verb").unwrap_or_default()
}

fn queries(source: &Source) -> Vec<String> {
    source.requests().iter().map(|request| query(request).to_owned()).collect()
}

#[track_caller]
fn valid(got: &Got) -> String {
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    judge(&got.body, Strictness::TokenAlone).unwrap_or_else(|wrong| panic!("{wrong}\n{:.3000}", got.text()));
    got.text()
}

/// All texts between two marks.
fn all<'t>(text: &'t str, from: &str, until: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|part| part.split(until).next()).collect()
}

fn identifiers(text: &str) -> Vec<&str> {
    all(text, "<identifier>", "<")
}

fn code(page: &str) -> &str {
    all(page, "<error code=\"", "\"").first().copied().unwrap_or("no error")
}

/// The identifiers of a whole list, and the error code at its end.
#[track_caller]
fn harvest(proxy: &Proxy, path: &str) -> (Vec<String>, String) {
    let verb = argument(path.trim_start_matches("/x?"), "verb").expect("it has a verb").to_owned();
    let (mut found, mut path) = (Vec::new(), path.to_owned());
    for _ in 0..20 {
        let page = valid(&proxy.get(&path));
        found.extend(identifiers(&page).into_iter().map(str::to_owned));
        if page.contains("<error") {
            return (found, code(&page).to_owned());
        }
        let token = all(&page, "<resumptionToken", "</").first().and_then(|rest| rest.split('>').nth(1));
        let Some(token) = token.filter(|token| !token.is_empty()) else { return (found, "end".to_owned()) };
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        path = format!("/x?verb={verb}&resumptionToken={token}");
    }
    panic!("the list does not end");
}

#[track_caller]
fn check_harvest(proxy: &Proxy, path: &str, expected: &[&str]) {
    assert_eq!(
        harvest(proxy, path),
        (expected.iter().map(|id| (*id).to_owned()).collect(), "end".to_owned())
    );
}

/// The repository `x` at this URL, without a cache.
fn uncached(config: &mut Config, url: &str) {
    config.map("x", url).expect("a legal mapping");
    config.cache.enabled = false;
}

/// Stops and starts the proxy with the same data and mapping.
fn restarted(proxy: Proxy, source: &Source) -> Proxy {
    let url = source.base_url();
    proxy.restarted(|config| uncached(config, &url))
}

// --- tokens that need the metadataPrefix of their list

const PAGES: [(&str, [&str; 2], Option<&str>); 3] = [
    ("", ["oai:x:1", "oai:x:2"], Some("t2")),
    ("t2", ["oai:x:3", "oai:x:4"], Some("t3")),
    ("t3", ["oai:x:5", "oai:x:6"], None),
];
const SIX: [&str; 6] = ["oai:x:1", "oai:x:2", "oai:x:3", "oai:x:4", "oai:x:5", "oai:x:6"];

/// The page of a list in three pages.
fn page_after(request: &ReceivedRequest) -> Reply {
    let (verb, token) = (verb_of(request), argument(query(request), "resumptionToken").unwrap_or_default());
    match PAGES.iter().find(|(of, ..)| *of == token) {
        Some((_, ids, next)) => {
            let items: Vec<(&str, &str)> = ids.iter().map(|id| (*id, "2024-06-01")).collect();
            Reply::xml(list(verb, &items, *next))
        }
        None => Reply::xml(error("badResumptionToken")),
    }
}

/// A source that refuses a request without metadataPrefix, with an error or a status.
fn needs_prefix(refusal: Result<&'static str, u16>) -> Source {
    Source::start(move |_, request| page_with_prefix(request, refusal))
}

fn page_with_prefix(request: &ReceivedRequest, refusal: Result<&str, u16>) -> Reply {
    match (argument(query(request), "metadataPrefix"), refusal) {
        (Some("oai_dc"), _) => page_after(request),
        (_, Ok(code)) => Reply::xml(error(code)),
        (_, Err(status)) => Reply::whole(status, "Content-Type: text/html", "<html>no</html>"),
    }
}

#[test]
fn token_is_sent_with_the_prefix_if_the_source_needs_it() {
    for refusal in [Ok("badArgument"), Ok("cannotDisseminateFormat"), Err(400), Err(422)] {
        for verb in ["ListRecords", "ListIdentifiers"] {
            let source = needs_prefix(refusal);
            let url = source.base_url();
            let proxy = Proxy::with(|config| uncached(config, &url));
            let first = format!("verb={verb}&metadataPrefix=oai_dc");
            check_harvest(&proxy, &format!("/x?{first}"), &SIX);
            let token = |token: &str| format!("verb={verb}&resumptionToken={token}");
            let with_prefix = |of: &str| format!("{}&metadataPrefix=oai_dc", token(of));
            let learned = [first.clone(), with_prefix("t2"), with_prefix("t3")];
            let expected = [first.clone(), token("t2"), with_prefix("t2"), with_prefix("t3")];
            // A status may also mean an expired token, for which the list is restarted first.
            let restart = if refusal.is_ok() { vec![] } else { vec![first.clone(), token("t2")] };
            let expected = [&expected[..2], &restart, &expected[2..]].concat();
            assert_eq!(queries(&source), expected, "{refusal:?}");
            // It is known for the next list, and after a restart.
            let proxy = restarted(proxy, &source);
            check_harvest(&proxy, &format!("/x?{first}"), &SIX);
            assert_eq!(queries(&source)[expected.len()..], learned, "{refusal:?}");
            // The list is known after a restart too.
            let proxy = restarted(proxy, &source);
            assert_eq!(identifiers(&valid(&proxy.get(&format!("/x?{}", token("t3"))))), SIX[4..]);
        }
    }
}

#[test]
fn token_without_a_known_list_gets_no_prefix() {
    let source = needs_prefix(Ok("badArgument"));
    let proxy = Proxy::of(&source);
    check_harvest(&proxy, LIST, &SIX);
    let page = valid(&proxy.get("/x?verb=ListRecords&resumptionToken=elsewhere"));
    assert_eq!(code(&page), "badResumptionToken");
    assert_eq!(queries(&source).last().expect("a request"), "verb=ListRecords&resumptionToken=elsewhere");
}

#[test]
fn prefix_is_tried_seldom_if_it_does_not_help() {
    const FIRST: &[(&str, &str)] = &[("oai:x:1", "2024-06-01")];
    let source = Source::start(|_, request| match argument(query(request), "resumptionToken") {
        None => Reply::xml(list("ListRecords", FIRST, argument(query(request), "set"))),
        Some(_) => Reply::xml(error("cannotDisseminateFormat")),
    });
    let proxy = Proxy::of(&source);
    for number in 0..6 {
        let (_, end) = harvest(&proxy, &format!("{LIST}&set={number}"));
        assert_eq!(end, "cannotDisseminateFormat");
    }
    let sent = queries(&source);
    let trials = sent.iter().filter(|query| query.contains("resumptionToken") && query.contains("Prefix"));
    assert_eq!((trials.count(), sent.len()), (3, 15), "{sent:?}");
}

#[test]
fn page_fallback_sends_the_prefix() {
    let source = Source::start(|_, request| {
        let (query, verb) = (query(request), verb_of(request));
        match argument(query, "identifier") {
            Some(identifier) => Reply::xml(get_record(&identifier.replace("%3A", ":"))),
            None if argument(query, "metadataPrefix").is_none() => Reply::xml(error("badArgument")),
            None if verb == "ListRecords" && argument(query, "resumptionToken") == Some("t2") => {
                Reply::whole(500, "", "<html>no</html>")
            }
            None => page_after(request),
        }
    });
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.page_fallback = GetRecord);
    check_harvest(&proxy, LIST, &SIX);
}

// --- identifiers that the source does not decode

/// A source that compares the identifier as it is in the query.
fn decodes_nothing(miss: Result<&'static str, u16>) -> Source {
    Source::start(move |_, request| {
        let known = ["oai:x:article/17", "oai:x:article/18"];
        let identifier = argument(query(request), "identifier").unwrap_or_default();
        match (verb_of(request), miss) {
            ("Identify", _) => Reply::xml(identify(SECONDS, EARLIEST)),
            ("GetRecord", _) if known.contains(&identifier) => Reply::xml(get_record(identifier)),
            ("ListMetadataFormats", _) if known.contains(&identifier) => Reply::xml(formats()),
            (_, Ok(code)) => Reply::xml(error(code)),
            (_, Err(status)) => Reply::whole(status, "Content-Type: text/html", "<html>no</html>"),
        }
    })
}

const RECORD: &str = "/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=";

#[test]
fn identifier_is_sent_literally_if_the_source_does_not_decode_it() {
    let formats = "/x?verb=ListMetadataFormats&identifier=oai:x:article/17";
    for (miss, method, first) in [
        (Ok("idDoesNotExist"), Method::Get, format!("{RECORD}oai:x:article/17")),
        (Ok("idDoesNotExist"), Method::Post, format!("{RECORD}oai%3Ax%3Aarticle%2F17")),
        (Ok("idDoesNotExist"), Method::Get, formats.to_owned()),
        (Err(404), Method::Get, format!("{RECORD}oai:x:article/17")),
        (Err(410), Method::Get, formats.to_owned()),
    ] {
        let source = decodes_nothing(miss);
        let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = method);
        let page = valid(&proxy.get(&first));
        assert_eq!(code(&page), "no error", "{miss:?} {first}");
        let sent = queries(&source);
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert!(sent[0].contains("oai%3Ax%3Aarticle%2F17"), "{sent:?}");
        assert!(sent[1].contains("identifier=oai:x:article/17"), "{sent:?}");
        // It is learned for all verbs, and a miss costs one request.
        assert_eq!(code(&valid(&proxy.get(&format!("{RECORD}oai:x:article/18")))), "no error");
        assert_eq!(code(&valid(&proxy.get(formats))), "no error");
        let before = queries(&source).len();
        assert_eq!(code(&valid(&proxy.get(&format!("{RECORD}oai:x:article/19")))), "idDoesNotExist");
        let after = queries(&source);
        let misses = after[before..].iter().filter(|query| query.contains("article/19")).count();
        assert!(after.iter().skip(2).all(|query| !query.contains("%2F")), "{after:?}");
        assert!(misses <= 2, "the diagnosis of a status asks for its formats: {after:?}");
    }
}

#[test]
fn literal_identifiers_are_remembered() {
    let source = decodes_nothing(Ok("idDoesNotExist"));
    let url = source.base_url();
    let proxy = Proxy::with(|config| uncached(config, &url));
    valid(&proxy.get(&format!("{RECORD}oai:x:article/17")));
    let proxy = restarted(proxy, &source);
    assert_eq!(identifiers(&valid(&proxy.get(&format!("{RECORD}oai:x:article/18")))), ["oai:x:article/18"]);
    assert_eq!(queries(&source).len(), 3);
}

#[test]
fn misses_are_not_doubled_at_a_source_that_decodes() {
    let source = Source::start(|_, request| match argument(query(request), "identifier") {
        Some("oai%3Ax%3A1") => Reply::xml(get_record("oai:x:1")),
        _ => Reply::xml(error("idDoesNotExist")),
    });
    let proxy = Proxy::of(&source);
    // Three misses prove nothing, and then nothing is tried for a while.
    for number in 10..15 {
        assert_eq!(code(&valid(&proxy.get(&format!("{RECORD}oai:x:{number}")))), "idDoesNotExist");
    }
    assert_eq!(queries(&source).len(), 3 * 2 + 2);
    // A record proves that colons are decoded.
    drop(oaimend_base::clock::Clock::pause(&*proxy.clock, Duration::from_secs(3600)));
    assert_eq!(identifiers(&valid(&proxy.get(&format!("{RECORD}oai:x:1")))), ["oai:x:1"]);
    for number in 20..23 {
        assert_eq!(code(&valid(&proxy.get(&format!("{RECORD}oai:x:{number}")))), "idDoesNotExist");
    }
    assert_eq!(queries(&source).len(), 8 + 1 + 3);
    // That slashes are decoded is not proven by that.
    assert_eq!(code(&valid(&proxy.get(&format!("{RECORD}oai:x:a/1")))), "idDoesNotExist");
    assert_eq!(queries(&source).len(), 12 + 2);
}

#[test]
fn listed_records_are_requested_literally() {
    const IDS: [&str; 4] = ["oai:x:a/1", "oai:x:a/2", "oai:x:a/3", "oai:x:a/4"];
    // The whole list fails, or the datestamp of one record is broken.
    for fails in [true, false] {
        let source = Source::start(move |_, request| match verb_of(request) {
            "ListRecords" if fails => Reply::whole(500, "", "<html>no</html>"),
            "Identify" => Reply::xml(error("badArgument")),
            "GetRecord" => match argument(query(request), "identifier").filter(|id| IDS.contains(id)) {
                Some(identifier) => Reply::xml(get_record(identifier)),
                None => Reply::xml(error("idDoesNotExist")),
            },
            verb => {
                let stamp = |id| if !fails && id == IDS[1] { "2024-02-31" } else { "2024-06-01" };
                Reply::xml(list(verb, &IDS.map(|id| (id, stamp(id))), None))
            }
        });
        let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.page_fallback = GetRecord);
        // What harvesters miss proves nothing about records that the source lists.
        for number in 10..14 {
            valid(&proxy.get(&format!("{RECORD}oai:x:{number}")));
        }
        check_harvest(&proxy, LIST, &IDS);
        assert_eq!(proxy.admin_json("/-/repositories/x/quarantine")["records"], serde_json::json!([]));
    }
}

// --- seconds at a source of days

/// A source of days that finds nothing for seconds.
fn misses_seconds(granularity: Option<&'static str>) -> Source {
    Source::start(move |_, request| match (verb_of(request), granularity) {
        ("Identify", Some(granularity)) => Reply::xml(identify(granularity, "2020-01-01")),
        ("Identify", None) => Reply::whole(500, "", "<html>no</html>"),
        _ if query(request).contains("%3A") => Reply::xml(error("noRecordsMatch")),
        (verb, _) => Reply::xml(list(verb, &[("oai:x:1", "2024-05-01"), ("oai:x:2", "2024-05-02")], None)),
    })
}

#[test]
fn empty_list_for_seconds_is_requested_by_days() {
    for (verb, dates, days) in [
        ("ListRecords", "from=2024-05-01T12:00:00Z", "from=2024-05-01"),
        ("ListIdentifiers", "from=2024-05-01T12:00:00Z", "from=2024-05-01"),
        ("ListRecords", "until=2024-05-02T12:00:00Z", "until=2024-05-02"),
        (
            "ListRecords",
            "from=2024-05-01T12:00:00Z&until=2024-05-02T12:00:00Z",
            "from=2024-05-01&until=2024-05-02",
        ),
    ] {
        for method in [Method::Get, Method::Post] {
            let source = misses_seconds(Some(DAYS));
            let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = method);
            let first = format!("verb={verb}&metadataPrefix=oai_dc");
            // All records of the days: their datestamps do not say more.
            check_harvest(&proxy, &format!("/x?{first}&{dates}"), &["oai:x:1", "oai:x:2"]);
            let encoded = dates.replace(':', "%3A");
            let expected = [format!("{first}&{encoded}"), "verb=Identify".into(), format!("{first}&{days}")];
            assert_eq!(queries(&source), expected);
            // From then on it is asked for days at once.
            check_harvest(&proxy, &format!("/x?{first}&{dates}&set=a"), &["oai:x:1", "oai:x:2"]);
            assert_eq!(queries(&source)[3..], [format!("{first}&{days}&set=a")]);
            assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], true);
        }
    }
}

#[test]
fn empty_list_for_seconds_is_believed_without_a_granularity_of_days() {
    // Identify says seconds, or fails: it is requested once.
    for granularity in [Some(SECONDS), None] {
        let source = misses_seconds(granularity);
        let proxy = Proxy::of(&source);
        for set in ["a", "b", "c"] {
            let page = valid(&proxy.get(&format!("{LIST}&from=2024-05-01T00:00:00Z&set={set}")));
            assert_eq!(code(&page), "noRecordsMatch");
        }
        let sent = queries(&source);
        let identify = sent.iter().filter(|query| *query == "verb=Identify").count();
        assert_eq!((identify, sent.len()), (1, 4), "{sent:?}");
        assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
    }
}

#[test]
fn known_granularity_needs_no_identify() {
    let source = misses_seconds(Some(DAYS));
    let proxy = Proxy::of(&source);
    valid(&proxy.get("/x?verb=Identify"));
    check_harvest(&proxy, &format!("{LIST}&from=2024-05-01T00:00:00Z"), &["oai:x:1", "oai:x:2"]);
    let sent = queries(&source);
    assert_eq!(sent.iter().filter(|query| *query == "verb=Identify").count(), 1, "{sent:?}");
    // A window that is empty in days, too, has no records.
    let source = Source::start(|_, request| match verb_of(request) {
        "Identify" => Reply::xml(identify(DAYS, "2020-01-01")),
        _ => Reply::xml(error("noRecordsMatch")),
    });
    let proxy = Proxy::of(&source);
    assert_eq!(code(&valid(&proxy.get(&format!("{LIST}&from=2024-05-01T00:00:00Z")))), "noRecordsMatch");
    assert_eq!(queries(&source).len(), 3);
}

// --- dates before earliestDatestamp

/// A source that refuses a `from` before its earliestDatestamp, although it has older records; in two pages.
fn refuses_early_dates(granularity: &'static str, earliest: &'static str) -> Source {
    Source::start(move |_, request| {
        let (query, verb) = (query(request), verb_of(request));
        let is_early = |name: &str| {
            argument(query, name)
                .is_some_and(|date| *date.replace("%3A", ":") < earliest[..date.replace("%3A", ":").len()])
        };
        match argument(query, "resumptionToken") {
            _ if verb == "Identify" => Reply::xml(identify(granularity, earliest)),
            _ if is_early("from") || is_early("until") => Reply::xml(error("badArgument")),
            None => Reply::xml(list(
                verb,
                &[("oai:x:1", "2024-04-02T00:00:00Z"), ("oai:x:2", "2024-05-02T00:00:00Z")],
                Some("t2"),
            )),
            Some(_) => Reply::xml(list(
                verb,
                &[("oai:x:3", "2024-05-31T00:00:00Z"), ("oai:x:4", "2024-04-30T00:00:00Z")],
                None,
            )),
        }
    })
}

#[test]
fn early_from_is_omitted_if_the_source_refuses_it() {
    for verb in ["ListRecords", "ListIdentifiers"] {
        let source = refuses_early_dates(SECONDS, EARLIEST);
        let url = source.base_url();
        let proxy = Proxy::with(|config| uncached(config, &url));
        let first = format!("verb={verb}&metadataPrefix=oai_dc");
        let early = "from=2024-05-01T00:00:00Z";
        check_harvest(&proxy, &format!("/x?{first}&{early}"), &["oai:x:2", "oai:x:3"]);
        let token = format!("verb={verb}&resumptionToken=t2");
        let expected = [
            format!("{first}&{}", early.replace(':', "%3A")),
            "verb=Identify".to_owned(),
            first.clone(),
            token.clone(),
        ];
        assert_eq!(queries(&source), expected);
        // It is learned, also for a restart, and bounded by `until`.
        let proxy = restarted(proxy, &source);
        let window = "from=2024-05-01&until=2024-05-30";
        // The token is that of the earlier list too, so records of both windows are sent.
        check_harvest(&proxy, &format!("/x?{first}&{window}"), &["oai:x:2", "oai:x:3"]);
        assert_eq!(queries(&source)[4..], [format!("{first}&until=2024-05-30"), token.clone()]);
        // A harvest of changes reads the changes only.
        let changes = "from=2024-05-30T10%3A00%3A00Z";
        valid(&proxy.get(&format!("/x?{first}&{changes}")));
        assert_eq!(queries(&source)[6..], [format!("{first}&{changes}")]);
    }
}

#[test]
fn window_before_earliest_datestamp_is_read_from_the_whole_list() {
    let source = refuses_early_dates(DAYS, "2024-05-30");
    let proxy = Proxy::of(&source);
    check_harvest(&proxy, &format!("{LIST}&from=2024-04-01&until=2024-04-30"), &["oai:x:1", "oai:x:4"]);
    assert_eq!(queries(&source)[2], LIST[3..]);
}

#[test]
fn refused_dates_after_earliest_datestamp_stay_refused() {
    let source = Source::start(|_, request| match verb_of(request) {
        "Identify" => Reply::xml(identify(DAYS, "2020-01-01")),
        _ => Reply::xml(error("badArgument")),
    });
    let proxy = Proxy::of(&source);
    for set in ["a", "b"] {
        assert_eq!(code(&valid(&proxy.get(&format!("{LIST}&from=2020-01-01&set={set}")))), "badArgument");
    }
    assert_eq!(queries(&source).len(), 3, "it is asked once what it announces");
    // Without success the list without dates is tried three times.
    for set in 0..5 {
        assert_eq!(code(&valid(&proxy.get(&format!("{LIST}&from=2019-01-01&set={set}")))), "badArgument");
    }
    assert_eq!(queries(&source).len(), 3 + 3 * 2 + 2);
}

// --- tokens in the request element

/// A source that writes the token of the next page into the request element only. `tokens` are those of its pages.
fn tokens_in_request(tokens: [&'static str; 3]) -> Source {
    Source::start(move |_, request| page_with_token_in_request(request, tokens))
}

fn page_with_token_in_request(request: &ReceivedRequest, tokens: [&str; 3]) -> Reply {
    let (query, verb) = (query(request), verb_of(request));
    let place = match argument(query, "resumptionToken") {
        None => 0,
        Some("a%2Bb") => 1,
        Some("c") => 2,
        Some(_) => return Reply::xml(error("badResumptionToken")),
    };
    let items = PAGES[place].1.map(|id| (id, "2024-06-01"));
    let token = tokens[place];
    let token = if token.is_empty() { String::new() } else { format!(" resumptionToken=\"{token}\"") };
    let page = list(verb, &items, None);
    let (before, after) = (format!("<request verb=\"{verb}\">"), format!("<request verb=\"{verb}\"{token}>"));
    Reply::xml(page.replace(&before, &after))
}

#[test]
fn token_in_the_request_element_continues_the_list() {
    // The last page has no token, or repeats the requested one.
    for last in ["", "c"] {
        for verb in ["ListRecords", "ListIdentifiers"] {
            let source = tokens_in_request(["a+b", "c", last]);
            let proxy = Proxy::of(&source);
            check_harvest(&proxy, &format!("/x?verb={verb}&metadataPrefix=oai_dc"), &SIX);
            assert_eq!(source.requests().len(), 3, "{:?}", queries(&source));
        }
    }
}

#[test]
fn echo_of_the_token_ends_the_list() {
    for echo in ["a+b", "a%2Bb", " a%2bb ", "a b"] {
        let source = Source::start(move |_, request| {
            let is_first = argument(query(request), "resumptionToken").is_none();
            let identifier = if is_first { "oai:x:1" } else { "oai:x:2" };
            let page = list("ListRecords", &[(identifier, "2024-06-01")], is_first.then_some("a+b"));
            let attribute = format!("<request verb=\"ListRecords\" resumptionToken=\"{echo}\">");
            Reply::xml(if is_first {
                page
            } else {
                page.replace("<request verb=\"ListRecords\">", &attribute)
            })
        });
        let proxy = Proxy::of(&source);
        check_harvest(&proxy, LIST, &["oai:x:1", "oai:x:2"]);
        assert_eq!(source.requests().len(), 2, "{echo}");
    }
}

#[test]
fn token_in_the_request_element_that_leads_back_is_an_error() {
    let source = tokens_in_request(["a+b", "c", "a+b"]);
    let proxy = Proxy::of(&source);
    let (found, end) = harvest(&proxy, LIST);
    assert_eq!(end, "badResumptionToken", "{found:?}");
    assert_eq!(found[..6], SIX);
}

#[test]
fn mirror_harvests_lists_in_the_same_forms() {
    let pages: [fn(&ReceivedRequest) -> Reply; 2] = [
        |request| page_with_prefix(request, Ok("badArgument")),
        |request| page_with_token_in_request(request, ["a+b", "c", ""]),
    ];
    for page in pages {
        let source = Source::start(move |_, request| match verb_of(request) {
            "Identify" => Reply::xml(identify(DAYS, "2020-01-01")),
            "ListMetadataFormats" => Reply::xml(formats()),
            "ListSets" => Reply::xml(error("noSetHierarchy")),
            _ => page(request),
        });
        let folder = tempfile::tempdir().expect("a folder");
        let mirror = Mirror::open(&source, folder.path());
        let summary = mirror.harvest();
        assert!(summary.is_complete(), "{summary:?}");
        let mut stored: Vec<String> = mirror.records().into_iter().map(|record| record.identifier).collect();
        stored.sort();
        assert_eq!(stored, SIX);
    }
}
