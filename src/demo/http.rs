//! Minimal HTTP for the demonstration: a server for one path and a client for one page.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use url::{Url, form_urlencoded};

/// The longest request line, header line and form, in bytes.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The number of header lines that are read.
const HEADERS_MAX: usize = 64;
/// The timeout for one read or write.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// The arguments of a request by name; a repeated argument has its last value.
pub(super) type Arguments = HashMap<String, String>;

/// Serves `answer` at `path` as long as the listener exists. While `is_stopped` is set, connections are closed.
pub(super) fn serve<A>(listener: &TcpListener, path: &'static str, is_stopped: &AtomicBool, answer: A)
where
    A: Fn(&Arguments) -> Vec<u8> + Send + Sync + 'static,
{
    let answer = Arc::new(answer);
    for stream in listener.incoming().flatten() {
        if is_stopped.load(Ordering::SeqCst) {
            continue;
        }
        let answer = Arc::clone(&answer);
        // A client that disconnects early needs no treatment.
        let _ = thread::Builder::new().spawn(move || handle_connection(&stream, path, &*answer));
    }
}

/// Reads one request and sends the response.
fn handle_connection(
    stream: &TcpStream,
    path: &str,
    answer: &dyn Fn(&Arguments) -> Vec<u8>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    let request = read_line(&mut reader)?;
    let mut form_length = 0;
    for _ in 0..HEADERS_MAX {
        let header = read_line(&mut reader)?;
        match header.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                form_length = value.trim().parse().unwrap_or(0).min(LINE_BYTES_MAX);
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (requested, query) = target.split_once('?').unwrap_or((target, ""));
    let mut form = Vec::new();
    if method == "POST" {
        reader.take(form_length).read_to_end(&mut form)?;
    }
    let in_query = form_urlencoded::parse(query.as_bytes()).into_owned();
    let arguments = in_query.chain(form_urlencoded::parse(&form).into_owned()).collect();
    let (status, kind, body) = if requested == path {
        ("200 OK", "text/xml; charset=UTF-8", answer(&arguments))
    } else {
        ("404 Not Found", "text/plain", format!("The base URL ends in {path}\n").into_bytes())
    };
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method != "HEAD" {
        out.write_all(&body)?;
    }
    Ok(())
}

/// One line without its end.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(LINE_BYTES_MAX).read_line(&mut line)?;
    line.truncate(line.trim_end().len());
    Ok(line)
}

/// A response as received.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Fetches a page on loopback, whatever its status.
///
/// # Errors
///
/// `url` is not an http URL with a port, or the exchange fails.
pub fn fetch(url: &str) -> io::Result<Fetched> {
    let parsed = Url::parse(url).map_err(io::Error::other)?;
    let (Some(host), Some(port)) = (parsed.host_str(), parsed.port()) else {
        return Err(io::Error::other(format!("{url} names no host and port")));
    };
    let mut stream = TcpStream::connect((host, port))?;
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    let query = parsed.query().unwrap_or_default();
    // HTTP/1.0, so that the body comes in one piece and ends with the connection.
    write!(
        stream,
        "GET {}?{query} HTTP/1.0\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n",
        parsed.path()
    )?;
    let mut head = Vec::new();
    stream.read_to_end(&mut head)?;
    let end = head.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other(format!("{url} sent no HTTP response")))?;
    let body = head.split_off(end + 4);
    Ok(Fetched { head: String::from_utf8_lossy(&head).into_owned(), body })
}
