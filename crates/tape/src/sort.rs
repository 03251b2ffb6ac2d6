//! Sorts the rows of a table that can be longer than memory.

use crate::limits::SORT_BYTES;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Rows of `N` bytes in the order of their bytes. Rows that exceed [`SORT_BYTES`] are in temporary files.
#[derive(Debug)]
pub(crate) struct Sorter<const N: usize> {
    folder: PathBuf,
    rows: Vec<[u8; N]>,
    rows_max: usize,
    runs: Vec<File>,
}

impl<const N: usize> Sorter<N> {
    /// A table whose temporary files are in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_memory(folder, SORT_BYTES)
    }

    fn with_memory(folder: &Path, bytes: usize) -> Self {
        Self { folder: folder.to_owned(), rows: Vec::new(), rows_max: (bytes / N).max(1), runs: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: [u8; N]) -> io::Result<()> {
        if self.rows.len() == self.rows_max {
            self.spill()?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_unstable();
        let mut run = BufWriter::new(tempfile::tempfile_in(&self.folder)?);
        for row in self.rows.drain(..) {
            run.write_all(&row)?;
        }
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.rewind()?;
        self.runs.push(run);
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<N>> {
        self.rows.sort_unstable();
        let mut sorted = Sorted {
            rows: std::mem::take(&mut self.rows).into_iter(),
            runs: self.runs.drain(..).map(BufReader::new).collect(),
            next: BinaryHeap::new(),
        };
        for run in 0..=sorted.runs.len() {
            sorted.advance(run)?;
        }
        Ok(sorted)
    }
}

/// Rows in the order of their bytes.
#[derive(Debug)]
pub(crate) struct Sorted<const N: usize> {
    rows: std::vec::IntoIter<[u8; N]>,
    runs: Vec<BufReader<File>>,
    /// The next row of each run; the rows in memory are the run after the last file.
    next: BinaryHeap<Reverse<([u8; N], usize)>>,
}

impl<const N: usize> Sorted<N> {
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let row = match self.runs.get_mut(run) {
            None => self.rows.next(),
            Some(file) => {
                let mut row = [0; N];
                match file.read_exact(&mut row) {
                    Ok(()) => Some(row),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                    Err(error) => return Err(error),
                }
            }
        };
        if let Some(row) = row {
            self.next.push(Reverse((row, run)));
        }
        Ok(())
    }
}

impl<const N: usize> Iterator for Sorted<N> {
    type Item = io::Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((row, run)) = self.next.pop()?;
        Some(self.advance(run).map(|()| row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_in_memory_and_in_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for rows_in_memory in [1, 3, 7, 1_000] {
            let mut sorter = Sorter::<2>::with_memory(folder.path(), 2 * rows_in_memory);
            let mut rows: Vec<[u8; 2]> =
                (0..500_u32).map(|number| (number.wrapping_mul(40_503) as u16).to_be_bytes()).collect();
            for row in &rows {
                sorter.push(*row).expect("a disk");
            }
            let sorted: Result<Vec<_>, _> = sorter.finish().expect("a disk").collect();
            rows.sort_unstable();
            assert_eq!(sorted.expect("a disk"), rows, "{rows_in_memory}");
        }
    }
}
