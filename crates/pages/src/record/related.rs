//! The records that are linked with a record: those that it cites, those that cite it, and its duplicates.

use super::address::RecordAddress;
use serde_json::{Value, json};

/// The links of a record, or why there are none to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Related {
    /// The record is not in the mirror, or the response does not show its links.
    #[default]
    None,
    /// The links.
    Known(Box<RelatedRecords>),
    /// They cannot be read now.
    NotReady,
}

/// The links of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedRecords {
    /// The identifiers of the work: their kinds and values.
    pub identifiers: Vec<(&'static str, String)>,
    /// The works that it cites.
    pub cites: Vec<RelatedWork>,
    /// The records that cite it.
    pub cited_by: Vec<RelatedWork>,
    /// Where the list of the records that cite it continues; `None` at its end.
    pub next: Option<String>,
    /// The records of other repositories that describe the same work.
    pub same_as: Vec<SameRecord>,
    /// Whether there are more links, beside those after `next`.
    pub has_more: bool,
    /// The ids of repositories that may have further records.
    pub incomplete: Vec<String>,
}

/// A work that is linked with a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedWork {
    /// The name of the field that names it, or that names the record.
    pub field: &'static str,
    /// `stated`, or `mentioned` by a field that names works for any reason.
    pub basis: &'static str,
    /// The kind and the value of the identifier by which the record names it.
    pub identifier: Option<(&'static str, String)>,
    /// Its records.
    pub records: Vec<RelatedRecord>,
}

/// A record that is linked with another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedRecord {
    /// The repository id.
    pub repository: String,
    /// The identifier.
    pub identifier: String,
    /// The first title.
    pub title: Option<String>,
}

/// A record of another repository that describes the same work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SameRecord {
    /// The record.
    pub record: RelatedRecord,
    /// The kind of the identifier that both have, or [`SAME_DESCRIPTION`].
    pub same_by: &'static str,
}

/// The reason for a duplicate whose title, year and first creator are the same. It is not certain.
pub const SAME_DESCRIPTION: &str = "description";

impl Related {
    /// The URLs of the pages of the records that certainly describe the same work, for `sameAs` of schema.org.
    pub fn same_as(&self, public_url: &str) -> Vec<String> {
        let Self::Known(related) = self else { return Vec::new() };
        let is_certain = |same: &&SameRecord| same.same_by != SAME_DESCRIPTION;
        related.same_as.iter().filter(is_certain).map(|same| same.record.page(public_url)).collect()
    }

    /// Whether there is something to say about links.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Known(related) => {
                related.cites.is_empty() && related.cited_by.is_empty() && related.same_as.is_empty()
            }
            Self::NotReady => false,
        }
    }
}

impl RelatedRecord {
    /// The page. `base` is the public URL or its path, without a slash at its end.
    pub fn page(&self, base: &str) -> String {
        RecordAddress { repository: &self.repository, identifier: &self.identifier, format: None }.page(base)
    }

    /// The title, else the identifier.
    pub fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.identifier)
    }
}

/// The links of the record at an address, as docs/how-to/references.md describes them. `public_url` has no slash at its end.
pub fn related_json(related: &RelatedRecords, address: RecordAddress<'_>, public_url: &str) -> Value {
    let record = |record: &RelatedRecord| {
        json!({
            "repository": record.repository,
            "identifier": record.identifier,
            "url": record.page(public_url),
            "title": record.title,
        })
    };
    let identifier = |(kind, value): &(&str, String)| json!({"kind": kind, "value": value});
    let work = |work: &RelatedWork| {
        json!({
            "field": work.field,
            "basis": work.basis,
            "identifier": work.identifier.as_ref().map(identifier),
            "records": work.records.iter().map(record).collect::<Vec<_>>(),
        })
    };
    let same = |same: &SameRecord| {
        let mut value = record(&same.record);
        value["by"] = json!(same.same_by);
        value
    };
    json!({
        "repository": address.repository,
        "identifier": address.identifier,
        "url": address.page(public_url),
        "identifiers": related.identifiers.iter().map(identifier).collect::<Vec<_>>(),
        "cites": related.cites.iter().map(work).collect::<Vec<_>>(),
        "citedBy": related.cited_by.iter().map(work).collect::<Vec<_>>(),
        "next": related.next.as_ref().map(|after| address.links_after(public_url, after)),
        "sameAs": related.same_as.iter().map(same).collect::<Vec<_>>(),
        "hasMore": related.has_more,
        "incomplete": related.incomplete,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_fixed_shape() {
        let record = RelatedRecord {
            repository: "y".to_owned(),
            identifier: "oai:y:<2>".to_owned(),
            title: Some("T".to_owned()),
        };
        let related = RelatedRecords {
            identifiers: vec![("doi", "10.1000/1".to_owned())],
            cites: vec![RelatedWork {
                field: "references",
                basis: "stated",
                identifier: Some(("doi", "10.1000/2".to_owned())),
                records: Vec::new(),
            }],
            cited_by: vec![RelatedWork {
                field: "relation",
                basis: "mentioned",
                identifier: None,
                records: vec![record.clone()],
            }],
            next: Some("7-8".to_owned()),
            same_as: vec![
                SameRecord { record: record.clone(), same_by: "doi" },
                SameRecord { record, same_by: SAME_DESCRIPTION },
            ],
            has_more: false,
            incomplete: vec!["z".to_owned()],
        };
        let address = RecordAddress { repository: "x", identifier: "oai:x:1", format: None };
        let url = "https://e.org/y/record/oai%3Ay%3A%3C2%3E";
        let of_y = json!({"repository": "y", "identifier": "oai:y:<2>", "url": url, "title": "T"});
        let same = |by: &str| {
            let mut same = of_y.clone();
            same["by"] = json!(by);
            same
        };
        let expected = json!({
            "repository": "x",
            "identifier": "oai:x:1",
            "url": "https://e.org/x/record/oai%3Ax%3A1",
            "identifiers": [{"kind": "doi", "value": "10.1000/1"}],
            "cites": [{"field": "references", "basis": "stated", "identifier": {"kind": "doi", "value": "10.1000/2"}, "records": []}],
            "citedBy": [{"field": "relation", "basis": "mentioned", "identifier": null, "records": [of_y]}],
            "next": "https://e.org/x/record/oai%3Ax%3A1.links.json?after=7-8",
            "sameAs": [same("doi"), same("description")],
            "hasMore": false,
            "incomplete": ["z"],
        });
        assert_eq!(related_json(&related, address, "https://e.org"), expected);
        let related = Related::Known(Box::new(related));
        assert_eq!((related.same_as("https://e.org"), related.is_empty()), (vec![url.to_owned()], false));
    }
}
