//! `note.lua`

use crate::{
    error::StoreError,
    store::{
        NoteReply, NoteRequest,
        redis::{
            Inner,
            decode::{text, unknown_tag},
            script::{Args, Named, script},
        },
    },
};

use super::record_field;

pub(in crate::store::redis) static SCRIPT: Named = script!("note");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &NoteRequest,
) -> Result<NoteReply, StoreError> {
    inner.bounds().note(request)?;
    let keys = inner.keys_of(request.partition)?;
    let holding = &request.holding;
    let ticket = &holding.ticket;
    let mut args = Args::default();
    args.key(keys.seq()).key(keys.instance(&ticket.id));
    args.arg(record_field(ticket))
        .arg(holding.run.to_string())
        .arg(holding.record.to_string())
        .arg(format!("noted:{}", ticket.task))
        .arg(format!("{} {}", holding.record.attempt, request.number))
        .arg(request.number.to_string())
        .count(NoteRequest::MAX_SHARED);
    for (field, value) in &request.values {
        args.arg(field.to_string()).payload(value.clone());
    }
    match text(SCRIPT.name, inner.call(&SCRIPT, args).await?)?.as_str() {
        "noted" => Ok(NoteReply::Noted),
        "full" => Ok(NoteReply::Full),
        "lost" => Ok(NoteReply::Lost),
        "cancelled" => Ok(NoteReply::Cancelled),
        "gone" => Ok(NoteReply::Gone),
        other => Err(unknown_tag(SCRIPT.name, other)),
    }
}
