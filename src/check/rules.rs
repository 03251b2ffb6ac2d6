//! Every rule in one table: its name, the section of the specification, what
//! is wanted, and what a provider should do that does not keep it.
//!
//! The name is the same in the table that is printed, in the JSON and in
//! docs/reference/conformance.md. A section is one of OAI-PMH 2.0, unless it says more.

/// The entry of one rule.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which rule it is.
    pub rule: Rule,
    /// The one kebab-case name.
    pub name: &'static str,
    /// Where it stands: a section of OAI-PMH 2.0, or another document.
    pub section: &'static str,
    /// What is wanted.
    pub wants: &'static str,
    /// What the provider should do where it does not hold.
    pub remedy: &'static str,
}

macro_rules! rules {
    ($($variant:ident $name:literal $section:literal
        wants $wants:literal
        remedy $remedy:literal)*) => {
        /// A rule that a repository is held to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $wants] $variant,)*
        }

        /// All rules, in the order in which they are told.
        pub const RULES: &[Entry] = &[$(Entry {
            rule: Rule::$variant,
            name: $name,
            section: $section,
            wants: $wants,
            remedy: $remedy,
        },)*];
    };
}

impl Rule {
    /// Its entry.
    pub fn entry(self) -> &'static Entry {
        &RULES[self as usize]
    }
}

rules! {
    Answers "answers" "3.1"
        wants "Every request gets a whole answer, in time."
        remedy "Keep the server reachable for everybody who harvests, and let each answer come to its end."
    HttpStatus "http-status" "3.1.2"
        wants "Every request is answered with 200; errors of the protocol are, too."
        remedy "Answer with 200 and an OAI-PMH response; keep 4xx and 5xx for failures of the server."
    PermanentRedirect "permanent-redirect" "3.1.2"
        wants "The base URL answers itself, or redirects with 302."
        remedy "Answer at the base URL that is registered, or redirect with 302; many harvesters do not follow 301 and 308."
    RetryAfter "retry-after" "3.1.2"
        wants "A 503 says by Retry-After when to come again, in seconds, at most 3600."
        remedy "Send 503 with Retry-After and a whole number of seconds, such as Retry-After: 60."
    PlainHttp "plain-http" "3.1.1"
        wants "The base URL is an http URL."
        remedy "Keep http reachable beside https; the official validator and old harvesters speak nothing else."
    ContentType "content-type" "3.1.2"
        wants "The content type is text/xml, its charset none or UTF-8."
        remedy "Send Content-Type: text/xml; charset=UTF-8."
    Post "post" "3.1.1"
        wants "POST with a form is answered as GET is."
        remedy "Read the arguments of a POST from its form (application/x-www-form-urlencoded)."
    WellFormed "well-formed" "3.2"
        wants "Every answer is well-formed XML in UTF-8."
        remedy "Write XML with a library that escapes; let no text of a database through as it is."
    XmlDeclaration "xml-declaration" "3.2"
        wants "An answer begins with an XML declaration, version 1.0, encoding UTF-8."
        remedy "Begin with <?xml version=\"1.0\" encoding=\"UTF-8\"?>, and nothing before it."
    RootElement "root-element" "3.2"
        wants "The document element is OAI-PMH, in the namespace of version 2.0."
        remedy "Answer in OAI-PMH 2.0, at the base URL itself; from 1.x there is a migration guide at openarchives.org."
    SchemaLocation "schema-location" "3.2"
        wants "The root's schemaLocation pairs the OAI-PMH namespace with OAI-PMH.xsd."
        remedy "Write xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"."
    ResponseDate "response-date" "3.3.2"
        wants "responseDate is UTC, YYYY-MM-DDThh:mm:ssZ."
        remedy "Write responseDate in UTC, without fractions and offsets, with a Z at its end."
    RequestUrl "request-url" "3.2"
        wants "The request element holds the base URL that was asked, and nothing else."
        remedy "Write the base URL into request, without a query; harvest at the URL it says."
    RequestAttributes "request-attributes" "3.2"
        wants "The attributes of request are the arguments of the request; beside badVerb and badArgument there are none."
        remedy "Repeat each argument as an attribute of request, and none when the request was illegal."
    Schema "schema" "3.2.1"
        wants "An answer has the elements of OAI-PMH.xsd, in their order."
        remedy "Validate the answer with OAI-PMH.xsd and put right what it says."
    AdminEmail "admin-email" "4.2"
        wants "adminEmail is the mail address of a person who can help."
        remedy "Set adminEmail to an address that is read, such as oai@example.org, without mailto:."
    BaseUrl "base-url" "4.2"
        wants "baseURL is the URL that was asked."
        remedy "Set baseURL to the URL harvesters use; behind a proxy that is the proxy's."
    ProtocolVersion "protocol-version" "4.2"
        wants "protocolVersion is 2.0."
        remedy "Say 2.0, and nothing else; from 1.x there is a migration guide at openarchives.org."
    Granularity "granularity" "4.2"
        wants "granularity is YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ."
        remedy "Write one of the two, letter by letter."
    EarliestDatestamp "earliest-datestamp" "4.2"
        wants "earliestDatestamp is a date in the granularity, and no record is older."
        remedy "Set earliestDatestamp to the lowest datestamp of all records, or to a day before it."
    DeletedRecord "deleted-record" "4.2"
        wants "deletedRecord is no, transient or persistent."
        remedy "Write one of the three; transient promises the least."
    OaiIdentifier "oai-identifier" "oai-identifier 2.0"
        wants "There is one oai-identifier description at most, with a repositoryIdentifier that is a domain name."
        remedy "Describe the identifiers once, in http://www.openarchives.org/OAI/2.0/oai-identifier, with your domain name."
    OaiDc "oai-dc" "3.4"
        wants "oai_dc is among the formats, with its namespace."
        remedy "Offer every item in oai_dc, namespace http://www.openarchives.org/OAI/2.0/oai_dc/."
    FormatsOfItem "formats-of-item" "4.4"
        wants "The formats of an item are asked for by its identifier, and oai_dc is among them."
        remedy "Answer ListMetadataFormats with an identifier by the formats of that item."
    Sets "sets" "4.6"
        wants "ListSets lists sets, each with setSpec and setName, or says noSetHierarchy and no record is in a set."
        remedy "List the sets that stand in the headers, or leave setSpec out of them."
    SetOfRecords "set-of-records" "2.7.2"
        wants "A list of a set holds records of that set, or of sets below it."
        remedy "Select by the argument set, and name the set in each header."
    LiveRecord "live-record" "4.3"
        wants "ListIdentifiers in oai_dc lists a record that is not deleted."
        remedy "Disseminate at least one record in oai_dc."
    GetRecord "get-record" "4.1"
        wants "GetRecord gives the record that was asked for."
        remedy "Answer GetRecord for every identifier that lists name, with the very same identifier."
    SameDatestamp "same-datestamp" "2.5"
        wants "A record has one datestamp, whichever way it is asked for."
        remedy "Take the datestamp of lists and of GetRecord from the same place."
    DatestampForm "datestamp-form" "3.3.2"
        wants "Datestamps are in UTC, in the granularity that Identify says."
        remedy "Write all datestamps in one form, and say it in Identify."
    SelectiveHarvest "selective-harvest" "2.7.1"
        wants "from and until at the datestamp of a record list that record."
        remedy "Compare datestamps inclusively, in UTC, without cutting them to days."
    DayHarvest "day-harvest" "2.7.1"
        wants "from and until are taken as days, whatever the granularity."
        remedy "Take YYYY-MM-DD as the whole day in UTC."
    WithinWindow "within-window" "2.7.1"
        wants "A list holds records between from and until, and no others."
        remedy "Select by from and until; a harvester that gets everything harvests everything each day."
    DeletedStatus "deleted-status" "2.5.1"
        wants "Deleted records come without metadata, and only where deletedRecord does not say no."
        remedy "Send the header alone, with status=\"deleted\", and say in Identify how deletions are kept."
    DcPayload "dc-payload" "3.4"
        wants "A record in oai_dc that is not deleted carries a dc element in the namespace of oai_dc."
        remedy "Put oai_dc:dc, namespace http://www.openarchives.org/OAI/2.0/oai_dc/, into metadata."
    DoubleEncoding "double-encoding" "OVAL"
        wants "Text is encoded and escaped once."
        remedy "Find where UTF-8 is read as Latin-1, or escaped text is escaped again, and do it once."
    OneToken "one-token" "3.5"
        wants "A list has one resumptionToken at most, behind its items."
        remedy "Write one resumptionToken, as last element of the list."
    EmptyToken "empty-token" "3.5"
        wants "A list that is complete on one page has no resumptionToken."
        remedy "Leave the empty token out; it ends lists of more than one page."
    FirstCursor "first-cursor" "3.5"
        wants "cursor, where there is one, is 0 on the first page."
        remedy "Count the items that came before the page, from 0."
    NextCursor "next-cursor" "3.5"
        wants "cursor, where there is one, counts the items before the page."
        remedy "Count items, not pages."
    TokenWorks "token-works" "3.5"
        wants "A resumptionToken leads to further items of its list."
        remedy "Keep tokens valid until the list is harvested, and order lists by something that does not change."
    TokenAgain "token-again" "3.5.1"
        wants "The same resumptionToken gives the same page again."
        remedy "Keep the last token usable; a harvester whose connection broke asks again."
    LastToken "last-token" "3.5"
        wants "The last page of a list of several has an empty resumptionToken."
        remedy "Close the list with <resumptionToken/>."
    CompleteListSize "complete-list-size" "3.5"
        wants "completeListSize, where there is one, is a number, and no fewer than have come."
        remedy "Count the items of the whole list, or leave completeListSize out."
    ExpirationDate "expiration-date" "3.5"
        wants "expirationDate, where there is one, is UTC and to come; a day is enough for a harvester."
        remedy "Keep tokens for a day at least, and write expirationDate in UTC."
    PageSize "page-size" "OVAL"
        wants "A page that is not the last has 100 to 500 items."
        remedy "Set the page size to between 100 and 500: smaller ones make harvests slow, larger ones break."
    NoVerb "no-verb" "3.6"
        wants "A request without a verb is a badVerb."
        remedy "Answer badVerb."
    UnknownVerb "unknown-verb" "3.6"
        wants "A verb that is none of the six is a badVerb."
        remedy "Answer badVerb."
    MissingArgument "missing-argument" "3.6"
        wants "A request without a required argument is a badArgument."
        remedy "Answer badArgument when identifier or metadataPrefix is missing."
    UnknownArgument "unknown-argument" "3.6"
        wants "An argument that the verb does not take is a badArgument."
        remedy "Answer badArgument."
    RepeatedArgument "repeated-argument" "3.6"
        wants "An argument that is repeated is a badArgument."
        remedy "Answer badArgument."
    QuoteInIdentifier "quote-in-identifier" "3.6"
        wants "An identifier with a quotation mark is answered by an error, in well-formed XML."
        remedy "Escape what is repeated in attributes; answer idDoesNotExist or badArgument."
    UnknownIdentifier "unknown-identifier" "3.6"
        wants "An identifier that nobody knows is idDoesNotExist."
        remedy "Answer idDoesNotExist."
    UnknownFormat "unknown-format" "3.6"
        wants "A metadataPrefix that nobody knows is cannotDisseminateFormat."
        remedy "Answer cannotDisseminateFormat."
    BadDate "bad-date" "3.6"
        wants "A from or until that is no date is a badArgument."
        remedy "Answer badArgument; who is sent everything instead never learns of the mistake."
    MixedGranularity "mixed-granularity" "2.7.1"
        wants "from and until of different granularity are a badArgument."
        remedy "Answer badArgument."
    TooFine "too-fine" "2.7.1"
        wants "Dates finer than the granularity are a badArgument."
        remedy "Answer badArgument to seconds where granularity is YYYY-MM-DD."
    FromAfterUntil "from-after-until" "2.7.1"
        wants "A from that is later than until is a badArgument."
        remedy "Answer badArgument."
    EmptyWindow "empty-window" "2.7.1"
        wants "An until before earliestDatestamp is noRecordsMatch."
        remedy "Answer noRecordsMatch where nothing fits."
    BadToken "bad-token" "3.6"
        wants "A resumptionToken that was never given out is a badResumptionToken."
        remedy "Answer badResumptionToken, with HTTP status 200."
    ExclusiveToken "exclusive-token" "3.6"
        wants "A resumptionToken beside other arguments is a badArgument, or a badResumptionToken."
        remedy "Answer badArgument: the token stands for the first request of its list."
    ErrorText "error-text" "3.6"
        wants "An error says in words what is wrong."
        remedy "Write a text into the error element."
}
