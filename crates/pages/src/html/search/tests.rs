//! Tests of the pages of a search.

use super::{SearchNotice, SearchNoticePage, SearchPage, Shown};
use crate::search::{
    Facet, FacetKind, FacetValue, MarkedText, ResultList, SearchAddress, SearchItem, SearchResults,
};
use oaimend_html::Site;
use oaimend_record::{RecordDocument, Text, WorkDescription};

fn site() -> Site {
    Site::new("Site", None, "https://e.org/b").with_search()
}

fn page(list: ResultList, arguments: &str, shown: Shown<'_>) -> String {
    let (address, fault) = SearchAddress::read(list, arguments);
    assert_eq!(fault, None);
    SearchPage { site: &site(), address: &address, shown }.render()
}

fn item() -> SearchItem {
    let xml = "<record><header><identifier>oai:x:&lt;i&gt;</identifier></header><metadata>\
        <a xmlns='http://purl.org/dc/elements/1.1/'><title>Ferries &amp; &lt;i&gt;</title><creator>&lt;i&gt;</creator>\
        <creator>B</creator><date>2019-04-05</date><type>article</type></a></metadata></record>";
    let work = WorkDescription::of(&RecordDocument::read(xml).expect("the record is well-formed"));
    let marked = |value: &str, word: &str| MarkedText {
        text: Text { value: value.to_owned(), ..Text::default() },
        marks: value.match_indices(word).map(|(at, found)| at..at + found.len()).collect(),
    };
    SearchItem {
        repository: "x".to_owned(),
        repository_name: "<i>".to_owned(),
        work,
        title: Some(marked("Ferries & <i>", "Ferries")),
        snippet: Some(marked("The <i> ferry", "ferry")),
        changed: "2026-11-26T12:00:00Z".to_owned(),
    }
}

fn results(total: u64) -> SearchResults {
    let value = |value: &str, records| FacetValue { value: value.to_owned(), name: None, records };
    let years = (0..10).map(|year| value(&(2000 + year).to_string(), 1_000 + year)).collect();
    let repository = FacetValue { name: Some("<i>".to_owned()), ..value("x", 5) };
    SearchResults {
        total,
        items: vec![item()],
        facets: vec![
            Facet { kind: FacetKind::Repository, values: vec![repository] },
            Facet { kind: FacetKind::Year, values: years },
            Facet { kind: FacetKind::Language, values: vec![value("de", 3), value("<i>", 1)] },
        ],
        ..SearchResults::default()
    }
}

#[test]
fn a_result_shows_what_was_found_and_why() {
    let page = page(ResultList::Search, "q=%3Ci%3E+ferry&page=2", Shown::Results(&results(41)));
    for part in [
        "<title>Search: &lt;i&gt; ferry – Site</title>",
        "value=\"&lt;i&gt; ferry\"",
        "<h2 id=\"results\">41 records, page 2</h2>",
        "<ol class=\"results\" start=\"21\">",
        "<a href=\"/b/x/record/oai%3Ax%3A%3Ci%3E\"><span lang=\"\" dir=\"ltr\"><mark>Ferries</mark> &amp; &lt;i&gt;</span></a>",
        "<bdi lang=\"\">&lt;i&gt;</bdi>; <bdi lang=\"\">B</bdi>",
        "<time datetime=\"2019-04-05\">2019</time><span>Article</span><a href=\"/b/x/\"><bdi>&lt;i&gt;</bdi></a>",
        ">The &lt;i&gt; <mark>ferry</mark></p>",
        "<span class=\"Z3988\" title=\"ctx_ver=Z39.88-2004&amp;rft_val_fmt=info%3Aofi%2Ffmt%3Akev%3Amtx%3Ajournal&amp;",
        "<a rel=\"prev\" href=\"/b/_search?q=%3Ci%3E+ferry\">Previous</a>",
        "<a rel=\"next\" href=\"/b/_search?q=%3Ci%3E+ferry&amp;page=3\">Next</a>",
        "<a rel=\"nofollow\" href=\"/b/_search?q=%3Ci%3E+ferry&amp;language=de\"><bdi>German</bdi></a> <span class=\"count\">3</span>",
        "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"These results as a feed\" \
         href=\"https://e.org/b/_search.atom?q=%3Ci%3E+ferry\">",
        "<meta name=\"robots\" content=\"noindex\">",
        "<link rel=\"search\" type=\"application/opensearchdescription+xml\" title=\"Site\" href=\"/b/_search/opensearch.xml\">",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<i>") && page.matches("role=\"search\"").count() == 1, "{page}");
    assert!(
        page.find("<bdi>2009</bdi>") < page.find("<bdi>2008</bdi>")
            && page.contains("<summary>More</summary>")
    );
}

#[test]
fn chosen_values_can_be_removed_and_are_kept_by_the_box() {
    let page = page(ResultList::Search, "q=a&language=de&sort=newest&page=2", Shown::Results(&results(41)));
    for part in [
        "<li>Language: <bdi>German</bdi> <a href=\"/b/_search?q=a&amp;sort=newest\">remove",
        "<input type=\"hidden\" name=\"language\" value=\"de\"><input type=\"hidden\" name=\"sort\" value=\"newest\">",
        "<a href=\"/b/_search?q=a&amp;language=de&amp;sort=newest\" aria-current=\"true\">Newest first</a>",
        "<a href=\"/b/_search?q=a&amp;language=de\">Relevance</a>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("id=\"facet-language\"") && !page.contains("name=\"page\""), "{page}");
}

#[test]
fn a_value_of_all_results_is_no_facet() {
    let shows = |found: &SearchResults| {
        page(ResultList::Search, "q=a", Shown::Results(found)).contains("id=\"facet-repository\"")
    };
    assert!(shows(&results(41)) && !shows(&results(5)));
    assert!(shows(&SearchResults { facets_are_estimates: true, ..results(5) }));
    let facets = results(5).facets.into_iter().take(1).collect();
    let page = page(ResultList::Search, "q=a", Shown::Results(&SearchResults { facets, ..results(5) }));
    assert!(!page.contains("filters"), "{page}");
}

#[test]
fn estimates_are_marked() {
    let found = SearchResults { is_estimate: true, facets_are_estimates: true, ..results(1_234_567) };
    let page = page(ResultList::Search, "q=a", Shown::Results(&found));
    assert!(
        page.contains(">About 1,234,567 records</h2>") && page.contains("The numbers are estimated."),
        "{page}"
    );
}

#[test]
fn pages_without_results_say_what_to_do() {
    let nothing = SearchResults::default();
    let found = page(ResultList::Search, "q=a&year=2001", Shown::Results(&nothing));
    for part in ["No record matches.", "<a href=\"/b/_search?q=a\">Search without the chosen values</a>"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let past = SearchResults { total: 5, ..SearchResults::default() };
    let found = page(ResultList::Search, "q=a&page=9", Shown::Results(&past));
    assert!(found.contains("<a href=\"/b/_search?q=a\">The first page of the results</a>"), "{found}");
    let invitation = page(ResultList::Search, "", Shown::Invitation(1_234));
    assert!(
        invitation.contains("1,234 records can be searched.") && !invitation.contains("noindex"),
        "{invitation}"
    );
    assert!(invitation.contains("<a href=\"/b/_search?q=%22climate+change%22\">"), "{invitation}");
}

#[test]
fn a_fault_is_said_at_the_box() {
    let page = page(ResultList::Search, "q=%3Ci%3E", Shown::Fault("no field <i>"));
    for part in [
        "aria-invalid=\"true\" aria-describedby=\"query-fault\"",
        "<p class=\"warning\" id=\"query-fault\" role=\"alert\">no field &lt;i&gt;</p>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_fault_of_the_recent_records_is_said_without_the_syntax() {
    let page = page(ResultList::Recent, "", Shown::Fault("no page <i>"));
    assert!(page.contains("<p class=\"warning\" role=\"alert\">no page &lt;i&gt;</p>"), "{page}");
    assert!(!page.contains("class=\"note\""), "{page}");
}

#[test]
fn recent_records_show_their_changes_and_have_no_box() {
    let page = page(ResultList::Recent, "repository=x", Shown::Results(&results(21)));
    for part in [
        "<h1>Recently changed records</h1>",
        "changed <time datetime=\"2026-11-26T12:00:00Z\">",
        "<a rel=\"next\" href=\"/b/_recent?repository=x&amp;page=2\">",
        "href=\"https://e.org/b/_recent.atom?repository=x\">",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("Relevance"), "{page}");
}

#[test]
fn each_notice_has_a_page() {
    for notice in [SearchNotice::Off, SearchNotice::Building, SearchNotice::Busy, SearchNotice::Unreadable] {
        let page = SearchNoticePage { site: &site(), notice }.render();
        assert!(
            page.contains(&format!("<h1>{}</h1>", notice.title())) && page.contains(notice.sentence()),
            "{page}"
        );
    }
}
