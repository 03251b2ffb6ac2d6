//! How a text is written, in few bytes beside its folded form: many texts differ in capital letters only.

/// Begins the places of capital letters.
const CAPITALS: char = '\u{4}';
/// Begins a text that differs in more.
const LITERAL: char = '\u{5}';
/// Stands for the folded text itself. It is the last of the spellings of a text in order.
const SAME: &str = "\u{6}";
/// Stands for no letters before the next capital one. The characters after it stand for more.
const NONE_BETWEEN: u32 = 0x20;
/// Stands for this many letters of which none is a capital one.
const SKIPPED: u32 = 0x5F;

/// What tells the written form of a folded text. [`written`] reads it.
pub(crate) fn spelling(folded: &str, written: &str) -> String {
    if folded == written {
        return SAME.to_owned();
    }
    capitals(folded, written).unwrap_or_else(|| format!("{LITERAL}{written}"))
}

fn capitals(folded: &str, written: &str) -> Option<String> {
    let mut places = String::from(CAPITALS);
    let mut between = 0;
    let mut rest = written.chars();
    for letter in folded.chars() {
        let written = rest.next()?;
        if written == letter {
            between += 1;
        } else if is_capital(letter, written) {
            while between >= SKIPPED {
                places.extend(char::from_u32(NONE_BETWEEN + SKIPPED));
                between -= SKIPPED;
            }
            places.extend(char::from_u32(NONE_BETWEEN + between));
            between = 0;
        } else {
            return None;
        }
    }
    if rest.next().is_none() { Some(places) } else { None }
}

/// Whether a letter is the only capital form of another one.
fn is_capital(letter: char, written: char) -> bool {
    letter.to_uppercase().eq([written])
}

/// The written form of a folded text. A spelling that is not understood is that of the folded text.
pub(crate) fn written(folded: &str, spelling: &str) -> String {
    if let Some(literal) = spelling.strip_prefix(LITERAL) {
        return literal.to_owned();
    }
    let Some(places) = spelling.strip_prefix(CAPITALS) else { return folded.to_owned() };
    let mut letters = folded.chars();
    let mut written = String::with_capacity(folded.len());
    for place in places.chars() {
        let between = u32::from(place).saturating_sub(NONE_BETWEEN);
        written.extend(letters.by_ref().take(between as usize));
        if between < SKIPPED {
            written.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        }
    }
    written.extend(letters);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::fold_value;

    #[test]
    fn spellings_lead_to_the_written_text() {
        let long = format!("A{}B{}", "b".repeat(200), "c".repeat(95));
        for (text, bytes) in [
            ("maps", 1),
            ("Maps of the North Sea", 4),
            ("Müller, J.", 12),
            ("Карта Мира", 3),
            ("ǅ", 3),
            ("İstanbul", 10),
            ("Straße", 8),
            (long.as_str(), 5),
        ] {
            let folded = fold_value(text);
            let spelling = spelling(&folded, text);
            assert_eq!((written(&folded, &spelling).as_str(), spelling.len()), (text, bytes), "{text}");
            assert!(spelling.chars().all(|character| character > '\u{3}'), "{text}");
        }
    }

    #[test]
    fn random_texts_are_written_as_they_were() {
        let seed = 20_261_126;
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..20_000 {
            let length = random.usize(..250);
            let letters = ['a', 'B', 'É', 'ж', 'Ж', 'ß', 'İ', '東', ' ', 'Σ', 'ς', '9'];
            let text: String = (0..length).map(|_| letters[random.usize(..letters.len())]).collect();
            let text = oaimend_record::on_one_line(&text);
            let folded = fold_value(&text);
            assert_eq!(written(&folded, &spelling(&folded, &text)), text);
        }
    }
}
