//! Answers `ListIdentifiers`, `ListRecords` and `GetRecord`.

use super::catalog::{check_all_complete, formats, formats_of_member, is_complete};
use super::collisions;
use super::list_token::{PageEnd, Place, RecordList, TokenContent};
use super::merge::{Merge, filter};
use super::options::{MirroredSource, PageLimits};
use super::page_cache::{PageKey, WrittenPage};
use super::part::{Chosen, Part, Parts};
use super::presentation::View;
use super::provenance::described_by;
use super::record_writer::{RecordWriter, ShownRecord};
use super::response::{Answer, Page};
use super::selected_list::{self, selected_list};
use super::sets::{TOKEN_TOO_LONG, check_members, sets, write_token};
use oaimend_oai::datestamp::{to_last_second, to_secs};
use oaimend_oai::{Argument, ErrorCode, UnixSecs, Verb, set_spec};
use oaimend_repository::{Failure, Reason, RepositoryRequest};
use oaimend_store::{Identifier, ListFilter, MirrorError, Prefix};
use std::sync::Arc;

/// Answers a request for the first page of a list or for a later one.
pub(super) async fn list(view: &View, request: &RepositoryRequest) -> Result<Answer, Failure> {
    let verb = request.request.verb();
    let token = request.request.argument(Argument::ResumptionToken);
    let list = match token {
        None => first_page(view, request).await?,
        Some(token) => match TokenContent::read(token, &view.stores.token_key, &view.name, verb) {
            Ok(TokenContent::Records(list)) => Ok(list),
            Ok(TokenContent::Sets(_)) => {
                let text = "this resumptionToken belongs to another verb";
                Err(Answer::error(view.now_secs(), ErrorCode::BadResumptionToken, text))
            }
            Err((code, text)) => Err(Answer::error(view.now_secs(), code, text)),
        },
    };
    match list {
        Ok(list) => page(view, list, request).await,
        Err(refused) => Ok(refused),
    }
}

/// The list that a request begins, or the error response to it.
async fn first_page(
    view: &View,
    RepositoryRequest { request, harvester, .. }: &RepositoryRequest,
) -> Result<Result<RecordList, Answer>, Failure> {
    let now_secs = view.now_secs();
    let prefix = request.argument(Argument::MetadataPrefix).unwrap_or_default();
    if formats(view).await?.iter().all(|format| format.prefix != prefix) {
        return Ok(Err(unknown_format(now_secs, prefix)));
    }
    // Stored setSpecs consist of the characters that the schema allows.
    let set = request.argument(Argument::Set).map(escape_set);
    let selection = match view.query_set(set.as_deref()).await?.transpose() {
        Ok(selection) => selection,
        Err(text) => return Ok(Err(Answer::error(now_secs, ErrorCode::BadArgument, text))),
    };
    if set.is_some() && selection.is_none() && sets(view).await?.is_empty() {
        let text = "this repository has no sets";
        return Ok(Err(Answer::error(now_secs, ErrorCode::NoSetHierarchy, text)));
    }
    let since = view.since_secs();
    let set_of_sources = if selection.is_some() { None } else { set.as_deref() };
    check_complete(view, &view.parts(prefix, set_of_sources, since), prefix).await?;
    let from = request.argument(Argument::From).and_then(to_secs);
    let until = request.argument(Argument::Until).and_then(to_last_second);
    let from = match from {
        // All changes before this `from` were in the last list of the harvester, because the responseDate of a view is the
        // state of the list.
        Some(from) if harvester.continues_from_first_response => Some(from),
        Some(from) => Some(view.spans.widen(from, until).await?),
        None => None,
    };
    let mut times = view.begin_list(now_secs).await?;
    let complete_until_secs = match (selection, view.members_of_view()) {
        (Some(selection), _) => Some(selection.complete_until_secs().await?),
        (None, Some(members)) => Some(members.complete_until_secs().await?),
        (None, None) => None,
    };
    if let Some(complete_until_secs) = complete_until_secs {
        times = times.up_to(complete_until_secs);
    }
    if view.members_of_view().is_some() && since > Some(times.until_secs) {
        // A commit that began before the change of the view has not ended. The list would be empty.
        return Err(view.incomplete("the view", None));
    }
    // A query set ends before a change of the configuration that is later than what the index knows. Its records are not
    // after the list then, but at its end, and again in the next list.
    let since = since.min(Some(times.until_secs));
    Ok(Ok(RecordList {
        view: view.name.clone(),
        with_metadata: request.verb() == Verb::ListRecords,
        prefix: prefix.to_owned(),
        set,
        from,
        until: until.map_or(times.until_secs, |until| until.min(times.until_secs)),
        since,
        date: times.response_date_secs,
        count: 0,
        size: None,
        after: None,
    }))
}

/// A setSpec in the characters of the schema. The separator of ODL-Union stays.
pub(crate) fn escape_set(set: &str) -> String {
    let parts = set.splitn(2, '/').map(|part| set_spec::escape(part.as_bytes()));
    let parts: Vec<String> = parts.map(|part| String::from_utf8_lossy(&part).into_owned()).collect();
    parts.join("/")
}

pub(super) fn unknown_format(date_secs: UnixSecs, prefix: &str) -> Answer {
    let text = format!("this repository has no format \"{prefix}\"; ListMetadataFormats lists all formats");
    Answer::error(date_secs, ErrorCode::CannotDisseminateFormat, text)
}

/// Checks that a list is no part that looks complete.
///
/// # Errors
///
/// The only repository of the list was never harvested completely, or none of several was. A list of several
/// repositories contains what was harvested so far: later commits are in the next incremental list.
async fn check_complete(view: &View, parts: &[Part<'_>], prefix: &str) -> Result<(), Failure> {
    let mirrored: Vec<&Part<'_>> = parts.iter().filter(|part| part.is_mirrored()).collect();
    for part in &mirrored {
        if is_complete(view, part.member, prefix).await? {
            return Ok(());
        }
    }
    match mirrored.as_slice() {
        [] => Ok(()),
        [part] => Err(view.incomplete(prefix, Some(part.member))),
        _ => Err(view.incomplete(prefix, None)),
    }
}

/// Checks that no repository lacks records that were damaged on disk. Its lists would look complete without them.
///
/// # Errors
///
/// Records are damaged. They are fetched again by the next harvest, or an operator accepts their loss.
async fn check_undamaged(view: &View, parts: &[Part<'_>], prefix: &str) -> Result<(), MirrorError> {
    for part in parts {
        let version = view.stores.store.version(part.member.repository(), Prefix(prefix)).await?;
        if version.is_some_and(|version| version.damaged > 0) {
            return Err(MirrorError::Damaged);
        }
    }
    Ok(())
}

/// One page of a list.
async fn page(view: &View, mut list: RecordList, request: &RepositoryRequest) -> Result<Answer, Failure> {
    let reports_records = request.reports_records;
    let set = list.set.clone();
    let selection = match view.query_set(set.as_deref()).await?.transpose() {
        Ok(selection) => selection,
        Err(text) => return Ok(Answer::error(list.date, ErrorCode::BadResumptionToken, text)),
    };
    let set_of_sources = if selection.is_some() { None } else { set.as_deref() };
    let parts = view.parts(&list.prefix, set_of_sources, list.since);
    let chosen = match (selection, view.members_of_view()) {
        (Some(selection), _) => Chosen::Query(selection),
        (None, Some(members)) => Chosen::Members(Arc::clone(members)),
        (None, None) => Chosen::All,
    };
    let parts = Parts { parts, chosen };
    check_undamaged(view, &parts.parts, &list.prefix).await?;
    check_members(view, &parts.parts, &list.prefix).await?;
    view.spans.record(list.date, list.until, view.now_secs()).await?;
    let limits = PageLimits {
        records_max: request
            .harvester
            .page_items_max
            .unwrap_or(usize::MAX)
            .min(view.options.page_records_max)
            .max(1),
        bytes_max: view.options.page_bytes_max,
        with_bytes: list.with_metadata,
    };
    let is_merged = view.merges_records() && list.set.is_none();
    let (mut page, PageEnd { last, mut has_more }) =
        cached_page(view, &parts, &list, limits, reports_records).await?;
    let is_first = list.after.is_none();
    if page.items == 0 && !is_first {
        // All records of the page have changed or gone since the token was written. A page has at least one record, so
        // the first one of the list is repeated.
        let whole = RecordList { until: UnixSecs::MAX, after: None, ..list.clone() };
        let limits = PageLimits { records_max: 1, ..limits };
        (page, _) = read_page(view, &parts, &whole, limits, reports_records).await?;
        has_more = false;
    }
    if page.items == 0 && is_first && !has_more {
        let text = "no record matches the arguments";
        return Ok(Answer::error(list.date, ErrorCode::NoRecordsMatch, text));
    }
    // The members of a view are not counted by sets.
    let is_counted = !is_merged && (view.members_of_view().is_none() || list.set.is_none());
    if is_first && has_more && is_counted {
        list.size = Some(count(view, &parts, &list).await?);
    }
    let count_after = list.count + page.items;
    // A record that changes during the list leaves it. The last page tells the number that was delivered.
    let size = if has_more { list.size.map(|size| size.max(count_after + 1)) } else { Some(count_after) };
    page.progress = (Some(list.count), size);
    if has_more {
        let next = RecordList { count: count_after, after: last, ..list.clone() };
        let token = TokenContent::Records(next).write(&view.stores.token_key);
        page.token = Some(token.ok_or_else(|| Failure::new(Reason::Mirror, TOKEN_TOO_LONG))?);
    }
    if has_more || !is_first {
        let wants_total = view.options.total_elements || request.harvester.reads_total_elements;
        let total = if wants_total && is_counted { Some(total_elements(view, &list).await?) } else { None };
        write_token(&mut page, total);
    }
    Ok(Answer::page(list.date, page))
}

/// The items of a page, from memory if possible, and the end of the page.
async fn cached_page(
    view: &View,
    parts: &Parts<'_>,
    list: &RecordList,
    limits: PageLimits,
    reports_records: bool,
) -> Result<(Page, PageEnd), Failure> {
    let pages = &view.stores.pages;
    let key = match parts.parts.as_slice() {
        [part] => {
            let version = view.stores.store.version(part.member.repository(), Prefix(&list.prefix)).await?;
            let described_by = described_by(view, part.member, &list.prefix).await?;
            version.map(|version| PageKey::new(version, (part, described_by), list, limits))
        }
        // A list of several repositories is not kept.
        _ => None,
    };
    let kept = key.as_ref().and_then(|key| pages.find(key)?.to_page(reports_records));
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let (page, end) = read_page(view, parts, list, limits, reports_records).await?;
    if let Some(key) = key {
        pages.keep(key, WrittenPage::new(&page, &end, reports_records));
    }
    Ok((page, end))
}

/// The items of a page from the store, and the end of the page.
///
/// # Errors
///
/// The store cannot be read, or a record of the page is damaged.
async fn read_page(
    view: &View,
    parts: &Parts<'_>,
    list: &RecordList,
    limits: PageLimits,
    reports_records: bool,
) -> Result<(Page, PageEnd), Failure> {
    let mut writer = RecordWriter::new(view, &list.prefix, reports_records);
    if let Chosen::Query(selection) = &parts.chosen {
        let chosen = (&**selection, parts.parts.as_slice());
        let end = selected_list::fill(&*view.stores.store, chosen, list, &mut writer, limits).await?;
        return Ok((writer.items.into_page(), end));
    }
    let mut merge = Merge::new(view.stores.store.clone(), parts, list, limits);
    let end = if view.merges_records() && list.set.is_none() {
        collisions::fill((view, parts), list, &mut merge, &mut writer, limits).await?
    } else {
        fill(list, &mut merge, &mut writer, limits).await?
    };
    Ok((writer.items.into_page(), end))
}

/// Writes records until the page is full.
///
/// If the list pauses before the first record of the page, the page has another record of the list. A page without any
/// would end the harvest.
async fn fill(
    list: &RecordList,
    merge: &mut Merge<'_>,
    writer: &mut RecordWriter<'_>,
    limits: PageLimits,
) -> Result<PageEnd, Failure> {
    let mut last = None;
    while !writer.is_full(limits) {
        if let Some((part, record)) = merge.next().await? {
            if last.is_none() {
                writer.items.reserve(merge.bytes_read() + record.bytes.len());
            }
            last = Some(Place::of(&part, &record));
            writer.write(ShownRecord::new(part, record), list.with_metadata).await?;
            continue;
        }
        let Some(paused_at) = merge.paused_at() else { break };
        if writer.items.count() == 0
            && let Some((part, record)) = merge.any_of_set().await?
        {
            writer.write(ShownRecord::new(part, record), list.with_metadata).await?;
        }
        if writer.items.count() > 0 {
            return Ok(PageEnd { has_more: true, last: Some(paused_at) });
        }
        merge.resume();
    }
    Ok(PageEnd { has_more: last.is_some() && merge.has_more(), last })
}

/// The number of records in a list, deleted ones included.
async fn count(view: &View, parts: &Parts<'_>, list: &RecordList) -> Result<u64, Failure> {
    if let Chosen::Query(selection) = &parts.chosen {
        return selection.count(&selected_list(&parts.parts, list)).await;
    }
    let mut sum = 0;
    for filter in parts.parts.iter().filter_map(|part| filter(part, list, list.from)) {
        sum += match parts.chosen.members() {
            Some(members) => members.count(&filter).await?,
            None => view.stores.store.count(filter).await?,
        };
    }
    Ok(sum)
}

/// The number of all records in the format of a list.
async fn total_elements(view: &View, list: &RecordList) -> Result<u64, Failure> {
    let mut sum = 0;
    for member in &view.members {
        let (repository, prefix) = (member.id.clone(), list.prefix.clone());
        let filter = ListFilter { repository, prefix, ..ListFilter::default() };
        sum += match view.members_of_view() {
            Some(members) => members.count(&filter).await?,
            None => view.stores.store.count(filter).await?,
        };
    }
    Ok(sum)
}

/// Answers `GetRecord`.
pub(super) async fn get_record(view: &View, request: &RepositoryRequest) -> Result<Answer, Failure> {
    let now_secs = view.now_secs();
    let argument = |argument| request.request.argument(argument).unwrap_or_default();
    let (identifier, prefix) = (argument(Argument::Identifier), argument(Argument::MetadataPrefix));
    if formats(view).await?.iter().all(|format| format.prefix != prefix) {
        return Ok(unknown_format(now_secs, prefix));
    }
    let parts = view.parts(prefix, None, view.since_secs());
    let chosen = view.members_of_view().map_or(Chosen::All, |members| Chosen::Members(Arc::clone(members)));
    let parts = Parts { parts, chosen };
    // A view judges the commits that it does not know first. If there are too many, it answers what it knows.
    let is_behind = match view.members_of_view() {
        Some(members) => !matches!(members.complete_until_secs().await, Ok(UnixSecs::MAX)),
        None => false,
    };
    if let Some(shown) = find_record(view, &parts, prefix, identifier).await? {
        let mut writer = RecordWriter::new(view, prefix, request.reports_records);
        writer.write(shown, true).await?;
        return Ok(Answer::page(now_secs, writer.items.into_page()));
    }
    if is_behind {
        return Err(view.behind(identifier));
    }
    for part in &parts.parts {
        if is_stored(view, part.member, identifier).await? {
            if part.is_mirrored() && !is_complete(view, part.member, prefix).await? {
                return Err(view.incomplete(prefix, Some(part.member)));
            }
            let text = format!("the item {identifier} is not available as {prefix}");
            return Ok(Answer::error(now_secs, ErrorCode::CannotDisseminateFormat, text));
        }
    }
    check_all_complete(view, Some(prefix)).await?;
    let text = format!("the item {identifier} does not exist");
    Ok(Answer::error(now_secs, ErrorCode::IdDoesNotExist, text))
}

/// Whether a repository has an item in any format. A view has its members.
async fn is_stored(view: &View, member: &MirroredSource, identifier: &str) -> Result<bool, Failure> {
    if view.members_of_view().is_some() {
        return Ok(formats_of_member(view, &formats(view).await?, identifier).await?.0);
    }
    let formats = view.stores.store.formats_of_item(member.repository(), Identifier(identifier)).await?;
    Ok(!formats.is_empty())
}

/// The record with an identifier, as lists contain it. A withdrawn or deleted record never hides another one.
async fn find_record<'v>(
    view: &'v View,
    parts: &Parts<'v>,
    prefix: &str,
    identifier: &str,
) -> Result<Option<ShownRecord<'v>>, Failure> {
    if view.members_of_view().is_some() {
        return collisions::find(view, parts, prefix, identifier).await;
    }
    if parts.parts.len() > 1
        && let Some(shown) = collisions::find(view, parts, prefix, identifier).await?
    {
        return Ok(Some(shown));
    }
    for part in parts.parts.iter().filter(|part| part.is_mirrored()) {
        if let Some(record) =
            view.stores.store.record(part.member.repository(), Prefix(prefix), Identifier(identifier)).await?
        {
            return Ok(Some(ShownRecord::new(*part, record)));
        }
    }
    for part in parts.parts.iter().filter(|part| !part.is_mirrored()) {
        let identifiers = [identifier.to_owned()];
        let headers =
            view.stores.store.headers(part.member.repository(), Prefix(prefix), &identifiers).await?;
        if let Some(record) = headers.into_iter().flatten().next() {
            return Ok(Some(ShownRecord::new(*part, part.present(record))));
        }
    }
    Ok(None)
}
