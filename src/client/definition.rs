//! The definition that an instance runs by.

use super::{error::ClientError, handle::Handle, repeat::read};
use crate::{store::Header, workflow::Graph};

impl<O> Handle<O> {
    /// The definition that the instance runs by, which its [snapshot](Handle::snapshot) names: nodes and edges, as a worker
    /// published them.
    ///
    /// # Errors
    /// [`ClientError::Unpublished`], [`ClientError::Definition`], [`ClientError::Store`].
    pub async fn graph(&self, header: &Header) -> Result<Graph, ClientError> {
        let store = self.client().store_ref();
        let found = read(self.client().patience(), || {
            store.published(header.definition)
        });
        let Some(bytes) = found.await? else {
            return Err(ClientError::Unpublished {
                id: self.id().clone(),
                workflow: header.workflow.clone(),
                definition: header.definition,
            });
        };
        Graph::from_bytes(&bytes).map_err(|error| ClientError::Definition {
            workflow: header.workflow.clone(),
            reason: error.to_string(),
        })
    }
}
