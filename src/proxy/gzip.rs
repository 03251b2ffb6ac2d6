//! gzip towards harvesters that accept it, each piece of a page at once.
//!
//! pingora's own compression holds bytes back until its window is full; here
//! each piece is flushed, so that the first record arrives before the last
//! was read.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// The gzip stream of one answer.
pub(super) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    pub(super) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::new(LEVEL)))
    }

    /// Compresses a piece; `end` ends the stream. A page that is broken off is
    /// never ended, so that its stream is visibly broken too.
    pub(super) fn compress(&mut self, piece: &[u8], end: bool) -> std::io::Result<Bytes> {
        self.0.write_all(piece)?;
        if end {
            self.0.try_finish()?;
        } else {
            self.0.flush()?;
        }
        Ok(std::mem::take(self.0.get_mut()).into())
    }
}

/// Whether an `Accept-Encoding` allows gzip (RFC 9110, section 12.5.3).
pub(super) fn is_accepted(accept_encoding: &str) -> bool {
    let mut by_star = false;
    for element in accept_encoding.split(',') {
        let (coding, weight) = element.split_once(';').unwrap_or((element, ""));
        let weight = weight.trim().to_ascii_lowercase().replace(' ', "");
        let refused = weight.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32));
        match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return !refused,
            "*" => by_star = !refused,
            _ => {}
        }
    }
    by_star
}

/// Fast: the network is seldom the bottleneck, the processor often.
const LEVEL: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_when_it_is_named_or_starred_and_not_weighed_zero() {
        for yes in ["gzip", "GZIP", "deflate, gzip;q=0.5", "*", "br;q=1.0, x-gzip", "gzip; q=1"] {
            assert!(is_accepted(yes), "{yes}");
        }
        for no in ["", "identity", "br, zstd", "gzip;q=0", "gzip; q=0.000, *", "*;q=0"] {
            assert!(!is_accepted(no), "{no}");
        }
    }

    #[test]
    fn each_piece_can_be_read_before_the_next() {
        let mut gzip = Gzip::new();
        let mut reader = flate2::write::GzDecoder::new(Vec::new());
        for piece in ["<record>1</record>", "<record>2</record>"] {
            let compressed = gzip.compress(piece.as_bytes(), false).expect("memory takes all");
            reader.write_all(&compressed).and_then(|()| reader.flush()).expect("it is gzip");
            assert!(reader.get_ref().ends_with(piece.as_bytes()));
        }
        reader.write_all(&gzip.compress(b"", true).expect("memory takes all")).expect("it is gzip");
        assert!(reader.finish().is_ok());
    }

    #[test]
    fn a_stream_that_is_never_ended_is_visibly_broken() {
        let mut gzip = Gzip::new();
        let piece = gzip.compress(b"<record/>", false).expect("memory takes all");
        let mut text = Vec::new();
        let end = std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&piece[..]), &mut text);
        assert_eq!(end.map_err(|error| error.kind()), Err(std::io::ErrorKind::UnexpectedEof));
        assert_eq!(text, b"<record/>");
    }
}
