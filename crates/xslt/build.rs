//! Tells the tests whether libxslt is on this machine, because the program loads it at run time only. With
//! `OAIMEND_XSLT=required` the tests run in any case, and fail without it.

use std::path::Path;

/// The folders with libraries, whose folders contain libraries too.
const FOLDERS: [&str; 4] = ["/usr/lib", "/usr/lib64", "/lib", "/usr/local/lib"];
const LIBRARY: &str = "libxslt.so.1";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_libxslt)");
    println!("cargo::rerun-if-env-changed=OAIMEND_XSLT");
    println!("cargo::rerun-if-changed=build.rs");
    let is_required = std::env::var("OAIMEND_XSLT").is_ok_and(|value| value == "required");
    if is_required || FOLDERS.iter().any(|folder| contains_library(Path::new(folder))) {
        println!("cargo::rustc-cfg=has_libxslt");
    }
}

fn contains_library(folder: &Path) -> bool {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folder.join(LIBRARY).exists() || below.into_iter().any(|entry| entry.path().join(LIBRARY).exists())
}
