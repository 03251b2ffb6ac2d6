//! The format whose record is shown for an item.

use super::{World, oai_dc};
use oaimend_store::{Catalog, ListedFormat, MirrorStore, RepositoryId};
use std::collections::BTreeSet;

#[tokio::test]
async fn the_richest_format_is_shown() {
    let mut world = World::new();
    let mods = "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo><title>sea</title></titleInfo></mods>";
    let dc = oai_dc("<title>sea</title>");
    let list_formats = async |world: &World, namespace: &str| {
        let format = |prefix: &str, namespace: &str| ListedFormat {
            prefix: prefix.to_owned(),
            schema: String::new(),
            namespace: namespace.to_owned(),
        };
        let formats =
            vec![format("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"), format("x", namespace)];
        let catalog = Catalog { formats, ..Catalog::default() };
        world.mirror.save_catalog(RepositoryId("r"), catalog).await.unwrap();
    };
    list_formats(&world, "http://www.loc.gov/mods/v3").await;
    world.commit("r", "oai_dc", &[("1", Some(&dc)), ("2", Some(&dc))]).await;
    world.commit("r", "x", &[("1", Some(mods))]).await;
    world.follow().await;
    let shown = |world: &World| world.found_by("sea");
    let records =
        |records: &[&str]| -> BTreeSet<String> { records.iter().map(|&name| name.into()).collect() };
    assert_eq!(shown(&world), records(&["r x 1", "r oai_dc 2"]));
    // The source leaves a format out of one response. Nothing is read again, so query sets stay complete.
    let catalog = world.mirror.catalog(RepositoryId("r")).await.unwrap();
    let without = Catalog { formats: catalog.formats[..1].to_vec(), ..catalog.clone() };
    world.mirror.save_catalog(RepositoryId("r"), without).await.unwrap();
    world.index.follow(&world.mirror, None).await.unwrap();
    assert!(world.index.complete_until_secs().is_ok());
    assert_eq!(shown(&world), records(&["r x 1", "r oai_dc 2"]));
    world.mirror.save_catalog(RepositoryId("r"), catalog).await.unwrap();
    // The source corrects the namespace. No record changes.
    for (namespace, expected) in [
        ("urn:other", "r oai_dc 1"),
        ("http://www.loc.gov/mods/v3", "r x 1"),
        ("http://www.loc.gov/mods/v3", "r x 1"),
    ] {
        list_formats(&world, namespace).await;
        world.follow().await;
        assert_eq!(shown(&world), records(&[expected, "r oai_dc 2"]), "{namespace}");
    }
}
