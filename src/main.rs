//! The program `oaimend`: the command line in front of the library.

// The rust-version of the package is that of the core. The dependencies of the program need a newer one.
#![allow(clippy::incompatible_msrv)]

mod allocator;
mod cli;

fn main() -> std::process::ExitCode {
    allocator::configure();
    cli::run()
}
