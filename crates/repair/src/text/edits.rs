//! A list of changes to one text, which can be applied and composed.
//!
//! Each pass of the slow path is a pure function from text to edits. Composition turns the edits of all
//! passes into edits of the original bytes. So the journal describes the input.

use std::borrow::Cow;
use std::ops::Range;

use crate::catalog::{Effect, RepairId};
use crate::lex::search::count_read;
use crate::span::Span;

/// One change: the text from `start` to `end` becomes `replacement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) id: RepairId,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) replacement: Vec<u8>,
    /// Whether this change, or one that was merged into it, changes content.
    pub(crate) content: bool,
}

/// Changes in the order of the text, without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits(Vec<Edit>);

impl Edits {
    /// Adds a change after all others. Adjacent changes of one kind are merged, so that a run of defects is
    /// one entry.
    pub(crate) fn push(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.push_edit(Edit::new(id, start, end, replacement.to_vec()));
    }

    /// Like [`Edits::push`], for an existing edit.
    pub(crate) fn push_edit(&mut self, edit: Edit) {
        match self.0.last_mut() {
            Some(previous)
                if previous.id == edit.id
                    && previous.end == edit.start
                    // Two insertions at one place, or two adjacent ranges.
                    && (edit.end > edit.start) == (previous.end > previous.start) =>
            {
                previous.end = edit.end;
                previous.replacement.extend_from_slice(&edit.replacement);
                previous.content |= edit.content;
            }
            _ => self.0.push(edit),
        }
    }

    /// Adds the changes of a later part of the text.
    pub(crate) fn append(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Adds a change at any place. [`Edits::sort`] moves it to its position.
    pub(crate) fn push_unordered(&mut self, id: RepairId, start: usize, end: usize, replacement: Vec<u8>) {
        self.0.push(Edit::new(id, start, end, replacement));
    }

    /// Like [`Edits::push_unordered`], for an existing edit.
    pub(crate) fn push_edit_unordered(&mut self, edit: Edit) {
        self.0.push(edit);
    }

    /// Marks the last change as one of content, because changes of content were merged into it.
    pub(crate) fn mark_content(&mut self) {
        if let Some(last) = self.0.last_mut() {
            last.content = true;
        }
    }

    /// Whether any change changes content.
    pub(crate) fn change_content(&self) -> bool {
        self.0.iter().any(|edit| edit.content)
    }

    /// Sorts the changes by their position. Insertions at one place keep their order and precede a change
    /// that begins there.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|edit| (edit.start, edit.end));
        let mut merged = Self::default();
        for edit in std::mem::take(&mut self.0) {
            merged.push_edit(edit);
        }
        *self = merged;
    }

    /// Removes and returns the changes within `start..end`. An insertion at `start` stays.
    pub(crate) fn take_within(&mut self, start: usize, end: usize) -> Self {
        let all = std::mem::take(&mut self.0);
        count_read(all.len());
        let (mut inside, outside): (Vec<Edit>, Vec<Edit>) =
            all.into_iter().partition(|edit| edit.start >= start && edit.end <= end && edit.end > start);
        self.0 = outside;
        inside.sort_by_key(|edit| (edit.start, edit.end));
        Self(inside)
    }

    /// Drops all changes except the first `len` that were added.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Drops the last added changes that are within `start..end`.
    pub(crate) fn drop_last_within(&mut self, start: usize, end: usize) {
        while self.0.pop_if(|edit| edit.start >= start && edit.end <= end).is_some() {}
    }

    /// Whether one change removes exactly `start..end`.
    pub(crate) fn removes(&self, start: usize, end: usize) -> bool {
        self.0.iter().any(|edit| edit.start == start && edit.end == end && edit.replacement.is_empty())
    }

    /// Applies the changes to `text`, which begins at offset `at`.
    pub(crate) fn apply_at(mut self, text: &[u8], at: usize) -> Vec<u8> {
        for edit in &mut self.0 {
            edit.start -= at;
            edit.end -= at;
        }
        self.apply(text).into_owned()
    }

    /// Marks the escapes of a seemingly unterminated section as the guess `torn-section`.
    pub(crate) fn mark_torn_sections(&mut self) {
        for edit in &mut self.0 {
            let opens = edit.id == RepairId::BrokenComment && edit.replacement == b"&lt;";
            if opens || edit.id == RepairId::UnterminatedCdata {
                edit.id = RepairId::TornSection;
            }
        }
    }

    /// The place of a range of the text after all changes. An insertion at its end is not a part of it.
    pub(crate) fn moved(&self, span: Span) -> Span {
        let Range { start, end } = span.range();
        let growth = |edits: &mut dyn Iterator<Item = &Edit>| -> i64 {
            edits.map(|edit| edit.replacement.len() as i64 - (edit.end - edit.start) as i64).sum()
        };
        let before = growth(&mut self.iter().take_while(|edit| edit.end <= start));
        let until_end = growth(&mut self.iter().take_while(|edit| edit.end <= end && edit.start < end));
        let [start, end] = [(span.start, before), (span.end, until_end.max(before))]
            .map(|(at, growth)| u32::try_from(i64::from(at) + growth).unwrap_or(at));
        Span { start, end }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The length of all replacements, in bytes.
    pub(crate) fn replacement_bytes(&self) -> usize {
        self.0.iter().map(|edit| edit.replacement.len()).sum()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Edit> {
        self.0.iter()
    }

    /// The text after the changes. It is borrowed if there are none.
    pub(crate) fn apply<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        count_read(text.len());
        let mut output = Vec::with_capacity(text.len() + self.replacement_bytes());
        let mut at = 0;
        for edit in &self.0 {
            output.extend_from_slice(text.get(at..edit.start).unwrap_or_default());
            output.extend_from_slice(&edit.replacement);
            at = edit.end;
        }
        output.extend_from_slice(text.get(at..).unwrap_or_default());
        Cow::Owned(output)
    }

    /// Composes `self` and `later` into changes of the original text. `middle` is the text between the two.
    /// If a later change touches the replacement of an earlier one, the two are merged under the id of the
    /// later one.
    pub(crate) fn then(self, middle: &[u8], later: Self) -> Self {
        if self.is_empty() {
            return later;
        }
        count_read(self.len() + later.len());
        let mut earlier = self.0.into_iter().peekable();
        let mut later = later.0.into_iter().peekable();
        let mut composed = Vec::new();
        // The offset in the middle text minus the offset in the original text.
        let mut shift = 0_isize;
        loop {
            match (earlier.peek(), later.peek()) {
                (None, None) => return Self(composed),
                (Some(first), second)
                    if second.is_none_or(|second| first.middle_range(shift).1 <= second.start) =>
                {
                    shift += first.growth();
                    composed.extend(earlier.next());
                }
                (first, Some(second))
                    if first.is_none_or(|first| second.end <= first.middle_range(shift).0) =>
                {
                    let (start, end) =
                        (original_offset(second.start, shift), original_offset(second.end, shift));
                    composed.extend(later.next().map(|second| Edit { start, end, ..second }));
                }
                _ => composed.push(merge(&mut earlier, &mut later, middle, &mut shift)),
            }
        }
    }
}

impl Edit {
    fn new(id: RepairId, start: usize, end: usize, replacement: Vec<u8>) -> Self {
        Self { id, start, end, replacement, content: id.effect() == Effect::Content }
    }

    /// The range of its replacement in the text after it.
    pub(crate) fn middle_range(&self, shift: isize) -> (usize, usize) {
        let start = self.start.saturating_add_signed(shift);
        (start, start + self.replacement.len())
    }

    pub(crate) fn growth(&self) -> isize {
        self.replacement.len() as isize - (self.end - self.start) as isize
    }
}

fn original_offset(middle: usize, shift: isize) -> usize {
    middle.saturating_add_signed(-shift)
}

type EditQueue = std::iter::Peekable<std::vec::IntoIter<Edit>>;

/// Merges an earlier and a later change that touch, and all further changes that touch the result.
fn merge(earlier: &mut EditQueue, later: &mut EditQueue, middle: &[u8], shift: &mut isize) -> Edit {
    let before = *shift;
    let (mut start, mut end) = (usize::MAX, 0);
    let mut seconds = Edits::default();
    let (mut first_id, mut content) = (None, false);
    loop {
        let first = earlier.next_if(|first| start == usize::MAX || first.middle_range(*shift).0 < end);
        let second = later.next_if(|second| seconds.is_empty() || second.start < end);
        if first.is_none() && second.is_none() {
            break;
        }
        if let Some(first) = first {
            let (from, to) = first.middle_range(*shift);
            start = start.min(from);
            end = end.max(to);
            *shift += first.growth();
            first_id = first_id.or(Some(first.id));
            content |= first.content;
        }
        if let Some(second) = second {
            start = start.min(second.start);
            end = end.max(second.end);
            content |= second.content;
            seconds.0.push(second);
        }
    }
    // An insertion of provenance into a repaired text stays that repair.
    let is_added = |edit: &&Edit| edit.id == RepairId::RewriteProvenance;
    let id = seconds.0.first().filter(|edit| !is_added(edit)).map(|edit| edit.id).or(first_id);
    let id = id.unwrap_or(RepairId::UnexpectedContent);
    let range = middle.get(start..end).unwrap_or_default();
    for second in &mut seconds.0 {
        second.start -= start;
        second.end -= start;
    }
    let replacement = seconds.apply(range).into_owned();
    Edit {
        id,
        start: original_offset(start, before),
        end: original_offset(end, *shift),
        replacement,
        content,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::{Edits, RepairId};
    use crate::random;

    fn random_edits(len: usize, random: &mut impl FnMut(usize) -> usize) -> Edits {
        let mut edits = Edits::default();
        let mut at = 0;
        while at < len && random(4) > 0 {
            let start = at + random(len - at + 1);
            let end = start + random((len - start).min(4) + 1);
            let replacement: Vec<u8> = (0..random(4)).map(|_| b"XYZ"[random(3)]).collect();
            edits.push(RepairId::BareAmpersand, start, end, &replacement);
            at = end + 1;
        }
        edits
    }

    #[test]
    fn composition_does_what_both_do() {
        let seed = 0x5EED_0002_u64;
        let mut random = random(seed);
        for _ in 0..200_000 {
            let text: Vec<u8> = (0..random(24)).map(|_| b"abcdef"[random(6)]).collect();
            let first = random_edits(text.len(), &mut random);
            let middle = first.apply(&text);
            let second = random_edits(middle.len(), &mut random);
            let output = second.apply(&middle);
            let both = first.clone().then(&middle, second.clone());
            assert_eq!(both.apply(&text), output, "seed {seed:#x}: {text:?} {first:?} {second:?} {both:?}");
            let mut at = 0;
            for edit in both.iter() {
                assert!(edit.start >= at && edit.end >= edit.start, "{both:?}");
                at = edit.end;
            }
        }
    }
}
