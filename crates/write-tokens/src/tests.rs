use crate::stored_tokens::{SETS_MAX, StoredToken, StoredTokens, TOKENS_MAX};
use crate::{
    CreatedWriteToken, FILE_BYTES_MAX, NAME_BYTES_MAX, NewWriteToken, Refusal, SET_SPEC_BYTES_MAX,
    TokensError, WriteTokens,
};
use oaimend_base::clock;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const AT: SystemTime = SystemTime::UNIX_EPOCH;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn file_in(data: &Path) -> PathBuf {
    data.join("write-tokens.json")
}

fn new(repository: &str, sets: &[&str]) -> NewWriteToken {
    let sets = sets.iter().map(|&set| set.to_owned()).collect();
    NewWriteToken { name: None, repository: repository.to_owned(), sets }
}

fn named(name: &str) -> NewWriteToken {
    NewWriteToken { name: Some(name.to_owned()), ..new("x", &[]) }
}

#[track_caller]
fn create(tokens: &WriteTokens, new: NewWriteToken) -> CreatedWriteToken {
    tokens.create(new, AT).expect("a legal token")
}

#[track_caller]
fn is_valid(tokens: &WriteTokens, token: &CreatedWriteToken) -> bool {
    tokens.rights(&token.token).expect("a readable file").is_some()
}

#[test]
fn a_token_gives_its_rights_and_is_stored_as_a_hash_only() {
    let data = folder();
    let tokens = WriteTokens::new(&data.path().join("data"));
    assert_eq!(tokens.rights("oaimend_x").expect("there is no file"), None);
    assert_eq!(tokens.list().expect("there is no file"), []);
    let at = AT + Duration::from_secs(86_400);
    let first = tokens.create(new("x", &["b", "a", "b"]), at).expect("a legal token");
    let second = create(&tokens, new("x", &[]));
    assert_ne!(first.token, second.token);
    let rights = tokens.rights(&first.token).expect("readable").expect("it exists");
    assert_eq!(rights, first.rights);
    assert_eq!((rights.name.as_str(), rights.repository.as_str()), ("x-1", "x"));
    assert_eq!(rights.sets, ["a", "b"], "each once");
    assert_eq!(second.rights.name, "x-2");
    for other in ["", "oaimend_", &first.token[1..], &format!("{} ", first.token)] {
        assert_eq!(tokens.rights(other).expect("readable"), None, "{other}");
    }
    let random = first.token.strip_prefix("oaimend_").expect("the prefix of all tokens");
    assert_eq!(random.len(), 43, "256 bits in base64url");
    let (file, lock) = (file_in(&data.path().join("data")), data.path().join("data/write-tokens.lock"));
    for path in [&file, &lock] {
        let mode = fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let stored = fs::read_to_string(file).expect("readable");
    let shown = format!("{first:?} {:?} {tokens:?} {:?}", tokens.list(), tokens.rights(&first.token));
    for text in [stored, shown] {
        assert!(text.contains("x-1") && !text.contains(random), "{text}");
    }
    let listed = tokens.list().expect("readable");
    assert_eq!(listed.iter().map(|info| &info.rights).collect::<Vec<_>>(), [&first.rights, &second.rights]);
    assert_eq!(listed[0].created, "1970-01-02T00:00:00Z");
}

#[test]
fn changes_are_effective_at_once_in_other_processes() {
    let data = folder();
    // As the server and a command.
    let [server, command] = [(); 2].map(|()| WriteTokens::new(data.path()));
    let always = create(&command, named("always"));
    // All states have the same length, so only the version of the file tells them apart.
    let mut before = create(&command, named("b"));
    for round in 0..60 {
        assert!(is_valid(&server, &before), "round {round}");
        let name = if round % 2 == 0 { "a" } else { "b" };
        command.revoke(&before.rights.name).expect("it exists");
        let after = create(&command, named(name));
        assert!(!is_valid(&server, &before), "round {round}: revoked");
        assert!(is_valid(&server, &after) && is_valid(&server, &always), "round {round}: created");
        before = after;
    }
    fs::remove_file(file_in(data.path())).expect("its owner may");
    assert!(!is_valid(&server, &before), "without a file there are no tokens");
    let after = create(&command, named("a"));
    assert!(is_valid(&server, &after) && !is_valid(&server, &before));
}

#[test]
fn a_file_that_is_edited_in_place_is_read_again() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    let created = create(&tokens, new("x", &["a"]));
    assert!(is_valid(&tokens, &created));
    let file = file_in(data.path());
    let edited = fs::read_to_string(&file).expect("readable").replace("\"a\"", "\"b:c\"");
    fs::write(&file, edited).expect("writable");
    let rights = tokens.rights(&created.token).expect("readable").expect("it exists");
    assert_eq!(rights.sets, ["b:c"]);
}

#[test]
fn a_damaged_file_is_an_error_and_never_empty() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    let created = create(&tokens, new("x", &["a"]));
    create(&tokens, new("x", &["a"]));
    let file = file_in(data.path());
    let whole = fs::read_to_string(&file).expect("readable");
    let hash = whole.split("\"hash\": \"").nth(1).and_then(|rest| rest.get(..64)).expect("a hash");
    let too_long = " ".repeat(usize::try_from(FILE_BYTES_MAX).expect("a small number")) + &whole;
    for (damaged, problem) in [
        (String::new(), "at line 1 column 0"),
        ("null".to_owned(), "invalid type: null"),
        ("{}".to_owned(), "missing field `format`"),
        (whole[..whole.len() - 4].to_owned(), "EOF while parsing"),
        (whole.clone() + "x", "trailing characters"),
        (whole.replace("\"format\": 1", "\"format\": 2"), "has the format 2 of another version"),
        (whole.replacen("\"sets\"", "\"set\"", 1), "unknown field `set`"),
        (whole.replacen("\"sets\": [\n        \"a\"\n      ],", "", 1), "missing field `sets`"),
        (whole.replacen("\"name\"", "\"until\": \"2026\", \"name\"", 1), "unknown field `until`"),
        (whole.replacen("\"a\"", "\"a:\"", 1), "the token number 1 is not one"),
        (whole.replacen("x-2", "x-1", 1), "the token number 2 is not one"),
        (whole.replacen("x-2", "x\\u001b", 1), "the token number 2 is not one"),
        (whole.replacen("\"x\"", "\"../x\"", 1), "the token number 1 is not one"),
        (whole.replacen("1970-01-01T", "then", 1), "the token number 1 is not one"),
        (whole.replacen(hash, &hash.to_uppercase(), 1), "the token number 1 is not one"),
        (whole.replacen(hash, &hash[1..], 1), "the token number 1 is not one"),
        (too_long, "is longer than 16 MiB"),
    ] {
        assert_ne!(damaged, whole, "{problem}");
        fs::write(&file, &damaged).expect("writable");
        let errors = [
            tokens.rights(&created.token).map(drop),
            tokens.rights("another").map(drop),
            tokens.create(new("x", &[]), AT).map(drop),
            tokens.list().map(drop),
            tokens.revoke("x-1"),
        ];
        for error in errors {
            let error = error.expect_err(problem);
            let text = error.to_string();
            assert!(matches!(error, TokensError::Damaged { .. }), "{problem}: {text}");
            assert!(text.starts_with(&format!("{}: ", file.display())) && text.contains(problem), "{text}");
            assert!(
                text.ends_with("restore it from a backup, or move it away, which revokes all write tokens")
            );
        }
        assert_eq!(fs::read_to_string(&file).expect("readable"), damaged, "nothing replaces it");
    }
    fs::write(&file, &whole).expect("writable");
    assert!(is_valid(&tokens, &created), "a restored file is read again");
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_an_error() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    let created = create(&tokens, new("x", &[]));
    let file = file_in(data.path());
    let moved = data.path().join("moved");
    fs::rename(&file, &moved).expect("its owner may");
    let are_unreadable = |what: &str| {
        for error in [
            tokens.rights(&created.token).map(drop),
            tokens.create(new("x", &[]), AT).map(drop),
            tokens.list().map(drop),
            tokens.revoke("x-1"),
        ] {
            let error = error.expect_err(what);
            assert!(matches!(error, TokensError::Unreadable { .. }), "{what}: {error}");
        }
    };
    fs::create_dir(&file).expect("writable");
    are_unreadable("a folder is no file");
    fs::remove_dir(&file).expect("it is empty");
    symlink(&file, &file).expect("writable");
    are_unreadable("the link leads to itself");
    fs::remove_file(&file).expect("its owner may");
    fs::rename(&moved, &file).expect("its owner may");
    assert!(is_valid(&tokens, &created));
    let part = data.path().join("write-tokens.json.part");
    fs::create_dir(&part).expect("writable");
    for error in [tokens.create(new("x", &[]), AT).map(drop), tokens.revoke("x-1")] {
        let error = error.expect_err("a folder is in the place of the new file");
        assert!(matches!(error, TokensError::Unwritable { .. }), "{error}");
    }
    assert!(is_valid(&tokens, &created), "nothing has changed");
    assert_eq!(tokens.list().expect("readable").len(), 1);
}

#[test]
fn a_killed_writer_leaves_the_tokens_as_they_were() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    let first = create(&tokens, new("x", &[]));
    let part = data.path().join("write-tokens.json.part");
    fs::write(&part, "{\n  \"format\": 1,\n  \"tok").expect("writable");
    assert!(is_valid(&tokens, &first));
    let second = create(&tokens, new("x", &[]));
    assert!(is_valid(&tokens, &first) && is_valid(&tokens, &second));
    assert!(!part.exists());
}

#[test]
fn concurrent_writers_lose_nothing() {
    const WRITERS: usize = 8;
    const TOKENS_EACH: usize = 10;
    let data = folder();
    let created: Vec<CreatedWriteToken> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let tokens = WriteTokens::new(data.path());
                scope.spawn(move || {
                    let mut created: Vec<_> =
                        (0..=TOKENS_EACH).map(|_| create(&tokens, new("x", &[]))).collect();
                    let revoked = created.remove(writer);
                    tokens.revoke(&revoked.rights.name).expect("it exists");
                    created
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("no writer panics")).collect()
    });
    let tokens = WriteTokens::new(data.path());
    assert_eq!(created.len(), WRITERS * TOKENS_EACH);
    assert!(created.iter().all(|token| is_valid(&tokens, token)));
    let names: HashSet<String> =
        tokens.list().expect("readable").into_iter().map(|info| info.rights.name).collect();
    assert_eq!(names.len(), created.len());
}

#[test]
fn illegal_tokens_are_refused() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    create(&tokens, named("taken"));
    let longest = "n".repeat(NAME_BYTES_MAX);
    create(&tokens, named(&longest));
    let sets: Vec<String> = (0..=SETS_MAX).map(|number| format!("s{number}")).collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    create(&tokens, new("x", &sets[1..]));
    let longest_set = "s".repeat(SET_SPEC_BYTES_MAX);
    create(&tokens, new("x", &[&longest_set]));
    let before = tokens.list().expect("readable");
    let illegal_name = |name: &str| Refusal::IllegalName(name.to_owned());
    let illegal_set = |set: &str| Refusal::IllegalSet(set.to_owned());
    let (long_name, long_set) = (format!("{longest}n"), format!("{longest_set}s"));
    for (new, expected) in [
        (named("taken"), Refusal::NameTaken("taken".to_owned())),
        (named(""), illegal_name("")),
        (named("-x"), illegal_name("-x")),
        (named("é"), illegal_name("é")),
        (named("a\u{1b}[2J"), illegal_name("a\u{1b}[2J")),
        (named(&long_name), illegal_name(&long_name)),
        (new("", &[]), illegal_name("")),
        (new("a/b", &[]), illegal_name("a/b")),
        (new(&longest, &[]), illegal_name(&format!("{longest}-1"))),
        (new("x", &["a", ""]), illegal_set("")),
        (new("x", &["a b"]), illegal_set("a b")),
        (new("x", &["a::b"]), illegal_set("a::b")),
        (new("x", &[&long_set]), illegal_set(&long_set)),
        (new("x", &sets), Refusal::TooManySets(SETS_MAX + 1)),
    ] {
        match tokens.create(new, AT) {
            Err(TokensError::Refused(refusal)) => {
                assert_eq!(refusal, expected);
                assert!(!refusal.to_string().contains('\u{1b}'), "{refusal}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
    let unknown = tokens.revoke("taken2").expect_err("there is none").to_string();
    assert!(unknown.starts_with("there is no write token \"taken2\"; expected taken, "), "{unknown}");
    assert_eq!(tokens.list().expect("readable"), before);
    let none =
        WriteTokens::new(&data.path().join("none")).revoke("x").expect_err("there is none").to_string();
    assert_eq!(none, "there is no write token \"x\"; there are none");
}

#[test]
fn the_number_of_tokens_is_limited() {
    let data = folder();
    let tokens = WriteTokens::new(data.path());
    let token = |number: usize| StoredToken {
        name: format!("n{number}"),
        repository: "x".to_owned(),
        sets: Vec::new(),
        created: clock::utc_datetime(AT),
        hash: format!("{number:064x}"),
    };
    let mut stored = StoredTokens::default();
    stored.tokens = (1..TOKENS_MAX).map(token).collect();
    fs::write(file_in(data.path()), stored.to_json()).expect("writable");
    let last = create(&tokens, new("x", &[]));
    assert!(is_valid(&tokens, &last));
    let error = tokens.create(new("x", &[]), AT).expect_err("one too many");
    assert!(matches!(error, TokensError::Refused(Refusal::Full)), "{error}");
    // Longer sets than the file has room for.
    let long = |number: usize| {
        let sets = (0..SETS_MAX).map(|set| format!("{set:0>SET_SPEC_BYTES_MAX$}")).collect();
        StoredToken { sets, ..token(number) }
    };
    stored.tokens = (0..161).map(long).collect();
    let room = FILE_BYTES_MAX - stored.to_json().len() as u64;
    assert!(room > 0 && room < 100_000, "{room}");
    fs::write(file_in(data.path()), stored.to_json()).expect("writable");
    let sets = long(0).sets;
    let error = tokens.create(NewWriteToken { sets, ..new("x", &[]) }, AT).expect_err("no room");
    assert!(matches!(error, TokensError::Refused(Refusal::Full)), "{error}");
    let small = create(&tokens, new("x", &[]));
    assert!(is_valid(&tokens, &small));
}
