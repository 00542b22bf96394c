//! One instance.

use bytes::Bytes;
use serde::Serialize;
use tenure::Client;

use super::{Args, Begin, with};
use crate::{commands::result, exit::Exit};

#[derive(Debug, Serialize)]
struct Told {
    id: String,
    run: String,
    /// It was there, and nothing was started.
    existing: bool,
}

pub(super) async fn run(client: &Client, args: &Args, input: Bytes) -> anyhow::Result<Exit> {
    let how = &args.how;
    let mut start = with!(client.start_named(&args.workflow, input), how, how.begin());
    if let Some(id) = &args.id {
        start = start.instance(id.clone());
    }
    let handle = start.await?;
    if args.wait.is_wanted() {
        let result = args.wait.of(&handle).await;
        return result::tell(&handle, result, args.answer).await;
    }
    let told = Told {
        id: handle.id().to_string(),
        run: handle.run().to_string(),
        existing: handle.was_there(),
    };
    args.answer.write(&told, |told| match told.existing {
        true => format!("`{}` was there already, run {}", told.id, told.run),
        false => format!("`{}` is started, run {}", told.id, told.run),
    })?;
    Ok(Exit::Done)
}
