//! Payloads for which a sheet needs too much. They fail alone, and the others are transformed in their order.

use super::*;

/// Never ends: each call makes two others.
const EXPONENTIAL: &str = "<x:template name='loop'><x:param name='n' select='0'/><x:if test='$n &lt; 900'>\
    <x:call-template name='loop'><x:with-param name='n' select='$n + 1'/></x:call-template>\
    <x:call-template name='loop'><x:with-param name='n' select='$n + 1'/></x:call-template></x:if></x:template>";
const CALL: &str = "<x:call-template name='loop'/>";

/// Checks that the marked payloads fail so, and the others do not.
async fn assert_fails_alone(sheet: &Sheet, kind: FailureKind) {
    let worker = XsltWorker::new(program(), small());
    let expected = [copied("1"), copied("2"), Err(kind), copied("3"), Err(kind), copied("4")];
    assert_eq!(transform_all(&worker, sheet, &["1", "2", "!", "3", "!", "4"]).await, expected);
    // Also for a process that has done nothing else.
    let worker = XsltWorker::new(program(), small());
    assert_eq!(transform_all(&worker, sheet, &["!", "1"]).await, [Err(kind), copied("1")]);
}

#[tokio::test]
async fn a_payload_that_takes_too_long_fails_alone() {
    assert_fails_alone(&copy_unless_marked(CALL, EXPONENTIAL), FailureKind::TimeExceeded).await;
}

#[tokio::test]
async fn a_payload_that_needs_too_much_memory_fails_alone() {
    let doubling = "<x:template name='loop'><x:param name='t' select='\"0123456789\"'/>\
        <x:call-template name='loop'><x:with-param name='t' select='concat($t, $t)'/></x:call-template></x:template>";
    assert_fails_alone(&copy_unless_marked(CALL, doubling), FailureKind::MemoryExceeded).await;
}

#[tokio::test]
async fn endless_recursion_ends() {
    let endless = "<x:template name='loop'><c><x:call-template name='loop'/></c></x:template>";
    assert_fails_alone(&copy_unless_marked(CALL, endless), FailureKind::TransformationFailed).await;
}

#[tokio::test]
async fn output_that_is_too_long_fails_alone() {
    let long = "<x:for-each select='document(\"\")//*'><x:for-each select='document(\"\")//*'>\
        <x:for-each select='document(\"\")//*'><x:for-each select='document(\"\")//*'><c>0123456789012345678901234567890123456789</c></x:for-each></x:for-each></x:for-each></x:for-each>";
    assert_fails_alone(&copy_unless_marked(long, ""), FailureKind::OutputTooLong).await;
}

#[tokio::test]
async fn a_sheet_that_needs_too_much_memory_is_not_compiled() {
    let worker = XsltWorker::new(program(), XsltLimits { memory_bytes: 4 << 20, ..small() });
    let large = template(&format!("<b>{}</b>", "<c d='e'/>".repeat(100_000)));
    let good = copy_unless_marked("", "");
    let failure = transform(&worker, &large, "<a/>").await.expect_err("it is too large");
    assert_eq!(failure.kind, FailureKind::SheetInvalid);
    assert!(failure.message.contains("4 MiB of memory"), "{failure}");
    assert_eq!(worker.check(&large).await, Err(failure));
    assert_eq!(transform_all(&worker, &good, &["1"]).await, [copied("1")]);
}

#[tokio::test]
async fn a_long_run_of_payloads_needs_no_more_memory() {
    let worker = marked("long", XsltLimits { memory_bytes: 16 << 20, ..XsltLimits::default() });
    let sheet = sheet("<x:template match='/*'><b n='{name(*)}'/></x:template>");
    assert!(transform(&worker, &sheet, "<a/>").await.is_ok());
    let first = process("long").expect("it runs");
    for run in 0..20 {
        // Names that no other payload has.
        let payload = |number| {
            let names = (0..200).map(|name| format!("<n{run}-{number}-{name}-0123456789/>"));
            format!("<a>{}</a>", names.collect::<String>())
        };
        let payloads: Vec<String> = (0..100).map(payload).collect();
        let outputs = join_all(payloads.iter().map(|payload| transform(&worker, &sheet, payload))).await;
        assert!(outputs.iter().all(Result::is_ok), "{:?}", outputs.iter().find(|output| output.is_err()));
    }
    // A process that needed too much memory would be another one now.
    assert_eq!(process("long"), Some(first));
}
