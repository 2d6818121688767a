// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons for which updates are rolled back: a few words, from the host's own text.

/// The beginning of the record by which a host logs a roll-back, also of an update that was asked for elsewhere.
const ROLLED_BACK: &str = "the update was rolled back after";

/// The reason for which no client has confirmed an update.
pub(super) const UNCONFIRMED: &str = "unconfirmed";
/// A reason that none of the others fits, such as a panic of the new image.
pub(super) const OTHER: &str = "other";

/// Parts of a host's text, and the reason that each stands for; the first one that is there counts.
const PARTS: [(&str, &str); 5] = [
    ("waited too long for the others", "waited"),
    ("the new image hangs", "hung"),
    (": exception ", "exception"),
    ("sum is wrong", "damaged"),
    ("no CPU gave a reason", "unknown"),
];

/// Returns all reasons.
pub(super) fn reasons() -> impl Iterator<Item = &'static str> {
    PARTS.into_iter().map(|(_, reason)| reason).chain([UNCONFIRMED, OTHER])
}

/// Returns the reason of the roll-back that this record of the log is about; `None` if it is about something else.
pub(super) fn reason_of(text: &str) -> Option<&'static str> {
    let rest = text.strip_prefix(ROLLED_BACK)?;
    let found = PARTS.iter().find(|(part, _)| rest.contains(part));
    Some(found.map_or(OTHER, |(_, reason)| reason))
}
