//! Who uses the command line.

use std::env;

/// `user@machine`, as far as they are known: written into what is started and steered, for who looks at it later.
pub(crate) fn name() -> String {
    let known = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let user = known("USER").or_else(|| known("LOGNAME"));
    let machine = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok());
    match (user, machine) {
        (Some(user), Some(machine)) => format!("{user}@{machine}"),
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => "tenure".to_owned(),
    }
}
