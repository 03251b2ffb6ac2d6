//! Answers the lists of a [`Component`].

use super::component::{Component, ComponentSet, ComponentSets, CountPlace, RankedList, RankedRecords};
use super::list_token::{SetList, TokenContent};
use super::lists::{escape_set, unknown_format};
use super::options::MirroredSource;
use super::part::Part;
use super::presentation::View;
use super::record_writer::{RecordWriter, ShownRecord};
use super::response::{Answer, Page};
use super::sets::{TOKEN_TOO_LONG, read_set_list, write_token};
use super::{catalog, lists};
use oaimend_oai::{Argument, ErrorCode, Request, Verb, escape};
use oaimend_repository::{Failure, Reason, RepositoryRequest};
use oaimend_store::{Identifier, Prefix, RecordStatus};

/// The maximum of bytes of the records in a list that is not split into pages.
const RANKED_BYTES_MAX: usize = 16 << 20;
/// Maximum number of sets in a page, because the records of each are counted.
const SETS_MAX: usize = 100;

/// Answers `ListSets`.
pub(super) async fn list_sets(
    view: &View,
    component: &dyn Component,
    request: &Request,
) -> Result<Answer, Failure> {
    let list = match read_set_list(view, request) {
        Ok(list) => list,
        Err((code, text)) => return Ok(Answer::error(view.now_secs(), code, text)),
    };
    let count_max = view.options.page_sets_max.clamp(1, SETS_MAX);
    let found = component.sets(list.after.as_deref(), count_max).await?;
    let Some(ComponentSets { sets, next: after }) = found.filter(|found| !found.sets.is_empty()) else {
        let text = "this repository does not list its sets, because a request chooses them";
        return Ok(Answer::error(list.date, ErrorCode::NoSetHierarchy, text));
    };
    let mut xml = String::new();
    sets.iter().for_each(|set| write_set(set, &mut xml));
    let items = sets.len() as u64;
    let mut page = Page { xml: xml.into(), items, progress: (Some(list.count), None), ..Page::default() };
    let has_more = after.is_some();
    if has_more {
        let next = SetList { count: list.count + items, after, ..list.clone() };
        let token = TokenContent::Sets(next).write(&view.stores.token_key);
        page.token = Some(token.ok_or_else(|| Failure::new(Reason::Mirror, TOKEN_TOO_LONG))?);
    }
    if list.after.is_some() || has_more {
        write_token(&mut page, None);
    }
    Ok(Answer::page(list.date, page))
}

/// Writes a set, with the number of its records in a description that the schema of oai_dc validates.
fn write_set(set: &ComponentSet, xml: &mut String) {
    xml.push_str("    <set><setSpec>");
    escape(&set.set_spec, xml);
    xml.push_str("</setSpec><setName>");
    escape(&set.name, xml);
    xml.push_str(concat!(
        "</setName><setDescription>",
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\"",
        " xmlns:dc=\"http://purl.org/dc/elements/1.1/\"",
        " xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/",
        " http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:description>",
    ));
    let noun = if set.records == 1 { "record" } else { "records" };
    xml.push_str(&format!("{} {noun}</dc:description></oai_dc:dc></setDescription></set>\n", set.records));
}

/// Answers `ListIdentifiers` and `ListRecords`.
pub(super) async fn list(
    view: &View,
    component: &dyn Component,
    request: &RepositoryRequest,
) -> Result<Answer, Failure> {
    let argument = |argument| request.request.argument(argument);
    let Some(set) = argument(Argument::Set) else { return lists::list(view, request).await };
    let now_secs = view.now_secs();
    let prefix = argument(Argument::MetadataPrefix).unwrap_or_default();
    if catalog::formats(view).await?.iter().all(|format| format.prefix != prefix) {
        return Ok(unknown_format(now_secs, prefix));
    }
    let refused = |text: String| Ok(Answer::error(now_secs, ErrorCode::BadArgument, text));
    let ranked = match component.ranked(set, prefix).await? {
        None => return lists::list(view, request).await,
        Some(RankedList::Refused(text)) => return refused(text),
        Some(RankedList::Records(ranked)) => ranked,
    };
    if [Argument::From, Argument::Until].into_iter().any(|date| argument(date).is_some()) {
        return refused(format!(
            "from and until do not apply to the set {}, which is a part of a ranking; omit them",
            escape_set(set)
        ));
    }
    let container = container(&ranked);
    let mut writer = RecordWriter::new(view, prefix, request.reports_records);
    let with_metadata = request.request.verb() == Verb::ListRecords;
    for (repository, identifier) in &ranked.records {
        let is_shown = |member: &&MirroredSource| member.id == *repository && !member.is_withdrawn_in(prefix);
        let Some(member) = view.mirrored().find(is_shown) else { continue };
        let key = (member.repository(), Prefix(prefix), Identifier(identifier));
        let record = view.stores.store.record(key.0, key.1, key.2).await?;
        let Some(record) = record.filter(|record| record.status == RecordStatus::Live) else { continue };
        let part = Part::new(member, prefix, None, view.since_secs());
        writer.write(ShownRecord::new(part, record), with_metadata).await?;
        if writer.items.bytes() > RANKED_BYTES_MAX {
            let max = RANKED_BYTES_MAX >> 20;
            return refused(format!("the records have more than {max} MiB; request fewer of them"));
        }
    }
    if writer.items.count() == 0 {
        let text = match ranked.hits {
            0 => "no record matches the query".to_owned(),
            hits => format!("{hits} records match the query, and none of them is in the requested range"),
        };
        let answer = Answer::error(now_secs, ErrorCode::NoRecordsMatch, text);
        return Ok(Answer { container, ..answer });
    }
    let mut page = writer.items.into_page();
    if ranked.count_place == CountPlace::ResumptionToken {
        page.progress = (Some(ranked.offset), Some(ranked.hits));
        write_token(&mut page, None);
    }
    Ok(Answer { container, ..Answer::page(now_secs, page) })
}

/// The element after the element of the verb.
fn container(ranked: &RankedRecords) -> String {
    if ranked.count_place == CountPlace::ResponseContainer {
        format!("  <responseContainer>\n    <hits>{}</hits>\n  </responseContainer>\n", ranked.hits)
    } else {
        String::new()
    }
}
