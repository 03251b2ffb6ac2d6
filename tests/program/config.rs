//! `oaimend validate` and `oaimend serve` read the configuration and report its faults.

use oaimend::config::{self, Config, Flags};
use oaimend_oai::datestamp::Granularity;
use oaimend_upstream::settings::{HeadersVia, Method, PageFallback, Version};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a writable folder");
    std::fs::write(path, text).expect("a writable folder");
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    program.args(arguments).current_dir(folder).output().expect("the program runs")
}

/// Runs `validate` in a folder with these files; compares its exit code and its output.
#[track_caller]
pub(crate) fn check(files: &[(&str, &str)], arguments: &[&str], code: i32, said: &str) {
    let folder = folder(files);
    let output = run(folder.path(), &[&["validate"], arguments].concat());
    let text = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&text).trim_end(), said.trim());
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn empty_configuration_is_valid() {
    let advice = "oaimend: there is no folder of mapping files; create \"mappings\" beside oaimend.toml, or name one \
                  with --mappings";
    check(&[], &[], 0, &format!("no faults; 0 repositories\n{advice}"));
}

#[test]
fn mappings_are_beside_the_settings_file() {
    let files =
        [("etc/oaimend.toml", ""), ("etc/mappings/x.toml", "base_url = \"http://source.example/oai\"")];
    let expected = format!("no faults; 1 repository in {}", Path::new("etc").join("mappings").display());
    check(&files, &["--config", "etc/oaimend.toml"], 0, &expected);
}

#[test]
fn every_key_can_be_set() {
    let all = r#"
listen = "[::1]:9999"
public_url = "https://oai.example.org/mended/"
mappings = "sources"
data = "/var/lib/oaimend"
admin_email = "oai@proxy.example.org"
[admin]
listen = "off"
[clients]
trusted_proxies = ["10.0.0.0/8", "2001:db8::1"]
wait_max_millis = 0
rate_per_minute = 60
burst = 0
in_flight_max = 100
all = { rate_per_minute = 6000, burst = 100, in_flight_max = 200 }
[clients.crawlers]
user_agents = ["ExampleBot", "spider"]
addresses = ["192.0.2.0/24"]
rate_per_minute = 1
burst = 1
in_flight_max = 1
all.in_flight_max = 0
[clients.known.core]
token_file = "core.token"
addresses = ["198.51.100.7"]
in_flight_max = 8
[clients.known.base]
addresses = ["203.0.113.0/24"]
[connections]
max = 100
per_client_max = 10
idle_timeout_secs = 1
request_timeout_secs = 2
write_timeout_secs = 3
stop_timeout_secs = 4
uri_bytes_max = 8192
header_bytes_max = 16384
form_bytes_max = 1024
[limits]
depth_max = 1_000
quarantine_bytes_max = 0x1000
[cache]
enabled = false
bytes_max = 0
entry_bytes_max = 1_048_576
fresh_secs = 1
token_pages_secs = 2
stale_if_error_secs = 3
failures_secs = 4
"#;
    let mapping = r#"
base_url = "https://source.example:8443/oai?repo=1"
user = "harvester"
password_file = "password"
user_agent = "harvester/1"
from = "ops@example.org"
connect_timeout_secs = 1
read_timeout_secs = 3600
allow_private = true
on_unrepairable = "fail"
stale_lists = true
method = "get-then-post"
page_fallback = "getrecord"
refetch_broken_records = false
list_order = "datestamp"
provenance = "altered"
version = "1.1"
v1_headers_via = "getrecord"
request_granularity = "day"
default_set = "all"
charset = "koi8-r"
raw_token = true
verb_first = true
granularity = "YYYY-MM-DD"
[tls]
ca_file = "ca.pem"
verify = false
[identify]
repository_name = "Dunes & cliffs"
earliest_datestamp = "1999-12-31"
deleted_record = "persistent"
granularity = "YYYY-MM-DD"
[repairs]
off = ["bare-ampersand", "doctype"]
enable = ["double-encoded"]
[politeness]
list_requests_max = 4
gap_millis = 250
requests_per_minute_max = 60
[limits]
record_bytes_max = 1024
tag_bytes_max = 1024
junk_bytes_max = 1024
head_bytes_max = 1024
spool_bytes_max = 1024
repairs_per_record_max = 0
attributes_per_tag_max = 8
redirects_max = 0
response_bytes_max = 1024
inflate_ratio_max = 1
inflate_empty_bytes_max = 1024
first_record_timeout_secs = 1
"#;
    let pem = include_str!("fixtures/tls/ca.pem");
    let files = [
        ("oaimend.toml", all),
        ("sources/x.toml", mapping),
        ("sources/ca.pem", pem),
        ("sources/password", "se cret\n"),
        ("core.token", "0123456789abcdef\n"),
    ];
    let folder = folder(&files);
    let output = run(folder.path(), &["validate"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("no faults; 1 repository in ") && said.ends_with("sources\n"), "{said}");
    let flags = Flags { config: Some(folder.path().join("oaimend.toml")), ..Flags::default() };
    let config = Config::load(&flags).expect("no faults");
    assert_eq!(config.listen, SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 9999)));
    assert_eq!(config.admin, None);
    assert_eq!(config.public_url.as_deref(), Some("https://oai.example.org/mended"));
    assert_eq!(config.data, Path::new("/var/lib/oaimend"));
    let bound = std::num::NonZeroU32::new;
    let clients = &config.clients;
    assert_eq!(clients.trusted_proxies.len(), 2);
    let each = clients.harvesters.each;
    assert_eq!((each.rate_per_minute, each.burst, each.in_flight_max), (bound(60), None, bound(100)));
    assert_eq!(clients.harvesters.all.in_flight_max, bound(200));
    assert_eq!(clients.crawlers.user_agents, ["examplebot", "spider"]);
    let crawlers = &clients.crawlers.quotas.all;
    assert_eq!((crawlers.in_flight_max, crawlers.burst), (None, bound(40)));
    let names: Vec<&str> = clients.known.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(names, ["core", "base"], "the first match counts");
    assert!(clients.known[0].token.is_some());
    let connections = &config.connections;
    assert_eq!((connections.connections_max, connections.per_client_max), (100, 10));
    assert_eq!(connections.stop_timeout, Duration::from_secs(4));
    let cache = config::Cache {
        enabled: false,
        bytes_max: 0,
        entry_bytes_max: 1 << 20,
        fresh: Duration::from_secs(1),
        token_pages: Duration::from_secs(2),
        stale_if_error: Duration::from_secs(3),
        failures: Duration::from_secs(4),
    };
    assert_eq!(config.cache, cache);
    let mapping = config.repositories.find("x").expect("it is mapped");
    let credentials = mapping.source.access.credentials.as_ref().expect("they are set");
    assert_eq!((credentials.user(), credentials.password()), ("harvester", "se cret"));
    assert!(!format!("{mapping:?}").contains("se cret"), "a password is never printed");
    assert_eq!(
        mapping.source.limits.repair.depth_max, 1000,
        "a mapping starts with the limits of oaimend.toml"
    );
    assert_eq!(mapping.source.limits.quarantine_bytes_max, 4096);
    assert!(mapping.stale_lists);
    let identify = &mapping.source.identify;
    assert_eq!(identify.repository_name.as_deref(), Some("Dunes & cliffs"));
    assert_eq!(identify.admin_email.as_deref(), Some("oai@proxy.example.org"), "the default of oaimend.toml");
    assert_eq!(identify.earliest_datestamp.as_deref(), Some("1999-12-31"));
    assert_eq!(identify.deleted_record.as_deref(), Some("persistent"));
    assert_eq!(identify.granularity.as_deref(), Some("YYYY-MM-DD"));
    assert_eq!(mapping.source.quirks.method, Method::GetThenPost);
    assert_eq!(mapping.source.quirks.page_fallback, PageFallback::GetRecord);
    assert!(!mapping.source.quirks.refetch_broken_records && mapping.source.quirks.is_ordered_by_datestamp);
    assert_eq!(mapping.source.repairs.provenance, Some(oaimend_repair::ProvenanceScope::Altered));
    let quirks = &mapping.source.quirks;
    assert_eq!(quirks.version, Some(Version::One1));
    assert_eq!(quirks.v1_headers_via, HeadersVia::GetRecord);
    assert!(quirks.in_days && quirks.raw_token && quirks.verb_first);
    assert_eq!(quirks.default_set.as_deref(), Some("all"));
    assert_eq!(quirks.charset, Some("KOI8-R"));
    assert_eq!(mapping.source.quirks.granularity, Some(Granularity::Day));
    assert_eq!(mapping.source.timeouts.read, Duration::from_secs(3600));
    let politeness = &mapping.source.politeness;
    assert_eq!((politeness.list_requests_max, politeness.gap), (4, Duration::from_millis(250)));
    assert_eq!(politeness.requests_per_minute_max.map(u32::from), Some(60));
    assert_eq!(
        mapping.source.access.tls.ca_file,
        Some(folder.path().join("sources/ca.pem")),
        "paths start at the file"
    );
}

#[test]
fn faults_name_the_line_and_the_expected_value() {
    let main = r#"
lisen = "127.0.0.1:80"
public_url = "oai.example.org"
data = 7
nonsense = 1
[admin]
listen = "8081"
port = 1
[limits]
record_bytes = 1
depth_max = -1
redirects_max = "five"
"#;
    let mapping = r#"bas_url = "x"
on_unrepairable = "drop"
from = "a\nb"
read_timeout_secs = 0
allow_private = "yes"
provenance = "yes"
tls = true
version = "2"
v1_headers_via = "guess"
request_granularity = "seconds"
default_set = "a b"
charset = "utf-8"
[repairs]
off = ["bare-ampersant", "rewrite-request"]
enable = ["bare-ampersand", 3]
"#;
    check(
        &[("oaimend.toml", main), ("mappings/x.toml", mapping)],
        &[],
        78,
        r#"
oaimend.toml:2: unknown key lisen; did you mean listen?
oaimend.toml:3: public_url = "oai.example.org" is not a public URL; expected one such as "https://oai.example.org" (relative URL without a base)
oaimend.toml:4: data is an integer; expected a string
oaimend.toml:5: unknown key nonsense; known keys are admin, admin_email, cache, clients, connections, crosswalks, data, federations, gateway, limits, listen, listen_tls, mappings, mirror, notifications, public_url, reports, search, services
oaimend.toml:7: admin.listen = "8081" is not an address; expected an IP address and a port such as "127.0.0.1:8080", or "off"
oaimend.toml:8: unknown key admin.port; known keys are hosts, listen
oaimend.toml:10: unknown key limits.record_bytes; did you mean record_bytes_max?
oaimend.toml:11: limits.depth_max = -1 is out of range; expected a whole number from 8 to 100000
oaimend.toml:12: limits.redirects_max is a string; expected a whole number from 0 to 20
mappings/x.toml:1: base_url is missing; expected base_url = "https://source.example/oai", static_file or tape_file
mappings/x.toml:1: unknown key bas_url; did you mean base_url?
mappings/x.toml:2: on_unrepairable = "drop" is not known; expected "quarantine" or "fail"
mappings/x.toml:3: from = "a\nb" is not allowed in an HTTP header; expected printable ASCII
mappings/x.toml:4: read_timeout_secs = 0 is out of range; expected a whole number from 1 to 3600
mappings/x.toml:5: allow_private is a string; expected true or false
mappings/x.toml:6: provenance = "yes" is not known; expected "off", "altered" or "all"
mappings/x.toml:7: tls is a boolean; expected a table
mappings/x.toml:8: version = "2" is not a version; expected "1.0", "1.1" or "2.0", or no key: it is detected
mappings/x.toml:9: v1_headers_via = "guess" is not known; expected "listrecords" or "getrecord"
mappings/x.toml:10: request_granularity = "seconds" is not known; expected "day" or "as-requested"
mappings/x.toml:11: default_set = "a b" is not a set; expected its setSpec
mappings/x.toml:12: charset = "utf-8" is not a charset other than UTF-8; expected one such as "windows-1251"
mappings/x.toml:14: repairs.off: "bare-ampersant" is not a repair for this key; did you mean "bare-ampersand"?
mappings/x.toml:14: repairs.off: "rewrite-request" is not a repair for this key; docs/reference/repairs.md lists the names
mappings/x.toml:15: repairs.enable: "bare-ampersand" is not a repair for this key; expected one of double-encoded, c1-control, torn-section, payload-xsi
mappings/x.toml:15: repairs.enable is an integer; expected a list of strings
"#,
    );
}

#[test]
fn invalid_toml_names_the_line() {
    check(
        &[("oaimend.toml", "listen = \"127.0.0.1:1\"\n\npublic_url = https://x\n")],
        &[],
        78,
        "oaimend.toml:3: invalid TOML: string values must be quoted, expected literal string",
    );
}

#[test]
fn base_urls_ids_and_certificates() {
    let mapping = |base_url: &str| format!("base_url = \"{base_url}\"\n");
    let file = |base_url| mapping(base_url);
    let (ftp, fragment, verb, good) =
        (file("ftp://x/"), file("http://x/#a"), file("http://x/?verb=Identify"), file("http://x/"));
    let tls = format!("{good}tls.ca_file = \"none.pem\"\n");
    check(
        &[
            ("mappings/a.toml", &ftp),
            ("mappings/b.toml", &fragment),
            ("mappings/c.toml", &verb),
            ("mappings/_d.toml", &good),
            ("mappings/robots.txt.toml", &good),
            ("mappings/e f.toml", &good),
            ("mappings/g.toml", &tls),
            ("mappings/README.md", "not a mapping"),
        ],
        &[],
        78,
        r#"
mappings/_d.toml:1: the file name "_d" is not a repository id; expected letters, digits, '.', '_' and '-', the first a letter or digit
mappings/a.toml:1: base_url = "ftp://x/" is not a base URL; expected one such as "https://source.example/oai" (http or https, with a host)
mappings/b.toml:1: base_url = "http://x/#a" is not a base URL; expected one such as "https://source.example/oai" (without #)
mappings/c.toml:1: base_url = "http://x/?verb=Identify" is not a base URL; expected one such as "https://source.example/oai" (without verb=, which each request sets)
mappings/e f.toml:1: the file name "e f" is not a repository id; expected letters, digits, '.', '_' and '-', the first a letter or digit
mappings/g.toml:2: tls.ca_file = "none.pem" cannot be read: No such file or directory (os error 2); expected a file with PEM certificates
mappings/robots.txt.toml:1: the file name "robots.txt" is reserved; expected any other name
"#,
    );
}

#[test]
fn identify_values() {
    let said = |key: &str, value: &str, said: &str| {
        let mapping = format!("base_url = \"http://source.example/oai\"\n[identify]\n{key} = \"{value}\"\n");
        let said = format!("mappings/x.toml:3: identify.{key} = \"{value}\" {said}");
        check(&[("mappings/x.toml", &mapping)], &[], 78, &said);
    };
    let no_mail = "is not a mail address; expected one such as \"oai@example.org\", without mailto:";
    said("repository_name", " ", "is not a name; expected a text that is not blank");
    said("admin_email", "mailto:a@example.org", no_mail);
    said("admin_email", "nobody", no_mail);
    said("earliest_datestamp", "2001", "is not a datestamp; expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ");
    said("deleted_record", "yes", "is not known; expected \"no\" or \"transient\" or \"persistent\"");
    said("granularity", "day", "is not known; expected \"YYYY-MM-DD\" or \"YYYY-MM-DDThh:mm:ssZ\"");
    let of_all = format!("oaimend.toml:1: admin_email = \"x\" {no_mail}");
    check(&[("oaimend.toml", "admin_email = \"x\"\n")], &[], 78, &of_all);
    let second = concat!(
        "base_url = \"http://source.example/oai\"\nidentify.admin_email = \"own@example.org\"\n",
        "granularity = \"YYYY-MM-DD\"\n",
    );
    let all = ("oaimend.toml", "admin_email = \"all@example.org\"\n");
    let folder = folder(&[all, ("mappings/x.toml", second)]);
    let flags = Flags {
        config: Some(folder.path().join("oaimend.toml")),
        mappings: Some(folder.path().join("mappings")),
        maps: vec![("y".to_owned(), "http://source.example/y".to_owned())],
        ..Flags::default()
    };
    let config = Config::load(&flags).expect("no faults");
    let email = |id: &str| {
        config.repositories.find(id).and_then(|mapping| mapping.source.identify.admin_email.clone())
    };
    assert_eq!(email("x").as_deref(), Some("own@example.org"), "the mapping overrides");
    assert_eq!(email("y").as_deref(), Some("all@example.org"), "also for a repository without a file");
    let mapping = config.repositories.find("x").expect("it is mapped");
    assert_eq!(
        mapping.source.identify.granularity.as_deref(),
        Some("YYYY-MM-DD"),
        "the announced granularity applies"
    );
}

#[test]
fn static_files() {
    let both = "base_url = \"http://x/\"\nstatic_file = \"http://x/y.xml\"\n";
    let received = "static_file = \"http://x/y.xml\"\nmethod = \"post\"\npage_fallback = \"getrecord\"\nrefetch_broken_records = true\n\
                 list_order = \"datestamp\"\nstatic_check_secs = 86401\nversion = \"1.1\"\n[politeness]\ngap_millis = 1\n";
    check(
        &[
            ("y.xml", "<Repository/>"),
            ("mappings/a.toml", "static_file = \"../y.xml\"\nstatic_check_secs = 0\n"),
            (
                "mappings/b.toml",
                "static_file = \"http://x/y.xml?a=b\"\n[limits]\nstatic_records_max = 1\nstatic_file_bytes_max = 1024\n",
            ),
            ("mappings/c.toml", both),
            ("mappings/d.toml", received),
            ("mappings/e.toml", "static_file = \"none.xml\"\n"),
            ("mappings/f.toml", "static_file = \"..\"\n"),
            ("mappings/g.toml", "static_file = \"ftp://x/y.xml\"\n"),
            ("mappings/h.toml", "base_url = \"http://x/\"\nstatic_check_secs = 1\n"),
            ("mappings/i.toml", "static_file = 7\n"),
        ],
        &[],
        78,
        r#"
mappings/c.toml:1: base_url is not allowed here: a mapping has either base_url or static_file
mappings/d.toml:2: method is not allowed here: a static_file is not requested page by page
mappings/d.toml:3: page_fallback is not allowed here: a static_file is not requested page by page
mappings/d.toml:4: refetch_broken_records is not allowed here: a static_file is not requested page by page
mappings/d.toml:5: list_order is not allowed here: a static_file is not requested page by page
mappings/d.toml:6: static_check_secs = 86401 is out of range; expected a whole number from 0 to 86400
mappings/d.toml:7: version is not allowed here: a static_file is not requested page by page
mappings/d.toml:8: politeness is not allowed here: a static_file is not requested page by page
mappings/e.toml:1: static_file = "none.xml" cannot be read: No such file or directory (os error 2); expected the path of a static repository file or its http URL
mappings/f.toml:1: static_file = ".." is not a file; expected the path of a static repository file or its http URL
mappings/g.toml:1: static_file = "ftp://x/y.xml" is not a URL of a static repository file; expected one such as "https://source.example/static.xml" (http or https, without #, user and password)
mappings/h.toml:2: static_check_secs is not allowed here: it requires static_file
mappings/i.toml:1: static_file is an integer; expected a string
"#,
    );
}

#[test]
fn tape_files() {
    check(
        &[
            ("y.xml", "<tape/>"),
            ("mappings/a.toml", "tape_file = \"../y.xml\"\n"),
            ("mappings/b.toml", "tape_file = \"../y.xml\"\nbase_url = \"http://x/\"\nmethod = \"post\"\n"),
            ("mappings/c.toml", "tape_file = \"../y.xml\"\nstatic_file = \"../y.xml\"\n"),
            ("mappings/d.toml", "tape_file = \"none.xml.gz\"\nstatic_check_secs = 1\n"),
        ],
        &[],
        78,
        r#"
mappings/b.toml:2: base_url is not allowed here: a mapping has either base_url or tape_file
mappings/b.toml:3: method is not allowed here: a tape_file is not requested page by page
mappings/c.toml:1: tape_file is not allowed here: a mapping has either static_file or tape_file
mappings/d.toml:1: tape_file = "none.xml.gz" cannot be read: No such file or directory (os error 2); expected the path of a tape
mappings/d.toml:2: static_check_secs is not allowed here: it requires static_file
"#,
    );
}

#[test]
fn credentials_are_in_a_file_and_never_printed() {
    let base_url = "base_url = \"http://x/\"\n";
    let alone = format!("{base_url}user = \"a:b\"\n");
    let nobody = format!("{base_url}password_file = \"empty\"\n");
    check(
        &[
            ("mappings/a.toml", "base_url = \"https://me:secret@x/oai\"\n"),
            ("mappings/b.toml", "base_url = \"ftp://me:sec@ret@x\"\n"),
            ("mappings/c.toml", &alone),
            ("mappings/d.toml", &nobody),
            ("mappings/empty", "\n"),
        ],
        &[],
        78,
        r#"
mappings/a.toml:1: base_url = "https://***@x/oai" is not a base URL; expected one such as "https://source.example/oai" (without user and password: use the keys user and password_file)
mappings/b.toml:1: base_url = "ftp://***@x" is not a base URL; expected one such as "https://source.example/oai" (http or https, with a host)
mappings/c.toml:1: user is set without password_file; expected a file with the password
mappings/c.toml:2: user = "a:b" is not a user name; expected a text without ':' and control characters
mappings/d.toml:1: password_file is set without user; expected both
mappings/d.toml:2: password_file = "empty" contains no password; expected a file with the password in its only line
"#,
    );
    let output = run(folder(&[]).path(), &["serve", "--map", "x=http://me:secret@x/oai"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{text}");
    assert!(text.starts_with("oaimend: --map x=http://***@x/oai: is not a base URL"), "{text}");
}

#[test]
fn clients_and_connections() {
    let main = r#"[clients]
trusted_proxy = ["10.0.0.1"]
trusted_proxies = ["10.0.0.0/8", "proxy.example"]
rate_per_minute = -1
[clients.crawlers]
user_agents = ["bo"]
[clients.known.crawlers]
addresses = ["192.0.2.1"]
[clients.known.nobody]
in_flight_max = 1
[clients.known.short]
token_file = "short"
[clients.known.one]
token_file = "token"
[clients.known.two]
token_file = "token"
rate = 5
[connections]
uri_bytes_max = 100
"#;
    check(
        &[("oaimend.toml", main), ("short", "secret"), ("token", "0123456789abcdef")],
        &[],
        78,
        r#"
oaimend.toml:2: unknown key clients.trusted_proxy; did you mean trusted_proxies?
oaimend.toml:3: clients.trusted_proxies: "proxy.example" is not an address; expected an address such as "192.0.2.7" or a network such as "2001:db8::/32"
oaimend.toml:4: clients.rate_per_minute = -1 is out of range; expected a whole number from 0 to 1000000
oaimend.toml:6: clients.crawlers.user_agents: "bo" is too short; expected a part of a User-Agent of 3 characters or more, such as "examplebot"
oaimend.toml:7: clients.known: "crawlers" is not a client name; expected letters, digits, '-' and '_', and not harvesters, crawlers or any
oaimend.toml:9: clients.known.nobody: token_file or addresses is missing
oaimend.toml:12: clients.known.short.token_file = "short" contains no token; expected a file with a token of 16 printable characters or more
oaimend.toml:15: clients.known.two has the same token as one
oaimend.toml:17: unknown key clients.known.two.rate; known keys are addresses, all, burst, in_flight_max, pages, rate_per_minute, token_file
oaimend.toml:19: connections.uri_bytes_max = 100 is out of range; expected a whole number from 8192 to 60000
"#,
    );
}

#[test]
fn missing_named_files_are_io_errors() {
    check(
        &[],
        &["--config", "none.toml"],
        74,
        "oaimend: none.toml: cannot be read: No such file or directory (os error 2); name a readable TOML file with --config",
    );
    check(
        &[("oaimend.toml", "mappings = \"none\"")],
        &[],
        74,
        "oaimend: none: cannot be read: No such file or directory (os error 2); name a folder of mapping files with --mappings",
    );
}

#[test]
fn serve_reports_faults_and_wrong_flags() {
    let folder = folder(&[("oaimend.toml", "lisen = 1\n")]);
    let said = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["serve"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    };
    assert_eq!(said(&[]), (Some(78), "oaimend.toml:1: unknown key lisen; did you mean listen?".into()));
    std::fs::remove_file(folder.path().join("oaimend.toml")).expect("it is there");
    let (code, text) = said(&["--map", "x=nonsense"]);
    assert_eq!(code, Some(64));
    assert_eq!(
        text,
        "oaimend: --map x=nonsense: is not a base URL; expected one such as \"https://source.example/oai\" (relative URL without a base)"
    );
    for wrong in [["--map", "x"], ["--listen", "8080"], ["--admin", "8081"], ["--nonsense", "1"]] {
        assert_eq!(said(&wrong).0, Some(64), "{wrong:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let (code, text) = said(&["--listen", &address, "--admin", "off"]);
    assert_eq!(code, Some(74));
    assert!(text.contains(&format!("oaimend: cannot listen on {address}: ")), "{text}");
    assert!(text.ends_with("choose another one by --listen ADDR, or listen in oaimend.toml"), "{text}");
}

#[test]
fn files_that_are_not_read_are_named() {
    let folder = folder(&[
        ("mappings/x.toml", "base_url = \"http://x.example/oai\"\n"),
        ("mappings/clean.tml", "base_url = \"http://clean.example/oai\"\n"),
        ("mappings/old.toml.bak", ""),
        ("mappings/none", "# none\n  base_url = \"http://none.example/oai\"\n"),
        ("mappings/.x.toml.swp", ""),
        ("mappings/ca.pem", "-----BEGIN CERTIFICATE-----\n"),
    ]);
    let mut validate = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output = validate.arg("validate").current_dir(folder.path()).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let warning = "this file is not read; the name of a mapping file ends with .toml";
    let expected = ["clean.tml", "none", "old.toml.bak"];
    assert_eq!(said, expected.map(|name| format!("mappings/{name}:1: warning: {warning}\n")).concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no faults; 1 repository in mappings\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn flags_override_the_file() {
    let folder = folder(&[
        ("oaimend.toml", "listen = \"127.0.0.1:1\"\ndata = \"here\"\npublic_url = \"http://file.example\"\n"),
        ("mappings/x.toml", "base_url = \"http://file.example/oai\"\n"),
        ("mappings/y.toml", "base_url = \"http://file.example/oai\"\n"),
    ]);
    let config = Config::load(&Flags {
        config: Some(folder.path().join("oaimend.toml")),
        mappings: Some(folder.path().join("mappings")),
        public_url: Some("http://flag.example".into()),
        maps: vec![("x".into(), "http://flag.example/oai".into())],
        admin: Some(None),
        ..Flags::default()
    })
    .expect("no faults");
    assert_eq!((config.listen.port(), config.admin), (1, None));
    assert_eq!(config.data, folder.path().join("here"));
    assert_eq!(config.public_url.as_deref(), Some("http://flag.example"));
    let base_url = |id| config.repositories.find(id).map(|mapping| mapping.source.base_url.to_string());
    assert_eq!(base_url("x").as_deref(), Some("http://flag.example/oai"));
    assert_eq!(base_url("y").as_deref(), Some("http://file.example/oai"));
}

#[test]
fn shipped_mappings_are_valid() {
    let output = run(Path::new(env!("CARGO_MANIFEST_DIR")), &["validate", "--mappings", "mappings"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let count: Option<usize> =
        said.strip_prefix("no faults; ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(count.is_some_and(|count| count >= 3), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
