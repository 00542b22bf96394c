//! One description of several layers: the first that says a part counts. What contradicts itself within a layer is
//! refused; what a later layer says of another place is not looked at.

use super::{
    layer::Layer,
    parts::{FIELDS, Parts, Place},
    route::{self, LoginOf},
};
use crate::exit::Usage;

/// The passwords, each with the file that may hold it instead.
const PASSWORDS: [(&str, &str); 2] = [
    ("password", "password-file"),
    ("sentinel-password", "sentinel-password-file"),
];

pub(super) fn merge(layers: &[Layer]) -> Result<Parts, Usage> {
    for layer in layers {
        check_layer(layer)?;
    }
    let at = layers
        .iter()
        .position(|layer| layer.parts.place().is_some());
    let place = at.and_then(|at| layers[at].parts.place());
    let mut merged = Parts::default();
    for (number, layer) in layers.iter().enumerate() {
        for (field, value) in layer.parts.given() {
            let belongs = FIELDS.into_iter().find(|(name, _)| *name == field);
            let elsewhere = belongs.is_some_and(|(_, of)| of.is_some() && of != place);
            if elsewhere || merged.has(field) || is_said(&merged, field) {
                continue;
            }
            if place == Some(Place::Address)
                && !fits_address(&merged, layer, field, at < Some(number))?
            {
                continue;
            }
            set(&mut merged, layer, field, value)?;
        }
    }
    check(&merged, layers)?;
    let said = LoginOf {
        user: merged.has("user"),
        password: merged.has("password") || merged.has("password-file"),
    };
    if let Some(address) = merged.redis.take() {
        merged.redis = Some(route::without(address.reveal(), said).into());
    }
    Ok(merged)
}

fn set(merged: &mut Parts, layer: &Layer, field: &str, value: String) -> Result<(), Usage> {
    merged
        .set(field, value)
        .map_err(|allowed| Usage::new(format!("{} must be {allowed}", layer.name(field))))
}

/// A password by a file is said by the password too, and the other way round.
fn is_said(merged: &Parts, field: &str) -> bool {
    PASSWORDS.into_iter().any(|(text, file)| {
        (field == text && merged.has(file)) || (field == file && merged.has(text))
    })
}

/// Two ways of saying one thing in one layer.
fn check_layer(layer: &Layer) -> Result<(), Usage> {
    let both = |one: &str, other: &str| {
        Usage::new(format!(
            "{} and {} contradict each other; give one of them",
            layer.name(one),
            layer.name(other)
        ))
    };
    let mut first: Option<(&str, Place)> = None;
    for (field, place) in FIELDS {
        let Some(place) = place.filter(|_| layer.parts.has(field)) else {
            continue;
        };
        match first {
            Some((one, of)) if of != place => return Err(both(one, field)),
            _ => first = Some((field, place)),
        }
    }
    for (text, file) in PASSWORDS {
        if layer.parts.has(text) && layer.parts.has(file) {
            return Err(both(text, file));
        }
    }
    let Some(address) = &layer.parts.redis else {
        return Ok(());
    };
    let login = route::login_of(address.reveal());
    let clashes = [
        ("user", login.user),
        ("password", login.password),
        ("password-file", login.password),
        ("db", true),
        ("tls", true),
    ];
    match clashes
        .into_iter()
        .find(|(field, said)| *said && layer.parts.has(field))
    {
        Some(("db" | "tls", _)) => Err(Usage::new(format!(
            "the address in {} says the database and whether to encrypt (rediss://host:6379/0); leave {} out",
            layer.name("redis"),
            if layer.parts.has("db") {
                layer.name("db")
            } else {
                layer.name("tls")
            },
        ))),
        Some((field, _)) => Err(both("redis", field)),
        None => Ok(()),
    }
}

/// Whether a part is taken beside an address, which may say it itself: then the earlier layer counts.
fn fits_address(merged: &Parts, layer: &Layer, field: &str, is_later: bool) -> Result<bool, Usage> {
    match field {
        "db" | "tls" if is_later => Ok(false),
        "db" | "tls" if layer.parts.redis.is_none() => Err(Usage::new(format!(
            "{} has no effect on an address, and that is given as well; say it in the address: rediss://host:6379/0",
            layer.name(field)
        ))),
        "user" | "password" | "password-file" if is_later => {
            let address = merged.redis.as_ref();
            let login = address.map(|address| route::login_of(address.reveal()));
            Ok(login.is_none_or(|login| match field {
                "user" => !login.user,
                _ => !login.password,
            }))
        }
        // It came first: the address loses its own login.
        _ => Ok(true),
    }
}

/// What does not go together, wherever it was said.
fn check(merged: &Parts, layers: &[Layer]) -> Result<(), Usage> {
    let name = |field: &str| {
        let layer = layers.iter().find(|layer| layer.parts.has(field));
        layer.map_or_else(|| format!("--{field}"), |layer| layer.name(field))
    };
    let needs =
        |one: &str, other: &str| Usage::new(format!("{} needs --{other} as well", name(one)));
    for (one, other) in [
        ("tls-cert", "tls-key"),
        ("tls-key", "tls-cert"),
        ("sentinel", "sentinel-master"),
        ("sentinel-master", "sentinel"),
    ] {
        if merged.has(one) && !merged.has(other) {
            return Err(needs(one, other));
        }
    }
    let place = merged.place();
    let certificate = ["tls-ca", "tls-cert"]
        .into_iter()
        .find(|field| merged.has(field));
    if let Some(certificate) = certificate
        && merged.tls == Some(false)
    {
        return Err(Usage::new(format!(
            "{} is of no use without encryption, which {} forbids; leave one of them out",
            name(certificate),
            name("tls")
        )));
    }
    if place == Some(Place::Socket) && (merged.tls == Some(true) || certificate.is_some()) {
        return Err(Usage::new(format!(
            "{} is a file of this machine and is not encrypted; leave {} out",
            name("socket"),
            name(certificate.unwrap_or("tls"))
        )));
    }
    if place == Some(Place::Cluster) && merged.db.is_some_and(|db| db > 0) {
        return Err(Usage::new(format!(
            "a cluster has no other database than 0; leave {} out",
            name("db")
        )));
    }
    Ok(())
}
