//! The limits of all renderings of a server: threads and memory.

use oaimend_pages::html::NoResponseReason;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of long pages that are rendered at once, each in a thread of its own. Others wait.
const RENDERINGS_MAX: usize = 2;
/// Longest XML that is rendered on the thread of its connection, in bytes. It takes about a millisecond.
const SHORT_BYTES_MAX: usize = 32 << 10;
/// Longest response that is collected, in bytes. The text of [`NoResponseReason::TooLarge`] names it.
const RESPONSE_BYTES_MAX: usize = 8 << 20;
/// Maximum memory of all responses that are collected at once, in KiB.
const MEMORY_KIB_MAX: usize = 64 << 10;

/// The limits of all renderings of a server.
#[derive(Debug)]
pub(crate) struct RenderLimits {
    threads: Semaphore,
    memory: Arc<Semaphore>,
}

/// The thread of a rendering panicked, or the server ends.
#[derive(Debug, thiserror::Error)]
#[error("the page could not be rendered")]
pub(crate) struct RenderingFailed;

impl Default for RenderLimits {
    fn default() -> Self {
        Self { threads: Semaphore::new(RENDERINGS_MAX), memory: Arc::new(Semaphore::new(MEMORY_KIB_MAX)) }
    }
}

impl RenderLimits {
    /// Renders from XML of this length: a long one in a thread of its own, so that other connections do not wait.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        xml_bytes: usize,
        render: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RenderingFailed> {
        if xml_bytes <= SHORT_BYTES_MAX {
            return Ok(render());
        }
        let _permit = self.threads.acquire().await.map_err(|_| RenderingFailed)?;
        tokio::task::spawn_blocking(render).await.map_err(|_| RenderingFailed)
    }

    /// Memory for a response, none at first.
    pub(crate) fn memory(&self) -> RenderMemory {
        RenderMemory { limit: Arc::clone(&self.memory), held: None }
    }
}

/// The memory of one response. Dropping it makes room for others.
#[derive(Debug)]
pub(crate) struct RenderMemory {
    limit: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl RenderMemory {
    /// Reserves memory for a response of this length.
    ///
    /// # Errors
    ///
    /// The response is too long, or other responses use the memory.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), NoResponseReason> {
        if bytes > RESPONSE_BYTES_MAX {
            return Err(NoResponseReason::TooLarge);
        }
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(bytes.div_ceil(1 << 10).saturating_sub(held)).unwrap_or(u32::MAX);
        if missing == 0 {
            return Ok(());
        }
        let more = Arc::clone(&self.limit).try_acquire_many_owned(missing);
        let more = more.map_err(|_| NoResponseReason::Busy)?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_all_responses_is_limited() {
        let limits = RenderLimits::default();
        let mut responses: Vec<RenderMemory> = (0..8).map(|_| limits.memory()).collect();
        for response in &mut responses {
            for bytes in [1, 1 << 20, RESPONSE_BYTES_MAX] {
                assert_eq!(response.reserve(bytes), Ok(()));
            }
            let too_large = NoResponseReason::TooLarge;
            assert_eq!(response.reserve(RESPONSE_BYTES_MAX + 1), Err(too_large));
        }
        let mut another = limits.memory();
        assert_eq!(another.reserve(1), Err(NoResponseReason::Busy));
        responses.pop();
        assert_eq!(another.reserve(RESPONSE_BYTES_MAX), Ok(()));
    }
}
