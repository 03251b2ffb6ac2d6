//! The `responseDate` in the first bytes of a response.

use memchr::memmem;

/// Maximum number of bytes in which the `responseDate` is searched. It is the first element of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Finds the `responseDate` of a response while it arrives.
#[derive(Debug, Default)]
pub(super) struct ResponseDate {
    head: Vec<u8>,
    found: Option<String>,
}

impl ResponseDate {
    /// Reads the next bytes of the response.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        if self.found.is_some() || self.head.len() >= HEAD_BYTES_MAX {
            return;
        }
        self.head.extend_from_slice(bytes);
        self.found = find(&self.head);
        if self.found.is_some() {
            self.head = Vec::new();
        }
    }

    /// The date, once it was read.
    pub(super) fn date(&self) -> Option<&str> {
        self.found.as_deref()
    }
}

/// The text of the element. Nothing before it in a valid response contains its name, except comments.
fn find(head: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"responseDate>";
    let start = memmem::find(head, NAME)? + NAME.len();
    let rest = head.get(start..)?;
    let end = memchr::memchr(b'<', rest)?;
    let date = std::str::from_utf8(rest.get(..end)?).ok()?.trim();
    oaimend_oai::datestamp::is_legal(date.as_bytes()).then(|| date.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_found_in_any_pieces() {
        let page = "<o:OAI-PMH><o:responseDate>\n2024-05-06T07:08:09Z </o:responseDate><o:request>";
        for size in 1..page.len() {
            let mut date = ResponseDate::default();
            page.as_bytes().chunks(size).for_each(|piece| date.read(piece));
            assert_eq!(date.date(), Some("2024-05-06T07:08:09Z"), "{size}");
        }
        let mut none = ResponseDate::default();
        none.read(&vec![b'x'; HEAD_BYTES_MAX]);
        none.read(page.as_bytes());
        assert_eq!(none.date(), None);
        let mut illegal = ResponseDate::default();
        illegal.read(b"<responseDate>&lt;x></responseDate>");
        assert_eq!(illegal.date(), None);
    }
}
