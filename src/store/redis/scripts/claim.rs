//! `claim.lua`

use crate::{
    error::StoreError,
    ids::{InputRef, ListName, Purpose, Ticket},
    store::{
        AsideEntry, ClaimReply, ClaimRequest, Claimed, Parking, TaskRecord,
        redis::{
            Inner,
            decode::{Items, parse, protocol},
            script::{Args, Named, script},
        },
    },
    time::{Timestamp, millis},
};

pub(in crate::store::redis) static SCRIPT: Named = script!("claim", "claim_take");

/// An answer, with the store's count of transitions.
pub(in crate::store::redis) struct Answer {
    pub(in crate::store::redis) reply: ClaimReply,
    pub(in crate::store::redis) seq: u64,
}

fn limits(args: &mut Args, request: &ClaimRequest) {
    for list in &request.lists {
        for (task, limits) in request.limits.get(list).into_iter().flatten() {
            if limits.is_none() {
                continue;
            }
            args.arg(list.to_string())
                .arg(task.to_string())
                .optional(limits.timeout.map(super::delay))
                .optional(limits.deadline.map(super::delay));
        }
    }
}

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ClaimRequest,
) -> Result<Answer, StoreError> {
    inner.bounds().claim(request)?;
    let ttl = millis(request.ttl);
    let keys = inner.keys_of(request.partition)?;
    let mut args = Args::default();
    args.key(keys.meta())
        .key(keys.woken())
        .key(keys.seq())
        .key(keys.running())
        .key(keys.last(&request.worker))
        .key(keys.aside());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(request.worker.to_string())
        .arg(request.nonce.to_string())
        .number(request.want)
        .number(ttl)
        .arg(match request.parking {
            Parking::Never => "never",
            Parking::WhenShort => "short",
            Parking::Parked => "parked",
        })
        .arg(inner.guard())
        .count(request.lists.len());
    for list in &request.lists {
        args.arg(list.to_string());
    }
    limits(&mut args, request);
    let mut items = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let now = items.time()?;
    let (seq, epoch) = (items.parse()?, items.parse()?);
    let again = match items.text()?.as_str() {
        "again" => true,
        "done" => false,
        other => return Err(items.unknown_tag(other)),
    };
    let parked = match items.text()?.as_str() {
        "parked" => true,
        "free" => false,
        other => return Err(items.unknown_tag(other)),
    };
    let claims = claims(items.items()?, request, now)?;
    Ok(Answer {
        reply: ClaimReply {
            claims,
            again,
            parked,
            aside: aside(items.items()?)?,
            epoch,
        },
        seq,
    })
}

fn claims(
    mut lists: Items,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claims = Vec::with_capacity(usize::from(request.want));
    while !lists.is_empty() {
        let list: ListName = lists.parse()?;
        let mut items = lists.items()?;
        while !items.is_empty() {
            claims.push(claimed(&mut items, &list, request, now)?);
        }
    }
    Ok(claims)
}

fn claimed(
    items: &mut Items,
    list: &ListName,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Claimed, StoreError> {
    let ticket =
        Ticket::of_entry(list.clone(), &items.text()?).map_err(|e| protocol(SCRIPT.name, &e))?;
    let run = items.parse()?;
    let record = items
        .optional()?
        .unwrap_or_else(|| TaskRecord::first(&request.worker, request.nonce));
    let bytes = items.bytes()?;
    let sent = match &ticket.input {
        // A node that waited too long has no value of its own.
        InputRef::Field { len, .. } => {
            !bytes.is_empty() || (*len == 0 && ticket.purpose == Purpose::Run)
        }
        InputRef::Join => false,
    };
    Ok(Claimed {
        ticket,
        run,
        record,
        input: sent.then_some(bytes),
        overall: items.optional()?.map(Timestamp::from_millis),
        now,
    })
}

pub(super) fn ticket(list: &str, entry: &str) -> Result<Ticket, StoreError> {
    let list: ListName = parse(SCRIPT.name, list)?;
    Ticket::of_entry(list, entry).map_err(|e| protocol(SCRIPT.name, &e))
}

fn aside(mut items: Items) -> Result<Vec<AsideEntry>, StoreError> {
    let mut aside = Vec::with_capacity(items.len() / 2);
    while !items.is_empty() {
        // An entry that nobody can read need not be text.
        let ticket = String::from_utf8_lossy(&items.bytes()?).into_owned();
        let reason = String::from_utf8_lossy(&items.bytes()?).into_owned();
        aside.push(AsideEntry { ticket, reason });
    }
    Ok(aside)
}
