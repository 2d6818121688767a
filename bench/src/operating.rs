// SPDX-License-Identifier: MIT OR Apache-2.0
//! `operating`: what it takes to operate hosts: an image on a serial line ([`upload`]) and from a guest
//! ([`from_guest`]), the service for ten hosts ([`service`]), its page ([`page`]), and a reading of metrics
//! ([`reading`]).

use anyhow::Result;
use baton::size::Size;

use super::report::{Goal, Report};
use super::{Bench, Context};

mod browser;
mod from_guest;
mod http;
mod page;
mod reading;
mod service;
mod upload;

pub(super) static BENCH: Bench = Bench {
    name: "operating",
    about: "an image by serial line and from a guest; the service's memory, answers and page; a reading of metrics",
    goals: &[
        Goal::at_most("upload_s_per_mib", 45.0, "s"),
        Goal::at_most("upload_vsock_s_per_mib", 0.1, "s"),
        Goal::at_most("serve_rss_mib", 30.0, "MiB"),
        Goal::at_least("api_requests_per_s", 1000.0, "requests/s"),
        Goal::at_most("page_load_s", 1.0, "s"),
        Goal::at_most("axe_violations", 0.0, "violations"),
        Goal::at_most("metrics_host_instructions", 2_000_000.0, "instructions"),
    ],
    run,
};

/// Memory of the lab machines.
const MEMORY: Size = Size::mebibytes(256);

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    upload::run(context, report)?;
    from_guest::run(context, report)?;
    let program = service::program(context)?;
    service::run(context, &program, report)?;
    reading::run(context, &program, report)
}
