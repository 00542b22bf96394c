//! Looks at an installation, with reads that cost the same however much there is.

use tenure::{
    Client, ClientError, Status,
    ids::Partition,
    store::{Counts, Place, Store, Summary, WorkerRecord},
    time::Timestamp,
};

use super::model::{Failure, Look, States, Worker};
use crate::commands::queues::{Names, read};

/// Over how many seconds the throughput is measured.
const WINDOW: i64 = 5;
/// How many ends are read at once; more in the window than so many are counted by halving.
const PIECE: usize = 100;
/// How many failures are shown.
const FAILURES: usize = 20;

/// Looks, and remembers what does not change.
pub(super) struct Looker {
    client: Client,
    /// How many instances had failed when the newest failures were read, and these.
    failures: Option<(usize, Vec<Failure>)>,
    names: Names,
}

impl Looker {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            failures: None,
            names: Names::default(),
        }
    }

    pub(super) async fn look(&mut self) -> Result<Look, ClientError> {
        let store = self.client.store();
        let at = self.client.now().await?;
        let since = Timestamp::from_millis(at.as_millis() - WINDOW * 1_000);
        let mut counts = Counts::default();
        let (mut completed, mut failed) = (0, 0);
        for partition in Partition::all(store.partitions()) {
            let here = store.counts(partition).await?;
            completed += ended_since(&*store, partition, Status::Completed, &here, since).await?;
            failed += ended_since(&*store, partition, Status::Failed, &here, since).await?;
            counts.add(here);
        }
        let workers = self.client.workers().await?;
        let queues = read(&self.client, &mut self.names, &workers, at).await?;
        Ok(Look {
            at,
            states: states(&counts),
            completed: completed as f64 / WINDOW as f64,
            failed: failed as f64 / WINDOW as f64,
            queues,
            workers: workers.iter().map(|w| worker(w, at)).collect(),
            failures: self.newest(&*store, &counts).await?,
        })
    }

    /// The newest failures: read again only when their number has changed.
    async fn newest(
        &mut self,
        store: &dyn Store,
        counts: &Counts,
    ) -> Result<Vec<Failure>, ClientError> {
        let failed = counts.finished.get(&Status::Failed).copied();
        let failed = failed.unwrap_or(0);
        if let Some((known, failures)) = &self.failures
            && *known == failed
        {
            return Ok(failures.clone());
        }
        let mut failures = Vec::new();
        for partition in Partition::all(store.partitions()) {
            let place = Place::Done(Status::Failed);
            let scan = store.scan(partition, &place, None, FAILURES).await?;
            let ids: Vec<_> = scan.found.into_iter().map(|found| found.id).collect();
            let found = store.summaries(partition, &ids).await?.found;
            // A void entry: it was retried since.
            let dead = found.iter().filter(|s| s.status == Status::Failed);
            failures.extend(dead.map(failure));
        }
        failures.sort_by_key(|failure: &Failure| std::cmp::Reverse(failure.at));
        failures.truncate(FAILURES);
        self.failures = Some((failed, failures.clone()));
        Ok(failures)
    }
}

/// How many instances ended so since a time. A difference of two counts would miss those that retention removes meanwhile.
pub(super) async fn ended_since(
    store: &dyn Store,
    partition: Partition,
    status: Status,
    counts: &Counts,
    since: Timestamp,
) -> Result<usize, ClientError> {
    let total = counts.finished.get(&status).copied().unwrap_or(0);
    let offset = total.saturating_sub(PIECE);
    let newest = store
        .finished(partition, status, offset, total - offset)
        .await?;
    let new = newest.iter().filter(|ended| ended.at >= since).count();
    if new < newest.len() || offset == 0 {
        return Ok(new);
    }
    // The first that is new is before the offset: they stand in the order in which they ended.
    let (mut low, mut high) = (0, offset);
    while low < high {
        let middle = low + (high - low) / 2;
        let ended = store.finished(partition, status, middle, 1).await?;
        match ended.first() {
            Some(ended) if ended.at < since => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(total - low)
}

fn states(counts: &Counts) -> States {
    let ended = |status: Status| counts.finished.get(&status).copied().unwrap_or(0);
    States {
        ready: counts.ready.values().sum(),
        running: counts.running,
        delayed: counts.delayed,
        waiting: counts.waiting,
        paused: counts.paused,
        completed: ended(Status::Completed),
        failed: ended(Status::Failed),
        cancelled: ended(Status::Cancelled),
        terminated: ended(Status::Terminated),
    }
}

fn worker(record: &WorkerRecord, now: Timestamp) -> Worker {
    let names = record.definitions.iter();
    Worker {
        id: record.id.to_string(),
        process: format!("{}:{}", record.host, record.pid),
        busy: record.busy,
        slots: record.slots,
        draining: record.draining,
        up: now.since(record.started_at),
        seen: now.since(record.seen_at),
        queues: record.queues.iter().map(ToString::to_string).collect(),
        workflows: names.map(|(name, hash)| format!("{name}:{hash}")).collect(),
    }
}

fn failure(summary: &Summary) -> Failure {
    let error = summary.error.as_ref();
    Failure {
        id: summary.id.to_string(),
        workflow: summary.workflow.to_string(),
        task: error.map(|e| e.task.to_string()).unwrap_or_default(),
        message: error.map(|e| e.message.clone()).unwrap_or_default(),
        at: summary.finished_at.unwrap_or_default(),
    }
}
