//! The worker alone. Its argument replaces the name of libxslt.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use oaimend_xslt::{Library, run_worker};

    let library = std::env::args_os().nth(1).map_or_else(Library::default, |name| Library { name });
    // SAFETY: this is the only thread, and the process opens no file.
    #[allow(unsafe_code, reason = "the worker is the whole process")]
    let served = unsafe { run_worker(&library) };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
