//! What the harvester has of the page and of the list, and how far a restarted list has come.

use crate::page::resume::{Delivered, KnownItems, Resumer};
use crate::xml::envelope_tags::EnvelopeTags;
use std::collections::HashSet;

/// The items that the harvester has.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Items of the page from before this request.
    before: Delivered,
    /// Items of the page now.
    pub(crate) delivered: Delivered,
    /// Items of the other pages of a restarted list that did not come again.
    known: KnownItems,
    restart: Option<Restart>,
    has_walked: bool,
    /// The items that the list delivered before, while the list may go in circles.
    suspicion: Option<HashSet<u64>>,
}

/// A list that was begun again, because it could not be continued.
#[derive(Clone, Copy, Debug)]
struct Restart {
    point: RestartPoint,
    /// How many of the delivered items are among the known ones too.
    walked: usize,
}

/// Where a list was begun again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RestartPoint {
    /// By an earlier request of the harvester.
    Earlier,
    /// Where an earlier walk was left.
    Remembered,
    /// At the last datestamp that was delivered.
    ByDate,
    /// At its beginning.
    Whole,
}

impl Progress {
    /// `before` are the items of the page that the harvester has; `known` those of the list, if an earlier
    /// request has restarted it.
    pub(crate) fn new(before: Delivered, known: Option<KnownItems>) -> Self {
        let walked = before.hashes().len();
        let restart = known.is_some().then_some(Restart { point: RestartPoint::Earlier, walked });
        Self { before, known: known.unwrap_or_default(), restart, ..Self::default() }
    }

    /// Whether the harvester had items of the page before this request.
    pub(crate) fn had_items(&self) -> bool {
        !self.before.is_empty()
    }

    /// Whether the list was restarted, by this request or an earlier one.
    pub(crate) fn is_restarted(&self) -> bool {
        self.restart.is_some()
    }

    /// Where this request has restarted the list, if it has.
    pub(crate) fn restart_point(&self) -> Option<RestartPoint> {
        self.restart.map(|restart| restart.point)
    }

    /// Whether this request has restarted the list.
    pub(crate) fn is_restarted_here(&self) -> bool {
        self.restart_point().is_some_and(|point| point > RestartPoint::Earlier)
    }

    /// Whether a restarted list was followed to a further page.
    pub(crate) fn has_walked(&self) -> bool {
        self.has_walked
    }

    /// Drops the progress of an attempt of which nothing was sent.
    pub(crate) fn forget_attempt(&mut self) {
        self.delivered = self.before.clone();
        self.suspicion = None;
    }

    /// A resumer for the next attempt. `tags` are those of the response, if a part of it was sent.
    pub(crate) fn resumer(&self, tags: Option<EnvelopeTags>) -> Resumer {
        match self.restart {
            None => Resumer::new(&self.known, &self.delivered, tags),
            Some(Restart { walked, .. }) => {
                let since = self.delivered.hashes().get(walked..).unwrap_or_default();
                Resumer::restarted(&self.known, since, tags)
            }
        }
    }

    /// Continues with another page. `has_begun`: a part of the response was sent.
    pub(crate) fn begin_next_page(&mut self, has_begun: bool) {
        self.has_walked = self.is_restarted();
        match &mut self.restart {
            Some(restart) if has_begun => restart.walked = self.delivered.hashes().len(),
            Some(restart) => restart.walked = self.before.hashes().len(),
            None => self.before = Delivered::default(),
        }
    }

    /// Remembers what was known and did not come on a page.
    pub(crate) fn set_known(&mut self, known: KnownItems) {
        self.known = known;
    }

    /// Begins the list again. `known` are the items of its earlier pages.
    pub(crate) fn restart(&mut self, point: RestartPoint, known: KnownItems, has_begun: bool) {
        if !has_begun {
            self.delivered = self.before.clone();
        }
        self.known = known;
        for hash in self.delivered.hashes() {
            *self.known.entry(*hash).or_insert(0) += 1;
        }
        self.restart = Some(Restart { point, walked: self.delivered.hashes().len() });
    }

    /// Suspects that the list goes in circles: `before` is what it delivered.
    pub(crate) fn suspect(&mut self, before: Option<HashSet<u64>>) {
        self.suspicion = before;
    }

    pub(crate) fn is_suspected(&self) -> bool {
        self.suspicion.is_some()
    }

    /// Drops the suspicion, and returns whether there was one.
    pub(crate) fn take_suspicion(&mut self) -> bool {
        self.suspicion.take().is_some()
    }

    /// Drops the suspicion if one of these items is new in the list.
    pub(crate) fn clear_suspicion_by(&mut self, hashes: &[u64]) {
        if self.suspicion.as_ref().is_some_and(|before| hashes.iter().any(|hash| !before.contains(hash))) {
            self.suspicion = None;
        }
    }
}
