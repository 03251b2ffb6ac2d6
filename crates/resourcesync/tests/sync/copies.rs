//! Each destination ends with exactly the records of the mirror, however many change while it reads.

use crate::destination::{Destination, Habits};
use crate::world::{BASE, World};

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

#[tokio::test]
async fn a_long_change_list_is_one_document_with_the_newest_whole_seconds() {
    let mut world = World::new(1);
    world.is_quiet = true;
    let url = format!("{BASE}/x/resourcesync/p/changelist.xml");
    // At most 8 changes fit.
    for (numbers, from_second, count) in [
        (0..3, 25, 3),
        (3..7, 25, 7),
        (7..12, 45, 5),
        (12..15, 45, 8),
        // The third commit has lost a change, so there is space.
        (7..8, 45, 8),
        (15..16, 55, 5),
    ] {
        println!("{numbers:?}");
        world.now_secs += 5;
        world.fill_numbers(numbers).await;
        world.now_secs += 5;
        let xml = String::from_utf8(world.get(&url).await.expect("a list")).expect("UTF-8");
        let from = format!("capability=\"changelist\" from=\"2023-11-14T22:13:{from_second}Z\"/>");
        assert_eq!((xml.contains("<urlset"), xml.contains(&from)), (true, true), "{xml}");
        assert_eq!(xml.matches("<loc>").count(), count, "{xml}");
    }
    // One second exceeds the limit.
    world.now_secs += 5;
    world.fill_numbers(20..29).await;
    world.now_secs += 5;
    let xml = String::from_utf8(world.get(&url).await.expect("a list")).expect("UTF-8");
    assert!(xml.contains("<sitemapindex"), "{xml}");
    assert!(xml.contains("capability=\"changelist\" from=\"2023-11-14T22:13:25Z\"/>"), "{xml}");
}
