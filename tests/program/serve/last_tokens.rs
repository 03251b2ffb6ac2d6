//! Lists of which all items were delivered, with one more token that fails.

use crate::fixtures::keeping::wait_until;
use crate::fixtures::lists::{error_page, page_with, records_in, resume, token_in, token_of};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a source sends after its last page.
#[derive(Clone, Copy, Debug)]
enum After {
    Error(&'static str),
    Status(u16),
    Page,
}

/// A list of pages, each with its records and the text of its attributes; and what the last token gives.
#[derive(Clone, Debug)]
struct List {
    pages: Vec<(Vec<usize>, &'static str)>,
    after: After,
}

impl List {
    fn start(self) -> Source {
        Source::start(move |_, received| {
            let at = token_of(received).parse::<usize>().unwrap_or(0);
            match (self.pages.get(at), self.after) {
                (Some((records, attributes)), _) => {
                    let token = format!("<resumptionToken {attributes}>{}</resumptionToken>", at + 1);
                    Reply::xml(page_with(records.clone(), &token))
                }
                (None, After::Error(code)) => Reply::xml(error_page(code)),
                (None, After::Status(status)) => Reply::whole(status, "", "no"),
                (None, After::Page) => Reply::xml(page_with(90..92, "<resumptionToken/>")),
            }
        })
    }
}

const SIZE: &str = "completeListSize=\"4\"";

/// Two pages with four records.
fn whole() -> List {
    List {
        pages: vec![
            (vec![0, 1], "completeListSize=\"4\" cursor=\"0\""),
            (vec![2, 3], "expirationDate=\"2999-01-01T00:00:00Z\" completeListSize=\"4\" cursor=\"2\""),
        ],
        after: After::Error("badResumptionToken"),
    }
}

/// The last page with all records.
fn last_page(proxy: &Proxy) -> Got {
    let mut got = proxy.get(LIST);
    while let Some(token) = token_in(&got.text()) {
        let next = resume(proxy, &token);
        if next.text().contains("<error") || next.status != 200 {
            return got;
        }
        got = next;
    }
    got
}

#[test]
fn token_that_fails_after_all_items_is_emptied() {
    let source = whole().start();
    let proxy = Proxy::of(&source);
    for harvest in 0..2 {
        let got = last_page(&proxy);
        let end = "<resumptionToken expirationDate=\"2999-01-01T00:00:00Z\" completeListSize=\"4\" \
                   cursor=\"2\"></resumptionToken>";
        assert!(got.text().contains(end), "harvest {harvest}: {}", got.text());
        assert_eq!(records_in(&got.text()).into_keys().collect::<Vec<_>>(), [2, 3]);
    }
    let received: Vec<String> = source.requests().iter().map(token_of).collect();
    assert_eq!(received, ["", "1", "2", ""], "one request for the last token, and the closed page is cached");
    wait_until(|| proxy.admin_json("/-/repositories/x/repairs").to_string().contains("missing-last-token"));
}

#[test]
fn other_lists_keep_their_last_token() {
    let with = |pages: Vec<(Vec<usize>, &'static str)>| List { pages, ..whole() };
    for (what, list, is_requested) in [
        ("another error", List { after: After::Error("badArgument"), ..whole() }, true),
        ("no records", List { after: After::Error("noRecordsMatch"), ..whole() }, true),
        ("a failure", List { after: After::Status(404), ..whole() }, true),
        ("a page", List { after: After::Page, ..whole() }, true),
        ("no size", with(vec![(vec![0, 1], ""), (vec![2, 3], "")]), false),
        ("a size on the last page only", with(vec![(vec![0, 1], ""), (vec![2, 3], SIZE)]), false),
        ("another size", with(vec![(vec![0, 1], "completeListSize=\"5\""), (vec![2, 3], SIZE)]), false),
        ("too few", with(vec![(vec![0, 1], SIZE), (vec![2], SIZE)]), false),
        ("too many", with(vec![(vec![0, 1], SIZE), (vec![2, 3, 4], SIZE)]), false),
        ("one record twice", with(vec![(vec![0, 1], SIZE), (vec![1, 2], SIZE)]), false),
    ] {
        let received = format!("{}", list.pages.len());
        let source = list.start();
        let proxy = Proxy::of(&source);
        let mut got = proxy.get(LIST);
        got = resume(&proxy, &token_in(&got.text()).expect("more"));
        assert_eq!(token_in(&got.text()).as_deref(), Some("2"), "{what}: {}", got.text());
        let was_requested = source.requests().iter().any(|one| token_of(one) == received);
        assert_eq!(was_requested, is_requested, "{what}");
    }
}

#[test]
fn record_with_two_datestamps_counts_once() {
    // Record 0 changed and moved to the end, and record 3 moved out of the list that was left to read.
    let source = Source::start(|_, received| match token_of(received).as_str() {
        "" => Reply::xml(page_with([0, 1], &format!("<resumptionToken {SIZE}>1</resumptionToken>"))),
        "1" => {
            let page = page_with([0, 2], &format!("<resumptionToken {SIZE}>2</resumptionToken>"));
            Reply::xml(page.replacen("<datestamp>2020-01-01<", "<datestamp>2021-01-01<", 1))
        }
        _ => Reply::xml(error_page("badResumptionToken")),
    });
    let proxy = Proxy::of(&source);
    assert_eq!(token_in(&last_page(&proxy).text()).as_deref(), Some("2"));
}

#[test]
fn only_page_of_a_list_is_closed_too() {
    let source = List { pages: vec![(vec![0, 1], "completeListSize=\"2\"")], ..whole() }.start();
    let got = Proxy::of(&source).get(LIST);
    assert!(
        got.text().contains("<resumptionToken completeListSize=\"2\"></resumptionToken>"),
        "{}",
        got.text()
    );
}

#[test]
fn lists_of_headers_and_sets_are_closed_too() {
    for (verb, item) in [
        (
            "ListIdentifiers",
            "<header><identifier>oai:x:#</identifier><datestamp>2020-01-01</datestamp></header>",
        ),
        ("ListSets", "<set><setSpec>#</setSpec><setName>#</setName></set>"),
    ] {
        let source = Source::start(move |_, received| {
            let at = token_of(received).parse::<usize>().unwrap_or(0);
            if at == 2 {
                return Reply::xml(error_page("badResumptionToken"));
            }
            let items: String =
                (at * 2..at * 2 + 2).map(|number| item.replace('#', &number.to_string())).collect();
            let token = format!("<resumptionToken {SIZE}>{}</resumptionToken>", at + 1);
            let list = page_with([], &format!("{items}{token}"));
            Reply::xml(list.replace("ListRecords", verb))
        });
        let proxy = Proxy::of(&source);
        let prefix = if verb == "ListSets" { "" } else { "&metadataPrefix=oai_dc" };
        let first = proxy.get(&format!("/x?verb={verb}{prefix}"));
        let token = token_in(&first.text()).expect("more");
        let last = proxy.get(&format!("/x?verb={verb}&resumptionToken={token}"));
        assert!(
            last.text().contains(&format!("<resumptionToken {SIZE}></resumptionToken>")),
            "{}",
            last.text()
        );
    }
}

#[test]
fn source_that_answers_its_last_token_by_turns_is_closed() {
    let count = AtomicUsize::new(0);
    let source = Source::start(move |_, received| {
        let token = format!("<resumptionToken {SIZE}>t</resumptionToken>");
        if token_of(received).is_empty() {
            Reply::xml(page_with([0, 1], &token))
        } else if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            Reply::xml(page_with([2, 3], &token))
        } else {
            Reply::xml(error_page("badResumptionToken"))
        }
    });
    let proxy = Proxy::of(&source);
    let got = resume(&proxy, &token_in(&proxy.get(LIST).text()).expect("more"));
    assert_eq!((records_in(&got.text()).len(), token_in(&got.text())), (2, None));
}
