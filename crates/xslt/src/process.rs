//! The process of the worker: its start, and how it ended.

use crate::failure::{FailureKind, SheetFailure};
use crate::limits::{FAILURE_BYTES_MAX, START_MAX, XsltLimits};
use crate::message::{HEAD_BYTES, MEMORY_EXIT_CODE, Request, Response, read_head};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Longest wait for the end of a process whose pipes are closed.
const END_MAX: Duration = Duration::from_secs(2);
/// The signal of a process that used its CPU time, on Linux.
#[cfg(unix)]
const SIGXCPU: i32 = 24;

/// The command of oaimend that runs [`run_worker`](crate::run_worker).
pub const COMMAND: &str = "xslt-worker";

/// The program that runs [`run_worker`](crate::run_worker).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl WorkerProgram {
    /// This program with one argument, the name of the command. It is the running version, also after an upgrade has
    /// replaced the file.
    pub fn this_program(command: &str) -> Self {
        let running = if cfg!(target_os = "linux") {
            Ok(PathBuf::from("/proc/self/exe"))
        } else {
            std::env::current_exe()
        };
        Self { program: running.unwrap_or_default(), arguments: vec![command.into()] }
    }
}

/// A process that is ready for requests.
pub(crate) struct Process {
    child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    /// Whether Landlock keeps it from files.
    pub(crate) has_landlock: bool,
    /// The version of its libxslt.
    pub(crate) version: String,
}

impl Process {
    /// Starts a process and waits until it has no rights any more. The error says why there is none, and what to do.
    pub(crate) async fn start(program: &WorkerProgram, limits: &XsltLimits) -> Result<Self, String> {
        let mut command = Command::new(&program.program);
        command
            .args(&program.arguments)
            // Variables lead libraries to other files, such as catalogs and plugins. Only the loader needs one.
            .env_clear()
            .envs(std::env::var_os("LD_LIBRARY_PATH").map(|path| ("LD_LIBRARY_PATH", path)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        // Ctrl-C in a terminal is for the server, which answers its requests first.
        #[cfg(unix)]
        command.process_group(0);
        let program = program.program.display();
        let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("cannot start {program}: it has no pipes"));
        };
        let ready = async {
            let mut start = Vec::new();
            Request::Start(*limits).write(&mut start);
            stdin.write_all(&start).await?;
            let mut head = [0; HEAD_BYTES];
            stdout.read_exact(&mut head).await?;
            let (kind, length) = read_head(head, FAILURE_BYTES_MAX).map_err(std::io::Error::other)?;
            let mut content = vec![0; length];
            stdout.read_exact(&mut content).await?;
            Ok::<_, std::io::Error>((kind, content))
        };
        let ready = tokio::time::timeout(START_MAX, ready).await;
        let ready = ready.map_err(|_| format!("{program} is not ready after {} s", START_MAX.as_secs()))?;
        let (kind, content) = ready.map_err(|error| format!("{program} does not become ready: {error}"))?;
        match Response::read(kind, &content).map_err(|error| error.to_string())? {
            Response::Ready { has_landlock, version } => {
                let version = version.to_owned();
                Ok(Self { child, stdin, stdout, has_landlock, version })
            }
            Response::NotReady(why) => Err(why.to_owned()),
            Response::Compiled | Response::Output(_) | Response::Failed(..) => {
                Err(format!("{program} does not become ready"))
            }
        }
    }

    /// How the process ended, after its pipes were closed. `None` if that is unknown.
    pub(crate) async fn status(mut self) -> Option<ExitStatus> {
        drop((self.stdin, self.stdout));
        match tokio::time::timeout(END_MAX, self.child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                // It is gone if this fails.
                let _ = self.child.kill().await;
                None
            }
        }
    }

    /// Kills the process.
    pub(crate) async fn kill(mut self) {
        // It is gone if this fails.
        let _ = self.child.kill().await;
    }
}

/// Why a request fails after its process ended so.
pub(crate) fn failure_of(status: Option<ExitStatus>, limits: &XsltLimits) -> SheetFailure {
    let Some(status) = status else {
        return SheetFailure::new(FailureKind::WorkerEnded, "the worker process was lost");
    };
    if status.code() == Some(MEMORY_EXIT_CODE) {
        return memory_exceeded(limits);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        // The limit of CPU time, in case that oaimend itself is too busy to measure the time.
        if status.signal() == Some(SIGXCPU) {
            return time_exceeded(limits);
        }
    }
    SheetFailure::new(FailureKind::WorkerEnded, format!("the worker process ended with {status}"))
}

/// The failure of a request that took too long.
pub(crate) fn time_exceeded(limits: &XsltLimits) -> SheetFailure {
    let millis = limits.time.as_millis();
    SheetFailure::new(FailureKind::TimeExceeded, format!("the transformation took longer than {millis} ms"))
}

fn memory_exceeded(limits: &XsltLimits) -> SheetFailure {
    let mib = limits.memory_bytes >> 20;
    SheetFailure::new(
        FailureKind::MemoryExceeded,
        format!("the transformation needed more than {mib} MiB of memory"),
    )
}
