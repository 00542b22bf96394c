use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::{
    error::ClientError,
    handle::Handle,
    producer::Client,
    repeat::repeat,
    start::{Options, Target, outcome, prepare},
};
use crate::{
    codec::CodecError,
    ids::Partition,
    store::{StartItem, Store},
};

/// How many partitions are sent to at once.
const CONCURRENT: usize = 8;

/// An item and where its answer goes.
type Placed = (usize, StartItem);

/// What an item is started with, and how.
pub(crate) type Given = (Result<Bytes, CodecError>, Options);

pub(crate) async fn start<O>(
    client: &Client,
    target: &Target,
    items: impl IntoIterator<Item = Given>,
) -> Vec<Result<Handle<O>, ClientError>> {
    let items = items.into_iter();
    let graph = match client.graph(target).await {
        Ok(graph) => graph,
        Err(error) => return items.map(|_| Err(error.clone())).collect(),
    };
    let mut refused = Vec::new();
    let mut by_partition: BTreeMap<Partition, Vec<Placed>> = BTreeMap::new();
    let mut count = 0;
    for (index, (input, options)) in items.enumerate() {
        count = index + 1;
        match prepare(client, &graph, input, options) {
            Ok(item) => {
                let partition = item.id.partition(client.partitions());
                by_partition
                    .entry(partition)
                    .or_default()
                    .push((index, item));
            }
            Err(error) => refused.push((index, Err(error))),
        }
    }
    let sent: Vec<Vec<Answer<O>>> = stream::iter(by_partition)
        .map(|(partition, items)| send_all(client, partition, items))
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    let mut answers: Vec<Option<Result<Handle<O>, ClientError>>> =
        (0..count).map(|_| None).collect();
    for (index, answer) in sent.into_iter().flatten().chain(refused) {
        answers[index] = Some(answer);
    }
    answers.into_iter().flatten().collect()
}

type Answer<O> = (usize, Result<Handle<O>, ClientError>);

/// All items of one partition, in their order.
async fn send_all<O>(client: &Client, partition: Partition, items: Vec<Placed>) -> Vec<Answer<O>> {
    let mut answers = Vec::with_capacity(items.len());
    for chunk in chunks(items) {
        answers.extend(send(client, partition, chunk).await);
    }
    answers
}

fn chunks(items: Vec<Placed>) -> Vec<Vec<Placed>> {
    let mut chunks: Vec<Vec<Placed>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        let len = item.1.payload_len();
        match chunks.last_mut() {
            Some(last)
                if last.len() < StartItem::MAX_ITEMS && bytes + len <= StartItem::MAX_BYTES =>
            {
                bytes += len;
                last.push(item);
            }
            _ => {
                bytes = len;
                chunks.push(vec![item]);
            }
        }
    }
    chunks
}

async fn send<O>(client: &Client, partition: Partition, chunk: Vec<Placed>) -> Vec<Answer<O>> {
    let (indices, items): (Vec<usize>, Vec<StartItem>) = chunk.into_iter().unzip();
    let store: &dyn Store = client.store_ref();
    let replies = repeat(client.patience(), || store.start(partition, items.clone())).await;
    let names: Vec<_> = items.into_iter().map(|item| (item.id, item.run)).collect();
    match replies {
        Ok(replies) => indices
            .into_iter()
            .zip(names)
            .zip(replies)
            .map(|((index, (id, run)), reply)| (index, outcome(client, id, run, reply)))
            .collect(),
        Err(gave_up) => {
            let source = Arc::new(gave_up.error);
            let error = |id, run| {
                if gave_up.ambiguous {
                    ClientError::Unknown {
                        id,
                        run,
                        source: Arc::clone(&source),
                    }
                } else {
                    ClientError::Store(Arc::clone(&source))
                }
            };
            indices
                .into_iter()
                .zip(names)
                .map(|(index, (id, run))| (index, Err(error(id, run))))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::{DefinitionHash, InstanceId, QueueName, RunId, WorkflowName},
        store::{Begin, IdPolicy},
        workflow::OnExhausted,
    };

    fn item(len: usize) -> Placed {
        labelled(len, None)
    }

    fn labelled(len: usize, meta: Option<Bytes>) -> Placed {
        let item = StartItem {
            id: InstanceId::unique(),
            run: RunId::unique(),
            policy: IdPolicy::Fail,
            workflow: WorkflowName::new("flow").expect("a name"),
            definition: DefinitionHash::from_digest([0; 8]),
            queue: QueueName::default(),
            begin: Begin::Now,
            signals: Vec::new(),
            first: Vec::new(),
            input: Bytes::from(vec![0; len]),
            meta,
            max_crashes: 0,
            on_exhausted: OnExhausted::Fail,
            waiter: None,
        };
        (0, item)
    }

    #[test]
    fn calls_are_bounded_in_items_and_bytes() {
        let lens = |items: Vec<Placed>| chunks(items).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens((0..1100).map(|_| item(10)).collect()), [500, 500, 100]);
        assert_eq!(lens((0..5).map(|_| item(400 * 1024)).collect()), [2, 2, 1]);
        assert_eq!(lens(vec![item(10), item(2 << 20), item(10)]), [1, 1, 1]);
        assert!(lens(Vec::new()).is_empty());
        let labels = || Some(Bytes::from(vec![0; 200 * 1024]));
        let items = (0..5).map(|_| labelled(200 * 1024, labels())).collect();
        assert_eq!(lens(items), [2, 2, 1], "labels count too");
    }
}
