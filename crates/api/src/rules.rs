//! Checks parameters by the rules of the OpenAPI document.

use percent_encoding::percent_decode;
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use utoipa::IntoParams;

use crate::parameters::{
    FormatsParameters, NoParameters, RecordParameters, RecordsParameters, RepositoriesParameters,
    SearchParameters, SetsParameters,
};

/// Why the parameters of a request are refused, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParameterFault(String);

/// The parameters of an operation.
pub trait Parameters: IntoParams + DeserializeOwned {
    /// The rules of the OpenAPI document for them.
    fn rules() -> &'static ParameterRules;

    /// Reads a query.
    ///
    /// # Errors
    ///
    /// A parameter is unknown, repeated, missing, or has a value that its schema does not allow.
    fn read(query: &[u8]) -> Result<Self, ParameterFault> {
        let values = Self::rules().check(query)?;
        serde_json::from_value(Value::Object(values)).map_err(|error| ParameterFault(error.to_string()))
    }
}

macro_rules! parameters {
    ($($name:ty),*) => {
        $(impl Parameters for $name {
            fn rules() -> &'static ParameterRules {
                static RULES: LazyLock<ParameterRules> = LazyLock::new(ParameterRules::of::<$name>);
                &RULES
            }
        })*
    };
}

parameters!(
    NoParameters,
    RepositoriesParameters,
    SetsParameters,
    FormatsParameters,
    RecordsParameters,
    RecordParameters,
    SearchParameters
);

/// The rules for the parameters of an operation.
#[derive(Debug)]
pub struct ParameterRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    name: String,
    is_required: bool,
    value: ValueRule,
}

#[derive(Debug)]
enum ValueRule {
    Text { pattern: Regex, chars_max: usize },
    OneOf(Vec<String>),
    SomeOf(Vec<String>),
    Number { min: u64, max: u64 },
}

impl ParameterRules {
    /// The rules that the document has for these parameters.
    fn of<P: IntoParams>() -> Self {
        let parameters = P::into_params(|| None);
        let rules = parameters.into_iter().map(|parameter| {
            let parameter = serde_json::to_value(parameter).expect("a parameter is JSON");
            Rule {
                name: parameter["name"].as_str().unwrap_or_default().to_owned(),
                is_required: parameter["required"] == Value::Bool(true),
                value: ValueRule::of(&parameter["schema"]),
            }
        });
        Self(rules.collect())
    }

    fn check(&self, query: &[u8]) -> Result<Map<String, Value>, ParameterFault> {
        let mut values = Map::new();
        for pair in query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (decode(parts.next())?, decode(parts.next())?);
            let Some(rule) = self.0.iter().find(|rule| rule.name == name) else {
                return Err(ParameterFault(format!("the parameter {name:?} is unknown{}", self.known())));
            };
            let read = rule.value.read(&value);
            let read = read.map_err(|expected| ParameterFault(format!("{name} is not {expected}")))?;
            if values.insert(name, read).is_some() {
                return Err(ParameterFault(format!("the parameter {} is repeated", rule.name)));
            }
        }
        match self.0.iter().find(|rule| rule.is_required && !values.contains_key(&rule.name)) {
            Some(rule) => Err(ParameterFault(format!("the parameter {} is missing", rule.name))),
            None => Ok(values),
        }
    }

    /// The names, for a client that sends another one.
    fn known(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|rule| rule.name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("; known are {}", names.join(", ")) }
    }
}

impl ValueRule {
    fn of(schema: &Value) -> Self {
        let names = |of: &Value| {
            let names = of["enum"].as_array()?.iter();
            Some(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
        };
        if let Some(allowed) = names(&schema["items"]) {
            return Self::SomeOf(allowed);
        }
        if let Some(allowed) = names(schema) {
            return Self::OneOf(allowed);
        }
        if schema["type"] == "integer" {
            let number = |name: &str| schema[name].as_u64().expect("each number has its limits");
            return Self::Number { min: number("minimum"), max: number("maximum") };
        }
        let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
        let chars_max = schema["maxLength"].as_u64().and_then(|max| usize::try_from(max).ok());
        Self::Text {
            pattern: pattern.expect("each text has a pattern"),
            chars_max: chars_max.expect("each text has a length"),
        }
    }

    /// The value, or the text for what is expected.
    fn read(&self, value: &str) -> Result<Value, String> {
        match self {
            Self::Text { pattern, chars_max } => {
                if value.chars().count() > *chars_max {
                    Err(format!("a text of at most {chars_max} characters"))
                } else if pattern.is_match(value) {
                    Ok(value.into())
                } else {
                    Err(format!("a text that matches {pattern}"))
                }
            }
            Self::OneOf(allowed) if allowed.iter().any(|name| name == value) => Ok(value.into()),
            Self::OneOf(allowed) => Err(format!("one of {}", allowed.join(", "))),
            Self::SomeOf(allowed) => {
                let names: Vec<&str> = value.split(',').collect();
                let known = names.iter().all(|name| allowed.iter().any(|allowed| allowed == name));
                let differ = names.iter().collect::<BTreeSet<_>>().len() == names.len();
                if known && differ {
                    Ok(names.into())
                } else {
                    Err(format!("a list of different names among {}", allowed.join(", ")))
                }
            }
            Self::Number { min, max } => {
                let number = value.parse::<u64>().ok().filter(|number| number.to_string() == value);
                let number = number.filter(|number| (min..=max).contains(&number));
                number.map(Value::from).ok_or_else(|| format!("a number from {min} to {max}"))
            }
        }
    }
}

fn decode(part: Option<&[u8]>) -> Result<String, ParameterFault> {
    let bytes: Vec<u8> = part.unwrap_or_default().iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
    let text = percent_decode(&bytes).decode_utf8();
    text.map(Into::into).map_err(|_| ParameterFault("the query is not text in UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas::LIMIT_MAX;

    fn fault(query: &str) -> String {
        RecordsParameters::read(query.as_bytes()).expect_err(query).to_string()
    }

    #[test]
    fn legal_parameters_are_read() {
        let read = |query: &str| RecordsParameters::read(query.as_bytes()).expect(query);
        let all = read(
            "repository=_view%2Fmaps&prefix=oai_dc&set=a:b&from=2024-02-29&until=2024-03-01T23:59:59Z\
             &fields=identifier%2Csets&limit=7&cursor=oaiapi1_A&",
        );
        assert_eq!((all.repository.as_str(), all.limit), ("_view/maps", Some(7)));
        assert!(all.fields().are_of_header() && all.fields().contains(RecordField::Sets));
        assert!(!all.fields().contains(RecordField::Deleted));
        let bare = read("repository=x");
        assert!(bare.fields().contains(RecordField::Metadata) && !bare.fields().contains(RecordField::About));
        let record = RecordParameters::read(b"repository=x&identifier=oai:x:%C3%A9+1%2B").expect("legal");
        assert_eq!(record.identifier, "oai:x:é 1+");
    }

    #[test]
    fn other_parameters_are_faults() {
        for (query, text) in [
            ("", "repository is missing"),
            ("repository=x&y=1", "\"y\" is unknown; known are repository, prefix"),
            ("repository=x&repository=x", "repository is repeated"),
            ("repository=", "repository is not"),
            ("repository=x&limit=0", "limit is not a number from 1 to 1000"),
            ("repository=x&limit=1001", "limit is not"),
            ("repository=x&limit=01", "limit is not"),
            ("repository=x&limit=+1", "limit is not"),
            ("repository=x&fields=identifier,colour", "among identifier, datestamp"),
            ("repository=x&fields=sets,sets", "different names"),
            ("repository=x&fields=", "fields is not"),
            ("repository=x&from=2023-02-29", "from is not"),
            ("repository=x&from=1900-02-29", "from is not"),
            ("repository=x&until=2023-01-01T24:00:00Z", "until is not"),
            ("repository=x&until=2023-01-01%0A", "until is not"),
            ("repository=x&set=a::b", "set is not"),
            ("repository=%FF", "UTF-8"),
            ("repository=x&cursor=x", "cursor is not"),
        ] {
            assert!(fault(query).contains(text), "{query}: {}", fault(query));
        }
        assert!(fault(&format!("repository={}", "x".repeat(201))).contains("at most 200"));
        assert_eq!(LIMIT_MAX, 1_000, "the test above");
        assert!(NoParameters::read(b"x=1").is_err());
    }

    use crate::fields::RecordField;

    #[test]
    fn a_query_has_more_than_blanks() {
        let is_read = |q: &str| {
            let bytes: String = q.bytes().map(|byte| format!("%{byte:02X}")).collect();
            SearchParameters::read(format!("q={bytes}").as_bytes()).is_ok()
        };
        let blanks: Vec<char> = ('\0'..=char::MAX).filter(|c| c.is_whitespace()).collect();
        assert!(blanks.contains(&'\u{3000}'));
        for blank in blanks {
            assert!(!is_read(&blank.to_string()) && !is_read(&format!("{blank}{blank}")), "{blank:?}");
            assert!(blank.is_control() && blank != '\u{85}' || is_read(&format!("a{blank}b")), "{blank:?}");
        }
        assert!(is_read("é") && is_read("\u{3000}海"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let is_read =
            |day: String| RecordsParameters::read(format!("repository=x&from={day}").as_bytes()).is_ok();
        for year in [1000, 1999, 2000, 2024, 2100, 2400, 9996, 9999] {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            assert_eq!(is_read(format!("{year}-02-29")), is_leap, "{year}");
            for (month, days) in (1..=12).zip([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                assert!(is_read(format!("{year}-{month:02}-{days}")), "{year}-{month}");
                assert!(month == 2 || !is_read(format!("{year}-{month:02}-{}", days + 1)), "{year}-{month}");
            }
        }
    }
}
