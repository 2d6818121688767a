// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: `name=value` words parted by blanks, parsed into typed [`Options`].
//!
//! [`OPTIONS`] is the one list of what there is; parsing, error messages and the documentation all come from it. A word
//! that is unknown or malformed becomes a [`Complaint`] and is otherwise ignored: a wrong option must not stop the
//! host. An option given twice counts as given last.

mod choices;
mod complaint;
mod cpu_list;
mod memory;
mod nearest;
mod self_test;
mod table;
mod values;
mod wanted;
mod word;

pub use choices::{
    ApicMode, Console, GuestStart, KickTime, LogBuffer, PanicAction, Smp, Transmit, TscSync, UpdateLimit,
};
pub use complaint::{Complaint, Complaints, MAXIMUM_COMPLAINTS};
pub use cpu_list::{CpuList, NUMBERS};
pub use memory::{BadMemory, FramePolicy, HugeFrames, MAXIMUM_BAD_RANGES};
pub use self_test::{EndFault, EndStep, MAXIMUM_SELF_TESTS, MadtDamage, SelfTest, StopPhase, UpdateFault, UpdateStep};
pub use table::{OPTIONS, OptionSpec};
pub use wanted::Options;
pub use word::UnknownValue;

impl Options {
    /// Parses a command line. Always gives options; what could not be used is in the complaints.
    pub fn parse(command_line: &str) -> (Self, Complaints<'_>) {
        let (mut options, mut complaints) = (Self::default(), Complaints::default());
        for word in command_line.split_ascii_whitespace() {
            if let Err(complaint) = options.apply(word) {
                complaints.add(complaint);
            }
        }
        (options, complaints)
    }

    fn apply<'a>(&mut self, word: &'a str) -> Result<(), Complaint<'a>> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
            return Err(Complaint::Unknown { word, nearest: nearest::name(name) });
        };
        let applied = value.and_then(|value| (option.apply)(self, value));
        applied.ok_or(Complaint::Malformed { option, value })
    }
}
