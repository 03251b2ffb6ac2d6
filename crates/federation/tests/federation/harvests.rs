//! Incremental harvesters of a federation miss nothing while its repositories change, fail and come back.

use crate::source::{Fault, Source};
use crate::world::{Item, START_SECS, World};
use oaimend_federation::OnFailure;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;

const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// From where a harvester continues.
#[derive(Clone, Copy, Debug)]
enum Habit {
    ResponseDate,
    LatestDatestamp,
    OwnClock,
}

/// A harvester, its copy, and a world that changes.
struct Run {
    random: Random,
    world: World,
    versions: u64,
    habit: Habit,
    from: Option<String>,
    copy: BTreeMap<(String, String), u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut world = World::new([]);
        world.on_failure = [OnFailure::Fail, OnFailure::Last, OnFailure::Mirror][random.below(3)];
        let habits = [Habit::ResponseDate, Habit::LatestDatestamp, Habit::OwnClock];
        let habit = habits[random.below(3)];
        let has_days = random.chance(25);
        for id in &IDS[..3] {
            let granularity =
                if has_days && random.chance(50) { Granularity::Day } else { Granularity::Second };
            let lead_secs = if random.chance(30) { -(random.below(20_000) as i64) } else { 0 };
            let source =
                Source { granularity, lead_secs, page_records: 1 + random.below(3), ..Source::with(id, 3) };
            world.join(id, source, START_SECS - 50_000);
        }
        Self { random, world, versions: 1, habit, from: None, copy: BTreeMap::new() }
    }

    /// Something happens.
    fn change(&mut self) {
        let secs = self.random.below(400) as i64;
        self.world.pass_time(secs);
        let now_secs = self.world.now_secs();
        let id = IDS[self.random.below(IDS.len())];
        let is_member = self.world.sources.lock().expect("not poisoned").contains_key(id);
        if !is_member {
            if self.random.chance(20) {
                let versions = self.versions;
                let mut source = Source::with(id, 2);
                source.records.values_mut().for_each(|record| record.version = versions);
                self.world.join(id, source, now_secs);
                self.world.pass_time(1);
            }
            return;
        }
        let (number, what, old) =
            (self.random.below(5), self.random.below(10), self.random.below(5_000) as i64);
        self.versions += 1;
        let versions = self.versions;
        let can_fail_over = matches!(self.world.on_failure, OnFailure::Mirror);
        self.world.change(id, |source| match what {
            0 => source.fault = Fault::Down,
            1 => source.fault = Fault::BreaksOff,
            // The mirror answers with an older state, while the source goes on.
            2 if can_fail_over && source.mirror.is_none() => {
                let is_old = |secs: i64| secs < now_secs - old + source.lead_secs;
                // A record that has changed since has its old version there, if there was one.
                let records = source.records.iter().filter(|(_, record)| is_old(record.secs));
                let records = records.map(|(id, record)| (id.clone(), record.clone())).collect();
                source.mirror = Some((now_secs - old + source.lead_secs, records));
            }
            3 | 4 => (source.fault, source.mirror) = (Fault::Nothing, None),
            _ => source.change(&format!("{id}{number}"), now_secs + source.lead_secs, versions),
        });
    }

    fn heal(&mut self) {
        for id in IDS {
            if self.world.sources.lock().expect("not poisoned").contains_key(id) {
                self.world.change(id, |source| (source.fault, source.mirror) = (Fault::Nothing, None));
            }
        }
    }

    fn take(&mut self, items: Vec<Item>) {
        for item in items {
            let id = item.sets[0].clone();
            let known = self.copy.entry((id, item.identifier)).or_default();
            *known = (*known).max(item.version);
        }
    }

    /// One harvest, which is repeated from its last page while it fails. The world changes between its pages.
    fn harvest(&mut self, changes_max: usize) {
        let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
        if let Some(from) = &self.from {
            query.push_str(&format!("&from={from}"));
        }
        let (mut date, mut latest, mut failures) = (None, None, 0);
        loop {
            let page = self.world.ask(&query);
            if page.failure.is_some() {
                failures += 1;
                if failures > 5 {
                    self.heal();
                }
                assert!(failures < 50, "the list never ends: {query}: {:?}", page.failure);
                self.world.pass_time(30);
                continue;
            }
            if page.kind() == "badArgument" {
                // Another granularity than before: begin again.
                self.from = self.from.take().map(|from| from[..10].to_owned());
                return self.harvest(changes_max);
            }
            page.check();
            date.get_or_insert(page.text("responseDate"));
            let items = if page.kind() == "ListRecords" { page.items() } else { Vec::new() };
            latest = latest.max(items.iter().map(|item| item.datestamp.clone()).max());
            self.take(items);
            match page.token {
                Some(token) => query = format!("verb=ListRecords&resumptionToken={token}"),
                None => break,
            }
            for _ in 0..self.random.below(changes_max + 1) {
                self.change();
            }
        }
        let clock = from_secs(UnixSecs(self.world.now_secs()), Granularity::Second);
        let has_days = self.world.ask("verb=Identify").text("granularity").len() == 10;
        let from = match self.habit {
            Habit::ResponseDate => date,
            Habit::LatestDatestamp => latest.or_else(|| self.from.clone()),
            Habit::OwnClock => Some(clock),
        };
        self.from = from.map(|from| if has_days { from[..10].to_owned() } else { from });
    }

    fn truth(&self) -> BTreeMap<(String, String), u64> {
        let sources = self.world.sources.lock().expect("not poisoned");
        let records = sources.iter().flat_map(|(id, source)| {
            source.records.iter().map(|(name, record)| ((id.clone(), name.clone()), record.version))
        });
        records.collect()
    }
}

#[test]
fn an_incremental_harvester_misses_nothing() {
    let runs = std::env::var("OAIMEND_RANDOM").ok().and_then(|runs| runs.parse().ok()).unwrap_or(25);
    for seed in 0..runs {
        let mut run = Run::new(seed);
        for _ in 0..12 {
            for _ in 0..run.random.below(6) {
                run.change();
            }
            run.harvest(2);
        }
        run.heal();
        // Clocks that are behind reach the present.
        run.world.pass_time(30_000);
        for _ in 0..2 {
            run.world.pass_time(100);
            run.harvest(0);
        }
        assert_eq!(run.copy, run.truth(), "seed {seed}, {:?}, {:?}", run.habit, run.world.on_failure);
    }
}
