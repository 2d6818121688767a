// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a command to the end of its process: errors as people read them, and the exit status.

use std::any::Any;
use std::env;
use std::io::Write as _;
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use wire::{Refusal, RefusalCode};

use crate::client::{Closed, NoAnswer, NotFound, Unreachable};
use crate::output::{has_lost_its_reader, output};

/// The exit status of a process that SIGPIPE has ended.
const READER_HAS_GONE: u8 = 141;

/// Runs `command`, which returns the exit status, and reports its error.
pub fn run(command: impl FnOnce() -> Result<u8> + UnwindSafe) -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        if !is_lost_reader(info.payload()) {
            usual(info);
        }
    }));
    let run = || {
        let status = command()?;
        output().flush()?;
        anyhow::Ok(status)
    };
    match panic::catch_unwind(run) {
        Ok(Ok(status)) => ExitCode::from(status),
        Ok(Err(error)) if has_lost_its_reader(&error) => ExitCode::from(READER_HAS_GONE),
        Ok(Err(error)) => report(&error),
        Err(payload) if is_lost_reader(&*payload) => ExitCode::from(READER_HAS_GONE),
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Prints an error as people read it, or as JSON where that is the output's format, and returns its status.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let kind = Kind::of(error);
    match env::args_os().any(|argument| argument == "--json") {
        true => eprintln!("{}", as_json(kind, error)),
        false => eprintln!("baton: {error:#}"),
    }
    ExitCode::from(kind.status())
}

fn as_json(kind: Kind, error: &anyhow::Error) -> serde_json::Value {
    match error.downcast_ref::<Refusal>() {
        Some(Refusal { code, hint, .. }) => {
            serde_json::json!({ "error": kind, "message": format!("{error:#}"), "code": code, "hint": hint })
        }
        None => serde_json::json!({ "error": kind, "message": format!("{error:#}") }),
    }
}

/// The kinds of failures that a script distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Anything else.
    Failed,
    /// The host has refused the request: nothing has changed.
    Refused,
    /// There is no guest of that name.
    NotFound,
    /// There is no line to the host, or the host does not answer, or has ended.
    Unreachable,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Failed, Self::Refused, Self::NotFound, Self::Unreachable];

    /// Returns the kind of an error.
    pub fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<Refusal>().map(|refusal| refusal.code) {
            Some(RefusalCode::UnknownVm) => Self::NotFound,
            Some(RefusalCode::Failed | RefusalCode::Protocol) => Self::Failed,
            Some(_) => Self::Refused,
            None if error.is::<NotFound>() => Self::NotFound,
            None if error.is::<Closed>() || error.is::<NoAnswer>() || error.is::<Unreachable>() => Self::Unreachable,
            None => Self::Failed,
        }
    }

    /// Returns the exit status. 2 is clap's, 3 a panic of the host.
    pub fn status(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Refused => 4,
            Self::NotFound => 5,
            Self::Unreachable => 6,
        }
    }
}

/// Returns whether a panic is that of `println!` without a reader, as in `baton log | head`. SIGPIPE is ignored, since
/// it would end a broker.
fn is_lost_reader(payload: &(dyn Any + Send)) -> bool {
    let text = payload.downcast_ref::<String>().map_or("", String::as_str);
    text.starts_with("failed printing to stdout") && text.contains("(os error 32)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: RefusalCode) -> anyhow::Error {
        Refusal { code, reason: "a reason".to_owned(), hint: "a hint".to_owned() }.into()
    }

    #[test]
    fn a_script_distinguishes_refused_not_found_unreachable_and_failed() {
        let kinds = [
            (refusal(RefusalCode::WrongState), Kind::Refused),
            (refusal(RefusalCode::Exhausted).context("an order"), Kind::Refused),
            (refusal(RefusalCode::UnknownVm), Kind::NotFound),
            (refusal(RefusalCode::Failed), Kind::Failed),
            (NotFound("web".to_owned()).into(), Kind::NotFound),
            (anyhow::Error::from(Closed).context("ssh has ended"), Kind::Unreachable),
            (anyhow::anyhow!("a file"), Kind::Failed),
        ];
        for (error, kind) in kinds {
            assert_eq!(Kind::of(&error), kind, "{error:#}");
        }
        let mut statuses = Kind::ALL.map(Kind::status).to_vec();
        statuses.dedup();
        assert_eq!(statuses, [1, 4, 5, 6]);
    }

    #[test]
    fn an_error_in_json_has_its_kind_and_a_refusals_code_and_hint() {
        let error = refusal(RefusalCode::WrongState);
        let expected = serde_json::json!({
            "error": "refused", "message": "a reason; a hint", "code": "wrong-state", "hint": "a hint",
        });
        assert_eq!(as_json(Kind::of(&error), &error), expected);
        let error = anyhow::Error::from(Closed);
        assert_eq!(as_json(Kind::of(&error), &error)["error"], "unreachable");
    }
}
