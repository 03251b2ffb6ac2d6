//! The works that the full texts of items name: guesses beside those that their records name.
//!
//! A full text is read long after its record. Then the keys of the record in the table are replaced, and its datestamp stays.

use crate::content_identifier::{ContentIdentifier, IdentifierKind};
use crate::follower::{Caught, Follower, failed, keys_of_all};
use crate::record_identifiers::ReadRecord;
use crate::resolver::{Resolver, Shared};
use crate::sources::ResolvedSources;
use oaimend_repository::Failure;
use oaimend_store::{
    FullText, IdentifiedCollection, Identifier, IdentifierChanges, MirrorError, Prefix, RepositoryId,
    StoredRecord,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Resolver {
    /// Stores what is known of the full texts of an item; `None` removes it. The works that it names are links of the item
    /// from then on.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, or nothing is stored. The call can be repeated.
    pub async fn put_full_text(
        &self,
        sources: &Arc<ResolvedSources>,
        (repository, identifier): (&str, &str),
        full_text: Option<FullText>,
    ) -> Result<(), Failure> {
        // The table does not follow the records of the item meanwhile.
        let _turn = self.0.turn.lock().await;
        let follower = &self.0.follower;
        let stored =
            follower.full_texts.find(repository, vec![identifier.to_owned()]).await.map_err(failed)?;
        let former = stored.into_iter().flatten().next();
        let (former, guessed) = (guessed(former.as_ref()), guessed(full_text.as_ref()));
        if former != guessed {
            // First, so that no reference is missing in the table if the program ends here. Keys without a reference in the
            // full text do no harm, because each found record is read.
            follower.replace_keys(sources, (repository, identifier), guessed).await?;
        }
        follower.full_texts.put(repository, identifier, full_text).await.map_err(failed)
    }
}

impl Shared {
    /// Records with what their full texts name, if that counts for their repository.
    pub(crate) async fn read_records(
        &self,
        caught: &Caught,
        repository: &str,
        records: Vec<StoredRecord>,
    ) -> Result<Vec<ReadRecord>, Failure> {
        if caught.sources.has_full_texts(repository) {
            return self.follower.with_guesses(repository, records).await;
        }
        Ok(records.into_iter().map(|record| ReadRecord { record, guessed: Vec::new() }).collect())
    }
}

impl Follower {
    /// Records with what their full texts name.
    pub(crate) async fn with_guesses(
        &self,
        repository: &str,
        records: Vec<StoredRecord>,
    ) -> Result<Vec<ReadRecord>, Failure> {
        let identifiers = records.iter().map(|record| record.identifier.clone()).collect();
        let texts = self.full_texts.find(repository, identifiers).await.map_err(failed)?;
        let read =
            |(record, text): (_, Option<FullText>)| ReadRecord { record, guessed: guessed(text.as_ref()) };
        Ok(records.into_iter().zip(texts).map(read).collect())
    }

    /// Replaces the keys of the records of an item that the table knows.
    async fn replace_keys(
        &self,
        sources: &Arc<ResolvedSources>,
        (repository, identifier): (&str, &str),
        guessed: Vec<ContentIdentifier>,
    ) -> Result<(), Failure> {
        let Some(source) = sources.iter().find(|source| source.id == repository) else { return Ok(()) };
        let known = self.table.collections().await.map_err(failed)?;
        let known: BTreeMap<u64, u64> = known.into_iter().map(|of| (of.number, of.next_sequence)).collect();
        for prefix in self.prefixes(source).await? {
            let (id, prefix) = (RepositoryId(repository), Prefix(&prefix));
            let Some(version) = self.mirror.version(id, prefix).await? else { continue };
            let number = version.collection;
            let Some(next_sequence) = known.get(&number).copied() else { continue };
            let record = match self.mirror.record(id, prefix, Identifier(identifier)).await {
                // Its repository is named as incomplete.
                Err(MirrorError::Damaged) => continue,
                record => record?,
            };
            // A version that the table does not know gets its keys when it follows the mirror.
            let Some(record) = record.filter(|record| record.sequence < next_sequence) else { continue };
            let records = keys_of_all(vec![ReadRecord { record, guessed: guessed.clone() }]).await?;
            let collection = IdentifiedCollection { number, next_sequence };
            self.table.follow(IdentifierChanges { collection, records }).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// The works that a full text names.
fn guessed(text: Option<&FullText>) -> Vec<ContentIdentifier> {
    let named = text.map(FullText::references).unwrap_or_default().iter();
    let identifier = |(kind, value): &(String, String)| {
        Some(ContentIdentifier { kind: IdentifierKind::from_name(kind)?, value: value.clone() })
    };
    named.filter_map(identifier).collect()
}
