//! The inner loop of [`index`](crate::lex::index), in vector instructions where the CPU has them.
//!
//! This is the only file of the crate with `unsafe`: AVX2 intrinsics after a check at run time. The
//! portable loop is the definition. Tests and fuzzers compare the two.

/// Bytes of text for each word of marks.
const STEP: usize = 64;

/// Marks each `<`, each `&` and the `>` of each `]]>` in `text`, one bit for each byte, 64 bytes for each
/// word.
///
/// `text` is valid UTF-8 and follows the bytes `before`. `words` is empty at the call. The loop stops at
/// the first character that XML 1.0 does not allow (C0 controls except TAB, LF and CR; U+FFFE, U+FFFF), and
/// returns its offset. Nothing after it is marked.
pub(crate) fn mark(text: &[u8], before: &[u8], words: &mut Vec<u64>) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1") {
        // SAFETY: the check above found both features that `avx2::mark` needs.
        #[allow(unsafe_code)]
        return unsafe { avx2::mark(text, before, words) };
    }
    mark_portable(text, 0, before, words)
}

/// The definition: one byte at a time, from `from`, which is a multiple of 64.
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
        __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256,
        _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_testz_si256,
    };

    use super::STEP;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(low: __m256i, high: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn table(entries: [u8; 16]) -> __m256i {
        // SAFETY: the table is 16 bytes long, and the load is an unaligned one.
        let entries = unsafe { _mm_loadu_si128(entries.as_ptr().cast()) };
        _mm256_broadcastsi128_si256(entries)
    }

    /// A shuffle table that contains each of `bytes` at the index of its low half. The bytes are ASCII with
    /// different low halves. A shuffle by the table returns these bytes unchanged, and no other byte.
    fn identity_table(bytes: &[u8]) -> [u8; 16] {
        let mut table = [0xFF_u8; 16];
        for &byte in bytes {
            if let Some(entry) = table.get_mut(usize::from(byte & 0xF)) {
                *entry = byte;
            }
        }
        table
    }

    /// Kinds of bytes that need more than the text loop. Each kind has a bit in the tables of both halves of
    /// a byte. A byte is of a kind if both tables have its bit.
    const CONTROL: u8 = 1;
    const HIGH_CONTROL: u8 = 2;
    const BRACKET: u8 = 4;
    const LEAD: u8 = 8;

    /// By the low half: controls except TAB, LF and CR; `]`; and EF.
    const LOW: [u8; 16] = {
        let mut low = [CONTROL | HIGH_CONTROL; 16];
        low[0x9] = HIGH_CONTROL;
        low[0xA] = HIGH_CONTROL;
        low[0xD] = HIGH_CONTROL | BRACKET;
        low[0xF] |= LEAD;
        low
    };
    /// By the high half.
    const HIGH: [u8; 16] = {
        let mut high = [0; 16];
        high[0x0] = CONTROL;
        high[0x1] = HIGH_CONTROL;
        high[0x5] = BRACKET;
        high[0xE] = LEAD;
        high
    };

    /// The bits of those EF bytes in the step at `at` that begin U+FFFE or U+FFFF.
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

    /// Marks 64 bytes at a time. The portable loop marks the rest.
    #[target_feature(enable = "avx2,bmi1")]
    pub(crate) fn mark(text: &[u8], before: &[u8], words: &mut Vec<u64>) -> Option<usize> {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let (starts, low_half) = (table(identity_table(b"<&")), splat(0x0F));
        let (by_low, by_high) = (table(LOW), table(HIGH));
        let equal = |v: __m256i, w: __m256i| _mm256_cmpeq_epi8(v, w);
        let starts_in = |v: __m256i| equal(_mm256_shuffle_epi8(starts, v), v);
        let kinds_in = |v: __m256i| {
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(v), low_half);
            let low = _mm256_and_si256(v, low_half);
            _mm256_and_si256(_mm256_shuffle_epi8(by_low, low), _mm256_shuffle_epi8(by_high, high))
        };
        let tail = |n: usize| before.iter().rev().nth(n) == Some(&b']');
        // Bit 63: the last byte before is `]`; bit 62: the one before that.
        let mut carry = u64::from(tail(0)) << 63 | u64::from(tail(1)) << 62;
        let (steps, rest) = text.as_chunks::<STEP>();
        words.resize(steps.len(), 0);
        for (index, (step, word)) in steps.iter().zip(words.iter_mut()).enumerate() {
            // SAFETY: `step` is 64 bytes long, and the loads are unaligned ones.
            let (low, high) = unsafe {
                let start = step.as_ptr().cast::<__m256i>();
                (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1)))
            };
            let (low_kinds, high_kinds) = (kinds_in(low), kinds_in(high));
            let kinds = _mm256_or_si256(low_kinds, high_kinds);
            *word = mask(starts_in(low), starts_in(high));
            if carry == 0 && _mm256_testz_si256(kinds, kinds) != 0 {
                continue;
            }
            let of_kind = |kind: u8| {
                let none = |kinds| equal(_mm256_and_si256(kinds, splat(kind)), _mm256_setzero_si256());
                !mask(none(low_kinds), none(high_kinds))
            };
            let at = index * STEP;
            let bad = of_kind(CONTROL | HIGH_CONTROL) | noncharacters(text, at, of_kind(LEAD));
            let brackets = of_kind(BRACKET);
            let ends = mask(equal(low, splat(b'>')), equal(high, splat(b'>')));
            *word |= ends & (brackets << 1 | carry >> 63) & (brackets << 2 | carry >> 62);
            carry = brackets;
            if bad != 0 {
                let first = bad.trailing_zeros();
                *word &= (1 << first) - 1;
                words.truncate(index + 1);
                return Some(at + first as usize);
            }
        }
        let at = text.len() - rest.len();
        let context = if at >= 2 { text.get(at - 2..at).unwrap_or_default() } else { before };
        super::mark_portable(text, at, context, words)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::{mark, mark_portable};
    use crate::random;

    /// The vector loop returns the result of the definition at every alignment.
    #[test]
    fn vector_and_portable_agree() {
        let seed = 0x5EED_0001_u64;
        let mut random = random(seed);
        let alphabet: [&str; 16] = [
            "a", "<", "&", "]", "]]>", ">", "\t", "\u{fffe}", "\u{ffff}", "\u{fffd}", "\u{ff0c}", "é",
            "\u{1}", "text ", "\r\n", "]]",
        ];
        for round in 0..20_000 {
            let rare = round % 3 == 0;
            let text: String = (0..random(200))
                .map(|_| {
                    loop {
                        let part = alphabet[random(alphabet.len())];
                        if rare || !matches!(part, "\u{fffe}" | "\u{ffff}" | "\u{1}") {
                            break part;
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

    /// Bytes that share a low half with a marked byte are not marked.
    #[test]
    fn both_loops_mark_the_same_characters() {
        for character in '\0'..='\u{17f}' {
            let text = format!("{character}{}{character}]{character}]]>{character}", "-".repeat(61));
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            let verdict = mark_portable(text.as_bytes(), 0, b"", &mut slow);
            assert_eq!(mark(text.as_bytes(), b"", &mut fast), verdict, "{text:?}");
            assert_eq!(fast, slow, "{text:?}");
        }
    }
}
