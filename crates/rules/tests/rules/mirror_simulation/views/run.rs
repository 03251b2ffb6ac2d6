//! One run of the simulation of views.

use super::super::harvester::{Harvester, Kind};
use super::super::proxy;
use super::super::source::{RECORDS, Selection};
use super::Broken;
use super::lists::{Lists, Token};
use super::mirror::{Mirror, REPOSITORIES};
use super::view::{Definition, Opened, View};
use oaimend_oai::UnixSecs;
use oaimend_test_support::random::Random;

const STEPS_MIN: usize = 50;
const STEPS_MAX: usize = 300;
/// The step of the clock of the proxy.
const CLOCK_STEP_SECS: i64 = 3_600;
/// The longest time between two events, of which a run has one: minutes, hours or days.
const PAUSE_SECS_MAX: [usize; 3] = [300, 30_000, 260_000];
/// The window of the harvester that proceeds in short steps.
const WINDOW_SECS: i64 = 20 * 60;
/// The definitions and lists of the end need fewer steps than this.
const LAST_STEPS_MAX: usize = 200;

/// What happened in a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    lists: usize,
    lists_during_commits: usize,
    lagging_lists: usize,
    requests_during_redefinitions: usize,
    redefinitions: usize,
    old_members: usize,
    removals: usize,
    clock_steps: usize,
    restarts: usize,
}

impl Counts {
    pub(super) fn named(&self) -> [(&'static str, usize); 9] {
        [
            ("lists", self.lists),
            ("lists during commits", self.lists_during_commits),
            ("lists of a view that is behind", self.lagging_lists),
            ("requests during redefinitions", self.requests_during_redefinitions),
            ("redefinitions", self.redefinitions),
            ("members of the definition before", self.old_members),
            ("removed collections", self.removals),
            ("clock steps", self.clock_steps),
            ("restarts", self.restarts),
        ]
    }
}

/// A request that the view has opened and not answered.
struct Request {
    opened: Opened,
    selection: Selection,
    token: Option<Token>,
}

struct World {
    random: Random,
    pause_secs_max: usize,
    /// Whether the definition changes and repositories are removed. Each of both delivers all records again, so that
    /// other faults show in runs without them.
    is_redefined: bool,
    now_secs: UnixSecs,
    /// The time by which the clock of the proxy is ahead of the true time.
    our_lead_secs: i64,
    mirror: Mirror,
    view: View,
    lists: Lists,
    harvesters: Vec<(Harvester<Token>, Option<Request>)>,
    /// The definition before the last change.
    before: Definition,
    counts: Counts,
}

/// Simulates a run.
///
/// # Errors
///
/// The first record that a harvester missed, or kept although it has left the view.
pub(super) fn run(seed: u64, broken: Option<Broken>) -> Result<Counts, String> {
    let mut world = World::new(seed, broken);
    for _ in 0..STEPS_MIN + world.random.below(STEPS_MAX - STEPS_MIN) {
        world.pass_time();
        world.step();
    }
    world.finish();
    match world.harvesters.iter().find_map(|(harvester, _)| world.fault(harvester)) {
        Some(fault) => Err(format!("seed {seed}: {fault}")),
        None => Ok(world.counts),
    }
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut random = Random::new(seed);
        let settings = Definition::random(&mut random);
        let is_redefined = random.chance(50);
        let judged_max = if is_redefined { 2 } else { 1 };
        let kinds = [
            Kind::FirstDate,
            Kind::LastDate,
            Kind::StartClock,
            Kind::EndClock,
            Kind::LastStamp,
            Kind::Mark,
            Kind::Window(WINDOW_SECS),
        ];
        let harvesters =
            kinds.map(|kind| (Harvester::new(kind, proxy::View::Mirror, false, &mut random), None));
        Self {
            pause_secs_max: PAUSE_SECS_MAX[random.below(PAUSE_SECS_MAX.len())],
            is_redefined,
            now_secs: UnixSecs(1_000_000 + random.below(1_000_000) as i64),
            our_lead_secs: 0,
            mirror: Mirror::new(),
            view: View::new(broken, settings, judged_max),
            lists: Lists::default(),
            harvesters: harvesters.into(),
            before: settings,
            counts: Counts::default(),
            random,
        }
    }

    /// Many events share a second, others are far apart.
    fn pass_time(&mut self) {
        let longest_secs = [1, 3, 60, self.pause_secs_max][self.random.below(4)];
        self.now_secs = self.now_secs.plus(self.random.below(longest_secs) as i64);
    }

    fn our_secs(&self) -> UnixSecs {
        self.now_secs.plus(self.our_lead_secs)
    }

    fn step(&mut self) {
        let our_secs = self.our_secs();
        match self.random.below(100) {
            30..70 => {
                let index = self.random.below(self.harvesters.len());
                self.request(index, false);
            }
            70..80 => {
                self.view.advance(&mut self.mirror, our_secs);
            }
            80..85 if self.is_redefined => {
                let is_back = self.random.chance(40);
                let next = if is_back { self.before } else { Definition::random(&mut self.random) };
                self.before = std::mem::replace(&mut self.view.settings, next);
            }
            85..87 if self.is_redefined => {
                self.counts.removals += 1;
                self.mirror.forget(self.random.below(REPOSITORIES));
                // An operator can remove it while the program is stopped.
                if self.random.chance(50) {
                    self.restart();
                }
            }
            0..30 | 80..88 => self.mirror.step(&mut self.random, our_secs),
            88..92 => self.step_clock(),
            92..94 => {
                let index = self.random.below(self.harvesters.len());
                self.harvesters[index].0.step_clock(&mut self.random);
            }
            94..98 => self.restart(),
            _ => {
                let index = self.random.below(self.harvesters.len());
                self.harvesters[index].0.abandon();
                self.harvesters[index].1 = None;
            }
        }
    }

    fn restart(&mut self) {
        self.counts.restarts += 1;
        // A machine can start with a wrong clock.
        if self.random.chance(50) {
            self.step_clock();
        }
        self.mirror.restart();
        self.view.restart();
        self.harvesters.iter_mut().for_each(|(_, request)| *request = None);
    }

    /// Sets the proxy's clock forward or back. Its error is an hour at most, in both directions.
    fn step_clock(&mut self) {
        self.counts.clock_steps += 1;
        let is_forward = self.our_lead_secs < 0 || self.our_lead_secs == 0 && self.random.chance(50);
        self.our_lead_secs += if is_forward { CLOCK_STEP_SECS } else { -CLOCK_STEP_SECS };
    }

    /// Opens a request of a harvester, or answers it. Other events can be between both.
    fn request(&mut self, index: usize, is_last: bool) {
        let our_secs = self.our_secs();
        let (harvester, request) = &mut self.harvesters[index];
        let Some(Request { opened, selection, token }) = request.take() else {
            let (selection, token) = harvester.request(self.now_secs, is_last);
            let opened = self.view.open(&mut self.mirror, our_secs);
            *request = opened.map(|opened| Request { opened, selection, token });
            return;
        };
        let page = match token {
            Some(token) => self.lists.page(&opened, token, (&self.view, &self.mirror), our_secs),
            None => {
                self.counts.lists += 1;
                self.counts.lists_during_commits += usize::from(self.mirror.has_commit());
                let repository = (&mut self.view, &mut self.mirror);
                self.lists.first_page(&opened, selection, repository, our_secs)
            }
        };
        if let Some(page) = page {
            harvester.receive(page, self.now_secs, &mut self.random);
        }
    }

    /// Lets the view and all harvesters catch up with a mirror that does not change any more.
    fn finish(&mut self) {
        self.mirror.finish_all();
        let our_secs = self.our_secs();
        let follows = (0..LAST_STEPS_MAX).any(|_| self.view.advance(&mut self.mirror, our_secs));
        assert!(follows, "the view does not catch up");
        for index in 0..self.harvesters.len() {
            self.harvesters[index].1 = None;
            // The list that is open, and one after it.
            for is_last in [false, true] {
                self.list(index, is_last);
            }
        }
        self.counts.lagging_lists = self.lists.lagging;
        self.counts.requests_during_redefinitions = self.lists.overtaken;
        self.counts.redefinitions = self.view.redefinitions;
        self.counts.old_members = self.view.taken_over;
    }

    fn list(&mut self, index: usize, is_last: bool) {
        for _ in 0..LAST_STEPS_MAX {
            self.pass_time();
            // It opens the request, and answers it.
            for _ in 0..2 {
                self.request(index, is_last);
            }
            if !self.harvesters[index].0.is_harvesting() {
                return;
            }
        }
        panic!("the list does not end");
    }

    /// The first record whose copy is not that of the view.
    fn fault(&self, harvester: &Harvester<Token>) -> Option<String> {
        (0..RECORDS).find_map(|id| {
            let truth = self.view.truth(&self.mirror, id);
            let copy = harvester.copy[id].filter(|copy| !copy.is_deleted);
            let kind = harvester.kind;
            (copy != truth).then(|| format!("{kind:?}: record {id} is {truth:?}, has {copy:?}"))
        })
    }
}
