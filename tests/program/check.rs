//! `oaimend check`: every rule fails in its faulty repository and in no other. A valid repository
//! passes, and so does the proxy in front of a broken one.

use crate::fixtures::faults::{Case, HELD};
use crate::fixtures::provider::Fault::{Edit, Gzip, Nothing, PutOff};
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::{Always, Has};
use crate::fixtures::provider_one::ProviderOne;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Reply, Source};
use crate::fixtures::static_files::Kept;
use crate::fixtures::time::Skipping;
use crate::fixtures::{faults, static_files};
use oaimend::config::Mapping;
use oaimend_base::clock::Clock;
use oaimend_check::{CheckOptions, Finding, Profile, Progress, RULES, Report, Verdict};
use oaimend_test_support as support;
use oaimend_upstream::settings::Limits;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn mapping(base_url: &str) -> Mapping {
    let mut mapping = Mapping::new("x", base_url, &Limits::default()).expect("a legal base URL");
    mapping.source_mut().access.redirect_hosts = vec!["*".to_owned()];
    mapping
}

fn run_whole(mapping: &Mapping, clock: &Arc<Skipping>, steps: &mut Vec<String>) -> Report {
    let options = CheckOptions { time_max: TIME_MAX, schemas: None, with_searches: false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let mut on_progress = |step: Progress<'_>| {
        steps.push(match step {
            Progress::Request { request, .. } => request.to_string(),
            Progress::Wait { time, status } => format!("{status}: {} s", time.as_secs()),
        });
    };
    runtime
        .block_on(oaimend_check::run(&mapping.source, &options, clock, &mut on_progress))
        .expect("a client can be made")
}

/// The total time limit of a check.
const TIME_MAX: Duration = Duration::from_secs(500);

fn run(mapping: &Mapping, clock: &Arc<Skipping>) -> Report {
    run_whole(mapping, clock, &mut Vec::new()).for_profile(None)
}

/// The number of rules that need no profile.
pub(crate) fn general_rules() -> usize {
    RULES.iter().filter(|entry| !entry.rule.is_of_profile()).count()
}

fn of(base_url: &str) -> Report {
    run(&mapping(base_url), &Skipping::new())
}

/// The names of the rules with this verdict, in the order of the table.
fn rules(report: &Report, verdict: Verdict) -> Vec<&'static str> {
    let found = report.findings.iter().filter(|finding| finding.verdict == verdict);
    found.map(|finding| finding.rule.entry().name).collect()
}

fn finding<'a>(report: &'a Report, rule: &str) -> &'a Finding {
    let found = report.findings.iter().find(|finding| finding.rule.entry().name == rule);
    found.unwrap_or_else(|| panic!("no rule {rule}"))
}

/// The rules that fail or warn, for a message.
fn trouble(report: &Report) -> String {
    let found = report.findings.iter().filter(|finding| finding.verdict >= Verdict::Warning);
    let line = |finding: &Finding| {
        let Finding { verdict, request, received, .. } = finding;
        format!("  {} {}: {request}: {received}", verdict.name(), finding.rule.entry().name)
    };
    found.map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(what: &str, cases: &[Case]) {
    let failures = support::each(cases, |case| {
        let (source, shown) = case.provider.start(case.when, case.fault.clone());
        let report = of(&source.base_url());
        let found = [Verdict::Fails, Verdict::Warning, Verdict::Advice].map(|it| rules(&report, it));
        let name = format!("{}, {:?}, {:?}", case.rules, case.when, case.fault);
        if shown.load(Ordering::Relaxed) == 0 {
            return Some(format!("{name}: the fault never showed"));
        }
        let expected = case.expected();
        (found != expected).then(|| format!("{name}:\n{}", trouble(&report)))
    });
    support::report(what, cases.len(), &failures);
}

#[test]
fn http_rules() {
    check("HTTP", &faults::http_cases());
}

#[test]
fn envelope_rules() {
    check("envelope", &faults::envelope_cases());
}

#[test]
fn identify_rules() {
    check("Identify", &faults::identify_cases());
}

#[test]
fn list_and_record_rules() {
    check("lists", &faults::list_cases());
}

#[test]
fn record_rules() {
    check("records", &faults::record_cases());
}

#[test]
fn token_rules() {
    check("tokens", &faults::token_cases());
}

#[test]
fn error_rules() {
    check("errors", &faults::error_cases());
}

#[test]
fn https_gives_a_warning() {
    let provider = Provider { scheme: "https", ..Provider::default() };
    let source = Source::start_tls(provider.script(Always, Nothing).0);
    let mut mapping = mapping(&source.base_url());
    mapping.source_mut().access.tls.ca_file =
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/fixtures/tls/ca.pem"));
    let report = run(&mapping, &Skipping::new());
    assert_eq!(rules(&report, Verdict::Warning), ["plain-http"], "{}", trouble(&report));
    assert_eq!(report.count(Verdict::Fails), 0, "{}", trouble(&report));
}

#[test]
fn every_rule_has_a_failing_case() {
    let cases = faults::all_cases();
    let seen: Vec<&str> = cases
        .iter()
        .flat_map(Case::expected)
        .flatten()
        .chain(["plain-http", "answers", "payload-schema", "openaire-set", "openaire-fields"])
        .chain(crate::check_odl::FAILING)
        .collect();
    let unseen: Vec<&str> =
        RULES.iter().map(|entry| entry.name).filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "no case breaks {}", unseen.join(", "));
    assert!(cases.len() >= 165, "{} cases", cases.len());
    let mut names: Vec<String> =
        cases.iter().map(|case| format!("{:?} {:?} {:?}", case.when, case.fault, case.provider)).collect();
    names.sort();
    let repeated = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(repeated, None, "each case is another provider");
}

#[test]
fn valid_repository_passes() {
    for (in_days, unjudged) in [
        (false, ["retry-after", "payload-schema", "too-fine"]),
        (true, ["retry-after", "day-harvest", "payload-schema"]),
    ] {
        let (source, _) = Provider { in_days, ..Provider::default() }.start(Always, Nothing);
        let report = of(&source.base_url());
        assert_eq!(trouble(&report), "");
        assert_eq!(rules(&report, Verdict::Advice), Vec::<&str>::new());
        assert_eq!(rules(&report, Verdict::Unjudged), unjudged);
        assert_eq!(report.count(Verdict::Holds), general_rules() - 3);
        assert_eq!((report.requests, report.stopped), (source.requests().len(), None));
        assert!((45..65).contains(&report.requests), "{}", report.requests);
    }
}

#[test]
fn proxied_valid_repository_passes() {
    for in_days in [false, true] {
        let (source, _) = Provider { in_days, ..Provider::default() }.start(Always, Nothing);
        let proxy = Proxy::of(&source);
        let report = of(&format!("http://{}/x", proxy.address()));
        assert_eq!(trouble(&report), "");
        // The proxy compresses without announcing it.
        assert_eq!(rules(&report, Verdict::Advice), ["compression"]);
        assert_eq!(report.count(Verdict::Unjudged), 3);
    }
}

#[test]
fn proxied_v1_repository_passes() {
    for version in ["1.0", "1.1"] {
        for has_sets in [false, true] {
            for is_strict in [false, true] {
                let provider = ProviderOne {
                    has_sets,
                    refuses_formats: is_strict,
                    is_lenient: !is_strict,
                    ..ProviderOne::of(version)
                };
                let source = provider.start();
                let old = of(&source.base_url());
                assert_eq!(finding(&old, "protocol-version").verdict, Verdict::Unjudged, "{}", trouble(&old));
                let proxy = Proxy::of(&source);
                let report = of(&format!("http://{}/x", proxy.address()));
                // This source ignores a token of ListSets.
                let fails: &[&str] = if has_sets { &["bad-token"] } else { &[] };
                assert_eq!(rules(&report, Verdict::Fails), fails, "{provider:?}: {}", trouble(&report));
                assert_eq!(rules(&report, Verdict::Warning), Vec::<&str>::new(), "{provider:?}");
                let mut unjudged =
                    vec!["retry-after", "oai-identifier", "set-of-records", "day-harvest", "dc-language"];
                unjudged.extend([
                    "payload-schema",
                    "first-cursor",
                    "next-cursor",
                    "complete-list-size",
                    "expiration-date",
                ]);
                unjudged.retain(|rule| !has_sets || *rule != "set-of-records");
                assert_eq!(rules(&report, Verdict::Unjudged), unjudged, "{provider:?}");
            }
        }
    }
}

#[test]
fn proxied_demo_provider_passes() {
    let provider = oaimend::demo::Provider::start(0).expect("loopback has free ports");
    let broken = of(&provider.base_url());
    for rule in ["well-formed", "datestamp-form", "bad-date"] {
        assert_eq!(finding(&broken, rule).verdict, Verdict::Fails, "{rule}: {}", trouble(&broken));
    }
    let proxy = Proxy::with(|config| config.map("demo", &provider.base_url()).expect("a legal mapping"));
    let report = of(&format!("http://{}/demo", proxy.address()));
    assert_eq!(report.count(Verdict::Fails), 0, "{}", trouble(&report));
    // The page size is the source's choice: four records. One record is in the quarantine.
    assert_eq!(rules(&report, Verdict::Warning), ["same-records", "page-size"], "{}", trouble(&report));
    let unjudged =
        ["retry-after", "oai-identifier", "dc-language", "payload-schema", "expiration-date", "too-fine"];
    assert_eq!(rules(&report, Verdict::Unjudged), unjudged);
}

#[test]
fn proxied_static_repository_passes() {
    let source = Source::start(|_, _| Reply::xml(static_files::file_of(250)));
    let local = Kept::local(static_files::file_of(250));
    let remote = Kept::mapped(&format!("static_file = \"{}\"\n", source.base_url()));
    for (what, kept) in [("of this machine", local), ("over http", remote)] {
        let proxy = kept.serve();
        let report = of(&format!("http://{}/x", proxy.address()));
        assert_eq!(trouble(&report), "", "{what}");
        assert_eq!(rules(&report, Verdict::Unjudged), STATIC_UNJUDGED, "{what}");
        let judged = report.count(Verdict::Holds) + report.count(Verdict::Advice);
        assert_eq!(judged, general_rules() - STATIC_UNJUDGED.len(), "{what}");
    }
}

/// Rules that this static repository does not show.
const STATIC_UNJUDGED: [&str; 7] = [
    "retry-after",
    "set-of-records",
    "day-harvest",
    "deleted-status",
    "dc-language",
    "payload-schema",
    "expiration-date",
];

#[test]
fn static_repository_needs_a_server() {
    let kept = Kept::local(static_files::file_of(3));
    let mut program = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output = program.args(["check", "x", "--mappings"]).arg(kept.mappings()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("\"x\" is a file, which cannot answer requests") && said.contains("oaimend serve"),
        "{said}"
    );
}

#[test]
fn proxy_rules_hold_for_any_source() {
    let cases = faults::all_cases();
    let failures = support::each(&cases, |case| {
        let (source, _) = case.provider.start(case.when, case.fault.clone());
        let proxy = Proxy::tuned(&source, |mapping| {
            let identify = &mut mapping.source_mut().identify;
            identify.repository_name = Some("A repository".to_owned());
            identify.admin_email = Some("oai@proxy.example".to_owned());
            identify.earliest_datestamp = Some("2020-01-01T00:00:00Z".to_owned());
            identify.deleted_record = Some("persistent".to_owned());
            identify.granularity = Some("YYYY-MM-DDThh:mm:ssZ".to_owned());
        });
        let report = of(&format!("http://{}/x", proxy.address()));
        let broken = rules(&report, Verdict::Fails).into_iter().any(|rule| HELD.contains(&rule));
        // An exception that has become wrong is a failure, too.
        (broken != case.is_unrepaired)
            .then(|| format!("{}, {:?}, {:?}:\n{}", case.rules, case.when, case.fault, trouble(&report)))
    });
    support::report("through the proxy", cases.len(), &failures);
    let unknown = HELD.iter().find(|name| !RULES.iter().any(|entry| entry.name == **name));
    assert_eq!(unknown, None, "no rule has that name");
}

#[test]
fn conformance_page_matches_the_rules() {
    let page = faults::page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/conformance.md");
    if std::env::var_os("OAIMEND_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs can be written to");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/conformance.md is old: OAIMEND_BLESS=1 cargo test --test program check"
    );
}

#[test]
fn deleted_records_on_the_first_pages_are_not_judged() {
    let provider = Provider { page: 10, ..Provider::default() };
    let deleted = Edit("<header>", "<header status=\"deleted\">");
    let (source, _) = provider.start(Has("verb=ListIdentifiers"), deleted);
    let report = of(&source.base_url());
    let live = finding(&report, "live-record");
    assert_eq!(
        (live.verdict, live.received.as_str()),
        (Verdict::Unjudged, "30 listed, and the list continues")
    );
}

#[test]
fn unreachable_source_is_a_finding() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let report = of(&format!("http://{address}/oai"));
    assert_eq!(rules(&report, Verdict::Fails), ["answers"]);
    assert!(finding(&report, "answers").received.contains("refuses the connection"), "{}", trouble(&report));
    assert_eq!(report.count(Verdict::Unjudged), general_rules() - 1);
    assert_eq!(
        (report.requests, finding(&report, "sets").received.as_str()),
        (1, "Identify was not answered in OAI-PMH")
    );
}

#[test]
fn failing_source_is_not_requested_forever() {
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, received| match number {
        0 => script(number, received),
        _ => Reply::raw("gone").reset(),
    });
    let report = of(&source.base_url());
    assert_eq!(report.requests, 4, "{}", trouble(&report));
    assert_eq!(rules(&report, Verdict::Fails), ["answers"]);
}

#[test]
fn endless_response_is_aborted() {
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, received| {
        if received.target.ends_with("verb=ListSets") {
            Reply::new(200, "Content-Type: text/xml").send(vec![b' '; 33 << 20])
        } else {
            script(number, received)
        }
    });
    let report = of(&source.base_url());
    assert_eq!(rules(&report, Verdict::Fails), ["answers"], "{}", trouble(&report));
}

#[test]
fn retry_after_is_respected_within_limits() {
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
fn request_gap_comes_from_the_mapping() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let mut mapping = mapping(&source.base_url());
    mapping.source_mut().politeness.gap = Duration::from_secs(2);
    let clock = Skipping::new();
    let report = run(&mapping, &clock);
    assert_eq!(clock.pauses(), vec![Duration::from_secs(2); report.requests - 1]);
}

#[test]
fn waits_are_reported_with_their_length() {
    let (source, _) = Provider::default().start(Always, PutOff(503, "Retry-After: 7"));
    let mut steps = Vec::new();
    run_whole(&mapping(&source.base_url()), &Skipping::new(), &mut steps);
    assert_eq!(steps[..3], ["verb=Identify", "503: 7 s", "verb=Identify"]);
    assert_eq!(steps.iter().filter(|step| step.ends_with(" s")).count(), 1);
}

#[test]
fn check_ends_at_its_time_limit() {
    // Each request is deferred once, and so costs 300 of 500 seconds.
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, received| match number % 2 {
        0 => Reply::whole(503, "Retry-After: 300", "later"),
        _ => script(number, received),
    });
    let clock = Skipping::new();
    let report = run(&mapping(&source.base_url()), &clock);
    assert_eq!((report.requests, clock.pauses()), (3, vec![Duration::from_secs(300)]));
    let stopped = "not requested: the time limit of the check was reached";
    assert_eq!(report.stopped, Some(stopped));
    assert_eq!(trouble(&report), "", "the limit is not a fault of the source");
    assert_eq!(finding(&report, "identify").verdict, Verdict::Holds);
    let sets = finding(&report, "sets");
    assert_eq!((sets.verdict, sets.received.as_str()), (Verdict::Unjudged, stopped));
}

#[test]
fn slow_response_ends_with_the_time_limit() {
    let (script, _) = Provider::default().script(Always, Nothing);
    let clock = Skipping::new();
    let teller = Arc::clone(&clock);
    let source = Source::start(move |number, received| match number {
        0 => script(number, received),
        _ => {
            let clock = Arc::clone(&teller);
            clock.step(2_000);
            Reply::new(200, "Content-Type: text/xml").stall(move || clock.lapse())
        }
    });
    let report = run(&mapping(&source.base_url()), &clock);
    assert_eq!((report.requests, trouble(&report).as_str()), (2, ""));
    assert_eq!(report.stopped, Some("not requested: the time limit of the check was reached"));
}

#[test]
fn html_page_is_named_with_its_title() {
    let page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>";
    let source = Source::start(move |_, _| Reply::whole(200, "Content-Type: text/html", page));
    let report = of(&source.base_url());
    assert_eq!((report.requests, rules(&report, Verdict::Fails)), (1, vec!["content-type", "root-element"]));
    assert_eq!(finding(&report, "root-element").received, "an HTML page with the title \"Just a moment...\"");
}

#[test]
fn announced_compression_holds() {
    let (script, _) = Provider::default().script(Always, Gzip);
    let (identify, _) = Provider::default()
        .script(Always, Edit("</granularity>", "</granularity><compression>gzip</compression>"));
    let source = Source::start(move |number, received| {
        if received.target.ends_with("verb=Identify") {
            identify(number, received)
        } else {
            script(number, received)
        }
    });
    let report = of(&source.base_url());
    assert_eq!((finding(&report, "compression").verdict, trouble(&report).as_str()), (Verdict::Holds, ""));
}

#[test]
fn profile_of_openaire_demands_its_set_and_fields() {
    let whole = "<dc:creator>A</dc:creator><dc:type>info:eu-repo/semantics/article</dc:type>\
        <dc:rights>info:eu-repo/semantics/openAccess</dc:rights>";
    let plain = "<dc:creator>A</dc:creator><dc:type>article</dc:type><dc:rights>free</dc:rights>";
    for (further, fails) in [
        (Some(("openaire", whole)), vec![]),
        (Some(("openaire", plain)), vec!["openaire-fields"]),
        (Some(("openaire", "<dc:type>x</dc:type>")), vec!["openaire-fields"]),
        (Some(("OpenAIRE", whole)), vec!["openaire-set"]),
        (None, vec!["openaire-set"]),
    ] {
        let (source, _) = Provider { further, ..Provider::default() }.start(Always, Nothing);
        let report = run_whole(&mapping(&source.base_url()), &Skipping::new(), &mut Vec::new());
        let general = report.clone().for_profile(None);
        assert_eq!(trouble(&general), "", "{further:?}");
        let report = report.for_profile(Some(Profile::Openaire));
        assert_eq!(rules(&report, Verdict::Fails), fails, "{further:?}: {}", trouble(&report));
        assert!(report.findings.iter().all(|it| Profile::Openaire.demand(it.rule).is_some()));
    }
}
