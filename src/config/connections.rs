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
        count(&mut table, "max", 1..=1_000_000, &mut self.connections_max);
        count(&mut table, "per_client_max", 1..=1_000_000, &mut self.per_client_max);
        seconds(&mut table, "idle_timeout_secs", &mut self.idle_timeout);
        seconds(&mut table, "request_timeout_secs", &mut self.request_timeout);
        seconds(&mut table, "write_timeout_secs", &mut self.write_timeout);
        seconds(&mut table, "stop_timeout_secs", &mut self.stop_timeout);
        // pingora reads targets below 64 KiB and headers below 1 MiB.
        count(&mut table, "uri_bytes_max", 8192..=60_000, &mut self.uri_bytes_max);
        count(&mut table, "header_bytes_max", 16_384..=524_288, &mut self.header_bytes_max);
        count(&mut table, "form_bytes_max", 1024..=16_777_216, &mut self.form_bytes_max);
        table.finish();
    }
}

fn count(
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: std::ops::RangeInclusive<u64>,
    limit: &mut usize,
) {
    if let Some(count) = table.integer(key, range).and_then(|count| usize::try_from(count).ok()) {
        *limit = count;
    }
}

fn seconds(table: &mut Table<'_, '_>, key: &'static str, limit: &mut Duration) {
    if let Some(seconds) = table.integer(key, 1..=3600) {
        *limit = Duration::from_secs(seconds);
    }
}
