//! What a view contains, by its configuration.

use oaimend_mirror::view::MirroredSource;
use oaimend_record::RecordDocument;
use oaimend_repository::RecordView;
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{Query, RecordTexts};
use oaimend_store::{RecordStatus, StoredRecord};
use serde::{Deserialize, Serialize};

/// A view, as it is configured now.
#[derive(Clone, Debug)]
pub struct ViewSettings {
    /// Its name in URLs.
    pub name: String,
    /// Its name in Identify.
    pub repository_name: String,
    /// What it is about, in Identify.
    pub description: Option<String>,
    /// The addresses in Identify; empty: those of the repositories.
    pub admin_emails: Vec<String>,
    /// Its repositories. Their prefixes are the formats of the view.
    pub sources: Vec<MirroredSource>,
    /// The sets that it is limited to, as `ListSets` of all repositories names them: `x` or `x:a`. Empty: all.
    pub sets: Vec<String>,
    /// The query in `odlsearch1`; `None`: every record.
    pub query: Option<String>,
}

/// The version of the rules that decide whether a record matches. Raise it whenever the analysis of texts, a crosswalk or
/// the query language changes what matches: each view is then read again from the mirror, as after a change of its
/// definition.
const JUDGEMENT: u32 = 3;

/// What decides over the members of a view. A change of it is a change of the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Definition {
    /// [`JUDGEMENT`] of the program that judged the members; 0 before it was stored.
    #[serde(default)]
    judgement: u32,
    pub(super) sources: Vec<DefinedSource>,
    sets: Vec<String>,
    query: Option<String>,
}

/// A repository of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DefinedSource {
    pub(super) id: String,
    /// The formats; empty: all.
    pub(super) prefixes: Vec<String>,
    priority: u64,
}

impl Definition {
    pub(super) fn of(settings: &ViewSettings) -> Self {
        let source = |source: &MirroredSource| DefinedSource {
            id: source.id.clone(),
            prefixes: source.prefixes.clone(),
            priority: source.priority,
        };
        let mut sources: Vec<DefinedSource> = settings.sources.iter().map(source).collect();
        sources.sort_by(|one, other| one.id.cmp(&other.id));
        let (sets, query) = (settings.sets.clone(), settings.query.clone());
        Self { judgement: JUDGEMENT, sources, sets, query }
    }

    /// As the store keeps it.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Its query; `None` if this version of the program does not know its language.
    pub(super) fn parsed_query(&self) -> Option<Query> {
        self.query.as_ref().map_or(Some(Query::All), |text| parse(QueryLanguage::Odl, text).ok())
    }

    /// Whether a record of a repository is a member. `query` is the parsed one.
    pub(super) fn contains(&self, repository: &str, record: &StoredRecord, query: &Query) -> bool {
        record.status == RecordStatus::Live
            && self.has_set_of(repository, record)
            && (*query == Query::All || is_match(repository, record, query))
    }

    /// The sets of its repositories that it is limited to.
    pub(super) fn sets_of_sources(&self) -> impl Iterator<Item = (&DefinedSource, &str)> {
        let of_source = |source: &DefinedSource, set: &'_ str| -> bool {
            set.strip_prefix(source.id.as_str()).is_some_and(|rest| rest.starts_with(':'))
        };
        self.sources.iter().flat_map(move |source| {
            let sets = self.sets.iter().filter(move |set| of_source(source, set));
            sets.map(move |set| (source, &set[source.id.len() + 1..]))
        })
    }

    fn has_set_of(&self, repository: &str, record: &StoredRecord) -> bool {
        let of_record = record.set_specs.iter();
        let sets: Vec<String> = of_record.map(|set_spec| format!("{repository}:{set_spec}")).collect();
        let is_in = |set: &String| {
            let is_inside = |inner: &str| {
                inner.strip_prefix(set.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            };
            set == repository || sets.iter().any(|inner| is_inside(inner))
        };
        self.sets.is_empty() || self.sets.iter().any(is_in)
    }
}

/// Whether the texts of a record match. A record that cannot be read has none.
fn is_match(repository: &str, record: &StoredRecord, query: &Query) -> bool {
    let xml = std::str::from_utf8(&record.bytes).unwrap_or_default();
    let view = RecordView::read(xml);
    let document = view.and_then(|view| RecordDocument::read_content(&view).ok());
    document
        .is_some_and(|document| query.matches(&RecordTexts::of(repository, &record.identifier, &document)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_judgement_is_another_definition() {
        let settings = ViewSettings {
            name: "maps".to_owned(),
            repository_name: "Maps".to_owned(),
            description: None,
            admin_emails: Vec::new(),
            sources: vec![MirroredSource { id: "x".to_owned(), ..MirroredSource::default() }],
            sets: Vec::new(),
            query: Some("maps".to_owned()),
        };
        let definition = Definition::of(&settings);
        let mut stored: serde_json::Value = serde_json::from_str(&definition.to_json()).expect("JSON");
        assert_eq!(stored["judgement"].take(), JUDGEMENT);
        stored.as_object_mut().expect("an object").remove("judgement");
        let before: Definition = serde_json::from_value(stored).expect("a definition without the field");
        assert_eq!(before, Definition { judgement: 0, ..definition.clone() });
        assert_ne!(before.to_json(), definition.to_json());
    }
}
