//! Why a change cannot be saved. The change stays in effect in memory.

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The store was closed because another process has taken over.
    #[error("another oaimend has taken the data folder over")]
    Closed,
    /// The database failed.
    #[error("{0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that saved it panicked.
    #[error("the database stopped: {0}")]
    Stopped(String),
}
