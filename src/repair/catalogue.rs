//! Every repair in one table: its name, how certain it is, what it does and why.
//!
//! The name finds everything else: the enum variant, the folder
//! `corpus/broken/<name>/`, the heading in docs/reference/repairs.md, the metric label,
//! the key in a mapping's `repairs.off` and the argument of `oaimend explain`.
//! What is not mended at all has its reasons in [`QuarantineReason`], and each of
//! them a folder `corpus/refused/<name>*/` and a heading in docs/reference/unrepairable.md.

pub use super::verdict::{NotOai, QuarantineReason};

/// How sure a repair is of what was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Only one reading fits the bytes, or XML itself forces the change.
    Exact,
    /// A table or a strong sign says so.
    Likely,
    /// Plausible and no more. Off unless a mapping turns it on.
    Guess,
    /// No repair at all: what the proxy says of itself instead of the source.
    Rewrite,
}

impl Certainty {
    /// The word used in reports and documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Likely => "likely",
            Self::Guess => "guess",
            Self::Rewrite => "rewrite",
        }
    }
}

/// What a repair does to what a reader of a payload gets. In doubt it is [`Effect::Content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The same characters, elements, attributes and namespaces in another notation: what the bytes
    /// as they came can only mean.
    Form,
    /// Something is other than it came, was left out, or was chosen among readings.
    Content,
}

/// The catalogue entry of one repair.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which repair it is.
    pub id: RepairId,
    /// The one kebab-case name.
    pub name: &'static str,
    /// How sure it is.
    pub certainty: Certainty,
    /// Whether a payload is another one afterwards.
    pub effect: Effect,
    /// What it changes, in one or two sentences.
    pub what: &'static str,
    /// Why it is needed and why this change is the right one.
    pub why: &'static str,
    /// An example of what comes in.
    pub before: &'static str,
    /// The same example as it goes out.
    pub after: &'static str,
}

/// The effect of an entry, which is of form where none is named.
macro_rules! effect {
    () => {
        Effect::Form
    };
    ($effect:ident) => {
        Effect::$effect
    };
}

macro_rules! catalogue {
    ($($variant:ident $name:literal $certainty:ident $(, $effect:ident)?
        what $what:literal
        why $why:literal
        before $before:literal
        after $after:literal)*) => {
        /// One repair, by its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RepairId {
            $(#[doc = $what] $variant,)*
        }

        /// All repairs, in the order in which a response meets them.
        pub static CATALOGUE: &[&Entry] = &[$(RepairId::$variant.entry(),)*];

        impl RepairId {
            /// The one kebab-case name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Its entry in the catalogue.
            pub const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$variant => &Entry {
                        id: Self::$variant,
                        name: $name,
                        certainty: Certainty::$certainty,
                        effect: effect!($($effect)?),
                        what: $what,
                        why: $why,
                        before: $before,
                        after: $after,
                    },)*
                }
            }

            /// How sure it is.
            pub const fn certainty(self) -> Certainty {
                match self {
                    $(Self::$variant => Certainty::$certainty,)*
                }
            }

            /// Whether a payload is another one afterwards.
            pub const fn effect(self) -> Effect {
                match self {
                    $(Self::$variant => effect!($($effect)?),)*
                }
            }
        }
    };
}

catalogue! {
    // --- before and behind the document
    ByteOrderMark "byte-order-mark" Exact
        what "Removes byte order marks that stand where none may: a second one, one behind other bytes, or one of UTF-16 before UTF-8."
        why "One U+FEFF at the very start is legal and stays. A mark of UTF-16 before narrow characters is no text, and the bytes behind it decide. Any other one before the document element is content where none is allowed, and every strict parser stops at it."
        before "\u{feff}\u{feff}<?xml version=\"1.0\"?>"
        after "\u{feff}<?xml version=\"1.0\"?>"
    LeadingBlank "leading-blank" Exact
        what "Removes blanks and line breaks before the XML declaration."
        why "A declaration is legal only as the very first bytes. Scripts that include files with a trailing newline put blanks before it."
        before "\n\n<?xml version=\"1.0\"?>"
        after "<?xml version=\"1.0\"?>"
    JunkBeforeRoot "junk-before-root" Exact
        what "Removes anything else before the document: PHP notices, dumped HTTP headers, debug output."
        why "Bytes before the document element are no OAI data. The skipped part is bounded by junk_bytes_max; more than that is no OAI-PMH response."
        before "<b>Warning</b>: Undefined index<?xml version=\"1.0\"?>"
        after "<?xml version=\"1.0\"?>"
    MissingDeclaration "missing-declaration" Exact
        what "Adds the XML declaration where the response has none."
        why "OAI-PMH 2.0, section 3.2, wants each response to begin with one."
        before "<OAI-PMH ...>"
        after "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH ...>"
    WrongDeclaration "wrong-declaration" Exact
        what "Rewrites an XML declaration that is malformed or names an encoding the answer is not in."
        why "What goes out is UTF-8. A label such as ISO-8859-1 or utf8, version 1.1, a wrong case or missing quotes makes parsers stop or read other characters."
        before "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"
        after "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
    Doctype "doctype" Exact
        what "Removes a document type declaration, before the root or inside a payload. Entities it defines as plain text are written out where they are used."
        why "OAI-PMH has none, inside an element it is not well-formed, and expanding one is how entity bombs and file disclosure work. External and parameter entities are never read."
        before "<!DOCTYPE dc SYSTEM \"dc.dtd\"><dc/>"
        after "<dc/>"
    TrailingJunk "trailing-junk" Exact
        what "Removes everything behind the end of the document."
        why "Only comments and white space may follow the root. PHP notices, banners and NUL padding make strict parsers reject the whole page."
        before "</OAI-PMH>\n<br /><b>Notice</b>: Undefined index"
        after "</OAI-PMH>\n"
    ConcatenatedDocuments "concatenated-documents" Likely
        what "Joins a second whole document in the same body to the first: one list, each item once."
        why "Some providers retry inside one answer and send both tries. Items of the second that were already delivered are skipped; an error or an empty list before a second document gives way to that."
        before "...</ListRecords></OAI-PMH><?xml version=\"1.0\"?><OAI-PMH>...<record>"
        after "...<record>"

    // --- characters
    Windows1252Byte "windows-1252-byte" Likely, Content
        what "Reads a byte that is no UTF-8 as windows-1252, the superset of Latin-1 that web software uses."
        why "Decided for each text node or attribute value: a node without any valid multi-byte character is in that encoding as a whole, in another one only a lone byte is. Unassigned bytes become U+FFFD."
        before "caf\\xE9"
        after "café"
    TextCharset "text-charset" Likely, Content
        what "Reads text that is no UTF-8 in another charset than windows-1252: the one that a mapping names, or the one that the language and the letters of the record decide."
        why "A database in windows-1251, KOI8-R or ISO 8859-2 gives such fields under any declaration. The letters decide only where they rule out a Western language. Where they do, and no charset fits, the record is put in quarantine."
        before "\\xCC\\xEE\\xF1\\xEA\\xE2\\xE0"
        after "Москва"
    BrokenUtf8 "broken-utf8" Likely, Content
        what "Replaces what is left of a cut multi-byte character by U+FFFD."
        why "Providers cut text at a number of bytes. The missing part is not in this response; U+FFFD says so honestly. At the end of a node one byte is enough, where it is no plausible letter of windows-1252: é ends caf\\xE9, but Ã does not end Mills\\xC3."
        before "naïve \\xE2\\x80"
        after "naïve \u{fffd}"
    OverlongUtf8 "overlong-utf8" Exact, Content
        what "Replaces overlong UTF-8 forms, code points above U+10FFFF, and bytes that are no character of the charset they were decoded from, by U+FFFD."
        why "Decoding an overlong form would let a hidden markup character through."
        before "\\xC0\\xBC"
        after "\u{fffd}"
    Cesu8 "cesu-8" Exact, Content
        what "Joins surrogates that were encoded one by one into the character they stand for; a lone one becomes U+FFFD."
        why "Java and Oracle write characters above U+FFFF as two three-byte sequences (CESU-8). The reading of a pair is unique."
        before "\\xED\\xA0\\xBD\\xED\\xB8\\x80"
        after "😀"
    ControlCharacter "control-character" Exact, Content
        what "Replaces VT and FF, and FS to US (0x1C to 0x1F) between two visible characters, by a space. Removes the other control characters that XML 1.0 cannot hold."
        why "XML has no way to write them, so some change is forced. VT, FF and FS to US separate words, the others carry nothing. TAB, LF, CR and DEL to U+009F are legal and stay."
        before "page\\x0Cbreak"
        after "page break"
    LostHighByte "lost-high-byte" Likely, Content
        what "Reads a control character, raw or as a reference, as the quotation mark or dash whose low byte it is: 0x13, 0x14, 0x18, 0x19, 0x1C or 0x1D."
        why "Software that cuts UTF-16 down to bytes leaves 0x19 of U+2019. Done only where both neighbours fit the mark. A double quotation mark also needs its partner in the same field."
        before "don\\x19t"
        after "don’t"
    Noncharacter "noncharacter" Exact, Content
        what "Removes U+FFFE and U+FFFF."
        why "XML 1.0 excludes both; they are no characters."
        before "a\\xEF\\xBF\\xBEb"
        after "ab"
    IllegalReference "illegal-reference" Exact, Content
        what "Resolves character references to characters that XML cannot hold, in the way of the raw character."
        why "A reference does not make an illegal character legal: &#11; becomes a space, &#0; and &#xFFFE; go, a number above U+10FFFF becomes U+FFFD. Between two visible characters &#28; to &#31; become a space."
        before "a&#x1;b"
        after "ab"
    SurrogateReference "surrogate-reference" Exact, Content
        what "Joins a pair of surrogate references into the one character; a lone one becomes U+FFFD."
        why "Serialisers that think in UTF-16 write one character as two references. The reading of a pair is unique."
        before "&#55357;&#56832;"
        after "😀"
    CdataEndInText "cdata-end-in-text" Exact
        what "Writes ]]> in text as ]]&gt;."
        why "XML forbids the sequence outside a CDATA section."
        before "a[b[0]]>c"
        after "a[b[0]]&gt;c"
    DoubleEncoded "double-encoded" Guess, Content
        what "Decodes a text node once more when all of it is UTF-8 that was read as windows-1252 and encoded again."
        why "The text is legal, so only a mapping that knows its source should turn this on."
        before "MÃ¼ller & GrÃ¶ÃŸe"
        after "Müller & Größe"
    C1Control "c1-control" Guess, Content
        what "Reads a C1 control character (U+0080 to U+009F), raw or as a reference, as the character that has its number in windows-1252."
        why "HTML reads such references so, and a page in windows-1252 that was read as Latin-1 is full of such characters. Both are legal XML, so only a mapping that knows its source should turn this on."
        before "don&#146;t 1871&#150;1899"
        after "don’t 1871–1899"

    // --- references and markup
    BareAmpersand "bare-ampersand" Exact
        what "Writes an ampersand that starts no reference as &amp;."
        why "The commonest defect of hand-made providers. Escaping is the only reading that keeps all characters as they were typed."
        before "AT&T, ?a=1&b=2"
        after "AT&amp;T, ?a=1&amp;b=2"
    UndefinedEntity "undefined-entity" Likely, Content
        what "Replaces an HTML entity by its character; an unknown one is text and its ampersand is escaped."
        why "XML knows five entities, HTML two thousand, and text pasted from web pages brings them along."
        before "caf&eacute; &ndash; bar"
        after "café – bar"
    UnterminatedReference "unterminated-reference" Likely, Content
        what "Ends a character reference that has lost its semicolon, or writes the character of its name."
        why "A number behind &# followed by something that is no digit has one plausible end. Of names, HTML knows 106 without a semicolon; other names of HTML 4 count before white space or at the end of the text, unless they are words. In the query of a URL, and before = or _, an ampersand stays one."
        before "caf&#233 bar"
        after "caf&#233; bar"
    BareLessThan "bare-less-than" Exact
        what "Writes a < that starts no markup as &lt;, in text and in attribute values."
        why "p < 0.05 and pH<7 are text; a name, a slash, ! or ? must follow for it to be markup."
        before "p < 0.05"
        after "p &lt; 0.05"
    MarkupInField "markup-in-field" Likely, Content
        what "Escapes tags inside a field that holds plain text, so that the text survives as it was typed."
        why "dc:description and MARC subfields are defined without elements. HTML in them that does not balance breaks the page. Done only in records that are not well-formed."
        before "<dc:title>a<br>b</dc:title>"
        after "<dc:title>a&lt;br&gt;b</dc:title>"
    MissingEndTag "missing-end-tag" Likely, Content
        what "Adds an end tag before the tag that cannot stand inside the open element."
        why "The skeleton of an OAI-PMH record and the fields of its formats say which element cannot hold which."
        before "<dc:title>a\n<dc:creator>b</dc:creator>"
        after "<dc:title>a</dc:title>\n<dc:creator>b</dc:creator>"
    MissingStartTag "missing-start-tag" Likely, Content
        what "Restores the start tag of text that is directly in a payload and ends with the end tag of a field."
        why "The end tag says which field it is, and the payload itself holds no text."
        before "<dc:title>a</dc:title>\nb</dc:creator>"
        after "<dc:title>a</dc:title>\n<dc:creator>b</dc:creator>"
    BlankInTag "blank-in-tag" Likely, Content
        what "Removes blanks before the name of a tag that has a well-known prefix."
        why "The name between < and > says that a tag was meant; XML allows no blank before it."
        before "< dc:title>a</ dc:title>"
        after "<dc:title>a</dc:title>"
    StrayEndTag "stray-end-tag" Likely, Content
        what "Removes an end tag that closes nothing, or that ends a payload before its last field."
        why "No element of that name is open; in a plain-text field it is text instead and is escaped. A field that follows the end tags of its payload belongs into the payload."
        before "<dc:title>a</dc:title></dc:title>"
        after "<dc:title>a</dc:title>"
    MismatchedEndTag "mismatched-end-tag" Likely
        what "Corrects the name of an end tag that is meant for the open element: other prefix or case, one letter off, cut, or the name of another field."
        why "</DC:TITLE> and </dc:titel> behind <dc:title> have one plausible meaning, and so has </dc:creator> before the next field. The start tag is right."
        before "<dc:title>a</title>"
        after "<dc:title>a</dc:title>"
    InnerDeclaration "inner-declaration" Exact
        what "Removes an XML declaration inside the document."
        why "Payloads that were stored as files are pasted with their declaration, which is legal only at the very start."
        before "<metadata><?xml version=\"1.0\"?><oai_dc:dc"
        after "<metadata><oai_dc:dc"
    DamagedName "damaged-name" Likely, Content
        what "Removes characters outside ASCII from a tag name, where the rest is the name of another tag of the record."
        why "A bad byte in a name becomes a letter or a character that no name can contain. A legal name stays where each start tag has its end tag."
        before "<dc:ti\\xFFtle>A</dc:title>"
        after "<dc:title>A</dc:title>"
    UnquotedAttribute "unquoted-attribute" Exact
        what "Puts quotes around an attribute value that has none."
        why "HTML allows it, XML does not; the value ends at the next blank or at the end of the tag."
        before "<dc:title xml:lang=en>"
        after "<dc:title xml:lang=\"en\">"
    AttributeQuotes "attribute-quotes" Likely, Content
        what "Replaces typographic or escaped quotation marks around an attribute value by quotes, and adds the opening quote or the equals sign where it is missing."
        why "Word processors write them, and serializers escape the quotes of a tag. XML allows only ' and \" there."
        before "<dc:title xml:lang=\u{201c}en\u{201d}>"
        after "<dc:title xml:lang=\"en\">"
    ValuelessAttribute "valueless-attribute" Likely, Content
        what "Gives an attribute without a value its own name as value."
        why "That is how HTML defines the short form."
        before "<option selected>"
        after "<option selected=\"selected\">"
    AttributeSpacing "attribute-spacing" Exact
        what "Adds the blank that is missing between two attributes."
        why "The closing quote already ends the first one, so nothing else can be meant."
        before "<a b=\"1\"c=\"2\">"
        after "<a b=\"1\" c=\"2\">"
    DuplicateAttribute "duplicate-attribute" Likely, Content
        what "Removes an attribute that stands on a tag a second time."
        why "The first one wins, as in HTML; what is removed stands in the journal."
        before "<oai_dc:dc xmlns:dc=\"u\" xmlns:dc=\"u\">"
        after "<oai_dc:dc xmlns:dc=\"u\">"
    UnterminatedCdata "unterminated-cdata" Likely, Content
        what "Escapes the text of a CDATA section that never ends, up to the next tag that belongs to the record."
        why "Without its end mark it would swallow the records behind it."
        before "<dc:title><![CDATA[a & b</dc:title>"
        after "<dc:title>a &amp; b</dc:title>"
    TornSection "torn-section" Guess, Content
        what "Reads a CDATA section or comment that contains further records and its own opening mark as one that lost its end mark, and ends it in its record."
        why "The page may be well-formed, and a depositor can write such a section to forge records. Only who knows that the source loses end marks should turn this on; oaimend serve asks the source about each such record instead."
        before "<dc:title><![CDATA[a & b</dc:title> ... <record> ... <dc:title><![CDATA[c]]></dc:title>"
        after "<dc:title>a &amp; b</dc:title> ... <record> ... <dc:title><![CDATA[c]]></dc:title>"
    CdataMark "cdata-mark" Likely, Content
        what "Corrects the opening mark of a CDATA section that is in other case, has blanks in it or lacks its first bracket or exclamation mark."
        why "XML knows no other markup that looks like it, and the end mark of the section is there."
        before "<dc:title><![cdata[a & b]]></dc:title>"
        after "<dc:title><![CDATA[a & b]]></dc:title>"
    EscapedPayload "escaped-payload" Likely, Content
        what "Unwraps metadata that was delivered as an escaped string or as one CDATA section."
        why "The schema demands an element; done only when the text is one whole well-formed element."
        before "<metadata>&lt;dc&gt;...&lt;/dc&gt;</metadata>"
        after "<metadata><dc>...</dc></metadata>"
    BrokenComment "broken-comment" Exact, Content
        what "Removes a comment that is not well-formed, and escapes the opening mark of one that never ends."
        why "-- may not stand inside a comment, and <! must be followed by a known word. A comment holds no data."
        before "<!-- a -- b -->"
        after ""

    // --- namespaces
    UndeclaredPrefix "undeclared-prefix" Likely
        what "Declares a well-known namespace prefix where it is used without a declaration."
        why "A table has the prefixes that mean one thing in this field, such as oai_dc:, dc:, xsi: and bibo:. Of a prefix with several namespaces in use, such as premis:, the record must name one, in schemaLocation for example. A record with an unknown prefix is quarantined."
        before "<oai_dc:dc>"
        after "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\">"
    MissingNamespace "missing-namespace" Exact
        what "Puts the envelope into the OAI-PMH 2.0 namespace when the root has none."
        why "Names and structure say what it is, and without the namespace most harvesters find nothing and report no error."
        before "<OAI-PMH>"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">"
    HttpsNamespace "https-namespace" Likely, Content
        what "Writes well-known namespaces with http:// again where somebody changed them to https://."
        why "A namespace is a name, not a link; the https form names nothing. Only in xmlns attributes and schemaLocation, never in text."
        before "xmlns=\"https://www.openarchives.org/OAI/2.0/\""
        after "xmlns=\"http://www.openarchives.org/OAI/2.0/\""
    NamespaceVariant "namespace-variant" Likely, Content
        what "Corrects known misspellings of well-known namespaces: missing slash, other case."
        why "No parser finds elements in http://www.openarchives.org/OAI/2.0 when it looks for the name with the slash."
        before "xmlns=\"http://www.openarchives.org/OAI/2.0\""
        after "xmlns=\"http://www.openarchives.org/OAI/2.0/\""

    SchemaLocation "schema-location" Exact
        what "Writes a schemaLocation on the root that pairs the OAI-PMH namespace with its schema, where there is none or another one."
        why "OAI-PMH 2.0, section 3.2, demands it, and harvesters that validate find no schema without it. Other pairs stay; a list with an odd word goes, since nobody can say which belong together. Turned off, such pages leave as they are."
        before "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">"
    EnvelopePrefix "envelope-prefix" Exact
        what "Takes the prefix off the elements of OAI-PMH and makes their namespace the default one. A payload with unprefixed names declares the namespace they were in."
        why "A prefix changes nothing for a reader of namespaces, but many harvesters look for <record> and find no records, without an error. Turned off, such pages leave as they are."
        before "<oai:record>...<oai:metadata><doc>...</doc></oai:metadata></oai:record>"
        after "<record>...<metadata><doc xmlns=\"\">...</doc></metadata></record>"

    // --- the envelope
    MissingResponseDate "missing-response-date" Likely
        what "Adds a responseDate: the time at which the source was asked."
        why "The schema demands it. The time of the request is never later than the answer, so an incremental harvest that goes by it loses nothing. The filter knows no such time and writes 1970-01-01T00:00:00Z, which loses nothing either."
        before "<OAI-PMH ...><request>"
        after "<OAI-PMH ...><responseDate>2026-01-02T03:04:05Z</responseDate><request>"
    MissingRequest "missing-request" Exact
        what "Adds the request element."
        why "The schema demands it, and what was asked is known."
        before "</responseDate><ListRecords>"
        after "</responseDate><request>http://example.org/oai</request><ListRecords>"
    ElementOrder "element-order" Exact
        what "Puts elements into the order of the schema: responseDate before request, header before metadata, datestamp before setSpec, the token behind the last item."
        why "The order carries no meaning but schema validators and some harvesters insist on it. A move is one deletion and one insertion."
        before "<datestamp>...</datestamp><identifier>...</identifier>"
        after "<identifier>...</identifier><datestamp>...</datestamp>"
    UnknownElement "unknown-element" Likely, Content
        what "Removes an element that the OAI-PMH schema does not know, between the elements of the envelope."
        why "Strict harvesters reject the whole page for it. The journal has what is removed. An element that may be content of an item, because of its name or its prefix, is never removed: it goes to quarantine."
        before "<requester>x</requester><ListRecords>"
        after "<ListRecords>"
    VerbElement "verb-element" Likely
        what "Gives the verb element its name, where it is misspelt or that of another verb."
        why "Harvesters look for the name and find nothing. Done where what stands in the element fits one verb only, and that is the one that was asked; where the request is not known, the name must be spelt nearly like it."
        before "<request verb=\"ListRecords\">...</request><ListRecord><record>"
        after "<request verb=\"ListRecords\">...</request><ListRecords><record>"
    WrappedHeader "wrapped-header" Exact
        what "Takes the headers out of the records that a ListIdentifiers holds."
        why "ListIdentifiers has headers and nothing else; each record has one. What stood around it is in the journal, and can be had by ListRecords."
        before "<ListIdentifiers><record><header>...</header><metadata>...</metadata></record>"
        after "<ListIdentifiers><header>...</header>"
    AnotherRecord "another-record" Likely
        what "Keeps of several records in a GetRecord the one that was asked for. Each of the others counts as lost."
        why "The schema allows one, and harvesters take the first. Done only where one of them has the identifier that was asked, to the letter."
        before "<GetRecord><record>...oai:x:1...</record><record>...oai:x:2...</record></GetRecord>"
        after "<GetRecord><record>...oai:x:2...</record></GetRecord>"
    UnexpectedContent "unexpected-content" Likely, Content
        what "Removes text or tags between the elements of the envelope, and text behind the date in responseDate."
        why "Nothing but white space and comments may stand there; error messages of the server do. Other text inside an item may be a field without its tags: the item goes to quarantine."
        before "</record>Warning: timeout<record>"
        after "</record><record>"
    EnvelopeAttribute "envelope-attribute" Likely, Content
        what "Removes an attribute that an envelope element may not carry, and characters between the attributes of the root that belong to none."
        why "Only namespace declarations, xsi: attributes and those of the schema are valid there."
        before "<ListRecords count=\"10\">"
        after "<ListRecords>"
    ErrorBesideItems "error-beside-items" Likely
        what "Removes an error element that stands in or beside a list with items."
        why "A response holds either errors or a list. What was delivered is kept."
        before "<error code=\"noRecordsMatch\"/><record>"
        after "<record>"
    ErrorCode "error-code" Likely
        what "Corrects an error code that differs from a legal one by case, by plural or by at most two letters; any other one, or none, becomes the code that its text means."
        why "The schema has eight codes, and harvesters decide by them. The text counts where it names a code, or speaks of an argument, an identifier, a format, a token in the words of the specification, and not of trouble that passes. What then means no code is a failed source."
        before "<error code=\"NoRecordsMatch\">"
        after "<error code=\"noRecordsMatch\">"
    EmptyList "empty-list" Exact
        what "Turns a list that was closed without an item into the error the specification wants: noRecordsMatch, noSetHierarchy or noMetadataFormats."
        why "The schema demands an item, and harvesters take an empty list for a broken answer. Never done for a list that was cut short or whose records were quarantined."
        before "<ListRecords></ListRecords>"
        after "<error code=\"noRecordsMatch\">The list is empty.</error>"
    RequestAttribute "request-attribute" Exact
        what "Removes attributes of the request element that the schema does not allow."
        why "It echoes the arguments of the request; an illegal one fails validation of the whole page."
        before "<request verb=\"ListSets\" submit=\"go\">"
        after "<request verb=\"ListSets\">"
    RequestContent "request-content" Exact
        what "Trims blanks around the URL in the request element and escapes what a URL cannot hold."
        why "Its type is anyURI."
        before "<request>\n http://example.org/oai </request>"
        after "<request>http://example.org/oai</request>"
    UnopenedList "unopened-list" Likely
        what "Adds the start tag of the verb element where items follow the head directly."
        why "The items and the request say which list it is. Where the request names another list, or is not known beside records, the page is refused."
        before "<request verb=\"ListRecords\">...</request><record>"
        after "<request verb=\"ListRecords\">...</request><ListRecords><record>"
    UnclosedList "unclosed-list" Exact
        what "Adds the end tags of the envelope that are missing behind a complete list."
        why "Every item is there and the token, or the list's own end tag, was read whole; only the closing is lost."
        before "</ListRecords>"
        after "</ListRecords></OAI-PMH>"
    TruncatedInput "truncated-input" Exact
        what "Closes a document that ended early, with a comment that says so. Only the filter does this; the proxy breaks the transfer off instead."
        why "A list that was cut short must never look complete: exit code 1, the comment and the report say it."
        before "...</record><record><hea"
        after "...</record></ListRecords><!-- oaimend: input ended early, list is incomplete --></OAI-PMH>"
    TokenAttribute "token-attribute" Exact
        what "Removes attributes of the resumptionToken whose values are not legal."
        why "All of them are optional; completeListSize=\"0\" or a local expirationDate fails the whole page."
        before "<resumptionToken completeListSize=\"0\">t</resumptionToken>"
        after "<resumptionToken>t</resumptionToken>"
    MisspeltToken "misspelt-token" Likely
        what "Gives a resumptionToken its name: another case, the plural, one or two wrong letters, or a prefix that the list does not have."
        why "A harvester that does not find the token takes the page for the last one and the list for complete. No other element of the protocol has a name like it."
        before "<ResumptionTokens>a</ResumptionTokens>"
        after "<resumptionToken>a</resumptionToken>"
    RepeatedToken "repeated-token" Likely
        what "Keeps the last resumptionToken that is not empty, where a page has several."
        why "The schema allows one; the last one is what providers that append it twice mean."
        before "<resumptionToken>a</resumptionToken><resumptionToken>b</resumptionToken>"
        after "<resumptionToken>b</resumptionToken>"
    MissingLastToken "missing-last-token" Exact
        what "Ends a list that was asked for by a resumptionToken, and that has no further one, with an empty one."
        why "The specification wants it on the last page of a list of several (section 3.5); without it some harvesters take the list for one that broke off. Never done for a list that was cut short, and not for one that is an error."
        before "</record></ListRecords>"
        after "</record><resumptionToken/></ListRecords>"

    // --- headers of records
    HeaderBlank "header-blank" Exact
        what "Removes blanks and line breaks around an identifier or setSpec, and around and inside a datestamp; no-break spaces around a datestamp."
        why "Harvesters compare them to the letter."
        before "<datestamp>2017-01\n-17T00:26:07Z</datestamp>"
        after "<datestamp>2017-01-17T00:26:07Z</datestamp>"
    DatestampFraction "datestamp-fraction" Exact
        what "Cuts fractions of a second off a datestamp."
        why "OAI-PMH knows days and seconds only. Rounding down never moves a record past a harvester's from."
        before "2017-11-09T12:50:22.485Z"
        after "2017-11-09T12:50:22Z"
    DatestampOffset "datestamp-offset" Exact
        what "Converts a datestamp with a numeric offset to UTC."
        why "Datestamps are UTC with a Z; the instant is the same."
        before "2015-05-04T22:55:30+0200"
        after "2015-05-04T20:55:30Z"
    DatestampZone "datestamp-zone" Likely
        what "Adds the Z that a datestamp lacks, and the T where a blank stands."
        why "Providers that forget the zone mean UTC, as the specification demands."
        before "2015-01-12 13:39:50"
        after "2015-01-12T13:39:50Z"
    DatestampForm "datestamp-form" Likely
        what "Rewrites other common forms of a date: eight digits, year alone, year and month, RFC 822, months by their English names, months and days of one digit, epoch seconds, day and month before the year, small t and z, a doubled Z."
        why "Each of them has one reading. A year or a month becomes its first day, which never moves a record past a harvester's from. Of day, month and year the order must be plain: 25/01/2015 is read, 12/01/2015 is refused. So is a year of two digits, and the name of a zone other than UTC."
        before "20170214"
        after "2017-02-14"
    DatestampGranularity "datestamp-granularity" Likely
        what "Writes datestamps in the granularity that the repository announces: a second becomes its day, a day its first second. Where a mapping sets the granularity, Identify says it too. The earliestDatestamp of an Identify is held to the granularity that it names itself."
        why "Harvesters read all datestamps of a repository in one form and refuse the other. Neither way is a record moved past a harvester's from. Done only where the granularity is known: from Identify as it was seen, or from the mapping."
        before "<granularity>YYYY-MM-DD</granularity> ... <datestamp>2015-01-12T13:39:50Z</datestamp>"
        after "<granularity>YYYY-MM-DD</granularity> ... <datestamp>2015-01-12</datestamp>"
    DatestampLowerBound "datestamp-lower-bound" Likely
        what "Gives a record whose datestamp is missing, names no day or says 9999 the lowest datestamp that it can have: the request's from, or earliestDatestamp."
        why "The source has listed it, so it is not older; and too early a datestamp never moves a record past a harvester's from. The proxy asks the source for the right one first, by GetRecord and ListIdentifiers. Without a bound the record is put aside."
        before "<datestamp>0000-00-00</datestamp>"
        after "<datestamp>2015-01-01</datestamp>"
    EarliestDatestamp "earliest-datestamp" Exact
        what "Lowers earliestDatestamp of Identify to the oldest datestamp that was seen in the repository."
        why "It must be a lower bound: harvesters that begin their first harvest there never see what is older."
        before "<earliestDatestamp>2021-03-01</earliestDatestamp>"
        after "<earliestDatestamp>2007-11-05</earliestDatestamp>"
    SetSpecEscape "set-spec-escape" Exact
        what "Writes each byte of a setSpec that the schema does not allow as ~xHH., in records, in ListSets and in request. The proxy turns it back where a harvester asks for such a set."
        why "The schema allows letters, digits, -_.!~*'() and colons between parts; validating harvesters drop the record or the page for any other character. The name that was meant can be read from what is written."
        before "<setSpec>maps+plans</setSpec>"
        after "<setSpec>maps~x2B.plans</setSpec>"
    EmptySetSpec "empty-set-spec" Exact
        what "Removes a setSpec without text from a header."
        why "It names no set, and the schema does not allow it. A header needs none."
        before "<datestamp>2015-01-12</datestamp><setSpec/>"
        after "<datestamp>2015-01-12</datestamp>"
    StatusValue "status-value" Likely
        what "Corrects the status attribute: other case of deleted, or one on the record instead of its header; any other value is removed."
        why "The schema knows status=\"deleted\" on the header and nothing else."
        before "<header status=\"Deleted\">"
        after "<header status=\"deleted\">"
    DeletedWithMetadata "deleted-with-metadata" Likely
        what "Removes metadata and about from a record whose header says it is deleted."
        why "The header decides. What is removed stands in the journal."
        before "<header status=\"deleted\">...</header><metadata>...</metadata>"
        after "<header status=\"deleted\">...</header>"

    AboutNotElement "about-not-element" Likely
        what "Removes an about that holds text and no element."
        why "The schema wants one element there, and about is optional: for the sake of a note the record would be put aside. The text stands in the journal."
        before "<about>checked</about></record>"
        after "</record>"

    // --- what a repository says of itself
    IdentifyValue "identify-value" Likely
        what "Corrects values of Identify that are written otherwise: granularity and deletedRecord in another case, adminEmail with mailto:, a protocolVersion that is not 2.0. A deletedRecord that is none of the three becomes transient."
        why "Harvesters compare these words to the letter. The response itself says by its namespace which version it is of, and transient promises the least. Turned off, Identify leaves as it is."
        before "<granularity>YYYY-MM-DDTHH:MM:SSZ</granularity>"
        after "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"
    IdentifyElement "identify-element" Likely
        what "Adds an element that Identify lacks, or whose value is not legal, from what is known: identify.* of the mapping, admin_email, the URL that harvesters ask, the version of the response."
        why "Harvesters read earliestDatestamp and granularity before anything else. No value is invented: what is not known stays as it is, and the report and the log say so."
        before "<adminEmail></adminEmail>"
        after "<adminEmail>oai@example.org</adminEmail>"
    FormatValue "format-value" Likely
        what "Corrects schema and metadataNamespace in ListMetadataFormats where the two are swapped or those of another format, and adds one that is missing, for formats that are known: oai_dc, marcxml, marc21, mets, mods."
        why "Harvesters choose a format by its namespace. What oai_dc is, the protocol says; the others have one namespace wherever they are offered. Turned off, what is only wrong leaves as it is."
        before "<schema>http://www.loc.gov/MARC21/slim</schema><metadataNamespace>http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd</metadataNamespace>"
        after "<schema>http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd</schema><metadataNamespace>http://www.loc.gov/MARC21/slim</metadataNamespace>"

    // --- responses of OAI-PMH 1.0 and 1.1
    V1Root "v1-root" Exact
        what "Gives a response of OAI-PMH 1.0 or 1.1 the root of 2.0 and the element of its verb inside it."
        why "In 1.x the verb is the document element, in a namespace of its own, and harvesters of 2.0 find nothing in it. Name, namespaces and schemaLocation of the root change where they stand; the verb element opens before the first item."
        before "<ListSets xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListSets\">...<set>"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">...<ListSets><set>"
    V1Request "v1-request" Exact
        what "Turns requestURL of OAI-PMH 1.x into request: the base URL as text, the arguments as attributes."
        why "2.0 renamed the element and split the URL. Arguments that the schema does not know, or whose values it does not allow, are left out."
        before "<requestURL>http://example.org/oai?verb=ListSets</requestURL>"
        after "<request verb=\"ListSets\">http://example.org/oai</request>"
    V1Status "v1-status" Exact
        what "Moves status=\"deleted\" of OAI-PMH 1.x from the record to its header."
        why "That is where 2.0 has it. The move is one deletion and one insertion."
        before "<record status=\"deleted\"><header>"
        after "<record><header status=\"deleted\">"
    V1Dc "v1-dc" Exact, Content
        what "Turns the oai_dc payload of OAI-PMH 1.x, an element dc in the namespace of Dublin Core, into oai_dc:dc."
        why "2.0 gave the container a namespace of its own; the fields stay in theirs and are not touched. A schemaLocation that names the old schema names the new one."
        before "<dc xmlns=\"http://purl.org/dc/elements/1.1/\"><title>a</title></dc>"
        after "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns=\"http://purl.org/dc/elements/1.1/\"><title>a</title></oai_dc:dc>"
    V1Format "v1-format" Likely, Content
        what "Corrects schema and namespace of the formats that OAI-PMH 1.x describes: in ListMetadataFormats, and on the outermost element of a payload."
        why "oai_dc has another schema and namespace in 2.0; oai_marc, rfc1807, eprints and oai-identifier are still those of 1.1, and 1.0 had others. In 2.0 each format must have its namespace. The XML Schema instance namespace of 2000 is that of 2001."
        before "<metadataPrefix>oai_dc</metadataPrefix><schema>http://www.openarchives.org/OAI/dc.xsd</schema>"
        after "<metadataPrefix>oai_dc</metadataPrefix><schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema><metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>"
    V1Identify "v1-identify" Likely
        what "Completes Identify of OAI-PMH 1.x: protocolVersion 2.0, adminEmail without mailto:, earliestDatestamp, deletedRecord and granularity."
        why "2.0 demands all of them and 1.x knows none of the last three. Only what is surely true is said: no datestamp is earlier than 1970-01-01, transient promises nothing about deletions, and datestamps of 1.x are days."
        before "<adminEmail>mailto:a@example.org</adminEmail></Identify>"
        after "<adminEmail>a@example.org</adminEmail><earliestDatestamp>1970-01-01</earliestDatestamp><deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DD</granularity></Identify>"
    V1Empty "v1-empty" Likely
        what "Turns a GetRecord of OAI-PMH 1.x without a record into an error."
        why "1.x has no errors: it answers like this where there is no such record, and where there is none in that format. Every record has oai_dc, so that idDoesNotExist is said of oai_dc alone; of other formats cannotDisseminateFormat, which is true in both cases and lets no harvester delete anything."
        before "<GetRecord ...>...</requestURL></GetRecord>"
        after "<error code=\"idDoesNotExist\">There is no such record.</error>"

    // --- what the proxy says of itself
    RewriteRequest "rewrite-request" Rewrite
        what "Writes the request element from the request that was received."
        why "A harvester asked us, not the source, and compares. Attributes are left out beside badVerb and badArgument, as the specification demands. Where it is turned off, the source's own element stays."
        before "<request verb=\"Identify\">http://source.example/oai</request>"
        after "<request verb=\"Identify\">http://proxy.example/id</request>"
    RewriteBaseUrl "rewrite-base-url" Rewrite
        what "Writes our own public URL as baseURL of Identify."
        why "Harvesters and validators compare it with the URL they asked."
        before "<baseURL>http://source.example/oai</baseURL>"
        after "<baseURL>http://proxy.example/id</baseURL>"
    RewriteProvenance "rewrite-provenance" Rewrite
        what "Adds an about that says where and when a record was harvested, and whether its payload was altered; a description that stands there already goes into ours."
        why "The guidelines for provenance ask it of whoever passes on what was harvested. Only where a mapping says provenance = \"altered\", and then of records whose payload is another one by a repair that changes content, or provenance = \"all\". Never of deleted records, nor of records longer than record_bytes_max: in those no repair that changes content is made then."
        before "</metadata></record>"
        after "</metadata><about><provenance ...><originDescription harvestDate=\"2026-01-02T03:04:05Z\" altered=\"true\">...</originDescription></provenance></about></record>"
}

impl RepairId {
    /// How many repairs there are.
    pub const COUNT: usize = Self::RewriteProvenance as usize + 1;

    /// The repair of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        CATALOGUE.iter().copied().find(|entry| entry.name == name).map(|entry| entry.id)
    }

    /// Whether this is what the proxy says of itself and no repair.
    pub fn is_rewrite(self) -> bool {
        matches!(self, Self::RewriteRequest | Self::RewriteBaseUrl | Self::RewriteProvenance)
    }
}
