//! Stores to test, and records for them.

use oaimend_oai::UnixSecs;
use oaimend_store::{
    Committed, HarvestProgress, ListFilter, ListQuery, MirrorError, MirrorStore, NewRecord, PageCommit,
    Position, Prefix, RecordRepairs, RecordStatus, RepositoryId, StoredRecord, content_hash,
};
use std::sync::Arc;

/// An implementation of the store.
pub trait MirrorBackend {
    /// Opens the store of this test. The caller has closed it before.
    fn open(&self) -> Arc<dyn MirrorStore>;
}

pub const REPOSITORY: RepositoryId<'static> = RepositoryId("x");
pub const PREFIX: Prefix<'static> = Prefix("oai_dc");

/// A live record, whose content is `text`.
pub fn record(identifier: &str, datestamp_secs: i64, set_specs: &[&str], text: &str) -> NewRecord {
    let set_specs: Vec<String> = set_specs.iter().map(|&set_spec| set_spec.to_owned()).collect();
    let bytes = format!("<record><header>{identifier}</header><metadata>{text}</metadata></record>");
    let content_hash = content_hash(RecordStatus::Live, &set_specs, &[bytes.as_bytes()]);
    NewRecord {
        identifier: identifier.to_owned(),
        datestamp_secs: UnixSecs(datestamp_secs),
        set_specs,
        status: RecordStatus::Live,
        content_hash,
        bytes: bytes.into(),
        repairs: RecordRepairs::default(),
    }
}

/// The same record, deleted.
pub fn deleted(identifier: &str, datestamp_secs: i64, set_specs: &[&str]) -> NewRecord {
    let live = record(identifier, datestamp_secs, set_specs, "");
    let content_hash = content_hash(RecordStatus::Deleted, &live.set_specs, &[]);
    let bytes = format!("<record><header status=\"deleted\">{identifier}</header></record>").into();
    NewRecord { status: RecordStatus::Deleted, content_hash, bytes, ..live }
}

/// Commits records to a collection, with the progress that is stored.
pub async fn commit_to(
    store: &dyn MirrorStore,
    (repository, prefix): (&str, &str),
    stamp_secs: i64,
    records: Vec<NewRecord>,
) -> Result<Committed, MirrorError> {
    let progress: HarvestProgress = store.progress(RepositoryId(repository), Prefix(prefix)).await?;
    let (repository, prefix) = (repository.to_owned(), prefix.to_owned());
    let stamp_secs = UnixSecs(stamp_secs);
    let page = PageCommit { repository, prefix, stamp_secs, records, progress, ..PageCommit::default() };
    store.commit(page).await
}

/// Commits records to the usual collection.
pub async fn commit(store: &dyn MirrorStore, stamp_secs: i64, records: Vec<NewRecord>) -> Committed {
    commit_to(store, (REPOSITORY.0, PREFIX.0), stamp_secs, records).await.expect("the commit is in order")
}

/// All records of the usual collection.
pub fn everything() -> ListFilter {
    ListFilter { repository: REPOSITORY.0.to_owned(), prefix: PREFIX.0.to_owned(), ..ListFilter::default() }
}

/// The first page of a list, as large as possible.
pub fn whole(filter: ListFilter) -> ListQuery {
    ListQuery { filter, after: None, count_max: usize::MAX - 1, bytes_max: usize::MAX, with_bytes: true }
}

/// All pages of a list, and the number of damaged records.
pub async fn all_pages(store: &dyn MirrorStore, query: ListQuery) -> (Vec<StoredRecord>, u64) {
    let (mut records, mut damaged, mut query) = (Vec::new(), 0, query);
    loop {
        let page = store.list(query.clone()).await.expect("readable");
        assert!(page.records.len() <= query.count_max);
        records.extend(page.records);
        damaged += page.damaged;
        let Some(next) = page.next else { return (records, damaged) };
        assert!(query.after.is_none_or(|after: Position| after < next), "the list makes no progress");
        query.after = Some(next);
    }
}

/// The identifiers of a list.
pub async fn identifiers_in(store: &dyn MirrorStore, filter: ListFilter) -> Vec<String> {
    let (records, damaged) = all_pages(store, whole(filter)).await;
    assert_eq!(damaged, 0);
    records.into_iter().map(|record| record.identifier).collect()
}
