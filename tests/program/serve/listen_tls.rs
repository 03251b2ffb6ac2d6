//! The listener with TLS, with curl and openssl as clients.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Harvester, Reply, Source, fetch, page_of};
use oaimend::config::{ListenTls, Mapping};
use oaimend_base::certificate::CertificateFiles;
use oaimend_test_support::root;
use oaimend_upstream::settings::Limits;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The longest wait for a counter.
const COUNTED_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
const FREE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A file of tests/program/fixtures/tls.
fn pem(name: &str) -> PathBuf {
    root().join("tests/program/fixtures/tls").join(name)
}

/// A proxy for the source with both listeners.
fn proxy(source: &Source) -> (Proxy, SocketAddr) {
    let files = CertificateFiles { certificate: pem("cert.pem"), key: pem("key.pem") };
    let proxy = Proxy::with(|config| {
        let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
        config.repositories.add_fixed(mapping);
        config.listen_tls = Some(ListenTls { address: FREE, files });
    });
    let address = proxy.running.tls_addr.expect("it is on");
    (proxy, address)
}

/// What curl receives, followed by the version of HTTP.
fn curl(address: SocketAddr, path: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    command
        .args(["-sS", "--noproxy", "*", "--max-time", "60", "-w", "\nHTTP/%{http_version}"])
        .args(arguments);
    let output = command.arg(format!("https://{address}{path}")).output().expect("curl is installed");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// What `openssl s_client` prints about a connection, with the certificate of the server.
fn s_client(address: SocketAddr, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string()]).args(arguments).stdin(Stdio::null());
    let output = command.output().expect("openssl is installed");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The certificate that the server sends, without line ends.
fn certificate_of(address: SocketAddr) -> String {
    let text = s_client(address, &[]);
    let start = text.find("-----BEGIN CERTIFICATE").unwrap_or_else(|| panic!("{text}"));
    let end = text.find("-----END CERTIFICATE").unwrap_or(text.len());
    text[start..end].lines().skip(1).collect()
}

fn certificate_in(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a readable file");
    text.lines().filter(|line| !line.starts_with('-')).collect()
}

#[test]
fn harvesters_are_served_over_tls() {
    let source = Source::page(page_of(3));
    let (proxy, address) = proxy(&source);
    let ca = pem("ca.pem");
    let ca = ca.to_str().expect("a path in UTF-8");
    for (flag, version) in
        [("--http1.1", "\nHTTP/1.1"), ("--http2", "\nHTTP/2"), ("--compressed", "\nHTTP/2")]
    {
        let got = curl(address, LIST, &["--cacert", ca, flag]);
        assert!(got.ends_with(version) && got.matches("<record>").count() == 3, "{flag}: {got}");
        // Without public_url, URLs contain the address of this listener.
        assert!(got.contains(&format!(">https://{address}/x</request>")), "{flag}: {got}");
    }
    // The other listener is the same server.
    assert!(proxy.get("/friends.xml").text().contains(&format!("https://{address}/x")));
    let refused = curl(address, LIST, &[]);
    assert!(refused.contains("certificate"), "curl does not know the authority: {refused}");
    let proxied = curl(address, "/-/livez", &["--cacert", ca, "--http1.1"]);
    assert!(proxied.starts_with("ok"), "{proxied}");
}

#[test]
fn connection_is_kept_for_several_requests() {
    let source = Source::page(page_of(1));
    let (_proxy, address) = proxy(&source);
    let ca = pem("ca.pem");
    let next = format!("https://{address}{LIST}");
    let arguments = ["--cacert", ca.to_str().expect("a path in UTF-8"), "--http1.1", "-v", &next];
    let got = curl(address, LIST, &arguments);
    assert!(got.contains("Re-using existing connection"), "{got}");
}

#[test]
fn tls_1_2_is_the_oldest_version() {
    let (_proxy, address) = proxy(&Source::page(page_of(1)));
    for (flag, expected) in [
        ("-tls1_3", "New, TLSv1.3"),
        ("-tls1_2", "New, TLSv1.2"),
        // The server has ended the handshake, not openssl.
        ("-tls1_1", "SSL alert number 40"),
        ("-tls1", "SSL alert number 40"),
    ] {
        let said = s_client(address, &[flag, "-cipher", "DEFAULT@SECLEVEL=0"]);
        assert!(said.contains(expected), "{flag}: {said}");
    }
}

#[test]
fn client_without_tls_gets_advice() {
    let (proxy, address) = proxy(&Source::page(page_of(1)));
    let got = fetch(address, LIST);
    assert_eq!((got.status, got.whole), (400, true));
    assert_eq!(got.text(), "this port requires TLS; use https:// instead of http://\n");
    let mut broken = TcpStream::connect(address).expect("it listens");
    broken.write_all(b"\x17\x03\x03\x00\x05hello").expect("it reads");
    let mut alert = Vec::new();
    broken.read_to_end(&mut alert).expect("it closes the connection");
    assert_eq!(alert.first(), Some(&21), "an alert record");
    for reason in ["no-tls", "tls-handshake"] {
        let line = format!("oaimend_refused_total{{class=\"any\",reason=\"{reason}\"}} 1\n");
        let until = oaimend_base::clock::uptime() + COUNTED_WITHIN;
        // The connection may end before it is counted.
        while !fetch(proxy.admin(), "/-/metrics").text().contains(&line) {
            assert!(oaimend_base::clock::uptime() < until, "{line}");
        }
    }
}

#[test]
fn handshake_has_a_time_limit() {
    let files = CertificateFiles { certificate: pem("cert.pem"), key: pem("key.pem") };
    let proxy = Proxy::with(|config| {
        config.listen_tls = Some(ListenTls { address: FREE, files });
        config.connections.request_timeout = std::time::Duration::from_millis(50);
    });
    let mut silent = TcpStream::connect(proxy.running.tls_addr.expect("it is on")).expect("it listens");
    silent.write_all(b"\x16\x03\x01").expect("it reads");
    let mut rest = Vec::new();
    // Without the limit the connection would stay open, and the test would not end.
    let _ = silent.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn idle_connection_ends_in_order() {
    let source = Source::page(page_of(1));
    let files = CertificateFiles { certificate: pem("cert.pem"), key: pem("key.pem") };
    let proxy = Proxy::with(|config| {
        let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
        config.repositories.add_fixed(mapping);
        config.listen_tls = Some(ListenTls { address: FREE, files });
        config.connections.idle_timeout = std::time::Duration::from_millis(50);
    });
    let mut kept = Kept::open(proxy.running.tls_addr.expect("it is on"));
    // Without close_notify this is an error: the end could be forged.
    kept.0.read_to_end(&mut Vec::new()).expect("the end is authentic");
}

/// A folder with a configuration for `serve`: certificates and a mapping.
fn folder(source: &Source, address: SocketAddr, name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    std::fs::create_dir(path.join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\n", source.base_url());
    std::fs::write(path.join("mappings/x.toml"), mapping).expect("a writable folder");
    let text = format!(
        "[listen_tls]\naddress = \"{address}\"\ncertificate = \"server.pem\"\nkey = \"server-key.pem\"\n"
    );
    std::fs::write(path.join("oaimend.toml"), text).expect("a writable folder");
    install(path, name, "server-key.pem");
    install(path, name, "server.pem");
    folder
}

/// Puts one file of a pair into place, as programs that renew certificates do.
fn install(folder: &Path, name: &str, file: &str) {
    let from = match (name, file) {
        ("cert", "server-key.pem") => pem("key.pem"),
        (_, "server-key.pem") => pem(&format!("{name}-key.pem")),
        _ => pem(&format!("{name}.pem")),
    };
    std::fs::copy(from, folder.join("new")).expect("a writable folder");
    std::fs::rename(folder.join("new"), folder.join(file)).expect("a writable folder");
}

/// An open connection with one answered request.
struct Kept(rustls::StreamOwned<rustls::ClientConnection, TcpStream>);

impl Kept {
    fn open(address: SocketAddr) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        let root = CertificateDer::from_pem_file(pem("ca.pem")).expect("the file holds a certificate");
        roots.add(root).expect("it is one of an authority");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let config =
            config.expect("the provider has ciphers").with_root_certificates(roots).with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(address).expect("it listens");
        let mut kept = Self(rustls::StreamOwned::new(connection, stream));
        kept.ask();
        kept
    }

    /// Sends a request and reads the response.
    #[track_caller]
    fn ask(&mut self) {
        let request = format!("GET {LIST} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.0.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        while !text.contains("</OAI-PMH>") {
            let mut bytes = [0; 1024];
            let count = self.0.read(&mut bytes).expect("a response");
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(text.contains("HTTP/1.1 200 "), "{text}");
    }
}

#[test]
fn new_certificate_is_used_and_a_broken_one_is_not() {
    let source = Source::page(page_of(1));
    let folder = folder(&source, FREE, "cert");
    let mut program = Program::start(folder.path(), &[]);
    let address = program.tls();
    assert_eq!(certificate_of(address), certificate_in(&pem("cert.pem")));
    let mut kept = Kept::open(address);
    install(folder.path(), "other", "server-key.pem");
    install(folder.path(), "other", "server.pem");
    program.signal("-HUP");
    program.line("certificate of listen_tls read again");
    assert_eq!(certificate_of(address), certificate_in(&pem("other.pem")));
    kept.ask();
    // The key of another certificate.
    install(folder.path(), "expired", "server-key.pem");
    program.signal("-HUP");
    let line = program.line("the previous certificate of listen_tls stays in effect")["message"].to_string();
    for part in ["server-key.pem does not belong to the certificate", "replace both files by a pair"] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(certificate_of(address), certificate_in(&pem("other.pem")));
    kept.ask();
}

#[test]
fn end_of_the_certificate_is_measured_and_logged() {
    let source = Source::page(page_of(1));
    let folder = folder(&source, FREE, "expired");
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let line = program.line("listen_tls: the certificate has expired at 2021-02-03T04:05:06Z");
    assert_eq!(line["level"], "WARN");
    let metrics = fetch(program.admin(), "/-/metrics").text();
    let address = program.tls();
    let line = format!("oaimend_tls_certificate_expiry_seconds{{listener=\"{address}\"}} 1612325106\n");
    assert!(metrics.contains(&line), "{metrics}");
}

#[test]
fn listener_is_handed_over_to_the_next_process() {
    let source = Source::start(|_, _| Reply::xml(page_of(2)));
    let folder = folder(&source, FREE, "cert");
    let old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let (public, address) = (old.address(), old.tls());
    let mut command = serve(folder.path());
    // Port 0 fits every handed socket. They are sent in this order: without TLS, with TLS, for operators.
    let mut new = Program::spawn(command.args(["--upgrade", "--admin", "127.0.0.1:0"]));
    new.line("waiting for the running oaimend");
    old.signal("-QUIT");
    let new = new.served();
    assert!(old.ended().success());
    assert_eq!((new.address(), new.tls()), (public, address));
    let ca = pem("ca.pem");
    let got = curl(address, LIST, &["--cacert", ca.to_str().expect("a path in UTF-8")]);
    assert_eq!(got.matches("<record>").count(), 2, "{got}");
}

/// Starts the program with two listening sockets, as systemd does, and writes their ports to a file.
const ACTIVATE: &str = "
import os, socket, sys
sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]
open('ports', 'w').write(' '.join(str(s.getsockname()[1]) for s in sockets))
held = [os.dup2(s.fileno(), 50 + at) for at, s in enumerate(sockets)]
for at, fd in enumerate(held):
    os.dup2(fd, 3 + at, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2')
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn sockets_of_a_service_manager_are_used() {
    let source = Source::page(page_of(1));
    let folder = folder(&source, FREE, "cert");
    let mut command = Command::new("python3");
    command.args(["-c", ACTIVATE, env!("CARGO_BIN_EXE_oaimend"), "serve", "--listen", "127.0.0.1:0"]);
    let program = Program::run(command.args(["--admin", "off"]).current_dir(folder.path()));
    let ports = std::fs::read_to_string(folder.path().join("ports")).expect("a readable file");
    assert_eq!(ports, format!("{} {}", program.address().port(), program.tls().port()));
    let ca = pem("ca.pem");
    let got = curl(program.tls(), "/-/livez", &["--cacert", ca.to_str().expect("a path in UTF-8")]);
    assert!(got.starts_with("ok"), "{got}");
    let plain = Harvester::ask(program.address(), "GET /-/livez HTTP/1.0\r\n\r\n").rest();
    assert_eq!(plain.status, 200);
}
