//! The description of the server: an explain record of ZeeRex 2.0.

use crate::Envelope;
use crate::query::{CONTEXT_SETS, Index, SORT_INDEX, described_indexes};
use crate::request::{RECORDS_DEFAULT, RECORDS_MAX};
use crate::response::element;
use crate::schemas::RecordSchema;
use oaimend_oai::escape;

/// The namespace of ZeeRex 2.0, and the name of its schema.
const ZEEREX: &str = "http://explain.z3950.org/dtd/2.0/";

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// The scheme of its URL: `http` or `https`.
    pub transport: String,
    /// The host name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path without the slash at its start.
    pub path: String,
}

impl Envelope {
    /// The response to an explain request.
    pub fn explain(&self, database: &Database) -> String {
        let mut xml = self.start("explainResponse");
        xml.push_str("<record>");
        element("recordSchema", ZEEREX, &mut xml);
        self.write_data(&self.explain_record(database), &mut xml);
        xml.push_str("</record>\n");
        self.write_echo("echoedExplainRequest", &mut xml);
        xml.push_str("</explainResponse>\n");
        xml
    }

    fn explain_record(&self, database: &Database) -> String {
        let mut xml = format!(
            "<explain xmlns=\"{ZEEREX}\" authoritative=\"true\">\n<serverInfo protocol=\"SRU\" version=\""
        );
        xml.push_str(self.version.name());
        xml.push_str("\" transport=\"");
        escape(&database.transport, &mut xml);
        // The schema of OASIS for explain records of SRU 2.0 has no methods, and an example instead.
        xml.push_str(if self.version.is_first() { "\" method=\"GET POST\">" } else { "\">" });
        element("host", &database.host, &mut xml);
        element("port", &database.port.to_string(), &mut xml);
        element("database", &database.path, &mut xml);
        xml.push_str("</serverInfo>\n<databaseInfo><title lang=\"en\" primary=\"true\">oaimend</title>");
        xml.push_str("<description lang=\"en\" primary=\"true\">The records of mirrored OAI-PMH repositories</description>");
        xml.push_str("</databaseInfo>\n");
        write_indexes(&mut xml);
        if !self.version.is_first() {
            xml.push_str(
                "<searchInfo><queryExample>dc.title all \"open access\"</queryExample></searchInfo>\n",
            );
        }
        write_schemas(&mut xml);
        write_configuration(&mut xml);
        xml.push_str("</explain>");
        xml
    }
}

fn write_indexes(xml: &mut String) {
    xml.push_str("<indexInfo>\n");
    for set in &CONTEXT_SETS {
        xml.push_str(&format!("<set name=\"{}\" identifier=\"{}\"/>\n", set.name, set.uris[0]));
    }
    for (set, name, title, index) in described_indexes() {
        let can_scan = matches!(index, Index::Field(_));
        let can_sort = (set, name) == SORT_INDEX;
        xml.push_str(&format!("<index search=\"true\" scan=\"{can_scan}\" sort=\"{can_sort}\">"));
        xml.push_str(&format!("<title lang=\"en\">{title}</title>"));
        xml.push_str(&format!("<map><name set=\"{set}\">{name}</name></map></index>\n"));
    }
    xml.push_str("</indexInfo>\n");
}

fn write_schemas(xml: &mut String) {
    xml.push_str("<schemaInfo>\n");
    for schema in RecordSchema::ALL {
        for name in schema.names() {
            xml.push_str(&format!("<schema name=\"{name}\" identifier=\"{}\" sort=\"false\">", schema.uri()));
            element("title", schema.title(), xml);
            xml.push_str("</schema>\n");
        }
    }
    xml.push_str("</schemaInfo>\n");
}

fn write_configuration(xml: &mut String) {
    xml.push_str("<configInfo>\n");
    xml.push_str(&format!("<default type=\"numberOfRecords\">{RECORDS_DEFAULT}</default>\n"));
    for (setting, value) in [
        ("contextSet", "dc"),
        ("index", "cql.serverChoice"),
        ("relation", "="),
        ("retrieveSchema", RecordSchema::DublinCore.uri()),
    ] {
        xml.push_str(&format!("<default type=\"{setting}\">{value}</default>\n"));
    }
    xml.push_str(&format!("<setting type=\"maximumRecords\">{RECORDS_MAX}</setting>\n"));
    for relation in
        ["=", "==", "&lt;&gt;", "adj", "all", "any", "exact", "&lt;", "&gt;", "&lt;=", "&gt;=", "within"]
    {
        xml.push_str(&format!("<supports type=\"relation\">{relation}</supports>\n"));
    }
    for modifier in ["masked", "unmasked", "ignoreCase", "ignoreAccents", "relevant", "word"] {
        xml.push_str(&format!("<supports type=\"relationModifier\">{modifier}</supports>\n"));
    }
    for (kind, value) in [("maskingCharacter", "*"), ("sort", ""), ("scan", "")] {
        xml.push_str(&format!("<supports type=\"{kind}\">{value}</supports>\n"));
    }
    xml.push_str("</configInfo>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use oaimend_repository::xml::XmlReader;

    #[test]
    fn the_description_names_indexes_and_schemas() {
        let database = Database {
            transport: "https".to_owned(),
            host: "oai.example".to_owned(),
            port: 443,
            path: "a&b/_sru".to_owned(),
        };
        let explain =
            |query: &str| Request::parse(query.as_bytes()).expect(query).envelope.explain(&database);
        let xml = explain("operation=explain&version=1.1");
        for expected in [
            "<explainResponse xmlns=\"http://www.loc.gov/zing/srw/\">\n<version>1.1</version><record>",
            "<serverInfo protocol=\"SRU\" version=\"1.1\" transport=\"https\" method=\"GET POST\">\
             <host>oai.example</host><port>443</port><database>a&amp;b/_sru</database></serverInfo>",
            "<set name=\"dc\" identifier=\"info:srw/cql-context-set/1/dc-v1.1\"/>",
            "<index search=\"true\" scan=\"true\" sort=\"true\"><title lang=\"en\">Date</title>\
             <map><name set=\"dc\">date</name></map></index>",
            "<schema name=\"marcxml\" identifier=\"info:srw/schema/1/marcxml-v1.1\" sort=\"false\">",
            "<setting type=\"maximumRecords\">100</setting>",
            "</record>\n<echoedExplainRequest><version>1.1</version></echoedExplainRequest>\n</explainResponse>",
        ] {
            assert!(xml.contains(expected), "{expected} in {xml}");
        }
        assert!(!xml.contains("resultSetId"));
        let mut reader = XmlReader::new(&xml);
        while reader.read().expect("well-formed").is_some() {}
        let new = explain("");
        assert!(new.contains("transport=\"https\"><host>") && new.contains("<queryExample>"), "{new}");
        let escaped = explain("recordXMLEscaping=string");
        assert!(escaped.contains("<recordData>&lt;explain xmlns"), "{escaped}");
    }
}
