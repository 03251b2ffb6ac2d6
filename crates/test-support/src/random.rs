//! Random valid documents from a grammar, and the random generator for the other tests.
//!
//! A seed always gives the same document, so that a seed identifies a failure.

/// A small, fast, seeded random generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[expect(clippy::should_implement_trait, reason = "the numbers never end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        match u64::try_from(bound) {
            Ok(bound) if bound > 0 => usize::try_from(self.next() % bound).unwrap_or(0),
            _ => 0,
        }
    }

    /// True with this probability, in percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// A page in parts, so that single records can be damaged.
#[derive(Clone, Debug)]
pub struct Page {
    /// The text before the first record.
    pub head: String,
    /// Each record with the white space after it.
    pub records: Vec<(String, String)>,
    /// The text after the last record, with the token if there is one.
    pub tail: String,
}

impl Page {
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        for (record, space) in &self.records {
            all.push_str(record);
            all.push_str(space);
        }
        all.push_str(&self.tail);
        all.into_bytes()
    }
}

/// A valid, conventional ListRecords page.
pub fn page(random: &mut Random) -> Page {
    let line = random.pick(&["\n", "\n  ", "", "\r\n"]);
    // Declared here and used in the records: legal, but simple record splitters fail on it.
    let on_root = random.chance(30);
    let mut head = head(random, "verb=\"ListRecords\" metadataPrefix=\"oai_dc\"", line, on_root);
    head.push_str("<ListRecords>");
    head.push_str(line);
    let count = 1 + random.below(5);
    let records = (0..count).map(|number| (record(random, number, on_root), line.to_owned())).collect();
    Page { head, records, tail: tail(random, "ListRecords", line) }
}

/// A valid, conventional page of a list: mostly records, also headers and sets.
pub fn list(random: &mut Random) -> Page {
    let verb = match random.below(10) {
        0..=6 => return page(random),
        7 | 8 => "ListIdentifiers",
        _ => "ListSets",
    };
    let line = random.pick(&["\n", "\n  ", ""]);
    let mut head = head(random, &format!("verb=\"{verb}\""), line, false);
    head.push_str(&format!("<{verb}>{line}"));
    let count = 1 + random.below(5);
    let records = (0..count).map(|number| (item(random, verb, number), line.to_owned())).collect();
    Page { head, records, tail: tail(random, verb, line) }
}

/// The text before the verb element.
fn head(random: &mut Random, request: &str, line: &str, on_root: bool) -> String {
    let mut head = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    if random.chance(15) {
        head.push_str("<?xml-stylesheet type=\"text/xsl\" href=\"oai.xsl\"?>\n");
    }
    if random.chance(10) {
        head.push_str("<!-- made for a <record> lover & co -->\n");
    }
    let bindings = if on_root { DC_BINDINGS } else { "" };
    head.push_str(&format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"{bindings} \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
         http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">{line}\
         <responseDate>2026-03-01T08:15:00Z</responseDate>{line}\
         <request {request}>http://example.org/oai</request>{line}"
    ));
    head
}

/// The text after the last item, with or without a token.
fn tail(random: &mut Random, verb: &str, line: &str) -> String {
    let token = match random.below(4) {
        0 => "<resumptionToken>page/2?a=1&amp;b=2</resumptionToken>",
        1 => "<resumptionToken completeListSize=\"512\" cursor=\"0\">0!512|x</resumptionToken>",
        _ => "",
    };
    format!("{token}{line}</{verb}>{line}</OAI-PMH>\n")
}

/// A valid, conventional response to any verb, mostly lists of records.
pub fn response(random: &mut Random) -> Vec<u8> {
    if random.chance(60) {
        return page(random).bytes();
    }
    let line = random.pick(&["\n", "", "\n\t"]);
    let verb = random.pick(&[
        "ListIdentifiers",
        "ListSets",
        "ListMetadataFormats",
        "GetRecord",
        "Identify",
        "error",
    ]);
    let mut made = match verb {
        "error" => head(random, "verb=\"ListRecords\"", line, false),
        _ => head(random, &format!("verb=\"{verb}\""), line, false),
    };
    let count = if verb == "GetRecord" { 1 } else { 1 + random.below(4) };
    let items: Vec<String> = (0..count).map(|number| item(random, verb, number)).collect();
    match verb {
        "error" => made.push_str(&format!("{}{line}</OAI-PMH>", items.join(line))),
        "Identify" => made.push_str(&format!("{}{line}</OAI-PMH>", items[0])),
        "ListMetadataFormats" | "GetRecord" => {
            made.push_str(&format!("<{verb}>{line}{}{line}</{verb}>{line}</OAI-PMH>\n", items.join(line)));
        }
        _ => made.push_str(&format!("<{verb}>{line}{}{line}{}", items.join(line), tail(random, verb, line))),
    }
    made.into_bytes()
}

fn item(random: &mut Random, verb: &str, number: usize) -> String {
    match verb {
        "ListIdentifiers" => header(random, number, "\n    "),
        "ListSets" => {
            let name = text(random);
            let description = if random.chance(30) { SET_DESCRIPTION } else { "" };
            format!("<set><setSpec>set:{number}</setSpec><setName>{name}</setName>{description}</set>")
        }
        "ListMetadataFormats" => format!(
            "<metadataFormat><metadataPrefix>format{number}</metadataPrefix><schema>http://example.org/{number}.xsd\
             </schema><metadataNamespace>http://example.org/{number}/</metadataNamespace></metadataFormat>"
        ),
        "GetRecord" => record(random, number, false),
        "Identify" => format!(
            "<Identify><repositoryName>{}</repositoryName><baseURL>http://example.org/oai</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail><earliestDatestamp>\
             2001-01-01</earliestDatestamp><deletedRecord>no</deletedRecord><granularity>YYYY-MM-DD</granularity>\
             </Identify>",
            text(random)
        ),
        _ => format!(
            "<error code=\"{}\">{}</error>",
            random.pick(&["badArgument", "noRecordsMatch"]),
            text(random)
        ),
    }
}

const DC_BINDINGS: &str = " xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
                           xmlns:dc=\"http://purl.org/dc/elements/1.1/\"";

fn record(random: &mut Random, number: usize, on_root: bool) -> String {
    let space = random.pick(&["", "\n    ", "\n\t", " "]);
    let mut made = format!("<record>{space}");
    let header = header(random, number, space);
    let deleted = header.starts_with("<header status");
    made.push_str(&header);
    if !deleted {
        made.push_str(space);
        made.push_str(&format!("<metadata>{space}{}{space}</metadata>", payload(random, on_root)));
        if random.chance(10) {
            made.push_str(PROVENANCE);
        }
    }
    made.push_str(space);
    made.push_str("</record>");
    made
}

fn header(random: &mut Random, number: usize, space: &str) -> String {
    let status = if random.chance(8) { " status=\"deleted\"" } else { "" };
    let mut made = format!("<header{status}>{space}<identifier>oai:example.org:{number}</identifier>");
    let day = 1 + random.below(28);
    let time = random.pick(&["", "T10:00:00Z"]);
    made.push_str(&format!("{space}<datestamp>2025-06-{day:02}{time}</datestamp>"));
    for _ in 0..random.below(3) {
        made.push_str(&format!(
            "{space}<setSpec>{}</setSpec>",
            random.pick(&["maps", "theses:2025", "a-b_c.d"])
        ));
    }
    made.push_str("</header>");
    made
}

const PROVENANCE: &str = "<about><provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\">\
    <originDescription harvestDate=\"2025-01-01T00:00:00Z\" altered=\"false\"><baseURL>http://example.org/x</baseURL>\
    </originDescription></provenance></about>";

/// It uses a declaration of the root.
const SET_DESCRIPTION: &str =
    "<setDescription><note xmlns=\"http://example.org/note\" xsi:nil=\"true\"/></setDescription>";

fn payload(random: &mut Random, on_root: bool) -> String {
    match random.below(12) {
        0 | 1 => marc(random),
        2 => mods(random),
        3 => datacite(random),
        4 => ddi(random),
        _ => dublin_core(random, on_root),
    }
}

/// The prefix is declared on the root.
const DC_LOCATION: &str = " xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
                           http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"";

fn dublin_core(random: &mut Random, on_root: bool) -> String {
    let bindings = if on_root { "" } else { DC_BINDINGS };
    let location = if random.chance(20) { DC_LOCATION } else { "" };
    let mut made = format!("<oai_dc:dc{bindings}{location}>");
    for _ in 0..1 + random.below(5) {
        let field = random.pick(&["title", "creator", "subject", "description", "identifier"]);
        let language = random.pick(&["", " xml:lang=\"en\"", " xml:lang='de'"]);
        made.push_str(&format!("<dc:{field}{language}>{}</dc:{field}>", text(random)));
        if random.chance(8) {
            made.push_str("<!-- <record> withdrawn: see below </record> -->");
        }
    }
    if random.chance(10) {
        made.push_str("<dc:relation/>");
    }
    made.push_str("</oai_dc:dc>");
    made
}

fn marc(random: &mut Random) -> String {
    let mut made = String::from(
        "<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>00000nam a2200000 a 4500</leader>\
         <controlfield tag=\"001\">12345</controlfield>",
    );
    for tag in 0..1 + random.below(3) {
        made.push_str(&format!(
            "<datafield tag=\"24{tag}\" ind1=\"1\" ind2=\" \"><subfield code=\"a\">{}</subfield></datafield>",
            text(random)
        ));
    }
    made.push_str("</record>");
    made
}

fn mods(random: &mut Random) -> String {
    format!(
        "<mods:mods xmlns:mods=\"http://www.loc.gov/mods/v3\"><mods:note>{}</mods:note>\
         <mods:titleInfo><mods:title>{}</mods:title></mods:titleInfo></mods:mods>",
        text(random),
        text(random)
    )
}

fn datacite(random: &mut Random) -> String {
    format!(
        "<resource xmlns=\"http://datacite.org/schema/kernel-4\"><titles><title>{}</title></titles><descriptions>\
         <description descriptionType=\"Abstract\">{}<br/>{}</description></descriptions></resource>",
        text(random),
        text(random),
        text(random)
    )
}

fn ddi(random: &mut Random) -> String {
    format!(
        "<codeBook xmlns=\"http://www.icpsr.umich.edu/DDI\"><stdyDscr><stdyInfo><abstract><p>{}</p><p><emph>{}</emph>\
         </p></abstract><notes>{}</notes></stdyInfo></stdyDscr></codeBook>",
        text(random),
        text(random),
        text(random)
    )
}

/// Text with all legal constructs that are often taken for defects.
fn text(random: &mut Random) -> String {
    let mut made = String::new();
    for _ in 0..random.below(5) {
        made.push_str(random.pick(&[
            "plain words",
            "Smith &amp; Sons",
            "x &lt; y",
            "Müller",
            "日本語，漢字",
            "😀",
            "tab\there",
            "line&#13;\nend",
            "a ]] b",
            "replaced \u{fffd}",
            "c1 \u{85}\u{92}",
            "&#233;&#x1F600;",
            "<![CDATA[5 < 6 & so on]]>",
            "<![CDATA[</record>]]>",
            "<![CDATA[<i>of <![CDATA[ and <!-- -->]]>",
            "&quot;quoted&apos;",
            "a > b",
            " ",
        ]));
    }
    made
}
