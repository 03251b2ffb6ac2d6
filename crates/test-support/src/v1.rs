//! Random pages in OAI-PMH 1.1.

use super::random::{Page, Random, page};

const NEW_ROOT: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"";
const OLD_ROOT: &str = "<ListRecords xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListRecords\"";
const NEW_REQUEST: &str =
    "<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://example.org/oai</request>";
const OLD_REQUEST: &str =
    "<requestURL>http://example.org/oai?verb=ListRecords&metadataPrefix=oai_dc</requestURL>";
const CONTAINER: &str = " xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\"";

/// A ListRecords page in OAI-PMH 1.1.
pub fn v1_page(random: &mut Random) -> Page {
    let mut page = page(random);
    page.head = page.head.replace(NEW_ROOT, OLD_ROOT).replace(NEW_REQUEST, OLD_REQUEST);
    page.head = page.head.replacen("<ListRecords>", "", 1);
    page.tail = page.tail.replace("</OAI-PMH>", "");
    for (record, _) in &mut page.records {
        *record = old_record(record, random.chance(50));
    }
    page
}

fn old_record(record: &str, is_bare: bool) -> String {
    let mut old = record.replace(CONTAINER, "").replace("oai_dc:dc", "dc:dc");
    if is_bare && old.contains("xmlns:dc=") {
        old = old.replace("xmlns:dc=", "xmlns=").replace("<dc:", "<").replace("</dc:", "</");
    }
    if old.contains("<header status=\"deleted\">") {
        old = old.replace("<header status=\"deleted\">", "<header>");
        old = old.replacen("<record>", "<record status=\"deleted\">", 1);
    }
    old
}
