//! Profiles: the rules that a registry of repositories demands.
//!
//! The sources are the code of the official validator, the rules of BASE with those of its validator OVAL, the
//! OpenAIRE Guidelines for Literature Repositories 3.0, and Suleman and Fox, "Beyond Harvesting".

use super::findings::{Finding, Verdict};
use super::rules::Rule;
use oaimend_oai::named_enum;

named_enum! {
    /// A registry whose demands a report can be limited to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Profile {
        /// The registry of openarchives.org.
        Oai = "oai",
        /// BASE, the search engine of Bielefeld University Library.
        Base = "base",
        /// OpenAIRE, for literature repositories.
        Openaire = "openaire",
        /// ODL-Search, the search of Open Digital Libraries.
        Odl = "odl",
    }
}

named_enum! {
    /// How strongly a registry demands a rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Demand {
        /// A repository that breaks the rule is not accepted, or its records are not used.
        Required = "required",
        /// The registry advises to follow the rule.
        Recommended = "recommended",
    }
}

impl Profile {
    /// The registry, in a few words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Oai => "the registry of openarchives.org",
            Self::Base => "BASE",
            Self::Openaire => "OpenAIRE, guidelines 3.0 for literature repositories",
            Self::Odl => "ODL-Search 1.0, a component of Open Digital Libraries",
        }
    }

    /// How strongly the registry demands a rule; `None` if it does not.
    pub fn demand(self, rule: Rule) -> Option<Demand> {
        let (required, recommended) = match self {
            Self::Oai => (OAI_REQUIRED, OAI_RECOMMENDED),
            Self::Base => (BASE_REQUIRED, BASE_RECOMMENDED),
            Self::Openaire => (OPENAIRE_REQUIRED, OPENAIRE_RECOMMENDED),
            Self::Odl => (ODL_REQUIRED, ODL_RECOMMENDED),
        };
        if required.contains(&rule) {
            return Some(Demand::Required);
        }
        recommended.contains(&rule).then_some(Demand::Recommended)
    }

    /// The finding under this profile; `None` if the registry does not demand the rule.
    ///
    /// A required rule fails where it would only be advice. A recommended rule gives a warning where it would fail.
    pub(crate) fn adjust(self, mut finding: Finding) -> Option<Finding> {
        finding.verdict = match (self.demand(finding.rule)?, finding.verdict) {
            (Demand::Required, Verdict::Advice) => Verdict::Fails,
            (Demand::Recommended, Verdict::Fails) => Verdict::Warning,
            (_, verdict) => verdict,
        };
        Some(finding)
    }
}

const OAI_REQUIRED: &[Rule] = &[
    Rule::Answers,
    Rule::HttpStatus,
    Rule::PermanentRedirect,
    Rule::RetryAfter,
    Rule::PlainHttp,
    Rule::Post,
    Rule::WellFormed,
    Rule::RootElement,
    Rule::SchemaLocation,
    Rule::ResponseDate,
    Rule::Identify,
    Rule::AdminEmail,
    Rule::BaseUrl,
    Rule::ProtocolVersion,
    Rule::Granularity,
    Rule::EarliestDatestamp,
    Rule::OaiIdentifier,
    Rule::FormatsOfItem,
    Rule::Sets,
    Rule::LiveRecord,
    Rule::GetRecord,
    Rule::SameSets,
    Rule::SameDatestamp,
    Rule::DatestampForm,
    Rule::SelectiveHarvest,
    Rule::OneToken,
    Rule::EmptyToken,
    Rule::FirstCursor,
    Rule::TokenWorks,
    Rule::NoVerb,
    Rule::UnknownVerb,
    Rule::MissingArgument,
    Rule::QuoteInIdentifier,
    Rule::BadDate,
    Rule::MixedGranularity,
    Rule::EmptyWindow,
    Rule::BadToken,
    Rule::ExclusiveToken,
];
const OAI_RECOMMENDED: &[Rule] = &[Rule::OaiDc, Rule::ErrorText];

const BASE_REQUIRED: &[Rule] = &[
    Rule::Answers,
    Rule::HttpStatus,
    Rule::WellFormed,
    Rule::RootElement,
    Rule::Schema,
    Rule::Identify,
    Rule::BaseUrl,
    Rule::OaiDc,
    Rule::LiveRecord,
    Rule::GetRecord,
    Rule::DatestampForm,
    Rule::SelectiveHarvest,
    Rule::WithinWindow,
    Rule::DcPayload,
    Rule::DcTitle,
    Rule::DcIdentifier,
    Rule::TokenWorks,
];
const BASE_RECOMMENDED: &[Rule] = &[
    Rule::Post,
    Rule::AdminEmail,
    Rule::DeletedPolicy,
    Rule::DcSchema,
    Rule::DcLanguage,
    Rule::DcDate,
    Rule::PayloadSchema,
    Rule::DoubleEncoding,
    Rule::SampledHarvest,
    Rule::CompleteListSize,
    Rule::ExpirationDate,
    Rule::PageSize,
];

const OPENAIRE_REQUIRED: &[Rule] = &[
    Rule::Answers,
    Rule::HttpStatus,
    Rule::WellFormed,
    Rule::RootElement,
    Rule::Schema,
    Rule::Identify,
    Rule::AdminEmail,
    Rule::BaseUrl,
    Rule::ProtocolVersion,
    Rule::Granularity,
    Rule::EarliestDatestamp,
    Rule::DeletedRecord,
    Rule::OaiDc,
    Rule::Sets,
    Rule::SetOfRecords,
    Rule::LiveRecord,
    Rule::GetRecord,
    Rule::DatestampForm,
    Rule::SelectiveHarvest,
    Rule::DcPayload,
    Rule::DcSchema,
    Rule::DcDate,
    Rule::TokenWorks,
    Rule::OpenaireSet,
    Rule::OpenaireFields,
];
const OPENAIRE_RECOMMENDED: &[Rule] = &[
    Rule::DeletedPolicy,
    Rule::SampledHarvest,
    Rule::WithinWindow,
    Rule::DcIdentifier,
    Rule::DcLanguage,
    Rule::DoubleEncoding,
    Rule::ExpirationDate,
];

const ODL_REQUIRED: &[Rule] = &[
    Rule::Answers,
    Rule::HttpStatus,
    Rule::WellFormed,
    Rule::RootElement,
    Rule::ResponseDate,
    Rule::Identify,
    Rule::BaseUrl,
    Rule::LiveRecord,
    Rule::GetRecord,
    Rule::OdlDescription,
    Rule::OdlSearch,
    Rule::OdlHits,
    Rule::OdlRanges,
    Rule::OdlFormat,
    Rule::OdlSets,
];
const ODL_RECOMMENDED: &[Rule] = &[Rule::OaiDc];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn no_rule_is_both_required_and_recommended() {
        for (required, recommended) in [
            (OAI_REQUIRED, OAI_RECOMMENDED),
            (BASE_REQUIRED, BASE_RECOMMENDED),
            (OPENAIRE_REQUIRED, OPENAIRE_RECOMMENDED),
            (ODL_REQUIRED, ODL_RECOMMENDED),
        ] {
            for entry in RULES {
                let count = required.iter().chain(recommended).filter(|rule| **rule == entry.rule).count();
                assert!(count <= 1, "{}", entry.name);
            }
        }
    }

    #[test]
    fn a_profile_raises_advice_and_lowers_failures_of_recommended_rules() {
        let verdict = |profile: Profile, rule, verdict| {
            let finding =
                Finding { rule, verdict, request: String::new(), received: String::new(), responses: 1 };
            profile.adjust(finding).map(|finding| finding.verdict)
        };
        assert_eq!(verdict(Profile::Base, Rule::DcIdentifier, Verdict::Advice), Some(Verdict::Fails));
        assert_eq!(verdict(Profile::Openaire, Rule::DcIdentifier, Verdict::Advice), Some(Verdict::Advice));
        assert_eq!(verdict(Profile::Base, Rule::Post, Verdict::Fails), Some(Verdict::Warning));
        assert_eq!(verdict(Profile::Oai, Rule::Post, Verdict::Fails), Some(Verdict::Fails));
        assert_eq!(verdict(Profile::Oai, Rule::PlainHttp, Verdict::Warning), Some(Verdict::Warning));
        assert_eq!(verdict(Profile::Oai, Rule::PageSize, Verdict::Fails), None);
    }
}
