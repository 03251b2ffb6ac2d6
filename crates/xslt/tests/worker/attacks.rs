//! Sheets that reach for what they may not have.

use super::*;
use std::net::TcpListener;

#[tokio::test]
async fn a_sheet_reads_no_file_and_no_url() {
    let worker = worker();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let url = format!("http://{}/a.xml", listener.local_addr().expect("an address"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret.xml");
    std::fs::write(&file, "<a>secret</a>").expect("a file");
    let file = file.display().to_string();
    for place in
        ["/etc/passwd", "../etc/passwd", "file:///etc/passwd", &file, &format!("file://{file}"), &url]
    {
        let sheet = template(&format!("<b><x:copy-of select='document(\"{place}\")'/></b>"));
        let failure = transform(&worker, &sheet, "<a/>").await.expect_err(place);
        assert_eq!(failure.kind, FailureKind::TransformationFailed);
        assert!(failure.message.contains("denied"), "{failure}");
        let from_record = template("<b><x:copy-of select='document(/a)'/></b>");
        assert!(transform(&worker, &from_record, &format!("<a>{place}</a>")).await.is_err());
    }
    assert!(listener.accept().is_err(), "the worker has connected");
}

#[tokio::test]
async fn a_sheet_reads_itself() {
    let sheet = sheet(
        "<m xmlns='urn:map'><i k='a'>A</i></m>\
         <x:template match='/'><b><x:value-of xmlns:m='urn:map' select='document(\"\")//m:i[@k=\"a\"]'/></b></x:template>",
    );
    assert_eq!(transform(&worker(), &sheet, "<a/>").await.as_deref(), Ok("<b>A</b>"));
}

#[tokio::test]
async fn a_sheet_writes_no_file() {
    let worker = worker();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("written/a.xml");
    let file = file.display();
    for element in [
        format!("<e:document href='{file}'><c/></e:document>"),
        format!("<x:document href='{file}'><c/></x:document>"),
    ] {
        let failure =
            transform(&worker, &template(&format!("<b>{element}</b>")), "<a/>").await.expect_err(&element);
        assert_eq!(failure.kind, FailureKind::TransformationFailed, "{element}");
        assert!(failure.message.contains("denied"), "{failure}");
    }
    // libxslt knows them, but not their namespaces unless a program registers them.
    for element in [
        format!(
            "<s:output xmlns:s='http://icl.com/saxon' x:extension-element-prefixes='s' href='{file}'><c/></s:output>"
        ),
        format!(
            "<w:write xmlns:w='org.apache.xalan.xslt.extensions.Redirect' x:extension-element-prefixes='w' href='{file}'><c/></w:write>"
        ),
    ] {
        // It may be an element of the output.
        let _ = transform(&worker, &template(&format!("<b>{element}</b>")), "<a/>").await;
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn entities_of_a_payload_are_refused() {
    let worker = worker();
    let sheet = template("<b e='{unparsed-entity-uri(\"e\")}'><x:value-of select='.'/></b>");
    let bomb: String = (1..20).map(|level| format!("<!ENTITY e{level} '&e{0};&e{0};'>", level - 1)).collect();
    for payload in [
        format!("<!DOCTYPE a [<!ENTITY e0 'ha'>{bomb}]><a>&e19;</a>"),
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>".to_owned(),
        "<!DOCTYPE a SYSTEM 'http://127.0.0.1/a.dtd'><a/>".to_owned(),
        "<a>&e;</a>".to_owned(),
    ] {
        let result = transform(&worker, &sheet, &payload).await;
        assert_eq!(result.map_err(|failure| failure.kind), Err(FailureKind::PayloadRefused), "{payload}");
    }
    let harmless = transform(&worker, &sheet, "<a><![CDATA[<!DOCTYPE a>]]></a>").await;
    assert_eq!(harmless.as_deref(), Ok("<b e=\"\">&lt;!DOCTYPE a&gt;</b>"));
}

#[tokio::test]
async fn a_payload_that_libxml2_refuses_fails_alone() {
    let worker = worker();
    let sheet = copy_unless_marked("", "");
    let deep = "<c>".repeat(100_000);
    let texts = ["1", "<c></d>", "2", &deep, "3", "\u{1}", "4", "&#0;", "5"];
    let refused = || Err(FailureKind::PayloadRefused);
    let expected = [
        copied("1"),
        refused(),
        copied("2"),
        refused(),
        copied("3"),
        refused(),
        copied("4"),
        refused(),
        copied("5"),
    ];
    assert_eq!(transform_all(&worker, &sheet, &texts).await, expected);
}

#[tokio::test]
async fn messages_do_not_fail_a_payload_and_need_no_memory() {
    let worker = XsltWorker::new(program(), XsltLimits { time: Duration::from_secs(60), ..small() });
    let flood = "<x:template name='flood'><x:param name='n'/><x:if test='$n &gt; 0'><x:message><x:value-of select='/a/@m'/></x:message>\
                 <x:call-template name='flood'><x:with-param name='n' select='$n - 1'/></x:call-template></x:if></x:template>";
    let call = "<x:call-template name='flood'><x:with-param name='n' select='900'/></x:call-template>";
    let sheet = copy_unless_marked(call, flood);
    let payload = format!("<a m='{}'>!</a>", "m".repeat(100_000));
    // 90 MB of messages with 64 MiB of memory.
    assert_eq!(transform(&worker, &sheet, &payload).await.as_deref(), Ok("<b/>"));
    let fatal = copy_unless_marked("<x:message terminate='yes'>no date é</x:message>", "");
    let failure = transform(&worker, &fatal, "<a>!</a>").await.expect_err("it ends itself");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::TransformationFailed, "no date é"));
    assert_eq!(transform(&worker, &fatal, "<a>1</a>").await.as_deref(), Ok("<b>1</b>"));
}
