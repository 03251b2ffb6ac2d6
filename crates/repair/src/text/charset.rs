//! The charset of text that is neither UTF-8 nor windows-1252, decided once for each item.
//!
//! A database in windows-1251 returns fields in windows-1251, whatever the XML declaration says. Decoded as
//! windows-1252 they are legal and wrong. The charset of such an item is decided in this order:
//!
//! 1. The mapping names it.
//! 2. The language of the record (`dc:language`, `xml:lang`) is one that is not written in windows-1252,
//!    and the detector finds a charset of that language.
//! 3. The letters are decisive. Most of them, and at least [`LETTERS_MIN`], are in words without any ASCII
//!    letter, and are not the accents of one Western language. Or [`SYMBOLS_MIN`] symbols are inside words.
//!    In both cases the detector must find a charset that fits, and nearly all bytes must be letters in it.
//!
//! If the letters exclude a Western language and no charset fits, the item is not repairable. Everything
//! else is windows-1252, because names and titles with a few accents are too little evidence.

use crate::lex::search::{count_read, memmem};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};

use crate::catalog::QuarantineReason;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::text::bytes;
use crate::text::bytes::{Utf8Sequence, classify};

/// Longest part of an item that is evidence, in bytes.
const EVIDENCE_BYTES: usize = 64 << 10;
/// This number of letters in words of high bytes excludes a Western language.
const LETTERS_MIN: usize = 6;
/// This number of symbols inside words excludes it too.
const SYMBOLS_MIN: usize = 2;
/// Maximum number of places of an item at which a language is searched.
const LANGUAGES_MAX: usize = 32;

/// The charset of those nodes of an item that are neither UTF-8 nor windows-1252. A tag begins at `from`,
/// and the text before it is UTF-8.
///
/// # Errors
/// The nodes are not windows-1252, and no charset is decisive.
pub(crate) fn detect_charset(
    item: &[u8],
    from: usize,
    named: Option<&str>,
) -> Result<Option<&'static Encoding>, QuarantineReason> {
    if simdutf8::basic::from_utf8(item).is_ok() {
        return Ok(None);
    }
    if let Some(named) = named.and_then(|label| Encoding::for_label(label.as_bytes())) {
        return Ok(Some(named));
    }
    let spoken = language(item);
    if spoken.is_none() && has_one_broken_byte(item) {
        return Ok(None);
    }
    let evidence = evidence(item.get(from..).unwrap_or_default());
    if let Some(language) = spoken
        && let Some(charset) = detect(&evidence, Some(language))
        && language.charsets.contains(&charset.name())
    {
        return Ok(Some(charset));
    }
    let is_decisive = has_foreign_words(&evidence) && !is_of_one_language(&evidence);
    let is_central = symbols_in_words(&evidence) >= SYMBOLS_MIN;
    if !is_decisive && !is_central {
        return Ok(None);
    }
    let detected = detect(&evidence, None).filter(|charset| {
        let is_latin = LATIN.contains(&charset.name());
        (if is_decisive { !is_latin } else { is_latin }) && reads_well(charset, &evidence)
    });
    match detected {
        None if is_decisive => Err(QuarantineReason::UnknownCharset),
        detected => Ok(detected),
    }
}

/// Whether a node of the item is in `charset`. If the charset has no Latin letters, high bytes must not
/// share words with ASCII letters.
pub(crate) fn is_node_in(charset: &'static Encoding, node: &[u8]) -> bool {
    let has_latin = charset == WINDOWS_1252 || LATIN.contains(&charset.name()) || !charset.is_single_byte();
    is_foreign(node) && (has_latin || words(node).all(|word| !is_mixed(word)))
}

/// The first character of `text` in a charset, and its length in bytes.
pub(crate) fn first_character(charset: &'static Encoding, text: &[u8]) -> Option<(String, usize)> {
    const LONGEST: usize = 4;
    (1..=LONGEST.min(text.len())).find_map(|width| {
        let decoded = charset.decode_without_bom_handling_and_without_replacement(text.get(..width)?)?;
        let is_legal = decoded.chars().all(|c| crate::lex::names::is_legal_char(c.into()));
        (is_legal && !decoded.is_empty()).then(|| (decoded.into_owned(), width))
    })
}

/// The text of all nodes that are not UTF-8, one line for each node.
fn evidence(item: &[u8]) -> Vec<u8> {
    let (mut evidence, mut lexemes, mut at) = (Vec::new(), Lexemes::new(item), 0);
    let mut bad = next_bad_byte(item, 0);
    while evidence.len() < EVIDENCE_BYTES
        && let Some(bad_at) = bad
    {
        let (lexeme, end) = lexemes.at(at);
        let node = match lexeme {
            Lexeme::Text => item.get(at..end),
            Lexeme::Cdata => item.get(at + 9..end - 3),
            _ => None,
        };
        at = end;
        if end <= bad_at {
            continue;
        }
        if let Some(node) = node
            && is_foreign(node)
        {
            evidence.extend_from_slice(node);
            evidence.push(b'\n');
        }
        bad = next_bad_byte(item, end);
    }
    evidence.truncate(EVIDENCE_BYTES);
    evidence
}

/// The position of the first byte at or after `from` that is not UTF-8.
fn next_bad_byte(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let error = simdutf8::compat::from_utf8(rest).err()?;
    count_read(error.valid_up_to());
    Some(from + error.valid_up_to())
}

/// Whether a text is UTF-8 except for one byte. One byte is never decisive.
fn has_one_broken_byte(text: &[u8]) -> bool {
    simdutf8::compat::from_utf8(text).is_err_and(|error| {
        let rest = text.get(error.valid_up_to() + 1..).unwrap_or_default();
        error.error_len() == Some(1) && simdutf8::basic::from_utf8(rest).is_ok()
    })
}

/// Whether most characters of a node are not UTF-8.
fn is_foreign(node: &[u8]) -> bool {
    match bytes::NodeEncoding::detect(node) {
        bytes::NodeEncoding::Valid => false,
        bytes::NodeEncoding::Utf8 => is_mostly_broken(node),
        bytes::NodeEncoding::EightBit => true,
    }
}

/// Whether a node has at least four bytes that are not UTF-8 for each multi-byte character. Such characters
/// occur by chance in another charset.
fn is_mostly_broken(node: &[u8]) -> bool {
    let (mut whole, mut broken, mut at) = (0_usize, 0_usize, 0);
    while let Some(high) = node.get(at..).and_then(|rest| rest.iter().position(|byte| !byte.is_ascii())) {
        let (sequence, width) = classify(node.get(at + high..).unwrap_or_default());
        match sequence {
            Utf8Sequence::Lone | Utf8Sequence::Cut => broken += 1,
            _ => whole += 1,
        }
        at += high + width;
    }
    broken > 0 && broken >= 4 * whole
}

fn detect(evidence: &[u8], language: Option<Language>) -> Option<&'static Encoding> {
    if evidence.is_empty() {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(evidence, true);
    let domain = language.map(|language| language.domain.as_bytes());
    Some(detector.guess(domain, Utf8Detection::Deny)).filter(|&charset| charset != WINDOWS_1252)
}

/// Whether nearly all high bytes of a text are letters in a charset.
fn reads_well(charset: &'static Encoding, text: &[u8]) -> bool {
    let Some(decoded) = charset.decode_without_bom_handling_and_without_replacement(text) else {
        return false;
    };
    let high = decoded.chars().filter(|c| !c.is_ascii()).count();
    // Vowel signs of Thai and Hebrew are not letters but parts of words.
    let letters = decoded.chars().filter(|c| !c.is_ascii() && (c.is_alphabetic() || is_sign(*c))).count();
    letters * 10 >= high * 9 && !decoded.chars().any(|c| matches!(c, '\u{80}'..='\u{9F}'))
}

fn is_sign(c: char) -> bool {
    matches!(c, '\u{591}'..='\u{5C7}' | '\u{64B}'..='\u{65F}' | '\u{E31}'..='\u{E4E}')
}

/// Runs of ASCII letters and high bytes. Spaces, guillemets, dashes and quotation marks of windows-1252 end
/// a word.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends_word = |byte: &u8| match *byte {
        0x85 | 0x91..=0x97 | 0xA0 | 0xAB | 0xBB => true,
        byte => byte.is_ascii() && !byte.is_ascii_alphabetic(),
    };
    text.split(ends_word).filter(|word| !word.is_empty())
}

/// Whether a word has ASCII letters and high bytes.
fn is_mixed(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii) && !word.is_ascii()
}

/// Whether most high bytes, and enough of them, are in words of at least three letters without an ASCII
/// letter.
fn has_foreign_words(text: &[u8]) -> bool {
    let foreign = words(text).filter(|word| word.len() >= 3 && !word.iter().any(u8::is_ascii));
    let letters: usize = foreign.map(<[u8]>::len).sum();
    let high = text.iter().filter(|byte| !byte.is_ascii()).count();
    letters >= LETTERS_MIN && letters * 2 > high
}

/// Whether all high bytes are accented letters of one Western language. A list of such letters is not a
/// word of another language.
fn is_of_one_language(text: &[u8]) -> bool {
    // Small letters. In windows-1252 the capitals are 0x20 lower.
    const ALPHABETS: [&[u8]; 7] = [
        b"\xE4\xF6\xFC\xDF",
        b"\xE9\xE8\xEA\xEB\xE0\xE2\xE7\xF9\xFB\xFC\xEE\xEF\xF4\xFF\xE6\x9C",
        b"\xE1\xE9\xED\xF3\xFA\xF1\xFC",
        b"\xE1\xE2\xE3\xE0\xE7\xE9\xEA\xED\xF3\xF4\xF5\xFA\xFC",
        b"\xE0\xE8\xE9\xEC\xED\xEE\xF2\xF3\xF9\xFA",
        b"\xE5\xE4\xF6\xE6\xF8\xE9\xFC",
        b"\xE1\xE9\xED\xF3\xFA\xFD\xFE\xE6\xF6\xF0",
    ];
    let is_in = |alphabet: &[u8]| {
        text.iter().filter(|byte| !byte.is_ascii()).all(|&byte| {
            let small = if matches!(byte, 0xC0..=0xDE) { byte | 0x20 } else { byte };
            alphabet.contains(&small)
        })
    };
    ALPHABETS.iter().any(|alphabet| is_in(alphabet))
}

/// The number of windows-1252 symbols between two small letters of a longer word. Charsets of Central
/// Europe have letters at these codes. Symbols that occur there in Western texts do not count: apostrophes,
/// middle dots, soft hyphens, and the question mark that replaces a lost apostrophe.
fn symbols_in_words(text: &[u8]) -> usize {
    let is_small = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, 0xDF..=0xFF);
    let is_symbol =
        |byte: u8| matches!(byte, 0xA3 | 0xA5 | 0xA6 | 0xAF | 0xB1 | 0xB3 | 0xB6 | 0xB9 | 0xBC | 0xBE);
    let long = words(text).filter(|word| word.len() >= 5 && !word.is_ascii());
    long.flat_map(|word| word.windows(3))
        .filter(|window| matches!(**window, [a, b, c] if is_small(a) && is_symbol(b) && is_small(c)))
        .count()
}

/// Charsets of Latin letters other than windows-1252.
const LATIN: &[&str] = &[
    "windows-1250",
    "ISO-8859-2",
    "windows-1254",
    "windows-1257",
    "ISO-8859-4",
    "ISO-8859-13",
    "windows-1258",
];

/// A language that is not written in windows-1252.
#[derive(Clone, Copy, Debug)]
struct Language {
    /// A top-level domain, which tells the detector the language.
    domain: &'static str,
    charsets: &'static [&'static str],
}

const CYRILLIC: &[&str] = &["windows-1251", "KOI8-R", "KOI8-U", "ISO-8859-5", "IBM866", "x-mac-cyrillic"];
const CENTRAL: &[&str] = &["windows-1250", "ISO-8859-2"];
const BALTIC: &[&str] = &["windows-1257", "ISO-8859-4", "ISO-8859-13"];

/// The language with this code of ISO 639, if it is not written in windows-1252.
#[rustfmt::skip]
fn language_of(code: &[u8]) -> Option<Language> {
    let (domain, charsets): (&str, &[&str]) = match code {
        b"ru" | b"rus" => ("ru", CYRILLIC),
        b"uk" | b"ukr" => ("ua", CYRILLIC),
        b"be" | b"bel" => ("by", CYRILLIC),
        b"bg" | b"bul" => ("bg", CYRILLIC),
        b"mk" | b"mkd" | b"mac" => ("mk", CYRILLIC),
        b"pl" | b"pol" => ("pl", CENTRAL),
        b"cs" | b"ces" | b"cze" => ("cz", CENTRAL),
        b"sk" | b"slk" | b"slo" => ("sk", CENTRAL),
        b"hu" | b"hun" => ("hu", CENTRAL),
        b"hr" | b"hrv" | b"scr" => ("hr", CENTRAL),
        b"sl" | b"slv" => ("si", CENTRAL),
        b"ro" | b"ron" | b"rum" => ("ro", CENTRAL),
        b"lt" | b"lit" => ("lt", BALTIC),
        b"lv" | b"lav" => ("lv", BALTIC),
        b"tr" | b"tur" => ("tr", &["windows-1254"]),
        b"el" | b"ell" | b"gre" => ("gr", &["windows-1253", "ISO-8859-7"]),
        b"he" | b"iw" | b"heb" => ("il", &["windows-1255", "ISO-8859-8"]),
        b"ar" | b"ara" => ("eg", &["windows-1256", "ISO-8859-6"]),
        b"fa" | b"fas" | b"per" => ("ir", &["windows-1256"]),
        b"th" | b"tha" => ("th", &["windows-874"]),
        b"ja" | b"jpn" => ("jp", &["Shift_JIS", "EUC-JP"]),
        b"zh" | b"zho" | b"chi" => ("cn", &["GBK", "gb18030", "Big5"]),
        b"ko" | b"kor" => ("kr", &["EUC-KR"]),
        _ => return None,
    };
    Some(Language { domain, charsets })
}

/// The first language in the item that is not written in windows-1252.
fn language(item: &[u8]) -> Option<Language> {
    memmem::find_iter(item, b"lang").take(LANGUAGES_MAX).find_map(|at| {
        let rest = item.get(at..)?;
        // xml:lang="ru", <dc:language>rus
        let value = match rest.strip_prefix(b"language>") {
            Some(value) => value,
            None => rest.strip_prefix(b"lang=")?.get(1..)?,
        };
        let value = crate::lex::names::trim(value.get(..value.len().min(16))?);
        let len = value.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(value.len());
        language_of(&value.get(..len)?.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::detect_charset;
    use crate::catalog::QuarantineReason;
    use encoding_rs::{Encoding, WINDOWS_1252};

    /// A record with one title, in a charset.
    fn record(title: &str, charset: &str, language: &str) -> Vec<u8> {
        let encoding = Encoding::for_label(charset.as_bytes()).unwrap();
        let (bytes, _, unmappable) = encoding.encode(title);
        assert!(!unmappable, "{title} in {charset}");
        [
            b"<r><dc:title>",
            &bytes[..],
            b"</dc:title><dc:language>",
            language.as_bytes(),
            b"</dc:language></r>",
        ]
        .concat()
    }

    /// The decoded title, or the reason for quarantine.
    fn read(title: &str, charset: &str, language: &str) -> Result<String, QuarantineReason> {
        let record = record(title, charset, language);
        let decided = detect_charset(&record, 0, None)?.unwrap_or(WINDOWS_1252);
        let text = decided.decode_without_bom_handling(&record).0.into_owned();
        Ok(text.split("<dc:title>").nth(1).unwrap().split('<').next().unwrap().to_owned())
    }

    #[test]
    fn western_text_stays_in_windows_1252() {
        for title in [
            "Étude de la société française à l'époque médiévale",
            "L'été à Besançon : où naît l'âme ?",
            "éèàùç ÉÈÀÙÇ",
            "Größe",
            "Übungen für Anfänger – „Grüße“ aus Köln",
            "ÄÖÜäöüß",
            "Test äöüß ÄÖÜ",
            "Müller, Jörg",
            "Þýðing og túlkun íslenskra fornsagna",
            "Íslensk fræði",
            "Malmö högskola",
            "Åå",
            "Å",
            "Årsberetning for Københavns Universitet",
            "Kjærlighet på øya",
            "Pääsääntö työelämässä",
            "Educação e formação de professores: uma visão sócio-histórica",
            "São João del-Rei, 1º semestre",
            "ORGANIZAÇÃO E GESTÃO",
            "Año 2º: ¿qué pasó? ¡Olé!",
            "El niño y la cigüeña",
            "Col·lecció d'història",
            "Università degli studi di Forlì: perché no",
            "Privé-coöperatie en geïnteresseerden",
            "5 m² à 20 °C ± 1, ½ l, £5 or €7, 3 × 4 µm",
            "© 2001 Société Générale®",
            "naïve café",
            "«Où?» – «Là!»",
            "5 m³s-1 or 10 m³h, x±y, a±b",
            "aujourd¿hui à l¿école",
            "Smith¹, Müller³, Gómez¹ and Wu³",
            "Ça",
            "à",
            "ÉÉÉÉÉÉ",
        ] {
            for language in ["", "eng", "fra", "und", "mul"] {
                assert_eq!(read(title, "windows-1252", language).as_deref(), Ok(title), "{language}");
            }
        }
    }

    #[test]
    fn the_letters_decide() {
        for (title, charsets) in [
            ("Исследование свойств полимеров", &["windows-1251", "KOI8-R", "ISO-8859-5"][..]),
            ("Москва", &["windows-1251", "KOI8-R"]),
            ("Россия и мир: сборник статей", &["windows-1251", "KOI8-R", "ISO-8859-5"]),
            ("Київський національний університет", &["windows-1251", "KOI8-U"]),
            ("Българска академия на науките", &["windows-1251"]),
            ("Историја српског народа", &["windows-1251"]),
            ("Ιστορία της Ελλάδας", &["windows-1253", "ISO-8859-7"]),
            ("תולדות ישראל", &["windows-1255"]),
            ("تاريخ الأدب العربي", &["windows-1256"]),
            ("Wałęsa i Zażółć gęślą jaźń", &["ISO-8859-2"]),
            ("Władysław Łokietek na Śląsku, wśród książąt", &["ISO-8859-2"]),
        ] {
            for charset in charsets {
                assert_eq!(read(title, charset, "").as_deref(), Ok(title), "{charset}");
            }
        }
    }

    #[test]
    fn the_language_decides_where_letters_do_not() {
        for (title, charset, language) in [
            ("Мир", "windows-1251", "rus"),
            ("Мир", "KOI8-R", "ru"),
            ("Magyar nyelvű könyvek és folyóiratok gyűjteménye", "ISO-8859-2", "hun"),
            ("Dvořák, Antonín", "windows-1250", "cze"),
            ("Vliv prostředí na růst rostlin", "ISO-8859-2", "cs"),
            ("Łódź", "ISO-8859-2", "pol"),
            ("Povijest hrvatske književnosti", "windows-1250", "hr-HR"),
            ("Türkçe dil bilgisi ve yazım kuralları", "windows-1254", "tur"),
        ] {
            assert_eq!(read(title, charset, language).as_deref(), Ok(title), "{charset}");
        }
    }

    #[test]
    fn letters_of_no_charset_are_refused() {
        let noise: Vec<u8> = [
            b"<r>",
            &b"\xA4\xFD\xDD\xA2\xF7\xAC\xD7\xB7\xF0\xAE\xB8 \xAC\xA8\xF7\xD7\xA9\xFE\xAA\x81\x9D"[..],
            b"</r>",
        ]
        .concat();
        assert_eq!(detect_charset(&noise, 0, None), Err(QuarantineReason::UnknownCharset));
        assert_eq!(detect_charset(&noise, 0, Some("windows-1252")), Ok(Some(WINDOWS_1252)));
    }
}
