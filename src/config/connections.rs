//! The `connections` table: the limits on connections and requests of clients.

use super::keys::{Keys, declare, seconds, whole};
use std::time::Duration;

/// Limits on the connections of clients, on their requests, and on stopping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections of all clients together.
    pub connections_max: usize,
    /// Connections of one address; loopback and trusted proxies are exempt.
    pub per_client_max: usize,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may take to send the header of a request, and again its form.
    pub request_timeout: Duration,
    /// How long a client may leave a part of a response unread.
    pub write_timeout: Duration,
    /// The longest request target, in bytes.
    pub uri_bytes_max: usize,
    /// The longest header of a request, its request line included, in bytes.
    pub header_bytes_max: usize,
    /// The longest form of a POST request, in bytes.
    pub form_bytes_max: usize,
    /// How long stopping waits for requests in flight.
    pub stop_timeout: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            connections_max: 512,
            per_client_max: 256,
            idle_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(120),
            uri_bytes_max: 16 << 10,
            header_bytes_max: 64 << 10,
            form_bytes_max: 64 << 10,
            stop_timeout: Duration::from_secs(30),
        }
    }
}

impl Connections {
    /// The keys of the table.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// Maximum number of open connections. Further ones get a 503, and beyond 64 more no response at all.
            max: whole(1..=1_000_000) => self.connections_max,
            /// Maximum number of open connections of one client. Further ones get a 503. Loopback and trusted
            /// proxies are exempt.
            per_client_max: whole(1..=1_000_000) => self.per_client_max,
            /// How long a connection may be open without a request. Then it is closed.
            idle_timeout_secs: seconds(1..=3600) => self.idle_timeout,
            /// How long a client may take for the header of a request, again for its body, and for a TLS handshake,
            /// in seconds. Then it gets a 408.
            request_timeout_secs: seconds(1..=3600) => self.request_timeout,
            /// How long a client may read nothing of a response. Then the response is aborted.
            write_timeout_secs: seconds(1..=3600) => self.write_timeout,
        }
        // pingora accepts targets below 64 KiB and headers below 1 MiB.
        declare! { keys:
            /// Maximum length of a request target. A longer one gets a 414.
            uri_bytes_max: whole(8192..=60_000) => self.uri_bytes_max,
            /// Maximum length of the header of a request with its first line. A longer one, or one with
            /// more than 254 fields, gets a 431. For HTTP/2 the limit is always 65,536.
            header_bytes_max: whole(16_384..=524_288) => self.header_bytes_max,
            /// Maximum length of the body of a request. A longer one gets a 413.
            form_bytes_max: whole(1024..=16_777_216) => self.form_bytes_max,
            /// How long stopping waits for responses in flight: after SIGTERM, or after SIGQUIT when
            /// another process has taken over.
            stop_timeout_secs: seconds(1..=3600) => self.stop_timeout,
        }
    }
}
