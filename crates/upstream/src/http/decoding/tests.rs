use crate::http::decoding::*;
use std::io::Write;

const ROOMY: Bounds = Bounds { bytes_max: 1 << 32, ratio_max: 1000, empty_bytes_max: 1 << 20 };

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(plain).and_then(|()| writer.finish()).expect("a Vec accepts every write")
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(plain).and_then(|()| writer.finish()).expect("a Vec accepts every write")
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(plain).and_then(|()| writer.finish()).expect("a Vec accepts every write")
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    brotli::BrotliCompress(&mut &plain[..], &mut coded, &brotli::enc::BrotliEncoderParams::default())
        .expect("a Vec accepts every write");
    coded
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(plain, 1).expect("a Vec accepts every write")
}

fn document() -> Vec<u8> {
    let mut text = b"<?xml version=\"1.0\"?><OAI-PMH>".to_vec();
    for number in 0..3000 {
        text.extend_from_slice(format!("<record>{number} {:x}</record>", number * 7919).as_bytes());
    }
    text
}

/// Decodes in pieces of the given sizes. Returns the output and the result.
fn decode(
    coded: &[u8],
    announced: &str,
    cut: usize,
    out: usize,
    bounds: Bounds,
) -> (Vec<u8>, Result<(), Fault>) {
    let pushed = decode_by(coded, announced, (cut, out), bounds, |_, _| Ok(false));
    let passed = decode_by(coded, announced, (cut, out), bounds, Decoder::pass);
    assert!(pushed.1 != Ok(()) || pushed == passed, "{announced} in pieces of {cut} into {out}");
    passed
}

/// The same with a function that may replace pushing and pulling.
fn decode_by(
    coded: &[u8],
    announced: &str,
    (cut, out): (usize, usize),
    bounds: Bounds,
    pass: impl Fn(&mut Decoder, &[u8]) -> Result<bool, Fault>,
) -> (Vec<u8>, Result<(), Fault>) {
    let mut decoder = Decoder::new(Coding::announced(announced), bounds);
    let (mut decoded, mut piece) = (Vec::new(), vec![0; out]);
    let mut pieces = coded.chunks(cut);
    loop {
        match decoder.pull(&mut piece) {
            Ok(0) if decoder.ended => return (decoded, Ok(())),
            Ok(0) => match pieces.next() {
                Some(input) => match pass(&mut decoder, input) {
                    Ok(true) => decoded.extend_from_slice(input),
                    Ok(false) => decoder.push(input),
                    Err(fault) => return (decoded, Err(fault)),
                },
                None => decoder.end(),
            },
            Ok(count) => decoded.extend_from_slice(&piece[..count]),
            Err(fault) => return (decoded, Err(fault)),
        }
    }
}

#[track_caller]
fn check(coded: &[u8], announced: &str, plain: &[u8]) {
    for (cut, out) in [(usize::MAX, 1 << 16), (1, 1 << 16), (3, 7), (4096, 1), (1000, 1000)] {
        let (decoded, end) = decode(coded, announced, cut, out, ROOMY);
        assert_eq!(end, Ok(()), "{announced} in pieces of {cut} into {out}");
        assert!(decoded == plain, "{announced} in pieces of {cut} into {out}: {} bytes", decoded.len());
    }
}

#[test]
fn codings_are_recognised_without_an_announcement() {
    let plain = document();
    for announced in ["", "gzip", "br", "identity"] {
        check(&gzip(&plain), announced, &plain);
        check(&zstd(&plain), announced, &plain);
        check(&zlib(&plain), announced, &plain);
    }
    check(&deflate(&plain), "deflate", &plain);
    check(&zlib(&plain), "deflate", &plain);
    check(&brotli(&plain), "br", &plain);
    check(&gzip(b"<a/>"), "", b"<a/>");
    check(&gzip(b""), "gzip", b"");
}

#[test]
fn plain_text_with_an_announced_coding_stays_plain() {
    for announced in ["", "gzip", "deflate", "br", "zstd", "gzip, br"] {
        check(&document(), announced, &document());
        check(b"\xEF\xBB\xBF \n<OAI-PMH/>", announced, b"\xEF\xBB\xBF \n<OAI-PMH/>");
        check(b"<a/>", announced, b"<a/>");
        check(b"", announced, b"");
    }
}

#[test]
fn nested_codings_are_removed() {
    let plain = document();
    check(&gzip(&gzip(&plain)), "", &plain);
    check(&gzip(&gzip(&plain)), "gzip", &plain);
    check(&brotli(&gzip(&plain)), "gzip, br", &plain);
    check(&gzip(&brotli(&plain)), "br, gzip", &plain);
    check(&gzip(&deflate(&plain)), "deflate", &plain);
}

#[test]
fn further_members_are_decoded_and_padding_is_ignored() {
    let plain = document();
    let both = [&plain[..], b"<end/>"].concat();
    check(&[gzip(&plain), gzip(b"<end/>")].concat(), "", &both);
    check(&[zstd(&plain), zstd(b"<end/>")].concat(), "", &both);
    check(&[gzip(&plain), vec![0; 100]].concat(), "", &plain);
    check(&[brotli(&plain), b"\r\n".to_vec()].concat(), "br", &plain);
}

#[test]
fn a_broken_coding_returns_the_bytes_before_the_fault() {
    let plain = document();
    for (coded, announced, coding) in [
        (gzip(&plain), "", Coding::Gzip),
        (zlib(&plain), "", Coding::Deflate),
        (deflate(&plain), "deflate", Coding::Deflate),
        (brotli(&plain), "br", Coding::Brotli),
    ] {
        let (decoded, end) = decode(&coded[..coded.len() / 2], announced, 1000, 1000, ROOMY);
        assert_eq!(end, Err(Fault::EndedEarly(coding)));
        assert!(decoded.len() > 1000 && plain.starts_with(&decoded), "{coding:?}: {}", decoded.len());
    }
    let mut broken = gzip(&plain);
    let middle = broken.len() / 2;
    broken[middle..middle + 50].fill(0xff);
    let (decoded, end) = decode(&broken, "", 1000, 1000, ROOMY);
    assert_eq!(end, Err(Fault::Broken(Coding::Gzip)));
    assert!(decoded.len() > 1000 && plain[..1000] == decoded[..1000]);
    let (_, end) = decode(&zstd(&plain)[..100], "", 10, 1000, ROOMY);
    assert_eq!(end, Err(Fault::EndedEarly(Coding::Zstd)));
}

#[test]
fn compression_bombs_are_detected_within_the_memory_limit() {
    let bomb = gzip(&gzip(&vec![b' '; 64 << 20]));
    let (decoded, end) = decode(&bomb, "", usize::MAX, 1 << 16, ROOMY);
    assert_eq!(end, Err(Fault::TooDense(1000)));
    assert!(decoded.len() <= bomb.len() * 1000 + (1 << 16), "{} from {}", decoded.len(), bomb.len());
    let bounds = Bounds { bytes_max: 10_000, ..ROOMY };
    let (decoded, end) = decode(&document(), "", 1000, 1000, bounds);
    assert_eq!((decoded.len(), end), (10_000, Err(Fault::TooLong(10_000))));
}

/// A gzip stream: a header without a name, or with the flag of one, and the bytes after it.
fn gzip_of(flags: u8, rest: &[u8]) -> Vec<u8> {
    [&[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 0xff], rest].concat()
}

/// The name of a case, the start of its stream, the repeated part, and the content after it.
type EmptyPart = (&'static str, Vec<u8>, Vec<u8>, Vec<u8>);

/// Parts of compressed streams that decode to nothing, and can be repeated without an end.
fn empty_parts() -> Vec<EmptyPart> {
    let (name, stored) = (8, [0, 0, 0, 0xff, 0xff].to_vec());
    vec![
        ("gzip members", Vec::new(), gzip(b""), gzip(&document())),
        ("zstd frames", Vec::new(), zstd(b""), zstd(&document())),
        ("blocks in gzip", gzip_of(0, b""), stored.clone(), Vec::new()),
        ("blocks in zlib", b"\x78\x9c".to_vec(), stored, Vec::new()),
        ("name in gzip", gzip_of(name, b""), b"name".to_vec(), Vec::new()),
        ("padding after gzip", gzip(b"<a/>"), vec![0; 8], Vec::new()),
    ]
}

#[test]
fn endless_streams_without_content_end_at_their_limit() {
    const MAX: u64 = 10_000;
    let bounds = Bounds { empty_bytes_max: MAX, ..ROOMY };
    for (about, start, part, _) in empty_parts() {
        let endless = [start, part.repeat(5 * MAX as usize / part.len())].concat();
        for (coded, cut) in [(gzip(&endless), 1000), (endless.clone(), 1000), (endless, usize::MAX)] {
            let (decoded, end) = decode_by(&coded, "", (cut, 1000), bounds, Decoder::pass);
            assert_eq!(end, Err(Fault::TooEmpty(MAX)), "{about} in pieces of {cut}: {} bytes", decoded.len());
            assert!(decoded.len() <= 4, "{about}: {} bytes", decoded.len());
        }
    }
}

#[test]
fn content_after_empty_members_is_decoded() {
    for (about, start, part, content) in empty_parts() {
        if content.is_empty() {
            continue;
        }
        let stream = [start, part.repeat(50), content, part.repeat(50)].concat();
        println!("{about}");
        check(&stream, "", &document());
        check(&gzip(&stream), "gzip", &document());
    }
}
