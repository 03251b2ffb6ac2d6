//! The gzip members of a tape (RFC 1952), from front to back.
//!
//! A file of several members is one gzip file for every tool, and a reader can begin at each member. [`Members`] reads
//! the XML through all members and notes where each one begins.

use crate::fault::Fault;
use crate::limits::MEMBERS_HELD_MAX;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// The start of a gzip member: in the file, and in the XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Byte of the file.
    pub(crate) file_at: u64,
    /// Byte of the XML.
    pub(crate) xml_at: u64,
}

/// The first bytes of a gzip member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Whether a file with these first bytes is gzip.
pub(crate) fn is_gzip(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// The XML of a tape: plain, or in gzip members.
pub(crate) struct Members<R> {
    state: State<R>,
    xml_at: u64,
    /// The starts since they were taken; `None` if nobody takes them.
    starts: Option<Vec<Member>>,
}

enum State<R> {
    Plain(Counted<R>),
    Inside(Box<GzDecoder<Counted<R>>>),
    Ended,
}

impl<R: BufRead> Members<R> {
    /// Reads a file from its beginning.
    pub(crate) fn new(mut file: R) -> io::Result<Self> {
        let is_gzip = is_gzip(file.fill_buf()?);
        let file = Counted { file, read: 0 };
        let state = if is_gzip { State::Inside(Box::new(GzDecoder::new(file))) } else { State::Plain(file) };
        Ok(Self { state, xml_at: 0, starts: None })
    }

    /// Reads a file from its beginning, and notes where its members begin for [`take_starts`](Self::take_starts).
    pub(crate) fn noting_starts(file: R) -> io::Result<Self> {
        let mut members = Self::new(file)?;
        let is_gzip = matches!(members.state, State::Inside(_));
        let first = is_gzip.then_some(Member { file_at: 0, xml_at: 0 });
        members.starts = Some(first.into_iter().collect());
        Ok(members)
    }

    /// The members since the last call; none for plain XML.
    pub(crate) fn take_starts(&mut self) -> Vec<Member> {
        self.starts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note_start(&mut self, file_at: u64) -> io::Result<()> {
        let Some(starts) = &mut self.starts else { return Ok(()) };
        let start = Member { file_at, xml_at: self.xml_at };
        let held = starts.len();
        match starts.last_mut() {
            // The member before is empty, so no reader needs it.
            Some(last) if last.xml_at == start.xml_at => *last = start,
            _ if held == MEMBERS_HELD_MAX => {
                let text = format!("more than {MEMBERS_HELD_MAX} gzip members begin in one element");
                return Err(Fault::file(file_at, text).into());
            }
            _ => starts.push(start),
        }
        Ok(())
    }

    fn next_member(&mut self) -> io::Result<()> {
        let State::Inside(decoder) = std::mem::replace(&mut self.state, State::Ended) else { return Ok(()) };
        let mut file = decoder.into_inner();
        let rest = file.fill_buf()?;
        if rest.is_empty() {
            return Ok(());
        }
        if !is_gzip(rest) && rest.len() > 1 {
            return Err(Fault::file(file.read, "after a gzip member, other bytes follow").into());
        }
        self.note_start(file.read)?;
        self.state = State::Inside(Box::new(GzDecoder::new(file)));
        Ok(())
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.state {
                State::Plain(file) => file.read(buffer)?,
                State::Ended => return Ok(0),
                State::Inside(decoder) => match decoder.read(buffer) {
                    Ok(0) => {
                        self.next_member()?;
                        continue;
                    }
                    Ok(read) => read,
                    Err(error) => return Err(of_member(error, decoder.get_ref().read)),
                },
            };
            self.xml_at += read as u64;
            return Ok(read);
        }
    }
}

/// The fault of a member that cannot be inflated, near this byte of the file.
fn of_member(error: io::Error, near: u64) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::file(near, "the file ends inside a gzip member").into(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Fault::file(near, format!("the gzip member is damaged ({error})")).into()
        }
        _ => error,
    }
}

/// A file that counts its bytes.
struct Counted<R> {
    file: R,
    read: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.file.consume(amount);
        self.read += amount as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{TapeError, of_io};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory takes all bytes");
        encoder.finish().expect("memory takes all bytes")
    }

    fn read(bytes: &[u8]) -> Result<(String, Vec<Member>), String> {
        let mut members = Members::noting_starts(bytes).expect("memory");
        let mut text = String::new();
        match members.read_to_string(&mut text) {
            Ok(_) => Ok((text, members.take_starts())),
            Err(error) => match of_io(error) {
                TapeError::Fault(fault) => Err(fault.to_string()),
                TapeError::Io(error) => panic!("{error}"),
            },
        }
    }

    #[test]
    fn members_are_read_as_one_text_and_their_starts_are_noted() {
        let (one, two) = (member("<a>"), member("</a>"));
        let both = [one.clone(), two.clone()].concat();
        let starts = vec![Member { file_at: 0, xml_at: 0 }, Member { file_at: one.len() as u64, xml_at: 3 }];
        assert_eq!(read(&both), Ok(("<a></a>".to_owned(), starts)));
        assert_eq!(read(b"<a/>"), Ok(("<a/>".to_owned(), Vec::new())));
        // Nobody reads from an empty member.
        let empty = member("").repeat(3);
        let starts = vec![
            Member { file_at: empty.len() as u64, xml_at: 0 },
            Member { file_at: (2 * empty.len() + one.len()) as u64, xml_at: 3 },
        ];
        let many = [empty.as_slice(), &one, &empty, &two].concat();
        assert_eq!(read(&many), Ok(("<a></a>".to_owned(), starts)));
    }

    #[test]
    fn the_starts_that_are_held_are_limited() {
        let bytes = member(" ").repeat(MEMBERS_HELD_MAX + 1);
        let fault = read(&bytes).expect_err("they are too many");
        assert!(fault.contains("more than 1048576 gzip members begin in one element"), "{fault}");
        let mut members = Members::new(bytes.as_slice()).expect("memory");
        io::copy(&mut members, &mut io::sink()).expect("nobody takes them");
        assert_eq!(members.take_starts(), []);
    }

    #[test]
    fn a_damaged_or_cut_member_is_a_fault_with_its_place() {
        let (one, two) = (member("<a>"), member(&"text ".repeat(1_000)));
        let both = [one.clone(), two.clone()].concat();
        let cut = read(both.get(..both.len() - 3).unwrap_or_default()).expect_err("it is cut");
        assert!(cut.contains("ends inside a gzip member"), "{cut}");
        let mut damaged = both.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 1;
        let text = read(&damaged).expect_err("its checksum is wrong");
        assert!(text.contains("is damaged"), "{text}");
        let followed = read(&[both.as_slice(), b"junk"].concat()).expect_err("junk follows");
        assert_eq!(
            followed,
            format!("at byte {} of the file: after a gzip member, other bytes follow", both.len())
        );
    }
}
