//! Lists and single records of the mirror, as the source has them.

use super::list_token::SourceList;
use super::source_view::{SourceFacts, SourceView};
use crate::view::page_items::PageItems;
use crate::view::record_xml::{Header, read_record};
use crate::view::response::Answer;
use crate::view::sets::{TOKEN_TOO_LONG, write_token};
use oaimend_oai::{Argument, ErrorCode, escape};
use oaimend_repository::lists::DeliveredItems;
use oaimend_repository::{Failure, Reason, RepositoryRequest};
use oaimend_store::{
    Identifier, ListFilter, ListOrder, ListQuery, ListedPage, MirrorError, Position, Prefix, RecordStatus,
    StoredRecord,
};

/// The headers that are read at once to find the first record that a page contains.
const HEADERS_READ: usize = 1_000;

/// Answers `GetRecord`.
///
/// # Errors
///
/// The mirror does not have the record. The source may have it, so this is no proof that it does not exist.
pub(super) async fn record(source: &SourceView, request: &RepositoryRequest) -> Result<Answer, Failure> {
    let argument = |argument| request.request.argument(argument).unwrap_or_default();
    let (identifier, prefix) = (argument(Argument::Identifier), argument(Argument::MetadataPrefix));
    let state_secs = source.state_of(prefix).await?;
    let facts = source.facts().await?;
    let stored = source
        .view
        .stores
        .store
        .record(source.member()?.repository(), Prefix(prefix), Identifier(identifier))
        .await?;
    let stored = stored.filter(|record| is_listed(record, facts));
    let record = stored.ok_or_else(|| source.unknown(&format!("the record {identifier}")))?;
    let mut items = PageItems::new(request.reports_records);
    write(&mut items, &record, facts, true)?;
    Ok(Answer::page(state_secs, items.into_page()))
}

/// One page of a list.
///
/// # Errors
///
/// The store cannot be read, or a record of the page is damaged: the list would look complete without it.
pub(super) async fn page(
    source: &SourceView,
    mut list: SourceList,
    reports_records: bool,
) -> Result<Answer, Failure> {
    let facts = source.facts().await?;
    let delivered = match list.delivered {
        Some(pages) => source.histories.items(pages).await?,
        None => DeliveredItems::default(),
    };
    let is_first = list.after.is_none() && list.delivered.is_none();
    let reader = Reader { source, list: &list, facts, delivered };
    let (mut records, next) = reader.read().await?;
    if records.is_empty() && !is_first {
        let repeated = reader.find_delivered().await?;
        records.push(repeated.ok_or_else(|| source.unknown("the end of this list"))?);
    }
    let mut items = PageItems::new(reports_records);
    for record in &records {
        write(&mut items, record, facts, list.with_metadata)?;
    }
    let mut page = items.into_page();
    let latest_secs = records.iter().map(|record| record.datestamp_secs).max();
    let latest_secs = latest_secs.map_or(list.state, |latest| latest.max(list.state));
    source.spans.record(list.state, latest_secs, source.now_secs()).await?;
    if records.is_empty() {
        let text = "no record matches the arguments";
        return Ok(Answer::error(list.state, ErrorCode::NoRecordsMatch, text));
    }
    let is_of_mirror_alone = list.delivered.is_none() && facts.has_tombstones;
    if is_first && next.is_some() && is_of_mirror_alone {
        list.size = Some(source.view.stores.store.count(list.filter()).await?);
    }
    let count_after = list.count + page.items;
    if is_of_mirror_alone {
        let size = match next {
            Some(_) => list.size.map(|size| size.max(count_after + 1)),
            None => Some(count_after),
        };
        page.progress = (Some(list.count), size);
    }
    if let Some(next) = next {
        let rest = SourceList { count: count_after, after: Some(next), ..list.clone() };
        let token = rest.to_token(source.token_key());
        page.token = Some(token.ok_or_else(|| Failure::new(Reason::Mirror, TOKEN_TOO_LONG))?);
    }
    if page.token.is_some() || !is_first {
        write_token(&mut page, None);
    }
    Ok(Answer::page(list.state, page))
}

impl SourceList {
    /// A list without a window is in the order of the commits: a record that changes meanwhile moves to the end.
    fn order(&self) -> ListOrder {
        match (self.from, self.until) {
            (None, None) => ListOrder::Stamp,
            _ => ListOrder::Datestamp,
        }
    }

    fn filter(&self) -> ListFilter {
        ListFilter {
            repository: self.repository.clone(),
            prefix: self.prefix.clone(),
            set: self.set.clone(),
            by: self.order(),
            from_secs: self.from,
            until_secs: self.until,
            ..ListFilter::default()
        }
    }

    fn position_of(&self, record: &StoredRecord) -> Position {
        let secs = match self.order() {
            ListOrder::Stamp => record.stamp_secs,
            ListOrder::Datestamp => record.datestamp_secs,
        };
        Position { secs, sequence: record.sequence }
    }
}

/// Reads the records of a page that the harvester does not have.
struct Reader<'s> {
    source: &'s SourceView,
    list: &'s SourceList,
    facts: SourceFacts,
    delivered: DeliveredItems,
}

impl Reader<'_> {
    /// The records, and the position of the next page.
    async fn read(&self) -> Result<(Vec<StoredRecord>, Option<Position>), Failure> {
        let options = &self.source.view.options;
        let records_max = options.page_records_max.max(1);
        let (mut records, mut bytes) = (Vec::new(), 0);
        let mut after = self.list.after;
        loop {
            after = match self.skip_omitted(after).await? {
                Some(after) => after,
                None => return Ok((records, None)),
            };
            let count_max = records_max - records.len();
            let page = self.list(after, count_max, options.page_bytes_max.saturating_sub(bytes)).await?;
            let new = page.records.into_iter().filter(|record| self.is_new(record));
            records.extend(new.inspect(|record| bytes += record.bytes.len()));
            match page.next {
                Some(next) if records.len() < records_max && bytes < options.page_bytes_max => {
                    after = Some(next)
                }
                // A token must not lead to a page without records.
                Some(next) => return Ok((records, self.skip_omitted(Some(next)).await?.flatten())),
                None => return Ok((records, None)),
            }
        }
    }

    /// The position after the records that follow and that the page omits; `None` at the end of the list.
    async fn skip_omitted(&self, mut after: Option<Position>) -> Result<Option<Option<Position>>, Failure> {
        if self.delivered.is_empty() && self.facts.has_tombstones {
            return Ok(Some(after));
        }
        loop {
            let query = ListQuery { with_bytes: false, ..self.query(after, HEADERS_READ, usize::MAX) };
            let page = self.source.view.stores.store.list(query).await?;
            if page.damaged > 0 {
                return Err(MirrorError::Damaged.into());
            }
            for record in &page.records {
                if self.is_new(record) {
                    return Ok(Some(after));
                }
                after = Some(self.list.position_of(record));
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// A record of the list that the harvester has in this version. An end without a record would violate the schema.
    async fn find_delivered(&self) -> Result<Option<StoredRecord>, Failure> {
        let mut after = None;
        loop {
            let page = self.list(after, HEADERS_READ, self.source.view.options.page_bytes_max).await?;
            after = page.next;
            for record in page.records {
                // The mirror itself has delivered the records up to the position of its token.
                let is_before_token = Some(self.list.position_of(&record)) <= self.list.after;
                if is_listed(&record, self.facts) && (is_before_token || self.has_version(&record)) {
                    return Ok(Some(record));
                }
            }
            if after.is_none() {
                return Ok(None);
            }
        }
    }

    async fn list(
        &self,
        after: Option<Position>,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<ListedPage, Failure> {
        let page = self.source.view.stores.store.list(self.query(after, count_max, bytes_max)).await?;
        if page.damaged > 0 {
            return Err(MirrorError::Damaged.into());
        }
        Ok(page)
    }

    fn query(&self, after: Option<Position>, count_max: usize, bytes_max: usize) -> ListQuery {
        let with_bytes = self.list.with_metadata;
        ListQuery { filter: self.list.filter(), after, count_max, bytes_max, with_bytes }
    }

    fn is_new(&self, record: &StoredRecord) -> bool {
        if !is_listed(record, self.facts) {
            return false;
        }
        let header = Header::of_source(record, self.facts.granularity);
        let (identifier, datestamp) = escaped_names(&header);
        !self.delivered.contains(&identifier, datestamp)
    }

    fn has_version(&self, record: &StoredRecord) -> bool {
        let header = Header::of_source(record, self.facts.granularity);
        let (identifier, datestamp) = escaped_names(&header);
        self.delivered.contains_version(&identifier, datestamp)
    }
}

/// The identifier and the datestamp as written in the XML.
fn escaped_names<'h>(header: &'h Header<'_>) -> (String, &'h str) {
    let (identifier, datestamp) = header.names();
    let mut written = String::new();
    escape(identifier, &mut written);
    (written, datestamp)
}

/// Whether the source would list a record.
fn is_listed(record: &StoredRecord, facts: SourceFacts) -> bool {
    facts.has_tombstones || record.status == RecordStatus::Live
}

/// Writes a record as the source has it, or its header alone.
fn write(
    items: &mut PageItems,
    record: &StoredRecord,
    facts: SourceFacts,
    with_metadata: bool,
) -> Result<(), Failure> {
    let header = Header::of_source(record, facts.granularity);
    if with_metadata {
        items.push_record(&read_record(record)?, &header, &[])
    } else {
        items.push_header(&header)
    }
    Ok(())
}
