//! Asks the source whether the records in a closed section are records of the list.
//!
//! `<![CDATA[ .. </record> <record> .. <![CDATA[ .. ]]>` is content, or the first section lost its end mark.
//! The engine reads it as content. Before the record leaves, the repair `torn-section` is tried on that
//! record alone. Its result is used if `GetRecord` returns each further record with the same bytes. So a
//! depositor cannot forge a record: whatever is delivered, the source returns for that identifier.

use crate::oai::{Request, Verb};
use crate::repair::{Ending, Outcome, RepairConfig, RepairId, Repairer};
use crate::upstream::adapt::subrequest::{Item, SubResponse, inquire};
use crate::upstream::page::buffer::{PageBuffer, PageItem};
use crate::upstream::page::resume::Resumer;
use crate::upstream::session::list_session::{ListSession, resolved};
use crate::upstream::xml::envelope_tags::parse_envelope_tags;

/// Records in sections that the source is asked for, for one request of a harvester.
const QUESTIONS_MAX: usize = 10;

/// The decisions for one request of a harvester.
#[derive(Debug, Default)]
pub(crate) struct TornSections {
    /// By the bytes of the record around the section: whether the section lost its end mark.
    decisions: Vec<(u64, bool)>,
    questions: usize,
}

impl ListSession<'_> {
    /// Splits each record with a section that lost its end mark, if the source confirms the records in it.
    pub(crate) async fn tear(&mut self, pieces: &mut PageBuffer, splice: &Resumer) {
        let swallowing = std::mem::take(&mut pieces.swallowing);
        if swallowing.is_empty() || !self.may_tear() {
            return;
        }
        let Some(prefix) = self.metadata_prefix() else { return };
        let head = splice.head_with(pieces);
        let mut added = 0;
        for (index, offset) in swallowing {
            let index = index + added;
            let Some(item) = pieces.item(index).map(|item| item.into_owned().into_bytes()) else { continue };
            let Some(torn) = self.torn_reading(&head, &item) else { continue };
            if pieces.found.get(index).map(PageItem::hash) != torn.items.first().map(|item| item.hash) {
                continue;
            }
            let key = pieces.hash.of(&item, b"");
            let known =
                self.torn.decisions.iter().find(|(known, _)| *known == key).map(|(_, is_torn)| *is_torn);
            let is_torn = match known {
                Some(is_torn) => is_torn,
                None => self.confirms(key, &torn, &prefix).await,
            };
            if is_torn {
                added += torn.items.len() - 1;
                pieces.take_torn(index, offset, head.len(), torn.pieces);
            }
        }
    }

    /// Whether the source may be asked. The description of a record's origin is a part of it here, and is
    /// not the same in two responses.
    fn may_tear(&self) -> bool {
        let mapping = &self.job.mapping;
        mapping.quirks.refetch_broken_records
            && mapping.provenance.is_none()
            && !mapping.off.contains(RepairId::TornSection)
            && !self.dialect.is_one()
            && self.job.request.verb() == Verb::ListRecords
    }

    /// The records that an item contains if its sections lost their end marks. `None` if these are not
    /// several whole ones.
    fn torn_reading(&self, head: &[u8], item: &[u8]) -> Option<SubResponse> {
        let mapping = &self.job.mapping;
        let config = RepairConfig {
            limits: mapping.limits.repair.clone(),
            off: mapping.off,
            enabled: [RepairId::TornSection].into_iter().collect(),
            repository: self.repository.clone(),
            ending: Ending::Abort,
            ..RepairConfig::default()
        };
        let mut torn = SubResponse::new(self.job);
        let mut repairer = Repairer::new(&config);
        for part in [head, item, &parse_envelope_tags(head)?.close_with(None)] {
            repairer.push(part, &mut torn);
        }
        let summary = repairer.finish(&mut torn);
        let is_whole = summary.outcome == Outcome::Repaired && summary.lost + summary.quarantined == 0;
        let is_list = torn.pieces.token.is_none() && !torn.is_too_long && torn.items.len() > 1;
        (is_whole && is_list).then_some(torn)
    }

    /// Whether the source returns each record after the first one as it is there. Remembers the decision.
    async fn confirms(&mut self, key: u64, torn: &SubResponse, prefix: &str) -> bool {
        let further = torn.items.get(1..).unwrap_or_default();
        if self.torn.questions + further.len() > QUESTIONS_MAX {
            return false;
        }
        let mut is_torn = true;
        for item in further {
            self.torn.questions += 1;
            is_torn = self.is_at_source(item, prefix).await;
            if !is_torn {
                break;
            }
        }
        self.torn.decisions.push((key, is_torn));
        is_torn
    }

    async fn is_at_source(&mut self, item: &Item, prefix: &str) -> bool {
        let (job, now) = (self.job, self.budget.now());
        let Some(mut budget) = self.budget_of_a_question() else { return false };
        let identifier = resolved(&item.identifier);
        let request = Request::get_record(&identifier, prefix);
        let told = Box::pin(inquire(job, &request, self.manner(), usize::MAX, true, &mut budget)).await;
        self.budget.spend(&budget);
        match told {
            Ok(told) => {
                let is_two = told.version == Some("2.0");
                is_two
                    && told
                        .record(&identifier)
                        .is_some_and(|found| lines(&found.bytes).eq(lines(&item.bytes)))
            }
            Err(unanswered) => {
                if !unanswered.says_nothing() {
                    job.client.recalls.note(now, false);
                }
                false
            }
        }
    }
}

impl PageBuffer {
    /// Replaces the item of that index, which began at `offset`, with the records that it contains. They
    /// were read after a head of `head_len` bytes.
    fn take_torn(&mut self, index: usize, offset: u64, head_len: usize, mut torn: Self) {
        let found = std::mem::take(&mut torn.found);
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return };
        let start = first.start().unwrap_or_default();
        let end = last.start().unwrap_or_default() + last.len();
        let bytes = torn.made.slice(start..end).into_owned();
        let mut items = Vec::new();
        for (count, item) in found.into_iter().enumerate() {
            let PageItem::Item { start: at, len, hash, mut repairs } = item else { return };
            for made in repairs.iter_mut().filter_map(|(_, made)| made.as_mut()) {
                made.offset = (made.offset + offset).saturating_sub(head_len as u64);
            }
            if count == 0
                && let Some(PageItem::Item { repairs: before, .. }) = self.found.get_mut(index)
            {
                repairs.splice(..0, before.drain(..));
            }
            items.push(PageItem::Item { start: at - start, len, hash, repairs });
        }
        let is_last = self.found.iter().skip(index + 1).all(|item| item.start().is_none());
        if is_last {
            self.last_datestamp = torn.last_datestamp;
        }
        if !torn.oldest.is_empty() && (self.oldest.is_empty() || torn.oldest < self.oldest) {
            self.oldest = torn.oldest;
        }
        for (name, seen) in torn.sets {
            let entry = self.sets.entry(name).or_default();
            *entry = entry.and(seen);
        }
        self.split(index, &bytes, items);
    }
}

/// The lines of a record without their indentation, and without empty ones.
fn lines(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    record.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}
