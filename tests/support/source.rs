//! A data provider on loopback that misbehaves as it is told to.
//!
//! One thread a connection, one request a connection. What was asked is kept,
//! so that a test can also say what must not have been asked.
#![allow(dead_code, reason = "each test binary uses its part")]

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A request as the source got it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// GET or POST.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The headers, names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// The form of a POST.
    pub(crate) form: String,
}

/// What the source does with a request.
pub(crate) struct Reply {
    head: Vec<u8>,
    acts: Vec<Act>,
    reset: bool,
}

enum Act {
    Send(Vec<u8>),
    /// Waits until the test says so, or is over.
    Wait(Receiver<()>),
    /// Says nothing more until the source is dropped.
    Hang,
    /// Says nothing more until the other side gives up, and tells somebody so over and over.
    Stall(Box<dyn Fn() + Send>),
}

impl Reply {
    /// A status and headers, one a line, and nothing else.
    pub(crate) fn new(status: u16, headers: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\n");
        for header in headers.lines().map(str::trim).filter(|header| !header.is_empty()) {
            head.push_str(header);
            head.push_str("\r\n");
        }
        Self { head: head.into_bytes(), acts: Vec::new(), reset: false }
    }

    /// A whole answer with its length.
    pub(crate) fn whole(status: u16, headers: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self::new(status, &format!("{headers}\nContent-Length: {}", body.len())).send(body)
    }

    /// A page of XML.
    pub(crate) fn xml(body: impl Into<Vec<u8>>) -> Self {
        Self::whole(200, "Content-Type: text/xml", body)
    }

    /// A redirect.
    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::whole(status, &format!("Location: {to}"), "<html>moved</html>")
    }

    /// Bytes that are no HTTP.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: bytes.into(), acts: Vec::new(), reset: false }
    }

    pub(crate) fn send(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.acts.push(Act::Send(bytes.into()));
        self
    }

    pub(crate) fn wait(mut self, go: Receiver<()>) -> Self {
        self.acts.push(Act::Wait(go));
        self
    }

    pub(crate) fn hang(mut self) -> Self {
        self.acts.push(Act::Hang);
        self
    }

    /// Says nothing more until the other side gives up; `tell` makes it lose its patience.
    pub(crate) fn stall(mut self, tell: impl Fn() + Send + 'static) -> Self {
        self.acts.push(Act::Stall(Box::new(tell)));
        self
    }

    /// Ends with a reset instead of a close.
    pub(crate) fn reset(mut self) -> Self {
        self.reset = true;
        self
    }

    fn play(
        self,
        stream: &mut impl Write,
        is_gone: impl Fn() -> bool,
        over: &(Mutex<bool>, Condvar),
    ) -> std::io::Result<()> {
        stream.write_all(&self.head)?;
        if self.head.starts_with(b"HTTP/1.1 ") {
            stream.write_all(b"\r\n")?;
        }
        for act in self.acts {
            match act {
                Act::Send(bytes) => {
                    stream.write_all(&bytes)?;
                    stream.flush()?;
                }
                Act::Wait(go) => {
                    let _ = go.recv();
                }
                Act::Stall(tell) => {
                    while !is_gone() && !*over.0.lock().expect("no test panics while it holds this") {
                        tell();
                    }
                }
                Act::Hang => {
                    let over_now = over.0.lock().expect("no test panics while it holds this");
                    drop(over.1.wait_while(over_now, |over| !*over));
                }
            }
        }
        Ok(())
    }
}

/// The source. Dropping it ends its threads.
pub(crate) struct Source {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
}

/// What the threads of a source share.
#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    over: (Mutex<bool>, Condvar),
}

impl Shared {
    fn reply(&self, script: &impl Fn(usize, &Asked) -> Reply, asked: Asked) -> Reply {
        let number = {
            let mut log = self.asked.lock().expect("no test panics while it holds this");
            log.push(asked.clone());
            log.len() - 1
        };
        script(number, &asked)
    }

    fn is_over(&self) -> bool {
        *self.over.0.lock().expect("no test panics while it holds this")
    }
}

impl Source {
    /// Answers the n-th request (from 0) with what `script` says.
    pub(crate) fn start(script: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen("http", move |stream, shared| {
            let Some(asked) = peek_request(&stream) else { return };
            let reply = shared.reply(&script, asked);
            if !reply.reset {
                read_request(&mut &stream);
            }
            // With a request left unread, closing the socket resets the connection.
            let is_gone = || {
                // A little patience: what was sent has to arrive first.
                let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
                match stream.peek(&mut [0; 1]) {
                    Ok(count) => count == 0,
                    Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                }
            };
            let _ = reply.play(&mut &stream, is_gone, &shared.over);
        })
    }

    /// The same in TLS, with the certificate in tests/support/tls.
    pub(crate) fn start_tls(script: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let config = Arc::new(tls_config());
        Self::listen("https", move |stream, shared| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).expect("the config is whole");
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let Some(asked) = asked_in(&read_request(&mut stream)) else { return };
            let reply = shared.reply(&script, asked);
            if reply.play(&mut stream, || false, &shared.over).is_ok() {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        })
    }

    fn listen(scheme: &'static str, serve: impl Fn(TcpStream, &Shared) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let (serve, to_serve) = (Arc::new(serve), Arc::clone(&shared));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if to_serve.is_over() {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (serve, shared) = (Arc::clone(&serve), Arc::clone(&to_serve));
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, scheme, shared }
    }

    /// Answers every request with the same page of XML.
    pub(crate) fn page(body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self::start(move |_, _| Reply::xml(body.clone()))
    }

    /// Its base URL.
    pub(crate) fn base_url(&self) -> String {
        format!("{}://{}/oai", self.scheme, self.address)
    }

    /// All it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no test panics while it holds this").clone()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        *self.shared.over.0.lock().expect("no test panics while it holds this") = true;
        self.shared.over.1.notify_all();
        // Wakes the listening thread, which sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn peek_request(stream: &TcpStream) -> Option<Asked> {
    let mut bytes = vec![0; 64 << 10];
    let text = loop {
        let count = stream.peek(&mut bytes).ok().filter(|count| *count > 0)?;
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if is_whole(&text) {
            break text;
        }
        std::thread::yield_now();
    };
    asked_in(&text)
}

fn asked_in(text: &str) -> Option<Asked> {
    let (head, form) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let (method, rest) = lines.next()?.split_once(' ')?;
    let target = rest.split(' ').next()?.to_owned();
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Some(Asked { method: method.to_owned(), target, headers, form: form.to_owned() })
}

/// Whether the header of a request is there, and as much of a form as it announces.
fn is_whole(text: &str) -> bool {
    let Some((head, form)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    form.len() >= length.unwrap_or(0)
}

fn read_request(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !is_whole(&String::from_utf8_lossy(&text)) && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A certificate for 127.0.0.1 and localhost, signed by tests/support/tls/ca.pem.
fn tls_config() -> rustls::ServerConfig {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/cert.pem"));
    let chain = chain.collect::<Result<_, _>>().expect("the file holds certificates");
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/key.pem")).expect("the file holds a key");
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for them")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they belong together")
}

/// An answer of the proxy, read from the wire.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    /// The headers, names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// The body, chunks joined.
    pub(crate) body: Vec<u8>,
    /// Whether the body came to the end that its framing announced.
    pub(crate) whole: bool,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection of a harvester.
pub(crate) struct Harvester(BufReader<TcpStream>);

impl Harvester {
    /// Sends a request as it is written.
    pub(crate) fn ask(address: SocketAddr, request: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("the proxy listens");
        stream.write_all(request.as_bytes()).expect("the proxy reads");
        Self(BufReader::new(stream))
    }

    /// Reads the header of the answer.
    pub(crate) fn head(&mut self) -> Got {
        let mut headers = HashMap::new();
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Got {
            status: status.unwrap_or_else(|| panic!("no status in {line:?}")),
            headers,
            body: Vec::new(),
            whole: false,
        }
    }

    /// Reads one chunk; `None` when the transfer breaks off, empty at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line();
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// Sends a further request on the same connection.
    pub(crate) fn again(&mut self, request: &str) {
        self.0.get_mut().write_all(request.as_bytes()).expect("the proxy reads");
    }

    /// Reads the whole answer, which may be the last one of the connection.
    pub(crate) fn rest(mut self) -> Got {
        self.whole_body()
    }

    /// Reads the whole answer to one request.
    pub(crate) fn whole_body(&mut self) -> Got {
        let mut got = self.head();
        if got.header("transfer-encoding") == "chunked" {
            while let Some(chunk) = self.chunk() {
                if chunk.is_empty() {
                    got.whole = true;
                    break;
                }
                got.body.extend(chunk);
            }
        } else {
            let length: usize = got.header("content-length").parse().unwrap_or_default();
            let read = (&mut self.0).take(length as u64).read_to_end(&mut got.body);
            got.whole = read.is_ok() && got.body.len() == length;
        }
        got
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        // A reset reads as an empty line, which no test takes for an answer.
        let _ = self.0.read_until(b'\n', &mut line);
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }
}

/// Asks for a path with GET and HTTP/1.1.
pub(crate) fn fetch(address: SocketAddr, path: &str) -> Got {
    fetch_with(address, path, "")
}

/// The same with headers, each with its line end.
pub(crate) fn fetch_with(address: SocketAddr, path: &str, headers: &str) -> Got {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
    Harvester::ask(address, &request).rest()
}

/// A valid page of records, each with its own text.
pub(crate) fn page_of(records: usize) -> String {
    let mut xml = String::from(concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" ",
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" ",
        "xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n",
        "<responseDate>2026-01-02T03:04:05Z</responseDate>\n",
        "<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://source.example/oai</request>\n",
        "<ListRecords>\n",
    ));
    for number in 0..records {
        xml.push_str(&record(number));
    }
    xml.push_str("</ListRecords>\n</OAI-PMH>\n");
    xml
}

/// The same as the last page of a list of several.
pub(crate) fn last_page_of(records: usize) -> String {
    page_of(records).replace("</ListRecords>", "<resumptionToken/></ListRecords>")
}

/// One record of such a page.
pub(crate) fn record(number: usize) -> String {
    format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2020-01-01</datestamp></header>\
         <metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>Title {number}</dc:title></oai_dc:dc></metadata></record>\n"
    )
}
