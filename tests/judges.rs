//! The judges judged: both must turn down what is wrong, and pass what is right.

mod support;

use support::corpus::wellformed;
use support::envelope::Strictness;
use support::harness::excerpt;
use support::{fuzzing, judge, report};

const HEAD: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-01T00:00:00Z\
    </responseDate><request verb=\"ListRecords\">http://example.org/oai</request>";
const RECORD: &str = "<record><header><identifier>a</identifier><datestamp>2025-01-01</datestamp></header><metadata>PAYLOAD\
     </metadata></record>";

/// Payloads that make a document ill-formed.
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
];

/// Bodies, behind the head, that the schema does not allow.
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
fn bad_documents_are_turned_down_by_both() {
    let payloads = BAD_PAYLOADS.iter().map(|payload| {
        document(&format!("<ListRecords>{}</ListRecords>", RECORD.replace("PAYLOAD", payload)))
    });
    let good = RECORD.replace("PAYLOAD", "<x/>");
    let bodies = BAD_BODIES.iter().map(|body| document(&body.replace('@', &good)));
    let whole = document(&format!("<ListRecords>{good}</ListRecords>"));
    let around = ["x", "<a/>", "<![CDATA[]]>", "&#32;"].map(|junk| format!("{whole}{junk}"));
    let before = [format!("\n{whole}"), format!("\u{feff}\u{feff}{whole}"), whole.replace("\"1.0\"", "1.0")];
    let mut failures = Vec::new();
    let mut ran = 0;
    for bad in payloads.chain(bodies).chain(around).chain(before) {
        ran += 1;
        // quick-xml first, and libxml2 by itself: neither may rely on the other.
        for (judge, name) in
            [(fuzzing::judge as fn(&[u8], Strictness) -> _, "quick-xml"), (judge::by_libxml2, "libxml2")]
        {
            let asked = name != "libxml2" || judge::libxml2_is_there();
            if asked && judge(bad.as_bytes(), Strictness::Schema).is_ok() {
                failures.push(format!("{name} passes {}", excerpt(bad.as_bytes(), 300)));
            }
        }
    }
    report("bad documents", ran, &failures);
}

#[test]
fn good_documents_are_passed_by_both() {
    let files = wellformed();
    let verdicts = files.iter().map(|(name, input)| (name, judge::judge(input, Strictness::TokenAlone)));
    let failures: Vec<String> = verdicts
        .filter_map(|(name, verdict)| verdict.err().map(|error| format!("{name}: {error}")))
        .collect();
    report("good documents", files.len(), &failures);
}
