//! Content of a payload that programs read by position or by reference: fields of MARC with fixed positions,
//! and entities that a payload declares.
//!
//! The pages are random, and a model says what each field must contain. `OAIMEND_RANDOM=20000` runs more
//! inputs, `OAIMEND_SEED=7` sets another seed.

use oaimend_repair::RepairConfig;
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::random::Random;
use oaimend_test_support::strict::Element;
use oaimend_test_support::{fuzzing, invariants, keep, report, strict};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const ROOT: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    <request verb=\"ListRecords\" metadataPrefix=\"x\">http://repository.example.org/oai</request>\n<ListRecords>\n";
const TAIL: &str = "</ListRecords>\n</OAI-PMH>\n";

fn record(number: usize, payload: &str) -> String {
    format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2025-06-03</datestamp></header>\
         <metadata>{payload}</metadata></record>\n"
    )
}

/// A page, and the texts of its fields that must be in the output, in their order.
struct Expected {
    input: Vec<u8>,
    texts: Vec<String>,
}

/// Checks the pages of all seeds. `texts` reads the same fields from the output.
fn check(what: &str, salt: u64, make: fn(&mut Random) -> Expected, texts: fn(&Element, &mut Vec<String>)) {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = variable("OAIMEND_SEED").unwrap_or(20_261_126) + (salt << 32);
    let count = variable("OAIMEND_RANDOM").unwrap_or(600);
    println!("seeds {first} to {}", first + count);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let made = make(&mut Random::new(seed));
        if let Err(error) = holds(&made, seed, texts) {
            let place = keep(&format!("{what} {seed}"), &made.input);
            failures.push(format!("seed {seed}: {error}\n  see {place}"));
            if failures.len() == 5 {
                break;
            }
        }
    }
    report(what, count as usize, &failures);
}

fn holds(made: &Expected, seed: u64, texts: fn(&Element, &mut Vec<String>)) -> Result<(), String> {
    let config = RepairConfig::default();
    let whole = invariants::all(&made.input, &config, fuzzing::judge)?;
    let mut found = Vec::new();
    texts(&strict::read(&whole.output)?, &mut found);
    if found != made.texts {
        return Err(format!("got {found:?}\n  expected {:?}", made.texts));
    }
    let cut = run(&made.input, &config, Chunking::Random { seed });
    if cut.output == whole.output { Ok(()) } else { Err("the output depends on the chunks".to_owned()) }
}

/// Fields with fixed positions: the number, and a value without damage. The leader has no number.
const FIELDS: [(&str, &str); 5] = [
    ("", "00000nam a2200000 a 4500"),
    ("005", "20240501120000.0"),
    ("006", "m     o  d        "),
    ("007", "cr cnu---unuuu"),
    ("008", "240501s2024    xx            000 0 eng d"),
];

/// A damaged character, as raw bytes or as a reference.
fn damaged_character(random: &mut Random, only_raw: bool) -> Vec<u8> {
    let control = loop {
        let code = random.below(32) as u8;
        if !matches!(code, b'\t' | b'\n' | b'\r') {
            break code;
        }
    };
    match random.below(if only_raw { 4 } else { 8 }) {
        0 => "\u{ffff}".into(),
        1..=3 => vec![control],
        4 => format!("&#{control};").into(),
        5 => format!("&#x{control:02x};").into(),
        6 => "&#xFFFE;".into(),
        _ => "&nbsp;".into(),
    }
}

/// A value with some damaged characters, and the value with blanks in their places.
fn damaged_value(random: &mut Random, value: &str, only_raw: bool) -> (Vec<u8>, String) {
    let (mut input, mut expected) = (Vec::new(), String::new());
    let from = random.below(value.len());
    for (at, c) in value.chars().enumerate() {
        if at == from || random.chance(10) {
            input.extend(damaged_character(random, only_raw));
            expected.push(' ');
        } else {
            input.push(c as u8);
            expected.push(c);
        }
    }
    (input, expected)
}

/// A value without damage, perhaps with one more control if its length is known.
fn complete_value(random: &mut Random, value: &str) -> (Vec<u8>, String) {
    let mut input = value.as_bytes().to_vec();
    if value.len() != FIELDS[3].1.len() && random.chance(30) {
        let at = random.below(input.len() + 1);
        input.insert(at, *random.pick(&[b"\x14", b"\x1e", b"\x00"]).first().unwrap_or(&0));
    }
    (input, value.to_owned())
}

fn marc_page(random: &mut Random) -> Expected {
    let prefix = random.pick(&["", "marc:", "m:"]);
    let declared = match prefix {
        "" => "xmlns".to_owned(),
        prefix => format!("xmlns:{}", prefix.trim_end_matches(':')),
    };
    let in_collection = random.chance(30);
    let namespace = format!(" {declared}=\"http://www.loc.gov/MARC21/slim\"");
    let (mut payload, mut texts) = (Vec::new(), Vec::new());
    if in_collection {
        payload.extend(format!("<{prefix}collection{namespace}>").bytes());
    }
    for _ in 0..if in_collection { 1 + random.below(3) } else { 1 } {
        let namespace = if in_collection { "" } else { namespace.as_str() };
        payload.extend(format!("<{prefix}record{namespace}>\n").bytes());
        for (number, value) in FIELDS {
            let (name, tag) = match number {
                "" => ("leader", String::new()),
                number => ("controlfield", format!(" tag=\"{number}\"")),
            };
            let in_section = random.chance(15);
            let (damaged, expected) = if random.chance(60) {
                damaged_value(random, value, in_section)
            } else {
                complete_value(random, value)
            };
            texts.push(expected);
            let (open, close) = if in_section { ("<![CDATA[", "]]>") } else { ("", "") };
            payload.extend(format!("<{prefix}{name}{tag}>{open}").bytes());
            payload.extend(damaged);
            payload.extend(format!("{close}</{prefix}{name}>").bytes());
        }
        let quote = random.pick(&["\"", "'"]);
        let indicators = [0, 1].map(|_| {
            if random.chance(40) { (damaged_character(random, false), " ") } else { (b"1".to_vec(), "1") }
        });
        payload.extend(format!("<{prefix}datafield tag={quote}245{quote}").bytes());
        for (number, (damaged, expected)) in (1..).zip(indicators) {
            payload.extend(format!(" ind{number}={quote}").bytes());
            payload.extend(damaged);
            payload.extend(quote.bytes());
            texts.push(expected.to_owned());
        }
        let title = random.pick(&[b"Harbours".as_slice(), b"Fish & chips", b"caf\xe9", b"a\x01b", b"x<y"]);
        payload.extend(format!("><{prefix}subfield code=\"a\">").bytes());
        payload.extend(title);
        payload.extend(format!("</{prefix}subfield></{prefix}datafield></{prefix}record>").bytes());
    }
    if in_collection {
        payload.extend(format!("</{prefix}collection>").bytes());
    }
    let frame = [HEAD, ROOT, &record(0, "<r xmlns=\"urn:x\"/>"), &record(1, "\u{1}"), TAIL].concat();
    let (before, after) = frame.split_once('\u{1}').expect("it is there");
    Expected { input: [before.as_bytes(), &payload, after.as_bytes()].concat(), texts }
}

/// The fields with fixed positions and the indicators.
fn marc_texts(element: &Element, texts: &mut Vec<String>) {
    match element.name.as_str() {
        "leader" | "controlfield" => texts.push(element.text.clone()),
        "datafield" => {
            let indicators = element.attributes.iter().filter(|(_, name, _)| name.starts_with("ind"));
            texts.extend(indicators.map(|(_, _, value)| value.clone()));
        }
        _ => {}
    }
    element.children.iter().for_each(|child| marc_texts(child, texts));
}

#[test]
fn positions_of_marc_stay() {
    check("positions of MARC", 1, marc_page, marc_texts);
}

/// Definitions of an entity, and its text. Others are not used.
const DEFINITIONS: [(&str, Option<&str>); 14] = [
    ("\"Town Archive\"", Some("Town Archive")),
    ("'say \"hi\" '", Some("say \"hi\" ")),
    ("\"it's\"", Some("it's")),
    ("\"caf&#233; &#x1F600;\"", Some("café 😀")),
    ("\"]]\"", Some("]]")),
    ("\">\"", Some(">")),
    ("\"\"", Some("")),
    ("\"日本\"", Some("日本")),
    ("\"&e0;&e0;\"", None),
    ("\"<b/>\"", None),
    ("\"&#60;b/>\"", None),
    ("\"&#38;e0;\"", None),
    ("SYSTEM \"file:///etc/passwd\"", None),
    ("PUBLIC \"x\" \"y.gif\" NDATA gif", None),
];

/// A document type declaration that defines some of the entities `e0` to `e4`.
fn doctype(random: &mut Random) -> (String, [Option<&'static str>; 5]) {
    let mut subset = String::new();
    let (mut texts, mut is_bound) = ([None; 5], [false; 5]);
    for _ in 0..random.below(7) {
        let (number, (definition, text)) = (random.below(5), DEFINITIONS[random.below(DEFINITIONS.len())]);
        match random.below(8) {
            0 => subset.push_str(&format!("<!-- <!ENTITY e{number} \"in a comment\"> ' -->")),
            1 => subset.push_str(&format!("<!ENTITY % e{number} \"a parameter\"> %e{number};")),
            2 => subset.push_str(&format!("<!ATTLIST a b CDATA \"<!ENTITY e{number} 'no'>\">")),
            _ => {
                subset.push_str(&format!("<!ENTITY e{number} {definition}>"));
                if !is_bound[number] {
                    (texts[number], is_bound[number]) = (text, true);
                }
            }
        }
        subset.push_str(random.pick(&["", "\n  ", " "]));
    }
    let external = random.pick(&["", " SYSTEM \"a.dtd\"", " PUBLIC '[' \"]>\""]);
    (format!("<!DOCTYPE a{external} [{subset}]>"), texts)
}

/// A payload with references in an attribute and a text, and what both mean.
fn payload_with_references(
    random: &mut Random,
    doctype: &str,
    known: [Option<&'static str>; 5],
) -> (String, [String; 2]) {
    let mut values = [String::new(), String::new()];
    let mut texts = [String::new(), String::new()];
    for (value, text) in values.iter_mut().zip(&mut texts) {
        for _ in 0..random.below(6) {
            let number = random.below(5);
            let plain = random.pick(&["", "a ", "]", ">", "é"]);
            value.push_str(&format!("{plain}&e{number};"));
            text.push_str(plain);
            match known[number] {
                Some(known) => text.push_str(known),
                None => text.push_str(&format!("&e{number};")),
            }
        }
    }
    let [value, content] = values;
    let quote = random.pick(&["\"", "'"]);
    let (before, inside) = if random.chance(80) { (doctype, "") } else { ("", doctype) };
    let element = format!("{before}<a xmlns=\"urn:x\" b={quote}{value}{quote}>{inside}{content}</a>");
    // The attribute precedes a declaration inside the element.
    if inside.is_empty() { (element, texts) } else { payload_without_value(inside, &content, texts) }
}

fn payload_without_value(doctype: &str, content: &str, texts: [String; 2]) -> (String, [String; 2]) {
    let [_, text] = texts;
    (format!("<a xmlns=\"urn:x\" b=\"\">{doctype}{content}</a>"), [String::new(), text])
}

fn entity_page(random: &mut Random) -> Expected {
    let mut texts = Vec::new();
    let mut input = [HEAD, ROOT].concat();
    for number in 0..1 + random.below(4) {
        let (declarations, known) =
            if random.chance(60) { doctype(random) } else { (String::new(), [None; 5]) };
        let (payload, expected) = payload_with_references(random, &declarations, known);
        input.push_str(&record(number, &payload));
        texts.extend(expected);
    }
    input.push_str(TAIL);
    Expected { input: input.into_bytes(), texts }
}

/// The attribute and the text of each payload.
fn payload_texts(element: &Element, texts: &mut Vec<String>) {
    if element.namespace == "urn:x" {
        texts.extend(element.attributes.iter().map(|(_, _, value)| value.clone()));
        texts.push(element.text.clone());
    }
    element.children.iter().for_each(|child| payload_texts(child, texts));
}

#[test]
fn entities_of_a_payload_hold_in_its_record() {
    check("entities of a payload", 2, entity_page, payload_texts);
}

/// However entities are nested or repeated, an item grows by at most the limit.
#[test]
fn entities_cannot_make_an_item_long() {
    let config = RepairConfig::default();
    let limit = config.limits.entity_bytes_max;
    let text = "x".repeat(1000);
    let references = "&a;".repeat(4_000);
    let nested = "<!ENTITY b \"&a;&a;\"><!ENTITY c \"&b;&b;\">";
    let doctype = format!("<!DOCTYPE a [<!ENTITY a \"{text}\">{nested}]>");
    for (before_root, payload) in [
        ("", format!("{doctype}<a xmlns=\"urn:x\">{references}&c;</a>")),
        (doctype.as_str(), format!("<a xmlns=\"urn:x\">{references}&c;</a>")),
        (
            "",
            format!("{doctype}<a xmlns=\"urn:x\" b=\"&a;\"><b>{references}</b>\u{1}<c>{references}</c></a>"),
        ),
    ] {
        let input = [HEAD, before_root, ROOT, &record(1, &payload), &record(2, "<a xmlns=\"urn:x\"/>"), TAIL];
        let input = input.concat();
        let whole = invariants::all(input.as_bytes(), &config, fuzzing::judge).expect("a valid page");
        assert_eq!(whole.summary.records, 2);
        let inserted = memchr::memmem::find_iter(&whole.output, text.as_bytes()).count() * text.len();
        assert_eq!(inserted, limit / text.len() * text.len(), "inserted");
    }
}
