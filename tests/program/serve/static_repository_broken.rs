//! Static repository files with broken records: these are repaired or quarantined, and others are
//! not affected.

use crate::fixtures::proxy::LIST;
use crate::fixtures::static_files;
use crate::fixtures::static_files::{Kept, dc_payload, dc_record, file_of, file_with};
use crate::fixtures::static_lists::{error, harvested, identifiers, page};
use oaimend_test_support as support;
use oaimend_test_support::damage::{affects_other_records, damage, damage_bytes};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use oaimend_test_support::random::Random;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For files with sections without end marks: without it, a section ends at the end mark of a later
/// record.
const TORN: &str = "repairs.enable = [\"torn-section\"]";

/// Records of a file, some of them broken.
fn broken_file() -> String {
    let good = |number| dc_record(number);
    let bare =
        good(1).replace("Letter 1 &lt;", "Letter 1 & &lt;").replace("]]></dc:creator>", "</dc:creator>");
    let nameless = good(3).replace("<oai:identifier>oai:letters.example:3</oai:identifier>", "");
    let unknown = good(5).replace("<dc:title>", "<zz:mystery>?</zz:mystery><dc:title>");
    let crossed = good(7).replace("</dc:title>", "</dc:titel>");
    let records = [good(0), bare, good(2), nameless, good(4), unknown, good(6), crossed, good(8)];
    file_with(&records.concat(), &good(0))
}

#[test]
fn broken_record_is_repaired_or_quarantined() {
    let kept = Kept::local(broken_file()).with(TORN);
    let proxy = kept.serve();
    assert_eq!(harvested(&proxy), [0, 1, 2, 4, 6, 7, 8]);
    let reported = proxy.wait_for_requests("x", 1);
    assert_eq!(
        (&reported["records_repaired"], &reported["records_quarantined"]),
        (&2.into(), &2.into()),
        "{reported}"
    );
    let aside = proxy.admin_json("/-/repositories/x/quarantine");
    let mut why: Vec<&str> = aside["records"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|record| record["why"].as_str())
        .collect();
    why.sort_unstable();
    assert_eq!(why, ["missing-identifier", "unknown-prefix"]);
    // An item in the file exists, even if it is broken.
    let got = proxy.get("/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:5");
    assert_eq!(got.status, 503, "{}", got.text());
    let mended = page(&proxy, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:1");
    assert!(mended.contains("Letter 1 &amp; &lt;b&gt;"), "{mended}");
    // A window contains the broken records before its good ones.
    assert_eq!(error(&proxy, "verb=ListRecords&metadataPrefix=oai_dc&until=2000-01-01"), "noRecordsMatch");
}

#[test]
fn list_of_broken_records_does_not_affect_others() {
    let broken =
        |number: usize| dc_record(number).replace("<dc:title>", "<zz:mystery>?</zz:mystery><dc:title>");
    let list =
        |records: String| format!("<ListRecords metadataPrefix=\"oai_dc\">\n{records}</ListRecords>\n");
    let (good, bad) = (list(dc_record(2) + &dc_record(3)), [list(broken(0)), list(broken(1))]);
    let file = file_with("(records)", &dc_record(0));
    let whole = |lists: &[&String]| {
        let lists: String = lists.iter().map(|list| list.as_str()).collect();
        let start = file.find("  <ListRecords metadataPrefix=\"oai_dc\">").expect("it is there");
        let end = file.find("  <!-- the second format -->").expect("it is there");
        format!("{}{lists}{}", &file[..start], &file[end..])
    };
    for lists in [[&bad[0], &good, &bad[1]], [&bad[0], &bad[1], &good], [&good, &bad[0], &bad[1]]] {
        let kept = Kept::local(whole(&lists));
        let proxy = kept.serve();
        assert_eq!(harvested(&proxy), [2, 3]);
        let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
        assert!(
            aside.contains("oai:letters.example:0") && aside.contains("oai:letters.example:1"),
            "{aside}"
        );
        assert_eq!(proxy.admin_json("/-/repositories/x")["records_quarantined"], 2);
        assert_eq!(
            error(&proxy, "verb=ListRecords&metadataPrefix=oai_dc&until=2000-01-01"),
            "noRecordsMatch"
        );
    }
    // Without good records, neither verb gives an empty list.
    let kept = Kept::local(whole(&[&bad[0], &bad[1]]));
    let proxy = kept.serve();
    for verb in ["ListRecords", "ListIdentifiers"] {
        let got = proxy.get(&format!("/x?verb={verb}&metadataPrefix=oai_dc"));
        assert_eq!(got.status, 503, "{verb}: {}", got.text());
    }
}

#[test]
fn unrepairable_record_is_in_no_list() {
    let kept = Kept::local(broken_file()).with(TORN);
    let proxy = kept.serve();
    let headers = page(&proxy, "verb=ListIdentifiers&metadataPrefix=oai_dc");
    assert_eq!(identifiers(&headers), harvested(&proxy));
    assert_eq!(proxy.admin_json("/-/repositories/x")["static_file"]["broken"], 2);
}

#[test]
fn on_unrepairable_fail() {
    let kept = Kept::local(broken_file()).with(TORN).with("on_unrepairable = \"fail\"");
    let proxy = kept.serve();
    let got = proxy.get(LIST);
    assert!(got.status == 502 || !got.whole, "{}", got.text());
}

/// Panics of the program in any test; failed assertions of other tests do not count.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// A different number for each run of the same kind.
const SEED: u64 = 0x0571_a71c;

#[test]
fn damaged_files_give_valid_responses_or_failures() {
    let kept = Kept::local(file_of(3));
    let proxy = kept.serve();
    let mut random = Random::new(SEED);
    let (mut ran, mut taken_in, mut failures) = (0, BTreeSet::new(), Vec::new());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_some_and(|place| place.file().starts_with("src/")) {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        hook(panic);
    }));
    for round in 0..200 {
        let mut file = file_of(1 + random.below(6)).into_bytes();
        for _ in 0..1 + random.below(3) {
            damage_bytes(&mut random, &mut file);
        }
        kept.write(&file);
        for query in [
            "verb=Identify",
            "verb=ListMetadataFormats",
            "verb=ListRecords&metadataPrefix=oai_dc",
            "verb=ListIdentifiers&metadataPrefix=x",
            "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:0",
        ] {
            ran += 1;
            let got = proxy.get(&format!("/x?{query}"));
            let verdict = match got.status {
                200 => judge(&got.body, Strictness::Schema),
                502 | 503 => Ok(()),
                _ => Err(format!("status {}: {}", got.status, got.text())),
            };
            let fell = PANICS.load(Ordering::Relaxed);
            if let Err(wrong) = verdict.and_then(|()| (fell == 0).then_some(()).ok_or("a panic".to_owned())) {
                let place = support::keep(&format!("static file {SEED} {round}"), &file);
                failures.push(format!("round {round} of seed {SEED}, {query}: {wrong}: see {place}"));
            }
        }
        taken_in.insert(proxy.admin_json("/-/repositories/x")["static_file"]["version"].to_string());
    }
    assert!(taken_in.len() > 20, "most were none: {}", taken_in.len());
    support::report("damaged files", ran, &failures);
}

#[test]
fn damaged_record_does_not_change_others() {
    let kept = Kept::local(file_of(1)).with(TORN);
    let proxy = kept.serve();
    let mut random = Random::new(SEED);
    let (mut ran, mut failures) = (0, Vec::new());
    for round in 0..150 {
        let mut record = dc_record(2).trim().as_bytes().to_vec();
        damage(&mut random, &mut record);
        if affects_other_records(&record) {
            continue;
        }
        let around = [0, 1, 3, 4].map(dc_record);
        let file = file_with("(records)", &static_files::own_record(2));
        let (head, tail) = file.split_once("(records)").expect("it stands in it");
        let parts: [&[u8]; 7] = [
            head.as_bytes(),
            around[0].as_bytes(),
            around[1].as_bytes(),
            &record,
            around[2].as_bytes(),
            around[3].as_bytes(),
            tail.as_bytes(),
        ];
        kept.write(parts.concat());
        ran += 1;
        let listed = page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc");
        let headers = page(&proxy, "verb=ListIdentifiers&metadataPrefix=oai_dc");
        let of_x = page(&proxy, "verb=ListRecords&metadataPrefix=x");
        let comes = [0, 1, 3, 4].into_iter().all(|number| {
            let identifier = format!("<identifier>oai:letters.example:{number}</identifier>");
            listed.contains(&dc_payload(number))
                && listed.contains(&identifier)
                && headers.contains(&identifier)
        });
        if !comes || identifiers(&of_x) != [2] {
            let place = support::keep(&format!("static {SEED} {round}"), &parts.concat());
            failures.push(format!("round {round} of seed {SEED}: see {place}"));
        }
    }
    support::report("damaged records", ran, &failures);
}
