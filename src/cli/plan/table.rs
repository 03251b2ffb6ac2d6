//! The table of `oaimend plan`: CSV with one repository in each row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use oaimend_mirror::{PlannedRepository, RepositoryFacts};
use oaimend_rules::schedule::{RepositoryLoad, TOTAL_ELEMENTS_MAX};

use super::super::exit::Failure;

/// Maximum length of a table, in bytes: about a million rows.
const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of an id, in bytes.
const ID_BYTES_MAX: usize = 200;
/// Maximum number of faults in a message.
const FAULTS_SHOWN_MAX: usize = 20;
/// The highest number of changes a day.
const CHANGES_MAX: f64 = 1e12;
/// The highest weight, as in a mapping.
const WEIGHT_MAX: f64 = 1e6;
const DAY_SECS: f64 = 86_400.0;

const COLUMNS: [&str; 4] = ["id", "records", "changes_per_day", "weight"];
/// The columns without which a table is refused.
const REQUIRED: usize = 3;

/// Reads a table from a file, or from stdin for `-`.
///
/// # Errors
///
/// The file cannot be read, or some of it is no table. The message names each fault with file, line and column.
pub(super) fn read(file: &Path) -> Result<Vec<PlannedRepository>, Failure> {
    let bytes = read_bytes(file).map_err(|error| Failure::io("read", file, &error))?;
    if bytes.len() as u64 > TABLE_BYTES_MAX {
        return Err(Failure::usage(format!("{} is longer than {TABLE_BYTES_MAX} bytes", file.display())));
    }
    parse(&bytes).map_err(|faults| {
        let shown = faults.iter().take(FAULTS_SHOWN_MAX);
        let mut lines: Vec<String> = shown.map(|fault| format!("{}:{fault}", file.display())).collect();
        if faults.len() > FAULTS_SHOWN_MAX {
            lines.push(format!("and {} more faults", faults.len() - FAULTS_SHOWN_MAX));
        }
        Failure::usage(format!("the table has faults:\n{}", lines.join("\n")))
    })
}

/// The bytes of a file, and at most one more than a table may have.
fn read_bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let input: Box<dyn Read> =
        if file == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(File::open(file)?) };
    input.take(TABLE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The rows of a table, or all its faults, each as `LINE:COLUMN: fault`. Columns are counted in cells.
fn parse(bytes: &[u8]) -> Result<Vec<PlannedRepository>, Vec<String>> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let header = reader.byte_headers().map_err(|error| vec![format!("1:1: {error}")])?;
    let places = places(header).map_err(|fault| vec![fault])?;
    let width = header.len();
    let (mut repositories, mut faults, mut known) = (Vec::new(), Vec::new(), HashMap::new());
    for row in reader.byte_records() {
        // Reading from memory does not fail, and rows of any width are accepted.
        let Ok(row) = row else { break };
        let line = row.position().map_or(0, csv::Position::line);
        if row.len() != width {
            faults.push(format!(
                "{line}:{}: expected {width} cells, found {}",
                row.len().min(width),
                row.len()
            ));
            continue;
        }
        match repository(&Row { row: &row, places: &places }) {
            Ok(repository) => match known.insert(repository.id.clone(), line) {
                None => repositories.push(repository),
                Some(first) => {
                    let column = places[0].map_or(0, |place| place + 1);
                    faults.push(format!(
                        "{line}:{column}: the id \"{}\" is in line {first} too",
                        repository.id
                    ));
                }
            },
            Err((column, fault)) => faults.push(format!("{line}:{column}: {fault}")),
        }
    }
    if repositories.is_empty() && faults.is_empty() {
        faults.push("2:1: the table has no repositories".to_owned());
    }
    if faults.is_empty() { Ok(repositories) } else { Err(faults) }
}

/// The place of each of [`COLUMNS`] in a row.
type Places = [Option<usize>; COLUMNS.len()];

fn places(header: &csv::ByteRecord) -> Result<Places, String> {
    let expected =
        || format!("expected the columns {}, and {} if needed", COLUMNS[..REQUIRED].join(", "), COLUMNS[3]);
    let mut places = Places::default();
    for (place, name) in header.iter().enumerate() {
        let name = String::from_utf8_lossy(name);
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            return Err(format!("1:{}: unknown column \"{name}\"; {}", place + 1, expected()));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("1:{}: the column \"{name}\" is there twice", place + 1));
        }
    }
    match places.iter().take(REQUIRED).position(Option::is_none) {
        Some(missing) => Err(format!("1:1: the column \"{}\" is missing; {}", COLUMNS[missing], expected())),
        None => Ok(places),
    }
}

struct Row<'r> {
    row: &'r csv::ByteRecord,
    places: &'r Places,
}

impl Row<'_> {
    /// The text of a column, by its number in [`COLUMNS`]; `None` if the table lacks the column.
    fn cell(&self, column: usize) -> Option<(usize, Cow<'_, str>)> {
        let place = self.places.get(column).copied().flatten()?;
        Some((place + 1, String::from_utf8_lossy(self.row.get(place).unwrap_or_default())))
    }

    fn number(&self, column: usize, max: f64) -> Result<f64, (usize, String)> {
        let (place, cell) = self.cell(column).unwrap_or_default();
        let number = cell.parse().ok().filter(|number| (0.0..=max).contains(number));
        number.ok_or_else(|| {
            (place, format!("{} must be a number from 0 to {max:e}, found \"{cell}\"", COLUMNS[column]))
        })
    }
}

/// The repository of a row, or the column of the first fault in it.
fn repository(row: &Row<'_>) -> Result<PlannedRepository, (usize, String)> {
    let (place, id) = row.cell(0).unwrap_or_default();
    if id.is_empty() || id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
        return Err((
            place,
            format!("an id must have 1 to {ID_BYTES_MAX} bytes, without control characters"),
        ));
    }
    let (place, cell) = row.cell(1).unwrap_or_default();
    let records = cell.parse().ok().filter(|records| *records <= TOTAL_ELEMENTS_MAX);
    let records: u64 = records.ok_or_else(|| {
        (place, format!("records must be a whole number from 0 to {TOTAL_ELEMENTS_MAX}, found \"{cell}\""))
    })?;
    let updates_per_sec = row.number(2, CHANGES_MAX)? / DAY_SECS;
    let weight = match row.cell(3) {
        None => 1.0,
        Some((_, cell)) if cell.is_empty() => 1.0,
        Some(_) => row.number(3, WEIGHT_MAX)?,
    };
    Ok(PlannedRepository {
        id: id.into_owned(),
        facts: RepositoryFacts {
            records,
            updates_per_sec: Some(updates_per_sec),
            ..RepositoryFacts::default()
        },
        load: RepositoryLoad { weight, ..RepositoryLoad::new(records as f64, updates_per_sec) },
        is_fixed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(table: &str) -> Vec<String> {
        parse(table.as_bytes()).expect_err("it has faults")
    }

    #[test]
    fn a_table_has_its_columns_in_any_order() {
        let table = "\u{feff}weight, id ,changes_per_day,records\r\n2,a,86400,10\r\n,\"b,c\",0,0\r\n";
        let repositories = parse(table.as_bytes()).expect("a table");
        let read: Vec<(&str, RepositoryLoad)> =
            repositories.iter().map(|repository| (repository.id.as_str(), repository.load)).collect();
        let first = RepositoryLoad { weight: 2.0, ..RepositoryLoad::new(10.0, 1.0) };
        assert_eq!(read, [("a", first), ("b,c", RepositoryLoad::new(0.0, 0.0))]);
        assert_eq!(parse(b"id,records,changes_per_day\nx,1,2").expect("a table").len(), 1);
    }

    #[test]
    fn each_bad_row_is_named_with_line_and_column() {
        let table = "id,records,changes_per_day,weight\n\
                     a,1,1,1\n\
                     ,1,1,1\n\
                     b,1.5,1,1\n\
                     c,1,-1,1\n\
                     \"d\nd\",1,1,1\n\
                     e,1,1\n\
                     f,1,nan,1\n\
                     a,1,1,1\n\
                     g,1,1,1e7\n";
        let places: Vec<String> = faults(table)
            .iter()
            .map(|fault| fault.split(' ').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(places, ["3:1:", "4:2:", "5:3:", "6:1:", "8:3:", "9:3:", "10:1:", "11:4:"]);
        assert!(faults(table)[6].ends_with("the id \"a\" is in line 2 too"), "{:?}", faults(table));
    }

    #[test]
    fn a_header_that_is_not_understood_is_refused() {
        for (table, fault) in [
            ("", "1:1: the column \"id\" is missing"),
            ("id,records\na,1", "1:1: the column \"changes_per_day\" is missing"),
            ("id,records,changes_per_day,wieght\na,1,1,1", "1:4: unknown column \"wieght\""),
            ("id,id,records,changes_per_day\na,a,1,1", "1:2: the column \"id\" is there twice"),
            ("id,records,changes_per_day\n", "2:1: the table has no repositories"),
        ] {
            let found = faults(table);
            assert!(found.len() == 1 && found[0].starts_with(fault), "{table}: {found:?}");
        }
    }
}
