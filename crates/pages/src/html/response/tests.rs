//! Tests of whole pages: hostile texts, links, and lists that are not complete.

use super::super::super::oai_page::{OaiPage, RequestAddress};
use crate::html::response::*;
use oaimend_html::Site;
use oaimend_oai::Request;

const SCRIPT: &str = "&lt;script>alert(1)&lt;/script>";
const ATTRIBUTE: &str = "&quot;&gt;&lt;script>";

fn response(content: &str) -> OaiPage {
    let xml = format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>{SCRIPT}</responseDate>\
         <request>{SCRIPT}</request>{content}</OAI-PMH>"
    );
    OaiPage::read(xml.as_bytes()).expect("it is well-formed")
}

fn rendered(query: &str, show: impl FnOnce(&mut ResponsePage<'_>)) -> String {
    let site = Site::new("Site", None, "https://e.org/b");
    let request = Request::parse(query.as_bytes()).ok();
    let query = request.as_ref().map_or(query, Request::query).to_owned();
    let address = RequestAddress { repository: "x".to_owned(), query };
    let mut page = ResponsePage {
        site: &site,
        address: &address,
        request: request.as_ref(),
        repository: Some("x"),
        has_record_pages: false,
        response: ShownResponse::NotShown(NoResponseReason::Busy),
    };
    show(&mut page);
    page.render()
}

fn whole(query: &str, content: &str) -> String {
    let page = response(content);
    // The page lives as long as the rendering.
    let page: &'static OaiPage = Box::leak(Box::new(page));
    rendered(query, |shown| shown.response = ShownResponse::Whole(page))
}

/// The URLs of all links.
fn links(page: &str) -> Vec<&str> {
    page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn header(identifier: &str) -> String {
    format!("<header><identifier>{identifier}</identifier><datestamp>2024-05-06</datestamp></header>")
}

#[test]
fn script_in_every_field_is_inert() {
    let pages = [
        (
            "verb=Identify",
            format!(
                "<Identify><repositoryName>{SCRIPT}</repositoryName><baseURL>javascript:alert(1)</baseURL>\
                 <adminEmail>{SCRIPT}</adminEmail><x>data:text/html,x</x><description><a b=\"{ATTRIBUTE}\">{SCRIPT}</a>\
                 </description></Identify>"
            ),
        ),
        (
            "verb=ListMetadataFormats",
            format!(
                "<ListMetadataFormats><metadataFormat><metadataPrefix>{SCRIPT}</metadataPrefix>\
                 <schema>javascript:alert(1)</schema><metadataNamespace>{SCRIPT}</metadataNamespace></metadataFormat>\
                 </ListMetadataFormats>"
            ),
        ),
        (
            "verb=ListSets",
            format!(
                "<ListSets><set><setSpec>{SCRIPT}</setSpec><setName>{SCRIPT}</setName><setDescription><a>{SCRIPT}</a>\
                 </setDescription></set><resumptionToken>{SCRIPT}</resumptionToken></ListSets>"
            ),
        ),
        (
            "verb=ListRecords&metadataPrefix=%3Cscript%3E",
            format!(
                "<ListRecords><record><header><identifier>{SCRIPT}</identifier><datestamp>{ATTRIBUTE}</datestamp>\
                 <setSpec>{SCRIPT}</setSpec></header><metadata><dc xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
                 xml:lang=\"{ATTRIBUTE}\"><dc:title>{SCRIPT}</dc:title><dc:creator>{SCRIPT}</dc:creator></dc></metadata>\
                 </record><resumptionToken cursor=\"{ATTRIBUTE}\">{ATTRIBUTE}</resumptionToken></ListRecords>"
            ),
        ),
        (
            "verb=GetRecord&identifier=%3Cscript%3E&metadataPrefix=%22%3E%3Cscript%3E",
            format!(
                "<GetRecord><record><header><identifier>{SCRIPT}</identifier><datestamp>{SCRIPT}</datestamp>\
                 <setSpec>{SCRIPT}</setSpec></header><metadata><script xmlns=\"http://www.w3.org/1999/xhtml\" \
                 src=\"javascript:alert(1)\">{SCRIPT}</script></metadata></record></GetRecord>"
            ),
        ),
        ("verb=%3Cscript%3E", format!("<error code=\"{ATTRIBUTE}\">{SCRIPT}</error>")),
        ("verb=<script>\"", format!("<error code=\"badVerb\">{SCRIPT}</error>")),
    ];
    for (query, content) in pages {
        let page = whole(query, &content);
        assert!(!page.contains("<script"), "{query}: {page}");
        for link in links(&page) {
            let is_safe = ["/b/", "https://", "http://", "#"].iter().any(|start| link.starts_with(start));
            assert!(is_safe && !link.contains('<'), "{query}: {link}");
        }
    }
    let failed = rendered("verb=Identify", |page| {
        page.response =
            ShownResponse::Failed { text: "<script>\nFault: <script>.\n", retry_after_secs: Some(7) };
    });
    assert!(!failed.contains("<script") && failed.contains("in 7 seconds"), "{failed}");
}

#[test]
fn records_have_links_to_pages_or_requests() {
    let list = format!("<ListIdentifiers>{}{}</ListIdentifiers>", header("a/1&amp;\"é"), header(""));
    let query = "verb=ListIdentifiers&metadataPrefix=marc&set=s&from=2024-01-01";
    let page = whole(query, &list);
    let get_record = "/b/x?verb=GetRecord&amp;identifier=a%2F1%26%22%C3%A9&amp;metadataPrefix=marc";
    assert!(links(&page).contains(&get_record), "{page}");
    let records = "/b/x?verb=ListRecords&amp;metadataPrefix=marc&amp;set=s&amp;from=2024-01-01";
    assert!(links(&page).contains(&records), "{page}");
    assert!(page.contains("https://e.org/b/x?verb=ListIdentifiers&amp;"), "{page}");
    assert!(
        links(&page)
            .contains(&"/b/x/xml?verb=ListIdentifiers&amp;metadataPrefix=marc&amp;set=s&amp;from=2024-01-01")
    );
    let response = response(&list);
    let mirrored = rendered(query, |page| {
        page.has_record_pages = true;
        // The page lives as long as the rendering.
        page.response = ShownResponse::Whole(Box::leak(Box::new(response)));
    });
    assert!(links(&mirrored).contains(&"/b/x/record/a%2F1%26%22%C3%A9"), "{mirrored}");
    assert!(!mirrored.contains("GetRecord"), "{mirrored}");
}

#[test]
fn tokens_lead_to_the_next_page() {
    let with_token = |token: &str| {
        whole(
            "verb=ListIdentifiers&metadataPrefix=oai_dc",
            &format!("<ListIdentifiers>{}{token}</ListIdentifiers>", header("a")),
        )
    };
    let page = with_token(
        "<resumptionToken cursor=\"5\" completeListSize=\"9\">a&amp;b=c/é+%\"&lt;</resumptionToken>",
    );
    let next = "/b/x?verb=ListIdentifiers&amp;resumptionToken=a%26b%3Dc%2F%C3%A9%2B%25%22%3C";
    assert!(links(&page).contains(&next) && page.contains("6–6 of 9"), "{page}");
    for last in ["<resumptionToken/>", ""] {
        let page = with_token(last);
        assert!(page.contains("end of the list") && !page.contains("Next page"), "{page}");
    }
    let page = with_token(&format!(
        "<resumptionToken cursor=\"{}\">{}</resumptionToken>",
        u64::MAX,
        "x".repeat(6_000)
    ));
    assert!(page.contains("its resumptionToken is too long") && !page.contains("xxx"), "{page}");
}

#[test]
fn a_response_that_was_broken_off_never_looks_complete() {
    let whole = format!(
        "<OAI-PMH><ListIdentifiers>{}{}<resumptionToken cursor=\"0\" completeListSize=\"2\"/></ListIdentifiers>",
        header("first"),
        header("second")
    );
    for end in 0..whole.len() {
        let start = OaiPage::read_start(whole.get(..end).unwrap_or_default().as_bytes());
        let page = rendered("verb=ListIdentifiers&metadataPrefix=oai_dc", |page| {
            // The page lives as long as the rendering.
            page.response = ShownResponse::BrokenOff(Box::leak(Box::new(start)));
        });
        assert!(page.contains("The response was broken off."), "{page}");
        for text in ["end of the list", "Next page", " of 2", " items"] {
            assert!(!page.contains(text), "{text}: {page}");
        }
    }
}

#[test]
fn each_error_has_advice() {
    for (code, title) in [
        ("badArgument", "Wrong arguments"),
        ("badResumptionToken", "The list cannot be continued"),
        ("badVerb", "No such request"),
        ("cannotDisseminateFormat", "Format not available"),
        ("idDoesNotExist", "No such record"),
        ("noRecordsMatch", "No matching records"),
        ("noMetadataFormats", "No formats"),
        ("noSetHierarchy", "No sets"),
        ("other", "Error"),
    ] {
        for query in
            ["", "verb=ListIdentifiers&resumptionToken=x", "verb=GetRecord&identifier=a&metadataPrefix=b"]
        {
            let page = whole(query, &format!("<error code=\"{code}\">the text</error>"));
            for part in [&format!("dir=\"ltr\">{title}</h1>"), "the text", code, "Show XML"] {
                assert!(page.contains(part), "{part}: {page}");
            }
        }
    }
    let page = whole("verb=ListIdentifiers&resumptionToken=x", "<error code=\"badResumptionToken\"/>");
    assert!(links(&page).contains(&"/b/x?verb=ListIdentifiers&amp;metadataPrefix=oai_dc"), "{page}");
}

#[test]
fn texts_have_their_language_and_direction() {
    let page = whole(
        "verb=ListRecords&metadataPrefix=oai_dc",
        "<ListRecords><record><header><identifier>a</identifier></header><metadata>\
         <dc:title xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xml:lang=\"ar\">أغاني الميناء</dc:title></metadata>\
         </record></ListRecords>",
    );
    assert!(page.contains("<bdi class=\"title\" lang=\"ar\">أغاني"), "{page}");
    let page = whole("verb=Identify", "<Identify><repositoryName>שלום</repositoryName></Identify>");
    assert!(page.contains("<h1 lang=\"\" dir=\"rtl\">שלום</h1>"), "{page}");
}
