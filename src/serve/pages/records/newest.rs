//! The newest records of a list, which the store lists from the oldest one.

use oaimend_pages::list::{LINKS_MAX, SequenceRange};
use oaimend_store::{ListFilter, ListQuery, MirrorError, MirrorStore, StoredRecord};

/// The newest records of a list by stamp, the newest first, without their bytes. Counts by ranges of sequences find where
/// they begin, so the cost does not depend on the length of the list: fewer than 1,000 records before them are read.
///
/// # Errors
///
/// The store cannot be read.
pub(in crate::serve::pages) async fn newest(
    store: &dyn MirrorStore,
    filter: ListFilter,
    count_max: usize,
) -> Result<Vec<StoredRecord>, MirrorError> {
    let mut first = 0;
    for width in SequenceRange::widths() {
        let within = ListFilter { sequences: Some(first..u64::MAX), ..filter.clone() };
        let counts = store.count_by_sequence(within, width).await?;
        let mut found = 0;
        for (start, count) in counts.into_iter().rev() {
            first = start;
            found += count;
            if found >= count_max as u64 {
                break;
            }
        }
    }
    let mut query = ListQuery {
        filter: ListFilter { sequences: Some(first..u64::MAX), ..filter },
        after: None,
        count_max: count_max + usize::try_from(LINKS_MAX).unwrap_or(usize::MAX),
        bytes_max: usize::MAX,
        with_bytes: false,
    };
    let mut records = Vec::new();
    loop {
        let page = store.list(query.clone()).await?;
        records.extend(page.records);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let older = records.len().saturating_sub(count_max);
    Ok(records.split_off(older).into_iter().rev().collect())
}
