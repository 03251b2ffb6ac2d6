//! The mirror as its source: it answers with the datestamps, sets and identifiers of the source.
//!
//! A response shows the state of the mirror: its responseDate is the time up to which the last complete harvest has
//! all changes.

use super::failover_repository::last_second;
use super::list_token::SourceList;
use super::lists;
use crate::clock;
use crate::mirror::rules::ListState;
use crate::mirror::spans::Spans;
use crate::mirror::view::catalog::{formats_of, formats_page};
use crate::mirror::view::identify::{StoredIdentify, stored_identify};
use crate::mirror::view::lists::escape_set;
use crate::mirror::view::presentation::{View, ViewKind};
use crate::mirror::view::response::{Answer, Page};
use crate::mirror::view::sets::{sets, write_set};
use crate::mirror::view::{MirroredSource, ViewOptions, ViewStores};
use crate::oai::datestamp::{Granularity, to_secs};
use crate::oai::{Argument, ErrorCode, Request, Verb};
use crate::repository::{Failure, Reason, RepositoryRequest};
use crate::store::{RecordStatus, TokenKey};
use crate::upstream::{DeliveredItems, ListHistories, ListHistory};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One mirrored repository, presented as its source.
#[derive(Debug)]
pub(super) struct SourceView {
    pub(super) view: View,
    pub(super) histories: ListHistories,
    pub(super) spans: Arc<Spans>,
}

/// The facts of the source that its records depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceFacts {
    pub(super) granularity: Granularity,
    /// Whether the source lists deleted records.
    pub(super) has_tombstones: bool,
}

impl SourceView {
    pub(super) fn new(
        stores: ViewStores,
        options: ViewOptions,
        source: MirroredSource,
        histories: ListHistories,
        spans: Arc<Spans>,
    ) -> Self {
        let view = View::new(source.id.clone(), stores, options, vec![source], ViewKind::Single);
        Self { view, histories, spans }
    }

    pub(super) fn token_key(&self) -> &TokenKey {
        &self.view.stores.token_key
    }

    /// The clock, in seconds since 1970.
    pub(super) fn now_secs(&self) -> i64 {
        i64::try_from(clock::secs(self.view.stores.clock.now())).unwrap_or(i64::MAX)
    }

    /// The mirrored repository.
    ///
    /// # Errors
    ///
    /// None in practice: the view has one repository.
    pub(super) fn member(&self) -> Result<&MirroredSource, Failure> {
        self.view.members.first().ok_or_else(|| self.view.incomplete("anything", None))
    }

    /// Answers a request in place of the source.
    ///
    /// # Errors
    ///
    /// The mirror cannot answer correctly: it is not complete, or does not know enough of the list.
    pub(super) async fn answer(&self, request: &RepositoryRequest) -> Result<Answer, Failure> {
        match request.request.verb() {
            Verb::Identify => self.identify(&request.own.base_url).await,
            Verb::ListMetadataFormats => self.formats(&request.request).await,
            Verb::ListSets => self.sets(&request.request).await,
            Verb::GetRecord => lists::record(self, request).await,
            Verb::ListIdentifiers | Verb::ListRecords => {
                let list = self.begin_list(&request.request).await?;
                lists::page(self, list, request.reports_records).await
            }
        }
    }

    /// Answers a request with a token of the mirror.
    ///
    /// # Errors
    ///
    /// The mirror cannot answer correctly.
    pub(super) async fn continue_list(
        &self,
        request: &RepositoryRequest,
        list: SourceList,
    ) -> Result<Answer, Failure> {
        let is_of_request = list.repository == self.view.name
            && list.with_metadata == (request.request.verb() == Verb::ListRecords)
            && request.request.verb().is_harvest();
        if !is_of_request {
            let text = "this resumptionToken belongs to another list";
            return Ok(Answer::error(self.now_secs(), ErrorCode::BadResumptionToken, text));
        }
        self.state_of(&list.prefix).await?;
        lists::page(self, list, request.reports_records).await
    }

    async fn stored_identify(&self) -> Result<StoredIdentify, Failure> {
        let member = self.member()?;
        let stored = stored_identify(&self.view, member).await?;
        stored.ok_or_else(|| self.view.incomplete("Identify", Some(member)))
    }

    pub(super) async fn facts(&self) -> Result<SourceFacts, Failure> {
        let identify = self.stored_identify().await?;
        let has_tombstones = identify.deleted_record.as_deref() != Some("no");
        Ok(SourceFacts { granularity: identify.granularity, has_tombstones })
    }

    /// The state of the mirror in a format, in seconds since 1970 by the clock of the source.
    ///
    /// # Errors
    ///
    /// The format is not mirrored, was never harvested completely, or has damaged records.
    pub(super) async fn state_of(&self, prefix: &str) -> Result<i64, Failure> {
        let member = self.member()?;
        let formats = formats_of(&self.view, member).await?;
        let store = &self.view.stores.store;
        let progress = store.progress(&member.id, prefix).await?;
        let is_mirrored = formats.iter().any(|format| format.prefix == prefix);
        let Some(complete) = progress.last_complete.filter(|_| is_mirrored) else {
            return Err(self.view.incomplete(prefix, Some(member)));
        };
        let collections = store.collections(&member.id).await?;
        if collections.iter().any(|collection| collection.prefix == prefix && collection.damaged > 0) {
            return Err(crate::store::MirrorError::Damaged.into());
        }
        Ok(complete.from_secs)
    }

    /// The state of the mirror in its oldest format.
    async fn state(&self) -> Result<i64, Failure> {
        let member = self.member()?;
        let mut oldest: Option<i64> = None;
        for format in formats_of(&self.view, member).await? {
            let state_secs = self.state_of(&format.prefix).await?;
            oldest = Some(oldest.map_or(state_secs, |oldest| oldest.min(state_secs)));
        }
        oldest.ok_or_else(|| self.view.incomplete("the formats", Some(member)))
    }

    async fn identify(&self, base_url: &str) -> Result<Answer, Failure> {
        let identify = self.stored_identify().await?;
        Ok(Answer::page(self.state().await?, identify.to_page_of_source(base_url)))
    }

    async fn formats(&self, request: &Request) -> Result<Answer, Failure> {
        let state_secs = self.state().await?;
        let member = self.member()?;
        let store = &self.view.stores.store;
        let mut formats = store.catalog(&member.id).await?.formats;
        if let Some(identifier) = request.argument(Argument::Identifier) {
            let stored = store.formats_of_item(&member.id, identifier).await?;
            let live = stored.into_iter().filter(|(_, status)| *status == RecordStatus::Live);
            let live: BTreeSet<String> = live.map(|(prefix, _)| prefix).collect();
            let are_all_mirrored = formats_of(&self.view, member).await?.len() == formats.len();
            if live.is_empty() || !are_all_mirrored {
                // Harvesters delete an item that does not exist.
                return Err(self.unknown(&format!("the formats of {identifier}")));
            }
            formats.retain(|format| live.contains(&format.prefix));
        }
        Ok(Answer::page(state_secs, formats_page(&formats)))
    }

    /// The sets in one page; the rest of them after pages of the source.
    async fn sets(&self, request: &Request) -> Result<Answer, Failure> {
        let state_secs = self.state().await?;
        let delivered = match request.argument(Argument::ResumptionToken) {
            Some(token) => self.items_of(&self.history(Verb::ListSets, token).await?).await?,
            None => DeliveredItems::default(),
        };
        let sets = sets(&self.view).await?;
        if sets.is_empty() {
            let text = "this repository has no sets";
            return Ok(Answer::error(state_secs, ErrorCode::NoSetHierarchy, text));
        }
        let (mut xml, mut items) = (String::new(), 0);
        for (set_spec, name) in sets.iter().filter(|(set_spec, _)| !delivered.contains(set_spec, "")) {
            write_set(set_spec, name, &mut xml);
            items += 1;
        }
        if request.is_resumption() {
            xml.push_str("    <resumptionToken/>\n");
        }
        Ok(Answer::page(state_secs, Page { xml: xml.into_bytes(), items, ..Page::default() }))
    }

    /// The list that a request begins, or that it continues after pages of the source.
    async fn begin_list(&self, request: &Request) -> Result<SourceList, Failure> {
        let history = match request.argument(Argument::ResumptionToken) {
            Some(token) => Some(self.history(request.verb(), token).await?),
            None => None,
        };
        let first = history.as_ref().map_or(request, |history| &history.first);
        let prefix = first.argument(Argument::MetadataPrefix).unwrap_or_default();
        // Stored setSpecs consist of the characters that the schema allows.
        let set = first.argument(Argument::Set).map(escape_set);
        self.check_set(set.as_deref())?;
        let state = ListState::new(self.state_of(prefix).await?);
        let begun = history.as_ref().and_then(|history| history.state_secs).map(ListState::new);
        let state = begun.map_or(state, |begun| begun.continued_with(state));
        let grain_secs = match self.facts().await?.granularity {
            Granularity::Day => 86_400,
            Granularity::Second => 1,
        };
        let from = first.argument(Argument::From).and_then(to_secs);
        Ok(SourceList {
            repository: self.view.name.clone(),
            with_metadata: request.verb() == Verb::ListRecords,
            prefix: prefix.to_owned(),
            set,
            from: from.map(|secs| secs - secs.rem_euclid(grain_secs)),
            until: first.argument(Argument::Until).and_then(last_second),
            state: state.secs(),
            count: 0,
            size: None,
            after: None,
            delivered: history.and_then(|history| history.delivered),
        })
    }

    /// Checks that the mirror contains all records of a set.
    fn check_set(&self, set: Option<&str>) -> Result<(), Failure> {
        let member = self.member()?;
        let contains = |mirrored: &String| {
            let rest = set.and_then(|set| set.strip_prefix(mirrored.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        match member.sets.is_empty() || member.sets.iter().any(contains) {
            true => Ok(()),
            false => Err(self.view.incomplete(set.unwrap_or("all sets"), Some(member))),
        }
    }

    async fn history(&self, verb: Verb, token: &str) -> Result<ListHistory, Failure> {
        let now = self.view.stores.clock.now();
        let found = self.histories.find(verb.as_str(), token, now).await?;
        found.ok_or_else(|| self.unknown("the list of this resumptionToken"))
    }

    async fn items_of(&self, history: &ListHistory) -> Result<DeliveredItems, Failure> {
        match history.delivered {
            Some(pages) => self.histories.items(pages).await,
            None => Ok(DeliveredItems::default()),
        }
    }

    /// The failure of a request for an object that only the source can know.
    pub(super) fn unknown(&self, object: &str) -> Failure {
        Failure::new(
            Reason::Mirror,
            format!("the mirror does not know {object}; retry when the source is back"),
        )
    }
}
