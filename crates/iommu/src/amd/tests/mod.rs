// SPDX-License-Identifier: MIT OR Apache-2.0

pub(crate) mod hardware;
mod operation;
mod property;
mod start;
mod walk;
