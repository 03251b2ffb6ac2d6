//! The program itself, `oaimend serve`, on ports of its own.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest that a line of the log may take: a test that waits for one that never comes fails.
const LINE_WITHIN: Duration = Duration::from_secs(60);

/// The program, with its log. Killed when this is dropped.
pub(crate) struct Program {
    child: Arc<Mutex<Child>>,
    log: Receiver<String>,
    /// What it logged before it served, and all that was read of its log since.
    said: String,
    serving: Value,
}

/// Kills a program, from any thread.
#[derive(Clone)]
pub(crate) struct Killer(Arc<Mutex<Child>>);

impl Killer {
    /// SIGKILL; of no use to a program that is gone.
    pub(crate) fn kill(&self) {
        let _ = self.0.lock().expect("no test panics while it holds this").kill();
    }
}

/// `oaimend serve` in that folder, to be given arguments and started with [`Program::run`].
pub(crate) fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder);
    command
}

impl Program {
    /// Starts it without an admin listener, and waits until it serves.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::run(serve(folder).args(["--admin", "off"]).args(arguments))
    }

    /// Runs a command, and waits until it serves.
    #[track_caller]
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::spawn(command).served()
    }

    /// Waits until it serves.
    #[track_caller]
    pub(crate) fn served(mut self) -> Self {
        self.serving = self.line("serving");
        self
    }

    /// Runs a command, which need not serve.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program is built");
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let (lines, read) = channel();
        // A program whose log nobody reads stands still when the pipe is full.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let _ = lines.send(line);
            }
        });
        let child = Arc::new(Mutex::new(child));
        Self { child, log: read, said: String::new(), serving: Value::Null }
    }

    /// Where harvesters are answered.
    pub(crate) fn address(&self) -> SocketAddr {
        self.told("listen")
    }

    /// Where operators are answered.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.told("admin")
    }

    fn told(&self, field: &str) -> SocketAddr {
        let address = self.serving[field].as_str().and_then(|text| text.parse().ok());
        address.unwrap_or_else(|| panic!("no {field} in {}", self.serving))
    }

    /// The next line of the log whose message begins so.
    #[track_caller]
    pub(crate) fn line(&mut self, message: &str) -> Value {
        loop {
            let Ok(line) = self.log.recv_timeout(LINE_WITHIN) else {
                panic!("the log ends or stands still before {message:?}:\n{}", self.said);
            };
            self.said.push_str(&line);
            self.said.push('\n');
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if line["message"].as_str().is_some_and(|found| found.starts_with(message)) {
                return line;
            }
        }
    }

    /// All that it logged until it ended.
    pub(crate) fn whole_log(mut self) -> String {
        for line in &self.log {
            self.said.push_str(&line);
            self.said.push('\n');
        }
        std::mem::take(&mut self.said)
    }

    /// Sends a signal by its name, like `-HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.lock().expect("no test panics while it holds this").id();
        let kill = Command::new("kill").args([name, &id.to_string()]).status();
        assert!(kill.expect("kill is everywhere").success());
    }

    pub(crate) fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.child))
    }

    /// Waits until it has ended.
    pub(crate) fn ended(&self) -> ExitStatus {
        loop {
            let ended = self.child.lock().expect("no test panics while it holds this").try_wait();
            match ended.expect("it is a child of ours") {
                Some(status) => return status,
                None => std::thread::yield_now(),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.killer().kill();
        let _ = self.child.lock().expect("no test panics while it holds this").wait();
    }
}
