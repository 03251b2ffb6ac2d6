//! The program `oaimend`. What it does stands in the library; this is its command line.

mod cli;

/// A page is a few dozen buffers of up to 100 KB, which come and go on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
