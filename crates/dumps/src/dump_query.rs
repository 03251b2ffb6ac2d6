//! The parameters of requests for dumps.

use crate::dump_form::DumpForm;
use crate::position::Position;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

/// The format of a dump whose request names none.
const DEFAULT_PREFIX: &str = "oai_dc";
/// The set of a query. `oaimend-views` reads it.
const QUERY_SET: &str = "q:";
const NAMES: &str = "repository, prefix, query, set, format, since and position";

/// A request for a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpQuery {
    /// What the dump contains.
    pub selection: Selection,
    /// Only the dump of this position; `None`: a current one.
    pub position: Option<Position>,
}

/// What a dump contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The repository: an id, `_all` or `_view/NAME`.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// Only records that match this query.
    pub query: Option<String>,
    /// Only records of this set.
    pub set: Option<String>,
    /// The form, by its name.
    pub format: String,
    /// Only changes after this position.
    pub since: Option<String>,
}

/// Why a request for a dump is not legal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryFault {
    /// A parameter is not legal.
    #[error("{0}")]
    Illegal(String),
}

impl DumpQuery {
    /// Reads the query of a URL.
    ///
    /// # Errors
    ///
    /// A parameter is unknown, comes twice or is not legal.
    pub fn read(query: &str) -> Result<Self, QueryFault> {
        let illegal = |text: String| Err(QueryFault::Illegal(text));
        let mut repository = None;
        let (mut prefix, mut words, mut set) = (None, None, None);
        let (mut format, mut since, mut position) = (None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "repository" => &mut repository,
                "prefix" => &mut prefix,
                "query" => &mut words,
                "set" => &mut set,
                "format" => &mut format,
                "since" => &mut since,
                "position" => &mut position,
                _ => {
                    let name = name.escape_debug();
                    return illegal(format!("there is no parameter \"{name}\"; expected {NAMES}"));
                }
            };
            if value.is_empty() {
                return illegal(format!("the parameter {name} is empty; leave it out"));
            }
            if slot.replace(value.into_owned()).is_some() {
                return illegal(format!("the parameter {name} comes twice"));
            }
        }
        let Some(repository) = repository else {
            return illegal("the parameter repository is missing: an id, _all or _view/NAME".to_owned());
        };
        let form = match format {
            None => DumpForm::default(),
            Some(name) => match DumpForm::from_name(&name) {
                Some(form) => form,
                None => return illegal("the format is none of xmltape, jsonl and csv".to_owned()),
            },
        };
        if words.is_some() && set.is_some() {
            return illegal("query and set exclude each other".to_owned());
        }
        if since.is_some() && (words.is_some() || set.is_some()) {
            // Lists of sets and queries do not name the records that have left them.
            return illegal(
                "since works for whole repositories and views only, because nobody notes which records have left a set \
                 or a query; make a view of it"
                    .to_owned(),
            );
        }
        for position in [&since, &position].into_iter().flatten() {
            if position.parse::<Position>().is_err() {
                return illegal(format!("{} is no position", position.escape_debug()));
            }
        }
        let selection = Selection {
            repository,
            prefix: prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned()),
            query: words,
            set,
            format: form.name().to_owned(),
            since,
        };
        Ok(Self { selection, position: position.and_then(|position| position.parse().ok()) })
    }
}

impl Selection {
    /// The form.
    pub fn form(&self) -> DumpForm {
        DumpForm::from_name(&self.format).unwrap_or_default()
    }

    /// The position after which the changes begin.
    pub fn since(&self) -> Option<Position> {
        self.since.as_ref()?.parse().ok()
    }

    /// The setSpec of its list.
    pub fn list_set(&self) -> Option<String> {
        let of_query = |query: &String| format!("{QUERY_SET}{}", URL_SAFE_NO_PAD.encode(query));
        self.query.as_ref().map(of_query).or_else(|| self.set.clone())
    }

    /// The name of its files: 32 hexadecimal digits.
    pub fn key(&self) -> String {
        let json = serde_json::to_vec(self).expect("texts can be written");
        hex::encode(&digest(&SHA256, &json).as_ref()[..16])
    }

    /// The query of the URL of its dump of this position.
    pub fn to_query(&self, position: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("repository", &self.repository).append_pair("prefix", &self.prefix);
        for (name, value) in
            [("query", self.query.as_deref()), ("set", self.set.as_deref()), ("since", self.since.as_deref())]
        {
            query.extend_pairs(value.map(|value| (name, value)));
        }
        query.append_pair("format", &self.format);
        query.extend_pairs(position.map(|position| ("position", position)));
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: &str = "00000000000000ab-2-1700000000";

    #[test]
    fn a_query_is_read_as_it_was_written() {
        let query = DumpQuery::read("repository=x").expect("legal").selection;
        let expected = ("x", "oai_dc", DumpForm::Jsonl, None);
        assert_eq!((&*query.repository, &*query.prefix, query.form(), query.list_set()), expected);
        for text in [
            "repository=_view%2Fmaps&prefix=mods&format=csv",
            &format!("repository=x&prefix=p&since={POSITION}&format=xmltape"),
            "repository=_all&prefix=p&query=%2Btitle%3Aa%26b+c&format=jsonl",
            "repository=x&prefix=p&set=a%3Ab&format=jsonl",
        ] {
            let read = DumpQuery::read(text).expect("legal");
            assert_eq!(read.selection.to_query(None), text);
            let again = DumpQuery::read(&read.selection.to_query(Some(POSITION))).expect("legal");
            assert_eq!((&again.selection, again.position.is_some()), (&read.selection, true));
        }
        let words = DumpQuery::read("repository=_all&query=title:a").expect("legal").selection;
        assert_eq!(words.list_set().as_deref(), Some("q:dGl0bGU6YQ"));
        assert_ne!(words.key(), query.key());
    }

    #[test]
    fn hostile_parameters_are_refused() {
        for text in [
            "",
            "repository=",
            "repository=x&repository=y",
            "repository=x&verb=Identify",
            "repository=x&format=xml",
            "repository=x&format=CSV",
            "repository=x&query=a&set=b",
            "repository=x&since=now",
            "repository=x&position=../../etc/passwd",
            &format!("repository=x&set=a&since={POSITION}"),
            &format!("repository=x&query=a&since={POSITION}"),
            "repository=x&%00=1",
        ] {
            assert!(DumpQuery::read(text).is_err(), "{text}");
        }
    }
}
