//! `oaimend serve` under a service manager: messages of `sd_notify`, and the upgrade at SIGUSR2.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::fetch;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn upgrade_by_signal_starts_the_installed_program_in_place_of_the_running_one() {
    let manager = ServiceManager::new();
    let installed = manager.install();
    let old = manager.start(&installed);
    let first = manager.message();
    assert_eq!(first, format!("MAINPID={}\nREADY=1\n", old.id()));
    assert_eq!(manager.message(), "WATCHDOG=1\n");

    // Another file replaces the running one, as installers do.
    manager.install();
    old.signal("-USR2");
    assert!(manager.message_that_begins("RELOADING=1\n").contains("\nMONOTONIC_USEC="));
    let ready = manager.message_that_begins("MAINPID=");
    let new = Process::of_message(&ready);
    assert_ne!(new.0, old.id(), "{ready}");
    assert_eq!(std::fs::read_link(format!("/proc/{}/exe", new.0)).expect("it runs"), installed);
    assert!(manager.message_that_begins("WATCHDOG=1\n").ends_with("WATCHDOG=1\n"));
    assert!(old.ended().success());
    assert_eq!(fetch(old.admin(), "/-/readyz").status, 200);

    new.signal("-TERM");
    assert_eq!(manager.message_that_begins("STOPPING=1\n"), "STOPPING=1\n");
}

#[test]
fn upgrade_by_signal_starts_the_new_file_after_the_old_one_was_moved() {
    let manager = ServiceManager::new();
    let installed = manager.install();
    let old = manager.start(&installed);
    std::fs::rename(&installed, manager.0.path().join("oaimend.old")).expect("it is one folder");
    manager.install();
    assert_eq!(manager.upgraded_file(&old), installed);
}

#[test]
fn upgrade_by_signal_follows_a_link_to_the_new_file() {
    let manager = ServiceManager::new();
    let [first, link] = ["oaimend.first", "oaimend.link"].map(|name| manager.0.path().join(name));
    std::fs::rename(manager.install(), &first).expect("it is one folder");
    symlink(&first, &link).expect("a free name");
    let old = manager.start(&link);
    let installed = manager.install();
    std::fs::remove_file(&link).expect("it is there");
    symlink(&installed, &link).expect("a free name");
    assert_eq!(manager.upgraded_file(&old), installed);
}

#[test]
fn failed_upgrade_leaves_the_old_process_in_place() {
    let manager = ServiceManager::new();
    let old = manager.start(&manager.install());
    let ready = manager.message();
    // An address has no such form, and a running process keeps its address.
    std::fs::write(manager.0.path().join("oaimend.toml"), "listen = \"nowhere\"\n").expect("a file");
    old.signal("-USR2");
    manager.message_that_begins("RELOADING=1\n");
    assert_eq!(manager.message_that_begins("MAINPID="), ready);
    assert_eq!(fetch(old.admin(), "/-/readyz").status, 200);
    old.signal("-TERM");
    assert!(old.ended().success());
    let log = old.whole_log();
    for expected in ["oaimend.toml:1: listen", "the new process has ended with exit status: 78"] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

#[test]
fn early_signals_do_not_end_the_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let old = Program::run(serve(folder.path()).args(["--admin", "off"]));
    let mut new = Program::spawn(serve(folder.path()).args(["--admin", "off", "--upgrade"]));
    new.line("waiting for the running oaimend");
    for signal in ["-HUP", "-USR2"] {
        new.signal(signal);
    }
    old.signal("-QUIT");
    new.served();
}

#[test]
fn early_sigquit_ends_the_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = folder.path().join("settings.toml");
    assert!(Command::new("mkfifo").arg(&settings).status().expect("mkfifo is everywhere").success());
    let program = Program::spawn(serve(folder.path()).args(["--admin", "off", "--config", "settings.toml"]));
    // Opening the pipe waits until the program reads its settings.
    let writer = std::fs::OpenOptions::new().write(true).open(&settings).expect("a reader");
    program.signal("-QUIT");
    drop(writer);
    assert_eq!(program.ended().code(), Some(0));
    let log = program.whole_log();
    assert!(log.contains("SIGQUIT ended this process before it served"), "{log}");
}

#[test]
fn health_asks_the_running_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let health = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.arg("health").args(arguments).current_dir(folder.path());
        let output = command.output().expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let admin = program.admin().to_string();
    for arguments in [&["--admin", &admin][..], &["--ready", "--admin", &admin]] {
        assert_eq!(health(arguments), (Some(0), "ok\n".to_owned()), "{arguments:?}");
    }
    program.signal("-TERM");
    assert!(program.ended().success());
    assert_ne!(health(&["--admin", &admin]).0, Some(0));
}

/// A socket for messages, in a folder that is also that of the program.
struct ServiceManager(TempDir, UnixDatagram);

impl ServiceManager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a free name");
        socket.set_read_timeout(Some(MESSAGE_WITHIN)).expect("a legal timeout");
        Self(folder, socket)
    }

    /// Installs the program, or installs it again.
    fn install(&self) -> PathBuf {
        let [new, installed] = ["oaimend.new", "oaimend"].map(|name| self.0.path().join(name));
        // Not by this process: a child of another test would inherit the open file, and nobody could run it then.
        let copied =
            Command::new("cp").args([env!("CARGO_BIN_EXE_oaimend").as_ref(), new.as_os_str()]).status();
        assert!(copied.expect("cp is everywhere").success());
        std::fs::rename(new, &installed).expect("it is one folder");
        installed
    }

    /// Starts the installed program and waits until it serves.
    fn start(&self, program: &Path) -> Program {
        let folder = self.0.path();
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).current_dir(folder);
        command.env("NOTIFY_SOCKET", folder.join("notify")).env("WATCHDOG_USEC", "30000000");
        Program::run(&mut command)
    }

    /// The file of the process that takes over at SIGUSR2. Ends that process.
    fn upgraded_file(&self, old: &Program) -> PathBuf {
        self.message_that_begins("MAINPID=");
        old.signal("-USR2");
        self.message_that_begins("RELOADING=1\n");
        let new = Process::of_message(&self.message_that_begins("MAINPID="));
        assert!(old.ended().success());
        let file = std::fs::read_link(format!("/proc/{}/exe", new.0)).expect("it runs");
        new.signal("-TERM");
        self.message_that_begins("STOPPING=1\n");
        file
    }

    /// The next message.
    fn message(&self) -> String {
        let mut buffer = [0; 1_000];
        let received = loop {
            match self.1.recv(&mut buffer) {
                // A child of another test has ended.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        let length = received.expect("a message in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// The next message that begins so; others come from the watchdog.
    fn message_that_begins(&self, prefix: &str) -> String {
        for _ in 0..MESSAGES_MAX {
            let message = self.message();
            if message.starts_with(prefix) {
                return message;
            }
            assert_eq!(message, "WATCHDOG=1\n");
        }
        panic!("no message begins with {prefix:?}");
    }
}

/// A process that is no child of the test. Dropping it kills the process.
struct Process(u32);

impl Process {
    fn of_message(message: &str) -> Self {
        let id = message.lines().find_map(|line| line.strip_prefix("MAINPID="));
        Self(id.and_then(|id| id.parse().ok()).expect("a process id"))
    }

    fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.0.to_string()]).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal("-KILL");
    }
}

const MESSAGE_WITHIN: Duration = Duration::from_secs(60);
const MESSAGES_MAX: usize = 60;
