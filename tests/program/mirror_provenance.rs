//! The provenance that the mirror adds to records which describe earlier harvests.

use oaimend_mirror::view::{MirrorRepository, MirroredSource, ViewOptions};
use oaimend_store::NewRecord;

use crate::fixtures::mirror::{Mirror, ask, live, source};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge;

/// 2023-11-14T22:13:20Z.
const START_SECS: i64 = 1_700_000_000;

fn mirror() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], &[]);
    mirror.commit("x", "oai_dc", Vec::new(), true);
    mirror
}

/// The description of the last harvest is the outermost one, whatever the source describes.
#[test]
fn provenance_of_a_source_goes_into_that_of_the_mirror() {
    const SPACE: &str = "http://www.openarchives.org/OAI/2.0/provenance";
    let base_url = "http://s.example/?a&b";
    let source = MirroredSource { provenance_base_url: Some(base_url.into()), ..source("x") };
    let fields = |base_url: &str, prefix: &str| {
        let escaped = base_url.replace('&', "&amp;");
        [
            ("baseURL", escaped.as_str()),
            ("identifier", "oai:x:0"),
            ("datestamp", "1999-01-01"),
            ("metadataNamespace", "u"),
        ]
        .map(|(name, value)| format!("<{prefix}{name}>\n{value}</{prefix}{name}>"))
        .concat()
    };
    let described = |prefix: &str, content: &str| {
        format!(
            "<{prefix}originDescription harvestDate=\"2000-01-01\" altered=\"true\">{content}\
             </{prefix}originDescription>"
        )
    };
    let container = |prefix: &str, content: &str| {
        let declared =
            if prefix.is_empty() { String::new() } else { format!(":{}", &prefix[..prefix.len() - 1]) };
        format!(
            "<about><{prefix}provenance xmlns{declared}=\"{SPACE}\">{content}</{prefix}provenance></about>"
        )
    };
    let first = described("", &fields("http://other.example/", ""));
    let via = described(
        "",
        &format!("{}{}", fields("http://via.example/", ""), described("", &fields(base_url, ""))),
    );
    let prefixed = described("p:", &fields("http://other.example/", "p:"));
    let ours = described("", &fields(base_url, ""));
    let rights = "<about><r xmlns=\"u\"/></about>";
    let cases = [
        // The abouts of the source, the prefix of its description, and the description that is nested in ours.
        (container("", &first), "", Some(&first)),
        (container("p:", &prefixed), "p:", Some(&prefixed)),
        (format!("{rights}{}", container("", &first)), "", Some(&first)),
        // Another repository has harvested it from our source, and our source from that one.
        (container("", &via), "", Some(&via)),
        // It was harvested from our source with provenance.
        (container("", &ours), "", None),
        (format!("{}{}", container("", &first), container("", &ours)), "", None),
    ];
    for (about, prefix, nested) in cases {
        let mirror = mirror();
        let record = live("oai:x:0", &["a"], "title");
        let xml = String::from_utf8(record.bytes.to_vec()).expect("text");
        let xml = xml.replace("</record>", &format!("{about}</record>"));
        mirror.commit("x", "oai_dc", vec![NewRecord { bytes: xml.into(), content_hash: 1, ..record }], true);
        let view = MirrorRepository::new(mirror.stores(), ViewOptions::default(), source.clone());
        let page = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:0");
        page.valid(Strictness::Schema);
        let Some(nested) = nested else {
            assert!(page.body.contains(&about), "{about}: {}", page.body);
            continue;
        };
        let start = format!(
            "<{prefix}originDescription harvestDate=\"{}\" altered=\"false\">\
             <{prefix}baseURL>http://s.example/?a&amp;b</{prefix}baseURL>",
            mirror.now()
        );
        let at = page.body.find(&start).unwrap_or_else(|| panic!("{start} is not in {}", page.body));
        let end =
            format!("</{prefix}metadataNamespace>{nested}</{prefix}originDescription></{prefix}provenance>");
        assert!(page.body[at..].contains(&end), "{end} is not in {}", page.body);
        assert_eq!(page.body.matches("provenance>").count(), 1, "{}", page.body);
        let container = page.body.find(&format!("<{prefix}provenance ")).expect("a container");
        let container = page.body[container..].split("</about>").next().expect("its end");
        judge::provenance(container.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}: {container}"));
    }
}

/// A payload or a comment that names the namespace is content, and a container with two descriptions cannot take one.
#[test]
fn provenance_is_read_from_abouts_alone() {
    let mirror = mirror();
    let base_url = "http://s.example/";
    let source = MirroredSource { provenance_base_url: Some(base_url.into()), ..source("x") };
    let space = "http://www.openarchives.org/OAI/2.0/provenance";
    let description = format!(
        "<originDescription><baseURL>{base_url}</baseURL><identifier>oai:x:0</identifier></originDescription>"
    );
    let container = |content: &str| format!("<provenance xmlns=\"{space}\">{content}</provenance>");
    for xml in [
        format!(
            "<record><header><identifier/></header><metadata>{}</metadata></record>",
            container(&description)
        ),
        format!(
            "<record><header><identifier/></header><metadata><a/></metadata><!--<about>{}</about>--></record>",
            container(&description)
        ),
        format!(
            "<record><header><identifier/></header><metadata><a/></metadata><about>{}</about></record>",
            container(&description.repeat(2))
        ),
        format!(
            "<record><header><identifier/></header><metadata><a/></metadata><about><x>{}</x></about></record>",
            container(&description)
        ),
    ] {
        let record = NewRecord { bytes: xml.clone().into(), ..live("oai:x:0", &["a"], "") };
        mirror.commit("x", "oai_dc", vec![NewRecord { content_hash: xml.len() as u64, ..record }], true);
        let view = MirrorRepository::new(mirror.stores(), ViewOptions::default(), source.clone());
        let page = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:0");
        assert!(
            page.body.contains("</originDescription></provenance></about></record>"),
            "{xml}: {}",
            page.body
        );
        assert!(
            page.body
                .contains(&xml[xml.find("<metadata>").expect("a payload")..xml.len() - "</record>".len()])
        );
    }
}
