use std::{cell::Cell, marker::PhantomData};

use uuid::Uuid;

thread_local! {
    static MADE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While this value lives, all that is random on this thread comes from one seed: runs, mailboxes and ids of instances,
/// nonces, jitter. Together with a runtime of one thread and paused time the same seed gives the same run.
///
/// Ids of two threads with one seed are the same: never use it where data is shared with another process.
#[derive(Debug)]
pub struct Seeded(PhantomData<*const ()>);

impl Seeded {
    /// From now on.
    #[must_use = "it ends when this value is dropped"]
    pub fn new(seed: u64) -> Self {
        fastrand::seed(seed);
        MADE.set(Some(0));
        Self(PhantomData)
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        MADE.set(None);
    }
}

/// The next id of the seed, a UUIDv7 that counts milliseconds as it counts ids; `None` without a seed.
pub(crate) fn uuid() -> Option<Uuid> {
    let made = MADE.get()? + 1;
    MADE.set(Some(made));
    let random: [u8; 10] = std::array::from_fn(|_| fastrand::u8(..));
    Some(uuid::Builder::from_unix_timestamp_millis(made, &random).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Nonce, RunId};

    #[test]
    fn one_seed_gives_the_same_ids_and_without_it_they_are_unique() {
        let made = |seed| {
            let _seeded = Seeded::new(seed);
            (RunId::unique(), Nonce::random(), RunId::unique())
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert_ne!(made(1).0, made(1).2);
        assert_ne!(RunId::unique(), RunId::unique());
    }
}
