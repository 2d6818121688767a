// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control keys that were revoked since the machine was reset: the bundle lists them still, and each image hands them
//! over to the next.

use alloc::vec::Vec;

use bundle::ControlRole;
use handover::layout::{MAX_REVOKED, RevokedKey};
use spin::Mutex;
use wire::Role;

use crate::kernel::inherited;

static REVOKED: Mutex<Vec<RevokedKey>> = Mutex::new(Vec::new());

/// Returns the role in the words of the protocol; `None` for a revoked key.
pub fn role_of(role: ControlRole) -> Option<Role> {
    match role {
        ControlRole::Revoked => None,
        ControlRole::Read => Some(Role::Read),
        ControlRole::Operate => Some(Role::Operate),
        ControlRole::Update => Some(Role::Update),
    }
}

/// Takes over what the image before has handed over.
pub fn adopt() {
    let Some(record) = inherited::record() else { return };
    *REVOKED.lock() = record.revoked.iter().collect();
}

/// Returns whether one more may be revoked.
pub fn has_room() -> bool {
    REVOKED.lock().len() < MAX_REVOKED
}

/// Notes a key that was revoked.
pub fn note(key: [u8; 32]) {
    REVOKED.lock().push(RevokedKey { key });
}

/// Returns all of them, as a record has them.
pub fn section() -> Vec<RevokedKey> {
    REVOKED.lock().clone()
}
