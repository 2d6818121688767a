// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a request is not carried out.

use alloc::string::String;
use core::fmt;

use seal::KeyId;
use wire::{RefusalCode, Right, Role, SESSION_IDLE_S};

/// The reason why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It is not signed, and this host takes no other.
    NoSession,
    /// The host has no control keys: there is nothing to begin a session with.
    NoKeys,
    /// No control key begins so.
    UnknownKey(KeyId),
    /// The key of this name is revoked.
    Revoked(String),
    /// There is no such session, or it has ended.
    UnknownSession,
    /// The session has had this number or a higher one.
    Replayed {
        /// Name of the key.
        key: String,
        /// The request's number.
        sequence: u64,
        /// The highest so far.
        newest: u64,
    },
    /// The signature is not the key's over this request.
    BadSignature(String),
    /// Too many signatures were wrong: none is checked for a moment.
    TooManyFailures,
    /// The signed bytes are no request that can be in a session.
    NoRequest(String),
    /// The key's role is not enough.
    Role {
        /// Name of the key.
        key: String,
        /// Its role.
        has: Role,
        /// The role that the request takes.
        needs: Role,
    },
    /// The role that the guest was granted is not enough.
    GuestRole {
        /// Name of the guest.
        guest: String,
        /// The role of its clients.
        has: Role,
        /// The role that the request takes.
        needs: Role,
    },
    /// The guest was not granted a right.
    GuestRight {
        /// Name of the guest.
        guest: String,
        /// The right that the request takes.
        needs: Right,
    },
    /// There are no random numbers for a challenge.
    NoRandomNumbers,
    /// No control key has this name.
    UnknownName(String),
    /// Without this key, none could revoke a key or update the host.
    LastKey(String),
}

impl Denied {
    /// Returns the key's name, where it is known.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Revoked(key) | Self::BadSignature(key) | Self::NoRequest(key) => Some(key),
            Self::Replayed { key, .. } | Self::Role { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Returns its kind for programs. [`RefusalCode::Protocol`]: nothing was done, begin a session (again).
    pub fn code(&self) -> RefusalCode {
        match self {
            Self::NoSession | Self::UnknownSession => RefusalCode::Protocol,
            Self::NoKeys | Self::NoRequest(_) | Self::UnknownName(_) | Self::LastKey(_) => RefusalCode::Invalid,
            Self::TooManyFailures | Self::NoRandomNumbers => RefusalCode::Exhausted,
            Self::UnknownKey(_) | Self::Revoked(_) | Self::Replayed { .. } => RefusalCode::Denied,
            Self::BadSignature(_) | Self::Role { .. } => RefusalCode::Denied,
            Self::GuestRole { .. } | Self::GuestRight { .. } => RefusalCode::Denied,
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSession => "give the secret half of one of its control keys: --key FILE, or BATON_KEY",
            Self::NoKeys => "leave --key out",
            Self::UnknownKey(_) => "add it to [[trust.control]] in host.toml, and update the host with that bundle",
            Self::Revoked(_) => "use another key; `baton key list` shows those that may be used",
            Self::UnknownSession => "ask again: the tool begins another one by itself",
            Self::Replayed { .. } => "if you did not send it twice, another sender repeats requests on this line",
            Self::BadSignature(_) => "use the secret key that belongs to it; else another sender uses this line",
            Self::TooManyFailures => "wait a second; see `baton events`",
            Self::NoRequest(_) => "use tool and host of one release",
            Self::Role { .. } => "use a key of that role; `baton key list` shows them",
            Self::GuestRole { .. } => "state that role as control in the guest's vsock in host.toml",
            Self::GuestRight { .. } => "add it to rights in the guest's vsock in host.toml",
            Self::NoRandomNumbers => {
                "its CPU has neither RDSEED nor RDRAND, or they fail; state [trust] serial = \"open\", and protect the \
                 line otherwise"
            }
            Self::UnknownName(_) => "`baton key list` shows those that there are",
            Self::LastKey(_) => "update the host with a bundle that has another key of the role update first",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSession => f.write_str("this host takes signed requests only, and this one is not signed"),
            Self::NoKeys => f.write_str("this host has no control keys: its requests are not signed"),
            Self::UnknownKey(id) => write!(f, "this host has no control key {id}"),
            Self::Revoked(key) => write!(f, "the control key {key:?} is revoked"),
            Self::UnknownSession => write!(
                f,
                "the session is not known, so nothing was done: the image has changed, or there was no request for \
                 {SESSION_IDLE_S} s"
            ),
            Self::Replayed { sequence, newest, .. } => {
                write!(f, "request {sequence} of this session was not carried out: number {newest} came before it")
            }
            Self::BadSignature(key) => write!(f, "the signature is not that of the control key {key:?}"),
            Self::TooManyFailures => f.write_str("no signature is checked for a moment: too many were wrong"),
            Self::NoRequest(_) => f.write_str("what was signed is no request that this host knows"),
            Self::Role { key, has, needs } => {
                write!(f, "the control key {key:?} has the role {has}, and this takes {needs}")
            }
            Self::GuestRole { guest, has, needs } => {
                write!(f, "clients in guest {guest:?} have the role {has}, and this takes {needs}")
            }
            Self::GuestRight { guest, needs } => {
                write!(f, "clients in guest {guest:?} do not have the right {needs}")
            }
            Self::NoRandomNumbers => f.write_str("the host has no random numbers for a challenge"),
            Self::UnknownName(name) => write!(f, "there is no control key {name:?}"),
            Self::LastKey(key) => write!(f, "{key:?} is the only control key left with the role update"),
        }
    }
}

impl core::error::Error for Denied {}
