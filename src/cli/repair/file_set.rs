//! Which file each response is read from and written to. Wrong combinations are refused before anything is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;

/// The files of one response.
#[derive(Debug)]
pub(super) struct FileSet {
    /// `None` is stdin.
    pub(super) input: Option<PathBuf>,
    /// `None` is stdout.
    pub(super) output: Option<PathBuf>,
    /// `None`: there is no report.
    pub(super) report: Option<PathBuf>,
}

/// Extensions of compressed files. The outputs are not compressed.
const COMPRESSED: [&str; 4] = ["gz", "zst", "zz", "zlib"];

/// The sets for these arguments. Creates the folders of the outputs and reports.
pub(super) fn plan(
    files: &[PathBuf],
    output: Option<&Path>,
    report: Option<&Path>,
) -> Result<Vec<FileSet>, Failure> {
    let inputs: Vec<Option<&Path>> = match files {
        [] => vec![None],
        files => {
            files.iter().map(|file| Some(file.as_path()).filter(|file| *file != Path::new("-"))).collect()
        }
    };
    if inputs.len() > 1 && output.is_none() {
        return Err(Failure::usage("several FILEs need -o DIR, a folder with a file for each of them"));
    }
    let place = |path: Option<&Path>, input: Option<&Path>, extension: &str| match path {
        Some(folder) if inputs.len() > 1 || is_folder(folder) => {
            let Some(name) = input.and_then(Path::file_name) else {
                let problem = "stdin has no name for its file there; expected the name of a file";
                return Err(Failure::usage(format_args!("{}: {problem}", folder.display())));
            };
            let mut name = plain_name(Path::new(name)).into_os_string();
            name.push(extension);
            Ok(Some(folder.join(name)))
        }
        path => Ok(path.map(Path::to_owned)),
    };
    let mut sets = Vec::new();
    for input in &inputs {
        let (output, report) = (place(output, *input, "")?, place(report, *input, ".jsonl")?);
        sets.push(FileSet { input: input.map(Path::to_owned), output, report });
    }
    check_targets(&sets)?;
    for folder in [output, report].into_iter().flatten().filter(|path| inputs.len() > 1 || is_folder(path)) {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
    }
    Ok(sets)
}

/// Whether a path names a folder: it is one, or it ends with a slash.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The name without the extension of a compressed file.
fn plain_name(name: &Path) -> PathBuf {
    let is_compressed = name.extension().is_some_and(|found| COMPRESSED.iter().any(|known| found == *known));
    if is_compressed { name.with_extension("") } else { name.to_owned() }
}

/// Refuses two results in one file, and a result in the place of an input.
fn check_targets(sets: &[FileSet]) -> Result<(), Failure> {
    let inputs = sets.iter().filter_map(|files| files.input.as_deref());
    let inputs: BTreeMap<PathBuf, &Path> = inputs.map(|input| (identity(input), input)).collect();
    let mut targets = BTreeMap::new();
    for files in sets {
        let source = files.input.as_deref().unwrap_or(Path::new("<stdin>")).display();
        for target in [&files.output, &files.report].into_iter().flatten() {
            // Devices and pipes take more than one result.
            if std::fs::metadata(target).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
                continue;
            }
            let file = identity(target);
            if inputs.contains_key(&file) {
                let problem = "would replace an input; choose another folder or file";
                return Err(Failure::usage(format_args!("{source}: {} {problem}", target.display())));
            }
            if let Some(other) = targets.insert(file, source.to_string()) {
                let problem = "would be written twice; choose different folders";
                let target = target.display();
                return Err(Failure::usage(format_args!("{source} and {other}: {target} {problem}")));
            }
        }
    }
    Ok(())
}

/// The same path for all names of a file, whether it exists or not.
fn identity(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let named = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(named).unwrap_or_else(|| path.to_owned())
}
