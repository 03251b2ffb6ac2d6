//! The `connections` table: the limits on connections and requests of clients.

use super::file::Table;
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
    /// Takes the values of a `connections` table over.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        table.set_count("max", 1..=1_000_000, &mut self.connections_max);
        table.set_count("per_client_max", 1..=1_000_000, &mut self.per_client_max);
        table.set_seconds("idle_timeout_secs", 1..=3600, &mut self.idle_timeout);
        table.set_seconds("request_timeout_secs", 1..=3600, &mut self.request_timeout);
        table.set_seconds("write_timeout_secs", 1..=3600, &mut self.write_timeout);
        table.set_seconds("stop_timeout_secs", 1..=3600, &mut self.stop_timeout);
        // pingora accepts targets below 64 KiB and headers below 1 MiB.
        table.set_count("uri_bytes_max", 8192..=60_000, &mut self.uri_bytes_max);
        table.set_count("header_bytes_max", 16_384..=524_288, &mut self.header_bytes_max);
        table.set_count("form_bytes_max", 1024..=16_777_216, &mut self.form_bytes_max);
        table.finish();
    }
}
