//! The inner loops of [`index`](crate::lex::index) and of the search for tags by name, in vector instructions
//! where the CPU has them.
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

/// Which tags [`find_pairs`] finds, by the first two bytes of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamePairs {
    /// Each pair has a bit in these tables: those of its first byte, by the low and the high half of the byte, and
    /// those of its second byte.
    first: [[u8; 16]; 2],
    second: [[u8; 16]; 2],
    /// The bits of pairs that are found in end tags, too.
    in_end_tags: u8,
}

impl NamePairs {
    /// Maximum number of pairs.
    const PAIRS_MAX: usize = 8;

    /// At most `PAIRS_MAX` pairs. The first `in_end_tags` of them are found in start tags and end tags, the others
    /// in start tags only. Any byte can follow a first byte without a second one.
    pub(crate) fn new(pairs: &[(u8, Option<u8>)], in_end_tags: usize) -> Self {
        let mut tables = Self::default();
        for (number, &(first, second)) in pairs.iter().take(Self::PAIRS_MAX).enumerate() {
            let bit = 1_u8 << number;
            if number < in_end_tags {
                tables.in_end_tags |= bit;
            }
            let note = |tables: &mut [[u8; 16]; 2], byte: u8| {
                for (table, half) in tables.iter_mut().zip([byte & 0xF, byte >> 4]) {
                    if let Some(entry) = table.get_mut(usize::from(half)) {
                        *entry |= bit;
                    }
                }
            };
            note(&mut tables.first, first);
            match second {
                Some(second) => note(&mut tables.second, second),
                None => tables.second.as_flattened_mut().iter_mut().for_each(|entry| *entry |= bit),
            }
        }
        tables
    }
}

/// Fewest bytes of a name, or of its part after the first colon, that [`find_pairs`] finds whatever they are.
pub(crate) const LONG_NAME_BYTES: usize = 13;

/// Searches the next 64 bytes that contain a `<` before a name that begins with one of the pairs, or before a long
/// name of a start tag. A long name has no white space, control or `>` in its first [`LONG_NAME_BYTES`] bytes.
///
/// Returns the place of these bytes and a bit for each such `<`; other `<` may have a bit, too. Without a bit, there
/// is none between `from` and the place, and the caller must read on there. So it is near the end of the text, and
/// for a CPU without the instructions, which gives `from`.
pub(crate) fn find_pairs(text: &[u8], from: usize, pairs: &NamePairs) -> (usize, u64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1") {
        // SAFETY: the check above found both features that `avx2::find_pairs` needs.
        #[allow(unsafe_code)]
        return unsafe { avx2::find_pairs(text, from, pairs) };
    }
    let _ = (text, pairs);
    (from, 0)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_testz_si256,
    };

    use super::{LONG_NAME_BYTES, NamePairs, STEP};

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
        // The rest is marked as a step with spaces after it.
        let mut last = [b' '; STEP];
        if let Some(last) = last.get_mut(..rest.len()) {
            last.copy_from_slice(rest);
        }
        words.resize(text.len().div_ceil(STEP), 0);
        for (index, word) in words.iter_mut().enumerate() {
            let step = steps.get(index).unwrap_or(&last);
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
        None
    }

    /// The places in 64 bytes that matter to [`find_pairs`], one bit for each byte.
    #[derive(Clone, Copy)]
    struct Places {
        /// `<`
        tags: u64,
        /// `/`
        slashes: u64,
        /// The first bytes of pairs, and of those of end tags.
        pairs: u64,
        end_pairs: u64,
        /// Bytes that end a name: white space, controls, `>`.
        ends: u64,
        colons: u64,
    }

    impl Places {
        /// The start tags with long names, at least. `after` are the places in the next 64 bytes.
        #[inline]
        fn long_names(&self, after: &Self, start_tags: u64) -> u64 {
            let both = |bits: u64, after: u64| u128::from(bits) | u128::from(after) << STEP;
            // Bit n: none of the bytes n + 1 to n + LONG_NAME_BYTES ends a name.
            const { assert!(LONG_NAME_BYTES == 13) };
            let is_long_from = |ends: u128| {
                let ends = ends | ends >> 1;
                let ends = ends | ends >> 2;
                let ends = ends | ends >> 4;
                !((ends | ends >> 5) >> 1)
            };
            let (ends, colons) = (both(self.ends, after.ends), both(self.colons, after.colons));
            // The sum carries from the start of each name to its first colon or its end.
            let starts = u128::from(start_tags) << 1;
            let (sum, is_cut) = (!(ends | colons)).overflowing_add(starts);
            let has_long_local = sum & colons & is_long_from(ends) != 0;
            let found = if is_cut || has_long_local { u64::MAX } else { is_long_from(ends | colons) as u64 };
            start_tags & found
        }
    }

    #[target_feature(enable = "avx2,bmi1")]
    pub(crate) fn find_pairs(text: &[u8], from: usize, pairs: &NamePairs) -> (usize, u64) {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let low_half = splat(0x0F);
        let [[first_low, first_high], [second_low, second_high]] =
            [pairs.first, pairs.second].map(|halves| halves.map(|entries| table(entries)));
        let in_end_tags = splat(pairs.in_end_tags);
        let equal = |v: __m256i, byte: u8| _mm256_cmpeq_epi8(v, splat(byte));
        let kinds_in = |v: __m256i, by_low: __m256i, by_high: __m256i| {
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(v), low_half);
            // A shuffle gives nothing for a byte of 0x80 or more, so only the half is its index.
            let low = _mm256_and_si256(v, low_half);
            _mm256_and_si256(_mm256_shuffle_epi8(by_low, low), _mm256_shuffle_epi8(by_high, high))
        };
        let some = |v: [__m256i; 2]| {
            let none = v.map(|v| _mm256_cmpeq_epi8(v, _mm256_setzero_si256()));
            !mask(none[0], none[1])
        };
        let places_at = |step: &[u8; STEP + 1]| {
            // SAFETY: `step` is 65 bytes long, and the loads are unaligned ones.
            let (bytes, next) = unsafe {
                let start = step.as_ptr();
                let load = |at: usize| _mm256_loadu_si256(start.add(at).cast::<__m256i>());
                ([load(0), load(STEP / 2)], [load(1), load(STEP / 2 + 1)])
            };
            let pair = |v: __m256i, next: __m256i| {
                _mm256_and_si256(kinds_in(v, first_low, first_high), kinds_in(next, second_low, second_high))
            };
            let found = [pair(bytes[0], next[0]), pair(bytes[1], next[1])];
            let ends = bytes.map(|v| {
                _mm256_or_si256(equal(v, b'>'), _mm256_cmpeq_epi8(_mm256_min_epu8(v, splat(b' ')), v))
            });
            Places {
                tags: mask(equal(bytes[0], b'<'), equal(bytes[1], b'<')),
                slashes: mask(equal(bytes[0], b'/'), equal(bytes[1], b'/')),
                pairs: some(found),
                end_pairs: some(found.map(|v| _mm256_and_si256(v, in_end_tags))),
                ends: mask(ends[0], ends[1]),
                colons: mask(equal(bytes[0], b':'), equal(bytes[1], b':')),
            }
        };
        let step_at = |at: usize| text.get(at..)?.first_chunk::<{ STEP + 1 }>();
        let mut at = from;
        let Some(mut places) = step_at(at).map(places_at) else { return (from, 0) };
        while let Some(after) = step_at(at + STEP).map(places_at) {
            // Bit n of the result: bit n + `by` of the 128 bits.
            let ahead = |bits: u64, after: u64, by: usize| bits >> by | after << (STEP - by);
            let slashes = ahead(places.slashes, after.slashes, 1);
            let in_start_tag = ahead(places.pairs, after.pairs, 1);
            let in_end_tag = slashes & ahead(places.end_pairs, after.end_pairs, 2);
            let long_names = places.long_names(&after, places.tags & !slashes);
            let found = places.tags & (in_start_tag | in_end_tag) | long_names;
            if found != 0 {
                return (at, found);
            }
            at += STEP;
            places = after;
        }
        (at, 0)
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
