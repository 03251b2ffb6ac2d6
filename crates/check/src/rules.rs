//! The table of all rules: name, section of the specification, requirement and remedy.
//!
//! The name is the same in the printed table, in the JSON and in docs/reference/conformance.md. A section is a section
//! of OAI-PMH 2.0, unless it names another document.

/// The entry of one rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleEntry {
    /// The rule.
    pub rule: Rule,
    /// Its name, in kebab case.
    pub name: &'static str,
    /// Its source: a section of OAI-PMH 2.0, or another document.
    pub section: &'static str,
    /// The requirement.
    pub expected: &'static str,
    /// The remedy for the provider.
    pub remedy: &'static str,
}

macro_rules! rules {
    ($($variant:ident $name:literal $section:literal
        expected $expected:literal
        remedy $remedy:literal)*) => {
        /// A rule for repositories.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $expected] $variant,)*
        }

        /// All rules, in the order of the report.
        pub const RULES: &[RuleEntry] = &[$(RuleEntry {
            rule: Rule::$variant,
            name: $name,
            section: $section,
            expected: $expected,
            remedy: $remedy,
        },)*];
    };
}

impl Rule {
    /// Whether only a profile demands this rule, so that a check without a profile omits it.
    pub fn is_of_profile(self) -> bool {
        matches!(
            self,
            Self::OpenaireSet
                | Self::OpenaireFields
                | Self::OdlDescription
                | Self::OdlSearch
                | Self::OdlHits
                | Self::OdlRanges
                | Self::OdlFormat
                | Self::OdlSets
        )
    }

    /// Its entry.
    pub fn entry(self) -> &'static RuleEntry {
        &RULES[self as usize]
    }
}

rules! {
    Answers "answers" "3.1"
        expected "Every request gets a complete response in time."
        remedy "Keep the server reachable for every harvester, and send each response to its end."
    HttpStatus "http-status" "3.1.2"
        expected "Every request is answered with status 200. This includes errors of the protocol."
        remedy "Send status 200 with every OAI-PMH response. Use 4xx and 5xx only for failures of the server."
    PermanentRedirect "permanent-redirect" "3.1.2"
        expected "The base URL responds itself or redirects with status 302."
        remedy "Respond at the registered base URL, or redirect with 302. Many harvesters do not follow 301 and 308."
    RedirectHost "redirect-host" "advice"
        expected "No redirect leads to another host."
        remedy "Respond at the registered host, or publish the new base URL. Harvesters may not follow to other hosts."
    RetryAfter "retry-after" "3.1.2"
        expected "A 503 response has a Retry-After header with a number of seconds, at most 3600."
        remedy "Send Retry-After with a 503, as a whole number of seconds, such as Retry-After: 60."
    PlainHttp "plain-http" "3.1.1"
        expected "The base URL is an http URL."
        remedy "Keep http reachable besides https. The official validator and old harvesters support nothing else."
    ContentType "content-type" "3.1.2"
        expected "The content type is text/xml, with the charset UTF-8 or no charset."
        remedy "Send Content-Type: text/xml; charset=UTF-8."
    Post "post" "3.1.1"
        expected "A POST request with a form gets the same response as a GET request."
        remedy "Read the arguments of a POST request from its form (application/x-www-form-urlencoded)."
    Compression "compression" "3.1.3"
        expected "The source compresses with an encoding that Identify lists, and with no other."
        remedy "List each encoding that the server uses in a compression element of Identify, and no others."
    ContentEncoding "content-encoding" "RFC 9110"
        expected "Content-Encoding names the coding of the body, and is absent without one."
        remedy "Compress once, in one place, and send Content-Encoding with compressed responses only. Most harvesters fail otherwise."
    WellFormed "well-formed" "3.2"
        expected "Every response is well-formed XML in UTF-8."
        remedy "Write XML with a library that escapes text. Never insert database text unescaped."
    XmlDeclaration "xml-declaration" "3.2"
        expected "A response begins with an XML declaration, version 1.0, encoding UTF-8."
        remedy "Begin with <?xml version=\"1.0\" encoding=\"UTF-8\"?> and write nothing before it."
    RootElement "root-element" "3.2"
        expected "The document element is OAI-PMH in the namespace of version 2.0."
        remedy "Send OAI-PMH 2.0 at the base URL itself. openarchives.org has a guide for the migration from 1.x."
    SchemaLocation "schema-location" "3.2"
        expected "The schemaLocation of the root pairs the OAI-PMH namespace with OAI-PMH.xsd."
        remedy "Write xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"."
    ResponseDate "response-date" "3.3.2"
        expected "responseDate is in UTC, in the form YYYY-MM-DDThh:mm:ssZ."
        remedy "Write responseDate in UTC, without fractions and offsets, with a Z at the end."
    RequestUrl "request-url" "3.2"
        expected "The request element contains the requested base URL and nothing else."
        remedy "Write the base URL into request, without a query. Publish the URL that this element contains."
    RequestAttributes "request-attributes" "3.2"
        expected "The attributes of request are the arguments of the request. With badVerb and badArgument there are none."
        remedy "Repeat each argument as an attribute of request. Omit all attributes if the request was illegal."
    Schema "schema" "3.2.1"
        expected "A response contains the elements of OAI-PMH.xsd in their order."
        remedy "Validate the response with OAI-PMH.xsd and correct each error."
    Identify "identify" "4.2"
        expected "Identify describes the repository. It returns no error."
        remedy "Return the description of the repository for verb=Identify without further arguments."
    AdminEmail "admin-email" "4.2"
        expected "adminEmail is the mail address of a person who can help."
        remedy "Set adminEmail to an address that somebody reads, such as oai@example.org, without mailto:."
    BaseUrl "base-url" "4.2"
        expected "baseURL is the requested URL."
        remedy "Set baseURL to the URL that harvesters use. Behind a proxy this is the URL of the proxy."
    ProtocolVersion "protocol-version" "4.2"
        expected "protocolVersion is 2.0."
        remedy "Write 2.0 and nothing else. openarchives.org has a guide for the migration from 1.x."
    Granularity "granularity" "4.2"
        expected "granularity is YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ."
        remedy "Write one of the two exactly."
    EarliestDatestamp "earliest-datestamp" "4.2"
        expected "earliestDatestamp is a date in the granularity, and no record is older."
        remedy "Set earliestDatestamp to the oldest datestamp of all records or to an earlier day."
    DeletedRecord "deleted-record" "4.2"
        expected "deletedRecord is no, transient or persistent."
        remedy "Write one of the three. transient promises the least."
    DeletedPolicy "deleted-policy" "advice"
        expected "The repository keeps track of deleted records."
        remedy "Keep deleted records with status=\"deleted\". Otherwise harvesters show deleted records until they harvest everything again."
    OaiIdentifier "oai-identifier" "oai-identifier 2.0"
        expected "There is at most one oai-identifier description. It follows its schema, and repositoryIdentifier is a domain name."
        remedy "Describe the identifiers once, in http://www.openarchives.org/OAI/2.0/oai-identifier, with your domain name."
    OaiDc "oai-dc" "3.4"
        expected "The formats include oai_dc with its namespace."
        remedy "Offer every item in oai_dc, with the namespace http://www.openarchives.org/OAI/2.0/oai_dc/."
    FormatsOfItem "formats-of-item" "4.4"
        expected "ListMetadataFormats accepts the identifier of an item, and the formats of the item include oai_dc."
        remedy "Return the formats of one item if ListMetadataFormats has an identifier."
    Sets "sets" "4.6"
        expected "ListSets returns sets with setSpec and setName. Or it returns noSetHierarchy, and no record is in a set."
        remedy "List every set that a header names, or omit setSpec from the headers."
    SetOfRecords "set-of-records" "2.7.2"
        expected "The list of a set contains only records of this set or of its subsets."
        remedy "Select by the argument set, and write the setSpec into each header."
    LiveRecord "live-record" "4.3"
        expected "ListIdentifiers with oai_dc returns at least one record that is not deleted."
        remedy "Offer at least one record in oai_dc."
    GetRecord "get-record" "4.1"
        expected "GetRecord returns the requested record."
        remedy "Return a record for every identifier in a list, with exactly this identifier."
    IdentifierUri "identifier-uri" "2.4"
        expected "The identifier of an item is a URI."
        remedy "Use identifiers with a scheme and legal characters, such as oai:example.org:1234."
    UniqueItems "unique-items" "2.5"
        expected "A list contains each item once."
        remedy "Group the result of the database query by item, and sort lists by a value that does not change."
    SameRecords "same-records" "4.3"
        expected "ListIdentifiers and ListRecords list the same records for the same arguments."
        remedy "Build both lists from the same query."
    SameSets "same-sets" "2.6"
        expected "A record has the same sets in lists and in GetRecord."
        remedy "Write the header for lists and for GetRecord in the same place, with each setSpec."
    SameDatestamp "same-datestamp" "2.5"
        expected "A record has the same datestamp in lists and in GetRecord."
        remedy "Read the datestamp for lists and for GetRecord from the same place."
    DatestampForm "datestamp-form" "3.3.2"
        expected "Datestamps are in UTC and in the granularity of Identify."
        remedy "Write all datestamps in one form, and announce this form in Identify."
    SelectiveHarvest "selective-harvest" "2.7.1"
        expected "A list with from and until at the datestamp of a record contains this record."
        remedy "Compare datestamps inclusively and in UTC, and do not truncate them to days."
    DayHarvest "day-harvest" "2.7.1"
        expected "from and until accept days in any granularity."
        remedy "Read YYYY-MM-DD as the whole day in UTC."
    SampledHarvest "sampled-harvest" "2.7.1"
        expected "Lists with from and until at the datestamps of sampled records contain these records."
        remedy "Build selective lists from the datestamps in the headers. Otherwise an incremental harvest misses records."
    WithinWindow "within-window" "2.7.1"
        expected "A list contains only records between from and until."
        remedy "Select records by from and until. Otherwise a daily harvest transfers the whole repository each day."
    DeletedStatus "deleted-status" "2.5.1"
        expected "Deleted records have no metadata. They occur only if deletedRecord is not no."
        remedy "Send only the header with status=\"deleted\", and announce the policy in Identify."
    DcPayload "dc-payload" "3.4"
        expected "A record in oai_dc that is not deleted contains a dc element in the oai_dc namespace."
        remedy "Put an oai_dc:dc element into metadata, with the namespace http://www.openarchives.org/OAI/2.0/oai_dc/."
    DcSchema "dc-schema" "oai_dc.xsd"
        expected "A dc element contains only the 15 elements of Dublin Core, each with text and at most xml:lang."
        remedy "Write qualified or nested elements into another format, and only plain Dublin Core into oai_dc."
    DcTitle "dc-title" "advice"
        expected "A record in oai_dc has a title."
        remedy "Write dc:title for each record."
    DcIdentifier "dc-identifier" "advice"
        expected "A record in oai_dc has a dc:identifier with an absolute http or https URL."
        remedy "Write the URL of the landing page into dc:identifier, with its scheme and host."
    DcLanguage "dc-language" "advice"
        expected "dc:language, if it is present, is a language code, such as en, eng or pt-BR."
        remedy "Write codes of ISO 639 or tags of BCP 47 into dc:language, not names of languages."
    DcDate "dc-date" "advice"
        expected "A record in oai_dc has a dc:date, such as 2024, 2024-05 or 2024-05-31."
        remedy "Write the date of publication into dc:date, in the form YYYY, YYYY-MM or YYYY-MM-DD."
    PayloadSchema "payload-schema" "3.4"
        expected "The metadata of a record is valid for the schema of its format, if --schema-dir has this schema."
        remedy "Validate the metadata with the schema of its format, and correct each error."
    DoubleEncoding "double-encoding" "OVAL"
        expected "Text is encoded and escaped exactly once."
        remedy "Find the place that reads UTF-8 as Latin-1 or escapes text twice, and correct it."
    OneToken "one-token" "3.5"
        expected "A list has at most one resumptionToken, after its items."
        remedy "Write one resumptionToken as the last element of the list."
    EmptyToken "empty-token" "3.5"
        expected "A complete list on one page has no resumptionToken."
        remedy "Omit the empty token. It ends lists with several pages."
    FirstCursor "first-cursor" "3.5"
        expected "cursor is 0 on the first page, if it is present."
        remedy "Count the items before the page, from 0."
    NextCursor "next-cursor" "3.5"
        expected "cursor is the number of items before the page, if it is present."
        remedy "Count items, not pages."
    TokenWorks "token-works" "3.5"
        expected "A resumptionToken returns further items of its list."
        remedy "Keep tokens valid until the list is harvested, and sort lists by a value that does not change."
    TokenAgain "token-again" "3.5.1"
        expected "The same resumptionToken returns the same page again."
        remedy "Keep the last token usable. A harvester sends it again after a lost connection."
    LastToken "last-token" "3.5"
        expected "The last page of a list with several pages has an empty resumptionToken."
        remedy "Close the list with <resumptionToken/>."
    ListSize "list-size" "advice"
        expected "The first page of a list with several pages has a completeListSize."
        remedy "Write completeListSize. Harvesters use it to show progress and to notice that records are missing."
    CompleteListSize "complete-list-size" "3.5"
        expected "completeListSize, if it is present, is a number and not lower than the number of received items."
        remedy "Count the items of the whole list, or omit completeListSize."
    ExpirationDate "expiration-date" "3.5"
        expected "expirationDate, if it is present, is in UTC and in the future. Harvesters need about one day."
        remedy "Keep tokens valid for at least one day, and write expirationDate in UTC."
    PageSize "page-size" "OVAL"
        expected "Every page except the last has 100 to 500 items."
        remedy "Set the page size to a value from 100 to 500. Small pages are slow, and large pages often fail."
    NoVerb "no-verb" "3.6"
        expected "A request without a verb gets badVerb."
        remedy "Return badVerb."
    UnknownVerb "unknown-verb" "3.6"
        expected "A request with an unknown verb gets badVerb."
        remedy "Return badVerb."
    MissingArgument "missing-argument" "3.6"
        expected "A request without a required argument gets badArgument."
        remedy "Return badArgument if identifier or metadataPrefix is missing."
    UnknownArgument "unknown-argument" "3.6"
        expected "A request with an argument that the verb does not have gets badArgument."
        remedy "Return badArgument."
    RepeatedArgument "repeated-argument" "3.6"
        expected "A request with a repeated argument gets badArgument."
        remedy "Return badArgument."
    QuoteInIdentifier "quote-in-identifier" "3.6"
        expected "A request with a quotation mark in the identifier gets an error in well-formed XML."
        remedy "Escape arguments in attributes, and return idDoesNotExist or badArgument."
    UnknownIdentifier "unknown-identifier" "3.6"
        expected "GetRecord and ListMetadataFormats with an unknown identifier get idDoesNotExist."
        remedy "Return idDoesNotExist."
    UnknownFormat "unknown-format" "3.6"
        expected "ListIdentifiers, ListRecords and GetRecord with an unknown metadataPrefix get cannotDisseminateFormat."
        remedy "Return cannotDisseminateFormat."
    BadDate "bad-date" "3.6"
        expected "A from or until that is not a date gets badArgument. This includes days that do not exist."
        remedy "Return badArgument. A harvester that receives the whole list does not notice its mistake."
    MixedGranularity "mixed-granularity" "2.7.1"
        expected "from and until with different granularity get badArgument."
        remedy "Return badArgument."
    TooFine "too-fine" "2.7.1"
        expected "Dates that are finer than the granularity get badArgument."
        remedy "Return badArgument for dates with seconds if the granularity is YYYY-MM-DD."
    FromAfterUntil "from-after-until" "2.7.1"
        expected "A from that is later than until gets badArgument."
        remedy "Return badArgument."
    EmptyWindow "empty-window" "2.7.1"
        expected "An until before earliestDatestamp gets noRecordsMatch."
        remedy "Return noRecordsMatch if no record matches."
    BadToken "bad-token" "3.6"
        expected "A resumptionToken that the repository never issued gets badResumptionToken."
        remedy "Return badResumptionToken with HTTP status 200."
    ExclusiveToken "exclusive-token" "3.6"
        expected "A resumptionToken with other arguments gets badArgument or badResumptionToken."
        remedy "Return badArgument. The token represents the first request of its list."
    ErrorText "error-text" "3.6"
        expected "An error contains a text that explains it."
        remedy "Write a text into the error element."
    OpenaireSet "openaire-set" "OpenAIRE 3"
        expected "There is a set with the setSpec openaire."
        remedy "Put the records for OpenAIRE into a set with the setSpec openaire, in lower case."
    OpenaireFields "openaire-fields" "OpenAIRE 3"
        expected "Records of the set openaire have title, creator, date, type, identifier, and an access right of info:eu-repo/semantics."
        remedy "Write each mandatory field, such as dc:rights with info:eu-repo/semantics/openAccess."
    OdlDescription "odl-description" "ODL"
        expected "Identify has a description odl-description with the protocol ODL-Search and its version."
        remedy "Write <odl-description> with <protocol>ODL-Search</protocol> and <version>1.0</version> into a description."
    OdlSearch "odl-search" "ODL-Search"
        expected "A list of the set odlsearch1/WORD/1/2 returns records, if a title contains the word."
        remedy "Read the set as language, query, start and stop, and return the records that match the query."
    OdlHits "odl-hits" "ODL-Search"
        expected "A search ends with a responseContainer whose hits is the number of matching records."
        remedy "Write <responseContainer><hits>N</hits></responseContainer> after the element of the verb."
    OdlRanges "odl-ranges" "ODL-Search"
        expected "start and stop count from 1 and are inclusive, and a record has the same rank in each range."
        remedy "Return the records of rank start to stop in an order that does not change between two requests."
    OdlFormat "odl-format" "ODL"
        expected "A search without metadataPrefix returns the same records as one in oai_dc."
        remedy "Read a request without metadataPrefix as one for oai_dc, because clients of ODL send none."
    OdlSets "odl-sets" "ODL-Search"
        expected "ListSets returns noSetHierarchy or an empty list, because the sets are queries."
        remedy "Return noSetHierarchy."
}
