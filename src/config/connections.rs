//! The `connections` table: the bounds on what a client may cost before it is
//! answered and while it is.

use super::file::Table;
use std::time::Duration;

/// Bounds on the connections of clients, on their requests, and on the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Most connections of all clients together.
    pub connections_max: usize,
    /// Most connections of one address, except loopback and trusted proxies.
    pub per_client_max: usize,
    /// Longest that a connection stays open without a request.
    pub idle_timeout: Duration,
    /// Longest that a client may take to send the header of a request, and again its form.
    pub request_timeout: Duration,
    /// Longest that a client may leave a piece of an answer unread.
    pub write_timeout: Duration,
    /// Longest request target, in bytes.
    pub uri_bytes_max: usize,
    /// Longest header of a request, its first line included, in bytes.
    pub header_bytes_max: usize,
    /// Longest form of a POST, in bytes.
    pub form_bytes_max: usize,
    /// Longest wait for what is in flight when the program ends.
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
    /// Takes over what a `connections` table says.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        table.count("max", 1..=1_000_000, &mut self.connections_max);
        table.count("per_client_max", 1..=1_000_000, &mut self.per_client_max);
        table.seconds("idle_timeout_secs", 1..=3600, &mut self.idle_timeout);
        table.seconds("request_timeout_secs", 1..=3600, &mut self.request_timeout);
        table.seconds("write_timeout_secs", 1..=3600, &mut self.write_timeout);
        table.seconds("stop_timeout_secs", 1..=3600, &mut self.stop_timeout);
        // pingora reads targets below 64 KiB and headers below 1 MiB.
        table.count("uri_bytes_max", 8192..=60_000, &mut self.uri_bytes_max);
        table.count("header_bytes_max", 16_384..=524_288, &mut self.header_bytes_max);
        table.count("form_bytes_max", 1024..=16_777_216, &mut self.form_bytes_max);
        table.finish();
    }
}
