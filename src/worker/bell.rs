use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// News for a role, gathered until it looks: however much rings, nothing grows beyond what `T` holds, and nothing that
/// came while the role was busy is missed.
#[derive(Debug, Default)]
pub(crate) struct Bell<T> {
    news: Mutex<T>,
    notify: Notify,
}

impl<T: Default> Bell<T> {
    /// Adds to the news and wakes the role.
    pub(crate) fn ring(&self, add: impl FnOnce(&mut T)) {
        add(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner));
        self.notify.notify_one();
    }

    /// Waits for news.
    pub(crate) async fn rung(&self) {
        self.notify.notified().await;
    }

    /// The news since the last look.
    pub(crate) fn take(&self) -> T {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
