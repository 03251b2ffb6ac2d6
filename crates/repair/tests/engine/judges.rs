//! Tests of the judges: each must reject bad documents and accept good ones.

use oaimend_repair::RepairConfig;
use oaimend_test_support::corpus::wellformed;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::harness::{Chunking, excerpt, run};
use oaimend_test_support::{fuzzing, judge, names, report, strict};

const HEAD: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-01T00:00:00Z\
    </responseDate><request verb=\"ListRecords\">http://example.org/oai</request>";
const RECORD: &str = "<record><header><identifier>a</identifier><datestamp>2025-01-01</datestamp></header><metadata>PAYLOAD\
     </metadata></record>";

/// Payloads that make a document malformed.
const BAD_PAYLOADS: &[&str] = &[
    "<a>&</a>",
    "<a>&nbsp;</a>",
    "<a>a < b</a>",
    "<a>]]></a>",
    "<a b='<'/>",
    "<a b=c/>",
    "<a b/>",
    "<a b='1'c='2'/>",
    "<a b='1' b='2'/>",
    "<a b='&'/>",
    "<a b='&copy;'/>",
    "<a xmlns:x='u' xmlns:y='u' x:b='1' y:b='2'/>",
    "<x:a/>",
    "<a x:b='1'/>",
    "<a xmlns:x=''/>",
    "<a:b:c xmlns:a='u'/>",
    "<1a/>",
    "<a><b></a></b>",
    "<a></A>",
    "<a>",
    "<a>\u{b}</a>",
    "<a>\u{fffe}</a>",
    "<a>&#1;</a>",
    "<a>&#xD800;</a>",
    "<a>&#x110000;</a>",
    "<a>&#;</a>",
    "<a>&#+1;</a>",
    "<a><!-- a -- b --></a>",
    "<a><!-- a ---></a>",
    "<a><!-- </a>",
    "<a><![CDATA[</a>",
    "<a><?xml version='1.0'?></a>",
    "<a><?XML x?></a>",
    "<a><? x?></a>",
    "<a><!DOCTYPE b></a>",
    "<a/></metadata>",
    // Names that only the fifth edition of XML 1.0 allows, which libxml2 follows.
    "<a\u{fffd}/>",
    "<a\u{2122}/>",
    "<a \u{2c6}='1'/>",
    "<a\u{10000}/>",
    "<?a\u{fffd} x?><a/>",
];

/// Faults that libxml2 does not detect.
const FIFTH_EDITION: [char; 4] = ['\u{fffd}', '\u{2122}', '\u{2c6}', '\u{10000}'];

/// Document bodies that the schema does not allow.
const BAD_BODIES: &[&str] = &[
    "",
    "<ListRecords/>",
    "<ListRecord>@</ListRecord>",
    "<ListRecords>text @</ListRecords>",
    "<ListRecords>@<resumptionToken/>@</ListRecords>",
    "<ListRecords>@<resumptionToken/><resumptionToken/></ListRecords>",
    "<ListRecords>@<resumptionToken completeListSize='0'/></ListRecords>",
    "<ListRecords>@<resumptionToken cursor='-1'/></ListRecords>",
    "<ListRecords>@<resumptionToken expirationDate='2025-01-01'/></ListRecords>",
    "<ListRecords a='b'>@</ListRecords>",
    "<ListRecords>@</ListRecords><ListRecords>@</ListRecords>",
    "<GetRecord>@@</GetRecord>",
    "<ListIdentifiers>@</ListIdentifiers>",
    "<ListRecords><record/></ListRecords>",
    "<ListRecords><record><header><datestamp>2025-01-01</datestamp><identifier/></header></record></ListRecords>",
    "<ListRecords><record><header><identifier/><datestamp>2025-01-01T00:00:00</datestamp></header></record></ListRecords>",
    "<ListRecords><record><header><identifier/><datestamp>2025-02-30</datestamp></header></record></ListRecords>",
    "<ListRecords><record><header status='gone'><identifier/><datestamp>2025-01-01</datestamp></header></record></ListRecords>",
    "<ListRecords><record><header><identifier/><datestamp>2025-01-01</datestamp><setSpec>a b</setSpec></header></record></ListRecords>",
    "<error>no code</error>",
    "<error code='foo'/>",
    "<ListSets><set><setSpec>a</setSpec></set></ListSets>",
    "<ListMetadataFormats><metadataFormat><metadataPrefix>a</metadataPrefix></metadataFormat></ListMetadataFormats>",
    "<Identify><repositoryName>a</repositoryName></Identify>",
];

fn document(body: &str) -> String {
    format!("<?xml version=\"1.0\"?>{HEAD}{body}</OAI-PMH>")
}

#[test]
fn judges_reject_bad_documents() {
    let payloads = BAD_PAYLOADS.iter().map(|payload| {
        document(&format!("<ListRecords>{}</ListRecords>", RECORD.replace("PAYLOAD", payload)))
    });
    let good = RECORD.replace("PAYLOAD", "<x/>");
    let whole = document(&format!("<ListRecords>{good}</ListRecords>"));
    let around = ["x", "<a/>", "<![CDATA[]]>", "&#32;"].map(|junk| format!("{whole}{junk}"));
    let before = [format!("\n{whole}"), format!("\u{feff}\u{feff}{whole}"), whole.replace("\"1.0\"", "1.0")];
    let ill_formed = payloads.chain(around).chain(before).map(|bad| (bad, true));
    let bodies = BAD_BODIES.iter().map(|body| (document(&body.replace('@', &good)), false));
    let mut failures = Vec::new();
    let mut ran = 0;
    for (bad, is_ill_formed) in ill_formed.chain(bodies) {
        ran += 1;
        // Each judge is tested alone: none may depend on another.
        let is_of_the_fifth = bad.contains(FIFTH_EDITION);
        for (judge, name, judges) in [
            (fuzzing::judge as fn(&[u8], Strictness) -> _, "quick-xml", true),
            (judge::by_libxml2, "libxml2", judge::libxml2_is_there() && !is_of_the_fifth),
            (judge::check_with_expat, "expat", judge::has_expat() && is_ill_formed),
        ] {
            if judges && judge(bad.as_bytes(), Strictness::Schema).is_ok() {
                failures.push(format!("{name} passes {}", excerpt(bad.as_bytes(), 300)));
            }
        }
    }
    report("bad documents", ran, &failures);
}

#[test]
fn judges_accept_good_documents() {
    let files = wellformed();
    let verdicts = files.iter().map(|(name, input)| (name, judge::judge(input, Strictness::TokenAlone)));
    let failures: Vec<String> = verdicts
        .filter_map(|(name, verdict)| verdict.err().map(|error| format!("{name}: {error}")))
        .collect();
    report("good documents", files.len(), &failures);
}

#[test]
fn strict_reader_and_expat_accept_the_same_names() {
    let Some((starts, parts)) = judge::expat_name_characters() else {
        return eprintln!("skipped: expat cannot judge on this machine");
    };
    let by_table =
        |accepts: fn(char) -> bool| ('!'..='\u{1ffff}').filter(|&c| accepts(c)).collect::<String>();
    assert!(by_table(names::is_start) == starts, "the first character of a name");
    assert!(by_table(names::is_part) == parts, "the other characters of a name");
}

#[test]
fn engine_and_strict_reader_accept_the_same_names() {
    let is_legal = |name: &str| strict::read(format!("<{name}/>").as_bytes()).is_ok();
    let mut failures = Vec::new();
    // Characters at which the verdict changes.
    let borders = ('\u{80}'..='\u{1ffff}').zip('\u{81}'..).flat_map(|(c, next)| {
        let starts = names::is_start(c) != names::is_start(next);
        let parts = names::is_part(c) != names::is_part(next);
        (starts || parts).then_some([c, next]).into_iter().flatten()
    });
    let list: Vec<String> = borders.flat_map(|c| [format!("{c}"), format!("a{c}")]).collect();
    for name in &list {
        let payload = format!("<x xmlns=\"urn:x\"><{name}/></x>");
        let page = document(&format!("<ListRecords>{}</ListRecords>", RECORD.replace("PAYLOAD", &payload)));
        let run = run(page.as_bytes(), &RepairConfig::default(), Chunking::Whole);
        if (run.summary.records == 1) != is_legal(name) {
            failures.push(format!("{name:?} is legal: {}", is_legal(name)));
        }
    }
    report("names", list.len(), &failures);
}
