//! The interface to the worker.

use crate::driver::{Driver, Task};
use crate::failure::{FailureKind, SheetFailure};
use crate::limits::{ADMITTED_KIB_MAX, IN_FLIGHT_MAX, XsltLimits};
use crate::payload::{check_payload, element_of};
use crate::process::WorkerProgram;
use crate::sheet::Sheet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Transforms payloads in a worker process, which it starts for the first one. Clones share the process.
///
/// Requests are processed in their order, one at a time, and sent ahead. So callers that start several transformations
/// before they wait for the first one get the speed of libxslt.
#[derive(Clone)]
pub struct XsltWorker(Arc<Shared>);

struct Shared {
    program: WorkerProgram,
    limits: XsltLimits,
    /// The way to the task that owns the process. Its runtime may end before the program does, as in tests.
    driver: Mutex<Option<mpsc::Sender<Task>>>,
    /// One permit for each KiB of a payload.
    admitted: Arc<Semaphore>,
}

impl XsltWorker {
    /// Starts nothing yet.
    pub fn new(program: WorkerProgram, limits: XsltLimits) -> Self {
        let admitted = Arc::new(Semaphore::new(ADMITTED_KIB_MAX));
        Self(Arc::new(Shared { program, limits, driver: Mutex::default(), admitted }))
    }

    /// The element that a sheet makes of a payload, which is an element with its own namespace declarations. It waits while
    /// the payloads of other callers take 64 MiB. Dropping the future before its request was sent withdraws it.
    ///
    /// # Errors
    ///
    /// [`SheetFailure::scope`] says whose failure it is.
    pub async fn transform(&self, sheet: &Sheet, payload: Vec<u8>) -> Result<Vec<u8>, SheetFailure> {
        check_payload(&payload)?;
        let mut output = self.request(sheet, Some(payload)).await?;
        let element = element_of(&output)?;
        output.truncate(element.end);
        output.drain(..element.start);
        Ok(output)
    }

    /// Whether libxslt compiles a sheet.
    ///
    /// # Errors
    ///
    /// [`FailureKind::SheetInvalid`] with the messages of libxslt, and [`FailureKind::Unavailable`].
    pub async fn check(&self, sheet: &Sheet) -> Result<(), SheetFailure> {
        self.request(sheet, None).await.map(drop)
    }

    async fn request(&self, sheet: &Sheet, payload: Option<Vec<u8>>) -> Result<Vec<u8>, SheetFailure> {
        let stopped = |_| SheetFailure::new(FailureKind::Unavailable, "the server stops");
        let kib = u32::try_from(1 + payload.as_ref().map_or(0, Vec::len) / 1024).unwrap_or(u32::MAX);
        let admission = Arc::clone(&self.0.admitted).acquire_many_owned(kib).await;
        let admission = admission.expect("the semaphore is never closed");
        let (reply, result) = oneshot::channel();
        let task = Task { sheet: sheet.clone(), payload, reply, is_repeated: false, admission };
        self.driver().send(task).await.map_err(|_| stopped(()))?;
        result.await.map_err(|_| stopped(()))?
    }

    /// The way to the driver, which runs in the runtime of its first caller.
    fn driver(&self) -> mpsc::Sender<Task> {
        let mut driver = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner);
        match &*driver {
            Some(sender) if !sender.is_closed() => sender.clone(),
            _ => {
                let (sender, requests) = mpsc::channel(IN_FLIGHT_MAX);
                tokio::spawn(Driver::new(self.0.program.clone(), self.0.limits, requests).run());
                driver.insert(sender).clone()
            }
        }
    }
}

impl fmt::Debug for XsltWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { program, limits, .. } = &*self.0;
        f.debug_struct("XsltWorker").field("program", program).field("limits", limits).finish_non_exhaustive()
    }
}
