//! Responses that are not shown: failures, and responses that no page can contain.

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
            Self::TooLarge => "The response is too large to be shown",
            Self::Unreadable => "The response cannot be shown",
            Self::Busy => "The server is busy",
        }
    }

    /// What happened and what to do, one sentence each.
    pub const fn sentences(self) -> &'static [&'static str] {
        match self {
            Self::TooLarge => &[
                "The response is longer than 8 MiB, the longest that this server shows as a page.",
                "Open its XML.",
            ],
            Self::Unreadable => &[
                "This server cannot read the XML of the response in order to show it as a page.",
                "Open its XML.",
            ],
            Self::Busy => &[
                "The server renders too many other pages now.",
                "Try again in a few seconds, or open the XML.",
            ],
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
                p { "Load this page again in " (secs) " seconds." }
            }
        }
    }
}
