//! Static repositories: a file is served as a repository with all six verbs, whatever happens to
//! the file.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Reply, Source};
use crate::fixtures::static_files::{Kept, day, dc_payload, dc_record, file_of, file_with, own_payload};
use crate::fixtures::static_lists::{between, error, harvested, identifiers, page, pages, rest, token};
use crate::fixtures::{source, static_files};
use oaimend_test_support as support;
use oaimend_test_support::judge::payloads;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Repeats a request until the list is as expected: a request starts the check for changes, and a
/// later one sees the result.
#[track_caller]
fn becomes(proxy: &Proxy, wanted: &[usize]) {
    for _ in 0..100 {
        if harvested(proxy) == wanted {
            return;
        }
    }
    assert_eq!(harvested(proxy), wanted);
}

#[test]
fn every_record_is_listed_once_in_each_format() {
    let file = file_of(250);
    let kept = Kept::local(&file);
    let proxy = kept.serve();
    let mut canonical = Vec::new();
    let all: Vec<usize> = (0..250).collect();
    let even: Vec<usize> = (0..250).step_by(2).collect();
    for (prefix, numbers) in [("oai_dc", all), ("x", even)] {
        let listed = pages(&proxy, "ListRecords", &format!("metadataPrefix={prefix}"));
        let sizes: Vec<usize> = listed.iter().map(|page| identifiers(page).len()).collect();
        assert!(sizes.iter().rev().skip(1).all(|size| *size == 100), "{sizes:?}");
        canonical.extend(listed.iter().filter_map(|page| payloads(page.as_bytes())).flatten());
        let records = listed.concat();
        assert_eq!(identifiers(&records), numbers);
        let headers = pages(&proxy, "ListIdentifiers", &format!("metadataPrefix={prefix}")).concat();
        assert_eq!(between(&headers, "<header>", "</header>"), between(&records, "<header>", "</header>"));
        for (carried, number) in between(&records, "<metadata>", "</metadata>").into_iter().zip(numbers) {
            match prefix {
                "oai_dc" => assert_eq!(carried, dc_payload(number), "byte for byte"),
                _ => assert_eq!(
                    carried.replacen(
                        " xmlns=\"http://www.openarchives.org/OAI/2.0/static-repository\"",
                        "",
                        1
                    ),
                    own_payload(number),
                    "byte for byte, but for the default namespace of the file"
                ),
            }
        }
    }
    if let Some(wanted) = payloads(file.as_bytes()) {
        assert_eq!((canonical.len(), wanted.len()), (500, 500), "two in each record of the second format");
        let other = canonical.iter().zip(&wanted).find(|(came, wanted)| came != wanted);
        assert_eq!(other, None, "in canonical XML");
    }
    let reported = proxy.admin_json("/-/repositories/x");
    assert_eq!(
        (&reported["records_repaired"], &reported["records_quarantined"]),
        (&0.into(), &0.into()),
        "{reported}"
    );
    assert_eq!(proxy.admin_json("/-/repositories/x/repairs")["repairs"], serde_json::json!([]), "it is well");
}

#[test]
fn missing_content_gives_the_matching_error() {
    let kept = Kept::local(file_of(250));
    let proxy = kept.serve();
    for (query, code) in [
        ("verb=ListSets", "noSetHierarchy"),
        ("verb=ListSets&resumptionToken=x", "badResumptionToken"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=a", "noSetHierarchy"),
        ("verb=ListRecords&metadataPrefix=marc", "cannotDisseminateFormat"),
        ("verb=ListIdentifiers&metadataPrefix=marc", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2001-01-01T00:00:00Z", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&until=2000-12-31", "noRecordsMatch"),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc&from=2001-03-06", "noRecordsMatch"),
        ("verb=ListRecords&resumptionToken=nonsense", "badResumptionToken"),
        ("verb=ListRecords&resumptionToken=0000000000000000.100.100...oai_dc", "badResumptionToken"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:250", "idDoesNotExist"),
        ("verb=GetRecord&metadataPrefix=x&identifier=oai:letters.example:1", "cannotDisseminateFormat"),
        ("verb=GetRecord&metadataPrefix=marc&identifier=oai:letters.example:0", "cannotDisseminateFormat"),
        ("verb=ListMetadataFormats&identifier=oai:letters.example:250", "idDoesNotExist"),
    ] {
        assert_eq!(error(&proxy, query), code, "{query}");
    }
}

#[test]
fn item_has_one_header_in_all_formats() {
    let kept = Kept::local(file_of(20));
    let proxy = kept.serve();
    let formats = |arguments: &str| {
        let page = page(&proxy, &format!("verb=ListMetadataFormats{arguments}"));
        between(&page, "<metadataPrefix>", "</metadataPrefix>").join(" ")
    };
    assert_eq!(formats(""), "oai_dc x");
    assert_eq!(formats("&identifier=oai:letters.example:2"), "oai_dc x");
    assert_eq!(formats("&identifier=oai:letters.example:3"), "oai_dc");
    let record = |prefix: &str| {
        page(&proxy, &format!("verb=GetRecord&metadataPrefix={prefix}&identifier=oai:letters.example:2"))
    };
    assert_eq!(between(&record("oai_dc"), "<metadata>", "</metadata>"), [dc_payload(2)]);
    let text = record("x");
    assert!(
        text.contains("<x:name>L2</x:name>") && text.contains("<about><x:note>2</x:note></about>"),
        "{text}"
    );
}

#[test]
fn from_and_until_are_days_and_inclusive() {
    let kept = Kept::local(file_of(250));
    let proxy = kept.serve();
    let days: BTreeSet<String> = (0..250).map(day).collect();
    assert_eq!((days.len(), days.first().map(String::as_str)), (25, Some("2001-01-01")));
    for (window, first, end) in [
        (format!("&from={}", day(40)), 40, 250),
        (format!("&until={}", day(40)), 0, 50),
        (format!("&from={}&until={}", day(40), day(40)), 40, 50),
        (format!("&from={}&until={}", day(40), day(205)), 40, 210),
        ("&from=1999-01-01&until=2099-01-01".to_owned(), 0, 250),
    ] {
        for verb in ["ListRecords", "ListIdentifiers"] {
            let pages = pages(&proxy, verb, &format!("metadataPrefix=oai_dc{window}"));
            assert_eq!(identifiers(&pages.concat()), (first..end).collect::<Vec<_>>(), "{verb}{window}");
            let size = format!("completeListSize=\"{}\"", end - first);
            assert!(
                pages.len() == 1 || pages.iter().all(|page| page.contains(&size)),
                "{verb}{window}: {size}"
            );
        }
    }
}

#[test]
fn identify_comes_from_the_file() {
    let file = file_of(20).replace(">2001-01-01</oai:earliest", ">2005-01-01</oai:earliest");
    let kept = Kept::local(file);
    let proxy = kept.serve();
    let identify = page(&proxy, "verb=Identify");
    let base_url = format!("<baseURL>http://{}/x</baseURL>", proxy.address());
    for part in [
        base_url.as_str(),
        "<repositoryName>Letters &amp; maps</repositoryName>",
        "<adminEmail>keeper@letters.example</adminEmail>",
        // Its records are older than it says.
        "<earliestDatestamp>2001-01-01</earliestDatestamp>",
        "<granularity>YYYY-MM-DD</granularity>",
        "<repositoryIdentifier>letters.example</repositoryIdentifier>",
    ] {
        assert!(identify.contains(part), "{part}: {identify}");
    }
}

#[test]
fn any_prefix_and_charset() {
    let file = file_of(120).replace("Letters &amp; maps", "Caf\u{e9}");
    let static_ns = "http://www.openarchives.org/OAI/2.0/static-repository";
    let oai_ns = "http://www.openarchives.org/OAI/2.0/";
    let other = file.replace("oai:record", "o:record").replace("<oai:", "<o:").replace("</oai:", "</o:");
    let turned = ["Repository", "Identify", "ListMetadataFormats", "ListRecords"].iter().fold(
        file.replace("<oai:", "<").replace("</oai:", "</"),
        |file, name| {
            file.replace(&format!("<{name}"), &format!("<s:{name}"))
                .replace(&format!("</{name}"), &format!("</s:{name}"))
        },
    );
    let turned = turned
        .replace(&format!("xmlns=\"{static_ns}\""), &format!("xmlns:s=\"{static_ns}\""))
        .replace(&format!("xmlns:oai=\"{oai_ns}\""), &format!("xmlns=\"{oai_ns}\""));
    let without = file.replace("<oai:", "<").replace("</oai:", "</");
    let latin = file.replace("encoding=\"UTF-8\"", "encoding=\"iso-8859-1\"");
    let latin: Vec<u8> = latin.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1")).collect();
    let wide = file.replace("encoding=\"UTF-8\"", "encoding=\"UTF-16\"");
    let wide: Vec<u8> =
        "\u{feff}".encode_utf16().chain(wide.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for (what, bytes) in [
        ("usual", file.clone().into_bytes()),
        ("another prefix", other.replace("xmlns:oai=", "xmlns:o=").into_bytes()),
        ("OAI-PMH as default", turned.into_bytes()),
        ("no prefix where one is wanted", without.into_bytes()),
        ("byte order mark", [b"\xEF\xBB\xBF", file.as_bytes()].concat()),
        ("ISO-8859-1", latin),
        ("UTF-16", wide),
    ] {
        let kept = Kept::local(bytes);
        let proxy = kept.serve();
        assert_eq!(harvested(&proxy), (0..120).collect::<Vec<_>>(), "{what}");
        let identify = page(&proxy, "verb=Identify");
        assert!(identify.contains("<repositoryName>Caf\u{e9}</repositoryName>"), "{what}: {identify}");
        let quarantined = &proxy.admin_json("/-/repositories/x")["records_quarantined"];
        assert_eq!(quarantined, 0, "{what}");
    }
}

#[test]
fn record_content_is_not_file_structure() {
    let inner = "</oai:record></ListRecords><ListRecords metadataPrefix=\"x\"><oai:record></Repository>";
    for around in [("<![CDATA[", "]]>"), ("<!--", "-->")] {
        let record = dc_record(1).replace("Letter 1", &format!("{}{inner}{}Letter 1", around.0, around.1));
        let records = [dc_record(0), record, dc_record(2)].concat();
        let kept = Kept::local(file_with(&records, &static_files::own_record(7)));
        let proxy = kept.serve();
        assert_eq!(harvested(&proxy), [0, 1, 2], "{}", around.0);
        assert!(page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc").contains(inner));
        assert_eq!(identifiers(&page(&proxy, "verb=ListRecords&metadataPrefix=x")), [7], "{}", around.0);
    }
}

#[test]
fn external_entities_are_not_read() {
    let secret = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(secret.path(), "hunter2").expect("writable");
    let doctype = format!(
        "<!DOCTYPE Repository [<!ENTITY who \"J. Doe\"><!ENTITY far SYSTEM \"file://{}\">]>\n<Repository",
        secret.path().display()
    );
    let file = file_of(3).replacen("<Repository", &doctype, 1);
    let file =
        file.replace("Letter 1 ", "Letter 1 by &who; &far; ").replace("Letter 2 ", "Letter 2 by &who; ");
    let kept = Kept::local(file);
    let proxy = kept.serve();
    let listed = page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc");
    assert!(!listed.contains("hunter2") && !listed.contains("DOCTYPE"), "{listed}");
    assert!(listed.contains("Letter 2 by J. Doe &lt;b"), "{listed}");
    assert!(listed.contains("Letter 1 by J. Doe &amp;far; &lt;b"), "{listed}");
    assert_eq!(identifiers(&listed), [0, 1, 2]);
}

#[test]
fn changed_file_is_reloaded() {
    let kept = Kept::local(file_of(3));
    let proxy = kept.serve();
    assert_eq!(harvested(&proxy), [0, 1, 2]);
    kept.write(file_of(5));
    becomes(&proxy, &[0, 1, 2, 3, 4]);
}

#[test]
fn token_continues_in_the_changed_file_or_is_refused() {
    let kept = Kept::local(file_of(250));
    let proxy = kept.serve();
    let first = page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc");
    let token = token(&first).expect("the list goes on");
    kept.write(file_of(260));
    assert_eq!(rest(&proxy, &first), (100..260).collect::<Vec<_>>(), "begun anew without what was delivered");
    let other = kept.serve();
    assert_eq!(error(&other, &format!("verb=ListRecords&resumptionToken={token}")), "badResumptionToken");
}

#[test]
fn token_survives_a_restart() {
    let kept = Kept::local(file_of(150));
    let proxy = kept.serve();
    let token = token(&page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc")).expect("the list goes on");
    let query = format!("verb=ListRecords&resumptionToken={token}");
    let proxy = proxy.restarted(|config| kept.configure(config));
    assert_eq!(identifiers(&page(&proxy, &query)), (100..150).collect::<Vec<_>>());
    // The same holds for an entity that only the file declares.
    let proxy = Kept::serve(&kept);
    assert_eq!(identifiers(&page(&proxy, &query)), (100..150).collect::<Vec<_>>());
}

#[test]
fn list_ends_although_records_become_unrepairable() {
    let broken = (0..100).map(dc_record).collect::<String>().replace("Letter", "&");
    let mut kept = Kept::local(file_with(&(broken + &(100..300).map(dc_record).collect::<String>()), ""));
    let proxy = kept.serve();
    let first = page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(identifiers(&first), (0..100).collect::<Vec<_>>());
    kept = kept.with("[repairs]\noff = [\"bare-ampersand\"]");
    let proxy = proxy.restarted(|config| kept.configure(config));
    assert_eq!(rest(&proxy, &first), (100..300).collect::<Vec<_>>());
}

#[test]
fn provenance_hides_the_local_path() {
    let kept = Kept::local(file_of(2)).with("provenance = \"all\"");
    let page = page(&kept.serve(), "verb=ListRecords&metadataPrefix=oai_dc");
    let url = format!("http{}", between(&page, "\">http", "</request>")[0]);
    assert_eq!(between(&page, "<baseURL>", "</baseURL>"), [url.as_str(), url.as_str()], "{page}");
}

#[test]
fn broken_file_keeps_the_previous_one() {
    let good = file_of(3);
    let kept = Kept::local(&good);
    let mut proxy = kept.serve();
    assert_eq!(harvested(&proxy), [0, 1, 2]);
    let longer = file_of(40);
    for (what, broken) in [
        ("cut short", &longer[..longer.len() - 30]),
        ("cut in a record", &longer[..longer.len() / 2]),
        ("nothing", ""),
        ("HTML", "<html><body>404</body></html>"),
        ("a page", "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><ListRecords/></OAI-PMH>"),
        ("no Identify", &longer.replace("Identify>", "Identity>")),
        ("no formats", &longer.replace("ListMetadataFormats>", "Formats>")),
    ] {
        kept.write(broken);
        for _ in 0..3 {
            assert_eq!(harvested(&proxy), [0, 1, 2], "{what}");
        }
        let reported = &proxy.admin_json("/-/repositories/x")["static_file"];
        assert!(
            reported["check_failure"].as_str().is_some_and(|why| why.contains("cannot be served: it ")),
            "{reported}"
        );
        proxy = proxy.restarted(|config| kept.configure(config));
        assert_eq!(harvested(&proxy), [0, 1, 2], "{what}, after a restart");
    }
    std::fs::remove_file(kept.path()).expect("it is there");
    assert_eq!(harvested(&proxy), [0, 1, 2], "gone");
    kept.write(file_of(4));
    becomes(&proxy, &[0, 1, 2, 3]);
    let reported = &proxy.admin_json("/-/repositories/x")["static_file"];
    // Four in oai_dc, two in the other format.
    assert_eq!(
        (&reported["records"], &reported["check_failure"]),
        (&6.into(), &serde_json::Value::Null),
        "{reported}"
    );
}

#[test]
fn file_beyond_a_limit_is_refused() {
    for (limit, said) in [
        ("static_file_bytes_max = 4096", "static_file_bytes_max"),
        ("static_records_max = 10", "static_records_max"),
    ] {
        let kept = Kept::local(file_of(20)).with(&format!("[limits]\n{limit}"));
        let proxy = kept.serve();
        let got = proxy.get("/x?verb=Identify");
        assert_eq!(got.status, 502, "{limit}: {}", got.text());
        assert!(got.text().contains(said), "{}", got.text());
        assert!(!got.text().contains("static.xml"), "the local path is private: {}", got.text());
        let pages = proxy.get("/").text();
        assert!(!pages.contains("static.xml") && pages.contains("/x"), "{pages}");
    }
    let long = dc_record(1).replace("Letter 1", &"long ".repeat(2000));
    let file = file_with(&[dc_record(0), long, dc_record(2)].concat(), "");
    let kept = Kept::local(&file).with("[limits]\nrecord_bytes_max = 8192");
    let got = kept.serve().get(LIST);
    assert_eq!(got.status, 502, "{}", got.text());
    assert!(got.text().contains("record_bytes_max"), "{}", got.text());
    let kept = Kept::local(&file).with("[limits]\nrecord_bytes_max = 16384");
    assert_eq!(harvested(&kept.serve()), [0, 1, 2]);
}

/// The response of a server, which a test may change.
type Script = Arc<Mutex<Box<dyn Fn(&source::ReceivedRequest) -> Reply + Send>>>;

fn server() -> (Source, Script) {
    let script: Script = Arc::new(Mutex::new(Box::new(|_| Reply::whole(500, "", "not yet"))));
    let plays = Arc::clone(&script);
    (
        Source::start(move |_, received| plays.lock().expect("no test panics while it holds this")(received)),
        script,
    )
}

fn answers(script: &Script, reply: impl Fn(&source::ReceivedRequest) -> Reply + Send + 'static) {
    *script.lock().expect("no test panics while it holds this") = Box::new(reply);
}

#[test]
fn remote_file_is_fetched_only_when_changed() {
    let (source, script) = server();
    let serve = |records, tag: &'static str| {
        answers(&script, move |received| {
            if received.headers.get("if-none-match").is_some_and(|known| known == tag) {
                return Reply::new(304, &format!("ETag: {tag}"));
            }
            let headers =
                format!("ETag: {tag}\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\nContent-Type: text/xml");
            Reply::whole(200, &headers, file_of(records))
        });
    };
    serve(3, "\"a\"");
    let kept = Kept::mapped(&format!("static_file = \"{}\"\nstatic_check_secs = 0\n", source.base_url()));
    let proxy = kept.serve();
    for _ in 0..3 {
        assert_eq!(harvested(&proxy), [0, 1, 2]);
    }
    let received = source.requests();
    assert_eq!(received.len(), 3, "looked at for each request");
    assert!(!received[0].headers.contains_key("if-none-match"));
    for later in &received[1..] {
        assert_eq!(later.headers["if-none-match"], "\"a\"");
        assert_eq!(later.headers["if-modified-since"], "Mon, 01 Jan 2024 00:00:00 GMT");
    }
    assert!(received.iter().all(|received| received.target == "/oai"), "it is not asked for pages");
    let proxy = proxy.restarted(|config| kept.configure(config));
    assert_eq!(harvested(&proxy), [0, 1, 2]);
    assert_eq!(source.requests()[3].headers["if-none-match"], "\"a\"", "also after a restart");
    serve(4, "\"b\"");
    becomes(&proxy, &[0, 1, 2, 3]);
}

#[test]
fn remote_file_respects_static_check_secs() {
    let (source, script) = server();
    answers(&script, |_| Reply::xml(file_of(3)));
    let kept = Kept::mapped(&format!("static_file = \"{}\"\nstatic_check_secs = 3600\n", source.base_url()));
    let proxy = kept.serve();
    for _ in 0..3 {
        assert_eq!(harvested(&proxy), [0, 1, 2]);
    }
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn unreachable_server_keeps_the_downloaded_file() {
    let (source, script) = server();
    answers(&script, |_| Reply::xml(file_of(3)));
    let kept = Kept::mapped(&format!("static_file = \"{}\"\nstatic_check_secs = 0\n", source.base_url()));
    let mut proxy = kept.serve();
    assert_eq!(harvested(&proxy), [0, 1, 2]);
    let cut = file_of(40);
    let cut_short = cut.len() / 2;
    let dead: [fn(&str, usize) -> Reply; 5] = [
        |_, _| Reply::whole(500, "", "no"),
        |_, _| Reply::whole(404, "", "gone"),
        |_, _| Reply::raw("").reset(),
        |_, _| Reply::whole(200, "Content-Type: text/html", "<html>Please log in</html>"),
        |file, half| {
            Reply::new(200, &format!("Content-Length: {}", file.len())).send(&file.as_bytes()[..half])
        },
    ];
    for (number, reply) in dead.into_iter().enumerate() {
        let file = cut.clone();
        answers(&script, move |_| reply(&file, cut_short));
        assert_eq!(harvested(&proxy), [0, 1, 2], "{number}");
        proxy = proxy.restarted(|config| kept.configure(config));
        assert_eq!(harvested(&proxy), [0, 1, 2], "{number}, after a restart");
    }
    drop(source);
    assert_eq!(harvested(&proxy), [0, 1, 2], "the server is down");
}

#[test]
fn missing_remote_file_is_a_failure() {
    let (source, script) = server();
    answers(&script, |_| Reply::whole(404, "", "gone"));
    let kept = Kept::mapped(&format!("static_file = \"{}\"\n", source.base_url()));
    let got = kept.serve().get(LIST);
    assert_eq!(got.status, 502);
    assert!(
        got.text().contains("static repository file of x") && got.text().contains("404"),
        "{}",
        got.text()
    );
    let received = source.requests().len();
    assert!(received < 8, "it is not asked for with each attempt: {received}");
}

#[test]
fn concurrent_harvesters_read_one_file() {
    let kept = Kept::local(file_of(250));
    let proxy = kept.serve();
    let lists = support::each(&[0; 16], |_| {
        let listed = harvested(&proxy);
        (listed != (0..250).collect::<Vec<_>>()).then(|| format!("{listed:?}"))
    });
    support::report("harvesters", 16, &lists);
}
