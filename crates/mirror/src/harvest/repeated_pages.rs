//! Detects a list that goes in circles: its source sends the same pages again and again, also with new tokens or with new
//! datestamps.
//!
//! By Brent's algorithm: one page is kept, and all later ones are compared with it. After twice as many pages a later one
//! takes its place. So the memory is constant, and a circle of any length is found.

/// How often a page comes again in a circle. A source that has lost its place may send a page a second time.
const REPEATS_MIN: u32 = 2;

/// The pages of one list.
#[derive(Debug, Default)]
pub struct RepeatedPages {
    pages: u64,
    kept: Option<u64>,
    /// How often the kept page came again.
    repeats: u32,
}

impl RepeatedPages {
    /// Notes a page, by the hash of its identifiers. Returns whether the list goes in circles. Found within `6 (n + 1)`
    /// pages, where `n` is the number of different pages.
    pub fn note(&mut self, page: u64) -> bool {
        self.pages += 1;
        if self.kept == Some(page) {
            self.repeats += 1;
        } else if self.pages.is_power_of_two() {
            (self.kept, self.repeats) = (Some(page), 0);
        }
        self.repeats >= REPEATS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of pages until a circle of `circle` pages after `before` others is found.
    fn found_after(before: u64, circle: u64) -> u64 {
        let mut pages = RepeatedPages::default();
        let page = |at: u64| if at < before { at } else { before + (at - before) % circle };
        (0..).find(|at| pages.note(page(*at))).expect("it is found") + 1
    }

    #[test]
    fn every_circle_is_found_and_every_page_came_before() {
        for before in 0..40 {
            for circle in 1..40 {
                let (found, different) = (found_after(before, circle), before + circle);
                assert!((different..=6 * (different + 1)).contains(&found), "{before} {circle}: {found}");
            }
        }
    }

    #[test]
    fn a_list_without_a_circle_has_none() {
        let mut pages = RepeatedPages::default();
        // The source begins the list once again in the middle.
        assert!(!(0..500).chain(0..1_000).any(|page| pages.note(page)));
    }
}
