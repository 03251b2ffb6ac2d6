//! Colours, on a terminal only.

use std::fmt::{self, Display};
use std::io::IsTerminal;

use clap::builder::styling::{AnsiColor, Style};

/// Decides once for a stream whether it gets colours, and gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours if `stream` is a terminal and the person has not turned them
    /// off (`NO_COLOR`, `TERM=dumb`).
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self { on: stream.is_terminal() && wanted && able }
    }

    /// For names and headings.
    pub(crate) fn strong<T: Display>(self, text: T) -> Painted<T> {
        self.with(Style::new().bold(), text)
    }

    /// For what stands beside the matter.
    pub(crate) fn faint<T: Display>(self, text: T) -> Painted<T> {
        self.with(Style::new().dimmed(), text)
    }

    /// For what is broken.
    pub(crate) fn bad<T: Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Red.on_default(), text)
    }

    /// For what is whole.
    pub(crate) fn good<T: Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Green.on_default(), text)
    }

    fn with<T: Display>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.on { style } else { Style::new() }, text }
    }
}

/// A text with its colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text alone is padded by the format's width, never its escape codes.
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}
