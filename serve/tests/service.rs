// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service as its clients see it, with hosts that answer as real ones do.

#[path = "service/api.rs"]
mod api;
#[path = "service/browser.rs"]
mod browser;
#[path = "service/certificates.rs"]
mod certificates;
#[path = "service/common.rs"]
mod common;
#[path = "service/configuring.rs"]
mod configuring;
#[path = "service/console.rs"]
mod console;
#[path = "service/control.rs"]
mod control;
#[path = "service/control_errors.rs"]
mod control_errors;
#[path = "service/creating.rs"]
mod creating;
#[path = "service/crowd.rs"]
mod crowd;
#[path = "service/ending.rs"]
mod ending;
#[path = "service/fake.rs"]
mod fake;
#[path = "service/fake_own.rs"]
mod fake_own;
#[path = "service/figures.rs"]
mod figures;
#[path = "service/history.rs"]
mod history;
#[path = "service/metrics.rs"]
mod metrics;
#[path = "service/parts.rs"]
mod parts;
#[path = "service/process.rs"]
mod process;
#[path = "service/tls.rs"]
mod tls;
#[path = "service/updates.rs"]
mod updates;
#[path = "service/waiting.rs"]
mod waiting;
