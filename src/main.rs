//! The program `oaimend`: the command line in front of the library.

mod allocator;
mod cli;

fn main() -> std::process::ExitCode {
    allocator::configure();
    cli::run()
}
