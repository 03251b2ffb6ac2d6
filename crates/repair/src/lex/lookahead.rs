//! A cache of searches far ahead in broken text, and a budget for them.
//!
//! The search for boundaries and the stages use it. The end of damage often depends on text far after it.
//! The cache keeps each result, so that no byte is searched twice for one mark. The budget counts bytes
//! that were read without a lasting result. It stops pages that make each of their bytes depend on all
//! others. All results depend on positions in the text only.

use crate::lex::search::memmem;

/// Failed bytes that a page of any length may cause.
const FAILED_BYTES_FREE: u64 = 16 << 20;
/// Additional failed bytes for each settled byte of the page.
const FAILED_BYTES_PER_BYTE: u64 = 4;

/// The results of looking ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookahead {
    /// The next end mark of sections, for each kind of section.
    pub(crate) section_ends: [NextMark; 3],
    /// The places at which items are torn.
    pub(crate) torn_places: TornPlaces,
    /// The start of the next item.
    pub(crate) item_start: NextMark,
    failed_bytes: u64,
}

impl Lookahead {
    /// Counts bytes that were read without a lasting result.
    pub(crate) fn count_failed(&mut self, bytes: usize) {
        self.failed_bytes = self.failed_bytes.saturating_add(bytes as u64);
    }

    /// Whether the budget for the text up to `offset` is spent.
    pub(crate) fn is_exhausted(&self, offset: u64) -> bool {
        self.failed_bytes > FAILED_BYTES_FREE.saturating_add(offset.saturating_mul(FAILED_BYTES_PER_BYTE))
    }
}

/// The next position of a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextMark {
    /// The mark begins nowhere between these offsets of the text.
    none: (u64, u64),
    /// Whether the mark is at the end of that range.
    found: bool,
}

impl NextMark {
    /// The first `mark` at or after `from` in `text`, which begins at offset `base`.
    pub(crate) fn find(&mut self, text: &[u8], base: u64, from: usize, mark: &[u8]) -> Option<usize> {
        let at = base + from as u64;
        let (searched_from, searched_to) = self.none;
        let known = searched_from <= at && at <= searched_to;
        if !known || !self.found {
            let start = if known { (searched_to - base) as usize } else { from };
            let found = memmem::find(text.get(start..).unwrap_or_default(), mark).map(|len| start + len);
            // The mark may begin with the last bytes of the text.
            let searched = found.unwrap_or_else(|| (text.len() + 1).saturating_sub(mark.len()).max(start));
            self.none = (if known { searched_from } else { at }, base + searched as u64);
            self.found = found.is_some();
        }
        let found = self.found.then(|| (self.none.1 - base) as usize)?;
        (found + mark.len() <= text.len()).then_some(found)
    }
}

/// The places at which the items of a page are torn, up to the end of its list. One search that reads up to
/// there finds those of all later items.
#[derive(Clone, Debug, Default)]
pub(crate) struct TornPlaces {
    /// The offsets between which the places are known.
    known: (u64, u64),
    /// The offsets of the places, in ascending order.
    places: Vec<u64>,
}

impl TornPlaces {
    /// Keeps the places of the text between `from` and `to`.
    pub(crate) fn keep(&mut self, from: u64, to: u64, places: impl Iterator<Item = u64>) {
        let (known_from, known_to) = self.known;
        if known_from <= from && to <= known_to {
            return;
        }
        self.known = (from, to);
        self.places.clear();
        self.places.extend(places);
    }

    /// Whether an item that begins at `item` is known to be torn at `place`.
    pub(crate) fn contains(&self, item: u64, place: u64) -> bool {
        let (from, to) = self.known;
        from <= item && place <= to && self.places.binary_search(&place).is_ok()
    }
}
