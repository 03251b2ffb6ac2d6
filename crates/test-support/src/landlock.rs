//! Whether this machine can run the programs that the tests of full texts start.

use landlock::{ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};

/// Whether the kernel has Landlock, without which no text of a PDF is read. With `OAIMEND_PDF=required` it must. Without it,
/// the output says that the test is skipped.
pub fn has_landlock() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let created = ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create);
    let is_required = std::env::var("OAIMEND_PDF").is_ok_and(|value| value == "required");
    assert!(created.is_ok() || !is_required, "the kernel has no Landlock");
    if created.is_err() {
        println!("skipped: the kernel has no Landlock");
    }
    created.is_ok()
}
