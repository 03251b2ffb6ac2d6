//! The worker process with the real libxslt: what sheets can do, what they cannot, and what happens when it ends.
#![cfg(all(target_os = "linux", has_libxslt))]

mod attacks;
mod ends;
mod limits;

use ends::{marked, process};
use futures::future::join_all;
use oaimend_xslt::{FailureKind, Sheet, SheetFailure, WorkerProgram, XsltLimits, XsltWorker};
use std::time::Duration;

/// A worker of the tests of this crate.
fn program() -> WorkerProgram {
    WorkerProgram { program: env!("CARGO_BIN_EXE_oaimend-xslt-worker").into(), arguments: Vec::new() }
}

fn worker() -> XsltWorker {
    XsltWorker::new(program(), XsltLimits::default())
}

/// Limits that a test reaches soon.
fn small() -> XsltLimits {
    XsltLimits { time: Duration::from_secs(2), memory_bytes: 64 << 20, output_bytes: 64 << 10 }
}

/// A sheet with these templates. Its prefixes are `x` for XSLT and `e` for the common functions of EXSLT.
fn sheet(templates: &str) -> Sheet {
    let text = format!(
        "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform' \
         xmlns:e='http://exslt.org/common' extension-element-prefixes='e'>\n{templates}</x:stylesheet>"
    );
    Sheet::read(text.into_bytes()).expect("a sheet")
}

/// A sheet with one template for the whole payload.
fn template(content: &str) -> Sheet {
    sheet(&format!("<x:template match='/'>{content}</x:template>"))
}

/// A sheet that copies the text of the payload, and does something else for a text that begins with an exclamation mark.
fn copy_unless_marked(content: &str, more: &str) -> Sheet {
    sheet(&format!(
        "<x:template match='/a'><b><x:choose><x:when test='starts-with(., \"!\")'>{content}</x:when>\
         <x:otherwise><x:value-of select='.'/></x:otherwise></x:choose></b></x:template>{more}"
    ))
}

async fn transform(worker: &XsltWorker, sheet: &Sheet, payload: &str) -> Result<String, SheetFailure> {
    let output = worker.transform(sheet, payload.as_bytes().to_vec()).await?;
    Ok(String::from_utf8(output).expect("UTF-8"))
}

/// Transforms payloads with these texts, all at once.
async fn transform_all(
    worker: &XsltWorker,
    sheet: &Sheet,
    texts: &[&str],
) -> Vec<Result<String, FailureKind>> {
    let payloads: Vec<String> = texts.iter().map(|text| format!("<a>{text}</a>")).collect();
    let transformed = payloads.iter().map(|payload| transform(worker, sheet, payload));
    let results = join_all(transformed).await;
    results.into_iter().map(|result| result.map_err(|failure| failure.kind)).collect()
}

/// The output for a text.
fn copied(text: &str) -> Result<String, FailureKind> {
    Ok(format!("<b>{text}</b>"))
}

#[tokio::test]
async fn payloads_are_transformed_in_their_order() {
    let worker = worker();
    let sheet = copy_unless_marked("", "");
    let texts: Vec<String> = (0..1_000).map(|number| format!("é {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let results = transform_all(&worker, &sheet, &texts).await;
    assert_eq!(results.len(), texts.len());
    for (text, result) in texts.iter().zip(results) {
        assert_eq!(result, copied(text));
    }
}

#[tokio::test]
async fn the_output_is_one_element_in_utf_8_whatever_the_sheet_says() {
    let worker = worker();
    let output =
        "<x:output method='html' encoding='ISO-8859-1' doctype-system='a.dtd' cdata-section-elements='b'/>";
    let sheet = sheet(&format!(
        "{output}<x:template match='/'><!-- c --><b><x:value-of select='.'/></b></x:template>"
    ));
    assert_eq!(
        transform(&worker, &sheet, "<a>é&amp;<![CDATA[<]]></a>").await.as_deref(),
        Ok("<b>é&amp;&lt;</b>")
    );
    for (content, message) in [
        ("text", "the output contains text outside its element"),
        ("", "the output contains no element"),
        ("<a/><b/>", "the output contains more than one element"),
    ] {
        let failure = transform(&worker, &template(content), "<a/>").await.expect_err(message);
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::OutputInvalid, message));
    }
}

#[tokio::test]
async fn functions_of_exslt_for_nodes_sets_and_strings_are_there() {
    let content = "<x:variable name='v'><i>1</i><i>2</i></x:variable>\
                   <b n='{count(e:node-set($v)/i)}'><x:value-of xmlns:s='http://exslt.org/strings' select='s:padding(3, \"-\")'/></b>";
    assert_eq!(transform(&worker(), &template(content), "<a/>").await.as_deref(), Ok("<b n=\"2\">---</b>"));
}

#[tokio::test]
async fn a_sheet_that_does_not_compile_fails_with_its_line() {
    let worker = worker();
    let bad = sheet("\n<x:template match='/'><x:value-of select='a ]'/></x:template>");
    for _ in 0..2 {
        let failure = worker.check(&bad).await.expect_err("a bad sheet");
        assert_eq!(failure.kind, FailureKind::SheetInvalid);
        assert!(failure.message.contains("sheet.xsl line 3 element value-of"), "{failure}");
        assert_eq!(transform(&worker, &bad, "<a/>").await, Err(failure));
    }
    assert_eq!(worker.check(&template("<a/>")).await, Ok(()));
}

#[tokio::test]
async fn more_sheets_than_a_worker_keeps_are_sent_again() {
    let worker = marked("sheets", XsltLimits::default());
    let sheets: Vec<Sheet> = (0..70).map(|number| template(&format!("<b>{number}</b>"))).collect();
    assert!(transform(&worker, &sheets[0], "<a/>").await.is_ok());
    let first = process("sheets").expect("it runs");
    // At the end the oldest one that the worker keeps.
    let order = (0..70).chain(0..70).chain([6]);
    let outputs = join_all(order.clone().map(|number| transform(&worker, &sheets[number], "<a/>"))).await;
    for (number, output) in order.zip(outputs) {
        assert_eq!(output, Ok(format!("<b>{number}</b>")));
    }
    // A process that did not have a sheet would be another one now.
    assert_eq!(process("sheets"), Some(first));
}
