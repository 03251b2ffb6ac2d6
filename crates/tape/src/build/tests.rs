//! Tests of whole tapes: built, indexed, verified, read, and damaged.

use super::*;
use crate::index::ReadError;
use crate::verify::{IndexState, verify};
use crate::{NAMESPACE, rebuild_index};
use std::fs;
use std::io::{Read as _, Write as _};
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.xml.gz");
        Self { folder, path }
    }

    fn built(records: &[TapeRecord]) -> Self {
        let fixture = Self::new();
        fixture.build(records, OnDuplicate::KeepNewest).expect("a tape");
        fixture
    }

    fn build(&self, records: &[TapeRecord], on_duplicate: OnDuplicate) -> Result<BuiltTape, String> {
        let description = TapeDescription { id: "urn:test:1".into(), ..TapeDescription::default() };
        let mut build = TapeBuild::begin(&self.path, description).map_err(|error| error.to_string())?;
        for record in records {
            build.add(record).map_err(|error| error.to_string())?;
        }
        build.finish(on_duplicate).map_err(|error| error.to_string())
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).expect("a folder").flatten();
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn xml(&self) -> String {
        let file = File::open(&self.path).expect("a tape");
        let mut xml = String::new();
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut xml).expect("gzip");
        xml
    }

    fn verified(&self) -> Result<IndexState, String> {
        verify(&self.path, &mut |_| ())
            .map(|verification| verification.index)
            .map_err(|error| error.to_string())
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(&self.path).expect("a tape");
        edit(&mut bytes);
        fs::write(&self.path, bytes).expect("a disk");
    }
}

fn record(number: u32) -> TapeRecord {
    TapeRecord {
        identifier: format!("oai:x:{number}"),
        datestamp: format!("2001-01-{:02}", number % 28 + 1),
        prefix: Some(if number.is_multiple_of(3) { "b" } else { "a" }.to_owned()),
        set_specs: if number.is_multiple_of(2) { vec!["s:t".to_owned()] } else { Vec::new() },
        is_deleted: number % 10 == 7,
        metadata: if number % 10 == 7 {
            String::new()
        } else {
            format!("<m xmlns=\"m\">{number} {}</m>", "text ".repeat(number as usize % 400))
        },
        abouts: Vec::new(),
    }
}

fn records(count: u32) -> Vec<TapeRecord> {
    (0..count).map(record).collect()
}

fn listed(
    tape: &Tape,
    format: usize,
    set: Option<usize>,
    window: (Option<i64>, Option<i64>),
) -> Vec<TapeRecord> {
    let selection = tape.select(format, set, window).expect("an index");
    let (mut listed, mut skipped) = (Vec::new(), 0);
    while skipped < selection.count() {
        let page = tape.page(&selection, skipped, (7, 20_000)).expect("records");
        assert!((1..=7).contains(&page.len()));
        skipped += page.len() as u64;
        listed.extend(page);
    }
    listed
}

#[test]
fn records_are_found_by_identifier_date_set_and_format() {
    let all = records(1_000);
    let fixture = Fixture::built(&all);
    let tape = Tape::open(&fixture.path).expect("a tape");
    let catalog = tape.catalog();
    assert_eq!((catalog.records(), catalog.deleted(), catalog.has_seconds), (1_000, 100, false));
    let format =
        |prefix: &str| catalog.formats.iter().position(|format| format.prefix == prefix).expect("a format");
    for expected in &all {
        let number = format(expected.prefix.as_deref().unwrap_or_default());
        assert_eq!(tape.record(&expected.identifier, number).expect("readable"), Some(expected.clone()));
        assert_eq!(tape.record(&expected.identifier, 1 - number).expect("readable"), None);
        assert_eq!(tape.formats_of(&expected.identifier).expect("readable"), [(number, expected.is_deleted)]);
    }
    assert_eq!(tape.record("oai:x:1000", 0).expect("readable"), None);
    let sets: Vec<&str> = catalog.sets.iter().map(|set| set.set_spec.as_str()).collect();
    assert_eq!(sets, ["s", "s:t"]);
    let day = |number: i64| Some(number * 86_400 + 978_307_200);
    for (set, from, until) in [
        (None, None, None),
        (None, day(3), day(3)),
        (Some(0), day(3), None),
        (Some(1), None, day(20)),
        (Some(1), day(5), day(4)),
    ] {
        for prefix in ["a", "b"] {
            let mut expected: Vec<TapeRecord> = all.clone();
            expected.retain(|record| {
                let secs = record.datestamp_secs().expect("legal").0;
                record.prefix.as_deref() == Some(prefix)
                    && from.is_none_or(|from| from <= secs)
                    && until.is_none_or(|until| secs <= until)
                    && (set.is_none() || !record.set_specs.is_empty())
            });
            let mut found = listed(&tape, format(prefix), set, (from, until));
            let by_name = |record: &TapeRecord| record.identifier.clone();
            expected.sort_by_key(by_name);
            found.sort_by_key(by_name);
            assert_eq!(found, expected, "{set:?} {from:?} {until:?} {prefix}");
        }
    }
}

#[test]
fn a_tape_is_whole_xml_and_its_index_can_be_made_again() {
    let fixture = Fixture::built(&records(500));
    let xml = fixture.xml();
    assert!(
        xml.starts_with(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tape xmlns=\"{NAMESPACE}\">"))
    );
    assert!(xml.ends_with("</tape>\n"));
    assert_eq!(fixture.verified(), Ok(IndexState::Right));
    let before = fs::read(index_path(&fixture.path)).expect("an index");
    fs::remove_file(index_path(&fixture.path)).expect("a file");
    assert_eq!(fixture.verified(), Ok(IndexState::Missing));
    assert!(matches!(Tape::open(&fixture.path), Err(ReadError::NoIndex)));
    rebuild_index(&fixture.path, None, &mut |_| ()).expect("an index");
    assert!(fs::read(index_path(&fixture.path)).expect("an index") == before, "the index is another one");
    assert_eq!(fixture.files(), ["a.xml.gz", "a.xml.gz.idx"]);
}

#[test]
fn a_build_that_does_not_finish_leaves_nothing() {
    let fixture = Fixture::new();
    let mut build = TapeBuild::begin(&fixture.path, TapeDescription::default()).expect("a folder");
    build.add(&record(1)).expect("a record");
    drop(build);
    assert!(fixture.files().is_empty(), "{:?}", fixture.files());
    let illegal = TapeRecord { datestamp: "2001".into(), ..record(1) };
    let error = fixture.build(&[illegal], OnDuplicate::KeepNewest).expect_err("no datestamp");
    assert!(error.contains("oai:x:1 has no legal datestamp"), "{error}");
    assert!(fixture.files().is_empty(), "{:?}", fixture.files());
}

#[test]
fn of_two_records_with_one_identifier_one_is_kept_or_both_are_named() {
    let older = TapeRecord { datestamp: "2001-01-01".into(), ..record(1) };
    let newer = TapeRecord { datestamp: "2002-01-01".into(), metadata: "<n xmlns='n'/>".into(), ..record(1) };
    let other = TapeRecord { prefix: Some("c".into()), ..newer.clone() };
    let third = TapeRecord { datestamp: "2001-06-01".into(), ..newer.clone() };
    let fixture = Fixture::new();
    let built = fixture
        .build(&[newer.clone(), older.clone(), other.clone(), third, record(2)], OnDuplicate::KeepNewest)
        .expect("a tape");
    assert_eq!(
        (built.replaced_count, built.replaced.as_slice()),
        (2, ["oai:x:1 in a".to_owned(), "oai:x:1 in a".to_owned()].as_slice())
    );
    let tape = Tape::open(&fixture.path).expect("a tape");
    assert_eq!(tape.catalog().records(), 3);
    assert_eq!(tape.record("oai:x:1", 0).expect("readable"), Some(newer.clone()));
    assert_eq!(fixture.verified(), Ok(IndexState::Right));
    fixture.build(&[newer.clone(), older.clone()], OnDuplicate::KeepLast).expect("a tape");
    let tape = Tape::open(&fixture.path).expect("a tape");
    assert_eq!(tape.record("oai:x:1", 0).expect("readable"), Some(older.clone()));
    let built = fixture.build(&[older.clone(), older.clone()], OnDuplicate::KeepNewest).expect("a tape");
    assert_eq!((built.replaced_count, built.catalog.records()), (1, 1));
    let different = TapeRecord { metadata: "<other xmlns='n'/>".into(), ..older.clone() };
    let error = fixture.build(&[older, different], OnDuplicate::KeepNewest).expect_err("which one?");
    assert!(error.contains("the record oai:x:1 of a is also at byte"), "{error}");
    assert_eq!(fixture.verified(), Ok(IndexState::Right), "the tape of before is still there");
}

#[test]
fn of_any_number_of_states_the_last_one_is_kept() {
    let state = |day: u32, text: &str| TapeRecord {
        datestamp: format!("2001-01-{day:02}"),
        metadata: format!("<n xmlns='n'>{text}</n>"),
        ..record(1)
    };
    // The order of the datestamps is not the order in which the states were added.
    for days in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1], [1, 1, 1], [2, 2, 1]] {
        let [first, second, last] = days;
        let states = [state(first, "first"), state(second, "second"), state(last, "last")];
        let fixture = Fixture::new();
        let added = [&states[..1], &[record(2)], &states[1..]].concat();
        let built = fixture.build(&added, OnDuplicate::KeepLast).expect("a tape");
        assert_eq!((built.replaced_count, built.catalog.records()), (2, 2), "{days:?}");
        let tape = Tape::open(&fixture.path).expect("a tape");
        assert_eq!(tape.record("oai:x:1", 0).expect("readable"), Some(states[2].clone()), "{days:?}");
        assert_eq!(fixture.verified(), Ok(IndexState::Right), "{days:?}");
    }
}

#[test]
fn missing_records_are_noted_in_the_tape() {
    let fixture = Fixture::new();
    let mut build = TapeBuild::begin(&fixture.path, TapeDescription::default()).expect("a folder");
    build.add(&record(1)).expect("a record");
    let gap = TapeGap { source: "a".into(), records: 2 };
    build.add_gap(gap.clone());
    build.finish(OnDuplicate::KeepNewest).expect("a tape");
    let tape = Tape::open(&fixture.path).expect("a tape");
    assert_eq!(tape.catalog().description.gaps, [gap]);
    assert_eq!(tape.record("oai:x:1", 0).expect("readable"), Some(record(1)));
}

#[test]
fn a_truncated_tape_is_not_opened_and_its_end_is_named() {
    let fixture = Fixture::built(&records(300));
    fixture.edit(|bytes| bytes.truncate(bytes.len() - 40));
    assert!(matches!(Tape::open(&fixture.path), Err(ReadError::OtherTape)));
    let fault = fixture.verified().expect_err("it is cut");
    assert!(fault.contains("the file ends inside a gzip member") || fault.contains("ends early"), "{fault}");
    // A tape that ends between two members is cut too.
    let fixture = Fixture::built(&records(300));
    let cut = |bytes: &mut Vec<u8>| {
        let at = bytes.windows(4).rposition(|window| window == [0x1f, 0x8b, 8, 0]).expect("a member");
        bytes.truncate(at);
    };
    fixture.edit(cut);
    let fault = fixture.verified().expect_err("it is cut");
    assert!(fault.contains("the end tag of the tape is missing"), "{fault}");
    assert!(rebuild_index(&fixture.path, None, &mut |_| ()).is_err());
}

#[test]
fn an_edited_record_is_never_served() {
    let plain = Fixture::new();
    let path = plain.folder.path().join("plain.xml");
    let long = TapeRecord { metadata: format!("<m>{}</m>", "x".repeat(200_000)), ..record(1) };
    plain.build(&[record(2), long, record(4)], OnDuplicate::KeepNewest).expect("a tape");
    fs::write(&path, plain.xml()).expect("a disk");
    rebuild_index(&path, None, &mut |_| ()).expect("an index");
    let tape = Tape::open(&path).expect("a tape");
    assert_eq!(tape.record("oai:x:2", 0).expect("readable"), Some(record(2)));
    let mut bytes = fs::read(&path).expect("a tape");
    let at = bytes.len() / 2;
    bytes[at] = b'y';
    fs::write(&path, bytes).expect("a disk");
    let tape = Tape::open(&path).expect("the ends are the same");
    assert!(matches!(tape.record("oai:x:1", 0), Err(ReadError::Changed(_))));
    let selection = tape.select(0, None, (None, None)).expect("an index");
    assert!(matches!(tape.page(&selection, 0, (10, 1 << 20)), Err(ReadError::Changed(_))));
    assert_eq!(tape.record("oai:x:2", 0).expect("readable"), Some(record(2)), "its neighbour is the same");
    let verification = verify(&path, &mut |_| ()).expect("the XML is well-formed");
    assert!(matches!(verification.index, IndexState::Wrong(_)), "{:?}", verification.index);
}

#[test]
fn an_index_of_another_tape_or_with_damage_is_refused() {
    let (one, other) = (Fixture::built(&records(100)), Fixture::built(&records(101)));
    fs::copy(index_path(&other.path), index_path(&one.path)).expect("a disk");
    assert!(matches!(Tape::open(&one.path), Err(ReadError::OtherTape)));
    assert!(matches!(one.verified(), Ok(IndexState::Wrong(_))));
    fs::write(index_path(&one.path), "text").expect("a disk");
    assert!(matches!(Tape::open(&one.path), Err(ReadError::OtherVersion)));
    let index = fs::read(index_path(&other.path)).expect("an index");
    for at in (100..index.len()).step_by(997) {
        let mut damaged = index.clone();
        damaged[at] ^= 4;
        fs::write(index_path(&other.path), &damaged).expect("a disk");
        let whole = Tape::open(&other.path).and_then(|tape| {
            for number in 0..101 {
                tape.formats_of(&record(number).identifier)?;
            }
            for format in 0..2 {
                let selection = tape.select(format, Some(1), (None, None))?;
                tape.page(&selection, 0, (1_000, 1 << 30))?;
            }
            Ok(())
        });
        assert!(whole.is_err(), "byte {at} is damaged");
    }
}

#[test]
fn identifiers_that_occur_twice_are_named() {
    let fixture = Fixture::built(&records(3));
    let xml = fixture.xml();
    let start = xml.find("<tapeRecord>").expect("a record");
    let end = xml.find("</tapeRecord>").expect("a record") + "</tapeRecord>".len();
    let twice = xml.replace("</tape>\n", &format!("{}</tape>\n", &xml[start..end]));
    let path = fixture.folder.path().join("twice.xml");
    fs::write(&path, &twice).expect("a disk");
    let at = xml.len() - "</tape>\n".len();
    let expected = format!(
        "at byte {at} of the XML: the record oai:x:0 is in the tape twice in one format, first at byte {start}"
    );
    assert_eq!(verify(&path, &mut |_| ()).expect_err("twice").to_string(), expected);
    assert_eq!(rebuild_index(&path, None, &mut |_| ()).expect_err("twice").to_string(), expected);
}

#[test]
fn members_may_end_inside_records_but_not_be_endless() {
    let fixture = Fixture::built(&records(50));
    let xml = fixture.xml();
    let path = fixture.folder.path().join("cut.xml.gz");
    let mut file = File::create(&path).expect("a file");
    for part in xml.as_bytes().chunks(777) {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).expect("memory");
        file.write_all(&encoder.finish().expect("memory")).expect("a disk");
    }
    rebuild_index(&path, None, &mut |_| ()).expect("an index");
    let tape = Tape::open(&path).expect("a tape");
    for expected in records(50) {
        let format = usize::from(expected.prefix.as_deref() == Some("a"));
        assert_eq!(tape.record(&expected.identifier, format).expect("readable"), Some(expected));
    }
    // One member with more XML than a reader inflates.
    let path = fixture.folder.path().join("bomb.xml.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(File::create(&path).expect("a file"), flate2::Compression::fast());
    encoder.write_all(xml.trim_end().trim_end_matches("</tape>").as_bytes()).expect("a disk");
    for _ in 0..70 {
        encoder.write_all(" ".repeat(1 << 20).as_bytes()).expect("a disk");
        encoder.write_all(b"<!-- -->").expect("a disk");
    }
    encoder.write_all(b"</tape>").expect("a disk");
    encoder.finish().expect("a disk");
    let error = rebuild_index(&path, None, &mut |_| ()).expect_err("no seek").to_string();
    assert!(error.contains("a gzip member holds more than 64 MiB of XML"), "{error}");
    let verification = verify(&path, &mut |_| ()).expect("it is well-formed");
    assert!(matches!(verification.index, IndexState::Impossible(_)));
    assert_eq!(verification.catalog.records(), 50);
}

#[test]
fn a_tape_of_another_program_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("theirs.xml");
    let tape = |namespace: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tape xmlns=\"{NAMESPACE}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{NAMESPACE} x.xsd\"><tapeAdmin><dc:date xmlns:dc=\"d\">2005</dc:date></tapeAdmin>\
             <tapeRecord><tapeRecordAdmin><identifier>info:a/1</identifier><date>2005-05-31T00:00:00Z</date>\
             <recordAdmin><x xmlns=\"\">n</x></recordAdmin></tapeRecordAdmin><record><r:dc xmlns:r=\"{namespace}\" \
             xsi:schemaLocation=\"{namespace} s.xsd\"/></record></tapeRecord></tape>"
        )
    };
    fs::write(&path, tape("http://www.openarchives.org/OAI/2.0/oai_dc/")).expect("a disk");
    let catalog = rebuild_index(&path, None, &mut |_| ()).expect("an index").catalog;
    assert_eq!((catalog.formats[0].prefix.as_str(), catalog.formats[0].schema.as_str()), ("oai_dc", "s.xsd"));
    assert!(catalog.has_seconds);
    let record =
        Tape::open(&path).expect("a tape").record("info:a/1", 0).expect("readable").expect("a record");
    assert!(record.metadata.contains("xmlns:xsi="), "{}", record.metadata);
    fs::write(&path, tape("urn:unknown")).expect("a disk");
    let error = rebuild_index(&path, None, &mut |_| ()).expect_err("which format?").to_string();
    assert!(error.contains("the record info:a/1 does not name its metadataPrefix"), "{error}");
    let catalog = rebuild_index(&path, Some("mine".to_owned()), &mut |_| ()).expect("an index").catalog;
    assert_eq!(catalog.formats[0].prefix, "mine");
    assert_eq!(verify(&path, &mut |_| ()).expect("it is whole").index, IndexState::Right);
}
