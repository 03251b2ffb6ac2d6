//! The worker beside `xsltproc`: records of about 4 KB with a crosswalk to Dublin Core, as single payloads and as one big
//! file. Both runs alternate, and the fastest of each counts. Debian has `xsltproc` in the package of this name.

use futures::StreamExt as _;
use oaimend_base::clock;
use oaimend_xslt::{Sheet, WorkerProgram, XsltLimits, XsltWorker};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const RECORDS: usize = 20_000;
const ROUNDS: usize = 7;

const SHEET: &str = r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:m="http://www.loc.gov/MARC21/slim" xmlns:dc="http://purl.org/dc/elements/1.1/" exclude-result-prefixes="m">
<xsl:template match="/m:collection"><all><xsl:apply-templates select="m:record"/></all></xsl:template>
<xsl:template match="m:record"><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/">
  <xsl:for-each select="m:datafield[@tag=245]"><dc:title><xsl:for-each select="m:subfield[contains('abfghk', @code)]"><xsl:if test="position() &gt; 1"><xsl:text> </xsl:text></xsl:if><xsl:value-of select="normalize-space(.)"/></xsl:for-each></dc:title></xsl:for-each>
  <xsl:for-each select="m:datafield[@tag=100 or @tag=700]"><dc:creator><xsl:value-of select="m:subfield[@code='a']"/></dc:creator></xsl:for-each>
  <xsl:for-each select="m:datafield[@tag=650]"><dc:subject><xsl:value-of select="m:subfield[@code='a']"/></dc:subject></xsl:for-each>
  <xsl:for-each select="m:datafield[@tag=520]"><dc:description><xsl:value-of select="m:subfield[@code='a']"/></dc:description></xsl:for-each>
  <xsl:for-each select="m:datafield[@tag=260]/m:subfield[@code='c']"><dc:date><xsl:value-of select="translate(., 'c.[]', '')"/></dc:date></xsl:for-each>
  <xsl:for-each select="m:controlfield[@tag=001]"><dc:identifier>urn:x:<xsl:value-of select="."/></dc:identifier></xsl:for-each>
</oai_dc:dc></xsl:template>
</xsl:stylesheet>"#;

/// The content of a record, with the namespace declared at the element or not.
fn record(number: usize, declaration: &str) -> String {
    let mut record = format!(
        "<record{declaration}><leader>00925njm  22002777a 4500</leader><controlfield tag=\"001\">{number}</controlfield>"
    );
    let field = |record: &mut String, tag: u32, subfields: &[(char, String)]| {
        let _ = write!(record, "<datafield tag=\"{tag}\" ind1=\"1\" ind2=\" \">");
        for (code, text) in subfields {
            let _ = write!(record, "<subfield code=\"{code}\">{text}</subfield>");
        }
        record.push_str("</datafield>\n");
    };
    field(
        &mut record,
        245,
        &[('a', format!("Tides of the northern harbours {number} :")), ('b', "an atlas é".into())],
    );
    for author in 0..4 {
        field(
            &mut record,
            if author == 0 { 100 } else { 700 },
            &[('a', format!("Berg, Anna {author}")), ('4', "aut".into())],
        );
    }
    field(&mut record, 260, &[('a', "Oslo :".into()), ('b', "Havn,".into()), ('c', "c1999.".into())]);
    for subject in 0..8 {
        field(&mut record, 650, &[('a', format!("Subject number {subject}")), ('2', "lcsh".into())]);
    }
    field(&mut record, 520, &[('a', "An abstract of some length, as records have it. ".repeat(20))]);
    for other in 0..8 {
        field(&mut record, 900 + other, &[('a', "local data".into()), ('b', "more".into())]);
    }
    record.push_str("</record>");
    record
}

fn main() {
    const NAMESPACE: &str = " xmlns=\"http://www.loc.gov/MARC21/slim\"";
    let payloads: Vec<Vec<u8>> = (0..RECORDS).map(|number| record(number, NAMESPACE).into_bytes()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let (sheet_file, records_file) = (folder.path().join("sheet.xsl"), folder.path().join("records.xml"));
    let records: String = (0..RECORDS).map(|number| record(number, "")).collect();
    std::fs::write(&sheet_file, SHEET).expect("a file");
    std::fs::write(&records_file, format!("<collection{NAMESPACE}>{records}</collection>")).expect("a file");
    let bytes = payloads.iter().map(Vec::len).sum::<usize>();
    println!("{RECORDS} records of {} bytes", bytes / RECORDS);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let program =
        WorkerProgram { program: env!("CARGO_BIN_EXE_oaimend-xslt-worker").into(), arguments: Vec::new() };
    let worker = XsltWorker::new(program, XsltLimits::default());
    let sheet = Sheet::read(SHEET.into()).expect("a sheet");
    runtime.block_on(worker.check(&sheet)).expect("libxslt is installed");
    let (mut of_worker, mut of_xsltproc) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let began = clock::uptime();
        let output = runtime.block_on(async {
            let transformed = payloads.iter().map(|payload| worker.transform(&sheet, payload.clone()));
            let transformed = futures::stream::iter(transformed).buffered(64);
            transformed.fold(0, async |sum, output| sum + output.expect("a record").len()).await
        });
        of_worker = of_worker.min(clock::uptime() - began);

        let began = clock::uptime();
        let status = Command::new("xsltproc")
            .arg("--output")
            .arg(folder.path().join("output.xml"))
            .args([&sheet_file, &records_file])
            .stdout(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "xsltproc is not installed");
        of_xsltproc = of_xsltproc.min(clock::uptime() - began);
        let others = std::fs::metadata(folder.path().join("output.xml")).map_or(0, |file| file.len());
        println!("{output} and {others} bytes of output");
    }
    let rate = |time: Duration| RECORDS as f64 / time.as_secs_f64();
    println!("worker   {:.0} records/s", rate(of_worker));
    println!("xsltproc {:.0} records/s", rate(of_xsltproc));
    println!("ratio    {:.2}", rate(of_worker) / rate(of_xsltproc));
}
