//! The threads that read and write pages on disk.
//!
//! The runtime of the server would use one thread for each reader and writer, and each thread has a heap of its own.
//! Here the others wait, each with one piece of a page.

use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};

/// Most concurrent reads and writes of pages.
pub(super) const THREADS_MAX: usize = 8;

static THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread()
        .max_blocking_threads(THREADS_MAX)
        .thread_name("pages on disk")
        .build()
        .expect("a runtime without drivers needs nothing of the system")
});

/// Runs a task that blocks on the disk. Its error is also that of a task that panics.
pub(super) async fn on_disk<T: Send + 'static>(
    task: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    THREADS.spawn_blocking(task).await.map_err(std::io::Error::other).flatten()
}
