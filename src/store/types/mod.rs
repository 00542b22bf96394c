//! Requests and replies: one file for each transition.

mod check;
mod claim;
mod control;
mod extend;
mod hint;
mod note;
mod release;
mod settle;
mod signal;
mod start;
mod tick;

pub(crate) use check::Bounds;
pub use claim::{AsideEntry, ClaimReply, ClaimRequest, Claimed, Parking, TaskLimits};
pub use control::{Control, ControlReply, ControlRequest, RetryRequest};
pub use extend::{ExtendRequest, Held, Holding};
pub use hint::{Event, Hint, Hints, StatusEvent, StatusEvents};
pub use note::{NoteReply, NoteRequest};
pub use release::{ReleaseReply, ReleaseRequest};
pub use settle::{ClaimNext, ErrorRecord, SettleReply, SettleRequest, Settlement, Verdict};
pub use signal::{SignalReply, SignalRequest};
pub use start::{Begin, IdPolicy, StartItem, StartReply};
pub use tick::{Clocks, Gate, KeeperRole, Recovered, Recovery, Retention, TickReply, TickRequest};
