//! Finds the page of the admin listener that a request target names. Pure: no I/O.

use super::record::{PLAN_CHART_PATH, STATUS_PATH};
use super::route::{OverviewTarget, PageTarget};

/// A page for operators, as a request names it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorTarget {
    /// The overview of all repositories.
    Overview(OverviewTarget),
    /// The state of the server.
    Status,
    /// The plot of the plan of all harvests.
    PlanChart,
    /// A repository with this id.
    Repository(String),
    /// The style sheet at this path.
    StyleSheet(String),
    /// The quarantined records of the repository with this id.
    Quarantine(String),
    /// A quarantined record.
    QuarantinedRecord {
        /// The repository id.
        repository: String,
        /// Its key.
        key: String,
    },
}

impl OperatorTarget {
    /// Reads a request target: a path with its query. `None` if it names no page for operators.
    pub fn read(target: &str) -> Option<Self> {
        let (path, _) = target.split_once('?').unwrap_or((target, ""));
        match PageTarget::read(target.as_bytes()) {
            Some(PageTarget::Overview(target)) => return Some(Self::Overview(target)),
            Some(PageTarget::Repository(id)) => return Some(Self::Repository(id)),
            Some(PageTarget::StyleSheet(path)) => return Some(Self::StyleSheet(path)),
            // This listener has no sitemaps.
            Some(PageTarget::Sitemap(_)) => {
                return path.strip_prefix('/').map(|id| Self::Repository(id.to_owned()));
            }
            _ => {}
        }
        match path {
            STATUS_PATH => return Some(Self::Status),
            PLAN_CHART_PATH => return Some(Self::PlanChart),
            _ => {}
        }
        let (repository, rest) = path.strip_prefix('/')?.split_once('/')?;
        let rest = rest.strip_prefix("quarantine").filter(|_| !repository.is_empty() && repository != "-")?;
        let repository = repository.to_owned();
        match rest.strip_prefix('/') {
            None if rest.is_empty() => Some(Self::Quarantine(repository)),
            Some("") => Some(Self::Quarantine(repository)),
            Some(key) if !key.contains('/') => {
                Some(Self::QuarantinedRecord { repository, key: key.to_owned() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OperatorTarget::{self, Quarantine, QuarantinedRecord, Repository};

    #[test]
    fn targets_name_pages() {
        let x = || "x".to_owned();
        for (target, expected) in [
            ("/x/", Some(Repository(x()))),
            ("/sitemap.xml", Some(Repository("sitemap.xml".to_owned()))),
            ("/-/status?a", Some(OperatorTarget::Status)),
            ("/-/plan.svg", Some(OperatorTarget::PlanChart)),
            ("/-/mirror", None),
            ("/x/quarantine/", Some(Quarantine(x()))),
            ("/x/quarantine?a=b", Some(Quarantine(x()))),
            ("/x/quarantine/00", Some(QuarantinedRecord { repository: x(), key: "00".to_owned() })),
            ("/x/quarantine/00/1", None),
            ("/x/quarantined", None),
            ("/-/quarantine/", None),
            ("//quarantine/", None),
            ("/x/record/1", None),
            ("/-/repositories/x/quarantine/00", None),
        ] {
            assert_eq!(OperatorTarget::read(target), expected, "{target}");
        }
    }
}
