// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's command line, checked by the image's own parser (`boot::options`) before a host boots with it: the host
//! itself would only log the mistake, and go on without the option.

use anyhow::{Result, bail};
use boot::options::{Complaint, OPTIONS, OptionSpec, Options};

use crate::suggest::did_you_mean;

/// A word of a command line that the host would ignore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// The word.
    pub word: String,
    /// The reason, with the possible values.
    pub message: String,
}

/// Returns the words of a command line that the host would ignore, in order.
pub fn bad_options(cmdline: &str) -> Vec<BadOption> {
    cmdline.split_ascii_whitespace().filter_map(bad_option).collect()
}

/// Checks a command line that comes from `source`; the error names every wrong word.
///
/// # Errors
/// The host would ignore some of it.
pub fn check(source: &str, cmdline: &str) -> Result<()> {
    let bad: Vec<String> = bad_options(cmdline).iter().map(|bad| format!("{source}: {}", bad.message)).collect();
    if bad.is_empty() { Ok(()) } else { bail!(bad.join("\n")) }
}

fn bad_option(word: &str) -> Option<BadOption> {
    // Self-tests are read, too: which image boots is not known here, and one without fault points reports that.
    let (_, _, complaints) = Options::parse_with_self_tests(word);
    let message = match complaints.kept().first()? {
        Complaint::Unknown { nearest: Some(nearest), .. } => {
            format!("the host has no option {word:?}; did you mean {nearest:?}?")
        }
        Complaint::Unknown { nearest: None, .. } => {
            let names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
            format!("the host has no option {word:?}; there are {}", names.join(", "))
        }
        Complaint::Malformed { option: OptionSpec { name, accepted, .. }, value: None } => {
            format!("the option {name} lacks its value; write {name}= and {accepted}")
        }
        Complaint::Malformed { option: OptionSpec { name, accepted, examples, .. }, value: Some(value) } => {
            let suggestion = did_you_mean(value, examples.iter().copied());
            format!("the option {name} does not take {value:?}{suggestion} ({name} takes {accepted})")
        }
        complaint @ Complaint::NoFaultPoints { .. } => complaint.to_string(),
    };
    Some(BadOption { word: word.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_the_host_understands_is_taken() {
        check("host.toml", "log=debug smp=parallel  cpus=3 selftest=update:panic:restore").expect("good");
        check("host.toml", "").expect("good");
        for option in OPTIONS {
            for example in option.examples {
                assert_eq!(bad_options(&format!("{}={example}", option.name)), []);
            }
        }
    }

    #[test]
    fn everything_that_the_host_would_ignore_is_refused_at_once() {
        let error = check("--append", "smpp=serial smp=serail log=debug cpus colour=red").expect_err("bad").to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 4, "{error}");
        assert_eq!(lines[0], "--append: the host has no option \"smpp=serial\"; did you mean \"smp\"?");
        let expected = "--append: the option smp does not take \"serail\"; did you mean \"serial\"? \
                        (smp takes serial, parallel or park)";
        assert_eq!(lines[1], expected);
        assert!(lines[2].starts_with("--append: the option cpus lacks its value; write cpus= and all or"), "{error}");
        assert!(lines[3].contains("no option \"colour=red\"; there are log, log-buffer,"), "{error}");
    }
}
