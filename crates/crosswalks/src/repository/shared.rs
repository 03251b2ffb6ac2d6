//! The wrapped repository, and what a request asks of the crosswalks.

use super::list_token::ListToken;
use super::settings::CrosswalkSettings;
use crate::table::Crosswalk;
use oaimend_oai::{Argument, Request, Verb};
use oaimend_repository::Repository;
use oaimend_store::ListedFormat;

/// What all requests to a repository share.
pub(super) struct Shared {
    pub(super) inner: Box<dyn Repository>,
    pub(super) settings: CrosswalkSettings,
}

/// What a request asks of the crosswalks.
pub(super) enum Task {
    /// The formats, with those that crosswalks add.
    ListFormats,
    /// Records or headers in a format that a crosswalk can make.
    Begin(Crosswalk),
    /// The rest of such a list.
    Continue(ListToken),
}

impl Shared {
    /// What a request asks of the crosswalks; `None`: nothing.
    pub(super) fn task_of(&self, request: &Request) -> Option<Task> {
        match request.verb() {
            Verb::ListMetadataFormats => Some(Task::ListFormats),
            Verb::GetRecord | Verb::ListRecords | Verb::ListIdentifiers => {
                match (
                    request.argument(Argument::ResumptionToken),
                    request.argument(Argument::MetadataPrefix),
                ) {
                    (Some(token), _) => ListToken::read(&self.settings.token_key, token).map(Task::Continue),
                    (None, prefix) => self.crosswalk(prefix?).cloned().map(Task::Begin),
                }
            }
            Verb::Identify | Verb::ListSets => None,
        }
    }

    pub(super) fn crosswalk(&self, prefix: &str) -> Option<&Crosswalk> {
        self.settings.crosswalks.iter().find(|crosswalk| crosswalk.prefix == prefix)
    }

    /// The crosswalks whose formats a repository with these formats lacks, each with the format that it reads.
    pub(super) fn derived<'s>(
        &'s self,
        formats: &'s [ListedFormat],
    ) -> impl Iterator<Item = (&'s Crosswalk, &'s ListedFormat)> {
        let is_native = |prefix: &str| formats.iter().any(|format| format.prefix == prefix);
        let lacking = self.settings.crosswalks.iter().filter(move |crosswalk| !is_native(&crosswalk.prefix));
        lacking.filter_map(|crosswalk| Some((crosswalk, crosswalk.source.among(formats)?)))
    }
}
