//! The inner loop of [`index`](super::index), in vector instructions where the machine has them.
//!
//! The only place of the crate with `unsafe`: AVX2 intrinsics behind a check
//! at run time. The portable loop beside it is the definition; the tests and
//! the fuzzers hold the two against each other.

/// Bytes of text to a word of marks.
const STEP: usize = 64;

/// Marks `<`, `&` and the `>` of `]]>` in `text`, which is valid UTF-8 and
/// stands behind the two bytes `before`: one bit a byte, 64 bytes to a word.
///
/// Stops at the first character that XML 1.0 cannot hold (C0 controls but TAB,
/// LF and CR; U+FFFE, U+FFFF) and returns its offset. Nothing behind it is marked.
pub(super) fn mark(text: &[u8], before: &[u8], words: &mut Vec<u64>) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1") {
        // SAFETY: the two features that `avx2::mark` needs were just found on this machine.
        #[allow(unsafe_code)]
        return unsafe { avx2::mark(text, before, words) };
    }
    mark_portable(text, 0, before, words)
}

/// The definition: one byte at a time, from `from` on, which is a multiple of 64.
fn mark_portable(text: &[u8], from: usize, before: &[u8], words: &mut Vec<u64>) -> Option<usize> {
    let mut previous = before.last().copied().unwrap_or(0);
    let mut second = before.iter().rev().nth(1).copied().unwrap_or(0);
    for (step, bytes) in text.get(from..).unwrap_or_default().chunks(STEP).enumerate() {
        let mut word = 0;
        for (bit, &byte) in bytes.iter().enumerate() {
            let at = from + step * STEP + bit;
            match byte {
                b'<' | b'&' => word |= 1 << bit,
                b'>' if previous == b']' && second == b']' => word |= 1 << bit,
                0..=8 | 11 | 12 | 14..=31 => {
                    words.push(word);
                    return Some(at);
                }
                0xEF if matches!(text.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])) => {
                    words.push(word);
                    return Some(at);
                }
                _ => {}
            }
            second = previous;
            previous = byte;
        }
        words.push(word);
    }
    None
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_andnot_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_shuffle_epi8, _mm256_testz_si256,
    };

    use super::STEP;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(low: __m256i, high: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
    }

    /// A table in which each of `bytes`, ASCII with different low halves, stands where its low
    /// half points to: a shuffle by it gives these bytes back as they are, and no other byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn table(bytes: &[u8]) -> __m256i {
        let mut table = [0xFF_u8; 16];
        for &byte in bytes {
            if let Some(entry) = table.get_mut(usize::from(byte & 0xF)) {
                *entry = byte;
            }
        }
        // SAFETY: the table is 16 bytes long, and the load is an unaligned one.
        let table = unsafe { _mm_loadu_si128(table.as_ptr().cast()) };
        _mm256_broadcastsi128_si256(table)
    }

    /// Of the bytes EF in the step at `at`, those that begin U+FFFE or U+FFFF.
    fn noncharacters(text: &[u8], at: usize, mut leads: u64) -> u64 {
        let mut found = 0;
        while leads != 0 {
            let bit = leads.trailing_zeros() as usize;
            if matches!(text.get(at + bit + 1..at + bit + 3), Some([0xBF, 0xBE | 0xBF])) {
                found |= 1 << bit;
            }
            leads &= leads - 1;
        }
        found
    }

    /// 64 bytes at a time; what is left at the end goes through the portable loop.
    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn mark(text: &[u8], before: &[u8], words: &mut Vec<u64>) -> Option<usize> {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let (gt, bracket, lead, top) = (splat(b'>'), splat(b']'), splat(0xEF), splat(0x1F));
        let (blanks, starts) = (table(b"\t\n\r"), table(b"<&"));
        let is = |v: __m256i, w: __m256i| _mm256_cmpeq_epi8(v, w);
        let is_of = |table: __m256i, v: __m256i| is(v, _mm256_shuffle_epi8(table, v));
        let control = |v: __m256i| _mm256_andnot_si256(is_of(blanks, v), is(_mm256_min_epu8(v, top), v));
        let tail = |n: usize| before.iter().rev().nth(n) == Some(&b']');
        // Bit 63: the last byte before is `]`; bit 62: the one before that.
        let mut carry = u64::from(tail(0)) << 63 | u64::from(tail(1)) << 62;
        let mut at = 0;
        while let Some(step) = text.get(at..at + STEP) {
            // SAFETY: `step` is 64 bytes long, and the loads are unaligned ones.
            let (low, high) = unsafe {
                let start = step.as_ptr().cast::<__m256i>();
                (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1)))
            };
            let illegal = _mm256_or_si256(control(low), control(high));
            let rare = |v: __m256i| _mm256_or_si256(is(v, lead), is(v, bracket));
            let doubtful = _mm256_or_si256(illegal, _mm256_or_si256(rare(low), rare(high)));
            let mut found = mask(is_of(starts, low), is_of(starts, high));
            if carry == 0 && _mm256_testz_si256(doubtful, doubtful) != 0 {
                words.push(found);
                at += STEP;
                continue;
            }
            let mut bad = mask(control(low), control(high));
            bad |= noncharacters(text, at, mask(is(low, lead), is(high, lead)));
            let brackets = mask(is(low, bracket), is(high, bracket));
            let ends = mask(is(low, gt), is(high, gt));
            found |= ends & (brackets << 1 | carry >> 63) & (brackets << 2 | carry >> 62);
            carry = brackets;
            if bad != 0 {
                let first = bad.trailing_zeros();
                words.push(found & ((1 << first) - 1));
                return Some(at + first as usize);
            }
            words.push(found);
            at += STEP;
        }
        let context = if at >= 2 { text.get(at - 2..at).unwrap_or_default() } else { before };
        super::mark_portable(text, at, context, words)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::{mark, mark_portable};

    /// The vector loop finds what the definition finds, at every alignment.
    #[test]
    fn vector_and_portable_agree() {
        let seed = 0x5EED_0001_u64;
        let mut state = seed;
        let mut random = move |n: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n as u64) as usize
        };
        let alphabet: [&str; 16] = [
            "a", "<", "&", "]", "]]>", ">", "\t", "\u{fffe}", "\u{ffff}", "\u{fffd}", "\u{ff0c}", "é",
            "\u{1}", "text ", "\r\n", "]]",
        ];
        for round in 0..20_000 {
            let rare = round % 3 == 0;
            let text: String = (0..random(200))
                .map(|_| {
                    loop {
                        let piece = alphabet[random(alphabet.len())];
                        if rare || !matches!(piece, "\u{fffe}" | "\u{ffff}" | "\u{1}") {
                            break piece;
                        }
                    }
                })
                .collect();
            let before = [b"", &b"]"[..], b"]]", b"a]", b"]a"][random(5)];
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            let verdict = mark_portable(text.as_bytes(), 0, before, &mut slow);
            assert_eq!(mark(text.as_bytes(), before, &mut fast), verdict, "seed {seed:#x}: {text:?}");
            assert_eq!(fast, slow, "seed {seed:#x}: {text:?}");
        }
    }

    /// Whatever shares its low half with a byte that counts is told from it.
    #[test]
    fn each_character_is_what_it_is_to_both() {
        for character in '\0'..='\u{17f}' {
            let text = format!("{character}{}{character}]{character}]]>{character}", "-".repeat(61));
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            let verdict = mark_portable(text.as_bytes(), 0, b"", &mut slow);
            assert_eq!(mark(text.as_bytes(), b"", &mut fast), verdict, "{text:?}");
            assert_eq!(fast, slow, "{text:?}");
        }
    }
}
