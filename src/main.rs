//! The program `oaimend`: the command line in front of the library.

mod cli;

/// Pages need a few dozen buffers of up to 100 KB, allocated and freed on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
