// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: `name=value` words parted by blanks, parsed into typed [`Options`].
//!
//! [`OPTIONS`] is the one list of options; parsing, error messages and the documentation all come from it. A word that
//! is unknown or malformed becomes a [`Complaint`] and is otherwise ignored: a wrong option must not stop the host. An
//! option given twice counts as given last.

mod choices;
mod complaint;
mod cpu_list;
mod measurement;
mod memory;
mod nearest;
mod table;
mod values;
mod wanted;
mod word;

pub use choices::{
    ApicMode, Console, GuestStart, KickTime, LogBuffer, PanicAction, Smp, Transmit, TscSync, UpdateLimit,
};
pub use complaint::{Complaint, Complaints, MAXIMUM_COMPLAINTS};
pub use cpu_list::{CpuList, NUMBERS};
pub use measurement::{MAXIMUM_MEASUREMENTS, Measurement};
pub use memory::{BadMemory, FramePolicy, HugeFrames, MAXIMUM_BAD_RANGES};
pub use table::{OPTIONS, OptionSpec};
pub use wanted::Options;
pub use word::UnknownValue;
pub(crate) use word::number;

use crate::self_tests::{SELF_TEST_OPTION, SelfTests};

impl Options {
    /// Parses a command line. Always gives options; words that could not be used are in the complaints: `selftest=`,
    /// too, since this is for an image without fault points.
    pub fn parse(command_line: &str) -> (Self, Complaints<'_>) {
        Self::read(command_line, |word, _| Err(Complaint::NoFaultPoints { word }))
    }

    /// Parses a command line for the test image, which has fault points: `selftest=` is an option then.
    ///
    /// Apart from [`Self::parse`], so that the other image holds neither the names of self-tests nor their reader.
    pub fn parse_with_self_tests(command_line: &str) -> (Self, SelfTests, Complaints<'_>) {
        let mut self_tests = SelfTests::default();
        let (options, complaints) = Self::read(command_line, |_, value| {
            let malformed = Complaint::Malformed { option: &SELF_TEST_OPTION, value };
            self_tests = value.and_then(SelfTests::read).ok_or(malformed)?;
            Ok(())
        });
        (options, self_tests, complaints)
    }

    /// Parses a command line; `read_self_tests` gets each word `selftest` with its value.
    fn read<'a>(
        command_line: &'a str,
        mut read_self_tests: impl FnMut(&'a str, Option<&'a str>) -> Result<(), Complaint<'a>>,
    ) -> (Self, Complaints<'a>) {
        let (mut options, mut complaints) = (Self::default(), Complaints::default());
        for word in command_line.split_ascii_whitespace() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let read = match name {
                NAME_OF_SELF_TESTS => read_self_tests(word, value),
                _ => options.apply(word, name, value),
            };
            if let Err(complaint) = read {
                complaints.add(complaint);
            }
        }
        (options, complaints)
    }

    fn apply<'a>(&mut self, word: &'a str, name: &str, value: Option<&'a str>) -> Result<(), Complaint<'a>> {
        let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
            return Err(Complaint::Unknown { word, nearest: nearest::name(name) });
        };
        let applied = value.and_then(|value| (option.apply)(self, value));
        applied.ok_or(Complaint::Malformed { option, value })
    }
}

const NAME_OF_SELF_TESTS: &str = SELF_TEST_OPTION.name;
