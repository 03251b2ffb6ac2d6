//! The last pass over a valid item: its datestamps follow the facts known of the repository.
//!
//! The clean path compares each item with [`GranularityCheck`].
//! [`repair_item`](crate::repair_item::repair_item) runs the pass itself.
//!
//! The item is already valid. It stays unchanged if no facts are known or the repair is off.

use std::ops::Range;

use crate::catalog::RepairId;
use crate::config::{RepairConfig, RepositoryFacts};
use crate::lex::outline::outline;
use crate::passes::rules::Rules;
use crate::span::Span;
use crate::text::edits::Edits;
use crate::text::escape::resolve;
use crate::validate::facts::ItemFacts;
use crate::validate::schema::Element;
use oaimend_oai::datestamp;
use oaimend_oai::datestamp::Granularity;

/// The check of each clean item.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GranularityCheck {
    /// The expected length of a datestamp in bytes; 0 accepts any length.
    len_bytes: u32,
    /// Whether a sentinel datestamp can be replaced. A sentinel means "never".
    sentinels: bool,
}

impl GranularityCheck {
    pub(crate) fn new(config: &RepairConfig) -> Self {
        let is_on = |id| !config.off.contains(id);
        let granularity =
            if is_on(RepairId::DatestampGranularity) { config.repository.granularity } else { None };
        Self {
            len_bytes: granularity.map_or(0, |granularity| granularity.len_bytes() as u32),
            sentinels: is_on(RepairId::DatestampLowerBound) && lower_bound(&config.repository).is_some(),
        }
    }

    /// Returns whether an item can stay unchanged.
    #[inline]
    pub(crate) fn is_met_by(self, item: &[u8], facts: &ItemFacts) -> bool {
        let Span { start, end } = facts.datestamp;
        let is_of_length = self.len_bytes == 0 || end - start == self.len_bytes || end == start;
        is_of_length && !(self.sentinels && datestamp::is_sentinel(facts.datestamp.slice(item)))
    }
}

/// Returns the datestamp that replaces an unreadable datestamp; `None` if no lower bound is known.
pub(crate) fn lower_bound(repository: &RepositoryFacts) -> Option<String> {
    let lowest = repository.lowest_datestamp.as_deref()?;
    let is_bound = datestamp::is_legal(lowest.as_bytes()) && !datestamp::is_sentinel(lowest.as_bytes());
    is_bound.then(|| match repository.granularity {
        Some(granularity) => granularity.fitted(lowest),
        None => lowest.to_owned(),
    })
}

/// Returns the edits that a valid item still needs.
pub(crate) fn repair_granularity(
    item: &[u8],
    facts: &ItemFacts,
    element: &Element,
    rules: &Rules<'_>,
) -> Edits {
    let mut edits = Edits::default();
    if element.name == b"Identify" {
        repair_identify_dates(item, rules, &mut edits);
    } else {
        repair_datestamp(item, facts, rules, &mut edits);
    }
    edits
}

/// Repairs the datestamp of a record or header.
///
/// It replaces a sentinel (failure class E7) and adjusts the granularity to the announced one (E5).
fn repair_datestamp(item: &[u8], facts: &ItemFacts, rules: &Rules<'_>, edits: &mut Edits) -> Option<()> {
    if rules.repository.granularity.is_none() && rules.repository.lowest_datestamp.is_none() {
        return None;
    }
    let Range { start, end } = facts.datestamp.range();
    let raw = item.get(start..end).filter(|raw| !raw.is_empty())?;
    let resolved = String::from_utf8(resolve(raw)).ok()?;
    let is_on = |id| !rules.off.contains(id);
    if datestamp::is_sentinel(resolved.as_bytes())
        && is_on(RepairId::DatestampLowerBound)
        && let Some(bound) = lower_bound(rules.repository)
    {
        edits.push(RepairId::DatestampLowerBound, start, end, bound.as_bytes());
        return Some(());
    }
    if !is_on(RepairId::DatestampGranularity) {
        return None;
    }
    let granularity = rules.repository.granularity?;
    let fitted = granularity.fitted(&resolved);
    let (id, day) = (RepairId::DatestampGranularity, Granularity::Day.len_bytes());
    if fitted == resolved {
        return None;
    }
    if raw.len() != resolved.len() {
        edits.push(id, start, end, fitted.as_bytes());
    } else if fitted.len() == day {
        edits.push(id, start + day, end, b"");
    } else {
        edits.push(id, end, end, fitted.get(day..)?.as_bytes());
    }
    Some(())
}

/// Repairs the granularity and the earliestDatestamp in Identify.
///
/// The granularity becomes the announced one. The earliestDatestamp gets this granularity and is not after
/// the oldest datestamp seen (F14).
fn repair_identify_dates(item: &[u8], rules: &Rules<'_>, edits: &mut Edits) -> Option<()> {
    let RepositoryFacts { granularity, oldest_seen, .. } = rules.repository;
    let is_on = |id: &RepairId| !rules.off.contains(*id);
    let is_fitted = is_on(&RepairId::DatestampGranularity);
    let announced = if is_fitted { *granularity } else { None };
    let seen = oldest_seen
        .as_deref()
        .filter(|seen| is_on(&RepairId::EarliestDatestamp) && datestamp::is_legal(seen.as_bytes()));
    if !is_fitted && seen.is_none() {
        return None;
    }
    let root = *outline(item, 0, item.len())?.children.first()?;
    let children = outline(item, root.content.0, root.content.1)?.children;
    let content = |name: &[u8]| {
        let child = children.iter().find(|child| child.local == name)?;
        let text = String::from_utf8(resolve(item.get(child.content.0..child.content.1)?)).ok()?;
        Some((child.content, text))
    };
    let (earliest_at, earliest) = content(b"earliestDatestamp")?;
    let (granularity_at, stated) = content(b"granularity")?;
    let granularity = announced.or(Granularity::from_name(&stated))?;
    let fitted = if is_fitted && datestamp::is_legal(earliest.as_bytes()) {
        granularity.fitted(&earliest)
    } else {
        earliest.clone()
    };
    let oldest = seen.map(|seen| granularity.fitted(seen)).filter(|oldest| *oldest < fitted);
    let (id, now) = match oldest {
        Some(oldest) => (RepairId::EarliestDatestamp, oldest),
        None => (RepairId::DatestampGranularity, fitted),
    };
    if now != earliest {
        edits.push(id, earliest_at.0, earliest_at.1, now.as_bytes());
    }
    if granularity.name() != stated {
        edits.push(
            RepairId::DatestampGranularity,
            granularity_at.0,
            granularity_at.1,
            granularity.name().as_bytes(),
        );
    }
    Some(())
}
