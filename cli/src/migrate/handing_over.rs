// SPDX-License-Identifier: MIT OR Apache-2.0
//! The moment at which a guest changes from one host to the other: what follows from each failure.

use anyhow::{Context as _, Error, Result, anyhow};

/// The guest's state at the target.
#[derive(Debug)]
pub(super) enum GoneOn {
    /// It runs there.
    Runs,
    /// It does not, and will not.
    Refused(Error),
    /// The line broke: it may run there.
    Unknown(Error),
}

/// Both hosts. All of the guest is at the target, and it is held at the source.
pub(super) trait Hosts {
    /// Makes the source's pause one without an end, and checks that the guest is as it was sent.
    fn pause_for_good(&mut self) -> Result<()>;

    /// Lets it go on at the target.
    fn go_on(&mut self) -> GoneOn;

    /// Ends it at the source.
    fn stop(&mut self) -> Result<()>;

    /// Lets it go on at the source.
    fn resume(&mut self) -> Result<()>;
}

/// Lets the guest go on at the target, and ends it at the source.
///
/// # Errors
/// It goes on at the source. Where it stands still there, since that cannot be known to be right or since the source is
/// out of reach, the error states what to do.
pub(super) fn hand_over(hosts: &mut impl Hosts) -> Result<()> {
    if let Err(error) = hosts.pause_for_good() {
        return Err(with_resumed(hosts, error));
    }
    match hosts.go_on() {
        GoneOn::Runs => hosts.stop().context(
            "it runs at the other host; this one is out of reach, where it stands still: `baton vm stop` it here",
        ),
        GoneOn::Refused(error) => Err(with_resumed(hosts, error)),
        GoneOn::Unknown(error) => Err(error.context(
            "the line to the other host broke when the guest was to go on there. It stands still here: `baton vm list` \
             the other host; if it runs there, `baton vm stop` it here, else `baton vm delete` it there and \
             `baton vm resume` it here",
        )),
    }
}

/// The error, once the guest goes on at the source.
fn with_resumed(hosts: &mut impl Hosts, error: Error) -> Error {
    match hosts.resume() {
        Ok(()) => error,
        Err(also) => anyhow!("{error:#}; and it stands still here ({also:#}): `baton vm resume` it"),
    }
}

#[cfg(test)]
#[path = "handing_over_tests.rs"]
mod tests;
