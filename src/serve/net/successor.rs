//! The process that takes over at SIGUSR2: the installed program, started by the running one.

use super::handover::{self, RUNNING_PROGRAM, Sockets};
use oaimend_base::clock;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// A started process that will wait for the sockets.
pub(super) struct Successor(Child);

impl Successor {
    /// Starts the installed program, and hands the sockets over as soon as it waits for them. Ends it if it does not.
    pub(super) async fn start_and_hand_over(
        program: &Path,
        data: &Path,
        sockets: &Sockets,
    ) -> io::Result<UnixStream> {
        let mut successor = Self::start(program)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))?;
        let handed = successor.try_hand_over(data, sockets).await;
        if handed.is_err() {
            // It has ended already; ignore.
            let _ = successor.0.kill().await;
        }
        handed
    }

    /// Starts the installed program with the arguments of this process and `--upgrade`.
    fn start(program: &Path) -> io::Result<Self> {
        let mut arguments: Vec<_> = std::env::args_os().collect();
        if !arguments.iter().any(|argument| argument == UPGRADE) {
            arguments.push(UPGRADE.into());
        }
        let mut command = Command::new(program);
        // These variables are for this process only: the sockets are handed over, and the watchdog follows the main
        // process of the service.
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDS_FIRST_FD", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(name);
        }
        Ok(Self(command.args(arguments.iter().skip(1)).spawn()?))
    }

    async fn try_hand_over(&mut self, data: &Path, sockets: &Sockets) -> io::Result<UnixStream> {
        let began = clock::uptime();
        loop {
            match handover::hand_over(data, sockets).await {
                Err(error) if is_not_waiting(&error) => {}
                handed => return handed,
            }
            if let Some(status) = self.0.try_wait()? {
                return Err(io::Error::other(format!(
                    "the new process has ended with {status}; its log lines say why"
                )));
            }
            if clock::uptime().saturating_sub(began) > START_MAX {
                return Err(ErrorKind::TimedOut.into());
            }
            tokio::time::sleep(START_INTERVAL).await;
        }
    }
}

/// Whether no process waits at the socket, or not yet.
fn is_not_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// The path at which this program is installed: the name by which it was started. Call it at the start: the kernel follows
/// a file that is renamed, and resolves links, so that `/proc/self/exe` can name the old version after an upgrade.
pub(crate) fn installed_program() -> PathBuf {
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let running = std::env::current_exe();
    if name.components().count() > 1
        && let Ok(path) = std::path::absolute(&name)
    {
        return path;
    }
    // Started by its name alone: the shell has searched `PATH`.
    let is_running = |path: &PathBuf| is_same_file(path, Path::new(RUNNING_PROGRAM));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&name)).find(is_running);
    found.or(running.ok()).unwrap_or(name)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    file(one).is_some_and(|one| file(other) == Some(one))
}

const UPGRADE: &str = "--upgrade";
/// Longest time until the new process waits for the sockets. It reads and checks its configuration before.
const START_MAX: Duration = Duration::from_secs(30);
/// Interval at which the old process looks whether the new one waits.
const START_INTERVAL: Duration = Duration::from_millis(50);
