//! Colours for terminals.

use std::fmt::{self, Display};
use std::io::IsTerminal;

use clap::builder::styling::{AnsiColor, Style};

/// Colours for one stream, if it supports them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours are on if `stream` is a terminal and they are not turned off (`NO_COLOR`,
    /// `TERM=dumb`).
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self { on: stream.is_terminal() && wanted && able }
    }

    /// The style of names and headings.
    pub(crate) fn strong<T: Display>(self, text: T) -> Painted<T> {
        self.apply(Style::new().bold(), text)
    }

    /// The style of side notes.
    pub(crate) fn faint<T: Display>(self, text: T) -> Painted<T> {
        self.apply(Style::new().dimmed(), text)
    }

    /// The style of broken text.
    pub(crate) fn bad<T: Display>(self, text: T) -> Painted<T> {
        self.apply(AnsiColor::Red.on_default(), text)
    }

    /// The style of valid text.
    pub(crate) fn good<T: Display>(self, text: T) -> Painted<T> {
        self.apply(AnsiColor::Green.on_default(), text)
    }

    fn apply<T: Display>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.on { style } else { Style::new() }, text }
    }
}

/// A text with its style.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The width of the format pads the text alone, not the escape codes.
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}
