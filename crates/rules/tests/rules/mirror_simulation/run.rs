//! One run of the simulation.

use super::Broken;
use super::harvester::{Harvester, Kind};
use super::mirror::Mirror;
use super::proxy::{Moment, Proxy, View};
use super::source::{RECORDS, Source};
use oaimend_oai::UnixSecs;
use oaimend_test_support::random::Random;

/// The steps of a usual run. A miss shows only if the record does not change again, so short runs find
/// more.
const STEPS_MIN: usize = 50;
const STEPS_MAX: usize = 300;
/// The steps of a long run, which fills the spans.
const LONG_STEPS: usize = 4_000;
/// The requests that fail while the source is up, in percent.
const FAILURES_PERCENT: usize = 10;
/// The step of the proxy's clock.
const CLOCK_STEP_SECS: i64 = 3_600;
/// The windows of harvesters that proceed in short steps.
const WINDOW_SECS: [i64; 3] = [5 * 60, 20 * 60, 57 * 60];
/// The harvests and lists of the end need fewer steps than this.
const LAST_STEPS_MAX: usize = 100;

/// What happened in a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    changes: usize,
    lists: usize,
    widened: usize,
    failovers: usize,
    failovers_inside_lists: usize,
    clock_steps: usize,
    restarts: usize,
    lists_during_commits: usize,
    stops_at_gaps: usize,
    recoveries: usize,
    /// Requests for the set that the mirror could not answer.
    refused_sets: usize,
}

impl Counts {
    pub(super) fn named(&self) -> [(&'static str, usize); 11] {
        [
            ("changes", self.changes),
            ("lists", self.lists),
            ("widened requests", self.widened),
            ("failovers", self.failovers),
            ("failovers inside lists", self.failovers_inside_lists),
            ("clock steps", self.clock_steps),
            ("restarts", self.restarts),
            ("lists of the mirror during commits", self.lists_during_commits),
            ("stops of the state at gaps", self.stops_at_gaps),
            ("missing records that were fetched", self.recoveries),
            ("refused requests for the set", self.refused_sets),
        ]
    }
}

struct World {
    random: Random,
    /// The longest time between two events: minutes, hours or days.
    pause_secs_max: usize,
    /// The share of steps that change a record, at most 30.
    changes_percent: usize,
    now_secs: UnixSecs,
    /// The time by which the proxy's clock is ahead of the true time.
    our_lead_secs: i64,
    source: Source,
    mirror: Mirror,
    proxy: Proxy,
    harvesters: Vec<Harvester>,
    counts: Counts,
}

/// Simulates a run.
///
/// # Errors
///
/// The first record that a harvester missed.
pub(super) fn run(seed: u64, broken: Option<Broken>) -> Result<Counts, String> {
    let mut world = World::new(seed, broken);
    let usual = STEPS_MIN + world.random.below(STEPS_MAX - STEPS_MIN);
    let steps = if world.random.chance(1) { LONG_STEPS } else { usual };
    for _ in 0..steps {
        world.pass_time();
        world.step();
    }
    world.finish();
    let mut answered = world.harvesters.iter().filter(|harvester| world.answers(harvester));
    let missed = answered.find_map(|harvester| harvester.missed(&world.source));
    missed.map_or(Ok(world.counts), |missed| Err(format!("seed {seed}: {missed}")))
}

/// The harvesters of a run: of the source and of the mirror, in short windows, as mirrors of their own, and of a set.
fn harvesters(random: &mut Random) -> Vec<Harvester> {
    let kinds = [Kind::FirstDate, Kind::LastDate, Kind::StartClock, Kind::EndClock, Kind::LastStamp];
    let some = [kinds[random.below(2)], kinds[2 + random.below(3)]];
    let windows = WINDOW_SECS.map(Kind::Window);
    let of_mirror = some.into_iter().chain([windows[random.below(windows.len())]]);
    let mut harvesters = Vec::new();
    for (kinds, view) in [
        (kinds.into_iter().chain(windows).collect::<Vec<_>>(), View::LiveThenMirror),
        (of_mirror.collect(), View::Mirror),
    ] {
        harvesters.extend(kinds.into_iter().map(|kind| Harvester::new(kind, view, false, random)));
    }
    for view in [View::LiveThenMirror, View::Mirror] {
        harvesters.push(Harvester::new(Kind::Mark, view, false, random));
    }
    for view in [View::LiveThenMirror, View::LiveThenMirror, View::Mirror] {
        let kind = kinds[random.below(kinds.len())];
        harvesters.push(Harvester::new(kind, view, true, random));
    }
    harvesters
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut random = Random::new(seed);
        let source = Source::new(&mut random);
        let mirror = Mirror::new(broken, source.names_set, random.chance(50));
        Self {
            now_secs: UnixSecs(1_000_000 + random.below(1_000_000) as i64),
            our_lead_secs: CLOCK_STEP_SECS * (random.below(3) as i64 - 1),
            source,
            mirror,
            proxy: Proxy::new(broken),
            harvesters: harvesters(&mut random),
            counts: Counts::default(),
            pause_secs_max: [600, 7_200, 172_800][random.below(3)],
            changes_percent: [4, 12, 30][random.below(3)],
            random,
        }
    }

    /// Many events share a second, others are far apart.
    fn pass_time(&mut self) {
        let longest_secs = [1, 3, 60, self.pause_secs_max][self.random.below(4)];
        self.now_secs = self.now_secs.plus(self.random.below(longest_secs) as i64);
    }

    fn moment(&mut self, is_reliable: bool) -> Moment {
        let is_answering = self.source.is_up && (is_reliable || !self.random.chance(FAILURES_PERCENT));
        Moment { now_secs: self.now_secs, our_secs: self.now_secs.plus(self.our_lead_secs), is_answering }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            percent @ 0..30 => {
                if percent < self.changes_percent {
                    self.counts.changes += 1;
                    self.source.change(&mut self.random, self.now_secs);
                } else if percent % 2 == 0 {
                    self.source.recover(self.random.below(RECORDS));
                }
            }
            30..64 => {
                let index = self.random.below(self.harvesters.len());
                self.request(index, false, false);
            }
            64..88 => {
                let at = self.moment(false);
                self.mirror.step(&self.source, at.is_answering, at.now_secs, at.our_secs);
            }
            88..93 => self.source.is_up = !self.source.is_up,
            93..95 => self.step_clock(),
            95..97 => {
                let index = self.random.below(self.harvesters.len());
                self.harvesters[index].step_clock(&mut self.random);
            }
            97..99 => {
                self.counts.restarts += 1;
                // A machine can start with a wrong clock.
                if self.random.chance(50) {
                    self.step_clock();
                }
                self.mirror.restart();
                self.proxy.restart();
            }
            _ if self.random.chance(50) => self.mirror.abandon(),
            _ => {
                let index = self.random.below(self.harvesters.len());
                self.harvesters[index].abandon();
            }
        }
    }

    /// Sets the proxy's clock forward or back. Its error is an hour at most, in both directions.
    fn step_clock(&mut self) {
        self.counts.clock_steps += 1;
        let is_forward = self.our_lead_secs < 0 || self.our_lead_secs == 0 && self.random.chance(50);
        self.our_lead_secs += if is_forward { CLOCK_STEP_SECS } else { -CLOCK_STEP_SECS };
    }

    /// Whether a harvester gets lists at the end. The mirror refuses sets that it does not know.
    fn answers(&self, harvester: &Harvester) -> bool {
        harvester.view == View::LiveThenMirror || self.mirror.state_of_list(harvester.is_of_set).is_some()
    }

    /// One request of a harvester.
    fn request(&mut self, index: usize, is_reliable: bool, is_last: bool) {
        let at = self.moment(is_reliable);
        let harvester = &mut self.harvesters[index];
        let (selection, token) = harvester.request(at.now_secs, is_last);
        let view = harvester.view;
        let repository = (&self.source, &mut self.mirror);
        self.counts.lists += usize::from(token.is_none());
        if view == View::Mirror && repository.1.has_commit() {
            self.counts.lists_during_commits += 1;
        }
        let page = match token {
            Some(token) => self.proxy.page(token, repository, at),
            None => {
                let is_live = view == View::LiveThenMirror;
                let selection = if is_live { self.source.grained_selection(selection) } else { selection };
                self.proxy.first_page(view, selection, repository, at)
            }
        };
        match page {
            Some(page) => harvester.receive(page, at.now_secs, &mut self.random),
            None => self.counts.refused_sets += usize::from(selection.is_of_set),
        }
    }

    /// Lets the mirror and all harvesters catch up with a source that does not change any more.
    fn finish(&mut self) {
        self.source.is_up = true;
        self.source.end_failures();
        // The harvest that is open, and one after it.
        for _ in 0..2 {
            self.harvest();
        }
        for index in 0..self.harvesters.len() {
            if !self.answers(&self.harvesters[index]) {
                continue;
            }
            // The list that is open, and one after it.
            for is_last in [false, true] {
                self.list(index, is_last);
            }
        }
        self.counts.widened = self.proxy.widened;
        self.counts.failovers = self.proxy.failovers;
        self.counts.stops_at_gaps = self.mirror.stops;
        self.counts.recoveries = self.mirror.recoveries;
        self.counts.failovers_inside_lists = self.proxy.failovers_inside_lists;
    }

    fn harvest(&mut self) {
        for _ in 0..LAST_STEPS_MAX {
            self.pass_time();
            let at = self.moment(true);
            self.mirror.step(&self.source, true, at.now_secs, at.our_secs);
            if self.mirror.is_idle() {
                return;
            }
        }
        panic!("the harvest does not end");
    }

    fn list(&mut self, index: usize, is_last: bool) {
        for _ in 0..LAST_STEPS_MAX {
            self.pass_time();
            self.request(index, true, is_last);
            if !self.harvesters[index].is_harvesting() {
                return;
            }
        }
        panic!("the list does not end");
    }
}
