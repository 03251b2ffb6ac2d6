//! The text of a PDF, by pdftotext in a process without rights.

use oaimend_oai::named_enum;
#[cfg(unix)]
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// The command of oaimend that runs [`run_worker`](crate::run_worker).
pub const COMMAND: &str = "full-text-worker";
/// The program of poppler that extracts texts.
pub const PDFTOTEXT: &str = "pdftotext";

/// A PDF that each pdftotext reads, uncompressed, and the text in it.
const PROBE: &[u8] = include_bytes!("probe.pdf");
const PROBE_TEXT: &str = "oaimend reads full texts";
/// The signals of a process that did something wrong itself. Others come from outside: when the service stops, or when the
/// machine has no memory left.
#[cfg(unix)]
const CRASHES: [Signal; 5] = [Signal::SEGV, Signal::ABORT, Signal::BUS, Signal::ILL, Signal::FPE];

/// The limits for one PDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimits {
    /// The address space of the process, in bytes.
    pub memory_bytes: u64,
    /// The CPU time of the process, in whole seconds.
    pub cpu_time: Duration,
    /// The longest time of the process. It needs all of that only if it waits for other processes of the machine.
    pub time: Duration,
    /// Maximum length of the text, in bytes.
    pub text_bytes: usize,
    /// Maximum number of pages. Those after them are not read.
    pub pages: u32,
}

impl Default for TextLimits {
    fn default() -> Self {
        let (cpu_time, time) = (Duration::from_secs(30), Duration::from_secs(60));
        Self { memory_bytes: 512 << 20, cpu_time, time, text_bytes: 16 << 20, pages: 2_000 }
    }
}

named_enum! {
    /// Why there is no text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TextFailure {
        /// pdftotext cannot read the PDF: it is damaged, or encrypted, or takes too much memory.
        Unreadable = "unreadable",
        /// The process used all its CPU time.
        TimeExceeded = "time-exceeded",
        /// The text is too long.
        TextTooLong = "text-too-long",
        /// A fault ended the process.
        Crashed = "crashed",
        /// The process was ended from outside, or waited too long for the machine. The PDF can be read later.
        Interrupted = "interrupted",
        /// No PDF can be read on this machine: without Landlock in the kernel, or without a pdftotext that works.
        Unavailable = "unavailable",
    }
}

/// Extracts the texts of PDFs, one process for each.
#[derive(Clone, Debug)]
pub struct TextExtractor {
    worker: PathBuf,
    arguments: Vec<OsString>,
    program: PathBuf,
    limits: TextLimits,
}

/// The file of a program in the folders of `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

impl TextExtractor {
    /// Extracts by `program`, which is pdftotext. `worker` with these arguments runs [`run_worker`](crate::run_worker).
    pub fn new(worker: &Path, arguments: &[&str], program: PathBuf, limits: TextLimits) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { worker: worker.to_owned(), arguments, program, limits }
    }

    /// The running program as the worker, also after an upgrade has replaced its file.
    pub fn of_this_program(program: PathBuf) -> Self {
        Self::new(Path::new("/proc/self/exe"), &[COMMAND], program, TextLimits::default())
    }

    /// The text of a PDF.
    ///
    /// # Errors
    ///
    /// There is none. The same PDF fails again, unless the process is interrupted or unavailable.
    pub async fn text(&self, pdf: &[u8]) -> Result<String, TextFailure> {
        let read = self.read(pdf).await;
        let is_refused = matches!(read, Err(TextFailure::Unreadable | TextFailure::Crashed));
        // An upgrade can break pdftotext, and no good PDF is refused for that.
        if is_refused && !self.is_available().await { Err(TextFailure::Unavailable) } else { read }
    }

    /// Whether pdftotext can read a PDF on this machine: the kernel has Landlock, and no library is missing.
    pub async fn is_available(&self) -> bool {
        self.read(PROBE).await.is_ok_and(|text| text.contains(PROBE_TEXT))
    }

    async fn read(&self, pdf: &[u8]) -> Result<String, TextFailure> {
        let mut child = self.start().map_err(|_| TextFailure::Unavailable)?;
        // It ends all processes of the group, also if nobody waits for the text any more.
        let group = ProcessGroup(child.id());
        let ended = tokio::time::timeout(self.limits.time, async {
            let text = self.exchange(&mut child, pdf).await?;
            check(child.wait().await.map_err(|_| TextFailure::Interrupted)?)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        });
        let ended = ended.await;
        drop(group);
        // It is gone if this fails.
        let _ = child.kill().await;
        ended.unwrap_or(Err(TextFailure::Interrupted))
    }

    fn start(&self) -> std::io::Result<Child> {
        let TextLimits { memory_bytes, cpu_time, pages, .. } = self.limits;
        let mut command = Command::new(&self.worker);
        command
            .args(&self.arguments)
            .args([memory_bytes.to_string(), cpu_time.as_secs().max(1).to_string(), pages.to_string()])
            .arg(&self.program)
            // Variables lead libraries to other files. Texts do not depend on the language of the service.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The worker writes to it if it cannot start pdftotext, which does not have it.
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }

    /// Sends the PDF and receives the text at the same time, so that no side waits for the other one.
    async fn exchange(&self, child: &mut Child, pdf: &[u8]) -> Result<Vec<u8>, TextFailure> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(mut stdout), Some(mut report)) = pipes else {
            return Err(TextFailure::Unavailable);
        };
        let send = async move {
            // A program that has seen enough closes the pipe.
            let _ = stdin.write_all(pdf).await;
        };
        let receive = async move {
            let mut text = Vec::new();
            loop {
                match stdout.read_buf(&mut text).await {
                    Ok(0) | Err(_) => return Ok(text),
                    Ok(_) if text.len() > self.limits.text_bytes => return Err(TextFailure::TextTooLong),
                    Ok(_) => {}
                }
            }
        };
        tokio::pin!(send, receive);
        let text = tokio::select! {
            text = &mut receive => text,
            () = &mut send => receive.await,
        }?;
        // It ends without a byte when pdftotext starts, and with a line if that fails.
        match report.read(&mut [0]).await {
            Ok(0) => Ok(text),
            Ok(_) | Err(_) => Err(TextFailure::Unavailable),
        }
    }
}

/// What the end of the process says.
fn check(status: ExitStatus) -> Result<(), TextFailure> {
    if status.success() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return Err(match signal {
                signal if signal == Signal::XCPU.as_raw() => TextFailure::TimeExceeded,
                signal if CRASHES.iter().any(|crash| crash.as_raw() == signal) => TextFailure::Crashed,
                _ => TextFailure::Interrupted,
            });
        }
    }
    Err(TextFailure::Unreadable)
}

/// The process and all that it has started, which root could do in spite of the limit. They end when this is dropped.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, kill_process_group};
            let group = self.0.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(group) = group {
                // It has ended if this fails.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }
}
