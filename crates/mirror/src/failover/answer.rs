//! Answers requests in place of the source, by verb.

use super::list_token::SourceList;
use super::lists;
use super::source_view::SourceView;
use crate::view::catalog::{formats_of, formats_page};
use crate::view::lists::escape_set;
use crate::view::response::{Answer, Page};
use crate::view::sets::{sets as all_sets, write_set};
use oaimend_oai::datestamp::{Granularity, to_last_second, to_secs};
use oaimend_oai::{Argument, ErrorCode, Request, Verb};
use oaimend_repository::lists::DeliveredItems;
use oaimend_repository::{Failure, RepositoryRequest};
use oaimend_rules::ListState;
use oaimend_store::{Identifier, RecordStatus};
use std::collections::BTreeSet;

/// Answers a request in place of the source.
///
/// # Errors
///
/// The mirror cannot answer correctly: it is not complete, or does not know enough of the list.
pub(super) async fn answer(source: &SourceView, request: &RepositoryRequest) -> Result<Answer, Failure> {
    match request.request.verb() {
        Verb::Identify => identify(source, &request.echo.base_url).await,
        Verb::ListMetadataFormats => formats(source, &request.request).await,
        Verb::ListSets => sets(source, &request.request).await,
        Verb::GetRecord => lists::record(source, request).await,
        Verb::ListIdentifiers | Verb::ListRecords => {
            let list = begin_list(source, &request.request).await?;
            lists::page(source, list, request.reports_records).await
        }
    }
}

/// Answers a request with a token of the mirror.
///
/// # Errors
///
/// The mirror cannot answer correctly.
pub(super) async fn continue_list(
    source: &SourceView,
    request: &RepositoryRequest,
    list: SourceList,
) -> Result<Answer, Failure> {
    let is_of_request = list.repository == source.view.name
        && list.with_metadata == (request.request.verb() == Verb::ListRecords)
        && request.request.verb().is_harvest();
    if !is_of_request {
        let text = "this resumptionToken belongs to another list";
        return Ok(Answer::error(source.now_secs(), ErrorCode::BadResumptionToken, text));
    }
    source.state_of_list(&list.prefix, list.set.as_deref()).await?;
    lists::page(source, list, request.reports_records).await
}

async fn identify(source: &SourceView, base_url: &str) -> Result<Answer, Failure> {
    let identify = source.stored_identify().await?;
    Ok(Answer::page(source.state().await?, identify.to_page_of_source(base_url)))
}

async fn formats(source: &SourceView, request: &Request) -> Result<Answer, Failure> {
    let state_secs = source.state().await?;
    let member = source.member()?;
    let store = &source.view.stores.store;
    let mut formats = store.catalog(member.repository()).await?.formats;
    if let Some(identifier) = request.argument(Argument::Identifier) {
        let stored = store.formats_of_item(member.repository(), Identifier(identifier)).await?;
        let live = stored.into_iter().filter(|(_, status)| *status == RecordStatus::Live);
        let live: BTreeSet<String> = live.map(|(prefix, _)| prefix).collect();
        let are_all_mirrored = formats_of(&source.view, member).await?.len() == formats.len();
        if live.is_empty() || !are_all_mirrored {
            // Harvesters delete an item that does not exist.
            return Err(source.unknown(&format!("the formats of {identifier}")));
        }
        formats.retain(|format| live.contains(&format.prefix));
    }
    Ok(Answer::page(state_secs, formats_page(&formats)))
}

/// The sets in one page; the rest of them after pages of the source.
async fn sets(source: &SourceView, request: &Request) -> Result<Answer, Failure> {
    let state_secs = source.state().await?;
    let delivered = match request.argument(Argument::ResumptionToken) {
        Some(token) => source.items_of(&source.history(Verb::ListSets, token).await?).await?,
        None => DeliveredItems::default(),
    };
    let sets = all_sets(&source.view).await?;
    if sets.is_empty() {
        let text = "this repository has no sets";
        return Ok(Answer::error(state_secs, ErrorCode::NoSetHierarchy, text));
    }
    let (mut xml, mut items) = (String::new(), 0);
    for (set_spec, name) in sets.iter().filter(|(set_spec, _)| !delivered.contains(set_spec, "")) {
        write_set(set_spec, name, &mut xml);
        items += 1;
    }
    if let (0, Some((set_spec, name))) = (items, sets.last_key_value()) {
        // A list without a set would violate the schema.
        write_set(set_spec, name, &mut xml);
        items = 1;
    }
    if request.is_resumption() {
        xml.push_str("    <resumptionToken/>\n");
    }
    Ok(Answer::page(state_secs, Page { xml: xml.into(), items, ..Page::default() }))
}

/// The list that a request begins, or that it continues after pages of the source.
async fn begin_list(source: &SourceView, request: &Request) -> Result<SourceList, Failure> {
    let history = match request.argument(Argument::ResumptionToken) {
        Some(token) => Some(source.history(request.verb(), token).await?),
        None => None,
    };
    let first = history.as_ref().map_or(request, |history| &history.first);
    let prefix = first.argument(Argument::MetadataPrefix).unwrap_or_default();
    // Stored setSpecs consist of the characters that the schema allows.
    let set = first.argument(Argument::Set).map(escape_set);
    let state = source.state_of_list(prefix, set.as_deref()).await?;
    let begun = history.as_ref().and_then(|history| history.state_secs).map(ListState::new);
    let state = begun.map_or(state, |begun| begun.continued_with(state));
    let grain_secs = match source.facts().await?.granularity {
        Granularity::Day => 86_400,
        Granularity::Second => 1,
    };
    let from = first.argument(Argument::From).and_then(to_secs);
    Ok(SourceList {
        repository: source.view.name.clone(),
        with_metadata: request.verb() == Verb::ListRecords,
        prefix: prefix.to_owned(),
        set,
        from: from.map(|secs| secs.floor_to(grain_secs)),
        until: first.argument(Argument::Until).and_then(to_last_second),
        state: state.secs(),
        count: 0,
        size: None,
        after: None,
        delivered: history.and_then(|history| history.delivered),
    })
}
