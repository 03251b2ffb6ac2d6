//! The threads that read and write pages on disk.
//!
//! The runtime of the server would use one thread for each reader and writer, and each thread has a heap of its own.
//! Here the others wait, each with one piece of a page.
//!
//! Several readers wait for the disk at the same time. Writers wait for memory and for the folder of their file, which
//! only one of them can change: more than one thread would wait for the others.

use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};

/// Maximum number of concurrent reads of pages.
const READERS_MAX: usize = 8;

static READERS: LazyLock<Runtime> = LazyLock::new(|| threads(READERS_MAX, "page reader"));
static WRITER: LazyLock<Runtime> = LazyLock::new(|| threads(1, "page writer"));

fn threads(count: usize, name: &str) -> Runtime {
    Builder::new_current_thread()
        .max_blocking_threads(count)
        .thread_name(name)
        .build()
        .expect("a runtime without drivers needs nothing of the system")
}

/// Runs a task that reads pages on disk. Its error is also that of a task that panics.
pub(super) async fn read_on_disk<T: Send + 'static>(
    task: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    READERS.spawn_blocking(task).await.map_err(std::io::Error::other).flatten()
}

/// Runs a task that writes or removes pages on disk. Its error is also that of a task that panics.
pub(super) async fn write_on_disk<T: Send + 'static>(
    task: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    WRITER.spawn_blocking(task).await.map_err(std::io::Error::other).flatten()
}
