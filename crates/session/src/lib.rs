// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access control of the control channel.
//!
//! ```text
//!  request ──► Guard::admit ──► Admitted::Request      carry it out
//!                │          ├─► Admitted::Challenge    answer: the beginning of a session
//!                │          └─► Admitted::Keys         answer: the keys that there are
//!                └─► Denied: the reason, a hint        refuse it
//! ```
//!
//! A host with control keys in its bundle carries out a request only if one of them has signed it. A client begins a
//! session by its key's first bytes, gets a challenge, and signs each request with the challenge and a number that
//! rises. So no frame of an earlier session, of another host or of this session acts again, and none can be changed or
//! inserted. A key has a role, and [`wire::RequestBody::role`] states which one a request takes.
//!
//! - **Challenges are random and never handed over**: after an update or a restart every client begins again.
//! - **Everything is bounded**: sessions and open challenges of each key, their time, and the signatures that may be
//!   wrong in a second, since each costs the host's first CPU the time of a check.
//! - **Nothing is encrypted, and answers are not signed**: who reads the line reads both.
//!
//! A request from a guest ([`Guard::admit_of_guest`]) may do no more than that guest's [`Grant`] states, whatever key
//! has signed it.
//!
//! The messages are [`wire::Challenge`] and [`wire::Signed`]; [`Signer`] is the client's end.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bounds;
mod denied;
mod failures;
mod grant;
mod guard;
mod open;
mod signer;

pub use bounds::{CHALLENGE_S, MAX_CHALLENGES, MAX_SESSIONS};
pub use denied::Denied;
pub use grant::Grant;
pub use guard::{Admitted, Guard, Key, Moment, Plain, Unanswered};
pub use signer::Signer;

#[cfg(test)]
mod tests;
