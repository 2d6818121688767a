// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why CPUs do not go on in the new image: the first problem, as text.

use alloc::format;
use alloc::string::{String, ToString};

use ::update::trial::{REASON_BYTES, TrialPage};
use spin::Mutex;

use crate::arch::switch_pages::trial::{Exception, Return};
use crate::lifecycle::exceptions::exception_name;

/// The reason for which the first CPU failed in the blackout.
static PROBLEM: Mutex<Option<String>> = Mutex::new(None);

/// A CPU cannot switch over.
pub fn note(index: u32, problem: &str) {
    PROBLEM.lock().get_or_insert_with(|| format!("CPU {index}: {problem}"));
}

/// A CPU came back from the new image for this reason.
pub fn note_failure(index: u32, back: Option<Return>, page: Option<&TrialPage>) {
    note(index, &reason_of(back, page));
}

/// The first problem since this was last asked for.
pub fn take() -> Option<String> {
    PROBLEM.lock().take()
}

/// Returns why the new image came back, in words.
pub fn reason_of(back: Option<Return>, page: Option<&TrialPage>) -> String {
    match back {
        Some(Return::Word(::update::trial::word::GIVES_UP, _)) => {
            let mut bytes = [0; REASON_BYTES];
            let text = page.map_or(&[][..], |page| page.reason(&mut bytes));
            String::from_utf8_lossy(text).into_owned()
        }
        Some(Return::Word(word, _)) => format!("its word {word} is unknown here"),
        Some(Return::Exception(Exception { vector, error_code, rip, fault_address })) => {
            let name = exception_name(vector);
            format!(
                "exception {vector} {name} at {rip:#x}, error code {error_code:#x}, fault address {fault_address:#x}"
            )
        }
        Some(Return::Interrupt(vector)) => format!("it was interrupted by vector {vector:#x}"),
        None => "it has no page".to_string(),
    }
}
