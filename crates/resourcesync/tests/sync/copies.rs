//! Each destination ends with exactly the records of the mirror, however many change while it reads.

use crate::destination::{Destination, Habits};
use crate::world::World;

const SEEDS: u64 = 4;

#[tokio::test]
async fn lists_and_change_lists_give_exactly_the_mirror() {
    for seed in 0..SEEDS {
        for habit in 0..8 {
            let [uses_dumps, is_inclusive, skips_parts] = [1, 2, 4].map(|bit| habit & bit != 0);
            let habits = Habits { uses_dumps, is_inclusive, skips_parts };
            println!("seed {seed}, {habits:?}");
            let mut world = World::new(seed);
            world.fill(usize::try_from(seed).expect("it is small") * 3).await;
            for _ in 0..30 {
                world.disturb().await;
            }
            let mut destination = Destination::baseline(&mut world, habits).await;
            for _ in 0..3 {
                world.disturb().await;
                destination.update(&mut world).await;
            }
            world.settle().await;
            destination.update(&mut world).await;
            assert_eq!(destination.resources, world.resources(), "seed {seed}, {habits:?}");
            // A second one that begins now has the same.
            let second = Destination::baseline(&mut world, habits).await;
            assert_eq!(second.resources, world.resources(), "seed {seed}, {habits:?}");
        }
    }
}
