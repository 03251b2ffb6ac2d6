//! The results of `oaimend check`: `data/checks/<repository>.json` is the last one of a repository.

use crate::data_dir::rename_durably;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The saved results of checks. The lock of the data folder is not needed: a reader sees the old file or the new file,
/// never a part of one.
#[derive(Clone, Debug)]
pub struct CheckReports(PathBuf);

/// Longest result that is read, in bytes. One of all rules is much shorter.
const REPORT_BYTES_MAX: u64 = 1 << 20;

impl CheckReports {
    /// The results in a data folder. Their folder is created with the first one.
    pub fn new(data: &Path) -> Self {
        Self(data.join("checks"))
    }

    /// Saves the result for a repository, in place of an older one. `repository` is a legal repository id. Blocks on
    /// the disk.
    ///
    /// # Errors
    ///
    /// The file cannot be written. An older one stays.
    pub fn save(&self, repository: &str, report: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        // Two checks of one repository do not write the same file.
        let unfinished = self.0.join(format!(".{repository}.{}", std::process::id()));
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(report)?;
            file.sync_all()
        });
        let saved = written.and_then(|()| rename_durably(&unfinished, &self.path(repository)));
        if saved.is_err() {
            // The first error is reported.
            let _ = std::fs::remove_file(&unfinished);
        }
        saved
    }

    /// The result for a repository; `None` without one, and if it cannot be read. Blocks on the disk.
    pub fn find(&self, repository: &str) -> Option<Vec<u8>> {
        let file = File::open(self.path(repository)).ok()?;
        let mut report = Vec::new();
        file.take(REPORT_BYTES_MAX + 1).read_to_end(&mut report).ok()?;
        (report.len() as u64 <= REPORT_BYTES_MAX).then_some(report)
    }

    fn path(&self, repository: &str) -> PathBuf {
        self.0.join(format!("{repository}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_result_is_found_whole() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let reports = CheckReports::new(data.path());
        assert_eq!(reports.find("x"), None);
        for report in [&b"long before"[..], b"after"] {
            reports.save("x", report).expect("it can be written to");
            assert_eq!(reports.find("x").as_deref(), Some(report));
        }
        let too_long = vec![b' '; (1 << 20) + 1];
        reports.save("y", &too_long).expect("it can be written to");
        assert_eq!(reports.find("y"), None);
        let files = std::fs::read_dir(data.path().join("checks")).expect("readable").count();
        assert_eq!(files, 2, "no unfinished file is left");
    }
}
