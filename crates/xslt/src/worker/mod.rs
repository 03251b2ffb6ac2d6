//! The worker process: reads requests from stdin, runs libxslt, writes responses to stdout.
//!
//! One thread, one request at a time. It gives up its rights before it reads the first sheet. A response is written before
//! the next request begins, because oaimend concludes from it which request ended the process.

mod libxslt;
mod sandbox;

use crate::failure::{FailureKind, SheetFailure};
use crate::limits::{SHEETS_MAX, XsltLimits};
use crate::message::{HEAD_BYTES, REQUEST_BYTES_MAX, Request, Response, read_head};
use crate::sheet::SheetId;
pub use libxslt::Library;
use libxslt::{Libxslt, Stylesheet};
use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};

/// Number of bytes that the worker reads at once.
const READ_BYTES: usize = 256 << 10;

/// Serves requests until stdin ends, in a process that [`XsltWorker`](crate::XsltWorker) started.
///
/// # Safety
///
/// The process has no other thread, because only the calling one gives up its rights, and the libraries are set up for the
/// whole process. No other code of the process uses a file descriptor but stdin, stdout and stderr afterwards: all others
/// are closed, also those that an object still owns.
///
/// # Errors
///
/// A pipe fails or brings no request. Nobody reads the error: oaimend sees the end of the process.
#[allow(unsafe_code, reason = "closes descriptors that other code may own")]
pub unsafe fn run_worker(library: &Library) -> io::Result<()> {
    // SAFETY: the caller promises that nothing else uses these descriptors.
    unsafe { libxslt::close_other_files() };
    let mut input = BufReader::with_capacity(READ_BYTES, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut message = Vec::new();
    let Some(kind) = read_message(&mut input, &mut message)? else { return Ok(()) };
    let Request::Start(limits) = Request::read(kind, &message).map_err(io::Error::other)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let ready = Libxslt::load(library).and_then(|libxslt| {
        let has_landlock = sandbox::give_up_rights(limits.memory_bytes)?;
        Ok((libxslt, has_landlock))
    });
    let (libxslt, has_landlock) = match ready {
        Ok(ready) => ready,
        Err(why) => return write_message(&mut output, &Response::NotReady(&why), &mut Vec::new()),
    };
    let mut response = Vec::new();
    let version = libxslt.version();
    write_message(&mut output, &Response::Ready { has_landlock, version: &version }, &mut response)?;
    let mut worker = Worker { libxslt, limits, sheets: VecDeque::new() };
    while let Some(kind) = read_message(&mut input, &mut message)? {
        let request = Request::read(kind, &message).map_err(io::Error::other)?;
        sandbox::limit_processor_time(limits.time)?;
        worker.respond(request, &mut |message| write_message(&mut output, message, &mut response))?;
    }
    Ok(())
}

/// Reads the content of the next message, and returns its kind. `None` at the end.
fn read_message(input: &mut impl Read, content: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut head = [0; HEAD_BYTES];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (kind, length) = read_head(head, REQUEST_BYTES_MAX).map_err(io::Error::other)?;
    content.resize(length, 0);
    input.read_exact(content)?;
    Ok(Some(kind))
}

/// Writes a message by one call of the system. `buffer` is reused.
fn write_message(output: &mut impl Write, message: &Response<'_>, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    message.write(buffer);
    output.write_all(buffer)?;
    output.flush()
}

struct Worker {
    libxslt: Libxslt,
    limits: XsltLimits,
    /// The sheets, the oldest first, with the failures of those that do not compile.
    sheets: VecDeque<(SheetId, Result<Stylesheet, SheetFailure>)>,
}

impl Worker {
    fn respond(
        &mut self,
        request: Request<'_>,
        write: &mut impl FnMut(&Response<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        match request {
            Request::Start(_) => Err(io::ErrorKind::InvalidData.into()),
            Request::Sheet { id, text } => match self.sheet(id, text) {
                Ok(_) => write(&Response::Compiled),
                Err(SheetFailure { kind, message }) => write(&Response::Failed(*kind, message)),
            },
            Request::Transform { sheet, payload } => {
                let found = self.sheets.iter().find(|(id, _)| *id == sheet);
                let sheet = match found {
                    Some((_, Ok(sheet))) => sheet,
                    Some((_, Err(SheetFailure { kind, message }))) => {
                        return write(&Response::Failed(*kind, message));
                    }
                    None => return Err(io::ErrorKind::InvalidData.into()),
                };
                match self.libxslt.transform(sheet, payload) {
                    Ok(output) if output.bytes().len() > self.limits.output_bytes => {
                        let (length, limit) = (output.bytes().len(), self.limits.output_bytes);
                        let why = format!("the output has {length} bytes, and at most {limit} are allowed");
                        write(&Response::Failed(FailureKind::OutputTooLong, &why))
                    }
                    Ok(output) => write(&Response::Output(output.bytes())),
                    Err(SheetFailure { kind, message }) => write(&Response::Failed(kind, &message)),
                }
            }
        }
    }

    /// The compiled sheet.
    fn sheet(&mut self, id: SheetId, text: &[u8]) -> Result<&Stylesheet, &SheetFailure> {
        let index = match self.sheets.iter().position(|(known, _)| *known == id) {
            Some(index) => index,
            None => {
                let compiled = self.libxslt.compile(text).map_err(|why| {
                    let why = format!("the sheet does not compile: {why}");
                    SheetFailure::new(FailureKind::SheetInvalid, why)
                });
                self.sheets.push_back((id, compiled));
                if self.sheets.len() > SHEETS_MAX {
                    self.sheets.pop_front();
                }
                self.sheets.len() - 1
            }
        };
        self.sheets[index].1.as_ref()
    }
}
