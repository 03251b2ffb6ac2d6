//! The worker alone. Its argument replaces the name of libxslt.

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    {
        let library = std::env::args().nth(1).map_or_else(oaimend_xslt::Library::default, |name| {
            oaimend_xslt::Library { names: vec![name.into()] }
        });
        match oaimend_xslt::run_worker(&library) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(_) => std::process::ExitCode::FAILURE,
        }
    }
    #[cfg(not(target_os = "linux"))]
    std::process::ExitCode::FAILURE
}
