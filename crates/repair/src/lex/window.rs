//! A text of which more may come: the unsettled part of a response, or a part of it.
//!
//! The validator, the search of boundaries and all stages read windows.

/// Text, and whether it is all that will come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextWindow<'t> {
    pub(crate) text: &'t [u8],
    /// Whether no more text follows: the input ends here, or text after a limit does not count.
    pub(crate) is_last: bool,
}

impl<'t> TextWindow<'t> {
    pub(crate) fn new(text: &'t [u8], is_last: bool) -> Self {
        Self { text, is_last }
    }

    /// A text that may continue.
    pub(crate) fn so_far(text: &'t [u8]) -> Self {
        Self { text, is_last: false }
    }

    /// A text that is known to its end.
    pub(crate) fn whole(text: &'t [u8]) -> Self {
        Self { text, is_last: true }
    }
    /// The first `bytes_max` bytes. Text after them does not count.
    pub(crate) fn up_to(self, bytes_max: usize) -> Self {
        let is_longer = self.text.len() > bytes_max;
        Self { text: self.text.get(..bytes_max).unwrap_or(self.text), is_last: self.is_last || is_longer }
    }

    /// The text from `at`.
    pub(crate) fn after(self, at: usize) -> Self {
        Self { text: self.text.get(at..).unwrap_or_default(), ..self }
    }

    /// The window of an item that begins at `at`.
    #[inline(always)]
    pub(crate) fn item_at(self, at: usize) -> ItemWindow<'t> {
        ItemWindow { text: self.text, is_last: self.is_last, item_at: at }
    }
}

/// A window, and the place in it of the item that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemWindow<'t> {
    pub(crate) text: &'t [u8],
    /// Whether no more text follows.
    pub(crate) is_last: bool,
    /// The start of the item.
    pub(crate) item_at: usize,
}

impl<'t> ItemWindow<'t> {
    /// The window itself.
    #[inline(always)]
    pub(crate) fn window(self) -> TextWindow<'t> {
        TextWindow { text: self.text, is_last: self.is_last }
    }
}
