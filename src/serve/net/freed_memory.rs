//! Gives freed memory back to the system.
//!
//! The allocator of the program looks for memory that it can give back only when a thread allocates or frees, and each
//! thread only for its own. Without this module a server that is idle after a load keeps most of the memory of the load,
//! and so does one whose harvesters do not read.

use pingora_core::server::ShutdownWatch;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// Gives back the freed memory of all threads of this runtime again and again, until the service stops.
pub(super) async fn give_back_freed_memory(mut stopped: ShutdownWatch) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            _ = stopped.wait_for(|is_over| *is_over) => return,
        }
        let threads = Handle::current().metrics().num_workers();
        let round = Arc::new(Round::default());
        for _ in 0..threads {
            let round = Arc::clone(&round);
            tokio::spawn(async move {
                give_back_of_this_thread();
                round.wait_for(threads);
            });
        }
    }
}

/// One round of all threads.
#[derive(Default)]
struct Round {
    arrived: Mutex<usize>,
    is_complete: Condvar,
}

impl Round {
    /// Occupies this thread until so many have come, but not for long: an idle thread takes the next task of a round only
    /// while this one is occupied.
    fn wait_for(&self, threads: usize) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived += 1;
        if *arrived == threads {
            self.is_complete.notify_all();
        } else {
            let _ = self.is_complete.wait_timeout_while(arrived, OCCUPIED_MAX, |arrived| *arrived < threads);
        }
    }
}

/// Gives back memory that this thread has not used for the delay of the allocator.
#[allow(unsafe_code)]
fn give_back_of_this_thread() {
    // SAFETY: each thread may call the function at any time. It does nothing if the program has another allocator.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a thread is occupied in each round at most.
const OCCUPIED_MAX: Duration = Duration::from_millis(1);
