//! Tests of the policy of the quarantine.

use super::*;

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn record(identifier: &str, raw: &[u8]) -> QuarantinedRecord {
    let identifier = Some(identifier.to_owned());
    QuarantinedRecord { identifier, why: "mismatched-tags", offset: 7, raw: raw.to_vec() }
}

fn entry(identifier: &str, received_at: &str) -> QuarantineEntry {
    let batch = QuarantineBatch {
        repository: "x".to_owned(),
        request: LIST.to_owned(),
        metadata_prefix: None,
        received_at: received_at.to_owned(),
        bytes_max: 0,
        records: Vec::new(),
    };
    QuarantineEntry::after(None, &record(identifier, b"<a>"), &batch)
}

fn resolved(identifier: &str, at: &str) -> (String, QuarantineEntry) {
    let entry = QuarantineEntry { resolved_at: Some(at.to_owned()), ..entry(identifier, "t0") };
    (identifier.to_owned(), entry)
}

#[test]
fn a_key_tells_repositories_identifiers_and_bytes_apart() {
    let key = record("ab", b"c").key("x");
    assert_eq!(key.len(), 2 * KEY_BYTES);
    let others = [record("a", b"bc").key("x"), record("ab", b"d").key("x"), record("ab", b"c").key("xa")];
    assert!(!others.contains(&key), "{others:?}");
}

#[test]
fn the_entries_that_were_resolved_first_make_room() {
    let one = entry("1", "t0").disk_bytes();
    assert_eq!(one, 4096 + 512 + 1 + LIST.len() as u64);
    let size = QuarantineSize { records: 4, bytes: 4 * one };
    let keys = |bytes_max| {
        let all = vec![resolved("1", "t3"), resolved("2", "t1"), resolved("3", "t2")];
        let surplus = size.surplus(all, bytes_max)?;
        Some(surplus.into_iter().map(|(key, _)| key).collect::<String>())
    };
    assert_eq!(keys(4 * one).as_deref(), Some(""));
    assert_eq!(keys(4 * one - 1).as_deref(), Some("2"));
    assert_eq!(keys(2 * one).as_deref(), Some("23"));
    assert_eq!(keys(one - 1), None, "the open entry does not fit");
}

#[test]
fn a_size_counts_entries_and_their_bytes() {
    let (small, large) = (entry("1", "t0"), QuarantineEntry { bytes: 5_000, ..entry("1", "t0") });
    let size = QuarantineSize::default().after(None, Some(&small));
    assert_eq!(size, QuarantineSize { records: 1, bytes: small.disk_bytes() });
    assert_eq!(size.after(Some(&small), Some(&large)).bytes, small.disk_bytes() + 4096);
    assert_eq!(size.after(Some(&small), None), QuarantineSize::default());
    assert_eq!(QuarantineSize::default().after(Some(&small), None), QuarantineSize::default());
}

#[test]
fn a_whole_record_resolves_an_open_entry_once() {
    let whole = WholeRecords {
        repository: "x".to_owned(),
        headers_only: false,
        metadata_prefix: Some("oai_dc".to_owned()),
        identifiers: vec!["a&b".to_owned()],
        received_at: "t1".to_owned(),
    };
    let after = entry("a&amp;b", "t0").resolved_by(&whole).expect("it is the same record");
    assert_eq!((after.state(), after.changed_at()), (QuarantineState::Resolved, "t1"));
    assert_eq!(after.resolved_by(&whole), None, "the first time counts");
    assert_eq!(entry("c", "t0").resolved_by(&whole), None);
}
