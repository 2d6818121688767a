// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control keys of this host's bundle.

use bundle::ControlKeyConfig;
use session::{Guard, Key, Plain};

use crate::arch::entropy::Instructions;
use crate::guests::{configuration, control_keys};

/// The guard of this host's control channel, without a session.
pub(super) fn guard() -> Guard {
    let host = configuration::host();
    let plain = if host.demands_sessions() { Plain::Denied } else { Plain::Admitted };
    let mut guard = Guard::new(host.control_keys.iter().map(key).collect(), plain);
    guard.adopt(control_keys::section().iter().map(|revoked| revoked.key));
    if guard.demands_sessions() {
        let keys = guard.list().len();
        log::info!("control: requests have to be signed by one of {keys} control keys");
        if let Err(error) = entropy::seed(&mut Instructions::detect()) {
            log::error!("control: no session can begin, no request is taken: {error}");
        }
    }
    guard
}

fn key(config: &ControlKeyConfig) -> Key {
    let role = control_keys::role_of(config.role);
    Key { name: config.name.clone(), key: seal::PublicKey::from_bytes(config.key), role }
}
