//! The crosswalks that an operator turns on.

use crate::builtin::links::{LINKS_PREFIX, LinksSource};
use crate::sheets::SheetCrosswalk;
use crate::table::{Crosswalk, find_built_in};
use oaimend_xslt::XsltWorker;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an operator chooses for a metadataPrefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrosswalkChoice {
    /// The crosswalk of the table.
    BuiltIn,
    /// None, although the defaults have one.
    Off,
    /// A sheet of the operator.
    Sheet(Arc<SheetCrosswalk>),
}

/// The choices of an operator, by metadataPrefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrosswalkChoices(pub BTreeMap<String, CrosswalkChoice>);

impl CrosswalkChoices {
    /// These choices, and those of `defaults` for other prefixes.
    #[must_use]
    pub fn over(&self, defaults: &Self) -> Self {
        let mut choices = defaults.0.clone();
        choices.extend(self.0.clone());
        Self(choices)
    }

    /// The crosswalks that are turned on. `public_url` is the URL of this server, which serves some of their schemas, and
    /// `worker` runs sheets. `links` are those of a mirrored repository; without them there is no `oaimend_links`.
    pub fn crosswalks(
        &self,
        public_url: &str,
        worker: &XsltWorker,
        links: Option<&LinksSource>,
    ) -> Vec<Crosswalk> {
        let crosswalk = |(prefix, choice): (&String, &CrosswalkChoice)| match choice {
            CrosswalkChoice::BuiltIn if prefix == LINKS_PREFIX => Some(links?.crosswalk(public_url)),
            CrosswalkChoice::BuiltIn => Some(Crosswalk::built_in(find_built_in(prefix)?, public_url)),
            CrosswalkChoice::Sheet(sheet) => Some(sheet.crosswalk(prefix, worker)),
            CrosswalkChoice::Off => None,
        };
        self.0.iter().filter_map(crosswalk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_xslt::{WorkerProgram, XsltLimits};

    #[test]
    fn a_repository_can_turn_a_default_off() {
        use CrosswalkChoice::{BuiltIn, Off};
        let worker = XsltWorker::new(WorkerProgram::this_program("none"), XsltLimits::default());
        let choices = |pairs: &[(&str, CrosswalkChoice)]| {
            CrosswalkChoices(
                pairs.iter().map(|(prefix, choice)| ((*prefix).to_owned(), choice.clone())).collect(),
            )
        };
        let defaults = choices(&[("oai_dc", BuiltIn), ("mods", BuiltIn)]);
        let of_repository = choices(&[("mods", Off), ("didl", BuiltIn)]);
        let crosswalks = of_repository.over(&defaults).crosswalks("http://x", &worker, None);
        let prefixes: Vec<&str> = crosswalks.iter().map(|crosswalk| crosswalk.prefix.as_str()).collect();
        assert_eq!(prefixes, ["didl", "oai_dc"]);
        assert_eq!(CrosswalkChoices::default().over(&defaults), defaults);
    }
}
