//! Generates realistic ListRecords pages, clean and broken; each seed gives the same page.
//!
//! Mixed scripts, references in text, the tags and white space of the common
//! providers. Each broken record has one defect; the kinds of [`Defect`] alternate.

/// The format of the records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    /// Dublin Core as journal software writes it: indented, long text between tags.
    OaiDc,
    /// MARCXML with one line per record: many tags, short text.
    Marcxml,
}

/// One way to break a record.
#[derive(Clone, Copy, Debug)]
enum Defect {
    CutCharacter,
    Latin1,
    ControlCharacter,
    BareAmpersand,
    BareLessThan,
    HtmlEntity,
    UnquotedAttribute,
    MismatchedEndTag,
}

const DEFECTS: [Defect; 8] = [
    Defect::CutCharacter,
    Defect::Latin1,
    Defect::ControlCharacter,
    Defect::BareAmpersand,
    Defect::BareLessThan,
    Defect::HtmlEntity,
    Defect::UnquotedAttribute,
    Defect::MismatchedEndTag,
];

/// A page with this number of records, `broken_per_mille` in a thousand of them broken.
pub(crate) fn page(format: Format, records: usize, broken_per_mille: usize, seed: u64) -> Vec<u8> {
    let mut page = head(format).into_bytes();
    let mut kinds = DEFECTS.iter().copied().cycle();
    for number in 0..records {
        // A record depends only on its number, so that a broken page contains the records of the clean one.
        let mut random = Random(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let is_broken = random.below(1000) < broken_per_mille;
        let defect = if is_broken { kinds.next() } else { None };
        match format {
            Format::OaiDc => push_oai_dc(&mut page, &mut random, number, defect),
            Format::Marcxml => push_marcxml(&mut page, &mut random, number, defect),
        }
    }
    page.extend_from_slice(b"\t</ListRecords>\n</OAI-PMH>\n");
    page
}

fn head(format: Format) -> String {
    let prefix = match format {
        Format::OaiDc => "oai_dc",
        Format::Marcxml => "marc21",
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
         \t<responseDate>2026-01-02T03:04:05Z</responseDate>\n\
         \t<request verb=\"ListRecords\" metadataPrefix=\"{prefix}\">http://repository.example.org/oai</request>\n\
         \t<ListRecords>\n"
    )
}

const OAI_DC_START: &[u8] = b"<oai_dc:dc\n\txmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\"\n\
    \txmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n\
    \txmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
    \txsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/\n\
    \thttp://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\n";

fn push_oai_dc(page: &mut Vec<u8>, random: &mut Random, number: usize, defect: Option<Defect>) {
    let datestamp = datestamp(random);
    page.extend_from_slice(
        format!(
            "\t\t<record>\n\t\t\t<header>\n\t\t\t\t<identifier>oai:repository.example.org:article/{number}</identifier>\n\
             \t\t\t\t<datestamp>{datestamp}</datestamp>\n\t\t\t\t<setSpec>j{}:ART</setSpec>\n\
             \t\t\t\t<setSpec>driver</setSpec>\n\t\t\t</header>\n\t\t\t<metadata>\n",
            random.below(40)
        )
        .as_bytes(),
    );
    page.extend_from_slice(OAI_DC_START);
    let fields = fields(random, number);
    let target = random.below(fields.len());
    for (index, (name, text)) in fields.iter().enumerate() {
        let defect = if index == target { defect } else { None };
        let language = matches!(*name, "title" | "description" | "source");
        let attribute: &[u8] = match defect {
            Some(Defect::UnquotedAttribute) => b" xml:lang=en-US",
            _ if language => b" xml:lang=\"en-US\"",
            _ => b"",
        };
        page.extend_from_slice(b"\t<dc:");
        page.extend_from_slice(name.as_bytes());
        page.extend_from_slice(attribute);
        page.push(b'>');
        push_text(page, text, defect);
        let end = match defect {
            Some(Defect::MismatchedEndTag) => format!("</{name}>\n"),
            _ => format!("</dc:{name}>\n"),
        };
        page.extend_from_slice(end.as_bytes());
    }
    page.extend_from_slice(b"</oai_dc:dc>\n\t\t\t</metadata>\n\t\t</record>\n");
}

fn push_marcxml(page: &mut Vec<u8>, random: &mut Random, number: usize, defect: Option<Defect>) {
    let datestamp = datestamp(random);
    page.extend_from_slice(
        format!(
            "<record><header><identifier>oai:library.example.org:{number:09}</identifier>\
             <datestamp>{datestamp}</datestamp><setSpec>biblio</setSpec></header><metadata>\
             <marc:record xmlns:marc=\"http://www.loc.gov/MARC21/slim\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.loc.gov/MARC21/slim http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd\">\
             <marc:leader>01345nam a2200289 a 4500</marc:leader>\
             <marc:controlfield tag=\"001\">{number:09}</marc:controlfield>\
             <marc:controlfield tag=\"005\">20190103101010.0</marc:controlfield>"
        )
        .as_bytes(),
    );
    let fields = fields(random, number);
    let target = random.below(fields.len());
    for (index, (name, text)) in fields.iter().enumerate() {
        let defect = if index == target { defect } else { None };
        let indicator = if matches!(defect, Some(Defect::UnquotedAttribute)) { "1" } else { "\"1\"" };
        page.extend_from_slice(
            format!(
                "<marc:datafield tag=\"{}\" ind1={indicator} ind2=\" \"><marc:subfield code=\"a\">",
                marc_tag(name)
            )
            .as_bytes(),
        );
        push_text(page, text, defect);
        let end: &[u8] = match defect {
            Some(Defect::MismatchedEndTag) => b"</subfield></marc:datafield>",
            _ => b"</marc:subfield></marc:datafield>",
        };
        page.extend_from_slice(end);
    }
    page.extend_from_slice(b"</marc:record></metadata></record>\n");
}

fn marc_tag(name: &str) -> &'static str {
    match name {
        "title" => "245",
        "creator" => "700",
        "subject" => "650",
        "description" => "520",
        "identifier" => "856",
        "source" => "773",
        "language" => "041",
        "rights" => "540",
        _ => "260",
    }
}

/// Escapes the text and inserts the defect in its middle.
fn push_text(page: &mut Vec<u8>, text: &str, defect: Option<Defect>) {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(index, _)| index);
    let (before, behind) = text.split_at(middle);
    push_escaped(page, before);
    let broken: &[u8] = match defect {
        None | Some(Defect::UnquotedAttribute | Defect::MismatchedEndTag) => b"",
        Some(Defect::CutCharacter) => b" \xe2\x80 ",
        Some(Defect::Latin1) => b" Universit\xe4t Z\xfcrich ",
        Some(Defect::ControlCharacter) => b" \x0b",
        Some(Defect::BareAmpersand) => b" http://x.example/?a=1&b=2 ",
        Some(Defect::BareLessThan) => b" p < 0.05 ",
        Some(Defect::HtmlEntity) => b" x&nbsp;y ",
    };
    page.extend_from_slice(broken);
    push_escaped(page, behind);
}

fn push_escaped(page: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'&' => page.extend_from_slice(b"&amp;"),
            b'<' => page.extend_from_slice(b"&lt;"),
            b'>' => page.extend_from_slice(b"&gt;"),
            other => page.push(other),
        }
    }
}

fn datestamp(random: &mut Random) -> String {
    format!(
        "20{}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        10 + random.below(16),
        1 + random.below(12),
        1 + random.below(28),
        random.below(24),
        random.below(60),
        random.below(60)
    )
}

/// The fields of one record, in the mix of a repository of many languages.
fn fields(random: &mut Random, number: usize) -> Vec<(&'static str, String)> {
    // Nine in twenty are English, five in Latin script with accents, the rest in other scripts.
    let script = match random.below(20) {
        0..9 => ENGLISH,
        9..14 => ACCENTED,
        14..17 => CYRILLIC,
        17..19 => CHINESE,
        _ => ARABIC,
    };
    let mut fields = vec![("title", words(random, script, 5, 14))];
    for _ in 0..=random.below(4) {
        fields.push(("creator", words(random, script, 2, 2)));
    }
    for _ in 0..=random.below(4) {
        fields.push(("subject", words(random, script, 1, 3)));
    }
    let mut description = words(random, script, 12, 75);
    if random.below(4) == 0 {
        description.push_str([" R & D", " p < 0.05", " x > 3 & y < 4"][random.below(3)]);
    }
    fields.push(("description", description));
    let query = if random.below(4) == 0 { "?lang=en&id=7" } else { "" };
    fields.extend([
        ("publisher", words(random, script, 3, 3)),
        ("date", format!("{}-0{}-1{}", 1990 + random.below(36), 1 + random.below(9), random.below(9))),
        ("type", "info:eu-repo/semantics/article".to_owned()),
        ("format", "application/pdf".to_owned()),
        ("identifier", format!("https://repository.example.org/index.php/j/article/view/{number}{query}")),
        ("identifier", format!("10.{}/jx.v{}.{number}", 1000 + random.below(50_000), random.below(30))),
        ("source", words(random, ENGLISH, 4, 4)),
        ("language", "eng".to_owned()),
        ("rights", "https://creativecommons.org/licenses/by/4.0".to_owned()),
    ]);
    fields
}

fn words(random: &mut Random, script: &[&str], least: usize, most: usize) -> String {
    let count = least + random.below(most - least + 1);
    let mut text = String::new();
    for index in 0..count {
        if index > 0 {
            text.push_str(if random.below(9) == 0 { ", " } else { " " });
        }
        text.push_str(script[random.below(script.len())]);
    }
    text
}

const ENGLISH: &[&str] = &[
    "the",
    "of",
    "and",
    "in",
    "a",
    "analysis",
    "study",
    "development",
    "using",
    "effects",
    "between",
    "education",
    "research",
    "model",
    "among",
    "towards",
    "system",
    "review",
    "management",
    "on",
    "relationship",
    "evaluation",
    "approach",
    "water",
    "social",
    "policy",
    "students",
    "treatment",
];
const ACCENTED: &[&str] = &[
    "für",
    "die",
    "Förderung",
    "der",
    "Universität",
    "über",
    "Größe",
    "société",
    "données",
    "évaluation",
    "educación",
    "investigación",
    "análisis",
    "de",
    "la",
    "población",
    "avaliação",
    "saúde",
    "região",
    "źródło",
    "społeczny",
    "čeština",
    "výzkum",
    "und",
    "et",
];
const CYRILLIC: &[&str] = &[
    "исследование",
    "и",
    "развитие",
    "системы",
    "в",
    "анализ",
    "методы",
    "использование",
    "образования",
    "на",
    "общество",
    "управление",
    "история",
    "вплив",
    "аналіз",
];
const CHINESE: &[&str] =
    &["研究", "教育", "发展", "中国", "的", "分析", "社会", "与", "影响", "技术", "基于", "系统"];
const ARABIC: &[&str] =
    &["دراسة", "في", "تحليل", "التعليم", "العربية", "على", "المجتمع", "تطبيق", "الجامعة", "النتائج"];

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
