//! Weekly reports to providers, as the program sends and prints them.

use oaimend_oai::UnixSecs;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use oaimend::config::{Mapping, NotificationPolicy, ReportTo};
use oaimend_base::clock::Clock as _;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};

use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::receivers::{Receiver, mail_table, policy};
use crate::fixtures::source::{Reply, Source, fetch, page_of};
use crate::fixtures::time::Skipping;

const DAY_SECS: i64 = 86_400;

/// A source with bare ampersands, and an adminEmail that names two recipients. `without` is an identifier that is missing.
fn source(without: &str) -> Source {
    let list = page_of(4).replace("Title 2", "Black & White").replace(&format!("{without}<"), "<");
    let identify = page_of(0).replace(
        "<ListRecords>\n</ListRecords>\n",
        "<Identify><repositoryName>A</repositoryName><baseURL>http://source.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@x.example,b@y.example</adminEmail>\
         <adminEmail>admin@source.example</adminEmail><earliestDatestamp>2011-01-01</earliestDatestamp>\
         <deletedRecord>no</deletedRecord><granularity>YYYY-MM-DD</granularity></Identify>\n",
    );
    Source::start(move |_, received| {
        if received.target.contains("verb=Identify") {
            Reply::xml(identify.clone())
        } else {
            Reply::xml(list.clone())
        }
    })
}

fn mapping_of(source: &Source, report_to: ReportTo) -> Mapping {
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().quirks.refetch_broken_records = false;
    mapping.report_to = Some(report_to);
    mapping
}

fn start(mapping: &Mapping, notifications: &NotificationPolicy) -> Proxy {
    let data = tempfile::tempdir().expect("a folder");
    Proxy::start(data, Skipping::new(), configured(mapping, notifications))
}

fn configured(
    mapping: &Mapping,
    notifications: &NotificationPolicy,
) -> impl FnOnce(&mut oaimend::config::Config) {
    let (mapping, notifications) = (mapping.clone(), notifications.clone());
    move |config| {
        config.cache.enabled = false;
        config.notifications = notifications;
        config.repositories.add_fixed(mapping);
    }
}

/// Requests a list with defects, and sets the clock to the next Monday after today, at six.
fn pass_to_monday(proxy: &Proxy) {
    let report = || proxy.admin_json("/-/repositories/x/report")["text"].take();
    let before = report();
    assert_eq!(proxy.get(LIST).status, 200);
    // The activity is counted after the response.
    let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
    while report() == before {
        assert!(oaimend_base::clock::uptime() < until, "{before}");
        std::thread::yield_now();
    }
    let now_secs = proxy.clock.now_secs();
    // 1970-01-01 was a Thursday.
    let weekday = (now_secs.0.div_euclid(DAY_SECS) + 3).rem_euclid(7);
    let monday_secs = (now_secs.0.div_euclid(DAY_SECS) + 7 - weekday) * DAY_SECS + 6 * 3_600;
    proxy.clock.step(UnixSecs(monday_secs + 10).since(now_secs));
}

/// The end of the subject of a report on a Monday.
fn days_of(proxy: &Proxy) -> String {
    let day = |days_ago: i64| from_secs(proxy.clock.now_secs().minus(days_ago * DAY_SECS), Granularity::Day);
    format!(": defects from {} to {}", day(7), day(1))
}

#[track_caller]
fn header<'m>(mail: &'m Value, name: &str) -> Vec<&'m str> {
    let headers = mail["headers"].as_array().expect("a list").iter();
    headers.filter(|header| header[0] == name).filter_map(|header| header[1].as_str()).collect()
}

#[test]
fn report_is_sent_to_one_address_once_a_week() {
    let source = source("oai:x:1");
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::of_mail(&[]);
    let notifications = policy(folder.path(), &mail_table(&receiver, 0));
    let mapping = mapping_of(&source, ReportTo::Admin);
    let proxy = start(&mapping, &notifications);
    pass_to_monday(&proxy);
    let mail = receiver.next_with("defects");
    assert_eq!(mail["recipients"], json!(["admin@source.example"]), "{mail}");
    assert_eq!(header(&mail, "To"), ["admin@source.example"]);
    assert_eq!((header(&mail, "Reply-To"), header(&mail, "Cc")), (vec!["ops@example.org"], vec![]));
    let (subject, days) = (header(&mail, "Subject")[0], days_of(&proxy));
    assert!(subject.ends_with(&days), "{subject}: {days}");
    let text = mail["text"].as_str().expect("a text");
    for part in
        ["bare-ampersand: 1 time\n", "Sent:     &\n", "Repaired: &amp;\n", "missing-identifier, last seen"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let proxy = proxy.restarted(configured(&mapping, &notifications));
    proxy.clock.step(3_600);
    pass_to_monday(&proxy);
    let mail = receiver.next_with("defects");
    let (subject, days) = (header(&mail, "Subject")[0], days_of(&proxy));
    assert!(subject.ends_with(&days), "the second mail is of the next week: {subject}");
}

#[test]
fn refused_report_is_repeated_and_one_that_may_have_arrived_is_not() {
    let source = source("none");
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::of_mail(&["451 later", "250 accepted", "close"]);
    let notifications = policy(folder.path(), &mail_table(&receiver, 0));
    let mapping = mapping_of(&source, ReportTo::Address("provider@source.example".to_owned()));
    let proxy = start(&mapping, &notifications);
    pass_to_monday(&proxy);
    let refused = receiver.next_with("defects");
    proxy.clock.step(10);
    let accepted = receiver.next_with("defects");
    assert_eq!((&refused["response"], &accepted["response"]), (&json!("451 later"), &json!("250 accepted")));
    assert_eq!(accepted["recipients"], json!(["provider@source.example"]));
    assert!(source.requests().iter().all(|received| !received.target.contains("verb=Identify")));
    pass_to_monday(&proxy);
    assert_eq!(receiver.next_with("defects")["response"], "close");
    let failed = "oaimend_notifications_total{result=\"failed\",target=\"provider\"} 1";
    let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
    while !fetch(proxy.admin(), "/-/metrics").text().contains(failed) {
        assert!(oaimend_base::clock::uptime() < until, "{failed}");
        std::thread::yield_now();
    }
    proxy.clock.step(3_600);
    pass_to_monday(&proxy);
    let (mail, days) = (receiver.next_with("defects"), days_of(&proxy));
    assert!(header(&mail, "Subject")[0].ends_with(&days), "{mail}");
}

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("UTF-8")
}

#[test]
fn report_is_printed_from_the_server_and_from_the_data_folder() {
    let source = source("oai:x:1");
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    for id in ["x", "y"] {
        let mapping = format!("base_url = \"{}\"\nrefetch_broken_records = false\n", source.base_url());
        fs::write(folder.path().join(format!("mappings/{id}.toml")), mapping).expect("a writable folder");
    }
    let settings =
        "public_url = \"https://oai.example.org\"\n[reports]\ndocs_url = \"https://docs.example/\"\n";
    fs::write(folder.path().join("oaimend.toml"), settings).expect("a writable folder");
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    assert_eq!(fetch(program.address(), LIST).status, 200);
    let _ = program.line("page");
    let admin = program.admin().to_string();
    let report = |id: &str, admin: &[&str]| oaimend(folder.path(), &[&["report", id], admin].concat());
    let of_running = ["--admin", &admin];
    let of_server = report("x", &of_running);
    let printed = text(&of_server.stdout);
    assert_eq!(of_server.status.code(), Some(0), "{}", text(&of_server.stderr));
    for part in
        ["https://oai.example.org\n", "https://docs.example/repairs.md#bare-ampersand\n", "Repaired: &amp;\n"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let nothing = report("y", &of_running);
    assert_eq!((nothing.status.code(), text(&nothing.stdout).as_str()), (Some(0), ""));
    assert!(text(&nothing.stderr).contains("nothing to report"), "{}", text(&nothing.stderr));
    program.signal("-TERM");
    drop(program.whole_log());
    assert_eq!(text(&report("x", &[]).stdout), printed);
    let unknown = report("z", &[]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(text(&unknown.stderr).contains("known ids are x, y"), "{}", text(&unknown.stderr));
}

#[test]
fn faults_of_reports_name_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mail = "[notifications.mail]\nto = \"a@example.org\"\nfrom = \"a@example.org\"\n";
    for (settings, report_to, expected) in [
        ("", "admin", "x.toml:1: report_to needs [notifications.mail] in oaimend.toml"),
        (mail, "a@b.org,c@d.org", "is not one mail address; expected"),
        (mail, "a@b.org\\r\\nBcc:c@d.org", "is not a mail address; expected"),
        (mail, "operators", "or \"admin\""),
        (mail, "-oQ/tmp@b.org", "looks like an option, a command or a file; expected"),
        (mail, "|sh@b.org", "looks like an option, a command or a file; expected"),
        ("reports.weekday = \"someday\"", "admin", "is not a day"),
        ("reports.hour = 24", "admin", "expected a whole number from 0 to 23"),
        ("reports.docs_url = \"https://docs.example/a\"", "admin", "with a slash at its end"),
    ] {
        fs::write(folder.path().join("oaimend.toml"), settings).expect("a writable folder");
        let mapping = format!("base_url = \"https://source.example/oai\"\nreport_to = \"{report_to}\"\n");
        fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
        let output = oaimend(folder.path(), &["validate"]);
        assert_eq!(output.status.code(), Some(78), "{settings}");
        assert!(text(&output.stderr).contains(expected), "{settings}: {}", text(&output.stderr));
    }
}
