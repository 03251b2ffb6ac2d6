//! Requests to the admin listener of the `oaimend serve` that uses the data folder.
//!
//! One connection for each request and blocking reads are enough. A body has a `Content-Length`, or comes in chunks.

use std::fmt::{self, Display};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use oaimend::config::Config;
use oaimend_files::data_dir::{DataDirLock, LockOwner};

use super::exit::Failure;

/// The admin listener of a running server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdminClient {
    address: SocketAddr,
}

/// A response of the admin listener.
pub(crate) struct AdminResponse {
    pub(crate) status: u16,
    pub(crate) body: Body<BufReader<TcpStream>>,
}

/// Longest line of a head or between two chunks, in bytes.
const HEAD_LINE_BYTES_MAX: u64 = 64 << 10;
/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for bytes of a response.
const READ_MAX: Duration = Duration::from_secs(60);

/// The address of a listener on this machine: loopback for all addresses.
pub(crate) fn on_this_machine(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl AdminClient {
    /// A client of the listener with this address. A listener on all addresses is asked on loopback.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address: on_this_machine(address) }
    }

    /// A client of the server that has locked the data folder. It names its listener itself, because another server may
    /// listen at the address of the configuration.
    ///
    /// # Errors
    ///
    /// Its admin listener is off, or the folder is locked by a command.
    pub(crate) fn of_server(config: &Config) -> Result<Self, Failure> {
        let data = config.data.display();
        match DataDirLock::admin_listener_of(&config.data) {
            LockOwner::Server(address) => Ok(Self::new(address)),
            LockOwner::ServerWithoutListener => Err(Failure::in_use(format!(
                "a running oaimend uses the data folder {data}, and its admin listener is off; set admin.listen, or \
                 stop it first"
            ))),
            LockOwner::Other => Err(Failure::in_use(format!(
                "another command of oaimend uses the data folder {data}, or a server that is starting; try again when it \
                 ends, or name a server with --admin"
            ))),
        }
    }

    /// Sends a request, such as `GET /-/mirror`, and reads the head of the response.
    ///
    /// # Errors
    ///
    /// There is no response.
    pub(crate) fn send(&self, method: &str, target: &str) -> Result<AdminResponse, Failure> {
        let received = self.connect(method, target).and_then(|stream| read_head(BufReader::new(stream)));
        let (status, body) =
            received.map_err(|error| Failure::io("use", Path::new(&self.to_string()), &error))?;
        Ok(AdminResponse { status, body })
    }

    fn connect(&self, method: &str, target: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_read_timeout(Some(READ_MAX))?;
        let address = self.address;
        let head = "Connection: close\r\nContent-Length: 0\r\n\r\n";
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{head}")?;
        Ok(stream)
    }
}

impl Display for AdminClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the admin listener at {} (admin.listen, --admin)", self.address)
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.to_owned())
}

/// The body of a response. A truncated one is an error.
#[derive(Debug)]
pub(crate) struct Body<R> {
    reader: R,
    /// The bytes that are left: of the current chunk, or of the whole body.
    left: u64,
    is_chunked: bool,
    is_at_end: bool,
}

/// Reads the head of a response; returns its status and its body.
fn read_head<R: BufRead>(mut reader: R) -> io::Result<(u16, Body<R>)> {
    let status = read_line(&mut reader)?;
    let status = status.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| invalid("the response is not HTTP"))?;
    let (mut is_chunked, mut length) = (false, 0);
    loop {
        let line = read_line(&mut reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("the response is not HTTP"))?;
        match name.to_ascii_lowercase().as_str() {
            "transfer-encoding" => is_chunked = true,
            "content-length" => {
                length =
                    value.trim().parse().map_err(|_| invalid("the length of the response is no number"))?;
            }
            _ => {}
        }
    }
    let left = if is_chunked { 0 } else { length };
    Ok((status, Body { reader, left, is_chunked, is_at_end: false }))
}

/// Reads a line without its end.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(HEAD_LINE_BYTES_MAX).read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(text) => Ok(text.to_owned()),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.is_chunked && !self.is_at_end {
            let size = read_line(&mut self.reader)?;
            let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
            self.left = size.map_err(|_| invalid("the length of a chunk is no number"))?;
            if self.left == 0 {
                self.is_at_end = true;
                read_line(&mut self.reader)?;
            }
        }
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let length = (&mut self.reader).take(self.left).read(buffer)?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= length as u64;
        if self.left == 0 && self.is_chunked {
            read_line(&mut self.reader)?;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status and the body of a response.
    fn read(response: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let (status, mut body) = read_head(response)?;
        let mut text = Vec::new();
        body.read_to_end(&mut text)?;
        Ok((status, text))
    }

    #[test]
    fn response_is_read_and_a_truncated_one_is_an_error() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 7\r\n\r\n{\"a\":1}".as_slice();
        let chunks = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
        for response in [whole, chunks] {
            let (status, text) = read(response).expect("whole");
            assert_eq!((status, text.as_slice()), (202, b"{\"a\":1}".as_slice()));
            for end in 0..response.len() {
                assert!(read(&response[..end]).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn listener_on_all_addresses_is_reached_on_loopback() {
        let client = |text: &str| AdminClient::new(text.parse().expect("an address")).address.to_string();
        assert_eq!(client("0.0.0.0:8081"), "127.0.0.1:8081");
        assert_eq!(client("[::]:8081"), "[::1]:8081");
        assert_eq!(client("10.0.0.7:1"), "10.0.0.7:1");
    }
}
