//! Gives freed memory back to the system.
//!
//! The allocator of the program looks for memory that it can give back only when a thread allocates or frees, and each
//! thread only for its own. Without this module a server that is idle after a load keeps most of the memory of the load,
//! and so does one whose harvesters do not read.

use pingora_core::server::ShutdownWatch;
use std::time::Duration;
use tokio::runtime::Handle;

/// Gives back the freed memory of all threads of this runtime again and again, until the service stops.
pub(super) async fn give_back_freed_memory(mut stopped: ShutdownWatch) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            _ = stopped.wait_for(|is_over| *is_over) => return,
        }
        for _ in 0..Handle::current().metrics().num_workers() {
            tokio::spawn(async {
                give_back_of_this_thread();
                // An idle thread takes the next of these tasks only while this one is occupied.
                std::thread::sleep(OCCUPIED);
            });
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
/// How long a thread is occupied in each round.
const OCCUPIED: Duration = Duration::from_millis(1);
