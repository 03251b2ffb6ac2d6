//! Pages with repeated damage, for tests of the work of the engine.
//!
//! The tests of the engine and the unit tests of the library share them.

use super::step_of_series;

pub const HEAD: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    <request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://repository.example.org/oai</request>\n";
pub const LIST: &str = "<ListRecords>\n";
pub const TAIL: &str = "<resumptionToken>harbour-2</resumptionToken>\n</ListRecords>\n</OAI-PMH>\n";

pub fn record(number: usize, title: &str) -> String {
    format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2026-01-01</datestamp></header>\
         <metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
         http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{title}</dc:title></oai_dc:dc></metadata></record>\n"
    )
}

/// Repeats `fragment`, with a number for each `$`.
fn repeated(fragment: &[u8], bytes: usize) -> Vec<u8> {
    let mut damage = Vec::with_capacity(bytes);
    for number in 0..bytes / fragment.len() {
        for &byte in fragment {
            match byte {
                b'$' => damage.extend_from_slice(number.to_string().as_bytes()),
                byte => damage.push(byte),
            }
        }
    }
    damage
}

/// The damage that a test tries: all shapes in CI, a part of them after an edit.
pub fn series() -> Vec<(&'static str, &'static [u8])> {
    DAMAGE.iter().copied().step_by(step_of_series(15)).collect()
}

/// Positions and fragments that once took quadratic time or more.
const DAMAGE: [(&str, &[u8]); 94] = [
    ("header", b"<setSpec/>"),
    ("header", b"<setspec/>"),
    ("header", b"<DATESTAMP/>"),
    ("record", b"<foo><record><header>"),
    ("record", b"<foo$><record><header>"),
    ("record", b"<record><header><foo>"),
    ("record", b"<record><header><identifier>"),
    ("record", b"\"<!DOCTYPE \""),
    ("record", b"<!DOCTYPE ["),
    ("record", b"<!DOCTYPE \"<![CDATA["),
    ("record", b"<!DOCTYPE a [<!ENTITY e$ 'x'>]>&e$;"),
    ("record", b"<!DOCTYPE a [<!ENTITY e$ '"),
    ("record", b"&a;<!DOCTYPE a [<!--"),
    ("record", b"<leader>\x01"),
    ("record", b"<controlfield tag='008'>\x01&#1;</controlfield>"),
    ("record", b"<datafield ind1='\x01' ind2='\x01'/>"),
    ("record", b"<leader>\x01<!-- -->"),
    ("record", b"<controlfield tag='008'><![CDATA[\x01"),
    ("record", b"<?a <record><header>"),
    ("record", b"<?a "),
    ("record", b"<?xml "),
    ("record", b"\xef\xbb\xbf<!---->"),
    ("record", b"<f:a></f>"),
    ("record", b"<a xmlns=\"u$\"/>"),
    ("record", b"&<a xmlns=\"u$\"/>"),
    ("record", b"a&eacute"),
    ("record", b"?&copy&"),
    ("record", b"a\x1f"),
    ("record", b"\x1c&#x1d;"),
    ("record", b"<premis:x/>"),
    ("record", b"<!--<record><header>"),
    ("record", b"<dc:title><b>"),
    ("record", b"</dc:title><dc:x><![CDATA[<b>"),
    ("record", b"<[CDATA["),
    ("record", b"< dc:title"),
    ("record", b"</dc:creator> x"),
    ("record", b"<x a=\xe2\x80\x9cb "),
    ("between", b"<OAI-PMH><?a "),
    ("between", b"<!--<OAI-PMH>"),
    ("between", b"<OAI-PMH><OAI-PMH"),
    ("between", b"<br>"),
    ("between", b"<x$>"),
    ("between", b"<foo><record><header>"),
    ("between", b"</ListRecords><resumptionToken>"),
    ("between", b"<!--?>"),
    ("head", b"<?a "),
    ("head", b"<?xml "),
    ("head", b"<!DOCTYPE \""),
    ("behind the token", b"<OAI-PMH>"),
    ("behind the token", b"<resumptionToken>"),
    ("tail", b"<error>>"),
    ("tail", b"\"<!DOCTYPE \""),
    ("tail", b"<?a "),
    ("head", b"<a/>"),
    ("head", b"<a></a>"),
    ("head", b"<a></b>"),
    ("head", b"<a><?b </a>"),
    ("head", b"<a><!DOCTYPE \"</a>"),
    ("head", b"<a><record>"),
    ("head", b"<a/><record/>"),
    ("head", b"<ListRecord/>"),
    ("head", b"<ListRecord><record></ListRecord>"),
    ("head", b"<responseDate>"),
    ("head", b"<request>"),
    ("head", b"<request verb=\"Identify\"/><ListRecord/>"),
    ("head", b"<a b=\"'"),
    ("head", b"\xe9&#x"),
    ("head", b"<!-- -- --><a/>"),
    ("head", b"<?a?><a/>"),
    ("head", b"</request>"),
    ("head without request", b"<a/>"),
    ("head without request", b"<ListRecord/>"),
    ("head without request", b"<a></b>"),
    ("head without request", b"<ListRecord><record></ListRecord>"),
    ("head without request", b"<a><record></a>"),
    ("before the root", b"<OAI-PMH>\xe9&#x</ListRecords>"),
    ("before the root", b"<OAI-PMH>"),
    ("before the root", b"<OAI-PMH"),
    ("before the root", b"<!--<OAI-PMH>"),
    ("before the root", b"<!--<OAI-PMH>-->"),
    ("before the root", b"<Identify a=\""),
    ("before the root", b"<ListRecords>"),
    ("before the root", b"\xef\xbb\xbf "),
    ("before the root", b"<?xml "),
    ("before the root", b"<?xml?>"),
    ("before the root", b"<!DOCTYPE a [<!ENTITY b \""),
    ("before the root", b"<br/>&#x"),
    ("before the root", b"x:OAI-PMH "),
    ("error", b"<error>"),
    ("error", b"<error/>"),
    ("error", b"<error code=\"badVerb\">x</error>"),
    ("error", b"<a/>"),
    ("error", b"<ListRecord/>"),
    ("error", b"&#x\xe9<"),
];

/// A list with so many bytes of repeated damage at a place.
pub fn page(place: &str, fragment: &[u8], bytes: usize) -> Vec<u8> {
    let damage = repeated(fragment, bytes);
    let good = record(1, "Harbour plan");
    let (before, after) = match place {
        "record" => {
            let broken = record(2, "\0");
            let (start, end) = broken.split_once('\0').unwrap_or_default();
            (format!("{HEAD}{LIST}{good}{start}"), format!("{end}{good}{TAIL}"))
        }
        "between" => (format!("{HEAD}{LIST}{good}"), format!("{good}{TAIL}")),
        "behind the token" => {
            (format!("{HEAD}{LIST}{good}<resumptionToken>a</resumptionToken>"), format!("{good}{TAIL}"))
        }
        "header" => {
            let broken = record(2, "Harbour plan");
            let (start, end) = broken.split_once("</header>").unwrap_or_default();
            (format!("{HEAD}{LIST}{good}{start}"), format!("</header>{end}{good}{TAIL}"))
        }
        "head" => (HEAD.to_owned(), format!("{LIST}{good}{TAIL}")),
        "head without request" => {
            let head = HEAD.split_once("<request").unwrap_or_default().0;
            (head.to_owned(), format!("{LIST}{good}{TAIL}"))
        }
        "before the root" => (String::new(), format!("{HEAD}{LIST}{good}{TAIL}")),
        "error" => (format!("{HEAD}<error code=\"badVerb\">"), format!("</error>{LIST}{good}{TAIL}")),
        "tail" => (format!("{HEAD}{LIST}{good}</ListRecords>"), "</OAI-PMH>".to_owned()),
        _ => unreachable!("a place of the table"),
    };
    [before.as_bytes(), &damage, after.as_bytes()].concat()
}
