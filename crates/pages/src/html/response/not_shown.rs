//! Responses that are not shown: failures, and responses that no page can contain.

use crate::texts::response as texts;
use maud::{Markup, html};

/// Why a response cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResponseReason {
    /// It is longer than the limit.
    TooLarge,
    /// Its XML cannot be read.
    Unreadable,
    /// Too many other responses are being rendered. For status 503.
    Busy,
}

impl NoResponseReason {
    /// The title of the page.
    pub const fn title(self) -> &'static str {
        match self {
            Self::TooLarge => texts::TOO_LARGE_TITLE,
            Self::Unreadable => texts::UNREADABLE_TITLE,
            Self::Busy => texts::BUSY_TITLE,
        }
    }

    /// What happened and what to do, one sentence each.
    pub const fn sentences(self) -> &'static [&'static str] {
        match self {
            Self::TooLarge => &[texts::TOO_LARGE, texts::OPEN_XML],
            Self::Unreadable => &[texts::UNREADABLE, texts::OPEN_XML],
            Self::Busy => &[texts::BUSY, texts::TRY_SOON],
        }
    }
}

/// A failure. `text` is the text for programs: the problem first, then lines with a label each.
pub(super) fn failure(text: &str, retry_after_secs: Option<u64>) -> Markup {
    html! {
        div.failure {
            @for line in text.lines() {
                p {
                    @match line.split_once(": ").filter(|(label, _)| ["Fault", "Retry", "Now"].contains(label)) {
                        Some((label, rest)) => { strong { (label) ":" } " " bdi { (rest) } },
                        None => bdi { (line) },
                    }
                }
            }
            @if let Some(secs) = retry_after_secs {
                p { (texts::load_again(secs)) }
            }
        }
    }
}
