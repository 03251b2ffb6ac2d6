//! Static repository files that deviate from the specification, as live pages do.

use crate::fixtures::proxy::LIST;
use crate::fixtures::static_files::{Kept, dc_record, file_of, file_with, own_record};
use crate::fixtures::static_lists::{between, error, harvested, identifiers, page};

const OAI: &str = "http://www.openarchives.org/OAI/2.0/";

/// A list without metadataPrefix cannot be requested: its records count as broken, and the log says so.
#[test]
fn records_of_a_list_without_prefix_count_as_broken() {
    let file = file_with(&(0..4).map(dc_record).collect::<String>(), &(own_record(0) + &own_record(7)));
    let nested = file.replacen("&lt;b&gt;", "&lt;<b>", 1);
    for (what, file) in [("well-formed", &file), ("malformed", &nested)] {
        for tag in ["<ListRecords xmlns:x=", "<ListRecords metadataPrefix=\" \" xmlns:x="] {
            let kept = Kept::local(file.replace("<ListRecords metadataPrefix=\"x\" xmlns:x=", tag));
            let proxy = kept.serve();
            assert_eq!(harvested(&proxy), [0, 1, 2, 3], "{what}");
            let reported = &proxy.admin_json("/-/repositories/x")["static_file"];
            assert_eq!(
                (&reported["records"], &reported["broken"]),
                (&6.into(), &2.into()),
                "{what} {tag}: {reported}"
            );
            let query = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:0";
            assert_eq!(identifiers(&page(&proxy, query)), [0], "{what}");
            let query = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:7";
            assert_eq!(error(&proxy, query), "cannotDisseminateFormat", "{what}");
        }
    }
}

/// Records that are not found under the prefix of the list count as broken.
#[test]
fn records_with_an_undeclared_prefix_count_as_broken() {
    let of_x = (own_record(0) + &own_record(2)).replace("<oai:", "<o:").replace("</oai:", "</o:");
    let kept = Kept::local(file_with(&dc_record(0), &of_x));
    let proxy = kept.serve();
    assert_eq!(harvested(&proxy), [0]);
    let reported = &proxy.admin_json("/-/repositories/x")["static_file"];
    assert_eq!((&reported["records"], &reported["broken"]), (&3.into(), &2.into()), "{reported}");
    let got = proxy.get("/x?verb=ListRecords&metadataPrefix=x");
    assert_eq!(got.status, 503, "{}", got.text());
}

#[test]
fn records_after_a_long_comment_are_found() {
    let comment = format!("<!--{}-->", "long ".repeat(40_000));
    let kept = Kept::local(file_with(&(comment + &dc_record(0)), &own_record(0)));
    assert_eq!(harvested(&kept.serve()), [0]);
}

#[test]
fn variants_of_the_oai_namespace_are_served() {
    let file = file_of(3);
    for uri in [
        "https://www.openarchives.org/OAI/2.0/",
        "http://www.openarchives.org/OAI/2.0",
        " http://www.openarchives.org/OAI/2.0/ ",
    ] {
        let kept =
            Kept::local(file.replace(&format!("xmlns:oai=\"{OAI}\""), &format!("xmlns:oai=\"{uri}\"")));
        let proxy = kept.serve();
        assert_eq!(harvested(&proxy), [0, 1, 2], "{uri}");
        let of_x = page(&proxy, "verb=ListRecords&metadataPrefix=x");
        assert_eq!(identifiers(&of_x), [0, 2], "{uri}");
        let formats = page(&proxy, "verb=ListMetadataFormats");
        assert_eq!(between(&formats, "<metadataPrefix>", "</metadataPrefix>"), ["oai_dc", "x"], "{uri}");
        let identify = page(&proxy, "verb=Identify");
        assert!(
            identify.contains("<repositoryName>Letters &amp; maps</repositoryName>"),
            "{uri}: {identify}"
        );
        page(&proxy, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:1");
    }
}

/// The same holds for the namespace of the file and for namespaces of payloads.
#[test]
fn other_namespaces_with_https_are_served() {
    let file = file_of(3);
    for (from, to) in [
        ("xmlns=\"http://www.openarchives", "xmlns=\"https://www.openarchives"),
        ("xmlns:dc=\"http://", "xmlns:dc=\"https://"),
        ("xmlns:xsi=\"http://", "xmlns:xsi=\"https://"),
        ("xmlns:oai_dc=\"http://", "xmlns:oai_dc=\"https://"),
    ] {
        let kept = Kept::local(file.replace(from, to));
        let proxy = kept.serve();
        assert_eq!(harvested(&proxy), [0, 1, 2], "{to}");
        for query in ["verb=Identify", "verb=ListMetadataFormats", "verb=ListRecords&metadataPrefix=x"] {
            page(&proxy, query);
        }
    }
}

/// Identify is corrected, whatever its elements declare.
#[test]
fn identify_is_corrected_with_declarations_in_its_elements() {
    let file = file_of(3)
        .replace("YYYY-MM-DD<", "YYYY-MM-DDThh:mm:ssZ<")
        .replace(">no</oai:deleted", ">persistent</oai:deleted")
        .replace(">2001-01-01</oai:earliest", ">2001-01-01T00:00:00Z</oai:earliest");
    let (head, rest) = file.split_once("<Identify>").expect("it is there");
    let (identify, rest) = rest.split_once("<oai:description>").expect("it is there");
    let unprefixed = identify
        .replace("</oai:", "</")
        .replace("<oai:", "<")
        .replace("Name>L", &format!("Name xmlns=\"{OAI}\">L"));
    let declared = ["baseURL", "granularity", "deletedRecord", "earliestDatestamp"].iter().fold(
        identify.to_owned(),
        |text, name| {
            text.replace(&format!("<oai:{name}>"), &format!("<{name} xmlns='{OAI}' >"))
                .replace(&format!("</oai:{name}>"), &format!("</{name}\n>"))
        },
    );
    let prefixed = ["baseURL", "granularity", "deletedRecord", "earliestDatestamp"].iter().fold(
        identify.to_owned(),
        |text, name| {
            text.replace(&format!("<oai:{name}>"), &format!("<o:{name} xmlns:o=\"{OAI}\">"))
                .replace(&format!("</oai:{name}>"), &format!("</o:{name}>"))
        },
    );
    for (what, identify) in [("default", declared), ("prefix", prefixed), ("none", unprefixed)] {
        let kept = Kept::local(format!("{head}<Identify>{identify}<oai:description>{rest}"));
        let proxy = kept.serve();
        let identify = page(&proxy, "verb=Identify");
        let values = |name: &str| {
            let element = between(&identify, &format!("<{name}"), "</").first().copied().unwrap_or_default();
            element.split_once('>').unwrap_or_default().1.to_owned()
        };
        let found = ["baseURL", "granularity", "deletedRecord", "earliestDatestamp"].map(values);
        let url = format!("http://{}/x", proxy.address());
        assert_eq!(found, [url.as_str(), "YYYY-MM-DD", "no", "2001-01-01"], "{what}: {identify}");
    }
}

/// The granularity is days before anybody asked for Identify.
#[test]
fn datestamps_are_days_from_the_first_request_on() {
    let file = file_of(3).replace("2001-01-01</oai:datestamp>", "2001-01-01T10:11:12Z</oai:datestamp>");
    for verb in ["ListRecords", "ListIdentifiers"] {
        let kept = Kept::local(&file);
        let proxy = kept.serve();
        let first = page(&proxy, &format!("verb={verb}&metadataPrefix=oai_dc"));
        assert_eq!(between(&first, "<datestamp>", "</datestamp>"), ["2001-01-01"; 3], "{verb}");
    }
}

#[test]
fn text_around_the_document_does_not_matter() {
    let file = file_of(3);
    let warning = "<br />\n<b>Warning</b>: session_start() in Repository on line <b>3</b><br />\n";
    let latin = file.replace("encoding=\"UTF-8\"", "encoding=\"iso-8859-1\"").replace("maps", "caf\u{e9}");
    let latin: Vec<u8> = latin.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1")).collect();
    let plain = file.as_bytes();
    let long = "junk & <b> ".repeat(4_000);
    for (what, bytes) in [
        ("blank lines", [b"\n\n \t", plain].concat()),
        ("a byte order mark after a blank line", [b"\n\xEF\xBB\xBF", plain].concat()),
        ("text", [b"Notice: undefined index\n", plain].concat()),
        ("a warning", [warning.as_bytes(), plain].concat()),
        ("junk before Latin-1", [warning.as_bytes(), &latin].concat()),
        ("a doctype and junk", [b"<!DOCTYPE html>\nx", plain].concat()),
        ("long junk", [long.as_bytes(), plain].concat()),
        ("trailing text", [plain, b"done & dusted"].concat()),
        ("trailing HTML", [plain, warning.as_bytes()].concat()),
        ("long trailing junk", [plain, long.as_bytes()].concat()),
        ("zero bytes after the end", [plain, &[0; 3]].concat()),
        ("no declaration", file.split_once("?>\n").expect("it is there").1.into()),
    ] {
        let kept = Kept::local(bytes);
        let proxy = kept.serve();
        let got = proxy.get(LIST);
        assert_eq!(got.status, 200, "{what}: {}", got.text());
        assert_eq!(harvested(&proxy), [0, 1, 2], "{what}");
        let identify = page(&proxy, "verb=Identify");
        let name = if what.ends_with("Latin-1") { "Letters &amp; caf\u{e9}" } else { "Letters &amp; maps" };
        assert!(identify.contains(&format!("<repositoryName>{name}</repositoryName>")), "{what}: {identify}");
    }
    let got = Kept::local(warning).serve().get(LIST);
    assert_eq!(got.status, 503, "{}", got.text());
    assert!(got.text().contains("it is not a static repository"), "{}", got.text());
}
