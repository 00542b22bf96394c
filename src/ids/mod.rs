//! Names and ids: what is allowed in each, and how each is written in Redis.
//!
//! A value of one of these types is known to be well formed; every constructor says what is wrong otherwise. All of
//! them are cheap to clone.

mod error;
mod instance;
mod name;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod ticket;

pub(crate) use self::error::shorten;
pub use self::{
    error::IdError,
    instance::{InstanceId, Partition},
    name::{
        MailboxId, Namespace, QueueName, SharedKey, SignalId, SignalName, TaskName, WorkerId,
        WorkflowName,
    },
    run::{DefinitionHash, Nonce, RunId, RunTail},
    ticket::{InputRef, ListName, Purpose, Ticket, ValueField},
};

/// The longest name of a task, queue, signal, workflow, worker or namespace, in bytes.
pub const MAX_NAME: usize = 64;
/// The longest worker id, in bytes: it stands in every task record.
pub const MAX_WORKER_ID: usize = 30;
/// The longest instance id, in bytes.
pub const MAX_INSTANCE_ID: usize = 256;
