//! What must be so at the end of every test: the ledger and the store compared.

use std::collections::{HashMap, HashSet};

use tenure::{
    Handle,
    ids::{Partition, TaskName, ValueField},
    store::{Inspect, Snapshot, Status, Store, TaskState},
};

use crate::{
    job::Job,
    ledger::{Line, Phase},
    wait,
    world::World,
};

impl World {
    /// As [`World::all_completed`], of one instance.
    pub(crate) async fn completed(&self, handle: &Handle<Job>) {
        self.all_completed(std::slice::from_ref(handle)).await;
    }

    /// Waits until all instances are completed, then checks what is stored of them, and that nothing is left behind.
    pub(crate) async fn all_completed(&self, handles: &[Handle<Job>]) {
        self.all_over(handles).await;
        let executions = self.executions_by_token();
        for handle in handles {
            self.committed_once(handle, &executions).await;
        }
        self.nothing_left().await;
        self.indexed_once(handles).await;
    }

    /// Waits until all instances are completed, whatever else there is.
    pub(crate) async fn all_over(&self, handles: &[Handle<Job>]) {
        for handle in handles {
            let status = self.over(handle).await;
            assert_eq!(
                status,
                Status::Completed,
                "{} ended otherwise: {:?}",
                handle.id(),
                self.errors(handle.id()).await
            );
        }
    }

    /// The executions that came to their end, by token.
    fn executions_by_token(&self) -> HashMap<u64, Line> {
        let ends = self
            .ledger
            .lines()
            .into_iter()
            .filter(|line| line.phase == Phase::End);
        ends.map(|line| (line.token, line)).collect()
    }

    /// Each task of a completed instance has one result, made by the attempt that holds the record, and what came after
    /// it saw that very result.
    async fn committed_once(&self, handle: &Handle<Job>, executions: &HashMap<u64, Line>) {
        let snapshot = self.snapshot(handle).await;
        assert_eq!(
            snapshot.open,
            0,
            "{} is completed with open tokens",
            handle.id()
        );
        let result: Job = handle
            .result()
            .await
            .expect("the result of a completed instance");
        let mut seen = HashSet::new();
        for mark in &result.trail {
            assert!(
                seen.insert(&mark.task),
                "two results of {} in {}",
                mark.task,
                handle.id()
            );
            let line = executions.get(&mark.token);
            let line = line.unwrap_or_else(|| {
                panic!(
                    "{} holds a result that no handler gave: {mark:?}",
                    handle.id()
                )
            });
            assert_eq!(
                (&line.instance[..], &line.task, line.attempt, line.pid),
                (handle.id().as_str(), &mark.task, mark.attempt, mark.pid)
            );
        }
        for (task, output) in self.outputs(handle, &snapshot).await {
            let record = &snapshot.tasks[&task];
            let last = output.trail.last().expect("every handler leaves its mark");
            assert_eq!(
                (task.as_str(), record.attempt),
                (&last.task[..], last.attempt),
                "the result is not of the attempt that holds the record"
            );
            assert!(
                result.trail.contains(last),
                "what {task} gave is not what its successor took"
            );
        }
        for (task, record) in &snapshot.tasks {
            assert_eq!(
                record.state,
                TaskState::Completed,
                "{task} of {}",
                handle.id()
            );
        }
    }

    async fn outputs(&self, handle: &Handle<Job>, snapshot: &Snapshot) -> Vec<(TaskName, Job)> {
        let tasks: Vec<TaskName> = snapshot
            .values
            .keys()
            .filter_map(|field| match field {
                ValueField::Output(task) => Some(task.clone()),
                ValueField::Input | ValueField::Progress(_) | ValueField::Shared(_) => None,
            })
            .collect();
        let fields: Vec<ValueField> = tasks.iter().cloned().map(ValueField::Output).collect();
        let values = self.store.values(handle.id(), handle.run(), &fields).await;
        let decode = |bytes: Option<bytes::Bytes>| {
            rmp_serde::from_slice(&bytes.expect("a result")).expect("a job")
        };
        let jobs = values.expect("the results").into_iter().map(decode);
        tasks.into_iter().zip(jobs).collect()
    }

    /// No claims, no entries, no timers, nothing set aside. Workers may still have to drop entries of what was cancelled.
    pub(crate) async fn nothing_left(&self) {
        for partition in Partition::all(self.store.partitions()) {
            wait::until("no entry is left behind", async || {
                let counts = self.store.counts(partition).await.expect("the counts");
                assert_eq!(counts.aside, 0, "entries were set aside");
                counts.ready.is_empty() && counts.delayed == 0 && counts.running == 0
            })
            .await;
        }
        wait::until("no claim key is left behind", async || {
            self.claim_keys().is_empty()
        })
        .await;
    }

    /// Each instance stands in exactly one terminal index, once: that of its status.
    pub(crate) async fn indexed_once(&self, handles: &[Handle<Job>]) {
        let mut places: HashMap<String, Vec<Status>> = HashMap::new();
        for partition in Partition::all(self.store.partitions()) {
            for status in Status::ALL
                .into_iter()
                .filter(|status| status.is_terminal())
            {
                let finished = self
                    .store
                    .finished(partition, status, 0, usize::MAX >> 1)
                    .await
                    .expect("the index");
                for entry in finished {
                    places.entry(entry.id.to_string()).or_default().push(status);
                }
            }
        }
        for handle in handles {
            let status = handle.status().await.expect("the status");
            let found = places.remove(handle.id().as_str()).unwrap_or_default();
            assert_eq!(
                found,
                [status],
                "the terminal indexes that {} stands in",
                handle.id()
            );
        }
    }

    /// No handler ran a second time for any task.
    pub(crate) fn nothing_ran_twice(&self) {
        let mut begun: HashMap<(String, String), u32> = HashMap::new();
        for line in self
            .ledger
            .lines()
            .into_iter()
            .filter(|line| line.phase == Phase::Begin)
        {
            *begun.entry((line.instance, line.task)).or_default() += 1;
        }
        begun.retain(|_, times| *times > 1);
        assert!(begun.is_empty(), "these ran more than once: {begun:?}");
    }
}
