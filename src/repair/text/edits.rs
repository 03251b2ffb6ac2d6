//! A list of changes to one piece of text, which can be applied and composed.
//!
//! The slow path works in passes, each a pure function from text to edits.
//! Composition turns the edits of all passes into edits of the raw text, so
//! that the journal speaks of what came in.

use std::borrow::Cow;

use crate::repair::catalog::{Effect, RepairId};

/// One change: `range` of the text becomes `replacement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) id: RepairId,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) replacement: Vec<u8>,
    /// Whether it, or another one that became a part of it, changes content.
    pub(crate) content: bool,
}

/// Changes in the order of the text, none overlapping another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits(Vec<Edit>);

impl Edits {
    /// Adds a change that lies behind all others. Adjacent changes of one kind
    /// become one, so that a run of defects is one entry.
    pub(crate) fn push(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.push_edit(Edit::new(id, start, end, replacement.to_vec()));
    }

    /// [`Edits::push`] of a change that is there already.
    pub(crate) fn push_edit(&mut self, edit: Edit) {
        match self.0.last_mut() {
            Some(previous)
                if previous.id == edit.id
                    && previous.end == edit.start
                    // Two insertions at one place, or two stretches side by side.
                    && (edit.end > edit.start) == (previous.end > previous.start) =>
            {
                previous.end = edit.end;
                previous.replacement.extend_from_slice(&edit.replacement);
                previous.content |= edit.content;
            }
            _ => self.0.push(edit),
        }
    }

    /// Adds a change anywhere; [`Edits::sort`] brings it to its place.
    pub(crate) fn push_unordered(&mut self, id: RepairId, start: usize, end: usize, replacement: Vec<u8>) {
        self.0.push(Edit::new(id, start, end, replacement));
    }

    /// [`Edits::push_unordered`] of a change that is there already.
    pub(crate) fn push_edit_unordered(&mut self, edit: Edit) {
        self.0.push(edit);
    }

    /// The last change was made of others that change content.
    pub(crate) fn mark_content(&mut self) {
        if let Some(last) = self.0.last_mut() {
            last.content = true;
        }
    }

    /// Whether any change is one of content.
    pub(crate) fn change_content(&self) -> bool {
        self.0.iter().any(|edit| edit.content)
    }

    /// Puts changes into the order of the text; insertions at one place keep
    /// their order and stand before a change that begins there.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|edit| (edit.start, edit.end));
        let mut merged = Self::default();
        for edit in std::mem::take(&mut self.0) {
            merged.push_edit(edit);
        }
        *self = merged;
    }

    /// Takes out the changes that lie in `start..end`; what is added in front of it stays.
    pub(crate) fn take_within(&mut self, start: usize, end: usize) -> Self {
        let all = std::mem::take(&mut self.0);
        let (mut inside, outside): (Vec<Edit>, Vec<Edit>) =
            all.into_iter().partition(|edit| edit.start >= start && edit.end <= end && edit.end > start);
        self.0 = outside;
        inside.sort_by_key(|edit| (edit.start, edit.end));
        Self(inside)
    }

    /// Drops all changes but the first `len` that were added.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Drops the changes that were added last, as far as they lie in `start..end`.
    pub(crate) fn drop_last_within(&mut self, start: usize, end: usize) {
        while self.0.pop_if(|edit| edit.start >= start && edit.end <= end).is_some() {}
    }

    /// Whether one change removes just `start..end`.
    pub(crate) fn removes(&self, start: usize, end: usize) -> bool {
        self.0.iter().any(|edit| edit.start == start && edit.end == end && edit.replacement.is_empty())
    }

    /// `text`, which stands at `at`, after the changes inside it.
    pub(crate) fn apply_at(mut self, text: &[u8], at: usize) -> Vec<u8> {
        for edit in &mut self.0 {
            edit.start -= at;
            edit.end -= at;
        }
        self.apply(text).into_owned()
    }

    /// What was escaped because a section seemed unterminated is the guess that it was.
    pub(crate) fn tear(&mut self) {
        for edit in &mut self.0 {
            let opens = edit.id == RepairId::BrokenComment && edit.replacement == b"&lt;";
            if opens || edit.id == RepairId::UnterminatedCdata {
                edit.id = RepairId::TornSection;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Edit> {
        self.0.iter()
    }

    /// The text after the changes: the same one where there are none.
    pub(crate) fn apply<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let grown: usize = self.0.iter().map(|edit| edit.replacement.len()).sum();
        let mut output = Vec::with_capacity(text.len() + grown);
        let mut at = 0;
        for edit in &self.0 {
            output.extend_from_slice(text.get(at..edit.start).unwrap_or_default());
            output.extend_from_slice(&edit.replacement);
            at = edit.end;
        }
        output.extend_from_slice(text.get(at..).unwrap_or_default());
        Cow::Owned(output)
    }

    /// The changes that do at once what `self` and then `later` do; `middle` is
    /// the text between the two. Where a later change touches the replacement
    /// of an earlier one, the two become one under the later's name.
    pub(crate) fn then(self, middle: &[u8], later: Self) -> Self {
        if self.is_empty() {
            return later;
        }
        let mut earlier = self.0.into_iter().peekable();
        let mut later = later.0.into_iter().peekable();
        let mut composed = Vec::new();
        // Offset in the middle text minus offset in the raw one.
        let mut shift = 0_isize;
        loop {
            match (earlier.peek(), later.peek()) {
                (None, None) => return Self(composed),
                (Some(first), second)
                    if second.is_none_or(|second| first.middle(shift).1 <= second.start) =>
                {
                    shift += first.growth();
                    composed.extend(earlier.next());
                }
                (first, Some(second)) if first.is_none_or(|first| second.end <= first.middle(shift).0) => {
                    let (start, end) = (raw(second.start, shift), raw(second.end, shift));
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

    /// Where its replacement lies in the text after it.
    pub(crate) fn middle(&self, shift: isize) -> (usize, usize) {
        let start = self.start.saturating_add_signed(shift);
        (start, start + self.replacement.len())
    }

    pub(crate) fn growth(&self) -> isize {
        self.replacement.len() as isize - (self.end - self.start) as isize
    }
}

fn raw(middle: usize, shift: isize) -> usize {
    middle.saturating_add_signed(-shift)
}

type Queue = std::iter::Peekable<std::vec::IntoIter<Edit>>;

/// One edit for the stretch of the middle text that an earlier and a later
/// change both touch, and whatever else touches that.
fn merge(earlier: &mut Queue, later: &mut Queue, middle: &[u8], shift: &mut isize) -> Edit {
    let before = *shift;
    let (mut start, mut end) = (usize::MAX, 0);
    let mut seconds = Edits::default();
    let (mut first_id, mut content) = (None, false);
    loop {
        let first = earlier.next_if(|first| start == usize::MAX || first.middle(*shift).0 < end);
        let second = later.next_if(|second| seconds.is_empty() || second.start < end);
        if first.is_none() && second.is_none() {
            break;
        }
        if let Some(first) = first {
            let (from, to) = first.middle(*shift);
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
    // What is only added inside of what a repair made stays a repair.
    let is_added = |edit: &&Edit| edit.id == RepairId::RewriteProvenance;
    let id = seconds.0.first().filter(|edit| !is_added(edit)).map(|edit| edit.id).or(first_id);
    let id = id.unwrap_or(RepairId::UnexpectedContent);
    let stretch = middle.get(start..end).unwrap_or_default();
    for second in &mut seconds.0 {
        second.start -= start;
        second.end -= start;
    }
    let replacement = seconds.apply(stretch).into_owned();
    Edit { id, start: raw(start, before), end: raw(end, *shift), replacement, content }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::{Edits, RepairId};
    use crate::repair::random;

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
