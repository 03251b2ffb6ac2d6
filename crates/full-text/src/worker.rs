//! The process of one PDF: it gives up its rights, and then becomes pdftotext.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::stdio::{dup2_stderr, stderr};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The features of the kernel that are used.
const LANDLOCK: ABI = ABI::V6;
/// Files that pdftotext may open at a time: libraries, encodings and the open pipes.
const OPEN_FILES_MAX: u64 = 64;
/// The first number of a file that is no standard one.
const FIRST_FILE: i32 = 3;
/// The exit code of a worker that cannot give up its rights, or cannot start pdftotext.
const EXIT_CODE: u8 = 1;
/// Where programs, libraries and the encodings of poppler are. Nothing else can be read, such as the data folder, tokens
/// and the configuration.
const READABLE: [&str; 8] =
    ["/usr", "/bin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/fonts"];

/// Becomes pdftotext, which reads a PDF from the standard input and writes its text to the standard output. The arguments
/// are the memory in bytes, the CPU time in seconds, the number of pages, and the file of the program.
///
/// It returns only if that fails, with the exit code. Then it has written a line to the standard error, which pdftotext does not
/// have: so no end of pdftotext looks like that.
pub fn run_worker(arguments: impl Iterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.to_str()?.parse::<u64>().ok());
    let (Some(memory_bytes), Some(secs), Some(pages), Some(program)) =
        (number(0), number(1), number(2), arguments.get(3).map(PathBuf::from))
    else {
        return EXIT_CODE;
    };
    let Ok(mut report) = take_stderr() else { return EXIT_CODE };
    let mut command = Command::new(&program);
    command.args(["-q", "-enc", "UTF-8", "-l", &pages.to_string(), "-", "-"]);
    end_first_without_memory();
    // Without oaimend, nobody reads the text.
    let ends_with_parent = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    if ends_with_parent && restrict(&program) && limit(memory_bytes, secs) {
        // It returns only the error, which nobody reads.
        let _ = command.exec();
    }
    // oaimend waits for this line. Without it, the process has ended too.
    let _ = report.write_all(b"pdftotext was not started\n");
    EXIT_CODE
}

/// The standard error, which ends when pdftotext starts. pdftotext has `/dev/null` in its place.
fn take_stderr() -> std::io::Result<File> {
    let report = fcntl_dupfd_cloexec(stderr(), FIRST_FILE)?;
    dup2_stderr(File::options().write(true).open("/dev/null")?)?;
    Ok(File::from(report))
}

/// Makes the kernel end this process before oaimend when the machine has no memory left. It may always be done, but a container
/// can be without `/proc`.
fn end_first_without_memory() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

fn limit(memory_bytes: u64, secs: u64) -> bool {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Nofile, OPEN_FILES_MAX),
        (Resource::Cpu, secs),
        (Resource::As, memory_bytes),
    ];
    limits.into_iter().all(|(resource, maximum)| {
        // The first signal of the CPU time says why the process ended.
        let hard = if resource == Resource::Cpu { maximum + 1 } else { maximum };
        setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(hard) }).is_ok()
    })
}

/// Denies the network, other processes, and all files but programs and libraries. Returns whether files are denied: a kernel
/// without that runs no pdftotext.
fn restrict(program: &Path) -> bool {
    let readable = READABLE.map(PathBuf::from).into_iter().chain([program.to_owned()]);
    let restricted = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .add_rules(path_beneath_rules(readable, AccessFs::from_read(LANDLOCK)))?
            .restrict_self()
    };
    restricted().is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}
