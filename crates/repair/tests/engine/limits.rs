//! A limit never lets bad bytes through: the output is valid or empty, whichever limit is exceeded by damage
//! in whichever element of the envelope.

use oaimend_repair::{Limits, RepairConfig};
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::{fuzzing, invariants, keep, report, step_of_series};

const ROOT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made by hand -->\n\
    <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    <request verb=\"VERB\" metadataPrefix=\"oai_dc\">http://repository.example.org/oai</request>\n";

/// The content of responses after their head, by verb.
const RESPONSES: [(&str, &str); 6] = [
    (
        "ListRecords",
        "<ListRecords><record><header><identifier>oai:x:1</identifier><datestamp>2025-06-03</datestamp>\
         <setSpec>a</setSpec></header><metadata><y xmlns=\"urn:y\">text</y></metadata><about><z xmlns=\"urn:z\"/></about>\
         </record> <!-- one --> <resumptionToken cursor=\"0\" completeListSize=\"9\">next</resumptionToken></ListRecords>",
    ),
    (
        "ListIdentifiers",
        "<ListIdentifiers><header status=\"deleted\"><identifier>oai:x:1</identifier><datestamp>2025-06-03</datestamp>\
         </header></ListIdentifiers>",
    ),
    (
        "Identify",
        "<Identify><repositoryName>Harbour</repositoryName><baseURL>http://repository.example.org/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail><earliestDatestamp>2001-01-01\
         </earliestDatestamp><deletedRecord>no</deletedRecord><granularity>YYYY-MM-DD</granularity><description>\
         <y xmlns=\"urn:y\"/></description></Identify>",
    ),
    (
        "ListSets",
        "<ListSets><set><setSpec>a</setSpec><setName>A</setName><setDescription><y xmlns=\"urn:y\"/></setDescription>\
         </set></ListSets>",
    ),
    (
        "ListMetadataFormats",
        "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>\
         http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema><metadataNamespace>\
         http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat></ListMetadataFormats>",
    ),
    ("GetRecord", "<error code=\"idDoesNotExist\">No such record</error>"),
];

const DAMAGE: [&[u8]; 9] = [
    b"\xE9 ",
    b"\x01 ",
    b"& ",
    b"< ",
    b"&#1; ",
    b"]]> ",
    b"&x; ",
    b"<b> ",
    b"<!DOCTYPE a [<!ENTITY x 'five bytes'>]>&x; ",
];
/// More than any limit of repairs here.
const TIMES: usize = 30;

/// The default limits with one of them lowered.
fn lowered() -> Vec<(&'static str, Limits)> {
    let tight = fuzzing::tight_limits();
    let with = |name, lower: fn(&mut Limits, &Limits)| {
        let mut limits = Limits::default();
        lower(&mut limits, &tight);
        (name, limits)
    };
    vec![
        with("record_bytes_max", |limits, tight| limits.record_bytes_max = tight.record_bytes_max),
        with("repairs_per_record_max", |limits, tight| {
            limits.repairs_per_record_max = tight.repairs_per_record_max;
        }),
        with("entity_bytes_max", |limits, tight| limits.entity_bytes_max = tight.entity_bytes_max),
        with("depth_max", |limits, tight| limits.depth_max = tight.depth_max),
        with("attributes_per_tag_max", |limits, tight| {
            limits.attributes_per_tag_max = tight.attributes_per_tag_max;
        }),
        with("tag_bytes_max", |limits, tight| limits.tag_bytes_max = tight.tag_bytes_max),
        with("junk_bytes_max", |limits, tight| limits.junk_bytes_max = tight.junk_bytes_max),
        with("head_bytes_max", |limits, tight| limits.head_bytes_max = tight.head_bytes_max),
    ]
}

/// The places of the envelope: before and after each tag and each quote.
fn places(page: &str) -> Vec<usize> {
    let is_border = |(_, byte): &(usize, u8)| matches!(byte, b'<' | b'>' | b'"');
    page.bytes().enumerate().filter(is_border).flat_map(|(at, _)| [at, at + 1]).collect()
}

#[test]
fn output_is_valid_at_every_limit() {
    let (mut ran, mut failures) = (0, Vec::new());
    for (verb, content) in RESPONSES {
        let page = format!("{}{content}\n</OAI-PMH>\n<!-- end -->\n", ROOT.replace("VERB", verb));
        for at in places(&page).into_iter().step_by(step_of_series(3)) {
            for damage in DAMAGE {
                let mut input = page.clone().into_bytes();
                input.splice(at..at, damage.repeat(TIMES));
                for (name, limits) in lowered() {
                    let mut config = RepairConfig::default();
                    config.limits = limits;
                    let out = run(&input, &config, Chunking::Whole);
                    let verdict = invariants::accountable(&input, &out)
                        .and_then(|()| invariants::valid(&out, &config, fuzzing::judge));
                    ran += 1;
                    if let Err(error) = verdict
                        && failures.len() < 12
                    {
                        let place = keep(&format!("limit {verb} {at} {name}"), &input);
                        let damage = damage.escape_ascii();
                        failures
                            .push(format!("{damage} at {at} of {verb}, low {name}: {error}\n  see {place}"));
                    }
                }
            }
        }
    }
    report("limits", ran, &failures);
}

/// The parts of a record after a payload that is longer than `record_bytes_max`.
const AFTER_LONG_PAYLOAD: [&str; 3] = [
    "<b><!-- c --><c/><![CDATA[ x ]]> <?pi y?><d>&amp;</d> ]</b></a></metadata></record>",
    "</a></metadata> <!-- about --> <about> <!-- c --> <x/> <!-- d --></about><about> <y>z</y></about></record>",
    "</a></metadata><about><x a='&#1;'/></about><about><x a='\u{1}'><y/></x></about></record>",
];

/// An oversized item is emitted while it is read, so it can be closed wherever it breaks.
#[test]
fn oversized_item_is_closed_wherever_it_breaks() {
    let mut config = RepairConfig::default();
    config.limits.record_bytes_max = fuzzing::tight_limits().record_bytes_max;
    let long = "x".repeat(config.limits.record_bytes_max);
    let root = ROOT.replace("VERB", "ListRecords");
    let start = format!(
        "{root}<ListRecords><record><header><identifier>oai:x:1</identifier>\
         <datestamp>2025-06-03</datestamp></header><metadata><a>{long}"
    );
    let (mut ran, mut failures) = (0, Vec::new());
    for after in AFTER_LONG_PAYLOAD {
        for at in 0..=after.len() {
            for damage in ["", "<", "\u{1}", "&bad;", "</record>", "<b a='\u{1}'/>"] {
                let input = format!("{start}{}{damage}", &after[..at]);
                let last = input.len() - 1;
                for chunks in [Chunking::Whole, Chunking::Bytes, Chunking::Blocks(9), Chunking::Split(last)] {
                    let out = run(input.as_bytes(), &config, chunks);
                    ran += 1;
                    if let Err(error) = invariants::valid(&out, &config, fuzzing::judge) {
                        failures.push(format!("{chunks:?}, {damage:?} after {}: {error}", &after[..at]));
                    }
                }
            }
        }
    }
    report("oversized", ran, &failures);
}
