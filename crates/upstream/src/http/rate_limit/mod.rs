//! Limits requests to a host: how many lists at a time, how soon one request follows another, and who is next.
//!
//! | file | content |
//! |---|---|
//! | `fair_queue` | the order of the requests that wait |
//! | `pace` | the time of the next request |
//! | `host_limiter` | permits: a request waits until it is the first one and its time has come |
//!
//! The concurrent lists and the configured gap are limits of a host and port, because many repositories share a server.
//! So is a gap that follows failed connections and status 429. A gap after other responses belongs to the repository
//! that gave them: one repository that is down for an hour does not stop its neighbours.

mod fair_queue;
mod host_limiter;
mod pace;

pub use fair_queue::RequestedBy;
pub(crate) use host_limiter::HostPermit;
pub use host_limiter::LimitUsage;
pub(super) use host_limiter::SourceLimiter;
