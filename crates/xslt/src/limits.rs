//! The limits of transformations, each with its unit.

use std::time::Duration;

/// Longest text of a sheet, in bytes. The largest known sheets, for MARC, have 300 KB.
pub const SHEET_BYTES_MAX: usize = 4 << 20;
/// Longest payload that is transformed, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Maximum number of sheets that a worker keeps. With more, the oldest one is sent and compiled again when it is used.
pub(crate) const SHEETS_MAX: usize = 64;
/// Longest text of a failure, in bytes. libxslt may write more.
pub(crate) const FAILURE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of requests that one process has in flight.
pub(crate) const IN_FLIGHT_MAX: usize = 128;
/// Number of bytes that are encoded before the process reads them.
pub(crate) const WRITE_AHEAD_BYTES: usize = 1 << 20;
/// Maximum memory of the payloads of all requests that wait or are in flight, in KiB. Further requests wait.
pub(crate) const ADMITTED_KIB_MAX: usize = 64 << 10;
/// Longest time until a started process is ready.
pub(crate) const START_MAX: Duration = Duration::from_secs(20);
/// The pause before the third of several processes that end without a result. Each further pause is twice as long.
pub(crate) const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest pause between two processes.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(10);
/// After a process could not start, all requests fail for this time.
pub(crate) const OUTAGE: Duration = Duration::from_secs(10);

/// The limits of one transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XsltLimits {
    /// Longest time.
    pub time: Duration,
    /// Maximum memory in bytes, beside what the process needs without any sheet.
    pub memory_bytes: u64,
    /// Longest output, in bytes.
    pub output_bytes: usize,
}

impl Default for XsltLimits {
    /// 10 seconds, 256 MiB of memory, 8 MiB of output.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), memory_bytes: 256 << 20, output_bytes: 8 << 20 }
    }
}
