//! The program `oaimend`. What it does stands in the library; this is its command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
