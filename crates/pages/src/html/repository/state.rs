//! The state of a repository.

use super::super::super::repository::{RepositoryState, RepositorySummary};
use crate::texts::repository as texts;
use maud::{Markup, html};

/// The state in one word, and since when the source fails.
pub(super) fn state_of(summary: &RepositorySummary) -> Markup {
    let class = match summary.state {
        RepositoryState::Complete => "state good",
        RepositoryState::Incomplete | RepositoryState::Unreadable => "state bad",
        RepositoryState::Live | RepositoryState::Harvesting | RepositoryState::NeverHarvested => "state",
    };
    html! {
        span class=(class) { (texts::state(summary.state)) }
        @if let Some(since) = &summary.fails_since {
            " " span.state.bad { (texts::fails_since(&time(since))) }
        }
    }
}

/// A time, without its seconds.
pub(in super::super) fn time(text: &str) -> Markup {
    let shown = match (text.get(..10), text.get(11..16), text.ends_with('Z')) {
        (Some(day), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => text.to_owned(),
    };
    html! { time datetime=(text) { (shown) } }
}

/// The open circuit breaker of a source, which gets no request for some seconds.
pub(in super::super) fn circuit(open_secs: u64) -> Markup {
    html! { span.state.bad { (texts::circuit_open_for(open_secs)) } }
}
