//! Static repository files of the tests' own making, and mappings for them.
#![allow(dead_code, reason = "each test binary uses its part")]

use super::proxy::Proxy;
use oaimend::config::{Config, Limits, Repositories, Reread};
use std::path::PathBuf;

/// A static repository file as the specification shows it, with `records` records in oai_dc and
/// every other one of them in `x`, which is in the file's own namespace.
pub(crate) fn file_of(records: usize) -> String {
    let dc: String = (0..records).map(dc_record).collect();
    let own: String = (0..records).step_by(2).map(own_record).collect();
    file_with(&dc, &own)
}

/// A file with these records.
pub(crate) fn file_with(dc: &str, own: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<Repository xmlns="http://www.openarchives.org/OAI/2.0/static-repository"
    xmlns:oai="http://www.openarchives.org/OAI/2.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/static-repository http://www.openarchives.org/OAI/2.0/static-repository.xsd">
  <Identify>
    <oai:repositoryName>Letters &amp; maps</oai:repositoryName>
    <oai:baseURL>http://gateway.example/oai/letters.example/static.xml</oai:baseURL>
    <oai:protocolVersion>2.0</oai:protocolVersion>
    <oai:adminEmail>keeper@letters.example</oai:adminEmail>
    <oai:earliestDatestamp>2001-01-01</oai:earliestDatestamp>
    <oai:deletedRecord>no</oai:deletedRecord>
    <oai:granularity>YYYY-MM-DD</oai:granularity>
    <oai:description><oai-identifier xmlns="http://www.openarchives.org/OAI/2.0/oai-identifier"
        xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai-identifier http://www.openarchives.org/OAI/2.0/oai-identifier.xsd"
        ><scheme>oai</scheme><repositoryIdentifier>letters.example</repositoryIdentifier><delimiter>:</delimiter
        ><sampleIdentifier>oai:letters.example:1</sampleIdentifier></oai-identifier></oai:description>
  </Identify>
  <ListMetadataFormats>
    <oai:metadataFormat>
      <oai:metadataPrefix>oai_dc</oai:metadataPrefix>
      <oai:schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</oai:schema>
      <oai:metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</oai:metadataNamespace>
    </oai:metadataFormat>
    <oai:metadataFormat>
      <oai:metadataPrefix>x</oai:metadataPrefix>
      <oai:schema>http://letters.example/x.xsd</oai:schema>
      <oai:metadataNamespace>http://letters.example/x</oai:metadataNamespace>
    </oai:metadataFormat>
  </ListMetadataFormats>
  <ListRecords metadataPrefix="oai_dc">
{dc}  </ListRecords>
  <!-- the second format -->
  <ListRecords metadataPrefix="x" xmlns:x="http://letters.example/x">
{own}  </ListRecords>
</Repository>
"#
    )
}

/// The day of a record: ten of them have the same one.
pub(crate) fn day(number: usize) -> String {
    format!("20{:02}-{:02}-{:02}", 1 + number / 1200, 1 + number / 100 % 12, 1 + number / 10 % 10)
}

/// A record in oai_dc, whose prefixes are declared in part around it.
pub(crate) fn dc_record(number: usize) -> String {
    format!(
        "    <oai:record>\n      <oai:header><oai:identifier>oai:letters.example:{number}</oai:identifier>\
         <oai:datestamp>{}</oai:datestamp></oai:header>\n      <oai:metadata>{}</oai:metadata>\n    </oai:record>\n",
        day(number),
        dc_payload(number)
    )
}

/// What it carries.
pub(crate) fn dc_payload(number: usize) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xsi:schemaLocation=\"\
         http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>Letter {number} &lt;b&gt;</dc:title><!-- <oai:record> --><dc:creator><![CDATA[A & B]]></dc:creator></oai_dc:dc>"
    )
}

/// The same item in another format, with an about and an element that has no prefix.
pub(crate) fn own_record(number: usize) -> String {
    format!(
        "    <oai:record><oai:header><oai:identifier>oai:letters.example:{number}</oai:identifier>\
         <oai:datestamp>{}</oai:datestamp></oai:header><oai:metadata>{}</oai:metadata>\
         <oai:about><x:note>{number}</x:note></oai:about></oai:record>\n",
        day(number),
        own_payload(number)
    )
}

/// What it carries. One of its elements is in the namespace that is the default of the file.
pub(crate) fn own_payload(number: usize) -> String {
    format!("<x:letter xsi:type=\"x:short\"><x:name>L{number}</x:name><plain>&#228;</plain></x:letter>")
}

/// A folder with a file, and one with the mapping `x` for it.
pub(crate) struct Kept {
    folder: tempfile::TempDir,
    mapping: String,
}

impl Kept {
    /// A file of this machine, looked at for each request.
    pub(crate) fn local(text: impl AsRef<[u8]>) -> Self {
        let kept = Self::mapped("static_file = \"../static.xml\"\nstatic_check_secs = 0\n");
        kept.write(text);
        kept
    }

    /// A mapping of the test's own.
    pub(crate) fn mapped(mapping: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("mappings")).expect("writable");
        std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("writable");
        Self { folder, mapping: mapping.to_owned() }
    }

    /// The same with more in the mapping.
    pub(crate) fn with(self, more: &str) -> Self {
        let mapping = format!("{}{more}\n", self.mapping);
        std::fs::write(self.folder.path().join("mappings/x.toml"), &mapping).expect("writable");
        Self { mapping, ..self }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("static.xml")
    }

    /// Puts another file in the place of the one that is there, as one should.
    pub(crate) fn write(&self, text: impl AsRef<[u8]>) {
        let unfinished = self.folder.path().join("unfinished");
        std::fs::write(&unfinished, text).expect("writable");
        std::fs::rename(&unfinished, self.path()).expect("writable");
    }

    /// A proxy with the mapping.
    pub(crate) fn serve(&self) -> Proxy {
        Proxy::with(|config| self.configure(config))
    }

    pub(crate) fn mappings(&self) -> PathBuf {
        self.folder.path().join("mappings")
    }

    pub(crate) fn configure(&self, config: &mut Config) {
        config.repositories = Repositories::new(Some(self.mappings()), Limits::default());
        assert_eq!(config.repositories.reread().expect("a folder"), Reread::Changed);
    }
}
