//! The process that takes over at SIGUSR2: the installed program, started by the running one.

use super::handover::{self, Sockets};
use crate::clock;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// A started process that will wait for the sockets.
pub(super) struct Successor(Child);

impl Successor {
    /// Starts the installed program, and hands the sockets over as soon as it waits for them. Ends it if it does not.
    pub(super) async fn start_and_hand_over(data: &Path, sockets: &Sockets) -> io::Result<UnixStream> {
        let mut successor = Self::start()?;
        let handed = successor.try_hand_over(data, sockets).await;
        if handed.is_err() {
            // It has ended already; ignore.
            let _ = successor.0.kill().await;
        }
        handed
    }

    /// Starts the installed program with the arguments of this process and `--upgrade`.
    fn start() -> io::Result<Self> {
        let mut arguments: Vec<_> = std::env::args_os().collect();
        if !arguments.iter().any(|argument| argument == UPGRADE) {
            arguments.push(UPGRADE.into());
        }
        let mut command = Command::new(installed_program()?);
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

/// The path of this program. A newer version may have replaced its file; the kernel marks the path then.
fn installed_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let name = path.to_string_lossy();
    Ok(name.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from))
}

const UPGRADE: &str = "--upgrade";
/// Longest time until the new process waits for the sockets. It reads and checks its configuration before.
const START_MAX: Duration = Duration::from_secs(30);
/// Interval at which the old process looks whether the new one waits.
const START_INTERVAL: Duration = Duration::from_millis(50);
