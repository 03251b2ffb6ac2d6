//! Requests to the admin listener of the `oaimend serve` that uses the data folder.
//!
//! The listener answers each request with one JSON document and a `Content-Length`, so one connection for each request
//! and blocking reads are enough.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::exit::Failure;

/// The admin listener of a running server.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdminClient {
    address: SocketAddr,
}

/// A response of the admin listener.
#[derive(Debug)]
pub(super) struct AdminResponse {
    pub(super) status: u16,
    pub(super) json: Value,
}

/// Longest response that is read, in bytes.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;
/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for bytes of a response.
const READ_MAX: Duration = Duration::from_secs(60);

impl AdminClient {
    /// A client of the listener with this address. A listener on all addresses is asked on loopback.
    pub(super) fn new(mut address: SocketAddr) -> Self {
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self { address }
    }

    /// Sends a request, such as `GET /-/mirror`.
    ///
    /// # Errors
    ///
    /// There is no response, or it is not JSON.
    pub(super) fn send(&self, method: &str, target: &str) -> Result<AdminResponse, Failure> {
        self.exchange(method, target).map_err(|error| {
            let what = format!("the admin listener at {} (admin.listen, --admin)", self.address);
            Failure::io("use", Path::new(&what), &error)
        })
    }

    fn exchange(&self, method: &str, target: &str) -> io::Result<AdminResponse> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_read_timeout(Some(READ_MAX))?;
        let address = self.address;
        let head = "Connection: close\r\nContent-Length: 0\r\n\r\n";
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{head}")?;
        let mut response = Vec::new();
        stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut response)?;
        parse(&response).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the response is not JSON"))
    }
}

fn parse(response: &[u8]) -> Option<AdminResponse> {
    let head_end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&response[..head_end]).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let json = serde_json::from_slice(&response[head_end + 4..]).ok()?;
    Some(AdminResponse { status, json })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_parsed_and_a_truncated_one_is_an_error() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        let response = parse(whole).expect("JSON");
        assert_eq!((response.status, &response.json["a"]), (202, &1.into()));
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn listener_on_all_addresses_is_asked_on_loopback() {
        let client = |text: &str| AdminClient::new(text.parse().expect("an address")).address.to_string();
        assert_eq!(client("0.0.0.0:8081"), "127.0.0.1:8081");
        assert_eq!(client("[::]:8081"), "[::1]:8081");
        assert_eq!(client("10.0.0.7:1"), "10.0.0.7:1");
    }
}
