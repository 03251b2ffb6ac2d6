//! Checks of the project itself: names, cases, documentation, purity of the engine, length of files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use oaimend_crosswalks::Unconverted;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{NotOai, QuarantineReason, RepairId};
use oaimend_repository::Reason;
use oaimend_test_support::corpus::{Case, cases, is_class};
use oaimend_test_support::{files_below, pages, root};

fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders with code of the program, of its crates and of their tests.
const CODE: &[&str] = &["src", "crates", "tests", "benches"];

fn sources(folders: &[&str]) -> Vec<PathBuf> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    folders.iter().flat_map(|folder| files_below(&root().join(folder))).filter(is_rust).collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The folder of a case below its part, such as `bare-ampersand`.
fn repair_of(case: &Case) -> &str {
    case.name.split('/').nth(1).unwrap_or_default()
}

#[test]
fn every_repair_has_cases() {
    let all = cases("broken");
    let mut found = Vec::new();
    for entry in CATALOG {
        let of_repair: Vec<&Case> = all.iter().filter(|case| repair_of(case) == entry.name).collect();
        if of_repair.len() < 2 || !of_repair.iter().any(|case| case.about.border) {
            found.push(format!(
                "{}: {} cases, at least two and one at a border are wanted",
                entry.name,
                of_repair.len()
            ));
        }
        let made = |case: &&Case| case.report.iter().any(|line| line["repair"] == entry.name);
        if !of_repair.iter().any(made) {
            found.push(format!("{}: no report of its cases has it", entry.name));
        }
    }
    none("repairs without cases", &found);
}

#[test]
fn every_case_has_a_known_name() {
    let mut found = Vec::new();
    for case in cases("broken") {
        if RepairId::from_name(repair_of(&case)).is_none() {
            found.push(format!("{}: no repair has that name", case.name));
        }
    }
    for case in cases("refused") {
        let name = repair_of(&case);
        if !reasons().any(|reason| name == reason || name.starts_with(&format!("{reason}-"))) {
            found.push(format!("{}: no reason has that name", case.name));
        }
    }
    for case in cases("broken").iter().chain(&cases("refused")) {
        let about = &case.about;
        if about.description.is_empty()
            || about.source.is_empty()
            || !about.classes.iter().all(|class| is_class(class))
        {
            found.push(format!("{}: description, source and classes are wanted", case.name));
        }
    }
    none("cases", &found);
}

fn reasons() -> impl Iterator<Item = &'static str> {
    QuarantineReason::ALL
        .iter()
        .map(|reason| reason.name())
        .chain(NotOai::ALL.iter().map(|reason| reason.name()))
}

#[test]
fn every_reason_has_a_case() {
    let all = cases("refused");
    let given = |case: &Case, reason: &str| {
        case.about.reason.as_deref() == Some(reason) || case.report.iter().any(|line| line["why"] == reason)
    };
    let found: Vec<String> = reasons()
        .filter(|reason| !all.iter().any(|case| repair_of(case).starts_with(reason) && given(case, reason)))
        .map(str::to_owned)
        .collect();
    none("reasons without a case", &found);
}

#[test]
fn repairs_md_is_the_catalog() {
    let page = pages::repairs();
    if std::env::var_os("OAIMEND_BLESS").is_some() {
        std::fs::write(root().join("docs/reference/repairs.md"), &page)
            .unwrap_or_else(|error| panic!("docs/reference/repairs.md: {error}"));
    }
    assert!(
        text("docs/reference/repairs.md") == page,
        "docs/reference/repairs.md is old: OAIMEND_BLESS=1 cargo test --test program tidy"
    );
}

#[test]
fn every_reason_is_documented() {
    let page = text("docs/reference/unrepairable.md");
    let headings: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let of_items = QuarantineReason::ALL.iter().map(|reason| reason.name());
    let of_crosswalks = Unconverted::ALL.iter().map(|reason| reason.name());
    let of_pages = NotOai::ALL.iter().map(|reason| reason.name());
    let reasons: BTreeSet<&str> = of_items.chain(of_crosswalks).chain(of_pages).collect();
    assert_eq!(headings, reasons, "headings of unrepairable.md and reasons");
}

/// The test names in the last cells of a page's tables that do not exist, and the number of names.
fn tests_named_in(page: &str) -> (Vec<String>, usize) {
    let mut code = String::new();
    for path in sources(CODE) {
        code.push_str(&text(&path));
    }
    let is_test = |word: &&str| {
        word.contains(['_', ':']) && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
    };
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let named = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let tests: Vec<&str> = named.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    // A name begins with a crate, or with a module of the program or of its tests.
    let is_module = |name: &str| {
        let path = name.replace("::", "/");
        let (first, rest) = path.split_once('/').unwrap_or((&path, "lib"));
        let of_crate = format!("crates/{}/src/{rest}", first.replace('_', "-"));
        let folders = ["src", "tests/program", "crates/repair/tests/engine"];
        folders.iter().map(|folder| format!("{folder}/{path}")).chain([of_crate]).any(|path| {
            let path = root().join(path);
            path.is_dir() || path.with_extension("rs").is_file()
        })
    };
    let is_known = |name: &str| code.contains(&format!("fn {name}()")) || is_module(name);
    let unknown = tests.iter().filter(|word| is_test(word) && !is_known(word));
    (unknown.map(|&word| word.to_owned()).collect(), tests.len())
}

#[test]
fn threat_model_names_existing_tests() {
    let (unknown, count) = tests_named_in(&text("THREAT_MODEL.md"));
    none("tests that THREAT_MODEL.md names and that do not exist", &unknown);
    assert!(count > 20, "the tables were not found");
}

#[test]
fn every_failure_reason_is_documented() {
    let page = text("docs/reference/errors.md");
    // unrepairable.md has the others.
    let reasons = Reason::ALL.iter().filter(|reason| !matches!(reason, Reason::NotOai(_)));
    let reasons = reasons.map(|reason| reason.name());
    let missing = reasons.filter(|name| !page.contains(&format!("| `{name}` |"))).map(str::to_owned);
    none("reasons that docs/reference/errors.md does not list", &missing.collect::<Vec<_>>());
}

/// The crates that take time and bytes as arguments, and the crates that they may use.
const PURE: &[&str] = &["crates/oai", "crates/repair", "crates/rules"];
const PURE_DEPENDENCIES: &[&str] =
    &["chardetng", "chrono", "encoding_rs", "memchr", "oaimend-oai", "serde", "simdutf8"];
/// What they never use. Streams of `std::io` are for users of the engine, in a file of their own.
const IMPURE: &[&str] =
    &["std::io", "std::net", "std::fs", "std::time", "std::env", "std::process", "std::thread", "println!"];

#[test]
fn the_engine_and_the_rules_are_pure() {
    let mut found = Vec::new();
    for folder in PURE {
        let manifest = text(Path::new(folder).join("Cargo.toml"));
        let (_, dependencies) = manifest.split_once("[dependencies]\n").expect("dependencies");
        let names = dependencies.lines().take_while(|line| !line.starts_with('['));
        let names = names.filter_map(|line| line.split(['.', ' ']).next()).filter(|name| !name.is_empty());
        let others = names.filter(|name| !PURE_DEPENDENCIES.contains(name));
        found.extend(others.map(|name| format!("{folder} depends on {name}")));
        for path in sources(&[&format!("{folder}/src")]) {
            let code = code_of(&text(&path));
            // The tests of a module may use anything.
            let code = code.split("#[cfg(test)]").next().unwrap_or_default();
            let words = IMPURE.iter().filter(|word| code.contains(**word));
            let is_for_streams = path.ends_with("crates/repair/src/stream.rs");
            found.extend(
                words
                    .filter(|word| !is_for_streams || **word != "std::io")
                    .map(|word| format!("{}: {word}", shown(&path))),
            );
        }
    }
    none("impurities", &found);
}

/// Which part of the program may use a library. Cargo says it for the crates.
const HOMES: &[(&str, &str)] = &[
    ("clap::", "src/cli"),
    ("clap_complete::", "src/cli"),
    ("lettre::", "src/notify"),
    ("pingora_core::", "src/serve"),
    ("pingora_error::", "src/serve"),
    ("pingora_http::", "src/serve"),
    ("pingora_proxy::", "src/serve"),
];

#[test]
fn libraries_are_used_in_their_part_of_the_program() {
    let mut found = Vec::new();
    for path in sources(&["src"]) {
        let (name, code) = (shown(&path), code_of(&text(&path)));
        let strangers = HOMES.iter().filter(|(word, home)| code.contains(word) && !name.starts_with(home));
        found.extend(strangers.map(|(word, home)| format!("{name}: {word} belongs into {home}")));
    }
    none("libraries in other parts", &found);
}

/// The source without its comments.
fn code_of(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The code of pages. Their texts are in the folder `texts`, so that a second language is another version of it.
const PAGE_CODE: &[&str] =
    &["crates/pages/src", "crates/html/src", "src/serve/pages", "src/serve/admin/pages"];
/// Values of attributes that look like texts.
const NO_TEXTS: &[&str] = &["light dark", "noindex, nofollow", "state bad", "state good"];
/// Nobody reads the arguments of these on a page.
const NOT_SHOWN: &[&str] = &["#[error(", ".expect(", "UnreadableResponse(", "warn!("];

/// The string literals of a source with their lines, except for arguments that are not shown.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut statement = String::new();
    let mut rest = source.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '/' if source[at..].starts_with("//") => while rest.next_if(|(_, c)| *c != '\n').is_some() {},
            '\'' if source[at..].starts_with("'\"'") => drop(rest.nth(1)),
            '\'' if source[at..].starts_with("'\\") => drop(rest.nth(2)),
            ';' | '}' => statement.clear(),
            '"' => {
                let start = at + 1;
                let mut end = start;
                while let Some((at, c)) = rest.next_if(|(_, c)| *c != '"') {
                    end = at + c.len_utf8();
                    if c == '\\' {
                        end = rest.next().map_or(end, |(at, c)| at + c.len_utf8());
                    }
                }
                rest.next();
                if !NOT_SHOWN.iter().any(|call| statement.contains(call)) {
                    let line = source[..start].lines().count();
                    found.push((line, source[start..end].to_owned()));
                }
            }
            c => statement.push(c),
        }
    }
    found
}

/// A text without what is between two marks, such as its tags.
fn without(text: &str, open: char, close: char) -> String {
    let mut parts = text.split(open);
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once(close).map_or("", |(_, after)| after));
    std::iter::once(first).chain(rest).collect()
}

/// Whether a literal has two words side by side, beside tags and placeholders.
fn is_text_for_people(literal: &str) -> bool {
    let text = literal.replace("\\\n", " ").replace("\\n", " ").replace('\\', "");
    let text = without(&without(&text, '<', '>'), '{', '}');
    let is_word = |word: &str| {
        let word = word.trim_end_matches([',', '.', ':', ';']);
        word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| pair.iter().all(|word| is_word(word))) && !NO_TEXTS.contains(&literal)
}

#[test]
fn texts_for_people_are_in_their_folder() {
    let mut found = Vec::new();
    let mut texts = 0;
    for path in sources(PAGE_CODE) {
        let name = shown(&path);
        let source = text(&path);
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let literals = literals(code);
        let of_people = literals.iter().filter(|(_, literal)| is_text_for_people(literal));
        if name.contains("/texts/") || name.ends_with("/texts.rs") {
            texts += of_people.count();
        } else if !name.ends_with("/tests.rs") {
            found.extend(of_people.map(|(line, literal)| format!("{name}:{line}: \"{literal}\"")));
        }
    }
    assert!(texts > 200, "the texts were not found: {texts}");
    none("texts for people outside the folders of texts", &found);
}

const LINES_MAX: usize = 620;

#[test]
fn files_have_a_length_limit() {
    let mut found = Vec::new();
    for path in sources(CODE) {
        let lines = text(&path).lines().count();
        // Tables are read line by line and not from top to bottom.
        let table = ["catalog/repairs.rs", "entities.rs"].iter().any(|name| path.ends_with(name));
        if lines > LINES_MAX && !table {
            found.push(format!("{}: {lines} lines, {LINES_MAX} are allowed", shown(&path)));
        }
    }
    none("long files", &found);
}

#[test]
fn no_unfinished_code() {
    // Concatenated here, so that the test does not find itself.
    let words = ["todo", "dbg", "unimplemented"].map(|name| format!("{name}!("));
    let ignore = format!("#[{}", "ignore");
    let sleep = format!("thread::{}", "sleep");
    let mut found = Vec::new();
    for path in sources(CODE) {
        let code = code_of(&text(&path));
        for word in words.iter().chain([&ignore, &sleep]) {
            if code.contains(word.as_str()) {
                found.push(format!("{}: {word}", shown(&path)));
            }
        }
    }
    none("things left for later", &found);
}

/// Words of this project alone, which are no names: `request`, `reported`, `missing`, `task`, `summary` and the like
/// are.
const DIALECT: &[&str] = &[
    "Account", "Asked", "Job", "Told", "account", "asked", "job", "lack", "lacks", "own", "told", "unasked",
];

/// The names in a source: its words outside comments and texts.
fn names(source: &str) -> BTreeSet<String> {
    let code = code_of(source).replace(r"\\", "").replace("\\\"", "").replace("'\"'", "");
    // Raw strings may contain quotation marks.
    let mut parts = code.split("r#\"");
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| Some(part.split_once("\"#")?.1));
    let code: String = std::iter::once(first).chain(rest).collect();
    let code = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let lines = code.lines().filter_map(|line| line.split("//").next());
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.map(str::to_owned).collect()
}

#[test]
fn names_are_standard_terms() {
    let mut found = Vec::new();
    for path in sources(CODE) {
        let (shown, names) = (shown(&path), names(&text(&path)));
        let dialect = DIALECT.iter().filter(|word| names.contains(**word));
        found.extend(dialect.map(|word| format!("{shown}: {word}")));
    }
    none("names that only this project understands", &found);
}

#[test]
fn every_source_has_module_docs() {
    let silent = |path: &PathBuf| !text(path).trim_start().starts_with("//!");
    let found: Vec<String> = sources(CODE)
        .into_iter()
        // The docs of the module also describe its tests.
        .filter(|path| !path.ends_with("src/main.rs") && !path.ends_with("tests.rs"))
        .filter(silent)
        .map(|path| shown(&path))
        .collect();
    none("files without a word on what they are", &found);
}

/// All pages in Markdown but those of tests and fuzzers.
fn markdown_pages() -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let top = std::fs::read_dir(root())
        .expect("the folder of the project")
        .filter_map(|entry| Some(entry.ok()?.path()));
    let below =
        ["docs", "mappings", "corpus"].into_iter().flat_map(|folder| files_below(&root().join(folder)));
    let mut pages: Vec<PathBuf> = top.filter(|path| path.is_file()).chain(below).filter(is_page).collect();
    pages.sort();
    pages
}

/// The page without its fenced blocks of code.
fn prose(page: &str) -> String {
    let is_outside = |(number, _): &(usize, &str)| number % 2 == 0;
    page.split("\n```").enumerate().filter(is_outside).map(|(_, part)| part).collect::<Vec<_>>().join("\n")
}

/// The anchors of a page's headings, as code forges make them.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page);
    let titles =
        headings.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    titles.map(|title| title.chars().filter_map(letter).collect()).collect()
}

#[test]
fn relative_links_lead_to_pages_and_headings() {
    let mut found = Vec::new();
    let mut count = 0;
    for path in markdown_pages() {
        let page = prose(&text(&path));
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&text(&target)).iter().any(|is| is == anchor));
            if !is_there {
                found.push(format!("{}: {link}", shown(&path)));
            }
        }
    }
    assert!(count > 50, "the links were not found");
    none("links that lead nowhere", &found);
}

#[test]
fn the_index_of_the_documentation_names_every_page() {
    let index = text("docs/README.md");
    let pages = markdown_pages().into_iter().map(|path| shown(&path));
    let below = pages.filter_map(|name| name.strip_prefix("docs/").map(str::to_owned));
    let missing: Vec<String> =
        below.filter(|name| name != "README.md" && !index.contains(&format!("]({name})"))).collect();
    none("pages that docs/README.md does not link", &missing);
}

#[test]
fn the_glossary_names_places_and_types_that_exist() {
    let page = text("docs/glossary.md");
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let places = quoted.iter().filter(|word| word.starts_with("src/") || word.starts_with("crates/"));
    let mut missing: Vec<&str> =
        places.clone().filter(|place| !root().join(place).exists()).copied().collect();
    assert!(places.count() > 15, "the places were not found");
    let (_, names) = page.split_once("## Names in the code").expect("a section on names");
    let code: String = sources(CODE).iter().map(text).collect();
    let is_type =
        |name: &str| ["struct", "enum", "trait"].iter().any(|kind| code.contains(&format!("{kind} {name}")));
    let types =
        names.split('`').skip(1).step_by(2).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    missing.extend(types.filter(|name| !is_type(name)));
    none("names in docs/glossary.md", &missing.into_iter().map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn the_tasks_of_contributing_name_places_that_exist() {
    let page = text("CONTRIBUTING.md");
    let tasks = page.split("## Where to change what").nth(1).expect("a section of tasks");
    let rows: Vec<&str> = tasks.split("\n## ").next().unwrap_or_default().lines().skip(4).collect();
    let places: Vec<&str> = rows.iter().flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let missing = places.iter().filter(|place| place.contains('/') && !root().join(place).exists());
    none("places in CONTRIBUTING.md", &missing.map(|&place| place.to_owned()).collect::<Vec<_>>());
    assert!(rows.len() >= 10 && places.len() >= rows.len() - 1, "the tasks were not found: {rows:?}");
}
