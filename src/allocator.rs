//! The allocator of the program.
//!
//! Pages need a few dozen buffers of up to 100 KB, allocated and freed on several threads. The system allocator of glibc
//! keeps an arena for each thread, which grows to several times the memory in use.

/// All memory of the program comes from mimalloc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long freed memory stays with the program before the system gets it back, in milliseconds.
///
/// The default is 10 ms, less than the time between two commits of a harvest. The kernel then zeroes the same memory
/// again for each commit, which took 14 % of the CPU time of a harvest.
const PURGE_DELAY_MILLIS: std::ffi::c_long = 1_000;
/// `mi_option_purge_delay` of `mimalloc.h`, which the crate does not declare.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Sets the options, except those that the environment sets. The caller has started no thread yet.
///
/// Huge pages are off: the heap of each thread would begin with 2 MiB, and 60 slow clients needed 1.2 GiB in place of
/// 0.2 GiB. They save no measurable time.
#[allow(unsafe_code)]
pub(crate) fn configure() {
    // An older kernel refuses, and works as before.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // SAFETY: the function is not thread safe, and there is only one thread. The option exists in all versions of
    // mimalloc since 2.0.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MILLIS) }
}
