//! Writers of local repositories, over HTTP.

use crate::fixtures::collection::identifier;
use crate::fixtures::mirror::{damage_last_block, segments};
use crate::fixtures::program::{NO_DUMP_RESERVE, Program, serve};
use crate::fixtures::source::{Got, Harvester, fetch};
use crate::fixtures::xmllint::is_xmllint_missing;
use oaimend_base::clock;
use oaimend_test_support::random::Random;
use oaimend_write_tokens::{NewWriteToken, WriteTokens};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const LOCAL: &str = "kind = \"local\"\n";
const SEED: u64 = 0x41;

/// A program with mappings of these ids and contents, and a token for each of them.
pub(super) struct Server {
    pub(super) folder: tempfile::TempDir,
    pub(super) program: Program,
    pub(super) token: String,
}

pub(super) fn write_token(folder: &Path, repository: &str, sets: &[&str]) -> String {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let new = NewWriteToken { name: None, repository: repository.to_owned(), sets };
    WriteTokens::new(&folder.join("data")).create(new, clock::now()).expect("a token").token
}

impl Server {
    pub(super) fn new(mappings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
        for (id, text) in mappings {
            std::fs::write(folder.path().join(format!("mappings/{id}.toml")), text).expect("writable");
        }
        std::fs::write(folder.path().join("oaimend.toml"), NO_DUMP_RESERVE).expect("writable");
        let program = start(folder.path());
        let token = write_token(folder.path(), mappings[0].0, &[]);
        Self { folder, program, token }
    }

    pub(super) fn send(&self, start: &str, body: &str) -> Got {
        send(
            self.program.address(),
            start,
            &format!("Authorization: Bearer {}\r\n", self.token),
            body.as_bytes(),
        )
    }

    fn ids(&self, path: &str) -> Vec<String> {
        let listed =
            fetch(self.program.address(), &format!("{path}?verb=ListIdentifiers&metadataPrefix=oai_dc"));
        let live = listed.text();
        let headers = live.split("<header>").skip(1);
        headers
            .filter_map(|header| Some(header.split("<identifier>").nth(1)?.split('<').next()?.to_owned()))
            .collect()
    }
}

pub(super) fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "off", "--mappings", "mappings"]))
}

pub(super) fn send(address: SocketAddr, start: &str, headers: &str, body: &[u8]) -> Got {
    let head = format!(
        "{start} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    Harvester::ask(address, &format!("{head}{}", String::from_utf8_lossy(body))).rest()
}

pub(super) fn dublin_core(title: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{title}</dc:title></oai_dc:dc>"
    )
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn detail(got: &Got) -> String {
    assert_eq!(got.header("content-type"), "application/problem+json", "{}", got.text());
    let problem: Value = serde_json::from_slice(&got.body).expect("JSON");
    assert_eq!(problem["status"], got.status);
    problem["detail"].as_str().expect("a text").to_owned()
}

#[test]
fn put_record_of_the_paper_is_answered_in_its_form() {
    let server = Server::new(&[("theses", LOCAL)]);
    let metadata = encoded(&dublin_core("Sea &amp; land"));
    let query =
        format!("Verb=PutRecord&metadataPrefix=oai_dc&identifier=oai:ABC:123&sets=a,b:c&metadata={metadata}");
    let got = server.send(&format!("GET /theses?{query}"), "");
    assert_eq!(got.status, 200, "{}", got.text());
    let text = got.text();
    let datestamp = got.header("oaimend-datestamp").to_owned();
    let expected = format!(
        "  <responseContainer>\n    <identifier>oai:ABC:123</identifier>\n    <datestamp>{datestamp}</datestamp>\n  </responseContainer>\n</PutRecord>\n"
    );
    assert!(text.contains("<PutRecord>\n  <responseDate>") && text.ends_with(&expected), "{text}");
    assert!(
        text.contains(&format!("<requestURL>http://{}/theses?Verb=PutRecord&amp;", server.program.address()))
    );
    let record = fetch(
        server.program.address(),
        "/theses?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:ABC:123",
    );
    let header = format!(
        "<header><identifier>oai:ABC:123</identifier><datestamp>{datestamp}</datestamp><setSpec>a</setSpec><setSpec>b:c</setSpec></header>"
    );
    assert!(record.text().contains(&header), "{}", record.text());
    assert!(record.text().contains("<dc:title>Sea &amp; land</dc:title>"), "{}", record.text());

    // A form, and an identifier of ours.
    let form = format!("verb=PutRecord&metadataPrefix=oai_dc&metadata={metadata}");
    let got = server.send("POST /theses", &form);
    let assigned = got.header("oaimend-identifier").to_owned();
    assert!(got.status == 200 && assigned.starts_with("oai:"), "{}", got.text());
    assert!(server.ids("/theses").contains(&assigned));
    for path in ["/_all", "/_mirror/theses"] {
        assert!(server.ids(path).contains(&assigned), "{path}");
    }
    let got = server.send(&format!("GET /theses?verb=PutRecord&status=deleted&identifier={assigned}"), "");
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(server.ids("/theses"), ["oai:ABC:123"]);
    for (query, expected) in [
        ("verb=PutRecord&metadataPrefix=oai_dc", "the argument metadata is missing"),
        ("verb=PutRecord&metadataPrefix=oai_dc&metadata=%3Ca%3E", "line 1, column "),
        ("verb=PutRecord&metadataPrefix=oai_dc&metadata=%FF", "not UTF-8"),
        (&format!("{query}&sets=a%20b").replace("&sets=a,b:c", ""), "is not a setSpec"),
        (&format!("{query}&sets=d"), "sets is repeated"),
        (&query.replace("oai:ABC:123", "a b"), "is not an identifier"),
    ] {
        let query = query.replace(' ', "%20");
        let got = server.send(&format!("GET /theses?{query}"), "");
        assert_eq!(got.status, 400, "{query}");
        assert!(detail(&got).contains(expected), "{query}: {}", got.text());
    }
    let head = server.send("HEAD /theses?verb=PutRecord&status=deleted&identifier=oai:ABC:123", "");
    assert_eq!((head.status, server.ids("/theses")), (200, vec!["oai:ABC:123".to_owned()]));
    let got = server.send("GET /theses?verb=PutRecord&status=deleted&identifier=oai:x:1", "");
    assert_eq!(got.status, 404, "{}", got.text());
}

#[test]
fn only_those_with_a_token_may_write() {
    let server = Server::new(&[("theses", LOCAL), ("maps", LOCAL)]);
    let address = server.program.address();
    let requests = [
        format!(
            "GET /theses?verb=PutRecord&metadataPrefix=oai_dc&identifier=oai:x:1&metadata={}",
            encoded(&dublin_core("x"))
        ),
        "PUT /theses/record/oai:x:1?metadataPrefix=oai_dc".to_owned(),
        "PATCH /theses/record/oai:x:1?metadataPrefix=oai_dc".to_owned(),
        "DELETE /theses/record/oai:x:1?metadataPrefix=oai_dc".to_owned(),
        "POST /theses/records?metadataPrefix=oai_dc".to_owned(),
    ];
    let of_others = write_token(server.folder.path(), "maps", &[]);
    for request in &requests {
        for (header, status) in [
            (String::new(), 401),
            ("Authorization: Bearer oaimend_wrong\r\n".to_owned(), 401),
            (format!("Authorization: Basic {}\r\n", server.token), 401),
            (format!("Authorization: Bearer {of_others}\r\n"), 403),
        ] {
            let got = send(address, request, &header, dublin_core("x").as_bytes());
            assert_eq!(got.status, status, "{request} {header}: {}", got.text());
            assert!(got.header("www-authenticate").starts_with("Bearer realm="), "{request} {header}");
        }
    }
    assert!(server.ids("/theses").is_empty());
    // Rights end at once.
    assert_eq!(server.send(&requests[1], &dublin_core("x")).status, 201);
    let tokens = WriteTokens::new(&server.folder.path().join("data"));
    assert!(tokens.revoke("theses-1").is_ok());
    assert_eq!(server.send(&requests[1], &dublin_core("y")).status, 401);
    // A token of a set.
    let of_set = format!("Authorization: Bearer {}\r\n", write_token(server.folder.path(), "theses", &["a"]));
    for (request, status) in [
        ("PUT /theses/record/oai:x:2?metadataPrefix=oai_dc&sets=a:b", 201),
        ("PUT /theses/record/oai:x:3?metadataPrefix=oai_dc&sets=ab", 403),
        ("PUT /theses/record/oai:x:3?metadataPrefix=oai_dc", 403),
        ("PUT /theses/record/oai:x:1?metadataPrefix=oai_dc&sets=a", 403),
        ("DELETE /theses/record/oai:x:1?metadataPrefix=oai_dc", 403),
        ("DELETE /theses/record/oai:x:2?metadataPrefix=oai_dc", 200),
    ] {
        let got = send(address, request, &of_set, dublin_core("x").as_bytes());
        assert_eq!(got.status, status, "{request}: {}", got.text());
    }
}

#[test]
fn records_have_urls_for_writers() {
    let server = Server::new(&[("theses", LOCAL), ("live", "base_url = \"http://127.0.0.1:9/oai\"\n")]);
    let url = "/theses/record/oai:x:a%2Fb?metadataPrefix=oai_dc";
    let put = server.send(&format!("PUT {url}&sets=a"), &dublin_core("Sea"));
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!(put.header("oaimend-identifier"), "oai:x:a/b");
    let tag = put.header("etag").to_owned();
    let location = put.header("location").to_owned();
    assert!(location.ends_with("/theses/record/oai%3Ax%3Aa%2Fb"), "{location}");
    let read = fetch(server.program.address(), url);
    assert_eq!((read.status, read.header("etag")), (200, tag.as_str()));
    let document = read.text();
    assert!(document.contains("xmlns:xsi=") && document.contains("<dc:title>Sea</dc:title>"), "{document}");
    // What was read can be written again, and is no change.
    let address = server.program.address();
    let with = |start: &str, header: &str, body: &str| {
        let headers = format!("Authorization: Bearer {}\r\n{header}", server.token);
        send(address, start, &headers, body.as_bytes())
    };
    let again = with(&format!("PUT {url}&sets=a"), &format!("If-Match: {tag}\r\n"), &document);
    assert_eq!(again.status, 200, "{}", again.text());
    let changed =
        with(&format!("PUT {url}"), &format!("If-Match: {}\r\n", again.header("etag")), &dublin_core("Land"));
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_ne!(changed.header("etag"), tag);
    for (header, status) in [
        (format!("If-Match: {tag}\r\n"), 412),
        ("If-None-Match: *\r\n".to_owned(), 412),
        (format!("If-Match: \"x\", {}\r\n", changed.header("etag")), 200),
    ] {
        assert_eq!(with(&format!("PUT {url}"), &header, &dublin_core("Land")).status, status, "{header}");
    }
    let patched = with(&format!("PATCH {url}"), "", "{\"sets\": [\"b\", \"c:d\"]}");
    assert_eq!(patched.status, 200, "{}", patched.text());
    let record = fetch(address, "/theses?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:a/b").text();
    assert!(record.contains("<setSpec>b</setSpec><setSpec>c:d</setSpec></header>"), "{record}");
    for (body, expected) in [
        ("{}", "expected JSON"),
        ("{\"sets\": [\"a b\"]}", "is not a setSpec"),
        ("{\"sets\": [], \"x\": 1}", "x"),
    ] {
        let got = with(&format!("PATCH {url}"), "", body);
        assert_eq!(got.status, 422, "{body}");
        assert!(detail(&got).contains(expected), "{}", got.text());
    }
    let bad = with(&format!("PUT {url}"), "", "<a xmlns=\"urn:x\">\n<b></a>");
    let problem: Value = serde_json::from_slice(&bad.body).expect("JSON");
    assert_eq!((bad.status, &problem["line"], &problem["column"]), (422, &Value::from(2), &Value::from(4)));
    assert_eq!(with("PUT /theses/record/oai:x:1", "", &dublin_core("x")).status, 400);
    assert_eq!(with("DELETE /theses/record/oai:x:1?metadataPrefix=oai_dc", "", "").status, 404);
    assert_eq!(with("PATCH /theses/record/oai:x:1?metadataPrefix=oai_dc", "", "{\"sets\": []}").status, 404);
    assert_eq!(with(&format!("DELETE {url}"), "", "").status, 200);
    assert_eq!(fetch(address, url).status, 410);
    // A repository with a source is written there.
    for start in
        ["PUT /live/record/oai:x:1?metadataPrefix=oai_dc", "POST /live/records?metadataPrefix=oai_dc"]
    {
        let got = server.send(start, "");
        assert_eq!((got.status, got.header("allow")), (405, "GET, HEAD"), "{}", got.text());
    }
    assert_eq!(server.send("PUT /theses/records", "").status, 405);
    assert_eq!(server.send("PUT /nobody/record/x:1?metadataPrefix=oai_dc", "").status, 405);
}

#[test]
fn lists_are_written_whole_and_large_bodies_are_refused() {
    let server = Server::new(&[("theses", "kind = \"local\"\n[limits]\nrecord_bytes_max = 4096\n")]);
    let records: String = (0..1_000)
        .map(|number| {
            format!(
                "<record><header><identifier>{}</identifier><datestamp>2020-01-01</datestamp></header><metadata>{}</metadata></record>\n",
                identifier(number),
                dublin_core(&format!("Letter {number}"))
            )
        })
        .collect();
    let list = |records: &str| {
        format!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\
             <responseDate>2020-01-01T00:00:00Z</responseDate><request>http://x.example/oai</request>\n<ListRecords>\n{records}</ListRecords></OAI-PMH>\n"
        )
    };
    let start = "POST /theses/records?metadataPrefix=oai_dc";
    let broken = server.send(start, &list(&records.replace("Letter 700<", "Letter 700 & <")));
    assert_eq!(broken.status, 422, "{}", broken.text());
    assert!(detail(&broken).contains("line 703, column "), "{}", broken.text());
    assert!(server.ids("/theses").is_empty());
    let written = server.send(start, &list(&records));
    let value: Value = serde_json::from_slice(&written.body).expect("JSON");
    assert_eq!(
        (written.status, &value["records"], &value["changed"]),
        (200, &Value::from(1_000), &Value::from(1_000))
    );
    let again = server.send(start, &list(&records));
    let value: Value = serde_json::from_slice(&again.body).expect("JSON");
    assert_eq!(value["changed"], 0);
    let long = dublin_core(&"x".repeat(5_000));
    let got = server.send("PUT /theses/record/oai:x:1?metadataPrefix=oai_dc", &long);
    assert_eq!(got.status, 413, "{}", got.text());
    let form = format!("verb=PutRecord&metadataPrefix=oai_dc&metadata={}", "x".repeat(100_000));
    assert_eq!(server.send("POST /theses", &form).status, 413);
    let got = send(server.program.address(), "POST /theses", "", &form.as_bytes()[..70_000]);
    assert_eq!(got.status, 413, "without a token, the form is not larger than others");
}

/// The process is killed at any time: a writer that had its response finds its record, and the others find it whole or
/// not at all.
#[test]
fn what_was_confirmed_survives_a_kill() {
    println!("seed {SEED:#x}");
    let mut random = Random::new(SEED);
    let Server { folder, program, token } = Server::new(&[("theses", LOCAL)]);
    let mut program = Some(program);
    let mut confirmed: BTreeMap<String, usize> = BTreeMap::new();
    let mut last_sent: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..4 {
        let running = program.take().unwrap_or_else(|| start(folder.path()));
        let (address, killer) = (running.address(), running.killer());
        let kill_after = 20 + random.below(60);
        let (done, is_over) = (Mutex::new((confirmed, last_sent)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (done, token, killer, is_over) = (&done, &token, killer.clone(), &is_over);
                scope.spawn(move || {
                    for step in 0..200 {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        let (name, version) = (identifier(writer), round * 1_000 + step);
                        done.lock().expect("no panic").1.insert(name.clone(), version);
                        let status = put_once(address, token, &name, version);
                        let mut done = done.lock().expect("no panic");
                        if status.is_some_and(|status| status < 300) {
                            done.0.insert(name, version);
                        }
                        if step * 3 >= kill_after {
                            is_over.store(true, Ordering::SeqCst);
                            killer.kill();
                        }
                    }
                });
            }
        });
        (confirmed, last_sent) = done.into_inner().expect("no panic");
        drop(running);
        let running = start(folder.path());
        for (name, version) in &confirmed {
            let query = format!("/theses?verb=GetRecord&metadataPrefix=oai_dc&identifier={name}");
            let text = fetch(running.address(), &query).text();
            let found = [*version, last_sent[name]];
            let is_there = found.iter().any(|version| text.contains(&format!("<dc:title>v{version}<")));
            assert!(is_there, "seed {SEED:#x}, round {round}: expected one of {found:?} in {text}");
        }
        program = Some(running);
    }
    assert!(confirmed.len() == 3, "{confirmed:?}");
}

/// The status of the response; `None`: the program was killed before.
fn put_once(address: SocketAddr, token: &str, name: &str, version: usize) -> Option<u16> {
    use std::io::{Read, Write};
    let body = dublin_core(&format!("v{version}"));
    let request = format!(
        "PUT /theses/record/{name}?metadataPrefix=oai_dc HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    response.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_local_repository_passes_the_check_and_is_not_harvested() {
    let server =
        Server::new(&[("theses", "kind = \"local\"\n[identify]\nadmin_email = \"keeper@group.example\"\n")]);
    for number in 0..30 {
        let start = format!("PUT /theses/record/{}?metadataPrefix=oai_dc&sets=a:b", identifier(number));
        assert_eq!(server.send(&start, &dublin_core(&format!("Letter {number}"))).status, 201);
    }
    let start = format!("DELETE /theses/record/{}?metadataPrefix=oai_dc", identifier(3));
    assert_eq!(server.send(&start, "").status, 200);
    let oaimend = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(arguments).current_dir(server.folder.path()).output().expect("the program runs")
    };
    for command in ["sync", "verify"] {
        let more = if command == "verify" { &["--against-source"][..] } else { &[] };
        let refused = oaimend(
            &[&["mirror", command, "theses", "--mappings", "mappings", "--data", "other"], more].concat(),
        );
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(64) && said.contains("has no source to harvest"), "{said}");
    }
    let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
    check.args(["check", "--format", "json", &format!("http://{}/theses", server.program.address())]);
    let output = check.current_dir(server.folder.path()).output().expect("the program runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = report["rules"].as_array().expect("a list of rules");
    let failed: Vec<&Value> = rules.iter().filter(|rule| rule["verdict"] == "fails").collect();
    assert!(output.status.success() && rules.len() > 20 && failed.is_empty(), "{failed:#?}");
}

#[test]
fn metadata_is_valid_by_the_schemas_of_the_mapping() {
    if is_xmllint_missing() {
        return;
    }
    let mapping = "kind = \"local\"\ndc_required = false\nschema_dir = \"../schemas\"\n[formats.maps]\n\
                   schema = \"http://maps.example/maps.xsd\"\nnamespace = \"urn:maps\"\n";
    let server = Server::new(&[("theses", mapping)]);
    let put = |name: &str, scale: &str| {
        let start = format!("PUT /theses/record/oai:x:{name}?metadataPrefix=maps");
        server.send(&start, &format!("<map xmlns=\"urn:maps\"><scale>{scale}</scale></map>"))
    };
    let missing = put("1", "10000");
    assert!(missing.status == 503 && missing.text().contains("its log says why"), "{}", missing.text());
    let schemas = server.folder.path().join("schemas");
    std::fs::create_dir(&schemas).expect("writable");
    let schema = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" targetNamespace=\"urn:maps\" \
                  elementFormDefault=\"qualified\"><xs:element name=\"map\"><xs:complexType><xs:sequence>\
                  <xs:element name=\"scale\" type=\"xs:positiveInteger\"/></xs:sequence></xs:complexType></xs:element>\
                  </xs:schema>";
    std::fs::write(schemas.join("maps.xsd"), schema).expect("writable");
    assert_eq!(put("1", "10000").status, 201, "the schemas are there now");
    let refused = put("2", "large");
    assert!(
        refused.status == 422 && refused.text().contains("'large' is not a valid value"),
        "{}",
        refused.text()
    );
    // The record is named in a list too, and nothing of it is stored.
    let record = |name: &str, scale: &str| {
        format!(
            "<record><header><identifier>oai:x:{name}</identifier><datestamp>2020-01-01</datestamp></header><metadata>\
             <map xmlns=\"urn:maps\">\n<scale>{scale}</scale></map></metadata></record>"
        )
    };
    let list = format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2020-01-01T00:00:00Z</responseDate>\
         <request>http://x.example/</request><ListRecords>{}{}{}</ListRecords></OAI-PMH>",
        record("3", "1"),
        record("4", "0"),
        record("5", "1"),
    );
    let refused = server.send("POST /theses/records?metadataPrefix=maps", &list);
    assert!(refused.status == 422 && refused.text().contains("oai:x:4 is not valid"), "{}", refused.text());
    let listed = fetch(server.program.address(), "/theses?verb=ListIdentifiers&metadataPrefix=maps").text();
    assert!(listed.contains("oai:x:1<") && listed.matches("<header>").count() == 1, "{listed}");
}

#[test]
fn a_forgotten_repository_is_empty_and_accepts_records_at_once() {
    let mut server = Server::new(&[("theses", LOCAL)]);
    server.program.killer().kill();
    server.program.ended();
    server.program =
        Program::run(serve(server.folder.path()).args(["--admin", "127.0.0.1:0", "--mappings", "mappings"]));
    let path = "/theses/record/oai:x:1?metadataPrefix=oai_dc";
    let list = |server: &Server| {
        let got = fetch(server.program.address(), "/theses?verb=ListRecords&metadataPrefix=oai_dc");
        (got.status, got.text())
    };
    for round in 0..2 {
        assert_eq!(server.send(&format!("PUT {path}"), &dublin_core("One")).status, 201, "round {round}");
        assert!(list(&server).1.contains("<dc:title>One<"));
        let admin = server.program.admin().to_string();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(["mirror", "forget", "theses", "--admin", &admin]).current_dir(server.folder.path());
        assert!(command.status().expect("it runs").success());
        let (status, text) = list(&server);
        assert!(status == 200 && text.contains("noRecordsMatch"), "{status} {text}");
    }
}

#[test]
fn a_damaged_record_is_replaced_or_deleted_by_its_writers() {
    let mut server = Server::new(&[("theses", LOCAL)]);
    let path = "/theses/record/oai:x:1?metadataPrefix=oai_dc";
    assert_eq!(server.send(&format!("PUT {path}"), &dublin_core("One")).status, 201);
    let list =
        |server: &Server| fetch(server.program.address(), "/theses?verb=ListRecords&metadataPrefix=oai_dc");
    for (request, body, expected) in
        [("PUT", dublin_core("One"), "<dc:title>One<"), ("DELETE", String::new(), "status=\"deleted\"")]
    {
        server.program.killer().kill();
        server.program.ended();
        let segments = segments(&server.folder.path().join("data/mirror"));
        damage_last_block(segments.last().expect("a segment"));
        server.program = start(server.folder.path());
        assert_eq!(list(&server).status, 503, "the record is damaged");
        let conditional = format!("Authorization: Bearer {}\r\nIf-Match: \"1-1\"\r\n", server.token);
        let refused =
            send(server.program.address(), &format!("{request} {path}"), &conditional, body.as_bytes());
        assert_eq!(refused.status, 412, "{}", refused.text());
        let written = server.send(&format!("{request} {path}"), &body);
        assert!(matches!(written.status, 200 | 201 | 204), "{request}: {}", written.text());
        let list = list(&server);
        assert!(list.status == 200 && list.text().contains(expected), "{}", list.text());
    }
}
