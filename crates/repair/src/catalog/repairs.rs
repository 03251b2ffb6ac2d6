//! The catalog of repairs: name, certainty, effect and reason of each.
//!
//! The name of a repair is the same everywhere: the enum variant, the folder `corpus/broken/<name>/`, the
//! heading in docs/reference/repairs.md, the metric label, the key in a mapping's `repairs.off` and the
//! argument of `oaimend explain`. [`QuarantineReason`](crate::QuarantineReason) has the reasons for quarantine. Each of them has a
//! folder `corpus/refused/<name>*/` and a heading in docs/reference/unrepairable.md.

use oaimend_oai::named_enum;

named_enum! {
    /// The certainty that a repair restores the intended content.
    ///
    /// ```
    /// use oaimend_repair::{Certainty, RepairId};
    ///
    /// assert_eq!(RepairId::BareAmpersand.certainty(), Certainty::Exact);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Certainty {
        /// Only one interpretation fits the bytes, or XML requires the change.
        Exact = "exact",
        /// A table or strong evidence supports the interpretation.
        Likely = "likely",
        /// The interpretation is plausible. Off unless a mapping enables it.
        Guess = "guess",
        /// Not a repair: the proxy's own values replace those of the source.
        Rewrite = "rewrite",
    }
}

/// The effect of a repair on a payload, as its reader sees it. In doubt it is [`Effect::Content`].
///
/// ```
/// use oaimend_repair::catalog::Effect;
/// use oaimend_repair::RepairId;
///
/// assert_eq!(RepairId::Windows1252Byte.effect(), Effect::Content);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The same characters, elements, attributes and namespaces in another notation. The original bytes have
    /// no other meaning.
    Form,
    /// Content differs, was dropped, or was chosen among interpretations.
    Content,
}

/// The catalog entry of one repair.
///
/// ```
/// use oaimend_repair::catalog::CATALOG;
///
/// for entry in CATALOG {
///     println!("{}: {} ({})", entry.name, entry.what, entry.certainty.name());
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// The repair.
    pub id: RepairId,
    /// The name in kebab-case.
    pub name: &'static str,
    /// The certainty of the repair.
    pub certainty: Certainty,
    /// The effect on a payload.
    pub effect: Effect,
    /// A description of the change, in one or two sentences.
    pub what: &'static str,
    /// The reason for the repair, and for this change.
    pub why: &'static str,
    /// An example of the input.
    pub before: &'static str,
    /// The same example in the output.
    pub after: &'static str,
}

/// The effect of an entry. The default is [`Effect::Form`].
macro_rules! effect {
    () => {
        Effect::Form
    };
    ($effect:ident) => {
        Effect::$effect
    };
}

macro_rules! catalog {
    ($($variant:ident $name:literal $certainty:ident $(, $effect:ident)?
        what $what:literal
        why $why:literal
        before $before:literal
        after $after:literal)*) => {
        named_enum! {
            /// A repair of the catalog. Its name is in kebab-case.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[non_exhaustive]
            #[repr(u8)]
            pub enum RepairId {
                $(#[doc = $what] $variant = $name,)*
            }
        }

        /// All repairs, in the order of a response.
        pub static CATALOG: &[&CatalogEntry] = &[$(RepairId::$variant.entry(),)*];

        impl RepairId {
            /// The catalog entry.
            pub const fn entry(self) -> &'static CatalogEntry {
                match self {
                    $(Self::$variant => &CatalogEntry {
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

            /// The certainty of the repair.
            pub const fn certainty(self) -> Certainty {
                match self {
                    $(Self::$variant => Certainty::$certainty,)*
                }
            }

            /// The effect on a payload.
            pub const fn effect(self) -> Effect {
                match self {
                    $(Self::$variant => effect!($($effect)?),)*
                }
            }
        }
    };
}

catalog! {
    // --- before and after the document
    ByteOrderMark "byte-order-mark" Exact
        what "Removes illegal byte order marks: a second one, one after other bytes, one beside a payload, or a UTF-16 mark before UTF-8 text."
        why "One U+FEFF at the very start is legal and stays. A UTF-16 mark before single-byte text is no text, and the bytes after it decide the encoding. Any other mark before the document element is illegal, and strict parsers stop there. Files that are pasted into metadata bring their mark with them, sometimes as the characters ï»¿."
        before "\u{feff}\u{feff}<?xml version=\"1.0\"?>"
        after "\u{feff}<?xml version=\"1.0\"?>"
    LeadingBlank "leading-blank" Exact
        what "Removes spaces and line breaks before the XML declaration."
        why "A declaration is legal only as the first bytes of a document. Scripts that include files with a trailing newline write whitespace before it."
        before "\n\n<?xml version=\"1.0\"?>"
        after "<?xml version=\"1.0\"?>"
    JunkBeforeRoot "junk-before-root" Exact
        what "Removes other bytes before the document: PHP notices, HTTP headers in the body, debug output."
        why "Bytes before the document element are not OAI-PMH data. If there are more than junk_bytes_max, the response is not OAI-PMH."
        before "<b>Warning</b>: Undefined index<?xml version=\"1.0\"?>"
        after "<?xml version=\"1.0\"?>"
    MissingDeclaration "missing-declaration" Exact
        what "Adds the XML declaration if the response has none."
        why "OAI-PMH 2.0, section 3.2, requires each response to begin with an XML declaration."
        before "<OAI-PMH ...>"
        after "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH ...>"
    WrongDeclaration "wrong-declaration" Exact
        what "Rewrites an XML declaration that is malformed or names the wrong encoding."
        why "The output is UTF-8. A label such as ISO-8859-1 or utf8, version 1.1, the wrong case or missing quotes make parsers stop or read wrong characters."
        before "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"
        after "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
    Doctype "doctype" Exact
        what "Removes a document type declaration before the root or inside a payload. Entities that it defines as plain text are replaced by their text: in the whole response, or in the record that contains the declaration."
        why "OAI-PMH has no document type declaration, and inside an element it is not well-formed. Entity bombs and file disclosure rely on the expansion of entities in entities and on external ones. Neither is read, nor are parameter entities. limits.entity_bytes_max limits the text in a record."
        before "<!DOCTYPE ead [<!ENTITY owner \"Town Archive\">]><ead>&owner;</ead>"
        after "<ead>Town Archive</ead>"
    TrailingJunk "trailing-junk" Exact
        what "Removes content after the end of the document."
        why "Only comments and whitespace are legal after the root element. PHP notices, banners and NUL padding make strict parsers reject the whole page."
        before "</OAI-PMH>\n<br /><b>Notice</b>: Undefined index"
        after "</OAI-PMH>\n"
    ConcatenatedDocuments "concatenated-documents" Likely
        what "Joins a second whole document in the same body to the first: one list, each item once."
        why "Some providers retry inside one response and send both attempts. Items of the second document that were already sent are skipped. An error or an empty list before a second document is replaced by that document."
        before "...</ListRecords></OAI-PMH><?xml version=\"1.0\"?><OAI-PMH>...<record>"
        after "...<record>"

    // --- characters
    Windows1252Byte "windows-1252-byte" Likely, Content
        what "Decodes a byte that is not UTF-8 as windows-1252, the superset of Latin-1 that web software uses."
        why "The decision is made for each text node or attribute value. If the value has no valid multi-byte character, all of it is windows-1252. Otherwise only the single byte is. Unassigned bytes become U+FFFD."
        before "caf\\xE9"
        after "café"
    TextCharset "text-charset" Likely, Content
        what "Decodes text that is not UTF-8 in another charset than windows-1252. The mapping names this charset, or the language and the letters of the record determine it."
        why "Databases in windows-1251, KOI8-R or ISO 8859-2 send such fields under any declaration. The letters decide only if they rule out a Western language. If they do and no charset fits, the record is quarantined."
        before "\\xCC\\xEE\\xF1\\xEA\\xE2\\xE0"
        after "Москва"
    BrokenUtf8 "broken-utf8" Likely, Content
        what "Replaces the remaining bytes of a truncated multi-byte character with U+FFFD."
        why "Providers truncate text at a number of bytes. The missing part is not in the response, and U+FFFD marks the place. At the end of a text node one byte is enough if it is no plausible windows-1252 letter. For example, é ends caf\\xE9, but Ã does not end Mills\\xC3."
        before "naïve \\xE2\\x80"
        after "naïve \u{fffd}"
    OverlongUtf8 "overlong-utf8" Exact, Content
        what "Replaces overlong UTF-8 forms, code points above U+10FFFF, and bytes without a character in their charset with U+FFFD."
        why "A decoder that accepts overlong forms lets hidden markup characters pass."
        before "\\xC0\\xBC"
        after "\u{fffd}"
    Cesu8 "cesu-8" Exact, Content
        what "Joins two surrogates that were encoded separately into one character. A single surrogate becomes U+FFFD."
        why "Java and Oracle write characters above U+FFFF as two three-byte sequences (CESU-8). A pair has exactly one reading."
        before "\\xED\\xA0\\xBD\\xED\\xB8\\x80"
        after "😀"
    ControlCharacter "control-character" Exact, Content
        what "Replaces VT and FF with a space, and FS to US (0x1C to 0x1F) too if they are between two visible characters. Removes the other control characters that XML 1.0 forbids. In fields of MARC with fixed positions each becomes a space."
        why "XML cannot represent these characters, so a change is necessary. VT, FF and FS to US separate words; the others carry no text. In the leader, in coded control fields and in indicators of MARC, programs find each character by its position. TAB, LF, CR and DEL to U+009F are legal and stay."
        before "page\\x0Cbreak"
        after "page break"
    LostHighByte "lost-high-byte" Likely, Content
        what "Reads a control character, raw or as a reference, as the quotation mark or dash with this low byte: 0x13, 0x14, 0x18, 0x19, 0x1C or 0x1D."
        why "Software that truncates UTF-16 to bytes turns U+2019 into 0x19. The repair applies only if both neighbours fit the mark. A double quotation mark also needs its partner in the same field."
        before "don\\x19t"
        after "don’t"
    Noncharacter "noncharacter" Exact, Content
        what "Removes U+FFFE and U+FFFF. In fields of MARC with fixed positions each becomes a space."
        why "XML 1.0 forbids both, and neither is a character."
        before "a\\xEF\\xBF\\xBEb"
        after "ab"
    IllegalReference "illegal-reference" Exact, Content
        what "Resolves character references to characters that XML forbids, in the same way as the raw character."
        why "A reference does not make a forbidden character legal. &#11; becomes a space, &#0; and &#xFFFE; are removed, and a number above U+10FFFF becomes U+FFFD. Between two visible characters &#28; to &#31; become a space."
        before "a&#x1;b"
        after "ab"
    SurrogateReference "surrogate-reference" Exact, Content
        what "Joins a pair of surrogate references into one character. A single surrogate reference becomes U+FFFD."
        why "Serializers that work in UTF-16 write one character as two references. A pair has exactly one reading."
        before "&#55357;&#56832;"
        after "😀"
    CdataEndInText "cdata-end-in-text" Exact
        what "Writes ]]> in text as ]]&gt;."
        why "XML forbids this sequence outside a CDATA section."
        before "a[b[0]]>c"
        after "a[b[0]]&gt;c"
    DoubleEncoded "double-encoded" Guess, Content
        what "Decodes a text node once more if all of it is UTF-8 that was read as windows-1252 and encoded again."
        why "The text is legal XML. Enable this repair only in the mapping of a source that is known to encode twice."
        before "MÃ¼ller & GrÃ¶ÃŸe"
        after "Müller & Größe"
    C1Control "c1-control" Guess, Content
        what "Reads a C1 control character (U+0080 to U+009F), raw or as a reference, as the windows-1252 character with the same number."
        why "HTML reads such references in this way, and a windows-1252 page that was read as Latin-1 is full of such characters. Both are legal XML. Enable this repair only in the mapping of a source with this defect."
        before "don&#146;t 1871&#150;1899"
        after "don’t 1871–1899"

    // --- references and markup
    BareAmpersand "bare-ampersand" Exact
        what "Writes an ampersand that starts no reference as &amp;."
        why "This is the most common defect of hand-written providers. Escaping is the only reading that keeps every character as it was typed."
        before "AT&T, ?a=1&b=2"
        after "AT&amp;T, ?a=1&amp;b=2"
    UndefinedEntity "undefined-entity" Likely, Content
        what "Replaces an HTML entity with its character. The ampersand of an unknown entity is escaped."
        why "XML defines five entities and HTML about two thousand. Text that is copied from web pages contains HTML entities."
        before "caf&eacute; &ndash; bar"
        after "café – bar"
    UnterminatedReference "unterminated-reference" Likely, Content
        what "Adds the missing semicolon to a numeric character reference. Replaces an entity name without a semicolon with its character."
        why "A number after &# has one plausible end: the first character that is no digit. HTML accepts 106 entity names without a semicolon. Other HTML 4 names count before whitespace or at the end of the text, unless they are words. In the query of a URL, and before = or _, an ampersand stays an ampersand."
        before "caf&#233 bar"
        after "caf&#233; bar"
    BareLessThan "bare-less-than" Exact
        what "Writes a < that starts no markup as &lt;, in text and in attribute values."
        why "p < 0.05 and pH<7 are text. In markup a name, a slash, ! or ? follows the <."
        before "p < 0.05"
        after "p &lt; 0.05"
    MarkupInField "markup-in-field" Likely, Content
        what "Escapes tags inside a plain-text field, so that the text stays as it was typed."
        why "dc:description and MARC subfields are defined without child elements, as are most texts of MODS, DataCite, LIDO and DDI. Unbalanced HTML in them breaks the page. The repair applies only to records that are not well-formed. Elements of the format itself, such as p in DDI, are closed and not escaped."
        before "<dc:title>a<br>b</dc:title>"
        after "<dc:title>a&lt;br&gt;b</dc:title>"
    MissingEndTag "missing-end-tag" Likely, Content
        what "Adds an end tag before a tag that the open element cannot contain."
        why "The structure of an OAI-PMH record and the fields of its formats determine which element can contain which."
        before "<dc:title>a\n<dc:creator>b</dc:creator>"
        after "<dc:title>a</dc:title>\n<dc:creator>b</dc:creator>"
    MissingStartTag "missing-start-tag" Likely, Content
        what "Restores the start tag of text that is directly in a payload and ends with the end tag of a field."
        why "The end tag names the field, and the payload element itself contains no text."
        before "<dc:title>a</dc:title>\nb</dc:creator>"
        after "<dc:title>a</dc:title>\n<dc:creator>b</dc:creator>"
    BlankInTag "blank-in-tag" Likely, Content
        what "Removes spaces before the name of a tag with a well-known prefix."
        why "The name between < and > shows that a tag was meant. XML allows no space before the name."
        before "< dc:title>a</ dc:title>"
        after "<dc:title>a</dc:title>"
    StrayEndTag "stray-end-tag" Likely, Content
        what "Removes an end tag that closes no element, or that ends a payload before its last field."
        why "No element of that name is open. In a plain-text field such a tag is text, and it is escaped instead. A field after the end tags of its payload belongs to the payload."
        before "<dc:title>a</dc:title></dc:title>"
        after "<dc:title>a</dc:title>"
    MismatchedEndTag "mismatched-end-tag" Likely
        what "Corrects the name of an end tag that is meant for the open element. It may have another prefix or case, one wrong letter, a truncated name, nothing but the prefix, or the name of another field."
        why "</DC:TITLE> and </dc:titel> after <dc:title> have one plausible meaning. The same is true of </dc:creator> before the next field. The start tag is taken as correct."
        before "<dc:title>a</title>"
        after "<dc:title>a</dc:title>"
    InnerDeclaration "inner-declaration" Exact
        what "Removes an XML declaration inside the document, and what is left of one before a payload."
        why "Some providers insert payloads from files together with their declaration, or cut it off at the wrong place. A declaration is legal only at the very start of a document. Other text before a payload may be content: the item is quarantined."
        before "<metadata><?xml version=\"1.0\"?><oai_dc:dc"
        after "<metadata><oai_dc:dc"
    DamagedName "damaged-name" Likely, Content
        what "Removes non-ASCII characters from a tag name if the rest is the name of another tag of the record."
        why "A wrong byte in a name becomes a letter, or a character that is illegal in names. A legal name stays if each of its start tags has an end tag."
        before "<dc:ti\\xFFtle>A</dc:title>"
        after "<dc:title>A</dc:title>"
    UnquotedAttribute "unquoted-attribute" Exact
        what "Adds quotes around an attribute value that has none."
        why "HTML allows unquoted values and XML does not. The value ends at the next space or at the end of the tag."
        before "<dc:title xml:lang=en>"
        after "<dc:title xml:lang=\"en\">"
    AttributeQuotes "attribute-quotes" Likely, Content
        what "Replaces typographic or escaped quotation marks around an attribute value with quotes. Adds a missing opening quote or equals sign."
        why "Word processors write typographic marks, and some serializers escape the quotes of a tag. XML allows only ' and \" there."
        before "<dc:title xml:lang=\u{201c}en\u{201d}>"
        after "<dc:title xml:lang=\"en\">"
    ValuelessAttribute "valueless-attribute" Likely, Content
        what "Gives an attribute without a value its own name as the value."
        why "HTML defines the short form in this way."
        before "<option selected>"
        after "<option selected=\"selected\">"
    AttributeSpacing "attribute-spacing" Exact
        what "Adds the missing space between two attributes."
        why "The closing quote ends the first attribute, so there is no other reading."
        before "<a b=\"1\"c=\"2\">"
        after "<a b=\"1\" c=\"2\">"
    DuplicateAttribute "duplicate-attribute" Likely, Content
        what "Removes the second occurrence of an attribute on a tag."
        why "The first one is kept, as in HTML. The journal contains the removed one."
        before "<oai_dc:dc xmlns:dc=\"u\" xmlns:dc=\"u\">"
        after "<oai_dc:dc xmlns:dc=\"u\">"
    UnterminatedCdata "unterminated-cdata" Likely, Content
        what "Escapes the text of a CDATA section that never ends, up to the next tag that belongs to the record."
        why "Without its end mark the section would swallow the records after it."
        before "<dc:title><![CDATA[a & b</dc:title>"
        after "<dc:title>a &amp; b</dc:title>"
    TornSection "torn-section" Guess, Content
        what "Reads a CDATA section or comment that contains further records and its own opening mark as unterminated, and ends it in its record."
        why "The page may be well-formed, and a depositor can write such a section to forge records. Enable this repair only for a source that is known to lose end marks. oaimend serve asks the source about each such record instead."
        before "<dc:title><![CDATA[a & b</dc:title> ... <record> ... <dc:title><![CDATA[c]]></dc:title>"
        after "<dc:title>a &amp; b</dc:title> ... <record> ... <dc:title><![CDATA[c]]></dc:title>"
    CdataMark "cdata-mark" Likely, Content
        what "Corrects the opening mark of a CDATA section: wrong case, spaces in it, or a missing first bracket or exclamation mark."
        why "No other XML markup looks like it, and the end mark of the section is present."
        before "<dc:title><![cdata[a & b]]></dc:title>"
        after "<dc:title><![CDATA[a & b]]></dc:title>"
    EscapedPayload "escaped-payload" Likely, Content
        what "Unwraps metadata that was sent as an escaped string or as one CDATA section."
        why "The schema requires an element. The repair applies only if the text is one whole, well-formed element."
        before "<metadata>&lt;dc&gt;...&lt;/dc&gt;</metadata>"
        after "<metadata><dc>...</dc></metadata>"
    BrokenComment "broken-comment" Exact, Content
        what "Removes a comment that is not well-formed. Escapes the opening mark of a comment that never ends."
        why "-- is illegal inside a comment, and only known words may follow <!. A comment contains no data."
        before "<!-- a -- b -->"
        after ""

    // --- namespaces
    UndeclaredPrefix "undeclared-prefix" Likely
        what "Declares a well-known namespace prefix that is used without a declaration."
        why "A table contains the prefixes with one meaning in this field, such as oai_dc:, dc:, xsi: and bibo:. Some prefixes have several namespaces in use, such as premis:. There the record must name one, for example in schemaLocation. A record with an unknown prefix is quarantined."
        before "<oai_dc:dc>"
        after "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\">"
    MissingNamespace "missing-namespace" Exact
        what "Puts the envelope into the OAI-PMH 2.0 namespace if the root has no namespace."
        why "Names and structure identify the document. Without the namespace most harvesters find nothing and report no error."
        before "<OAI-PMH>"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">"
    HttpsNamespace "https-namespace" Likely, Content
        what "Writes well-known namespaces with http:// instead of https://."
        why "A namespace is a name, not a link, and the https form names nothing. The repair changes only xmlns attributes and schemaLocation, never text."
        before "xmlns=\"https://www.openarchives.org/OAI/2.0/\""
        after "xmlns=\"http://www.openarchives.org/OAI/2.0/\""
    NamespaceVariant "namespace-variant" Likely, Content
        what "Corrects known misspellings of well-known namespaces: a missing slash or another case."
        why "Parsers compare namespaces exactly. An element in http://www.openarchives.org/OAI/2.0 is not found under the name with the slash."
        before "xmlns=\"http://www.openarchives.org/OAI/2.0\""
        after "xmlns=\"http://www.openarchives.org/OAI/2.0/\""
    PayloadXsi "payload-xsi" Exact
        what "Declares the prefix of the XML Schema instance namespace on a payload that uses the declaration of an element around it. Off unless a mapping or --enable turns it on."
        why "OAI-PMH 2.0, section 2.5, requires the declaration on the root of the metadata part, and harvesters that cut it out of the response fail without it. The response is well-formed in both forms, so only some harvesters need it. The repair never applies to records longer than record_bytes_max."
        before "<metadata><oai_dc:dc xsi:schemaLocation=\"...\">"
        after "<metadata><oai_dc:dc xsi:schemaLocation=\"...\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">"
    SchemaLocation "schema-location" Exact
        what "Writes a schemaLocation on the root that pairs the OAI-PMH namespace with its schema, if there is none or a different one."
        why "OAI-PMH 2.0, section 3.2, requires it, and validating harvesters find no schema without it. Other pairs stay. A list with an odd number of words is replaced, because its pairs are not known. If the repair is off, such pages stay unchanged."
        before "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">"
    EnvelopePrefix "envelope-prefix" Exact
        what "Removes the prefix from the elements of OAI-PMH and makes their namespace the default one. A payload with unprefixed names declares the namespace that they were in."
        why "A prefix makes no difference to namespace-aware readers. But many harvesters look for <record> and find no records, without an error. If the repair is off, such pages stay unchanged."
        before "<oai:record>...<oai:metadata><doc>...</doc></oai:metadata></oai:record>"
        after "<record>...<metadata><doc xmlns=\"\">...</doc></metadata></record>"

    // --- the envelope
    MissingResponseDate "missing-response-date" Likely
        what "Adds a responseDate: the time at which the source was asked."
        why "The schema requires it. The time of the request is never later than the response, so an incremental harvest that relies on it misses nothing. The command oaimend repair does not know this time and writes 1970-01-01T00:00:00Z, which is as safe."
        before "<OAI-PMH ...><request>"
        after "<OAI-PMH ...><responseDate>2026-01-02T03:04:05Z</responseDate><request>"
    MissingRequest "missing-request" Exact
        what "Adds the request element."
        why "The schema requires it, and the request is known."
        before "</responseDate><ListRecords>"
        after "</responseDate><request>http://example.org/oai</request><ListRecords>"
    ElementOrder "element-order" Exact
        what "Puts elements into the order of the schema: responseDate before request, header before metadata, datestamp before setSpec, the token after the last item."
        why "The order has no meaning, but schema validators and some harvesters require it. In the journal a move is one deletion and one insertion."
        before "<datestamp>...</datestamp><identifier>...</identifier>"
        after "<identifier>...</identifier><datestamp>...</datestamp>"
    UnknownElement "unknown-element" Likely, Content
        what "Removes an element of the envelope that the OAI-PMH schema does not define."
        why "Strict harvesters reject the whole page because of it. The journal contains the removed element. An element that may be content of an item, because of its name or its prefix, is never removed: it is quarantined."
        before "<requester>x</requester><ListRecords>"
        after "<ListRecords>"
    VerbElement "verb-element" Likely
        what "Corrects the name of a verb element that is misspelt or names another verb."
        why "Harvesters look for this name and find nothing. The repair applies if the content fits one verb only, and this verb was requested. If the request is not known, the spelling must be similar."
        before "<request verb=\"ListRecords\">...</request><ListRecord><record>"
        after "<request verb=\"ListRecords\">...</request><ListRecords><record>"
    ElementCase "element-case" Likely
        what "Corrects the name of an element of the envelope that is written in another case, in the head and inside items."
        why "Names in XML are exact, so harvesters find no datestamp in dateStamp, the name that ISO 19115 uses. The repair applies only to names whose place in the schema is free."
        before "<dateStamp>2023-09-01</dateStamp>"
        after "<datestamp>2023-09-01</datestamp>"
    WrappedHeader "wrapped-header" Exact
        what "Takes the headers out of the records in a ListIdentifiers response."
        why "ListIdentifiers contains headers and nothing else, and each record has one. The journal contains the rest of the record, and ListRecords returns it."
        before "<ListIdentifiers><record><header>...</header><metadata>...</metadata></record>"
        after "<ListIdentifiers><header>...</header>"
    AnotherRecord "another-record" Likely
        what "Keeps the requested record if a GetRecord response has several. Each of the others counts as lost."
        why "The schema allows one record, and harvesters take the first. The repair applies only if one of them has exactly the requested identifier."
        before "<GetRecord><record>...oai:x:1...</record><record>...oai:x:2...</record></GetRecord>"
        after "<GetRecord><record>...oai:x:2...</record></GetRecord>"
    UnexpectedContent "unexpected-content" Likely, Content
        what "Removes text or tags between the elements of the envelope, and text after the date in responseDate."
        why "Only whitespace and comments are legal there, but servers write error messages there. Other text inside an item may be a field without its tags: the item is quarantined."
        before "</record>Warning: timeout<record>"
        after "</record><record>"
    EnvelopeAttribute "envelope-attribute" Likely, Content
        what "Removes an attribute that an envelope element may not have. Removes stray characters between the attributes of the root."
        why "Only namespace declarations, xsi: attributes and the attributes of the schema are valid there."
        before "<ListRecords count=\"10\">"
        after "<ListRecords>"
    ErrorBesideItems "error-beside-items" Likely
        what "Removes an error element in or beside a list with items."
        why "A response contains either errors or a list. The items are kept."
        before "<error code=\"noRecordsMatch\"/><record>"
        after "<record>"
    ErrorCode "error-code" Likely
        what "Corrects an error code that differs from a legal one by case, by plural or by at most two letters. Any other code, or a missing one, becomes the code that its text means. A legal code that the requested verb does not allow becomes the one that it allows for this problem."
        why "The schema has eight codes, and harvesters act on them. The text counts if it names a code, or describes the problem with the words of the specification: argument, identifier, format or token. A text about a temporary problem does not count. If no code fits, the source counts as failed."
        before "<error code=\"NoRecordsMatch\">"
        after "<error code=\"noRecordsMatch\">"
    EmptyList "empty-list" Exact
        what "Turns a complete list without an item into the error that the specification requires: noRecordsMatch, noSetHierarchy or noMetadataFormats. Beside an error, and with an empty resumptionToken, the list is removed."
        why "The schema requires an item, and harvesters take an empty list for a broken response. The repair never applies to a truncated list, to a list with quarantined records, or to a list that was requested by a token: see missing-last-token."
        before "<ListRecords></ListRecords>"
        after "<error code=\"noRecordsMatch\">The list is empty.</error>"
    RequestAttribute "request-attribute" Exact
        what "Removes attributes of the request element that the schema does not allow. Corrects the name of an argument in another case."
        why "The element repeats the arguments of the request. One illegal attribute makes the whole page invalid."
        before "<request verb=\"ListSets\" submit=\"go\">"
        after "<request verb=\"ListSets\">"
    RequestContent "request-content" Exact
        what "Trims spaces around the URL in the request element and escapes characters that are illegal in a URL."
        why "The type of the element is anyURI."
        before "<request>\n http://example.org/oai </request>"
        after "<request>http://example.org/oai</request>"
    UnopenedList "unopened-list" Likely
        what "Adds the start tag of the verb element if items follow the head directly."
        why "The items and the request determine which list it is. The page is refused if the request names another list, or if the request is not known and the items are records."
        before "<request verb=\"ListRecords\">...</request><record>"
        after "<request verb=\"ListRecords\">...</request><ListRecords><record>"
    UnclosedList "unclosed-list" Exact
        what "Adds the missing end tags of the envelope after a complete list."
        why "Every item is present, and the token or the end tag of the list was read completely. Only the closing tags are missing."
        before "</ListRecords>"
        after "</ListRecords></OAI-PMH>"
    TruncatedInput "truncated-input" Exact
        what "Closes a document that ended early and adds a comment about it. Only oaimend repair does this; the proxy aborts the transfer instead."
        why "A truncated list must never look complete. Exit code 1, the comment and the report say that it is incomplete."
        before "...</record><record><hea"
        after "...</record></ListRecords><!-- oaimend: input ended early, list is incomplete --></OAI-PMH>"
    TokenAttribute "token-attribute" Exact
        what "Removes attributes of the resumptionToken with illegal values."
        why "All of them are optional. completeListSize=\"0\" or a local expirationDate makes the whole page invalid."
        before "<resumptionToken completeListSize=\"0\">t</resumptionToken>"
        after "<resumptionToken>t</resumptionToken>"
    MisspeltToken "misspelt-token" Likely
        what "Corrects the name of a resumptionToken: another case, the plural, one or two wrong letters, or a prefix that the list does not have."
        why "A harvester that does not find the token takes the page for the last one and the list for complete. No other element of the protocol has a similar name."
        before "<ResumptionTokens>a</ResumptionTokens>"
        after "<resumptionToken>a</resumptionToken>"
    RepeatedToken "repeated-token" Likely
        what "Keeps the last resumptionToken that is not empty if a page has several."
        why "The schema allows one. Providers that append the token twice mean the last one."
        before "<resumptionToken>a</resumptionToken><resumptionToken>b</resumptionToken>"
        after "<resumptionToken>b</resumptionToken>"
    TokenInRequest "token-in-request" Likely
        what "Adds the resumptionToken to a list without one if the source wrote it into the request element only. Only the proxy does this, because it knows which token it asked for; oaimend repair takes the attribute for an echo."
        why "A harvester takes a list without a token for complete. An attribute with another token than the requested one is no echo, so it is the token of the next page."
        before "<request verb=\"ListRecords\" resumptionToken=\"b\">...</record></ListRecords>"
        after "...</record><resumptionToken>b</resumptionToken></ListRecords>"
    MissingLastToken "missing-last-token" Exact
        what "Adds an empty resumptionToken at the end of a list that was requested by a token and has no further one, also if this last page has no items. The proxy also empties a last token that fails after all items were delivered."
        why "The specification requires it on the last page of a list with several pages (section 3.5). Without it some harvesters take the list for truncated. The repair never applies to a truncated list or to an error."
        before "</record></ListRecords>"
        after "</record><resumptionToken/></ListRecords>"

    // --- headers of records
    HeaderBlank "header-blank" Exact
        what "Removes spaces and line breaks around an identifier or setSpec, and around and inside a datestamp. Removes no-break spaces around a datestamp."
        why "Harvesters compare these values exactly."
        before "<datestamp>2017-01\n-17T00:26:07Z</datestamp>"
        after "<datestamp>2017-01-17T00:26:07Z</datestamp>"
    DatestampFraction "datestamp-fraction" Exact
        what "Removes fractions of a second from a datestamp."
        why "OAI-PMH has days and seconds only. Rounding down never moves a record past the from argument of a harvester."
        before "2017-11-09T12:50:22.485Z"
        after "2017-11-09T12:50:22Z"
    DatestampOffset "datestamp-offset" Exact
        what "Converts a datestamp with a numeric offset to UTC."
        why "Datestamps are in UTC and end with Z. The instant stays the same."
        before "2015-05-04T22:55:30+0200"
        after "2015-05-04T20:55:30Z"
    DatestampZone "datestamp-zone" Likely
        what "Adds a missing Z to a datestamp, and writes T instead of a space."
        why "Providers that omit the time zone mean UTC, as the specification requires."
        before "2015-01-12 13:39:50"
        after "2015-01-12T13:39:50Z"
    DatestampForm "datestamp-form" Likely
        what "Rewrites other common forms of a date: eight digits, a year, year and month, RFC 822, English month names, epoch seconds, or the day first. Also corrects months and days of one digit, lower-case t and z, and a doubled Z."
        why "Each of them has one reading. A year or a month becomes its first day, which never moves a record past the from argument of a harvester. The order of day, month and year must be clear: 25/01/2015 is read, but 12/01/2015 has two readings and is not. A two-digit year and the name of a zone other than UTC are not read either."
        before "20170214"
        after "2017-02-14"
    DatestampGranularity "datestamp-granularity" Likely
        what "Writes datestamps in the granularity that the repository announces: a second becomes its day, a day its first second. If a mapping sets the granularity, Identify says the same. The earliestDatestamp of an Identify follows the granularity that this Identify names."
        why "Harvesters read all datestamps of a repository in one form and reject the other. Neither change moves a record past the from argument of a harvester. The repair applies only if the granularity is known, from an earlier Identify or from the mapping. For a datestamp of another illegal form the proxy asks the source for Identify."
        before "<granularity>YYYY-MM-DD</granularity> ... <datestamp>2015-01-12T13:39:50Z</datestamp>"
        after "<granularity>YYYY-MM-DD</granularity> ... <datestamp>2015-01-12</datestamp>"
    DatestampLowerBound "datestamp-lower-bound" Likely
        what "Replaces a datestamp that is missing, names no day or has the year 9999 with the lowest possible one. This is the from argument of the request, or earliestDatestamp."
        why "The source has listed the record, so it is not older. A datestamp that is too early never moves a record past the from argument of a harvester. The proxy first asks the source for the right one, by GetRecord and ListIdentifiers. Without a lower bound the record is quarantined."
        before "<datestamp>0000-00-00</datestamp>"
        after "<datestamp>2015-01-01</datestamp>"
    EarliestDatestamp "earliest-datestamp" Exact
        what "Lowers the earliestDatestamp of Identify to the oldest datestamp that was seen in the repository."
        why "It must be a lower bound. Harvesters that begin their first harvest there never receive older records."
        before "<earliestDatestamp>2021-03-01</earliestDatestamp>"
        after "<earliestDatestamp>2007-11-05</earliestDatestamp>"
    SetSpecEscape "set-spec-escape" Exact
        what "Writes each illegal byte of a setSpec as ~xHH., in records, in ListSets and in request. The proxy reverses this when a harvester asks for such a set."
        why "The schema allows letters, digits, -_.!~*'() and colons between parts. Validating harvesters drop the record or the page for any other character. The original name can be read from the escaped one."
        before "<setSpec>maps+plans</setSpec>"
        after "<setSpec>maps~x2B.plans</setSpec>"
    EmptySetSpec "empty-set-spec" Exact
        what "Removes a setSpec without text from a header, unless an attribute may name the set."
        why "It names no set, and the schema does not allow it. A header needs no setSpec."
        before "<datestamp>2015-01-12</datestamp><setSpec/>"
        after "<datestamp>2015-01-12</datestamp>"
    StatusValue "status-value" Likely
        what "Corrects the status attribute: another case of deleted, an attribute on the record instead of its header, or the words delete, removed and withdrawn on a header without metadata. Any other value is removed."
        why "The schema allows status=\"deleted\" on the header and nothing else."
        before "<header status=\"Deleted\">"
        after "<header status=\"deleted\">"
    DeletedWithMetadata "deleted-with-metadata" Likely
        what "Removes metadata and about from a record whose header says that it is deleted."
        why "The header decides. The journal contains the removed elements."
        before "<header status=\"deleted\">...</header><metadata>...</metadata>"
        after "<header status=\"deleted\">...</header>"

    AboutNotElement "about-not-element" Likely
        what "Removes an about, a setDescription or a description of Identify that contains no element: text, or nothing."
        why "The schema requires one element there, and all three are optional. Without this repair a note would send the whole record or set to quarantine. The journal contains the text and the attributes."
        before "<about>checked</about></record>"
        after "</record>"

    // --- what a repository says of itself
    IdentifyValue "identify-value" Likely
        what "Corrects values of Identify: granularity and deletedRecord in another case, adminEmail with mailto:, or a protocolVersion that is not 2.0. An unknown deletedRecord becomes transient."
        why "Harvesters compare these words exactly. The namespace of the response shows its version, and transient promises the least. If the repair is off, Identify stays unchanged."
        before "<granularity>YYYY-MM-DDTHH:MM:SSZ</granularity>"
        after "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"
    IdentifyElement "identify-element" Likely
        what "Adds an element that Identify lacks, or replaces an illegal value. The value comes from identify.* of the mapping, admin_email, the URL that harvesters use or the version of the response."
        why "Harvesters read earliestDatestamp and granularity before anything else. No value is invented: an unknown value stays as it is, and the report and the log name it."
        before "<adminEmail></adminEmail>"
        after "<adminEmail>oai@example.org</adminEmail>"
    FormatValue "format-value" Likely
        what "Corrects schema and metadataNamespace in ListMetadataFormats if they are swapped or belong to another format, and adds a missing one. The known formats are oai_dc, marcxml, marc21, mets and mods."
        why "Harvesters choose a format by its namespace. The protocol fixes schema and namespace of oai_dc, and the other formats have one namespace wherever they are offered. If the repair is off, values that are only wrong stay unchanged."
        before "<schema>http://www.loc.gov/MARC21/slim</schema><metadataNamespace>http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd</metadataNamespace>"
        after "<schema>http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd</schema><metadataNamespace>http://www.loc.gov/MARC21/slim</metadataNamespace>"

    // --- responses of OAI-PMH 1.0 and 1.1
    V1Root "v1-root" Exact
        what "Gives a response of OAI-PMH 1.0 or 1.1 the root of 2.0 and the verb element inside it."
        why "In 1.x the verb is the document element, in a namespace of its own, and 2.0 harvesters find nothing in it. Name, namespaces and schemaLocation of the root change in place. The verb element opens before the first item."
        before "<ListSets xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListSets\">...<set>"
        after "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">...<ListSets><set>"
    V1Request "v1-request" Exact
        what "Turns requestURL of OAI-PMH 1.x into request: the base URL as text, the arguments as attributes."
        why "OAI-PMH 2.0 renamed the element and split the URL. Arguments that the schema does not define or whose values it does not allow are omitted."
        before "<requestURL>http://example.org/oai?verb=ListSets</requestURL>"
        after "<request verb=\"ListSets\">http://example.org/oai</request>"
    V1Status "v1-status" Exact
        what "Moves status=\"deleted\" of OAI-PMH 1.x from the record to its header."
        why "OAI-PMH 2.0 has the attribute there. In the journal the move is one deletion and one insertion."
        before "<record status=\"deleted\"><header>"
        after "<record><header status=\"deleted\">"
    V1Dc "v1-dc" Exact, Content
        what "Turns the oai_dc payload of OAI-PMH 1.x, an element dc in the namespace of Dublin Core, into oai_dc:dc."
        why "OAI-PMH 2.0 gave the container a namespace of its own. The fields stay in theirs and are not changed. A schemaLocation with the old schema names the new one."
        before "<dc xmlns=\"http://purl.org/dc/elements/1.1/\"><title>a</title></dc>"
        after "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns=\"http://purl.org/dc/elements/1.1/\"><title>a</title></oai_dc:dc>"
    V1Format "v1-format" Likely, Content
        what "Corrects schema and namespace of the formats that OAI-PMH 1.x describes: in ListMetadataFormats, and on the outermost element of a payload."
        why "oai_dc has another schema and namespace in 2.0. oai_marc, rfc1807, eprints and oai-identifier still have those of 1.1; 1.0 had others. In 2.0 each format must have a namespace. The XML Schema instance namespace of 2000 becomes that of 2001."
        before "<metadataPrefix>oai_dc</metadataPrefix><schema>http://www.openarchives.org/OAI/dc.xsd</schema>"
        after "<metadataPrefix>oai_dc</metadataPrefix><schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema><metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>"
    V1Identify "v1-identify" Likely
        what "Completes Identify of OAI-PMH 1.x: protocolVersion 2.0, adminEmail without mailto:, earliestDatestamp, deletedRecord and granularity."
        why "OAI-PMH 2.0 requires all of them, and 1.x has none of the last three. Only values that are true for every source are written. No datestamp is earlier than 1970-01-01, transient promises nothing about deletions, and datestamps of 1.x are days."
        before "<adminEmail>mailto:a@example.org</adminEmail></Identify>"
        after "<adminEmail>a@example.org</adminEmail><earliestDatestamp>1970-01-01</earliestDatestamp><deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DD</granularity></Identify>"
    V1Empty "v1-empty" Likely
        what "Turns a GetRecord response of OAI-PMH 1.x without a record into an error."
        why "OAI-PMH 1.x has no errors. It sends this response if the record does not exist, and also if the record does not have the format. Every record has oai_dc, so idDoesNotExist is certain for oai_dc only. For other formats the error is cannotDisseminateFormat: it is true in both cases, and no harvester deletes a record because of it."
        before "<GetRecord ...>...</requestURL></GetRecord>"
        after "<error code=\"idDoesNotExist\">There is no such record.</error>"

    // --- what the proxy says of itself
    RewriteRequest "rewrite-request" Rewrite
        what "Writes the request element from the request that the harvester sent."
        why "Harvesters compare this element with their request, which they sent to the proxy and not to the source. With badVerb and badArgument the attributes are omitted, as the specification requires. oaimend repair without --base-url keeps the element of the source."
        before "<request verb=\"Identify\">http://source.example/oai</request>"
        after "<request verb=\"Identify\">http://proxy.example/id</request>"
    RewriteBaseUrl "rewrite-base-url" Rewrite
        what "Writes the public URL of the proxy as the baseURL of Identify."
        why "Harvesters and validators compare it with the URL that they use."
        before "<baseURL>http://source.example/oai</baseURL>"
        after "<baseURL>http://proxy.example/id</baseURL>"
    RewriteProvenance "rewrite-provenance" Rewrite
        what "Adds an about that says where and when a record was harvested, and whether its payload was altered. An existing provenance description goes into the new one."
        why "The OAI guidelines for provenance ask this of every service that passes on harvested records. The mapping enables it: provenance = \"altered\" for records whose payload a repair of content has changed, provenance = \"all\" for every record. It never applies to deleted records or to records longer than record_bytes_max. No repair of content is made in such long records then."
        before "</metadata></record>"
        after "</metadata><about><provenance ...><originDescription harvestDate=\"2026-01-02T03:04:05Z\" altered=\"true\">...</originDescription></provenance></about></record>"
}

impl RepairId {
    /// Whether the repair is off unless a mapping enables it: a guess, or a change that few harvesters need.
    pub fn is_optional(self) -> bool {
        self.certainty() == Certainty::Guess || self == Self::PayloadXsi
    }

    /// Whether this is what the proxy says of itself and no repair.
    pub fn is_rewrite(self) -> bool {
        matches!(self, Self::RewriteRequest | Self::RewriteBaseUrl | Self::RewriteProvenance)
    }
}
