//! Notifications of operators, as the program sends them and as Python receives them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oaimend::config::{Mapping, NotificationPolicy};
use oaimend::notify::Mail;
use oaimend_base::clock::SystemClock;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_store::WatchedRepository;
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};

use crate::fixtures::collection::Collection;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::receivers::{Receiver, mail_table, policy, webhook_table};
use crate::fixtures::source::{Reply, Source, fetch, page_of, post};
use crate::fixtures::time::Skipping;

/// `oaimend notify test` with this `oaimend.toml`.
fn notify_test(folder: &Path, settings: &str) -> Output {
    fs::write(folder.join("oaimend.toml"), settings).expect("a writable folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(["notify", "test"]).current_dir(folder).output().expect("the program runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("UTF-8")
}

/// A page with broken records: the first ones of a list have no identifier.
fn broken_page(broken: usize) -> String {
    let page = page_of(9);
    (0..broken).fold(page, |page, number| page.replace(&format!("oai:x:{number}<"), "<"))
}

fn mapping_of(id: &str, source: &Source) -> Mapping {
    let mut mapping = Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().quirks.refetch_broken_records = false;
    mapping
}

/// Starts a proxy with the repository `x`.
fn start(data: tempfile::TempDir, mapping: &Mapping, notifications: &NotificationPolicy) -> Proxy {
    Proxy::start(data, Skipping::new(), |config| {
        config.cache.enabled = false;
        config.notifications = notifications.clone();
        config.repositories.add_fixed(mapping.clone());
    })
}

#[test]
fn test_event_is_sent_to_each_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let (webhook, mail) = (Receiver::of_webhooks(&[]), Receiver::of_mail(&[]));
    let settings = [webhook_table(folder.path(), &webhook), mail_table(&mail, 60)].concat();
    let output = notify_test(folder.path(), &settings);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected = format!(
        "webhook http://127.0.0.1:{}: accepted with status 204\n\
         mail to ops@example.org by 127.0.0.1:{}: accepted\n",
        webhook.port(),
        mail.port()
    );
    assert_eq!(text(&output.stdout), expected);
    let request = webhook.next();
    assert_eq!(
        (&request["is_signed"], &request["path"]),
        (&json!(true), &json!("/hooks/s3cret")),
        "{request}"
    );
    assert_eq!(
        (&request["content_type"], &request["body"]["type"]),
        (&json!("application/json"), &json!("test"))
    );
    assert!(request["age_secs"].as_f64().is_some_and(|age| age.abs() < 60.0), "{request}");
    let received = mail.next();
    assert_eq!(
        (&received["sender"], &received["recipients"]),
        (&json!("oaimend@example.org"), &json!(["ops@example.org"]))
    );
    assert_eq!(received["is_dated"], true, "{received}");
    assert!(received["text"].as_str().is_some_and(|text| text.contains("This is a test")), "{received}");
}

#[test]
fn refused_test_event_and_missing_targets_have_exit_codes() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&["500"]);
    let mail = Receiver::of_mail(&["451 not\tnow"]);
    let settings = [webhook_table(folder.path(), &webhook), mail_table(&mail, 60)].concat();
    let output = notify_test(folder.path(), &settings);
    assert_eq!(output.status.code(), Some(74), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains(": not accepted: status 500 Internal Server Error\n"), "{printed}");
    assert!(printed.contains(": not accepted: ") && printed.contains("not now"), "{printed}");
    assert!(!printed.contains("s3cret"), "{printed}");
    let output = notify_test(folder.path(), "");
    assert_eq!(output.status.code(), Some(78));
    let printed = text(&output.stderr);
    assert!(printed.starts_with("oaimend.toml:1: there is no target of notifications"), "{printed}");
}

/// The table of mail by TLS; `more` are further keys.
fn secure_mail_table(receiver: &Receiver, tls: &str, more: &str) -> String {
    format!(
        "[notifications.mail]\nto = \"ops@example.org\"\nfrom = \"oaimend@example.org\"\n\
         smtp = \"localhost:{}\"\ntls = \"{tls}\"\nuser = \"oai\"\npassword_file = \"smtp.secret\"\n{more}",
        receiver.port()
    )
}

#[test]
fn mail_is_sent_by_tls_with_a_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority =
        concat!("ca_file = \"", env!("CARGO_MANIFEST_DIR"), "/tests/program/fixtures/tls/ca.pem\"\n");
    let save_password = |password: &str| {
        fs::write(folder.path().join("smtp.secret"), format!("{password}\n")).expect("a writable folder");
    };
    for tls in ["starttls", "implicit"] {
        let receiver = Receiver::of_mail_by_tls(tls, "s3cret word");
        save_password("s3cret word");
        let output = notify_test(folder.path(), &secure_mail_table(&receiver, tls, authority));
        assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
        let mail = receiver.next();
        assert_eq!((&mail["is_encrypted"], &mail["sender"]), (&json!(true), &json!("oaimend@example.org")));

        save_password("0ther s3cret");
        let output = notify_test(folder.path(), &secure_mail_table(&receiver, tls, authority));
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{printed}");
        assert!(printed.contains("wrong password") && !printed.contains("s3cret"), "{printed}");

        // Nobody has signed the certificate.
        let output = notify_test(folder.path(), &secure_mail_table(&receiver, tls, ""));
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(74), "{printed}");
        assert!(printed.contains("certificate") && printed.contains("not accepted"), "{printed}");
    }
    // Without STARTTLS nothing is sent.
    let plain = Receiver::of_mail(&[]);
    let output = notify_test(folder.path(), &secure_mail_table(&plain, "starttls", authority));
    assert_eq!(output.status.code(), Some(74));
    let printed = text(&output.stdout);
    assert!(printed.contains("STARTTLS"), "{printed}");
}

#[test]
fn faults_of_the_configuration_name_the_key_and_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("short"), "whsec_c2hvcnQ=").expect("a writable folder");
    fs::write(folder.path().join("bare"), "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a writable folder");
    for (settings, expected) in [
        ("[notifications.webhook]\nurl = \"http://h/s3cret\"", "notifications.webhook has no secret_file"),
        ("[notifications.mail]\nto = \"a@example.org\"", "notifications.mail has no from"),
        (
            "[notifications.mail]\nto = \"|sh@example.org\"",
            "mail.to = \"|sh@example.org\" looks like an option, a command",
        ),
        (
            "[notifications.mail]\ntls = \"on\"",
            "tls = \"on\" is not known; expected \"off\", \"starttls\" or",
        ),
        ("[notifications.mail]\ntls = \"implicit\"", "notifications.mail.tls needs smtp"),
        (
            "[notifications.mail]\nuser = \"a\"",
            "notifications.mail.user is set without notifications.mail.password_file",
        ),
        ("[notifications.mail]\nuser = \"a\"", "notifications.mail.user needs TLS"),
        ("[notifications.mail]\nca_file = \"ca.pem\"", "notifications.mail.ca_file needs TLS"),
        ("notifications.webhook = { url = \"http://h\", secret_file = \"short\" }", "contains no key"),
        ("notifications.webhook = { url = \"http://h\", secret_file = \"bare\" }", "contains no key"),
        (
            "notifications.webhook = { url = \"ftp://h\", secret_file = \"short\" }",
            "is not the URL of a webhook",
        ),
        ("notifications.mail.to = \"a@b.org,c@d.org\"", "is not one mail address"),
        ("notifications.mail.to = \"a@b.org\\r\\nBcc: c@d.org\"", "is not a mail address"),
        ("notifications.mail.smtp = \"localhost\"", "is not a mail server"),
        ("notifications.quarantine_share = 0", "expected a number above 0, up to 1"),
    ] {
        let output = notify_test(folder.path(), settings);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{printed}");
        assert!(printed.contains(expected), "{settings}: {printed}");
        assert!(!printed.contains("MfKQ9r8G") && !printed.contains("c2hvcnQ"), "{printed}");
    }
}

#[test]
fn events_of_the_running_program_are_signed_and_gathered_into_one_mail() {
    let source = Source::start(|_, _| Reply::xml(broken_page(2)));
    let folder = tempfile::tempdir().expect("a folder");
    let (webhook, mail) = (Receiver::of_webhooks(&[]), Receiver::of_mail(&[]));
    let settings = [
        "[notifications]\nquarantine_share = 0.00001\n".to_owned(),
        webhook_table(folder.path(), &webhook),
        mail_table(&mail, 6),
    ];
    fs::write(folder.path().join("oaimend.toml"), settings.concat()).expect("a writable folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    for id in ["x", "y"] {
        let mapping = format!("base_url = \"{}\"\nrefetch_broken_records = false\n", source.base_url());
        fs::write(folder.path().join(format!("mappings/{id}.toml")), mapping).expect("a writable folder");
    }
    let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    // The event of `x` is sent before `y` is requested, and the mail still has both.
    for id in ["x", "y"] {
        let got = fetch(program.address(), &LIST.replace("/x", &format!("/{id}")));
        assert_eq!(got.status, 200, "{}", got.text());
        let event = webhook.next_event();
        let data = &event["data"];
        assert_eq!(
            (&event["type"], &data["version"], &data["repository"]),
            (&json!("quarantine.nearly_full"), &json!(1), &json!(id))
        );
    }
    let received = mail.next();
    let header = |name: &str| -> Vec<&Value> {
        let headers = received["headers"].as_array().expect("a list");
        headers.iter().filter(|header| header[0] == name).map(|header| &header[1]).collect()
    };
    assert_eq!(header("Subject"), ["[oaimend] 2 events"]);
    assert_eq!((header("To"), header("Bcc")), (vec![&json!("ops@example.org")], vec![]));
    assert_eq!(header("Auto-Submitted"), ["auto-generated"]);
    let body = received["text"].as_str().expect("a text");
    assert!(
        body.contains("The quarantine of x is nearly full") && body.contains("The quarantine of y"),
        "{body}"
    );
    let counted = |target: &str, count: u64| {
        let metric = format!("oaimend_notifications_total{{result=\"sent\",target=\"{target}\"}} {count}");
        let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
        while !fetch(program.admin(), "/-/metrics").text().contains(&metric) {
            assert!(oaimend_base::clock::uptime() < until, "{metric}");
            std::thread::yield_now();
        }
    };
    counted("webhook", 2);
    counted("mail", 2);
}

#[test]
fn certificate_near_its_end_is_reported_until_it_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&[]);
    let fixtures = oaimend_test_support::root().join("tests/program/fixtures/tls");
    let install = |certificate: &str, key: &str| {
        for (from, to) in [(certificate, "certificate.pem"), (key, "key.pem")] {
            fs::copy(fixtures.join(from), folder.path().join(to)).expect("a writable folder");
        }
    };
    let tls =
        "[listen_tls]\naddress = \"127.0.0.1:0\"\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n";
    let settings = [tls.to_owned(), webhook_table(folder.path(), &webhook)];
    fs::write(folder.path().join("oaimend.toml"), settings.concat()).expect("a writable folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    install("expired.pem", "expired-key.pem");
    let _program = Program::start(folder.path(), &[]);
    let event = webhook.next_event();
    let data = &event["data"];
    assert_eq!((&event["type"], data.get("repository")), (&json!("certificate.expiring"), None));
    assert_eq!(data["expires"], "2021-02-03T04:05:06Z");
    install("cert.pem", "key.pem");
    let event = webhook.next_event();
    assert_eq!((&event["type"], &event["data"]["remedy"]), (&json!("certificate.renewed"), &json!("")));
}

#[test]
fn outage_is_one_event_at_its_begin_and_one_at_its_end() {
    let is_up = Arc::new(AtomicBool::new(false));
    let source = Source::start({
        let is_up = Arc::clone(&is_up);
        move |_, _| {
            if is_up.load(Ordering::SeqCst) {
                Reply::xml(page_of(1))
            } else {
                Reply::whole(500, "", "out of order")
            }
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&[]);
    let notifications = policy(folder.path(), &webhook_table(folder.path(), &webhook));
    let mapping = mapping_of("x", &source);
    let data = tempfile::tempdir().expect("a folder");
    let proxy = start(data, &mapping, &notifications);
    let fail = |proxy: &Proxy| {
        assert_ne!(proxy.get(LIST).status, 200);
        proxy.clock.step(300);
    };
    let event = webhook.next_event_while(|| fail(&proxy));
    assert_eq!(
        (&event["type"], &event["data"]["repository"]),
        (&json!("source.down"), &json!("x")),
        "{event}"
    );
    assert!(event["data"]["details"].as_str().is_some_and(|details| details.contains("500")), "{event}");
    let since = event["data"]["since"].clone();
    fail(&proxy);
    let proxy = proxy.restarted(|config| {
        config.cache.enabled = false;
        config.notifications = notifications.clone();
        config.repositories.add_fixed(mapping.clone());
    });
    fail(&proxy);
    proxy.clock.step(10_000);
    is_up.store(true, Ordering::SeqCst);
    assert_eq!(proxy.get(LIST).status, 200);
    let event = webhook.next_event();
    assert_eq!((&event["type"], &event["data"]["since"]), (&json!("source.recovered"), &since), "{event}");
}

#[test]
fn refused_webhook_is_repeated_with_the_same_id() {
    let source = Source::start(|_, _| Reply::xml(broken_page(2)));
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&["500", "302"]);
    let settings = ["[notifications]\nquarantine_share = 0.00001\n", &webhook_table(folder.path(), &webhook)];
    let notifications = policy(folder.path(), &settings.concat());
    let proxy = start(tempfile::tempdir().expect("a folder"), &mapping_of("x", &source), &notifications);
    assert_eq!(proxy.get(LIST).status, 200);
    let requests = [webhook.next(), webhook.next(), webhook.next()];
    for request in &requests {
        assert_eq!((&request["is_signed"], &request["id"]), (&json!(true), &requests[0]["id"]));
        assert_eq!((&request["body"], &request["path"]), (&requests[0]["body"], &json!("/hooks/s3cret")));
    }
    let sent = "oaimend_notifications_total{result=\"sent\",target=\"webhook\"} 1";
    let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
    while !fetch(proxy.admin(), "/-/metrics").text().contains(sent) {
        assert!(oaimend_base::clock::uptime() < until, "{sent}");
        std::thread::yield_now();
    }
    let waits = [3_750, 7_500].map(Duration::from_millis);
    assert!(proxy.clock.pauses().ends_with(&waits), "{:?}", proxy.clock.pauses());
}

#[test]
fn lost_records_of_a_repository_are_one_event() {
    let broken = Arc::new(AtomicUsize::new(2));
    let source = Source::start({
        let broken = Arc::clone(&broken);
        move |_, _| Reply::xml(broken_page(broken.load(Ordering::SeqCst)))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&[]);
    let notifications = policy(folder.path(), &webhook_table(folder.path(), &webhook));
    let data = tempfile::tempdir().expect("a folder");
    let store = oaimend_store_local::open(data.path()).expect("a data folder");
    let counted = WatchedRepository { quarantined: Some(0), ..WatchedRepository::default() };
    let watched = BTreeMap::from([("x".to_owned(), counted)]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(store.notices.save_watched(watched)).expect("writable");
    store.close();
    let proxy = start(data, &mapping_of("x", &source), &notifications);
    assert_eq!(proxy.get(LIST).status, 200);
    // Until the event comes, the clock passes the time for which records are gathered.
    let lost = webhook.next_event_while(|| proxy.clock.step(1));
    assert_eq!((&lost["type"], &lost["data"]["count"]), (&json!("records.lost"), &json!(2)), "{lost}");
    broken.store(5, Ordering::SeqCst);
    assert_eq!(proxy.get(LIST).status, 200);
    drop(proxy.get(LIST));
    let lost = webhook.next_event_while(|| proxy.clock.step(20));
    assert_eq!((&lost["data"]["count"], &lost["data"]["quarantined"]), (&json!(3), &json!(5)), "{lost}");
}

#[test]
fn held_deletions_are_told_until_they_are_accepted() {
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(60) }.start();
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Receiver::of_webhooks(&[]);
    let notifications = policy(folder.path(), &webhook_table(folder.path(), &webhook));
    let mut mapping = mapping_of("x", &source);
    let interval = Some(Duration::from_secs(86_400));
    mapping.mirror = Some(MirrorSettings { interval, ..MirrorSettings::default() });
    let proxy = start(tempfile::tempdir().expect("a folder"), &mapping, &notifications);
    proxy.wait_for_harvests("x", 1);
    collection.lock().expect("no panic").entries.retain(|identifier, _| identifier.ends_with('1'));
    proxy.clock.step(86_400);
    let event = webhook.next_event();
    assert_eq!((&event["type"], &event["data"]["count"]), (&json!("deletions.held"), &json!(54)), "{event}");
    assert_eq!(post(proxy.admin(), "/-/mirror/x/sync?accept_deletions=true", "").status, 202);
    assert_eq!(webhook.next_event()["type"], "deletions.released");
}

#[test]
fn mail_arrives_unchanged_whatever_its_text() {
    let receiver = Receiver::of_mail(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let target = policy(folder.path(), &mail_table(&receiver, 0)).mail.expect("it is configured");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for text in [
        "a line\n.\n..\n.MAIL FROM:<evil@example.org>\nFrom here\n\nend".to_owned(),
        "é ∑ \u{202e}\n.\nend".to_owned(),
        format!("{}\n.\nend", "long ".repeat(500)),
        "a\r\n.\r\nMAIL FROM:<evil@example.org>\r\nRCPT TO:<evil@example.org>\r\nDATA\r\nend".to_owned(),
        "a\r.\rb\u{0}c".to_owned(),
    ] {
        let mail = Mail::new("[oaimend] a\r\nBcc: evil@example.org".to_owned(), text.clone());
        runtime.block_on(mail.send(&target.to, &target, &SystemClock)).expect("accepted");
        let received = receiver.next();
        let arrived = received["text"].as_str().expect("a text");
        assert_eq!(arrived.trim_end_matches('\n'), text.replace("\r\n", "\n"));
        assert_eq!(received["recipients"], json!(["ops@example.org"]));
        let headers = received["headers"].as_array().expect("a list");
        assert!(headers.iter().all(|header| header[0] != "Bcc"), "{received}");
        assert!(headers.contains(&json!(["Subject", "[oaimend] a  Bcc: evil@example.org"])), "{received}");
        assert!(received["longest_line"].as_u64().is_some_and(|bytes| bytes <= 1_000), "{received}");
    }
}
