//! Writes a dump: the list of the repository, then what has changed meanwhile, until nothing has.

use super::refusal::Refusal;
use super::source::{DumpSource, store_state};
use super::state::Build;
use crate::serve::clients::client_class::ClientNetwork;
use crate::serve::served::ServedRepositories;
use oaimend_dumps::{
    DumpError, DumpFolder, DumpList, DumpWriter, Gap, GapCause, KeptDump, ListReader, ListRounds, Manifest,
    NextRound, Place, Position, Selection, StoreState, WrittenDump,
};
use oaimend_oai::UnixSecs;
use oaimend_repository::DeliveredRecord;
use oaimend_store::MirrorError;
use oaimend_tape::TapeGap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pages that wait for the disk.
const PAGES_WAITING: usize = 2;
/// The time between two lists of a dump: the length of a stamp.
const PAUSE: Duration = Duration::from_secs(1);

/// A dump that is requested.
pub(super) struct RequestedDump<'s> {
    pub(super) source: DumpSource,
    pub(super) selection: &'s Selection,
    /// Who requests it; `None` for an operator and for this machine.
    pub(super) client: Option<ClientNetwork>,
}

/// A dump of the current position of a selection, after a wait of at most this time.
pub(super) async fn current_dump(
    served: &Arc<ServedRepositories>,
    RequestedDump { source, selection, client }: RequestedDump<'_>,
    state: &StoreState,
    wait: Duration,
) -> Result<KeptDump, Refusal> {
    let collection = source.collection(served, &selection.prefix).await?;
    if let Some(since) = selection.since() {
        since.check(state, collection)?;
    }
    if let Some(kept) = find(served, selection, None).await?
        && let Ok(position) = kept.manifest.position.parse::<Position>()
        && position.check(state, collection).is_ok()
        && kept.manifest.has_mirror_gaps(&source.gaps(served, &selection.prefix).await?)
        && !has_changed(served, &source, selection, position).await?
    {
        return Ok(kept);
    }
    let start = |build: Arc<Build>| {
        let task = Task { served: Arc::clone(served), source, selection: selection.clone(), build };
        tokio::spawn(async move {
            // A panic fails this dump alone.
            let build = Arc::clone(&task.build);
            let result = tokio::spawn(async move { task.run().await }).await;
            build.end(result.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string()).into())));
        });
    };
    let build = served.dumps.build(&selection.key(), client, start)?;
    build.wait(wait).await?;
    find(served, selection, None).await?.ok_or(Refusal::NotKept)
}

/// The last dump of a selection, or that of this position.
pub(super) async fn find(
    served: &ServedRepositories,
    selection: &Selection,
    position: Option<Position>,
) -> Result<Option<KeptDump>, DumpError> {
    let (folder, selection) = (Arc::clone(&served.dumps.folder), selection.clone());
    blocking(move || folder.find(&selection, position.as_ref())).await
}

/// Whether the repository has changed after a position, also in records that a set or a query does not contain any more.
async fn has_changed(
    served: &Arc<ServedRepositories>,
    source: &DumpSource,
    selection: &Selection,
    position: Position,
) -> Result<bool, DumpError> {
    let repository = source.open(served).await?;
    let from_secs = Some(position.next_secs());
    let list = DumpList { prefix: selection.prefix.clone(), set: None, from_secs };
    let mut reader = ListReader::new(repository, list);
    while let Some(records) = reader.next_page().await? {
        if !records.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DumpError> + Send + 'static,
) -> Result<T, DumpError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string()).into()))
}

/// The task that writes a dump.
struct Task {
    served: Arc<ServedRepositories>,
    source: DumpSource,
    selection: Selection,
    build: Arc<Build>,
}

impl Task {
    async fn run(self) -> Result<(), DumpError> {
        let mut rounds = ListRounds::new(self.selection.list_set().is_some());
        while !self.write(&mut rounds).await? {
            self.served.clock.pause(PAUSE).await;
        }
        Ok(())
    }

    /// Writes the dump. Returns `false` if it must begin again.
    async fn write(&self, rounds: &mut ListRounds) -> Result<bool, DumpError> {
        let Self { served, source, selection, build } = self;
        build.records.store(0, Ordering::Relaxed);
        build.left_out.store(0, Ordering::Relaxed);
        let (epoch, store) = self.store_epoch().await?;
        let collection = source.collection(served, &selection.prefix).await?;
        let mut gaps = source.gaps(served, &selection.prefix).await?;
        let description = source.describe(served, &selection.prefix, &gaps).await?;
        let (sender, mut pages) = mpsc::channel::<Vec<DeliveredRecord>>(PAGES_WAITING);
        let (folder, form, prefix) =
            (Arc::clone(&served.dumps.folder), selection.form(), selection.prefix.clone());
        let (key, reserve_bytes) = (source.record_key(served), served.mirror.policy().dump_reserve_bytes);
        let (writing_build, name) = (Arc::clone(build), selection.repository.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let part = folder.new_part(reserve_bytes)?;
            let start = (&*prefix, description);
            let mut writer = DumpWriter::begin(part, form, start, key, DumpFolder::DUMP_BYTES_MAX)?;
            while let Some(records) = pages.blocking_recv() {
                for record in &records {
                    writer.add(record)?;
                }
            }
            let left_out = writing_build.left_out.load(Ordering::Relaxed);
            if left_out > 0 {
                writer.add_gap(TapeGap { source: name, records: left_out });
            }
            writer.finish()
        });
        let read = self.read(&sender, rounds).await;
        drop(sender);
        let written: Result<WrittenDump, DumpError> =
            writing.await.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string()).into()));
        // The reader ends early if the writer fails.
        let written = written?;
        let Some(secs) = read? else { return Ok(false) };
        let is_same = match collection {
            Some(_) => source.collection(served, &selection.prefix).await? == collection,
            None => self.store_epoch().await?.0 == epoch,
        };
        if !is_same {
            return Err(DumpError::Forgotten);
        }
        let left_out = build.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            let (repository, cause) = (selection.repository.clone(), GapCause::Crosswalk);
            gaps.push(Gap { repository, records: Some(left_out), cause });
        }
        let place = collection.map_or(Place::End, Place::EndOf);
        let manifest = Manifest {
            selection: selection.clone(),
            position: Position { store, epoch, secs, place }.to_string(),
            records: written.records,
            deleted: written.deleted,
            bytes: written.bytes,
            sha256: written.sha256.clone(),
            gaps,
        };
        let folder = Arc::clone(&served.dumps.folder);
        blocking(move || folder.keep(&written, manifest)).await.map(|_| true)
    }

    async fn store_epoch(&self) -> Result<(u64, u64), DumpError> {
        let state = store_state(&self.served).await?;
        Ok((state.epoch, state.store))
    }

    /// Reads the records, and returns the second of the position; `None` if the dump must begin again.
    async fn read(
        &self,
        sender: &mpsc::Sender<Vec<DeliveredRecord>>,
        rounds: &mut ListRounds,
    ) -> Result<Option<UnixSecs>, DumpError> {
        let Self { served, source, selection, build } = self;
        let mut list = DumpList {
            prefix: selection.prefix.clone(),
            set: selection.list_set(),
            from_secs: selection.since().map(|since| since.next_secs()),
        };
        loop {
            let before = source.change_mark(served, &selection.prefix).await?;
            let mut reader = ListReader::new(source.open(served).await?, list.clone());
            while let Some(records) = reader.next_page().await? {
                build.records.fetch_add(records.len() as u64, Ordering::Relaxed);
                if sender.send(records).await.is_err() {
                    // The writer says why it has ended.
                    return Ok(Some(reader.date_secs()));
                }
            }
            build.left_out.fetch_add(reader.left_out(), Ordering::Relaxed);
            let date_secs = reader.date_secs();
            // A record that has changed while the list was read is after the place at which it was.
            let is_settled = source.change_mark(served, &selection.prefix).await? == before;
            // Otherwise the next request would find the changes of the last second again.
            let latest_secs = source.latest_stamp(served, &selection.prefix).await?;
            let is_closed = latest_secs.is_none_or(|latest_secs| latest_secs <= date_secs);
            match rounds.after_list(is_settled && is_closed)? {
                NextRound::Nothing => return Ok(Some(date_secs)),
                NextRound::Restart => return Ok(None),
                NextRound::Changes => {}
            }
            served.clock.pause(PAUSE).await;
            list.from_secs = Some(date_secs.plus(1));
        }
    }
}
