// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `host.toml` and their defaults.

use std::ops::Range;
use std::path::PathBuf;

use bundle::{OnPanic, Pmu, WhenDone};
use serde::Deserialize;

use crate::suggest::did_you_mean;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    pub host: WrittenHost,
    #[serde(default)]
    pub trust: WrittenTrust,
    #[serde(default)]
    pub guest: Vec<WrittenGuest>,
}

/// `[host]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenHost {
    pub cpus: u32,
    pub memory: String,
    pub when_done: WhenDone,
    pub cmdline: String,
    pub image: Option<PathBuf>,
}

impl Default for WrittenHost {
    fn default() -> Self {
        let memory = "2GiB".to_owned();
        Self { cpus: 2, memory, when_done: WhenDone::PowerOff, cmdline: String::new(), image: None }
    }
}

/// `[trust]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenTrust {
    pub keys: Vec<String>,
}

/// `[[guest]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenGuest {
    pub name: String,
    pub kernel: PathBuf,
    pub initrd: Option<PathBuf>,
    #[serde(default)]
    pub modules: Vec<PathBuf>,
    #[serde(default)]
    pub cmdline: String,
    #[serde(default = "one")]
    pub vcpus: u32,
    pub memory: String,
    #[serde(default)]
    pub debug_exit: bool,
    #[serde(default = "usual_weight")]
    pub weight: u32,
    #[serde(default)]
    pub on_panic: OnPanic,
    #[serde(default = "usual_hung_s")]
    pub hung_s: u32,
    #[serde(default)]
    pub pmu: Pmu,
    pub pmu_events: Option<Vec<String>>,
    #[serde(default = "yes")]
    pub autostart: bool,
}

fn one() -> u32 {
    1
}

fn usual_weight() -> u32 {
    100
}

fn usual_hung_s() -> u32 {
    10
}

fn yes() -> bool {
    true
}

/// Parses the text; an error comes with its line.
pub(super) fn parse(text: &str) -> Result<Written, (Option<usize>, String)> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, &span));
        (line, explain(error.message()))
    })
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.bytes().take(span.start).filter(|&byte| byte == b'\n').count() + 1
}

/// Puts a parser's message into the operator's words, with a suggestion where a name was misspelt.
fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let [word, known @ ..] = &quoted[..] else { return message.to_owned() };
    let suggestion = did_you_mean(word, known.iter().copied());
    let list = || known.join(", ");
    if message.starts_with("unknown field") && suggestion.is_empty() {
        format!("unknown key {word:?}; the keys here are {}", list())
    } else if message.starts_with("unknown field") {
        format!("unknown key {word:?}{suggestion}")
    } else if message.starts_with("unknown variant") && suggestion.is_empty() {
        format!("unknown value {word:?}; possible are {}", list())
    } else if message.starts_with("unknown variant") {
        format!("unknown value {word:?}{suggestion} (possible are {})", list())
    } else if message.starts_with("missing field") {
        format!("the key {word:?} is missing; add it")
    } else {
        message.to_owned()
    }
}
