use std::{convert::Infallible, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};

use super::{AtBranch, BehindTask, Chain, draft::Draft};
use crate::task::{Handler, erase};

/// Branches that run at once and have no join yet: `Outs` is the tuple of what they bring.
#[must_use = "a fork needs its join"]
pub struct Forked<I, O, Outs> {
    draft: Draft,
    branches: Vec<Draft>,
    types: PhantomData<fn(I, O) -> Outs>,
}

impl<I, O, Outs> Forked<I, O, Outs> {
    pub(super) fn of(draft: Draft) -> Self {
        Self {
            draft,
            branches: Vec::new(),
            types: PhantomData,
        }
    }

    /// Adds a branch. It may be empty, end in a delay, or fork again.
    pub fn branch<B, At>(
        mut self,
        branch: impl FnOnce(Chain<O, O, AtBranch>) -> Chain<O, B, At>,
    ) -> Forked<I, O, Outs::With>
    where
        Outs: Append<B>,
    {
        let branch = branch(Chain::of(Draft::default()));
        self.branches.push(branch.draft);
        Forked {
            draft: self.draft,
            branches: self.branches,
            types: PhantomData,
        }
    }

    /// Runs a handler, once, when all branches have ended: on a tuple of their outputs, in their order. It is a task
    /// like others, with `retry`, `timeout`, `deadline` and `queue` behind it.
    pub fn join<H, Kind>(
        mut self,
        id: impl Into<String>,
        handler: H,
    ) -> Chain<I, H::Output, BehindTask>
    where
        H: Handler<Outs, Kind>,
        H::Output: Serialize + Send + 'static,
        Outs: DeserializeOwned + Send + 'static,
        Kind: 'static,
    {
        self.draft.join(self.branches, id.into(), erase(handler));
        Chain::of(self.draft)
    }

    /// Never there: a fork needs its join first. It exists so that the compiler can say so.
    #[doc(hidden)]
    pub fn build(self) -> Infallible
    where
        Self: IsJoined,
    {
        self.never()
    }

    /// Never there, as [`Forked::build`].
    #[doc(hidden)]
    pub fn task<H>(self, _id: impl Into<String>, _handler: H) -> Infallible
    where
        Self: IsJoined,
    {
        self.never()
    }
}

/// Of no fork: what stands in for a join.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this fork has no join yet",
    label = "`.join(id, handler)` comes first: its handler takes what the branches bring"
)]
pub trait IsJoined {
    #[doc(hidden)]
    fn never(self) -> Infallible;
}

/// Branches of one kind that run at once and have no join yet: each brings a `B`.
#[must_use = "a fork needs its join"]
pub struct ForkedEach<I, B> {
    draft: Draft,
    branches: Vec<Draft>,
    types: PhantomData<fn(I) -> B>,
}

impl<I, B> ForkedEach<I, B> {
    pub(super) fn of(draft: Draft, branches: Vec<Draft>) -> Self {
        Self {
            draft,
            branches,
            types: PhantomData,
        }
    }

    /// Runs a handler, once, when all branches have ended: on a `Vec` of their outputs, in their order. It is a task like
    /// others, with `retry`, `timeout`, `deadline` and `queue` behind it.
    pub fn join<H, Kind>(
        mut self,
        id: impl Into<String>,
        handler: H,
    ) -> Chain<I, H::Output, BehindTask>
    where
        H: Handler<Vec<B>, Kind>,
        H::Output: Serialize + Send + 'static,
        B: DeserializeOwned + Send + 'static,
        Kind: 'static,
    {
        self.draft.join(self.branches, id.into(), erase(handler));
        Chain::of(self.draft)
    }
}

/// Tuples that a branch can be added to: those of up to 11 elements, so that a fork has at most 12 branches of different
/// kinds. For more of one kind there is [`Chain::fork_each`], and a branch can fork again.
pub trait Append<T> {
    /// The tuple with a `T` at its end.
    type With;
}

macro_rules! append {
    ($($of:ident)*) => {
        impl<$($of,)* T> Append<T> for ($($of,)*) {
            type With = ($($of,)* T,);
        }
    };
}

append!();
append!(A);
append!(A B);
append!(A B C);
append!(A B C D);
append!(A B C D E);
append!(A B C D E F);
append!(A B C D E F G);
append!(A B C D E F G H);
append!(A B C D E F G H J);
append!(A B C D E F G H J K);
append!(A B C D E F G H J K L);
