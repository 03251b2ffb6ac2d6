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

    /// The text from `at`.
    pub(crate) fn after(self, at: usize) -> Self {
        Self { text: self.text.get(at..).unwrap_or_default(), ..self }
    }
}
